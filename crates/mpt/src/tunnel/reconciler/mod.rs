//! The reconciler of a tunnel: brings it into the wanted state, and keeps it there while the host
//! changes.
//!
//! It lives in the main thread and owns what is decided there: which connections and paths there are
//! and what numbers they have, which [`socket`] each path uses, whether this host has what it needs,
//! and what stands in the host's routing tables. [`Reconciler::change_to`] compares all that with other
//! settings, [`Reconciler::on_wake_up`] with the [`NetMonitor`] when that has changed. They do whatever is
//! missing, and what has not changed is not touched.

mod accept;
mod accepting;
mod arrived;
mod clients;
mod commands;
mod connection;
mod connections;
mod events;
mod found;
mod learned;
mod listening;
mod numbers;
mod path;
mod quotas;
mod recreate;
mod remotes;
mod socket;
mod uplinks;

use std::collections::{BTreeMap, HashMap};
use std::iter;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::rc::Rc;
use std::time::Instant;

use mpt_control::{Explanation, TraceMark, TunnelStatus};
use mpt_io::poll::{Poll, Waker};
use mpt_proto::PublicKey;

use self::accepting::Accepting;
use self::arrived::Learned;
use self::commands::CommandPorts;
use self::connection::{Connection, Path};
use self::connections::Claims;
use self::found::found;
use self::numbers::Numbers;
use self::path::AGAIN;
use self::quotas::Quotas;
use self::recreate::Recreate;
use self::remotes::remotes;
use self::socket::Opened;
use self::uplinks::Uplinks;
use super::interface::{Interface, routes};
use super::mtu::Kernel;
use super::op::{TraceAnswer, TunnelOp};
use super::open::largest_mtu;
use super::{Handle, advice};
use crate::netmon::{Changed, NetMonitor};
use crate::quota::Meters;
use crate::{config, keys};

/// The most connections of a tunnel at a time.
const MAX_CONNECTIONS: u16 = 32_768;

/// A tunnel and all that is decided about it.
pub(crate) struct Reconciler {
    settings: config::Tunnel,
    handle: Handle,
    /// When times begin.
    epoch: Instant,
    /// This host's public key, if it has one.
    public_key: Option<PublicKey>,
    /// The largest MTU that its buffers allow, in bytes.
    largest: u32,
    interface: Interface,
    numbers: Numbers,
    connections: BTreeMap<String, Connection>,
    /// The connections as last sent to the core, in the order of the file.
    claims: Claims,
    sockets: Opened,
    accepting: Accepting,
    /// The connections that learn their paths, by name.
    learned: BTreeMap<String, Learned>,
    /// When to look for learned and accepted paths that are silent.
    look: Option<Instant>,
    /// The paths that are found by themselves.
    uplinks: Uplinks,
    commands: CommandPorts,
    quotas: Quotas,
    /// When to try again what could not be had.
    again: Option<Instant>,
    /// Whether not all routes could be had.
    unrouted: bool,
    recreate: Recreate,
    /// The last warnings about the host.
    advice: Vec<String>,
}

impl Reconciler {
    /// Starts a tunnel; it is ready when this returns. Times count from `epoch`, `main` is woken when
    /// it wants attention, also by whatever comes to a descriptor in `poll`. What is used of quotas is kept in `state_dir`.
    ///
    /// # Errors
    ///
    /// If the interface, a socket, an address or a route cannot be had. What had been made by then
    /// is gone again. What this host only lacks at the moment, such as an interface, is no error.
    pub(crate) fn start(
        settings: &config::Tunnel,
        epoch: Instant,
        netmon: &mut NetMonitor,
        main: Waker,
        poll: Rc<Poll>,
        state_dir: &FilePath,
    ) -> anyhow::Result<Self> {
        let now = Instant::now();
        let mut uplinks = Uplinks::default();
        let found = found(settings, &mut uplinks, |_| iter::empty::<&Path>(), netmon, now);
        let largest = largest(&found, netmon, now);
        let handle = Handle::start(settings, largest, epoch, main)?;
        let interface = Interface::new(handle.index);
        let mut reconciler = Self {
            settings: config::Tunnel { connections: Vec::new(), ..settings.clone() },
            handle,
            epoch,
            public_key: keys::public_key(settings)?,
            largest: largest_mtu(largest),
            interface,
            numbers: Numbers::below(MAX_CONNECTIONS),
            connections: BTreeMap::new(),
            claims: HashMap::new(),
            sockets: Opened::new(),
            accepting: Accepting::new(),
            learned: BTreeMap::new(),
            look: None,
            uplinks,
            commands: CommandPorts::new(epoch, poll),
            quotas: Quotas::new(Meters::file(state_dir, &settings.name)),
            again: None,
            unrouted: false,
            recreate: Recreate::default(),
            advice: Vec::new(),
        };
        match reconciler.bring_up(settings, netmon, now) {
            Ok(()) => Ok(reconciler),
            Err(error) => {
                reconciler.stop();
                Err(error)
            }
        }
    }

