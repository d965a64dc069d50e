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
use std::net::{IpAddr, SocketAddr};
use std::path::Path as FilePath;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use mpt_control::{Explanation, TraceMark, TunnelStatus};
use mpt_io::poll::{Poll, Waker};
use mpt_proto::{ConnectionConfig, ConnectionId, MAX_PATHS, PathId, PublicKey};

use self::accepting::Accepting;
use self::arrived::Learned;
use self::commands::CommandPorts;
use self::connection::{Connection, Path};
use self::found::found;
use self::numbers::Numbers;
use self::path::{AGAIN, Setter};
use self::quotas::Quotas;
use self::recreate::Recreate;
use self::remotes::remotes;
use self::socket::Opened;
use self::uplinks::Uplinks;
use super::core::core_connection;
use super::interface::{Interface, routes};
use super::main_event::MainEvent;
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

/// The connections that lead to each peer.
type Claims = HashMap<Vec<IpAddr>, Vec<(ConnectionId, config::Connection, ConnectionConfig)>>;

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

    /// Takes in what the threads have to say. Returns whether that was anything about a path.
    fn take_main_events(&mut self, netmon: &mut NetMonitor, now: Instant) -> bool {
        let (mut any, mut requested) = (false, false);
        while let Ok(main_event) = self.handle.main_events.try_recv() {
            match main_event {
                MainEvent::Heard { connection, path, heard } => {
                    self.on_heard(connection, path, heard, netmon, now);
                    any = true;
                }
                MainEvent::InterfaceGone { index } if index == self.interface.index() => {
                    self.recreate.on_gone(now);
                }
                // That one has been created again.
                MainEvent::InterfaceGone { .. } => {}
                MainEvent::ConnectRequest { request, local } => {
                    self.on_connect_request(&request, local, now);
                    requested = true;
                }
                MainEvent::ClientRequest { request, local } => {
                    self.on_client_request(&request, local, now);
                    requested = true;
                }
                MainEvent::PathRequest { request, local } => {
                    self.on_path_request(&request, local, now);
                }
            }
        }
        if requested && let Err(error) = self.reconcile_routes() {
            tracing::warn!(tunnel = self.settings.name, "{error:#}");
        }
        any
    }

    /// A path has fallen silent, or is heard. If it is silent, its name may stand for another address
    /// by now.
    fn on_heard(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        heard: bool,
        netmon: &mut NetMonitor,
        now: Instant,
    ) {
        let mut connections = self.connections.values_mut();
        let Some(connection) = connections.find(|other| other.id == connection) else { return };
        let Some(path) = connection.paths.values_mut().find(|other| other.id == path) else {
            return;
        };
        path.silent = !heard;
        path.doubted = !heard;
        if let Some(name) = path.settings.remote.name().filter(|_| !heard) {
            netmon.names.doubt(name, now);
        }
    }

    /// Brings connections and paths in line with the settings. All that can be done is done.
    fn reconcile_connections(
        &mut self,
        settings: &config::Tunnel,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        let settings = &self.with_found_paths(settings, netmon, now);
        let in_place = |tunnel: &config::Tunnel| (tunnel.mtu, tunnel.clamp_mss);
        if in_place(settings) != in_place(&self.settings) || self.connections.is_empty() {
            let settings = Arc::new(settings.clone());
            self.handle.step(TunnelOp::SetTunnel { settings });
        }
        let wanted =
            |name: &String| settings.connections.iter().find(|connection| connection.name == *name);
        let gone: Vec<String> = self
            .connections
            .iter()
            .filter(|(name, running)| wanted(name).is_none_or(|new| !running.can_become(new)))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.remove_connection(&name, now);
        }
        self.remove_claimed(&settings.connections, now);
        self.commands.release(&settings.connections);
        let mut outcome = Ok(());
        let peers = by_peer(settings);
        for connection in &settings.connections {
            let alike = &peers[connection.peer.as_slice()];
            let offloads = settings.offloads;
            let result = self.reconcile_connection(connection, alike, offloads, netmon, now);
            outcome = outcome.and(result);
        }
        self.reconcile_claims(settings);
        outcome.and(self.reconcile_templates(settings, netmon, now))
    }

    /// The settings with the paths that are found by themselves.
    fn with_found_paths(
        &mut self,
        settings: &config::Tunnel,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> config::Tunnel {
        let Self { uplinks, connections, .. } = self;
        let running = |name: &str| {
            let running = connections.get(name).map(|running| running.paths.values());
            running.into_iter().flatten()
        };
        found(settings, uplinks, running, netmon, now)
    }

    /// Has what leads to a peer be as the settings of all its connections together say: networks are
    /// common to them, and of those that match a packet the first in the file carries it.
    fn reconcile_claims(&mut self, settings: &config::Tunnel) {
        let mut claims: Claims = HashMap::new();
        for (peer, alike) in by_peer(settings) {
            let claim = |connection: &&config::Connection| {
                let running = self.connections.get(&connection.name)?;
                Some((running.id, running.settings.clone(), core_connection(connection, &alike)))
            };
            claims.insert(peer.to_vec(), alike.iter().filter_map(claim).collect());
        }
        for (peer, claims) in &claims {
            // What is new has been added with all this.
            let Some(before) = self.claims.get(peer) else { continue };
            if before == claims {
                continue;
            }
            for (id, settings, core) in claims {
                let (settings, core) = (Arc::new(settings.clone()), Arc::new(core.clone()));
                self.handle.step(TunnelOp::SetConnection { id: *id, settings, core });
            }
        }
        self.claims = claims;
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

    fn remove_connection(&mut self, name: &str, now: Instant) {
        self.count_before_removal(name, |_| true);
        self.stop_learning(name, now);
        let Some(connection) = self.connections.remove(name) else { return };
        self.handle.step(TunnelOp::RemoveConnection { id: connection.id });
        for path in connection.paths.into_values() {
            if let Some(socket) = path.socket {
                self.sockets.give_back(now, socket);
            }
        }
        self.numbers.give_back(now, connection.id.0);
    }

    fn reconcile_connection(
        &mut self,
        wanted: &config::Connection,
        alike: &[&config::Connection],
        offloads: config::Offloads,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        let without_paths = config::Connection { paths: Vec::new(), ..wanted.clone() };
        match self.connections.get_mut(&wanted.name) {
            Some(running) => running.settings = without_paths,
            None => {
                let id = self.numbers.take(now).with_context(|| {
                    format!(
                        "connection {} is not added: the tunnel has its maximum of connections",
                        wanted.name
                    )
                })?;
                let id = ConnectionId(id);
                let connection = Connection {
                    id,
                    settings: without_paths.clone(),
                    learns: false,
                    numbers: Numbers::below(MAX_PATHS as u16),
                    paths: BTreeMap::new(),
                };
                self.connections.insert(wanted.name.clone(), connection);
                let (settings, accepted_by) = (Arc::new(without_paths), None);
                let core = Arc::new(core_connection(wanted, alike));
                self.handle.step(TunnelOp::AddConnection { id, settings, accepted_by, core });
            }
        }
        let learns = wanted.learns_paths();
        if let Some(running) = self.connections.get_mut(&wanted.name)
            && std::mem::replace(&mut running.learns, learns) != learns
        {
            self.handle.step(TunnelOp::SetLearns { connection: running.id, learns });
        }
        if !learns {
            self.stop_learning(&wanted.name, now);
        }
        let outcome = self.reconcile_paths_of(wanted, offloads, netmon, now);
        outcome.and(self.reconcile_learning(wanted, offloads, netmon, now))
    }

    /// Brings the paths of a connection in line with its settings.
    fn reconcile_paths_of(
        &mut self,
        wanted: &config::Connection,
        offloads: config::Offloads,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> anyhow::Result<()> {
        let find = |name: &String| wanted.paths.iter().find(|path| path.name == *name);
        let goes = |path: &Path| find(&path.settings.name).is_none_or(|new| !path.can_become(new));
        self.count_before_removal(&wanted.name, goes);
        let Self { connections, sockets, handle, again, .. } = self;
        let Some(running) = connections.get_mut(&wanted.name) else { return Ok(()) };
        let id = running.id;
        let gone = running.paths.iter().filter(|(_, path)| goes(path));
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        for name in gone {
            let Some(path) = running.paths.remove(&name) else { continue };
            handle.step(TunnelOp::RemovePath { connection: id, path: path.id });
            path.socket.into_iter().for_each(|socket| sockets.give_back(now, socket));
            running.numbers.give_back(now, u16::from(path.id.0));
        }
        let mut outcome = Ok(());
        for settings in &wanted.paths {
            let setter = Setter { sockets: &mut *sockets, handle, offloads, netmon, now, again };
            outcome = outcome.and(setter.reconcile(running, wanted, settings));
        }
        outcome
    }

    /// Looks at what the paths need of this host.
    fn reconcile_paths(&mut self, netmon: &mut NetMonitor, now: Instant) {
        self.again = None;
        let settings = self.settings.clone();
        let settings = self.with_found_paths(&settings, netmon, now);
        for connection in &settings.connections {
            // What cannot be had is shown as the path's absence, and tried again.
            if let Err(error) = self.reconcile_paths_of(connection, settings.offloads, netmon, now)
            {
                tracing::debug!(connection = connection.name, "{error:#}");
            }
            let offloads = settings.offloads;
            if let Err(error) = self.reconcile_learning(connection, offloads, netmon, now) {
                tracing::debug!(connection = connection.name, "{error:#}");
            }
        }
        if let Err(error) = self.reconcile_commands(&settings.addresses, now) {
            tracing::debug!(tunnel = settings.name, "{error:#}");
        }
        if let Err(error) = self.reconcile_templates(&settings, netmon, now) {
            tracing::debug!(tunnel = settings.name, "{error:#}");
        }
        let Self { accepting, learned, handle, .. } = self;
        let accepted = accepting.connections.values_mut().map(|accepted| &mut accepted.paths);
        let learned = learned.values_mut().map(|learned| &mut learned.paths);
        accepted.chain(learned).for_each(|paths| paths.look_at_host(netmon, handle, now));
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

/// The connections that lead to each peer, in the order of the file.
fn by_peer(settings: &config::Tunnel) -> HashMap<&[IpAddr], Vec<&config::Connection>> {
    let mut peers: HashMap<&[IpAddr], Vec<&config::Connection>> = HashMap::new();
    for connection in &settings.connections {
        peers.entry(&connection.peer).or_default().push(connection);
    }
    peers
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
