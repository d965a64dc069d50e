//! What can change while an endpoint runs.
//!
//! One description serves both sides: each takes from it what concerns it. On two threads the
//! transmit side is told first, so that nothing is sent any more on what is about to go; the receive
//! side, told later, still knows what is in flight.
//!
//! Numbers name connections and paths for as long as they live. One that was given up should be used
//! again late: a path update that is on its way between two threads would be taken for the new one's.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{ConnectionConfig, PathConfig};
use crate::id::AcceptId;
use crate::id::ConnectionId;
use crate::id::PathId;
use crate::path::PathStatus;

/// A change to a running endpoint.
///
/// The caller, which has all settings, must refuse a change that contradicts the others
/// ([`ConfigError`](crate::ConfigError)). Of two that claim the same packets or datagrams the first
/// applies. A change of an unknown connection or path has no effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A connection begins, with the paths of its settings numbered from 0 in their order. Its first
    /// packet has the sequence number 0.
    AddConnection {
        /// Its number, which no other has.
        connection: ConnectionId,
        /// Its settings.
        config: Arc<ConnectionConfig>,
        /// The template by which it was accepted. Then its paths are where its peer asked to connect, so they
        /// are known by the remote port too.
        accepted_by: Option<AcceptId>,
    },
    /// A connection ends. The peer is notified; packets held for it are delivered.
    RemoveConnection {
        /// Which.
        connection: ConnectionId,
    },
    /// A connection has other networks, another selector, scheduler or order, or another pre-shared key, which the next
    /// handshake uses. Everything else in
    /// `config`, its paths included, is ignored.
    SetConnection {
        /// Which.
        connection: ConnectionId,
        /// Its settings.
        config: Arc<ConnectionConfig>,
    },
    /// A connection has a further path.
    AddPath {
        /// The connection.
        connection: ConnectionId,
        /// The path's number, which no other path of the connection has; below
        /// [`MAX_PATHS`](crate::MAX_PATHS).
        path: PathId,
        /// Its settings.
        config: PathConfig,
    },
    /// A path is removed. The peer is notified, and packets in flight still arrive in order.
    RemovePath {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
    },
    /// A path has other settings. What is known of it stays.
    SetPath {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// Its settings.
        config: PathConfig,
    },
    /// A path costs more than its settings say, or no longer does. A path begins without a surcharge, and other settings
    /// leave it as it is.
    SetSurcharge {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// What comes on top of its settings.
        surcharge: Surcharge,
    },
    /// The operator wants a path to be used, or not.
    SetStatus {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// The administrative status.
        status: PathStatus,
    },
    /// A path can, or cannot, carry inner packets of 1280 bytes, the least an IPv6 link may offer.
    SetFits {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// Whether it can.
        fits: bool,
    },
    /// The peer has said that a path is down, or that it is not, by a command beside the tunnel as the
    /// original has. Packets of the peer on the path take back that it is down, and after a while its keepalives.
    SetPeerDown {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// Whether it is down.
        down: bool,
    },
    /// What a path needs of this host, its interface and its address, is there or not.
    SetPresent {
        /// The connection.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// Whether it is there.
        present: bool,
        /// If it is gone, for how long that may have gone unnoticed.
        unnoticed: Duration,
    },
}

/// What makes a path cost more than its settings say: for a path of limited volume, how little of that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surcharge {
    /// Milliseconds that are added to its [price](PathConfig::price).
    pub price: u16,
    /// Whether it stands by, whatever its priority, as long as a path is up that does not.
    pub last_resort: bool,
}

impl Change {
    /// The connection that changes.
    pub fn connection(&self) -> ConnectionId {
        match *self {
            Self::AddConnection { connection, .. }
            | Self::RemoveConnection { connection }
            | Self::SetConnection { connection, .. }
            | Self::AddPath { connection, .. }
            | Self::RemovePath { connection, .. }
            | Self::SetPath { connection, .. }
            | Self::SetSurcharge { connection, .. }
            | Self::SetStatus { connection, .. }
            | Self::SetFits { connection, .. }
            | Self::SetPeerDown { connection, .. }
            | Self::SetPresent { connection, .. } => connection,
        }
    }
}
