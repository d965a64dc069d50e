//! `mpt-lab up FILE`: an experiment's hosts, links and tunnel, to play with by hand.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mpt_lab::cell::configuration::{configuration, inner_address};
use mpt_lab::cell::keys::KeyFiles;
use mpt_lab::cell::{Framing, Scheduler, Tunnel};
use mpt_lab::daemon::{self, Daemon};
use mpt_lab::experiment::library;
use mpt_lab::lab::Lab;
use mpt_lab::privilege;
use mpt_lab::running::Folder;
use mpt_lab::system::System;
use mpt_lab::topology::{LinkSpec, Side, Topology};
use mpt_sim::profile::Profile;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::print;

/// Interval at which the daemons are checked while the lab runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Creates the hosts, the links and the tunnel of an experiment for interactive use, until
/// interrupted.
///
/// Exit code 0: ended by INT, TERM or HUP. 2: failed, or a daemon ended by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mpt-lab up two-equal                              then `mpt-lab shell left` in another terminal
  mpt-lab up demo --system adaptive                 MPT as it ships, over the links of the demonstration")]
pub(crate) struct Arguments {
    /// A file, or the name of a built-in experiment. If it has several cells, the first is used.
    experiment: String,
    /// How the daemons are configured: as this system of MPT, such as `adaptive`; default: as `[tunnel]` says.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// The lab's name for `mpt-lab shell`; default: that of the file.
    #[arg(long)]
    name: Option<String>,
    /// The daemon to run; default MPT_BIN, or the one in this program's folder.
    #[arg(long, value_name = "PATH")]
    mpt: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// The file is no experiment, the machine lacks something, or a daemon does not start or stay.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let experiments = library::find(&arguments.experiment)?;
    let cell = experiments.iter().flat_map(|experiment| &experiment.cells).next();
    let cell = cell.context("an experiment has at least one cell")?;
    let system = arguments.system.as_deref().map(system).transpose()?;
    let tunnel = system.as_ref().and_then(|system| system.tunnel(cell));
    let tunnel = tunnel.as_ref().unwrap_or(&cell.tunnel);
    let name = name(arguments)?;
    let binary = daemon::find(arguments.mpt.as_deref())?;
    // Before namespaces are entered, because then the user is called root; after what can go wrong
    // with the file, because that needs no namespace.
    let folder = Folder::open()?;
    privilege::enter()?;
    let end = await_end()?;

    let lab = Lab::start(&cell.topology)?;
    let keys = KeyFiles::write()?;
    let start = |side: Side| {
        let text = configuration(&cell.topology, tunnel, side, &keys);
        Daemon::start(lab.host(side), side.name(), &text, &binary)
    };
    let daemons = [start(Side::Left)?, start(Side::Right)?];
    let entry = folder.announce(&name, &lab)?;
    let source = arguments.system.as_ref().map_or_else(
        || "as `[tunnel]` of the experiment says".to_owned(),
        |name| format!("as of the system {name}"),
    );
    let how = format!("{}, {source}", settings(&cell.topology, tunnel));
    print(guide(&name, &lab, &how, &daemons, &binary))?;
    let outcome = wait(end, daemons);
    drop(keys);
    drop(entry);
    outcome
}

/// The system of that name, if it consists of daemons.
fn system(name: &str) -> Result<System> {
    let system = System::by_name(name).filter(System::has_daemons);
    system.with_context(|| {
        let all = System::NAMES.into_iter().filter_map(System::by_name);
        let daemons: Vec<_> = all.filter(System::has_daemons).collect();
        let names: Vec<_> = daemons.iter().map(System::name).collect();
        format!("no system of MPT is called `{name}`: there are {}", names.join(", "))
    })
}

/// The name in `mpt-lab shell --lab NAME`; it also names a file.
fn name(arguments: &Arguments) -> Result<String> {
    let stem = || {
        Path::new(&arguments.experiment).file_stem().map(|stem| stem.to_string_lossy().into_owned())
    };
    let name = arguments.name.clone().or_else(stem).unwrap_or_default();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || name.len() > 64 || !name.chars().all(plain) {
        bail!("`{name}` cannot name a lab: give it a --name of letters, digits, `-`, `_` and `.`");
    }
    Ok(name)
}

