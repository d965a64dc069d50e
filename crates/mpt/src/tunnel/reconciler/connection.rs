//! A connection and its paths as they run.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mpt_proto::{ConnectionId, PathId, SocketId, Surcharge};

use super::numbers::Numbers;
use crate::config;
use crate::netmon::Way;

/// A connection as it runs.
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) settings: config::Connection,
    /// Whether its paths come and go with its peer, as the tunnel's threads know it.
    pub(super) learns: bool,
    pub(super) numbers: Numbers,
    pub(super) paths: BTreeMap<String, Path>,
}

impl Connection {
    /// Whether it can change to this without being created again.
    pub(super) fn can_become(&self, new: &config::Connection) -> bool {
        let fixed = |settings: &config::Connection| {
            let &config::Connection { peer_kind, local_port, remote_port, .. } = settings;
            let config::Policies { framing, key, checksum, sequence, .. } = settings.policies;
            let files = (settings.preshared_key_file.clone(), settings.invitation_file.clone());
            let keys = (settings.public_key, files);
            let framing = (framing, key, checksum, sequence, keys);
            (peer_kind, local_port, remote_port, framing, settings.peer.clone())
        };
        fixed(&self.settings) == fixed(new)
    }
}

/// A path as it runs.
pub(super) struct Path {
    pub(super) id: PathId,
    pub(super) settings: config::Path,
    /// The classes that may not take it, one bit each.
    pub(super) refuses: u32,
    pub(super) socket: Option<SocketId>,
    pub(super) remote: Option<IpAddr>,
    /// How it leaves this host, as far as it does.
    pub(super) way: Option<Way>,
    /// What this host lacks for it.
    pub(super) absence: Option<String>,
    /// Whether the peer is not heard on it, not yet or not any more.
    pub(super) silent: bool,
    /// What it costs because of its quota.
    pub(super) surcharge: Surcharge,
    /// Whether its name is to stand for another address from now on.
    pub(super) doubted: bool,
}

impl Path {
    /// How it leaves this host, as far as it does.
    pub(super) fn way(&self) -> Option<Way> {
        self.way
    }

    /// Whether this host lacks something for it.
    pub(super) fn is_absent(&self) -> bool {
        self.absence.is_some()
    }

    /// Whether it can become this without being another path.
    pub(super) fn can_become(&self, new: &config::Path) -> bool {
        let fixed = |path: &config::Path| (path.interface.clone(), path.local, path.remote.clone());
        fixed(&self.settings) == fixed(new)
    }
}
