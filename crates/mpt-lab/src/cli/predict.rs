//! `mpt-lab predict`: the prediction for an experiment, without sending packets.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::cell::Cell;
use mpt_lab::experiment::library;
use mpt_lab::model;
use mpt_lab::system::System;
use serde::Serialize;

use super::print;

/// Predicts, without sending packets, the goodput of an experiment's cells, and the reorder window
/// and hold time that they need.
///
/// Exit code 0. 2: the file is not an experiment.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mpt-lab predict two-equal --quick")]
pub(crate) struct Arguments {
    /// Files, or names of built-in experiments (`mpt-lab list`), or `all`.
    #[arg(required = true)]
    experiments: Vec<String>,
    /// Only the cells of the short form, with its duration.
    #[arg(long)]
    quick: bool,
    /// The system: `classic`, with the experiment's settings, or `mpt`.
    #[arg(long, default_value = "classic")]
    system: String,
    /// Print one JSON object per cell.
    #[arg(long)]
    json: bool,
}

/// A cell and its prediction.
#[derive(Serialize)]
struct Expected<'a> {
    experiment: &'a str,
    cell: String,
    system: &'a str,
    prediction: &'a model::Prediction,
}

/// Runs the command.
///
/// # Errors
///
/// A file is no experiment, or the system is no tunnel.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let system = System::by_name(&arguments.system).filter(System::has_daemons);
    let system = system
        .with_context(|| format!("`{}` is not a tunnel: give classic or mpt", arguments.system))?;
    for word in &arguments.experiments {
        for experiment in library::find(word)? {
            let experiment = if arguments.quick { experiment.quick() } else { experiment };
            for cell in &experiment.cells {
                match cell.predict(&system, None) {
                    Some(prediction) => {
                        print(text(arguments, &experiment.entry.name, cell, &prediction)?)?;
                    }
                    None => super::tell(&format!(
                        "{}: no prediction: the model knows neither events nor tunnels that measure their links",
                        cell.name_in(&experiment.entry.name)
                    )),
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(
    arguments: &Arguments,
    experiment: &str,
    cell: &Cell,
    prediction: &model::Prediction,
) -> Result<String> {
    if arguments.json {
        let system = arguments.system.as_str();
        let expected = Expected { experiment, cell: cell.place(), system, prediction };
        return serde_json::to_string(&expected).context("cannot write JSON");
    }
    let place = cell.place();
    let place = if place.is_empty() { place } else { format!(", {place}") };
    Ok(format!("{experiment}{place}\n{}", model::report(prediction)))
}
