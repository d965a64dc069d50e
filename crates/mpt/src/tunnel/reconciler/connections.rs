//! The connections of a tunnel: which are made, changed and removed, and their paths with them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use mpt_proto::{ConnectionConfig, ConnectionId, MAX_PATHS};

use super::Reconciler;
use super::connection::{Connection, Path};
use super::numbers::Numbers;
use super::path::Setter;
use crate::config;
use crate::netmon::NetMonitor;
use crate::tunnel::core::core_connection;
use crate::tunnel::op::TunnelOp;

/// The connections that lead to each peer.
pub(super) type Claims =
    HashMap<Vec<IpAddr>, Vec<(ConnectionId, config::Connection, ConnectionConfig)>>;

impl Reconciler {
    /// Brings connections and paths in line with the settings. All that can be done is done.
    pub(super) fn reconcile_connections(
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

    /// Has what leads to a peer be as the settings of all its connections together say: networks are
    /// common to them, and of those that match a packet the first in the file carries it.
    pub(super) fn reconcile_claims(&mut self, settings: &config::Tunnel) {
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
    pub(super) fn reconcile_paths(&mut self, netmon: &mut NetMonitor, now: Instant) {
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
}

/// The connections that lead to each peer, in the order of the file.
fn by_peer(settings: &config::Tunnel) -> HashMap<&[IpAddr], Vec<&config::Connection>> {
    let mut peers: HashMap<&[IpAddr], Vec<&config::Connection>> = HashMap::new();
    for connection in &settings.connections {
        peers.entry(&connection.peer).or_default().push(connection);
    }
    peers
}
