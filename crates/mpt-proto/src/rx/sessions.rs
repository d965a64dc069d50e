//! What the receive side knows of the sessions of all connections.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::demux::candidate::PathRequest;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::session::Session;
use crate::framing::sealed::handshake::Host;
use crate::id::ConnectionId;
use crate::keys::{HostKeys, PublicKey};
use crate::rx::clients::Clients;
use crate::rx::session::Renewed;
use crate::secret::Secret;
use crate::time::Instant;
use crate::token_bucket::TokenBucket;

/// What leads from a datagram of extended framing to its connection, and what others may ask for.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Connections by the indices under which their peers send, and will in the session after.
    pub(super) indices: HashMap<u32, ConnectionId>,
    /// Connections with sessions by the tunnel addresses of their peers.
    pub(super) greetable: HashMap<IpAddr, Vec<ConnectionId>>,
    pub(super) secret: Secret,
    /// This host with its keys, if it has any.
    pub(super) host: Option<Box<Host>>,
    /// Connections by the static keys of their peers.
    pub(super) keys: HashMap<PublicKey, ConnectionId>,
    /// The clients that may become connections.
    pub(super) clients: Clients,
    /// The time since 1970 at a moment of the core's clock, as its owner said last.
    pub(super) wall_clock: Option<(Instant, Duration)>,
    /// By what those know this host who ask for a session and have no connection yet.
    pub(super) inviter: Identity,
    /// How often unknown indices are answered, and believed to be unknown to a peer.
    pub(super) unknown: TokenBucket,
    /// Origins that have proved to be a peer's.
    pub(super) path_requests: VecDeque<PathRequest>,
}

impl Sessions {
    pub(super) fn new(secret: Secret, keys: Option<&HostKeys>) -> Self {
        Self {
            indices: HashMap::new(),
            greetable: HashMap::new(),
            // No connection has this number.
            inviter: Identity::derive(&secret, u64::MAX, 0),
            secret,
            host: keys.map(|keys| Box::new(Host::new(keys))),
            keys: HashMap::new(),
            clients: Clients::default(),
            wall_clock: None,
            unknown: TokenBucket::new(10, Duration::from_millis(100)),
            path_requests: VecDeque::new(),
        }
    }

    /// This host has these keys.
    pub(super) fn set_host(&mut self, keys: &HostKeys) {
        self.host = Some(Box::new(Host::new(keys)));
    }

    /// A connection has these indices.
    pub(super) fn add(&mut self, id: ConnectionId, session: &Session) {
        for own in [session.own(), session.next()] {
            self.indices.insert(own.index, id);
        }
    }

    /// A connection is gone.
    pub(super) fn remove(&mut self, session: &Session) {
        for own in [session.own(), session.next()] {
            self.indices.remove(&own.index);
        }
    }

    /// A connection has other indices, if any.
    pub(super) fn renew(&mut self, id: ConnectionId, renewed: Option<Renewed>) {
        if let Some(Renewed { gone, next }) = renewed {
            self.indices.remove(&gone);
            self.indices.insert(next, id);
        }
    }
}
