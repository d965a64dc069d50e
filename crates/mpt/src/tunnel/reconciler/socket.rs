//! The sockets of a tunnel: opened for the first path that needs one, shared with others, and closed
//! some time after the last.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpt_io::udp::{self, Socket};
use mpt_proto::SocketId;

use super::numbers::Numbers;
use crate::config;
use crate::mark::MARK;
use crate::tunnel::op::TunnelOp;

/// Wanted for each socket buffer, in bytes: what arrives at 1 Gbit/s while the machine stalls for
/// 30 ms. For sending it is as much that may wait for a slow interface before datagrams are dropped.
const SOCKET_BUFFER: usize = 4 << 20;

/// How long a socket stays open after its last path: longer than datagrams are in flight.
const LINGER: Duration = Duration::from_secs(3);

/// The most sockets of a tunnel at a time.
const MAX_SOCKETS: u16 = 4096;

/// The identity of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Its own address and port.
    pub(super) local: SocketAddr,
    /// The interface it is bound to, with the number that this has: an interface of that name that
    /// comes later is another one.
    pub(super) interface: Option<(String, u32)>,
}

impl Key {
    /// The socket for `local`, or for all addresses of the version of `remote`.
    pub(super) fn new(
        local: Option<IpAddr>,
        remote: IpAddr,
        port: u16,
        interface: Option<(String, u32)>,
    ) -> Self {
        let any = match remote {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self { local: SocketAddr::new(local.unwrap_or(any), port), interface }
    }

    /// Whether the socket of a path with these settings can be of this kind, but for the port.
    pub(super) fn may_be_of(&self, path: &config::Path) -> bool {
        let own = self.local.ip();
        path.local.map_or(own.is_unspecified(), |local| local == own)
            && path.interface.as_ref() == self.interface.as_ref().map(|(name, _)| name)
    }
}

/// The sockets that are open.
#[derive(Debug)]
pub(super) struct Opened {
    numbers: Numbers,
    sockets: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    id: SocketId,
    users: usize,
    /// When to close it because it is unused.
    until: Option<Instant>,
}

impl Opened {
    pub(super) fn new() -> Self {
        Self { numbers: Numbers::below(MAX_SOCKETS), sockets: Vec::new() }
    }

    /// The socket of that kind, for one more path. A further one is opened by a step.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub(super) fn take(
        &mut self,
        now: Instant,
        key: &Key,
        offloads: config::Offloads,
        step: &mut dyn FnMut(TunnelOp),
    ) -> anyhow::Result<SocketId> {
        if let Some(entry) = self.sockets.iter_mut().find(|entry| entry.key == *key) {
            entry.users += 1;
            entry.until = None;
            return Ok(entry.id);
        }
        // An unused socket may block one that is needed now.
        self.close_idle(now, step);
        let socket = Socket::open(&udp::Options {
            device: key.interface.as_ref().map(|(name, _)| name.clone()),
            mark: Some(MARK),
            buffer_bytes: SOCKET_BUFFER,
            icmp: true,
            segmentation: offloads.gso,
            coalescing: offloads.gro,
            ..udp::Options::new(key.local)
        })?;
        let Some(number) = self.numbers.take(now) else {
            anyhow::bail!("a tunnel has at most {MAX_SOCKETS} sockets");
        };
        let id = SocketId(number);
        self.sockets.push(Entry { key: key.clone(), id, users: 1, until: None });
        step(TunnelOp::OpenSocket { id, socket: Arc::new(socket) });
        Ok(id)
    }

    /// One more path uses a socket that is open.
    pub(super) fn share(&mut self, id: SocketId) {
        if let Some(entry) = self.sockets.iter_mut().find(|entry| entry.id == id) {
            entry.users += 1;
            entry.until = None;
        }
    }

    /// The kind of a socket that is open.
    pub(super) fn key(&self, id: SocketId) -> Option<&Key> {
        self.sockets.iter().find(|entry| entry.id == id).map(|entry| &entry.key)
    }

    /// A path does not use a socket any more.
    pub(super) fn give_back(&mut self, now: Instant, id: SocketId) {
        if let Some(entry) = self.sockets.iter_mut().find(|entry| entry.id == id) {
            entry.users -= 1;
            if entry.users == 0 {
                entry.until = Some(now + LINGER);
            }
        }
    }

    /// Closes what no path uses.
    pub(super) fn close_idle(&mut self, now: Instant, step: &mut dyn FnMut(TunnelOp)) {
        self.close(|entry| entry.users == 0, now, step);
    }

    /// Closes what has not been used for a while.
    pub(super) fn on_timeout(&mut self, now: Instant, step: &mut dyn FnMut(TunnelOp)) {
        self.close(|entry| entry.until.is_some_and(|until| until <= now), now, step);
    }

    /// When there is something to close.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sockets.iter().filter_map(|entry| entry.until).min()
    }

    fn close(
        &mut self,
        over: impl Fn(&Entry) -> bool,
        now: Instant,
        step: &mut dyn FnMut(TunnelOp),
    ) {
        for entry in self.sockets.extract_if(.., |entry| over(entry)) {
            step(TunnelOp::CloseSocket { id: entry.id });
            self.numbers.give_back(now, entry.id.0);
        }
    }
}
