//! What settings of an endpoint contradict each other or exceed a limit.

use std::net::IpAddr;
use std::time::Duration;

use super::{ConnectionConfig, EndpointConfig, FramingConfig, MAX_WEIGHT, PathConfig};
use crate::demux::address::{Candidate, Origins};
use crate::id::{ConnectionId, MAX_PATHS, PathId};
use crate::peer_kind::PeerKind;
use crate::prefix::own_address;

impl EndpointConfig {
    /// Says what contradicts itself or exceeds a limit, if anything does.
    ///
    /// # Errors
    ///
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut origins = Origins::default();
        for (connection, config) in self.connections.iter().enumerate() {
            config.check(connection)?;
            let sealed = config.framing == FramingConfig::Sealed;
            if sealed != config.peer_keys.is_some() || sealed && self.keys.is_none() {
                return Err(ConfigError::Keys { connection });
            }
            let public = |config: &ConnectionConfig| config.peer_keys.as_ref().map(|it| it.public);
            let others = &self.connections[..connection];
            if sealed && others.iter().any(|other| public(other) == public(config)) {
                return Err(ConfigError::SameKey { connection });
            }
            let reachable = |peer: &IpAddr| own_address(&self.addresses, *peer).is_some();
            if !config.peer.iter().any(reachable) {
                return Err(ConfigError::NoTunnelAddress { connection });
            }
            let same_packets = |other: &ConnectionConfig| {
                other.selector == config.selector
                    && other.peer.iter().any(|peer| config.peer.contains(peer))
            };
            if self.connections[..connection].iter().any(same_packets) {
                return Err(ConfigError::SamePeer { connection });
            }
            for (path, settings) in config.paths.iter().enumerate() {
                let candidate = Candidate {
                    port: settings.remote.port(),
                    key: config.key,
                    exact: false,
                    connection: ConnectionId(connection as u16),
                    path: PathId(path as u8),
                };
                if !origins.add(settings.socket, settings.remote.ip(), candidate) {
                    return Err(ConfigError::SamePath { connection, path });
                }
            }
        }
        Ok(())
    }
}

impl ConnectionConfig {
    fn check(&self, connection: usize) -> Result<(), ConfigError> {
        if self.paths.is_empty() && self.framing == FramingConfig::Plain {
            return Err(ConfigError::NoPath { connection });
        }
        if self.paths.len() > MAX_PATHS {
            return Err(ConfigError::TooManyPaths { connection });
        }
        if self.reorder.window > self.reorder.max_window() {
            let most = self.reorder.max_window();
            return Err(ConfigError::Window { connection, most });
        }
        let zero = |path: &PathConfig| {
            [path.keepalive, path.dead_time, path.failover].iter().flatten().any(Duration::is_zero)
        };
        if let Some(path) = self.paths.iter().position(zero) {
            return Err(ConfigError::ZeroTime { connection, path });
        }
        match self.paths.iter().position(|path| !(1..=MAX_WEIGHT).contains(&path.weight)) {
            Some(path) => Err(ConfigError::Weight { connection, path }),
            None => self.check_peer_kind(connection),
        }
    }

    /// Says what this kind of peer would not understand in the settings of connection number `connection`.
    fn check_peer_kind(&self, connection: usize) -> Result<(), ConfigError> {
        let fault = match self.peer_kind {
            PeerKind::Mpt => None,
            _ if self.framing != FramingConfig::Plain => Some("extended framing"),
            PeerKind::Original => self.unfit_for_original(),
            PeerKind::Gre => {
                let timed =
                    |path: &PathConfig| path.keepalive.is_some() || path.dead_time.is_some();
                let timed = self.paths.iter().any(timed);
                timed.then_some("a path with a keepalive interval or a dead time")
            }
        };
        match fault {
            Some(fault) => Err(ConfigError::PeerKind { connection, fault }),
            None => Ok(()),
        }
    }

