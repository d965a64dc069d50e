//! Parsing the command line, and saying in one line what is wrong with it.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _};

use super::line::Line;
use crate::exit::Exit;
use crate::output;

/// The command line as it was meant, or how the program ends because of it: 0 after help and
/// version were printed, 2 after something wrong.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Line, Exit> {
    let colour = if output::colour_on_stdout() { ColorChoice::Always } else { ColorChoice::Never };
    let mut command = Line::command().color(colour);
    command
        .try_get_matches_from_mut(without_help_of_help(&Line::command(), args))
        .and_then(|matches| Line::from_arg_matches(&matches))
        .map_err(|error| answer(&error))
}

/// The arguments, where `mpt help --help` is `mpt help`: clap takes `--help` there for the name of a command.
fn without_help_of_help(
    line: &clap::Command,
    args: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let mut command = line;
    for at in 1..args.len() {
        if args[at] == "help" && command.has_subcommands() {
            let rest = args.split_off(at);
            args.extend(rest.into_iter().filter(|arg| arg != "--help" && arg != "-h"));
            break;
        }
        let Some(below) = command.find_subcommand(&args[at]) else { break };
        command = below;
    }
    args
}

fn answer(error: &clap::Error) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The only failures are those of standard output, and nothing could be said about them.
        return match error.print() {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Exit::Failure,
            _ => Exit::Done,
        };
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::complain("no command given: run `mpt --help` for a list");
    } else {
        output::complain(one_line(&text));
    }
    Exit::Failure
}

/// The first paragraph, which says what is wrong, and the tip if there is one; without the usage.
fn one_line(text: &str) -> String {
    let mut paragraphs = text.trim().split("\n\n");
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = words(paragraphs.next().unwrap_or_default());
    let mut line = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    if let Some(tip) = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: ")) {
        line.push_str("; ");
        line.push_str(&words(tip));
    }
    line + "; run `mpt --help`, or `--help` after a command, to see how it is used"
}
