//! What paths have lost is sent again, on the path by which it arrives first and before all that waits for it.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::paced::IPV4_UDP;
use super::repair::Repair;
use super::side::TransmitSide;
use super::stages::{Again, Committed};
use crate::id::{ConnectionId, MAX_PATHS, PathId};
use crate::path::repair_deadline;
use crate::scheduler::earliest::Earliest;
use crate::time::Instant;
use crate::tx::rates::least_round_trip;
use crate::tx::repair::{Kept, RepairStats, StoreStats};
use crate::tx::transmit::Keep;

/// A packet is sent so often at the most.
const MOST_TIMES: u8 = 4;

/// What a path leaves behind is sent again so long after it was sent first at the most: it may have stood in a queue.
const LEFT_DEADLINE: Duration = Duration::from_millis(500);

/// Why a packet is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// This path has lost it.
    Lost(PathId),
    /// Its path is left.
    Left,
}

impl TransmitSide {
    /// What the peer has just told to be lost is sent again.
    pub(super) fn repair(&mut self, now: Instant, id: ConnectionId) {
        let Some(half) = self.connections.get_mut(id.index()) else { return };
        let Some((path, block)) = half.repair.take_told() else { return };
        self.unacknowledged.on_report(id, path, &block, &mut self.missing);
        self.resend(now, id, Reason::Lost(path));
    }

    /// What was sent on paths that are left, and is not acknowledged, is sent again.
    pub(super) fn resend_left(&mut self, id: ConnectionId) {
        let half = self.connections.get_mut(id.index());
        let Some((paths, now)) = half.and_then(|half| half.fail_over.take_left()) else { return };
        for path in (0..MAX_PATHS as u8).filter(|path| paths >> path & 1 != 0) {
            self.unacknowledged.on_left(id, PathId(path), &mut self.missing);
        }
        self.resend(now, id, Reason::Left);
    }

    fn resend(&mut self, now: Instant, id: ConnectionId, reason: Reason) {
        let Some(half) = self.connections.get_mut(id.index()) else { return };
        for place in self.missing.drain(..) {
            if let Some((kept, packet)) = self.unacknowledged.get(place) {
                half.resend(now, &kept, packet, reason);
            }
        }
    }

    /// How many packets are kept that are not acknowledged, of all connections.
    pub fn store_stats(&self) -> StoreStats {
        self.unacknowledged.stats()
    }
}

impl TransmitHalf {
    /// Whether what is lost is repaired.
    #[inline]
    pub(super) fn is_repaired(&self) -> bool {
        self.repairs
            && self.repair.has_peer()
            && self.paced.is_some()
            && self.scheduler.earliest().is_some_and(Earliest::repairs)
    }

    /// What became of lost packets in this session.
    pub fn repair_stats(&self) -> RepairStats {
        self.repair.stats
    }

    /// Whether a copy of a packet that has waited is kept: copies that are sent for other reasons than loss are not missed.
    pub(super) fn keep_waited(&self, of_train: bool, again: Option<Again>) -> Keep {
        match self.keep() {
            Keep::UntilTold(_) if of_train || again.is_some_and(|again| again.is_second) => {
                Keep::Not
            }
            Keep::UntilTold(_) => Keep::UntilTold(again.map(|again| (again.first, again.times))),
            keep @ (Keep::Not | Keep::Briefly) => keep,
        }
    }

    /// The share of datagrams that a path loses.
    fn loss(&self, path: PathId) -> f64 {
        self.paths.get(path.index()).map_or(0.0, |path| path.feedback.loss_expected())
    }

    /// A packet is sent again, unless that is too late or too much.
    fn resend(&mut self, now: Instant, kept: &Kept, packet: &[u8], reason: Reason) {
        if !self.is_repaired() {
            return;
        }
        if let Reason::Lost(_) = reason {
            self.repair.stats.lost += 1;
        }
        let deadline = match reason {
            Reason::Lost(_) => repair_deadline(least_round_trip(&self.paths)),
            Reason::Left => LEFT_DEADLINE,
        };
        let stamp = self.framing.again(&kept.stamp);
        let in_time = now.since(kept.first) <= deadline && kept.times + 1 < MOST_TIMES;
        let Some(stamp) = stamp.filter(|_| in_time) else {
            self.repair.stats.too_late += 1;
            return;
        };
        let wire_len = stamp.overhead() + packet.len() + IPV4_UDP;
        let best = self.scheduler.earliest().map(|earliest| earliest.best_ahead(now, wire_len));
        let Some([Some(first), second]) = best else { return };
        let second = match reason {
            Reason::Lost(by) => second.filter(|_| Repair::doubles(self.loss(by), self.loss(first))),
            Reason::Left => None,
        };
        // What a path leaves behind is known to be as much as it had in flight.
        if matches!(reason, Reason::Lost(_)) && !self.repair.take(wire_len) {
            self.repair.stats.over_budget += 1;
            return;
        }
        let second = second.filter(|_| self.repair.take(wire_len));
        for (path, is_second) in [(Some(first), false), (second, true)] {
            let Some(path) = path else { continue };
            let again = Again { first: kept.first, times: kept.times + 1, is_second };
            self.commit_again(now, path, again, (packet, kept.tos, stamp));
        }
        let stats = &mut self.repair.stats;
        match reason {
            Reason::Lost(_) => stats.repaired += 1,
            Reason::Left => stats.moved += 1,
        }
        stats.doubled += u64::from(second.is_some());
    }

    /// A packet leaves as the next of a path, once more.
    fn commit_again(
        &mut self,
        now: Instant,
        path: PathId,
        again: Again,
        (packet, tos, stamp): (&[u8], u8, crate::framing::Stamp),
    ) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        let place = paced.store.take(packet.len());
        paced.store.fill(place, |bytes| {
            bytes.copy_from_slice(packet);
            stamp.may_be_partial()
        });
        let sender = &mut self.paths[path.index()];
        let wire_len = sender.wire_len(stamp.overhead() + packet.len());
        sender.resent += 1;
        self.repair.stats.bytes += wire_len as u64;
        earliest.commit_ahead(now, path, wire_len);
        let (ahead, is_copy, again) = (true, true, Some(again));
        let committed = Committed::new(place, stamp, tos, wire_len);
        paced.push(path, Committed { ahead, is_copy, again, ..committed });
        paced.wake_at(earliest.next(path));
    }
}
