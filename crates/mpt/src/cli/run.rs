//! `mpt run FILE`: the life of the daemon.
//!
//! Read the file, take the control socket, start a thread per tunnel, and then wait in this thread
//! for visitors, signals and failures. The socket comes first and goes last, so a daemon that finds
//! another in its place touches nothing; who visits before the tunnels run waits in the kernel's
//! queue until they do. Whatever ends it, the tunnels are stopped, and with them goes everything
//! they made; the socket goes with its listener.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use mpt_io::poll::{Events, Interest, Poll};
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use super::Exit;
use super::signals::Signals;
use crate::config::{self, LoadError, Offloads, Settings, Threads};
use crate::control::{Daemon, Listener, Server};
use crate::output;
use crate::tunnel::Handle;

/// How often the tunnels are asked whether they still run. One wake-up per second costs nothing
/// that could be measured.
const TICK: Duration = Duration::from_secs(1);

/// Events taken from one wait: all visitors, the listener and the signals.
const EVENTS: usize = 32;

const END: u64 = Server::FIRST_FREE_TOKEN;
const RELOAD: u64 = END + 1;

/// Runs the tunnels of `file` until a signal ends them.
pub(super) fn run(file: &Path) -> Result<Exit> {
    start_log()?;
    let mut settings = match config::load(file) {
        Ok(settings) => settings,
        Err(LoadError::Invalid(report)) => {
            output::report(&report);
            return Ok(Exit::Failure);
        }
        Err(error) => return Err(error.into()),
    };
    switch_off(&mut settings)?;
    set_threads(&mut settings)?;
    set_elided(&mut settings)?;
    // Before anything is made, so that a signal during the start removes it again.
    let signals = Signals::register().context("cannot wait for signals")?;
    let poll = Poll::new().context("cannot wait for events")?;
    let listener = Listener::bind(&settings.control.socket)?;
    let mut server = Server::new(listener, &poll).context("cannot listen")?;
    let daemon = Daemon::new(&settings, start(&settings)?);
    let result = serve(&settings, &signals, &poll, &mut server, &daemon);
    for tunnel in daemon.into_tunnels() {
        let name = tunnel.name.clone();
        tunnel.stop();
        info!(tunnel = name, "stopped");
    }
    result.map(|()| Exit::Done)
}

fn start_log() -> Result<()> {
    let filter = match std::env::var("MPT_LOG") {
        Ok(filter) => EnvFilter::try_new(&filter).with_context(|| {
            format!("MPT_LOG is `{filter}`, but should be error, warn, info, debug or trace")
        })?,
        Err(_) => EnvFilter::new("info"),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::colour_on(&std::io::stderr()))
        .with_target(false)
        .init();
    Ok(())
}

/// Switches off the offloads that the environment names, whatever the file says.
fn switch_off(settings: &mut Settings) -> Result<()> {
    let Ok(list) = std::env::var(Offloads::VARIABLE) else { return Ok(()) };
    for tunnel in &mut settings.tunnels {
        tunnel.offloads = tunnel.offloads.without(&list).map_err(|name| {
            anyhow!(
                "{} names `{name}`, but should be `off`, or some of vnet, tso, uso, gso and gro \
                 with commas between them",
                Offloads::VARIABLE
            )
        })?;
    }
    Ok(())
}

/// Gives every tunnel as many threads as the environment says, whatever the file says.
fn set_threads(settings: &mut Settings) -> Result<()> {
    let Some(text) = std::env::var_os(Threads::VARIABLE) else { return Ok(()) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    let threads = number.and_then(Threads::from_number).ok_or_else(|| {
        anyhow!("{} is `{}`, but should be 1 or 2", Threads::VARIABLE, text.display())
    })?;
    settings.tunnels.iter_mut().for_each(|tunnel| tunnel.threads = threads);
    Ok(())
}

/// Leaves out inner checksums if the environment says so: to measure what that would gain, between
/// two daemons that are both told.
fn set_elided(settings: &mut Settings) -> Result<()> {
    const VARIABLE: &str = "MPT_ELIDE_CHECKSUMS";
    let elided = match std::env::var_os(VARIABLE) {
        None => return Ok(()),
        Some(text) if text == "off" => false,
        Some(text) if text == "on" => true,
        Some(text) => bail!("{VARIABLE} is `{}`, but should be on or off", text.display()),
    };
    if elided {
        warn!("inner checksums are left out; a peer that is not told so gets broken packets");
    }
    settings.tunnels.iter_mut().for_each(|tunnel| tunnel.elided = elided);
    Ok(())
}

/// Starts all tunnels, or none.
fn start(settings: &Settings) -> Result<Vec<Handle>> {
    let epoch = Instant::now();
    let mut tunnels: Vec<Handle> = Vec::new();
    for tunnel in &settings.tunnels {
        match Handle::start(tunnel, epoch) {
            Ok(handle) => tunnels.push(handle),
            Err(error) => {
                tunnels.into_iter().for_each(Handle::stop);
                bail!("cannot start tunnel `{}`: {error:#}", tunnel.name);
            }
        }
    }
    Ok(tunnels)
}

/// Answers visitors until a signal comes or a tunnel fails.
fn serve(
    settings: &Settings,
    signals: &Signals,
    poll: &Poll,
    server: &mut Server,
    daemon: &Daemon<Handle>,
) -> Result<()> {
    for (signal, token) in [(&signals.end, END), (&signals.reload, RELOAD)] {
        poll.add(signal, token, Interest::READABLE).context("cannot wait for signals")?;
    }
    info!(
        version = env!("CARGO_PKG_VERSION"),
        tunnels = settings.tunnels.len(),
        socket = %settings.control.socket.display(),
        "ready"
    );

    let mut events = Events::with_capacity(EVENTS);
    loop {
        if signals.end.came() {
            info!("ending");
            return Ok(());
        }
        if signals.reload.came() {
            warn!("HUP is not supported: end and run again to read the configuration anew");
        }
        if let Some((tunnel, failure)) = daemon.failure() {
            bail!("tunnel `{tunnel}` failed: {failure}");
        }
        poll.wait(&mut events, Some(TICK)).context("cannot wait for events")?;
        let now = Instant::now();
        for event in events.iter() {
            server
                .handle(event, poll, now, &mut |request, control| daemon.answer(request, control));
        }
        server.handle_timeout(poll, now);
    }
}
