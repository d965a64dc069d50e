//! `mpt run FILE`: the life of the daemon.
//!
//! Read the file, take the control socket, give up the rights that the tunnels do not need, start
//! the tunnels, and then wait in this thread for clients, signals, failures, and changes of the
//! host. The socket comes first and goes last, so a daemon that finds another in its place touches
//! nothing; who visits before the tunnels run waits in the kernel's queue until they do. Whatever ends
//! it, the tunnels are stopped, and with them goes everything they made; the socket goes with its
//! listener.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use mpt_control::{ControlStatus, Reply, Request};
use mpt_io::poll::{Events, Interest, Poll, Waker};
use tracing::{info, warn};

use super::check;
use super::environment::Environment;
use super::signals::Signals;
use crate::config::{self, LoadError, Settings};
use crate::control::{Listener, Server};
use crate::daemon::{Behind, Daemon, Machine};
use crate::exit::Exit;
use crate::log::Log;
use crate::metrics::{self, Pages};
use crate::netmon::{Changed, NetMonitor};
use crate::privilege::Privileges;
use crate::quota;
use crate::service::Service;
use crate::tunnel::{NO_THREAD, Reconciler};
use crate::web::Web;

/// How often the tunnels are asked whether they still run. One wake-up per second costs nothing
/// that could be measured.
const TICK: Duration = Duration::from_secs(1);

/// Events taken from one wait: all clients, the listener and the signals.
const EVENTS: usize = 32;

const END: u64 = Server::FIRST_FREE_TOKEN;
const RELOAD: u64 = END + 1;
const NETMON: u64 = END + 2;
const WAKER: u64 = END + 3;
const TUNNELS: u64 = END + 4;

/// The tokens of the page of metrics, far above those of clients of the control socket.
const PAGES: u64 = 1 << 32;

/// The tokens of the web page, far above those of the page of metrics, which takes 2^32 whenever it moves.
const WEB: u64 = 1 << 56;

/// Runs the tunnels of `file` until a signal ends them.
pub(super) fn run(file: &Path) -> Result<Exit> {
    let mut log = Log::start()?;
    Ok(run_with(&mut log, file).unwrap_or_else(|error| {
        log.complain(format_args!("{error:#}"));
        Exit::Failure
    }))
}

fn run_with(log: &mut Log, file: &Path) -> Result<Exit> {
    let mut settings = match config::load(file) {
        Ok(settings) => settings,
        Err(LoadError::Invalid(report)) => {
            log.report(&report);
            return Ok(Exit::Failure);
        }
        Err(error) => return Err(check::unreadable(error, file)),
    };
    let environment = Environment::read()?;
    environment.apply(&mut settings);
    // Before anything is made, so that a signal during the start removes it again.
    let signals = Signals::register().context("cannot wait for signals")?;
    let poll = Poll::new().context("cannot wait for events")?;
    let waker = Waker::new(&poll, WAKER).context("cannot make a waker")?;
    let mut service = Service::from_env();
    let listener = listen(&settings, file)?;
    log.write().context(NO_THREAD)?;
    let mut server = Server::new(listener, &poll).context("cannot listen")?;
    let tunnels = Poll::new().context("cannot wait for events")?;
    let netmon = NetMonitor::open(waker.clone())?;
    let state_dir = settings.daemon.state_dir.clone();
    let machine = Machine::new(netmon, waker, tunnels, log.counters(), state_dir);
    let environment = Box::new(move |settings: &mut Settings| environment.apply(settings));
    let mut daemon = Daemon::start(machine, file.to_path_buf(), settings, environment)?;
    let mut pages = (Pages::new(PAGES), Web::new(WEB));
    let result = serve(&signals, &poll, &mut server, &mut daemon, &mut pages, &mut service);
    service.stopping();
    daemon.stop();
    result.map(|()| Exit::Done)
}

/// Takes the control socket, and then gives up every right that is not needed any more.
fn listen(settings: &Settings, file: &Path) -> Result<Listener> {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let accepts = settings.tunnels.iter().flat_map(|tunnel| &tunnel.accepts);
    let commands = connections.clone().filter_map(|connection| connection.commands.as_ref());
    let ports = connections.map(|connection| connection.local_port);
    let ports = ports.chain(commands.map(|commands| commands.port));
    let ports = ports.chain(accepts.map(|accept| accept.local_port));
    let privileges = Privileges::needed(settings.daemon.user.as_deref(), ports)?;
    let mut listener = Listener::bind(&settings.control.socket)?;
    if let Some(user) = privileges.user() {
        listener.hand_over(user)?;
    }
    quota::prepare(settings, privileges.user());
    privileges.take()?;
    if let Err(error) = File::open(file) {
        let (file, user) = (file.display(), nix::unistd::Uid::effective());
        warn!("{file}: {error}; a reload will fail until user {user} may read it");
    }
    Ok(listener)
}

