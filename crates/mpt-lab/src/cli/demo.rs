//! `mpt-lab demo`: MPT's main job in a minute, on this machine.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::experiment::Experiment;
use mpt_lab::experiment::runner::{Bench, is_interruption};
use mpt_lab::output::Terminal;
use mpt_lab::output::live::{Detail, Live};
use mpt_lab::output::report;
use mpt_lab::stop::Stop;
use mpt_lab::{daemon, privilege};

use super::print;

/// The experiment that the demo is.
const EXPERIMENT: &str = include_str!("../../experiments/demo.toml");

/// What stands above the live view.
const GREETING: &str = "\
MPT carries IP packets over several links at once, so that one TCP flow gets the sum of them.
Here are two hosts made of network namespaces, joined by an emulated link of 40 and one of 20
Mbit/s. In a minute you will have seen each link alone, a tunnel over both, and a link dying
under a running flow. Nothing touches the network of this machine; Ctrl-C ends it at any time.
";

/// What to do when the demo cannot run.
const REMEDY: &str = "the demo cannot run here; `mpt-lab doctor` names everything that is missing";

/// Shows in a minute what MPT is for: one TCP flow over two links, one of which then dies.
///
/// Needs no configuration and touches nothing of the machine's own network. Exit code 0: it ran. 2:
/// it could not.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The daemon to run, if not MPT_BIN or the one beside this program.
    #[arg(long, value_name = "PATH")]
    mpt: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// The machine lacks something, or a daemon does not start or stay.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let experiment = Experiment::parse("demo.toml", EXPERIMENT)?;
    let binary = daemon::find(arguments.mpt.as_deref())?;
    privilege::enter().context(REMEDY)?;
    let stop = Stop::on_signals().context("cannot wait for signals")?;

    let out = io::stdout();
    let terminal = Terminal::of(&out);
    print(GREETING)?;
    let mut live = Live::new(&out, terminal, Detail::Seconds);
    let cell = &experiment.cells[0];
    let mut bench = Bench::new(&binary, &stop, &mut live, false, std::slice::from_ref(&experiment));
    let record = match bench.measure(&experiment, cell) {
        Err(error) if is_interruption(&error) => return Err(error),
        other => other.context(REMEDY)?,
    };
    print(report::text(&record, terminal))?;
    print(report::closing(&record))?;
    Ok(ExitCode::SUCCESS)
}
