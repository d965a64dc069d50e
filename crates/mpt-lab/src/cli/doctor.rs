//! `mpt-lab doctor`: what this machine lacks for a lab.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use mpt_lab::doctor;
use mpt_lab::guard;

use super::print;

/// Looks at what a lab needs of this machine and names the command that mends what is lacking.
///
/// Exit code 0: nothing is lacking. 1: something is. 2: it could not be found out.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print an array of JSON objects instead of lines.
    #[arg(long)]
    json: bool,
    /// Do what a lab does first, and complain if that fails.
    #[arg(long, hide = true)]
    probe: bool,
}

/// Runs the command.
///
/// # Errors
///
/// The machine could not be looked at.
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