/// A stream that becomes readable when a signal asks to end.
fn await_end() -> Result<UnixStream> {
    let (end, begin) = UnixStream::pair().context("cannot make a pair of sockets")?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let begin = begin.try_clone().context("cannot share a socket")?;
        pipe::register(signal, begin).context("cannot wait for signals")?;
    }
    end.set_read_timeout(Some(LOOK_EVERY)).context("cannot bound a wait")?;
    Ok(end)
}

/// Waits for a signal, or for a daemon that ends by itself.
fn wait(mut end: UnixStream, mut daemons: [Daemon; 2]) -> Result<ExitCode> {
    loop {
        match end.read(&mut [0]) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("cannot wait for signals"),
        }
        for daemon in &mut daemons {
            if let Some(status) = daemon.try_wait()? {
                bail!("daemon `{}` ended, {status}; it printed:\n{}", daemon.name(), daemon.log());
            }
        }
    }
    for daemon in daemons {
        let name = daemon.name().to_owned();
        let status = daemon.terminate()?;
        if !status.success() {
            bail!("daemon `{name}` ended with an error: {status}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn guide(name: &str, lab: &Lab, how: &str, daemons: &[Daemon; 2], binary: &Path) -> String {
    let topology = lab.topology();
    let version = mpt_lab::topology::IpVersion::V4;
    let [left, right] = [Side::Left, Side::Right].map(|side| inner_address(side, version));
    let mut lines = vec![format!("lab `{name}` is running"), String::new()];
    for (index, link) in topology.links.iter().enumerate() {
        let [near, far] = [Side::Left, Side::Right].map(|side| topology.address(side, index));
        lines.push(format!("  {:<15} left {near} - right {far}, {}", link.name, character(link)));
    }
    lines.push(format!("  {:<15} left {left} - right {right}", "tunnel"));
    lines.push(format!("  {:<15} {how}", ""));
    lines.extend([String::new(), "in another terminal:".to_owned()]);
    // In full, as it need not be in PATH.
    let program = std::env::current_exe().unwrap_or_else(|_| "mpt-lab".into());
    let shell = format!("{} shell left --lab {name}", program.display());
    lines.push(format!("  {shell}"));
    lines.push(format!("  {shell} -- ping {right}"));
    for daemon in daemons {
        let (mpt, socket) = (binary.display(), daemon.socket());
        lines.push(format!("  {mpt} status --socket {}  # of {}", socket.display(), daemon.name()));
    }
    lines.extend([String::new(), "Ctrl-C ends it".to_owned()]);
    lines.join("\n")
}

/// How the daemons choose paths, which an experiment says and not they: what is seen by hand depends on it.
fn settings(topology: &Topology, tunnel: &Tunnel) -> String {
    let framing = match tunnel.framing {
        Framing::Plain => "plain",
        Framing::Extended => "extended",
        Framing::Sealed => "sealed",
    };
    let paths = match tunnel.scheduler {
        Scheduler::Earliest => "paths by measured rates and delays".to_owned(),
        Scheduler::Weighted => {
            let links = topology.links.iter().zip(&tunnel.weights);
            let weights: Vec<_> =
                links.map(|(link, weight)| format!("{} {weight}", link.name)).collect();
            format!("paths by weights ({})", weights.join(", "))
        }
    };
    format!("{framing} framing, {paths}")
}

/// A link in a few words.
fn character(link: &LinkSpec) -> String {
    if link.forward == link.backward {
        return direction(&link.forward);
    }
    format!("{}; back {}", direction(&link.forward), direction(&link.backward))
}

fn direction(profile: &Profile) -> String {
    let rate = profile
        .rate
        .map_or("no rate limit".to_owned(), |rate| format!("{} Mbit/s", rate as f64 / 1e6));
    let mut words = vec![rate, format!("{} ms", profile.delay.as_secs_f64() * 1e3)];
    if profile.loss.long_run() > 0.0 {
        words.push(format!("{} % loss", profile.loss.long_run() * 1e2));
    }
    words.join(", ")
}
