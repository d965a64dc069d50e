//! `mpt-lab selftest`: what the emulator is worth on this machine.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::privilege;
use mpt_lab::selftest::{self, Form};
use mpt_lab::stop::Stop;

use super::print;

/// Measures the emulator itself, without a tunnel: delay, jitter, loss and rate against the
/// configured values, and its capacity.
///
/// It takes about ten seconds, and the machine should be idle otherwise. Exit code 0: all checks
/// passed. 1: a check failed. 2: it could not run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mpt-lab selftest --quick")]
pub(crate) struct Arguments {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure for about five seconds only.
    #[arg(long)]
    quick: bool,
}

/// Runs the command.
///
/// # Errors
///
/// The machine lacks something.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    privilege::enter()?;
    let stop = Stop::on_signals().context("cannot wait for signals")?;
    let form = if arguments.quick { Form::Quick } else { Form::Full };
    let outcome = selftest::run(&stop, form, &mut say)?;
    if arguments.json {
        print(serde_json::to_string(&outcome).context("cannot write JSON")?)?;
    } else {
        print(selftest::text(&outcome))?;
    }
    let passed = selftest::passed(&outcome);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stderr, reason = "progress is not part of the result")]
fn say(line: &str) {
    eprintln!("{line}");
}