    fn bring_up(
        &mut self,
        settings: &config::Tunnel,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        self.reconcile_connections(settings, netmon, now)?;
        self.charge_for_quotas(now);
        // The interface has its MTU, and the way out is ready, when the threads have answered.
        self.status();
        // Keepalives take paths down and up too. A failure has been reported, and is retried.
        if let Err(error) = self.reconcile_commands(&settings.addresses, now) {
            tracing::debug!(tunnel = settings.name, "{error:#}");
        }
        self.interface.bring_up(&settings.addresses)?;
        self.reconcile_routes()?;
        self.settings.clone_from(settings);
        self.advise(netmon, now);
        Ok(())
    }

    /// Whether the tunnel can change to this while it runs; if not, why.
    pub(crate) fn can_become(&self, settings: &config::Tunnel) -> Result<(), &'static str> {
        let running = &self.settings;
        if running.addresses != settings.addresses {
            Err("its addresses changed")
        } else if running.offloads != settings.offloads {
            Err("its offloads changed")
        } else if running.threads != settings.threads {
            Err("its threads changed")
        } else if matches!(settings.mtu, config::Mtu::Fixed(mtu) if u32::from(mtu) > self.largest) {
            Err("its mtu is larger than its buffers")
        } else {
            Ok(())
        }
    }

    /// Makes it so; what is so already is not touched.
    ///
    /// # Errors
    ///
    /// If a socket or a route cannot be had. Everything else has been done all the same.
    pub(crate) fn change_to(
        &mut self,
        settings: &config::Tunnel,
        netmon: &mut NetMonitor,
    ) -> anyhow::Result<()> {
        let now = Instant::now();
        // What another file of the same name says is read when somebody asks for it.
        let is_same = settings.private_key_file == self.settings.private_key_file;
        let outcome = if is_same { Ok(()) } else { self.reconcile_keys(settings).map(drop) };
        let outcome = outcome.and(self.reconcile_connections(settings, netmon, now));
        self.charge_for_quotas(now);
        let outcome = outcome.and(self.reconcile_commands(&settings.addresses, now));
        let routes = self.reconcile_routes();
        self.interface.upkeep.reset(now);
        self.settings.clone_from(settings);
        self.advise(netmon, now);
        // The caller may rely on it from now on.
        self.handle.await_steps();
        outcome.and(routes)
    }

    /// Reads the files of keys again. Returns what has changed, and what is wrong with them.
    pub(crate) fn reload_keys(&mut self) -> (Vec<String>, Vec<String>) {
        let settings = self.settings.clone();
        let (mut lines, mut faults) = (Vec::new(), Vec::new());
        match self.reconcile_keys(&settings) {
            Ok(line) => lines.extend(line),
            Err(error) => faults.push(format!("tunnel {}: {error:#}", settings.name)),
        }
        // With other pre-shared keys the connections have other settings in the core's words.
        self.reconcile_claims(&settings);
        self.handle.await_steps();
        (lines, faults)
    }

    /// The main thread is awake, because the host has changed or for another reason.
    pub(crate) fn on_wake_up(&mut self, netmon: &mut NetMonitor, change: Changed) {
        let now = Instant::now();
        let noticed = self.take_main_events(netmon, now);
        self.recreate_if_due(now);
        self.forget_silent(now);
        let due = self.again.is_some_and(|at| at <= now);
        if due {
            // Nothing was heard since the last try, so the next address of a name may be the right one.
            let paths =
                self.connections.values_mut().flat_map(|connection| connection.paths.values_mut());
            paths.for_each(|path| path.doubted |= path.silent);
        }
        let found = self.uplinks.deadline().is_some_and(|at| at <= now);
        if change.ways || change.names || noticed || due || found {
            self.reconcile_paths(netmon, now);
            self.charge_for_quotas(now);
            // The obstacle may be gone. The failure was reported at the first attempt.
            if let Err(error) = self.reconcile_routes() {
                tracing::debug!(tunnel = self.settings.name, "{error:#}");
            }
        }
        if change.ways {
            self.handle.step(TunnelOp::CheckMtu);
            self.interface.upkeep.on_change(now);
        }
        let is_up = netmon.is_up(self.interface.index());
        self.interface.maintain(&self.settings.name, is_up, now);
        self.look_at_quotas(now);
        let handle = &self.handle;
        self.sockets.on_timeout(now, &mut |step| handle.step(step));
        self.commands.serve(now, &mut |step| handle.step(step));
        self.handle.wake_if_stepped();
    }

    /// What the tunnel is and has done; `None` if its threads do not answer.
    pub(crate) fn status(&self) -> Option<TunnelStatus> {
        let mut status = self.handle.status()?;
        status.problems.extend(self.commands.problems());
        self.put_quotas(&mut status);
        Some(TunnelStatus { commands: self.commands.status(), ..status })
    }

    /// Why packets went where they went: of the connection of this name, or of all, but of no more than one beyond
    /// [`MOST`](super::explain::MOST). `None` if its threads do not answer.
    pub(crate) fn explain(&self, connection: Option<&str>) -> Option<Vec<Explanation>> {
        let mut explanations = self.handle.explain(connection)?;
        self.explain_quotas(&mut explanations);
        Some(explanations)
    }

    /// What was traced since a mark; `None` if its threads do not answer.
    pub(crate) fn trace(
        &self,
        connection: Option<&str>,
        after: Option<TraceMark>,
    ) -> Option<TraceAnswer> {
        self.handle.trace(connection, after)
    }

    /// Why the tunnel failed: why a thread ended by itself, which ends the other too; or why its
    /// interface could not be created again.
    pub(crate) fn failure(&self) -> Option<String> {
        self.recreate.failure.clone().or_else(|| self.handle.failure())
    }

    /// The tunnel's name.
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Notifies the peers, ends the threads, and removes what the tunnel created.
    pub(crate) fn stop(mut self) {
        self.end_quotas(Instant::now());
        let Self { handle, interface, .. } = self;
        // First, so that no packets are routed into a tunnel that ends.
        drop(interface);
        handle.stop();
    }

    /// Has the commands of originals follow the connections, when these have what they need.
    fn reconcile_commands(&mut self, own: &[config::Prefix], now: Instant) -> anyhow::Result<()> {
        self.commands.reconcile(self.connections.values(), own, now);
        let handle = &self.handle;
        if self.commands.lack_sockets() {
            // A port may be one that data came to until a moment ago.
            self.sockets.close_idle(now, &mut |step| handle.step(step));
            handle.await_steps();
        }
        let outcome = self.commands.open();
        if outcome.is_err() {
            let soon = now + AGAIN;
            self.again = Some(self.again.map_or(soon, |at| at.min(soon)));
        }
        self.commands.serve(now, &mut |step| handle.step(step));
        outcome
    }

    /// Has the keys of this host be those in the file. Returns what has changed, in words.
    ///
    /// # Errors
    ///
    /// If they cannot be read. Then nothing has changed.
    pub(super) fn reconcile_keys(
        &mut self,
        settings: &config::Tunnel,
    ) -> anyhow::Result<Option<String>> {
        let public = keys::public_key(settings)?;
        let Some(key) = public.filter(|_| public != self.public_key) else { return Ok(None) };
        let Some(keys) = keys::host_keys(settings, self.epoch.elapsed())? else { return Ok(None) };
        self.handle.step(TunnelOp::SetKeys { keys: Box::new(keys) });
        self.public_key = public;
        let text =
            format!("tunnel {}: another private key, the public key is {key}", settings.name);
        tracing::info!("{text}");
        Ok(Some(text))
    }

    /// Has the networks led into the tunnel.
    fn reconcile_routes(&mut self) -> anyhow::Result<()> {
        let connections = self.connections.values().map(|connection| &connection.settings);
        let connections = connections.chain(self.accepting.connections());
        let wanted = routes(&self.settings.addresses, connections);
        let outcome = self.interface.set_routes(&wanted);
        if outcome.is_ok() && self.unrouted {
            tracing::info!(tunnel = self.settings.name, "all networks are routed into the tunnel");
        }
        self.unrouted = outcome.is_err();
        outcome
    }

    /// Reports the obstacles of the networks, once.
    fn advise(&mut self, netmon: &mut NetMonitor, now: Instant) {
        let settings = self.settings.clone();
        let settings = self.with_found_paths(&settings, netmon, now);
        let connections = settings.connections.iter();
        let networks = connections.clone().flat_map(|connection| &connection.networks);
        let (tunnel, told) = (&self.settings.name, |text: &String| self.advice.contains(text));
        let for_others: Vec<String> = advice::for_others(networks.clone()).collect();
        for text in for_others.iter().filter(|text| !told(text)) {
            tracing::info!(tunnel, "{text}");
        }
        let mut advice = advice::for_this_host(networks, connections);
        for text in advice.iter().filter(|text| !told(text)) {
            tracing::warn!(tunnel, "{text}");
        }
        advice.extend(for_others);
        self.advice = advice;
    }

    /// When to call [`Reconciler::on_wake_up`] at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let parts = [
            self.again,
            self.recreate.deadline(),
            self.sockets.deadline(),
            self.look,
            self.uplinks.deadline(),
            self.commands.deadline(),
            self.quotas.deadline(),
            self.interface.upkeep.deadline(),
        ];
        parts.into_iter().flatten().min()
    }
}

/// The largest inner packet that any path of the start can carry.
fn largest(settings: &config::Tunnel, netmon: &mut NetMonitor, now: Instant) -> u32 {
    let mut largest = match settings.mtu {
        config::Mtu::Fixed(mtu) => u32::from(mtu),
        config::Mtu::Auto => 0,
    };
    let mut kernel = Kernel::default();
    for connection in &settings.connections {
        for path in &connection.paths {
            let remotes = remotes(path, netmon, now, None, false);
            if let Some(&remote) = remotes.as_ref().ok().and_then(|all| all.first()) {
                let remote = SocketAddr::new(remote, connection.remote_port);
                let known = kernel.path_mtu(path, remote, connection);
                largest = largest.max(known.map_or(0, |known| known.allowed));
            }
        }
    }
    largest
}
