//! The transmit side's table of connections and paths beside the core: their settings, and the
//! destinations and maximum sizes of their datagrams.

use std::net::SocketAddr;
use std::sync::Arc;

use mpt_proto::{Change, ConnectionId, PathId};

use super::history::{History, PathSent, Sent};
use super::interface_mtu::MIN_MTU;
use super::narrowed::Narrowed;
use super::reported::{KnownMtu, Probing, Reported};
use crate::config;

/// One path.
pub(super) struct PathInfo {
    pub(super) settings: config::Path,
    pub(super) remote: SocketAddr,
    /// What this host lacks for it, in words.
    pub(super) absence: Option<String>,
    /// The largest inner packet that fits a datagram on it.
    pub(super) mtu: u32,
    /// The largest that it has been.
    pub(super) best_mtu: u32,
    /// What the interface and the route allow, and what to begin with.
    pub(super) allowed: u32,
    pub(super) at_first: u32,
    /// What is known to arrive by the probes of a session.
    pub(super) proven: Option<u32>,
    /// The largest detected size, if it is below the kernel's path MTU.
    pub(super) narrowed: Narrowed,
    /// What ICMP messages reported of it.
    pub(super) reported: Reported,
    /// When it is probed for more.
    pub(super) probing: Probing,
    /// What was counted lately.
    pub(super) history: History<PathSent>,
}

impl PathInfo {
    /// A path of which so much is known.
    pub(super) fn new(settings: config::Path, remote: SocketAddr, known: KnownMtu) -> Self {
        Self {
            settings,
            remote,
            absence: None,
            mtu: known.at_first(),
            best_mtu: known.allowed,
            allowed: known.allowed,
            at_first: known.at_first(),
            proven: None,
            narrowed: Narrowed::default(),
            reported: Reported::default(),
            probing: Probing::default(),
            history: History::default(),
        }
    }

    /// The largest inner packet in a session.
    pub(super) fn in_session(&self) -> u32 {
        self.proven.unwrap_or(self.at_first).min(self.allowed)
    }

    /// Takes over another largest inner packet. Returns what that changes for the core.
    pub(super) fn set_mtu(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        mtu: u32,
    ) -> Option<Change> {
        let before = std::mem::replace(&mut self.mtu, mtu);
        self.best_mtu = self.best_mtu.max(mtu);
        (before != mtu).then_some(Change::SetFits { connection, path, fits: mtu >= MIN_MTU })
    }

    /// Whether it carries less than it did, so that it may carry more again; or may do so.
    pub(super) fn is_limited(&self) -> bool {
        self.mtu < self.best_mtu || self.narrowed.is_set() || self.reported.is_open()
    }
}

/// One connection.
pub(super) struct ConnectionInfo {
    /// Its settings; the paths in them are not looked at.
    pub(super) settings: Arc<config::Connection>,
    /// The template by which it was accepted.
    pub(super) accepted_by: Option<String>,
    /// By number.
    pub(super) paths: Vec<Option<PathInfo>>,
    /// What was counted lately.
    pub(super) history: History<Sent>,
}

impl ConnectionInfo {
    /// Its paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = (PathId, &PathInfo)> {
        (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)))
    }

    /// Bytes of memory that what was counted takes.
    pub(super) fn memory(&self) -> usize {
        let paths = self.paths.iter().flatten().map(|path| path.history.memory());
        self.history.memory() + paths.sum::<usize>()
    }

    /// The same, to be changed.
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = (PathId, &mut PathInfo)> {
        (0..).map(PathId).zip(&mut self.paths).filter_map(|(id, path)| Some((id, path.as_mut()?)))
    }
}

/// All connections of a tunnel, by number.
#[derive(Default)]
pub(super) struct Table(Vec<Option<ConnectionInfo>>);

impl Table {
    pub(super) fn put(&mut self, id: ConnectionId, info: ConnectionInfo) {
        let place = usize::from(id.0);
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = Some(info);
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        if let Some(slot) = self.0.get_mut(usize::from(id.0)) {
            *slot = None;
        }
    }

    pub(super) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut ConnectionInfo> {
        self.0.get_mut(usize::from(id.0))?.as_mut()
    }

    pub(super) fn path_mut(&mut self, id: ConnectionId, path: PathId) -> Option<&mut PathInfo> {
        self.connection_mut(id)?.paths.get_mut(usize::from(path.0))?.as_mut()
    }

    pub(super) fn put_path(&mut self, id: ConnectionId, path: PathId, info: PathInfo) {
        let Some(connection) = self.connection_mut(id) else { return };
        let place = usize::from(path.0);
        if connection.paths.len() <= place {
            connection.paths.resize_with(place + 1, || None);
        }
        connection.paths[place] = Some(info);
    }

    pub(super) fn remove_path(&mut self, id: ConnectionId, path: PathId) {
        if let Some(connection) = self.connection_mut(id)
            && let Some(slot) = connection.paths.get_mut(usize::from(path.0))
        {
            *slot = None;
        }
    }

    pub(super) fn connections(&self) -> impl Iterator<Item = (ConnectionId, &ConnectionInfo)> {
        let slots = (0..).map(ConnectionId).zip(&self.0);
        slots.filter_map(|(id, connection)| Some((id, connection.as_ref()?)))
    }

    /// The same, to be changed.
    pub(super) fn connections_mut(
        &mut self,
    ) -> impl Iterator<Item = (ConnectionId, &mut ConnectionInfo)> {
        let slots = (0..).map(ConnectionId).zip(&mut self.0);
        slots.filter_map(|(id, connection)| Some((id, connection.as_mut()?)))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = (ConnectionId, PathId, &PathInfo)> {
        self.connections().flat_map(|(id, connection)| {
            connection.paths().map(move |(path, info)| (id, path, info))
        })
    }

    /// The same with their connections' settings, to be changed.
    pub(super) fn paths_mut(
        &mut self,
    ) -> impl Iterator<Item = (ConnectionId, PathId, &mut PathInfo, &config::Connection)> {
        let slots = (0..).map(ConnectionId).zip(&mut self.0);
        let connections = slots.filter_map(|(id, connection)| Some((id, connection.as_mut()?)));
        connections.flat_map(|(id, connection)| {
            let ConnectionInfo { settings, paths, .. } = connection;
            let settings: &config::Connection = settings;
            let slots = (0..).map(PathId).zip(paths);
            let paths = slots.filter_map(|(path, info)| Some((path, info.as_mut()?)));
            paths.map(move |(path, info)| (id, path, info, settings))
        })
    }
}