/// Answers clients and follows the host until a signal comes.
fn serve(
    signals: &Signals,
    poll: &Poll,
    server: &mut Server,
    daemon: &mut Daemon<Machine>,
    (pages, web): &mut (Pages, Web),
    service: &mut Service,
) -> Result<()> {
    pages.reconcile(daemon.settings(), poll)?;
    web.reconcile(daemon.settings(), poll)?;
    for (signal, token) in [(&signals.end, END), (&signals.reload, RELOAD)] {
        poll.add(signal, token, Interest::READABLE).context("cannot wait for signals")?;
    }
    let netmon = daemon.host().0.netmon.readable();
    poll.add(netmon, NETMON, Interest::READABLE)
        .context("cannot subscribe to kernel notifications")?;
    poll.add(&*daemon.host().0.poll, TUNNELS, Interest::READABLE)
        .context("cannot wait for events")?;
    let settings = daemon.settings();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        tunnels = settings.tunnels.len(),
        socket = %settings.control.socket.display(),
        "ready"
    );

    service.ready();
    let mut events = Events::with_capacity(EVENTS);
    loop {
        if signals.end.came() {
            info!("ending");
            return Ok(());
        }
        if signals.reload.came() {
            service.reloading();
            reload(daemon);
            service.ready();
        }
        let now = Instant::now();
        daemon.end_failed(now);
        if service.is_due(now) {
            service.report(now, &daemon.status(server.status()));
        }
        let wait = timeout(daemon, now).min(service.wait(now).unwrap_or(TICK));
        let wait = wait.min(web.wait(now).unwrap_or(TICK));
        poll.wait(&mut events, Some(wait)).context("cannot wait for events")?;
        let now = Instant::now();
        let mut changed = false;
        for event in events.iter() {
            changed |= event.token == NETMON;
            server
                .handle(event, poll, now, &mut |request, control| daemon.answer(request, control));
            let control = server.status();
            pages.handle(event, poll, now, &mut |format| {
                metrics::page(&daemon.status(control.clone()), format)
            });
            web.handle(event, poll, now, &mut Behind { daemon, control });
        }
        server.handle_timeout(poll, now);
        pages.handle_timeout(poll, now);
        web.handle_timeout(poll, now, &mut Behind { daemon, control: server.status() });
        daemon.retry(now);
        if let Err(error) = pages.reconcile(daemon.settings(), poll) {
            warn!("{error:#}");
        }
        if let Err(error) = web.reconcile(daemon.settings(), poll) {
            warn!("{error:#}");
        }
        follow(daemon, changed);
    }
}

/// A signal asks for a reload; its sender finds the outcome in the log.
fn reload(daemon: &mut Daemon<Machine>) {
    match daemon.answer(Request::Reload {}, ControlStatus::default()) {
        Reply::Error { message, report, .. } => {
            warn!("reload: {message}");
            for line in report.iter().flat_map(|report| report.lines()) {
                warn!("{line}");
            }
        }
        Reply::Changed { .. }
        | Reply::Config { .. }
        | Reply::Done
        | Reply::Explanation { .. }
        | Reply::Peers { .. }
        | Reply::Status { .. }
        | Reply::Trace { .. }
        | Reply::Version { .. }
        | Reply::WebToken { .. } => info!("reloaded"),
    }
}

/// How long nothing has to be done unless something happens.
fn timeout(daemon: &mut Daemon<Machine>, now: Instant) -> Duration {
    let (machine, tunnels) = daemon.host();
    let netmon = machine.netmon.deadline().into_iter();
    let deadlines = tunnels.iter().filter_map(Reconciler::deadline).chain(netmon);
    deadlines.map(|at| at.saturating_duration_since(now)).min().map_or(TICK, |soon| soon.min(TICK))
}

/// Has the tunnels follow what has changed on this host.
fn follow(daemon: &mut Daemon<Machine>, changed: bool) {
    let (machine, tunnels) = daemon.host();
    let mut change = if changed { machine.netmon.read() } else { Changed::default() };
    change.ways |= machine.netmon.on_timeout(Instant::now());
    change.names = machine.netmon.names.take_answers();
    for tunnel in tunnels {
        tunnel.on_wake_up(&mut machine.netmon, change);
    }
}
