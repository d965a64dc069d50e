//! `mpt-lab bench`: how fast the daemon is, beside what the kernel itself does.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use mpt_lab::bench::{self, Options, Subject, Wire, report};
use mpt_lab::stop::Stop;
use mpt_lab::{daemon, privilege};

use super::print;

/// Compares the daemon with plain TCP, the kernel's MPTCP, VXLAN and WireGuard, and wireguard-go, over veth pairs
/// without emulation.
///
/// All subjects stand at once and are measured in turn, several times; compare ratios, not figures of different
/// runs. It takes about twenty minutes, and the machine should be idle otherwise.
///
/// Ratios are medians over the repetitions. Those between framings and schedulers of MPT are means of the middle half of
/// many short rounds, in each of which each host has its own processors.
///
/// Exit code 0: it ran, with any result. 2: it could not run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mpt-lab bench --quick --only raw,mpt-1            two of the subjects"
)]
pub(crate) struct Arguments {
    /// Print one JSON object with all measurements instead of tables.
    #[arg(long)]
    json: bool,
    /// Print the tables as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Measure for about seven minutes only: shorter rounds, and fewer.
    #[arg(long)]
    quick: bool,
    /// Measure only these subjects, by their names in --json, separated by commas: `raw,mpt-1`.
    #[arg(long, value_name = "SUBJECTS", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only over these kinds of wire, separated by commas: `pass`, `wire`, `shaped`.
    #[arg(long, value_name = "WIRES", value_delimiter = ',')]
    over: Vec<String>,
    /// Number of repetitions; default 5, or 3 with --quick.
    #[arg(long, value_name = "N")]
    repetitions: Option<usize>,
    /// Measure a server with many clients instead: memory per client, clients that join per second, and a bulk flow beside
    /// handshakes.
    #[arg(long, conflicts_with_all = ["markdown", "only", "over"])]
    peers: bool,
    /// With --peers, how many clients the server knows, and how many of them are in sessions: `10000,1000`.
    #[arg(
        long,
        value_name = "KNOWN,ACTIVE",
        value_delimiter = ',',
        num_args = 1,
        requires = "peers"
    )]
    clients: Vec<usize>,
    /// The daemon to run; default MPT_BIN, or the one in this program's folder.
    #[arg(long, value_name = "PATH")]
    mpt: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// The machine lacks something, a daemon does not start or stay, or nothing arrives.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.peers {
        return peers(arguments);
    }
    let mut options = if arguments.quick { Options::quick() } else { Options::thorough() };
    if let Some(repetitions) = arguments.repetitions {
        ensure!(repetitions > 0, "--repetitions must be at least 1");
        options.repetitions = repetitions;
    }
    if !arguments.only.is_empty() {
        options.subjects = select("--only", &arguments.only, Subject::by_name, &subjects())?;
    }
    if !arguments.over.is_empty() {
        let by_id = |name: &str| Wire::ALL.into_iter().find(|wire| wire.id() == name);
        options.wires = select("--over", &arguments.over, by_id, &wires())?;
    }
    ensure!(options.measures_anything(), "--only and --over select nothing to measure");
    let binary = daemon::find(arguments.mpt.as_deref())?;
    privilege::enter()?;
    let stop = Stop::on_signals().context("cannot wait for signals")?;

    let record = bench::run(&options, &binary, &stop, &mut say)?;
    if arguments.json {
        print(serde_json::to_string(&record).context("cannot write JSON")?)?;
    } else if arguments.markdown {
        print(report::markdown(&record))?;
    } else {
        print(report::text(&record))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures a server with many clients.
fn peers(arguments: &Arguments) -> Result<ExitCode> {
    let (configured, active) = match arguments.clients[..] {
        [] => (10_000, 1_000),
        [configured, active] => (configured, active),
        _ => anyhow::bail!("--clients: write two numbers, such as 10000,1000"),
    };
    let repetitions = arguments.repetitions.unwrap_or(if arguments.quick { 3 } else { 7 });
    ensure!(repetitions > 0, "--repetitions must be at least 1");
    let seconds = if arguments.quick { 1.0 } else { 3.0 };
    let options =
        bench::peers::Options { configured, active, handshakes: 500, seconds, repetitions };
    let binary = daemon::find(arguments.mpt.as_deref())?;
    privilege::enter()?;
    let stop = Stop::on_signals().context("cannot wait for signals")?;
    let figures = bench::peers::run(&options, &binary, &stop, &mut say)?;
    if arguments.json {
        print(serde_json::to_string(&figures).context("cannot write JSON")?)?;
    } else {
        print(bench::peers::text(&figures))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the names after `flag` stand for, in their order.
fn select<T: PartialEq>(
    flag: &str,
    names: &[String],
    find: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<Vec<T>> {
    let mut selected = Vec::new();
    for name in names {
        let found =
            find(name).with_context(|| format!("{flag}: no `{name}`; there are {known}"))?;
        ensure!(!selected.contains(&found), "{flag}: `{name}` is there twice; name it once");
        selected.push(found);
    }
    Ok(selected)
}

fn subjects() -> String {
    Subject::ALL.map(Subject::id).join(", ")
}

fn wires() -> String {
    Wire::ALL.map(Wire::id).join(", ")
}

#[expect(clippy::print_stderr, reason = "progress is not part of the result")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(names: &[&str]) -> Result<Vec<Subject>> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        select("--only", &names, Subject::by_name, &subjects())
    }

    #[test]
    fn subjects_are_measured_in_the_order_in_which_they_are_named() {
        assert_eq!(only(&["sealed-1", "raw"]).unwrap(), [Subject::MPT1_SEALED, Subject::Raw]);
    }

    #[test]
    fn a_name_that_is_unknown_or_there_twice_is_refused() {
        let error = only(&["raw", "mpt-3"]).unwrap_err().to_string();
        assert!(error.contains("no `mpt-3`") && error.contains("mpt-1-sealed"), "{error}");
        let error = only(&["sealed-1", "raw", "mpt-1-sealed"]).unwrap_err().to_string();
        assert!(error.contains("`mpt-1-sealed` is there twice"), "{error}");
    }
}
