//! One peer: the combined view of both halves.

use std::time::Duration;

use crate::class::FlowStats;
use crate::config::ReorderConfig;
use crate::id::PathId;
use crate::measure::Reordering;
use crate::path::PathState;
use crate::path::estimator::Quality;
use crate::rx::connection::ReceiveHalf;
use crate::rx::handshakes::SealedStatus;
use crate::rx::measured::ReceiveQuality;
use crate::sequence::Seq;
use crate::stats::{ConnectionStats, PathStats};
use crate::time::Instant;
use crate::tx::beyond::Beyond;
use crate::tx::connection::TransmitHalf;
use crate::tx::feedback::TransmitQuality;
use crate::tx::repair::{ClassStats, RepairStats};
use crate::tx::standing::{PathStanding, QueueStanding};
use crate::wire::extended::settings::Settings;

/// The association with one peer: a look at its two halves.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'e> {
    tx: &'e TransmitHalf,
    rx: &'e ReceiveHalf,
}

/// What one path is and has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// What it is.
    pub state: PathState,
    /// Its share of packets.
    pub weight: u16,
    /// When it was last heard.
    pub last_heard: Option<Instant>,
    /// What it has carried.
    pub stats: PathStats,
    /// What it does to what the peer sends on it.
    pub quality: Quality,
}

impl<'e> Connection<'e> {
    pub(crate) fn new(tx: &'e TransmitHalf, rx: &'e ReceiveHalf) -> Self {
        Self { tx, rx }
    }

    /// Its paths. One that is about to go is there for as long as both halves have to do with it.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + use<'e> {
        let Self { tx, rx } = *self;
        tx.paths().filter(|path| rx.has(*path))
    }

    /// What a path is and has done.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path(&self, path: PathId) -> PathView {
        let (sent, received) = (self.tx.path_stats(path), self.rx.path_stats(path));
        PathView {
            state: self.rx.state(path),
            weight: self.tx.weight(path),
            last_heard: self.rx.last_heard(path),
            stats: PathStats {
                received: received.received,
                control_received: received.control_received,
                keepalives_received: received.keepalives_received,
                ..sent
            },
            quality: self.rx.quality(path),
        }
    }

    /// How its packets were ordered when they came. See [`ReceiveHalf::reordering`].
    pub fn reordering(&self) -> Reordering {
        self.rx.reordering()
    }

    /// The same of those that came by a path. See [`ReceiveHalf::path_reordering`].
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path_reordering(&self, path: PathId) -> Reordering {
        self.rx.path_reordering(path)
    }

    /// What the connection has carried.
    pub fn stats(&self) -> ConnectionStats {
        let (sent, received) = (self.tx.stats(), self.rx.stats());
        let mut drops = sent.drops;
        drops += received.drops;
        ConnectionStats { sent: sent.sent, drops, ..received }
    }

    /// See [`ReceiveHalf::peer_settings`].
    pub fn peer_settings(&self, path: PathId) -> Option<(Settings, Option<Duration>)> {
        self.rx.peer_settings(path)
    }

    /// See [`ReceiveHalf::receive_quality`].
    pub fn receive_quality(&self, path: PathId) -> Option<ReceiveQuality> {
        self.rx.receive_quality(path)
    }

    /// See [`TransmitHalf::waiting`].
    pub fn waiting(&self) -> usize {
        self.tx.waiting()
    }

    /// See [`TransmitHalf::transmit_quality`].
    pub fn transmit_quality(&self, now: Instant, path: PathId) -> Option<TransmitQuality> {
        self.tx.transmit_quality(now, path)
    }

    /// See [`TransmitHalf::standing`].
    pub fn standing(&self, now: Instant, path: PathId) -> Option<PathStanding> {
        self.tx.standing(now, path)
    }

    /// See [`TransmitHalf::queue_standing`].
    pub fn queue_standing(&self) -> Option<QueueStanding> {
        self.tx.queue_standing()
    }

    /// See [`TransmitHalf::beyond`].
    pub fn beyond(&self) -> Beyond {
        self.tx.beyond()
    }

    /// See [`TransmitHalf::repair_stats`].
    pub fn repair_stats(&self) -> RepairStats {
        self.tx.repair_stats()
    }

    /// See [`TransmitHalf::class_stats`].
    pub fn class_stats(&self) -> impl Iterator<Item = (&'e str, ClassStats)> + use<'e> {
        self.tx.class_stats()
    }

    /// See [`TransmitHalf::flows`].
    pub fn flows(&self, now: Instant, within: Duration, most: usize) -> Vec<FlowStats> {
        self.tx.flows(now, within, most)
    }

    /// Bytes of memory that both halves take.
    pub fn memory(&self) -> usize {
        self.tx.memory() + self.rx.memory()
    }

    /// Whether datagrams are sent in a session of extended framing.
    pub fn has_session(&self) -> bool {
        self.tx.has_session()
    }

    /// See [`ReceiveHalf::sealed`].
    pub fn sealed(&self) -> Option<SealedStatus> {
        self.rx.sealed()
    }

    /// The settings of its reorder buffer.
    pub fn reorder_config(&self) -> &'e ReorderConfig {
        self.rx.reorder_config()
    }

    /// The sequence number expected next, once one has been received.
    pub fn expected(&self) -> Option<Seq> {
        self.rx.expected()
    }

    /// How many bytes of GRE header stand before each inner packet it sends.
    pub fn header_len(&self) -> usize {
        self.tx.header_len()
    }
}
