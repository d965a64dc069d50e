//! What is small and critical takes two paths at once: if it were lost, a flow would wait for much longer than the round trip
//! that a repair takes.
//!
//! That is what begins and ends a TCP connection, names, an acknowledgement after a pause, behind which nothing may follow,
//! and the first packets of a flow on a path that was left lately. It leaves before all that waits, and counts as
//! what may be sent again does ([`Spare`](super::repair::Spare)). The peer drops the copy that comes second.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::paced::IPV4_UDP;
use super::repair::{Again, CopyKind};
use super::stages::{Committed, Offered};
use crate::class::{Class, RepairMode};
use crate::framing::datagram::Item;
use crate::id::PathId;
use crate::path::patience::Patience;
use crate::queue::Volume;
use crate::scheduler::earliest::Earliest;
use crate::sequence::Seq;
use crate::time::Instant;
use crate::wire::segment::Segment;
use crate::wire::short::Short;

/// An acknowledgement is alone if nothing was sent for so long before it.
const ALONE: Duration = Duration::from_millis(20);

/// Longer packets do not take two paths because a path is suspected.
const LONGEST: usize = 600;

impl TransmitHalf {
    /// Whether a packet is so small and critical that it is to take two paths.
    #[inline]
    pub(super) fn is_critical(&mut self, now: Instant, item: &Item<'_>, volume: Volume) -> bool {
        let last = self.paced.as_mut().map(|paced| std::mem::replace(&mut paced.offered_at, now));
        let is_critical = match item.short() {
            Short::Segment(Segment::Syn | Segment::End) | Short::Name => true,
            Short::Segment(Segment::Ack(_)) => last.is_some_and(|last| now.since(last) >= ALONE),
            Short::Segment(_) | Short::Other => {
                volume == Volume::Sparse
                    && now < self.fail_over.suspicion
                    && item.packet.len() <= LONGEST
            }
        };
        is_critical && self.is_repaired()
    }

    /// Takes a packet that takes two paths, if there are two and so much may be sent. The beginning of a connection takes as
    /// long as the packets behind it, because its sender measures the round trip by it.
    pub(super) fn offer_twice(
        &mut self,
        now: Instant,
        item: &Item<'_>,
        volume: Volume,
        class: Option<(Class, RepairMode)>,
        within: Option<&Earliest>,
    ) -> Option<Offered> {
        let (len, tos) = (item.packet.len(), item.inner.tos);
        let wire_len = self.framing.overhead() + len + IPV4_UDP;
        let among = within.or(self.scheduler.earliest())?;
        let [Some(first), Some(second)] = among.best_ahead(now, wire_len) else { return None };
        let is_suspect = |path: PathId| self.paths[path.index()].patience.is_suspect(now);
        let is_sure = matches!(item.short(), Short::Segment(_) | Short::Name);
        if !is_sure && class.is_none() && !is_suspect(first) {
            return None;
        }
        // A call takes twice its bytes as long as nothing else would have to wait for that.
        let is_free = match class {
            Some((_, RepairMode::Duplicate)) => true,
            Some(_) => !self.scheduler.earliest()?.is_busy(),
            None => false,
        };
        if !is_free && !self.paths[first.index()].spare.take_beside_repairs(wire_len) {
            self.repair.stats.duplicated.refused += 1;
            return None;
        }
        let stamp = self.framing.number(item)?;
        if let Some((class, _)) = class {
            self.counts_of(class).duplicated += 1;
        }
        let paced = self.paced.as_mut()?;
        let stamp = if paced.equalise.has_flag(volume) { stamp.equalised() } else { stamp };
        let places = [paced.store.take(len), paced.store.take(len)];
        paced.twin = Some(places.into());
        self.repair.twins.on_sent(stamp.sequence().map_or(0, Seq::value));
        for (place, path, is_copy) in [(places[0], first, false), (places[1], second, true)] {
            let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut())
            else {
                continue;
            };
            let is_out_of_turn = is_copy || paced.has_committed(path);
            let stamp = if is_out_of_turn { stamp.out_of_turn() } else { stamp };
            let sender = &mut self.paths[path.index()];
            let wire_len = sender.wire_len(stamp.overhead() + len);
            let kind = CopyKind::Duplicate;
            let again = Some(Again { first: now, times: 0, kind, is_second: is_copy });
            earliest.commit_ahead(now, path, wire_len);
            let committed = Committed::new(place, stamp, tos, wire_len);
            let class = class.filter(|_| within.is_some()).map(|(class, _)| class);
            paced.push(path, Committed { ahead: true, is_copy, again, class, ..committed });
            paced.wake_at(earliest.next(path));
            if is_copy {
                sender.resent += 1;
                self.repair.stats.duplicated.tried += 1;
                self.repair.stats.duplicated.bytes += wire_len as u64;
            }
        }
        Some(Offered::Later(places[0]))
    }

    /// Whether a flow has to be known of each packet, because of a path that is suspected.
    #[inline]
    pub(super) fn suspects(&self, now: Instant) -> bool {
        now < self.fail_over.suspicion
            && self.scheduler.earliest().is_some_and(Earliest::has_several)
    }

    /// A path is left: for a while it is suspected.
    pub(super) fn suspect(&mut self, now: Instant) {
        self.fail_over.suspicion = now + Patience::SUSPECTED;
    }
}
