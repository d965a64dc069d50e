//! Templates for peers that are not configured, and the connections created by them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use mpt_proto::{AcceptConfig, AcceptId, ClientId, ConnectRequest, SocketId};

use super::arrived::Arrived;
use super::numbers::Numbers;
use crate::clients::Clients;
use crate::config::{self, Accept, Framing};
use crate::tunnel::core::core_prefix;

/// The most templates of a tunnel at a time; no realistic file has more.
pub(super) const MAX_TEMPLATES: u16 = 1024;

/// The templates and what was made by them.
pub(super) struct Accepting {
    pub(super) numbers: Numbers,
    pub(super) templates: BTreeMap<String, Template>,
    pub(super) connections: BTreeMap<String, Accepted>,
    /// The number of the next client.
    pub(super) next_client: u32,
    /// The state sent to the threads.
    pub(super) told: Vec<(AcceptConfig, String)>,
}

/// A template in force.
pub(super) struct Template {
    pub(super) id: AcceptId,
    pub(super) settings: Accept,
    /// At most one for each IP version.
    pub(super) sockets: Vec<SocketId>,
    /// Those it knows by their keys, if that is what it accepts, and once their folder was read.
    pub(super) clients: Option<Clients>,
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) template: String,
    /// Whose it is, if that is known by its key.
    pub(super) client: Option<ClientId>,
    pub(super) settings: config::Connection,
    pub(super) paths: Arrived,
}

impl Accepting {
    pub(super) fn new() -> Self {
        Self {
            numbers: Numbers::below(MAX_TEMPLATES),
            templates: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_client: 0,
            told: Vec::new(),
        }
    }

    /// The settings of what was accepted.
    pub(super) fn connections(&self) -> impl Iterator<Item = &config::Connection> {
        self.connections.values().map(|accepted| &accepted.settings)
    }
}

impl Template {
    /// Whether a peer may be at this outer address.
    pub(super) fn admits(&self, remote: IpAddr) -> bool {
        let sources = &self.settings.sources;
        let mut prefixes = sources.iter().filter_map(core_prefix);
        sources.is_empty() || prefixes.any(|prefix| prefix.contains(remote))
    }

    /// The template in the core's words.
    pub(super) fn core(&self) -> AcceptConfig {
        let Accept { peers, sources, max_connections, max_paths, max_rate, policies, .. } =
            &self.settings;
        AcceptConfig {
            id: self.id,
            sockets: self.sockets.clone(),
            peers: peers.iter().filter_map(core_prefix).collect(),
            sources: sources.iter().filter_map(core_prefix).collect(),
            key: policies.key,
            by_keepalive: !matches!(policies.framing, Framing::Extended | Framing::Sealed),
            by_hello: !matches!(policies.framing, Framing::Plain | Framing::Sealed),
            max_connections: *max_connections,
            max_paths: *max_paths,
            interval: Duration::from_secs_f64(1.0 / max_rate),
            burst: max_rate.ceil() as u32,
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
    accept.connection(name, request.peer, request.remote.port())
}
