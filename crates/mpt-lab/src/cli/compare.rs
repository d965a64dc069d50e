//! `mpt-lab compare A B`: two folders of results beside each other.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use mpt_lab::report::compare;
use mpt_lab::results::Results;

use super::print;

/// Compares two folders of results cell by cell, regressions first.
///
/// A change is significant if the ranges of the repetitions do not overlap and the medians differ
/// by more than 5 %. Quick and full runs are not compared with each other.
///
/// Exit code 0: they were compared. 1: a figure became worse by more than --worse. 2: they could
/// not be compared.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mpt-lab compare before after --worse 10")]
pub(crate) struct Arguments {
    /// The first folder, the baseline.
    a: PathBuf,
    /// The second folder.
    b: PathBuf,
    /// Compare every figure, not only those of the tables.
    #[arg(long)]
    all: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Exit with code 1 if a figure became significantly worse by more than this many percent.
    #[arg(long, value_name = "PERCENT")]
    worse: Option<f64>,
}

/// Runs the command.
///
/// # Errors
///
/// A folder holds no results, or `--worse` is no percentage.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(percent) = arguments.worse {
        ensure!(percent >= 0.0 && percent.is_finite(), "--worse must be at least 0");
    }
    let [a, b] = [&arguments.a, &arguments.b].map(|folder| Results::read(folder));
    let comparison = compare::compare(&a?, &b?, arguments.all);
    if arguments.json {
        print(serde_json::to_string(&comparison).context("cannot write JSON")?)?;
    } else {
        print(comparison.text())?;
    }
    let worse = arguments.worse.is_some_and(|percent| comparison.is_worse_by(percent / 100.0));
    Ok(if worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
