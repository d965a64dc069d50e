//! What a host's operator wants, kept as plainly as can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use mpt_proto::wire::flow::Flow;
use mpt_proto::wire::inner;
use mpt_proto::{
    Change, ConnectionConfig, ConnectionId, PathConfig, PathId, PathStatus, Prefix, Transmit,
};

use super::host::Sent;

/// The connections and paths that there should be.
#[derive(Default)]
pub(super) struct Plan {
    /// In the order in which they claimed what is behind them.
    connections: Vec<(ConnectionId, Arc<ConnectionConfig>)>,
    /// The paths that there are, and those that there were: they still have something to say.
    paths: BTreeMap<(ConnectionId, PathId), Path>,
}

struct Path {
    config: PathConfig,
    present: bool,
    gone: bool,
}

impl Plan {
    pub(super) fn add_connection(&mut self, id: ConnectionId, config: Arc<ConnectionConfig>) {
        self.close_paths(id);
        for (path, config) in (0..).map(PathId).zip(&config.paths) {
            self.add_path(id, path, config);
        }
        self.connections.push((id, config));
    }

    fn add_path(&mut self, id: ConnectionId, path: PathId, config: &PathConfig) {
        let added = Path { config: config.clone(), present: true, gone: false };
        self.paths.insert((id, path), added);
    }

    fn close_paths(&mut self, id: ConnectionId) {
        let paths = self.paths.iter_mut().filter(|((owner, _), _)| *owner == id);
        paths.for_each(|(_, path)| path.gone = true);
    }

    pub(super) fn apply(&mut self, change: &Change) {
        let id = change.connection();
        if let Change::AddConnection { config, .. } = change {
            if !self.has(id) {
                self.add_connection(id, config.clone());
            }
            return;
        }
        let Some(place) = self.connections.iter().position(|(other, _)| *other == id) else {
            return;
        };
        match change {
            Change::AddConnection { .. }
            | Change::SetFits { .. }
            | Change::SetPeerDown { .. }
            | Change::SetSurcharge { .. } => {}
            Change::RemoveConnection { .. } => {
                self.connections.remove(place);
                self.close_paths(id);
            }
            Change::SetConnection { config, .. } => {
                self.connections.remove(place);
                self.connections.push((id, config.clone()));
            }
            Change::AddPath { path, config, .. } => {
                if self.path(id, *path).is_none() {
                    self.add_path(id, *path, config);
                }
            }
            Change::RemovePath { path, .. } => self.alter(id, *path, |path| path.gone = true),
            Change::SetPath { path, config, .. } => {
                self.alter(id, *path, |path| path.config = config.clone());
            }
            Change::SetStatus { path, status, .. } => {
                self.alter(id, *path, |path| path.config.status = *status);
            }
            Change::SetPresent { path, present, .. } => {
                self.alter(id, *path, |path| path.present = *present);
            }
        }
    }

    fn alter(&mut self, id: ConnectionId, path: PathId, alter: impl FnOnce(&mut Path)) {
        if let Some(path) = self.paths.get_mut(&(id, path)).filter(|path| !path.gone) {
            alter(path);
        }
    }

    /// All paths off.
    pub(super) fn close(&mut self) {
        self.paths.values_mut().for_each(|path| path.config.status = PathStatus::Off);
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.connection(id).is_some()
    }

    pub(super) fn connection(&self, id: ConnectionId) -> Option<&Arc<ConnectionConfig>> {
        self.connections.iter().find(|(other, _)| *other == id).map(|(_, config)| config)
    }

    pub(super) fn path(&self, id: ConnectionId, path: PathId) -> Option<&PathConfig> {
        self.paths.get(&(id, path)).filter(|path| !path.gone).map(|path| &path.config)
    }

    /// Whether inner packets may take a path, as far as its operator is concerned.
    pub(super) fn carries(&self, id: ConnectionId, path: PathId) -> bool {
        self.paths.get(&(id, path)).is_some_and(|path| {
            !path.gone && path.present && path.config.status == PathStatus::Available
        })
    }

    /// The connection that an inner packet is for: of those with the longest prefix around its
    /// destination the first that chooses it, or else the first that takes all, or else those with the
    /// next shorter prefix.
    pub(super) fn route(&self, packet: &[u8]) -> Option<ConnectionId> {
        let inner = inner::parse(packet)?;
        let flow = Flow::parse(packet, &inner);
        let claims = self.connections.iter().flat_map(|(id, config)| {
            let behind = config.peer.iter().map(|peer| Prefix::host(*peer));
            let behind = behind.chain(config.networks.iter().copied());
            let around = behind.filter(|prefix| prefix.contains(inner.destination));
            around.map(move |prefix| (prefix.bits(), &config.selector, *id))
        });
        let claims: Vec<_> = claims.collect();
        (0..=128).rev().find_map(|bits| {
            let claims = || claims.iter().filter(move |(other, _, _)| *other == bits);
            let chooses = claims()
                .find(|(_, selector, _)| selector.as_ref().is_some_and(|s| s.matches(&flow)));
            let (_, _, id) = chooses.or_else(|| claims().find(|claim| claim.1.is_none()))?;
            Some(*id)
        })
    }

    /// A datagram with the way that it goes.
    pub(super) fn sent(&self, transmit: &Transmit<'_>, bytes: Vec<u8>) -> Sent {
        let connection = transmit.connection;
        let path = self.paths.get(&(connection, transmit.path)).expect("a path that there was");
        let (lane, remote) = (path.config.socket.0 as u8, path.config.remote);
        Sent { connection, lane, remote, tos: transmit.tos, bytes }
    }
}
