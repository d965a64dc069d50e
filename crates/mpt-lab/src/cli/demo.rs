//! `mpt-lab demo`: MPT's main job in a minute and a half, on this machine.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::experiment::Experiment;
use mpt_lab::experiment::runner::{Bench, is_interruption};
use mpt_lab::output::Terminal;
use mpt_lab::output::live::{Detail, Live};
use mpt_lab::output::report;
use mpt_lab::record::Line;
use mpt_lab::stop::Stop;
use mpt_lab::{daemon, privilege};

use super::print;

/// The experiment that the demo is.
const EXPERIMENT: &str = include_str!("../../experiments/demo.toml");

/// The introduction above the live view.
const GREETING: &str = "\
MPT carries IP packets over several links at once, so that one TCP flow gets the sum of them.
This demonstration creates two hosts as network namespaces, connected by emulated links of 40 and
20 Mbit/s. In 80 seconds it shows each link alone, a tunnel over both with weights that somebody
typed in wrongly, one with nothing typed in but addresses, and there the silent failure of a link
during a running flow. It does not touch the machine's own network; Ctrl-C ends it at any time.
";

/// What to do when the demo cannot run.
const REMEDY: &str = "the demo cannot run here; `mpt-lab doctor` lists everything that is missing";

/// Demonstrates MPT in a minute and a half: one TCP flow over each of two links, over both with wrong
/// weights, over both with nothing configured, and while one of them fails.
///
/// Needs no configuration and does not touch the machine's own network. Exit code 0: it ran. 2: it
/// could not run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mpt-lab demo")]
pub(crate) struct Arguments {
    /// The daemon to run; default MPT_BIN, or the one in this program's folder.
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
    let record = match bench.measure(&experiment, cell, 1) {
        Err(error) if is_interruption(&error) => return Err(error),
        other => other.context(REMEDY)?,
    };
    print(report::text(&record, &Line::new(&record, ""), terminal))?;
    print(report::closing(&record))?;
    Ok(ExitCode::SUCCESS)
}
