//! The templates of accepted peers, and what asks to connect by one.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::demux::address::Origin;
use crate::id::{AcceptId, SocketId};
use crate::prefix::Prefix;
use crate::stats::Drop;
use crate::time::Instant;
use crate::token_bucket::TokenBucket;
use crate::wire::extended::hello::Hello;

/// A template of accepted peers.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptConfig {
    /// Its number, which no other has.
    pub id: AcceptId,
    /// The sockets that accept connect requests.
    pub sockets: Vec<SocketId>,
    /// The tunnel addresses that may connect.
    pub peers: Vec<Prefix>,
    /// The source addresses from which they may connect; empty is any.
    pub sources: Vec<Prefix>,
    /// The GRE key of their datagrams, if they have one.
    pub key: Option<u32>,
    /// Whether keepalives ask to connect: unless extended framing alone is used.
    pub by_keepalive: bool,
    /// Whether hellos do: unless plain framing is used.
    pub by_hello: bool,
    /// The most connections at a time.
    pub max_connections: u16,
    /// The most paths of one of them.
    pub max_paths: u8,
    /// The average time between two accepted connect requests.
    pub interval: Duration,
    /// How many are accepted at once after an idle time, at least 1.
    pub burst: u32,
}

impl AcceptConfig {
    /// Whether somebody may connect from this outer address.
    pub(super) fn admits(&self, remote: IpAddr) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|source| source.contains(remote))
    }
}

/// A connect request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// By which template.
    pub accept: AcceptId,
    /// The socket at which it arrived.
    pub socket: SocketId,
    /// Where it came from.
    pub remote: SocketAddr,
    /// The tunnel address of its sender.
    pub peer: IpAddr,
    /// The reason of a refusal: [`Drop::AcceptFull`] or [`Drop::AcceptRate`]. It is reported every
    /// ten seconds at most, and counted each time.
    pub refused: Option<Drop>,
}

#[derive(Debug)]
pub(super) struct Template {
    pub(super) config: AcceptConfig,
    pub(super) bucket: TokenBucket,
    /// How many connections it has made.
    pub(super) connections: usize,
    /// When a refusal may be reported again.
    pub(super) quiet_until: Instant,
}

/// What says who wants to connect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) key: Option<u32>,
    /// The tunnel addresses of its sender, and of this host.
    pub(super) peer: IpAddr,
    pub(super) own: IpAddr,
    pub(super) has_sessions: bool,
}

impl Caller {
    pub(super) fn of(hello: &Hello) -> Self {
        let Hello { sender, receiver, key, .. } = *hello;
        Self { key, peer: sender, own: receiver, has_sessions: true }
    }
}

impl Template {
    pub(super) fn fits(&self, origin: Origin, caller: Caller) -> bool {
        let AcceptConfig { sockets, peers, key, by_keepalive, by_hello, .. } = &self.config;
        let may_ask = if caller.has_sessions { *by_hello } else { *by_keepalive };
        *key == caller.key
            && may_ask
            && sockets.contains(&origin.socket)
            && peers.iter().any(|peer| peer.contains(caller.peer))
            && self.config.admits(origin.remote.ip())
    }
}
