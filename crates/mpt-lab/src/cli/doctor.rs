//! `mpt-lab doctor`: what this machine lacks for a lab.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use mpt_lab::doctor;
use mpt_lab::guard;

use super::print;

/// Checks the requirements of a lab on this machine and prints the command that fixes what is
/// missing.
///
/// Exit code 0: nothing is missing. 1: something is missing. 2: the check failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mpt-lab doctor --json")]
pub(crate) struct Arguments {
    /// Print an array of JSON objects instead of lines.
    #[arg(long)]
    json: bool,
    /// Create the first parts of a lab, and report an error if that fails.
    #[arg(long, hide = true)]
    probe: bool,
}

/// Runs the command.
///
/// # Errors
/// The machine could not be checked.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.probe {
        doctor::probe()?;
        return Ok(ExitCode::SUCCESS);
    }
    let own = std::env::current_exe().context("cannot tell where this program lies")?;
    let mut probe: Command = guard::command(own);
    let findings = doctor::check(probe.args(["doctor", "--probe"]))?;
    if arguments.json {
        print(serde_json::to_string_pretty(&findings).context("cannot write JSON")?)?;
    } else {
        for finding in &findings {
            print(finding)?;
        }
    }
    let healthy = findings.iter().all(|finding| finding.ok);
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
