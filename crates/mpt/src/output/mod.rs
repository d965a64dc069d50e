//! What people see: results on standard output, complaints on standard error, colour on terminals.

mod explanation;
mod finding;
mod order;
mod quantity;
mod quota;
mod repair;
mod status;
mod table;
mod wrap;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write as _};

use anyhow::{Context as _, Result};

use crate::config::Report;
use crate::exit::Exit;

pub(crate) use explanation::explanations;
pub(crate) use order::{distributions, order};
pub(crate) use quantity::{bytes, counts, duration, percent, rate, short, three_digits};
pub(crate) use quota::fact as quota;
pub(crate) use repair::HOLD_BOUNDS_MS;
pub(crate) use status::{Look, event, problem, status};
pub(crate) use wrap::wrap;

/// Prints a result. A reader that closes the pipe early is not an error.
pub(crate) fn print(text: &str) -> Result<Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(Exit::Done),
    }
}

/// Says in one line what went wrong and what to do about it.
pub(crate) fn complain(what: impl Display) {
    // If standard error is closed, the message is discarded.
    let _ = writeln!(io::stderr(), "{}", complaint(what));
}

/// That line.
pub(crate) fn complaint(what: impl Display) -> String {
    let line = what.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
    format!("mpt: {line}")
}

/// Shows what is wrong with a configuration file.
pub(crate) fn report(report: &Report) {
    problems(report);
    complain(report);
}

/// The same without the closing line.
pub(crate) fn problems(report: &Report) {
    let text = report.render(colour_on(&io::stderr()));
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether standard output shows colours.
pub(crate) fn colour_on_stdout() -> bool {
    colour_on(&io::stdout())
}

/// Whether a stream shows colours: it is a terminal that supports them, and `NO_COLOR` is not set
/// (<https://no-color.org>).
pub(crate) fn colour_on(stream: &impl IsTerminal) -> bool {
    let objection = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    stream.is_terminal() && able && !objection
}
