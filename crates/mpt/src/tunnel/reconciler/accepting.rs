//! Templates for peers that are not configured, and the connections created by them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mpt_proto::{AcceptConfig, AcceptId, ConnectRequest, ConnectionId, PathId, SocketId};

use super::numbers::Numbers;
use crate::config::{self, Accept};
use crate::tunnel::core::core_prefix;
use crate::tunnel::mtu::{Kernel, mtu_within};
use crate::tunnel::op::Place;
use crate::tunnel::reported::KnownMtu;

/// The most templates of a tunnel at a time; no realistic file has more.
pub(super) const MAX_TEMPLATES: u16 = 1024;

/// How often, in the time after which a path is forgotten, it is looked whether it has been heard.
const LOOKS: u32 = 8;

/// The longest time between two looks.
const LONGEST: Duration = Duration::from_millis(2500);

/// A path's MTU if no route has one.
const ETHERNET: u32 = 1500;

/// The templates and what was made by them.
pub(super) struct Accepting {
    pub(super) numbers: Numbers,
    pub(super) templates: BTreeMap<String, Template>,
    pub(super) connections: BTreeMap<String, Accepted>,
    /// The state sent to the threads.
    pub(super) told: Vec<(AcceptConfig, String)>,
    /// When to look for what is silent.
    pub(super) look: Option<Instant>,
}

/// A template in force.
pub(super) struct Template {
    pub(super) id: AcceptId,
    pub(super) settings: Accept,
    /// At most one for each IP version.
    pub(super) sockets: Vec<SocketId>,
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) id: ConnectionId,
    pub(super) template: String,
    pub(super) settings: config::Connection,
    pub(super) forget: Duration,
    pub(super) numbers: Numbers,
    pub(super) paths: BTreeMap<SocketAddr, Path>,
}

/// A path that was accepted.
pub(super) struct Path {
    pub(super) id: PathId,
    pub(super) settings: config::Path,
    pub(super) socket: SocketId,
    pub(super) since: Instant,
    /// What this host lacks for it, and since when.
    pub(super) absence: Option<(String, Instant)>,
}

impl Accepting {
    pub(super) fn new() -> Self {
        Self {
            numbers: Numbers::below(MAX_TEMPLATES),
            templates: BTreeMap::new(),
            connections: BTreeMap::new(),
            told: Vec::new(),
            look: None,
        }
    }

    /// The settings of what was accepted.
    pub(super) fn connections(&self) -> impl Iterator<Item = &config::Connection> {
        self.connections.values().map(|accepted| &accepted.settings)
    }

    /// When there is something to look at.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look
    }

    /// When to look next, given what there is.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        let forget = self.connections.values().map(|accepted| accepted.forget).min()?;
        Some(now + (forget / LOOKS).min(LONGEST))
    }
}

impl Template {
    /// The template in the core's words.
    pub(super) fn core(&self) -> AcceptConfig {
        let Accept { peers, sources, max_connections, max_paths, max_rate, .. } = &self.settings;
        AcceptConfig {
            id: self.id,
            sockets: self.sockets.clone(),
            peers: peers.iter().filter_map(core_prefix).collect(),
            sources: sources.iter().filter_map(core_prefix).collect(),
            key: self.settings.policies.key,
            max_connections: *max_connections,
            max_paths: *max_paths,
            interval: Duration::from_secs_f64(1.0 / max_rate),
            burst: max_rate.ceil() as u32,
        }
    }
}

impl Path {
    pub(super) fn place(&self, connection: &config::Connection, remote: SocketAddr) -> Place {
        let known = Kernel::default().path_mtu(&self.settings, remote, connection);
        let unknown = || KnownMtu::allowed(mtu_within(ETHERNET, remote, connection));
        Place {
            settings: self.settings.clone(),
            socket: Some(self.socket),
            remote,
            mtu: known.unwrap_or_else(unknown),
            absence: self.absence.as_ref().map(|(absence, _)| absence.clone()),
        }
    }
}

/// The settings of a connection by this template. Its remote port is that of the first path, and each path
/// has its own.
pub(super) fn connection(
    accept: &Accept,
    name: String,
    request: &ConnectRequest,
) -> config::Connection {
    config::Connection {
        name,
        peer_kind: config::PeerKind::Mpt,
        commands: None,
        peer: vec![request.peer],
        networks: Vec::new(),
        selector: None,
        local_port: accept.local_port,
        remote_port: request.remote.port(),
        policies: accept.policies,
        paths: Vec::new(),
    }
}
