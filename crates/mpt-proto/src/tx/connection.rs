//! The transmit half of a connection: which path, which number, and the keepalives.
//!
//! It alone allocates sequence numbers. What it must know of the receive half comes as
//! [`PathUpdate`](crate::PathUpdate)s.

use std::net::IpAddr;
use std::time::Duration;

use super::path::TransmitPath;
use crate::config::{ConnectionConfig, SchedulerConfig};
use crate::id::PathId;
use crate::peer_kind::PeerKind;
use crate::scheduler::Scheduler;
use crate::sequence::Seq;
use crate::slots::Slots;
use crate::stats::{ConnectionStats, Drop, Drops, PathStats, Traffic};
use crate::time::Instant;
use crate::token_bucket::TokenBucket;
use crate::tx::retransmit::{LossWindow, REACH};
use crate::wire::gre::{self, Header};
use crate::wire::inner::Inner;
use crate::wire::keepalive::Activation;

/// What one connection needs for sending.
#[derive(Debug)]
pub struct TransmitHalf {
    pub(super) peer_kind: PeerKind,
    pub(super) key: Option<u32>,
    pub(super) checksum: bool,
    /// The number of the next datagram, if they are numbered.
    pub(super) next: Option<Seq>,
    /// Whether the peer may be sent the same datagram twice.
    pub(super) repeats: bool,
    /// Whether what is sent is to be kept, because it could be sent again.
    pub(super) keeps: bool,
    /// A path that has been lost, and what of that which was sent on it is in doubt.
    pub(super) lost: Option<(PathId, LossWindow)>,
    pub(super) scheduler: Scheduler,
    pub(super) policy: SchedulerConfig,
    pub(super) paths: Slots<TransmitPath>,
    /// It goes when its last path has told the peer so.
    pub(super) ending: bool,
    /// How often a path that stood by has been called up ([`Activation::calls`]).
    pub(super) calls: u8,
    /// How often all paths may be told at once: 8 times, and then ten times per second.
    pub(super) volley: TokenBucket,
    /// How often the peer's word of a loss has something sent again: 4 times, and then once per second.
    pub(super) words: TokenBucket,
    /// The lost path that was told of last.
    pub(super) told_lost: usize,
    /// Own and the peer's tunnel address, as keepalives name them.
    pub(super) addresses: (IpAddr, IpAddr),
    pub(super) sent: Traffic,
    pub(super) drops: Drops,
}

impl TransmitHalf {
    pub(crate) fn new(
        config: &ConnectionConfig,
        addresses: (IpAddr, IpAddr),
        now: Instant,
    ) -> Self {
        let mut half = Self {
            peer_kind: config.peer_kind,
            key: config.key,
            checksum: config.checksum,
            next: config.sequence.then_some(Seq::FIRST),
            repeats: may_repeat(config),
            keeps: false,
            lost: None,
            scheduler: Scheduler::new(config.scheduler),
            policy: config.scheduler,
            paths: Slots::default(),
            ending: false,
            calls: 0,
            volley: TokenBucket::new(8, Duration::from_millis(100)),
            words: TokenBucket::new(4, Duration::from_secs(1)),
            told_lost: 0,
            addresses,
            sent: Traffic::default(),
            drops: Drops::default(),
        };
        for (id, path) in (0..).map(PathId).zip(&config.paths) {
            half.add_path(id, path, now);
        }
        half
    }

    /// The paths of the connection.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + use<'_> {
        self.paths.iter().map(|(index, _)| PathId(index as u8))
    }

    /// How many bytes of GRE header each inner packet gets.
    pub fn header_len(&self) -> usize {
        gre::options_len(self.checksum, self.key.is_some(), self.next.is_some())
    }

    /// A path's share of packets.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn weight(&self, path: PathId) -> u16 {
        self.paths[path.index()].weight
    }

    /// Whether a path could carry packets, but stands by because one of a better priority carries.
    pub fn standby(&self, path: PathId) -> bool {
        self.scheduler.is_standby(path)
    }

    /// What was sent and what could not be; the rest is known to the receive half.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats { sent: self.sent, drops: self.drops, ..ConnectionStats::default() }
    }

    /// What was sent on a path; the rest is known to the receive half.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        let &TransmitPath { sent, resent, keepalives_sent, .. } = &self.paths[path.index()];
        PathStats { sent, resent, keepalives_sent, ..PathStats::default() }
    }

    /// Bytes of memory that it takes, its own size included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.paths.memory() + self.scheduler.memory()
    }

    /// Decides the path and writes the header for an inner packet. One for which there is no path
    /// takes no number.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, packet: &[u8], inner: &Inner) -> Option<(PathId, Header)> {
        let Inner { protocol, len, .. } = *inner;
        let Some(path) = self.scheduler.select(packet) else {
            self.drops.add(Drop::NoPath);
            return None;
        };
        let sequence = self.next;
        self.next = sequence.map(Seq::next);
        let header = Header { protocol, checksum: self.checksum, key: self.key, sequence };
        self.sent.add(len);
        let size = header.size() + len;
        let sending = &mut self.paths[path.index()];
        sending.sent.add(size);
        sending.black_hole.on_sent(size);
        Some((path, header))
    }

    /// Whether what it transmits is to be kept for a moment: it has another path to be sent again on.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Decides the path for a datagram that is sent again. It keeps its number; `None` if the receiver may no
    /// longer know that.
    pub(crate) fn transmit_again(&mut self, packet: &[u8], header: &Header) -> Option<PathId> {
        let behind = self.next?.value().wrapping_sub(header.sequence?.value());
        if behind > REACH {
            return None;
        }
        let path = self.scheduler.select(packet).filter(|_| self.repeats)?;
        let size = header.size() + packet.len();
        let sending = &mut self.paths[path.index()];
        sending.sent.add(size);
        sending.resent += 1;
        sending.black_hole.on_sent(size);
        Some(path)
    }

    /// A path that has been lost since this was last asked, and what of that which was sent on it is in
    /// doubt.
    pub(crate) fn take_lost(&mut self) -> Option<(PathId, LossWindow)> {
        self.lost.take()
    }

    /// Tells the scheduler which paths there are, and how they are to be used. That one is called up
    /// which stood by is told to the peer at once, on all of them.
    pub(super) fn reschedule(&mut self, now: Instant) {
        let stood_by = self.scheduler.standby();
        let usable = self.paths.iter().filter(|(_, path)| path.usable());
        self.scheduler.set_paths(usable.clone().map(|(id, path)| path.share(PathId(id as u8))));
        self.keeps = self.repeats && usable.clone().nth(1).is_some();
        let stand_by = self.scheduler.standby();
        let usable = usable.fold(0, |bits, (id, _)| bits | 1_u64 << id);
        if stood_by & usable & !stand_by != 0 && self.peer_kind.tells() {
            self.calls = Activation::next(self.calls);
            // Forged keepalives could ask for one volley after the other.
            if !self.volley.take(now) {
                return;
            }
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }
}

/// Whether a peer may be sent the same datagram twice: it drops the second one by its number. One end does
/// not know the other's window; both are taken to be configured alike. Other kinds of peers remember no
/// numbers, and the original takes those a little behind for a restart.
pub(super) fn may_repeat(config: &ConnectionConfig) -> bool {
    config.peer_kind == PeerKind::Mpt && config.sequence && config.reorder.window > 0
}