    fn unfit_for_original(&self) -> Option<&'static str> {
        let [peer] = self.peer[..] else {
            return Some("not exactly one tunnel address of the peer");
        };
        let other_version = |address: IpAddr| address.is_ipv4() != peer.is_ipv4();
        if self.networks.iter().any(|network| other_version(network.address())) {
            Some("a network of another IP version than the peer's tunnel address")
        } else if self.key.is_some() || self.checksum {
            Some("a key or a checksum")
        } else if self.sequence != (self.reorder.window > 0) {
            Some("sequence numbers without a reorder window, or a window without them")
        } else {
            None
        }
    }
}

/// Why settings cannot be used. Numbers count from 0 in the order of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The connection has no path, and plain framing learns none.
    NoPath {
        /// Which connection.
        connection: usize,
    },
    /// The connection has more than [`MAX_PATHS`].
    TooManyPaths {
        /// Which connection.
        connection: usize,
    },
    /// A path's weight is outside 1 to [`MAX_WEIGHT`].
    Weight {
        /// Which connection.
        connection: usize,
        /// Which of its paths.
        path: usize,
    },
    /// The reorder window is above [`MAX_WINDOW`](super::MAX_WINDOW), or above [`EVIDENCE_WINDOW`](super::EVIDENCE_WINDOW) by evidence.
    Window {
        /// Which connection.
        connection: usize,
        /// The largest one.
        most: u32,
    },
    /// A path's keepalive interval or dead time is zero, which would never end; leave it out.
    ZeroTime {
        /// Which connection.
        connection: usize,
        /// Which of its paths.
        path: usize,
    },
    /// The peer is of a kind that would not understand it.
    PeerKind {
        /// Which connection.
        connection: usize,
        /// What it would not understand.
        fault: &'static str,
    },
    /// Sealed framing without keys of both hosts, or keys with another framing.
    Keys {
        /// Which connection.
        connection: usize,
    },
    /// Two connections have peers with the same public key.
    SameKey {
        /// The later of the two.
        connection: usize,
    },
    /// This end and the peer have no tunnel address of the same IP version.
    NoTunnelAddress {
        /// Which connection.
        connection: usize,
    },
    /// Two connections claim the same peer tunnel address.
    SamePeer {
        /// The later of the two.
        connection: usize,
    },
    /// Two paths could not be distinguished on reception: same socket, remote address, port and
    /// key.
    SamePath {
        /// The connection of the later of the two.
        connection: usize,
        /// The later of the two.
        path: usize,
    },
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoPath { connection } => write!(formatter, "connection {connection} has no path"),
            Self::TooManyPaths { connection } => {
                write!(formatter, "connection {connection} has more than {MAX_PATHS} paths")
            }
            Self::Weight { connection, path } => write!(
                formatter,
                "the weight of path {path} of connection {connection} is not 1 to {MAX_WEIGHT}"
            ),
            Self::Window { connection, most } => {
                write!(formatter, "the reorder window of connection {connection} is above {most}")
            }
            Self::ZeroTime { connection, path } => write!(
                formatter,
                "a time of path {path} of connection {connection} is zero; leave it out instead"
            ),
            Self::PeerKind { connection, fault } => write!(
                formatter,
                "connection {connection} has what its kind of peer does not understand: {fault}"
            ),
            Self::Keys { connection } => write!(
                formatter,
                "connection {connection} has sealed framing without keys, or keys without it"
            ),
            Self::SameKey { connection } => {
                write!(formatter, "connection {connection} repeats another one's public key")
            }
            Self::NoTunnelAddress { connection } => write!(
                formatter,
                "connection {connection} has no tunnel address of the peer's IP version"
            ),
            Self::SamePeer { connection } => {
                write!(formatter, "connection {connection} repeats another one's peer address")
            }
            Self::SamePath { connection, path } => write!(
                formatter,
                "path {path} of connection {connection} cannot be told from another one"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}
