//! What the receive side knows of the sessions of all connections.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::demux::candidate::PathRequest;
use crate::framing::extended::identity::Identity;
use crate::id::ConnectionId;
use crate::secret::Secret;
use crate::token_bucket::TokenBucket;

/// What leads from a datagram of extended framing to its connection, and what others may ask for.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Connections by the indices under which their peers send.
    pub(super) indices: HashMap<u32, ConnectionId>,
    /// Connections with sessions by the tunnel addresses of their peers.
    pub(super) greetable: HashMap<IpAddr, Vec<ConnectionId>>,
    pub(super) secret: Secret,
    /// By what those know this host who ask for a session and have no connection yet.
    pub(super) inviter: Identity,
    /// How often unknown indices are answered, and believed to be unknown to a peer.
    pub(super) unknown: TokenBucket,
    /// Origins that have proved to be a peer's.
    pub(super) path_requests: VecDeque<PathRequest>,
}

impl Sessions {
    pub(super) fn new(secret: Secret) -> Self {
        Self {
            indices: HashMap::new(),
            greetable: HashMap::new(),
            // No connection has this number.
            inviter: Identity::derive(&secret, u64::MAX, 0),
            secret,
            unknown: TokenBucket::new(10, Duration::from_millis(100)),
            path_requests: VecDeque::new(),
        }
    }
}
