//! `mpt-lab list`: the built-in experiments.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use mpt_lab::experiment::{Experiment, library};

use super::print;

/// Lists the built-in experiments: name, cells, time, and question.
///
/// Exit code 0. 2: the list could not be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mpt-lab list")]
pub(crate) struct Arguments {
    /// Print one JSON object per experiment instead.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// The standard output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    for experiment in library::find(library::EVERYTHING)? {
        if arguments.json {
            print(serde_json::to_string(&experiment.entry)?)?;
        } else {
            print(line(&experiment))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(experiment: &Experiment) -> String {
    let cells = |count: usize| if count == 1 { "1 cell".into() } else { format!("{count} cells") };
    let quick = experiment.clone().quick();
    format!(
        "{:<26} {:>10}, {:>7}; quick {:>8}, {:>5}   {}",
        experiment.entry.name,
        cells(experiment.cells.len()),
        minutes(experiment.length(false)),
        cells(quick.cells.len()),
        minutes(quick.length(true)),
        experiment.entry.question,
    )
}

fn minutes(time: Duration) -> String {
    format!("{:.0} min", (time.as_secs_f64() / 60.0).max(1.0))
}
