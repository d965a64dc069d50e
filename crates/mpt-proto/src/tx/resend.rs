//! What paths have lost is sent again, on the path by which it arrives first and before all that waits for it.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::paced::IPV4_UDP;
use super::repair::{Again, CopyKind, DEADLINE, Fate, Repair, Seen};
use super::side::TransmitSide;
use super::stages::Committed;
use crate::class::Class;
use crate::id::{ConnectionId, MAX_PATHS, PathId};
use crate::scheduler::earliest::Earliest;
use crate::sequence::Seq;
use crate::time::Instant;
use crate::tx::repair::{Covered, Kept, RepairStats, StoreStats};
use crate::tx::transmit::Keep;

/// A packet is sent so often at the most.
const MOST_TIMES: u8 = 4;

/// Why a packet is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// This path has lost it.
    Lost(PathId),
    /// It is late by this path, and more likely lost.
    Late(PathId),
    /// Its path is left.
    Left,
    /// This path is in doubt.
    Doubted(PathId),
}

impl Reason {
    /// The path by which it did not come; `None` if that is left, or may soon be.
    fn by(self) -> Option<PathId> {
        match self {
            Self::Lost(path) | Self::Late(path) => Some(path),
            Self::Left | Self::Doubted(_) => None,
        }
    }
}

impl TransmitSide {
    /// What the peer has just told to be lost is sent again.
    pub(super) fn repair(&mut self, now: Instant, id: ConnectionId) {
        let Some(half) = self.connections.get_mut(id.index()) else { return };
        let Some((path, block)) = half.repair.take_told() else { return };
        let sender = &mut half.paths[path.index()];
        let loss = sender.feedback.loss_recent().unwrap_or(0.0);
        let deviation = sender.feedback.delay().map_or(Duration::ZERO, |delay| delay.deviation);
        sender.overtaken.set(loss, deviation);
        let (overtaken, late) = (&mut sender.overtaken, &mut self.late);
        if overtaken.applies() {
            half.repair.stats.needless +=
                self.unacknowledged.on_missing(id, path, &block, overtaken, late);
        }
        let stats = &mut half.repair.stats;
        let (twins, groups) = (&mut half.repair.twins, &mut half.repair.groups);
        groups.on_report(path, &block);
        let saved = |kind, kept: &Kept| match kind {
            CopyKind::Lost | CopyKind::Left => stats.of(kind).saved += 1,
            CopyKind::Duplicate => {
                let fate = twins.on_known(kept.number(), true);
                stats.duplicated.saved += u64::from(fate == Fate::One);
                stats.duplicated.in_vain += u64::from(fate == Fate::Both);
            }
            CopyKind::Covered => {
                groups.on_known(path, Seq::new(kept.number()), true);
            }
        };
        self.unacknowledged.on_report(id, path, &block, &mut self.missing, saved);
        half.refresh_classes();
        self.resend(now, id, Reason::Lost(path));
        // What is certain comes first, as far as bytes are left for it.
        std::mem::swap(&mut self.missing, &mut self.late);
        self.resend(now, id, Reason::Late(path));
    }

