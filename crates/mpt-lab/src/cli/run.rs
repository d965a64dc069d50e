//! `mpt-lab run FILE`: the answer to an experiment's question.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::experiment::Experiment;
use mpt_lab::experiment::runner;
use mpt_lab::experiment::stop::Stop;
use mpt_lab::output::Terminal;
use mpt_lab::output::live::{Detail, Live};
use mpt_lab::output::report;
use mpt_lab::{daemon, privilege};

use super::print;

/// Runs an experiment: every link alone, then the tunnel over all of them.
///
/// Exit code 0: it ran, however the figures are; if they are doubtful, the answer says so and why.
/// 2: it could not be run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The experiment.
    file: PathBuf,
    /// Print one JSON object with everything that was measured instead of a table.
    #[arg(long)]
    json: bool,
    /// The seed of all chance, instead of the file's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The daemon to run, if not MPT_BIN or the one beside this program.
    #[arg(long, value_name = "PATH")]
    mpt: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// The file is no experiment, the machine lacks something, or a daemon does not start or stay.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut experiment = Experiment::read(&arguments.file)?;
    if let Some(seed) = arguments.seed {
        experiment.topology.seed = seed;
    }
    let binary = daemon::find(arguments.mpt.as_deref())?;
    privilege::enter()?;
    let stop = Stop::on_signals().context("cannot wait for signals")?;

    let progress = io::stderr();
    let mut live = Live::new(&progress, Terminal::of(&progress), Detail::Steps);
    let record = runner::run(&experiment, &binary, &stop, &mut live)?;
    if arguments.json {
        print(serde_json::to_string(&record).context("cannot write JSON")?)?;
    } else {
        print(report::text(&record, Terminal::of(&io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