    /// What was sent on paths that are left, and is not acknowledged, is sent again.
    pub(super) fn resend_left(&mut self, id: ConnectionId) {
        let Some(half) = self.connections.get_mut(id.index()) else { return };
        if let Some((paths, now)) = half.doubts.take() {
            for path in (0..MAX_PATHS as u8).filter(|path| paths >> path & 1 != 0).map(PathId) {
                self.unacknowledged.on_doubted(id, path, &mut self.missing);
                self.resend(now, id, Reason::Doubted(path));
            }
        }
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
                let is_sent = half.resend(now, &kept, packet, reason);
                if is_sent && matches!(reason, Reason::Late(_) | Reason::Doubted(_)) {
                    self.unacknowledged.take_for_lost(place);
                }
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
    pub fn is_repaired(&self) -> bool {
        self.repairs
            && self.repair.has_peer()
            && self.paced.is_some()
            && self.scheduler.earliest().is_some_and(Earliest::repairs)
    }

    /// What became of lost packets.
    pub fn repair_stats(&self) -> RepairStats {
        self.repair.stats()
    }

    /// Whether a copy of a packet that has waited is kept: copies that are sent for other reasons than loss are not missed.
    pub(super) fn keep_waited(&self, of_train: bool, again: Option<Again>) -> Keep {
        match self.keep() {
            Keep::UntilTold(_) if of_train || again.is_some_and(Again::is_not_missed) => Keep::Not,
            Keep::UntilTold(_) => Keep::UntilTold(again),
            keep @ (Keep::Not | Keep::Briefly) => keep,
        }
    }

    /// The share of datagrams that a path loses.
    fn loss(&self, path: PathId) -> f64 {
        self.paths.get(path.index()).map_or(0.0, |path| path.feedback.loss_expected())
    }

    /// A packet is sent again, unless that is too late or too much. Returns whether it is.
    fn resend(&mut self, now: Instant, kept: &Kept, packet: &[u8], reason: Reason) -> bool {
        if !self.is_repaired() {
            return false;
        }
        let stats = &mut self.repair.stats;
        let counted = u64::from(matches!(reason, Reason::Lost(_)));
        stats.lost += counted;
        match (kept.kind, reason) {
            (Some(CopyKind::Duplicate), _) => {
                match self.repair.twins.on_known(kept.number(), false) {
                    Fate::Open | Fate::Both => return false,
                    Fate::One => {
                        stats.duplicated.saved += 1;
                        return false;
                    }
                    Fate::None => stats.duplicated.in_vain += 1,
                }
            }
            (Some(CopyKind::Covered), Reason::Lost(by)) => {
                let number = Seq::new(kept.number());
                if self.repair.groups.on_known(by, number, false) == Covered::Saved {
                    stats.parity.saved += 1;
                    if let Some((class, _)) = self.class_of(packet) {
                        self.counts_of(class).lost += 1;
                    }
                    return false;
                }
            }
            (Some(kind), Reason::Lost(_)) => stats.of(kind).in_vain += 1,
            _ => {}
        }
        let (is_late, is_again) = (matches!(reason, Reason::Late(_)), kept.seen == Seen::TakenLost);
        if kept.times == 0 && kept.kind.is_none() && counted > 0 {
            self.repair.latency.on_told(now.since(kept.first));
        }
        let class = self.class_of(packet);
        let minds = class.is_some_and(|(_, wanted)| Self::minds_doubt(wanted));
        if matches!(reason, Reason::Doubted(_)) && !minds {
            return false;
        }
        if let Some((class, wanted)) = class {
            let is_worth = self.is_worth(wanted, now.since(kept.first));
            let counts = self.counts_of(class);
            counts.lost += counted;
            if !is_worth && reason != Reason::Left {
                counts.given_up += if is_again { 0 } else { counted };
                return false;
            }
        }
        if is_again && counted > 0 {
            return false;
        }
        let kind = if reason.by().is_some() { CopyKind::Lost } else { CopyKind::Left };
        let stamp = self.framing.again(&kept.stamp);
        let in_time = now.since(kept.first) <= DEADLINE && kept.times + 1 < MOST_TIMES;
        let Some(stamp) = stamp.filter(|_| in_time) else {
            self.repair.stats.too_late += u64::from(!is_late);
            return false;
        };
        let wire_len = stamp.overhead() + packet.len() + IPV4_UDP;
        let allowed = class.and_then(|(class, _)| self.allowed(class));
        let best = self.scheduler.earliest().map(|earliest| match allowed {
            Some(allowed) => earliest.within(allowed).best_ahead(now, wire_len),
            None => earliest.best_ahead(now, wire_len),
        });
        // Not by the path in doubt.
        let best = best.map(|best| match (best, reason) {
            ([first, second], Reason::Doubted(path)) if first == Some(path) => [second, None],
            (best, _) => best,
        });
        let Some([Some(first), second]) = best else { return false };
        let doubles = |by| Repair::doubles(self.loss(by), self.loss(first));
        let second = second.filter(|_| reason.by().is_some_and(doubles));
        // What a path leaves behind is known to be as much as it had in flight. One in doubt may not be left.
        let charged = match reason {
            Reason::Lost(path) | Reason::Late(path) | Reason::Doubted(path) => Some(path),
            Reason::Left => None,
        };
        let by = charged.and_then(|by| self.paths.get_mut(by.index()));
        let mut spare = by.map(|path| &mut path.spare);
        if spare.as_mut().is_some_and(|spare| !spare.take(wire_len)) {
            self.repair.stats.repaired.refused += u64::from(!is_late);
            return false;
        }
        let second =
            second.filter(|_| spare.is_none_or(|spare| spare.take_beside_repairs(wire_len)));
        for (path, is_second) in [(Some(first), false), (second, true)] {
            let Some(path) = path else { continue };
            let (first, times) = (kept.first, kept.times + 1);
            let again = Again { first, times, kind, is_second };
            let class = class.filter(|_| allowed.is_some()).map(|(class, _)| class);
            self.commit_again(now, path, again, class, (packet, kept.tos, stamp));
        }
        let stats = &mut self.repair.stats;
        stats.of(kind).tried += 1;
        stats.early += u64::from(is_late);
        if let Some((class, _)) = class {
            self.counts_of(class).repaired += 1;
        }
        let stats = &mut self.repair.stats;
        stats.doubled += u64::from(second.is_some());
        true
    }

    /// A packet leaves as the next of a path, once more.
    fn commit_again(
        &mut self,
        now: Instant,
        path: PathId,
        again: Again,
        class: Option<Class>,
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
        self.repair.stats.of(again.kind).bytes += wire_len as u64;
        earliest.commit_ahead(now, path, wire_len);
        let (ahead, is_copy, again) = (true, true, Some(again));
        let committed = Committed::new(place, stamp, tos, wire_len);
        paced.push(path, Committed { ahead, is_copy, again, class, ..committed });
        paced.wake_at(earliest.next(path));
    }
}
