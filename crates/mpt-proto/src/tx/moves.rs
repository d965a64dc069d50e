//! What is committed to a path moves to others when that is not used any more, or has become so slow that it arrives
//! earlier by another one.
//!
//! A packet that moves keeps its number, so it may leave after higher ones on its path. The peer would take it for lost.
//! So until it must have arrived, everything leaves with the flag *out of turn*, and no number that is missing is taken
//! for lost because of it.
//!
//! Where each packet takes all paths, the copies are made here.

use std::time::Duration;

use super::classify::allowed;
use super::connection::TransmitHalf;
use super::stages::Committed;
use crate::id::PathId;
use crate::queue::Volume;
use crate::stats::Drop;
use crate::time::Instant;

/// A packet moves only if it arrives so much earlier.
const EARLIER: Duration = Duration::from_millis(5);

/// No more move at once, so that a call takes no longer than a millisecond.
const MOST: usize = 4096;

impl TransmitHalf {
    /// What is committed to paths that are not used any more goes by the others; it is dropped only if there are none.
    pub(super) fn move_homeless(&mut self, now: Instant) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        let mut homeless = Vec::new();
        for (index, lane) in paced.committed.iter_mut() {
            if !earliest.has(PathId(index as u8)) {
                homeless.extend(lane.drain(..));
            }
        }
        if homeless.is_empty() {
            return;
        }
        if earliest.soonest(now, 0).is_none() {
            let once = homeless.iter().filter(|committed| !committed.is_copy);
            once.for_each(|_| self.drops.add(Drop::NoPath));
            return self.clear_paced();
        }
        for committed in homeless {
            let allowed = committed.class.and_then(|class| allowed(&self.paths, class));
            let path = match allowed {
                Some(allowed) => earliest.within(allowed).soonest(now, committed.wire_len),
                None => earliest.soonest(now, committed.wire_len),
            };
            let Some(path) = path else {
                paced.store.give_back(committed.place);
                if !committed.is_copy {
                    self.drops.add(Drop::ClassPath);
                }
                continue;
            };
            earliest.commit(now, path, committed.wire_len);
            paced.adopt(path, committed);
        }
        paced.wake_at(now);
    }

    /// A packet that takes one path takes all others that have room, where the scheduler says so.
    pub(super) fn commit_copies(&mut self, now: Instant, path: PathId, committed: Committed) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        if !earliest.copies() {
            return self.gather(now, path, committed);
        }
        let allowed = committed.class.and_then(|class| allowed(&self.paths, class));
        let may = |other: &PathId| allowed.is_none_or(|allowed| allowed >> other.0 & 1 != 0);
        let others: Vec<PathId> = earliest.copied_to(now, path).filter(may).collect();
        for other in others {
            let place = paced.store.copy(committed.place);
            let len = paced.store.get(place).0.len();
            let wire_len = self.paths[other.index()].wire_len(committed.stamp.overhead() + len);
            earliest.commit(now, other, wire_len);
            paced.push(other, Committed { place, wire_len, is_copy: true, ..committed });
            self.paths[other.index()].resent += 1;
        }
    }

    /// The rates of the paths have changed: what arrives earlier by another path than that which it is committed to
    /// moves there, last ones first.
    pub(super) fn move_earlier(&mut self, now: Instant) {
        let (Some(paced), Some(earliest)) = (&mut self.paced, self.scheduler.earliest_mut()) else {
            return;
        };
        if earliest.copies() {
            return;
        }
        // The peer holds packets of bulk flows until then.
        let equal = now + paced.equalise.of(Volume::Bulk).unwrap_or_default();
        for _ in 0..MOST {
            let Some((path, arrival)) = earliest.latest(now) else { return };
            let Some(last) = paced.last(path) else { return };
            let Some((other, earlier)) = earliest.soonest_but(now, last.wire_len, path) else {
                return;
            };
            let class = last.class.and_then(|class| allowed(&self.paths, class));
            if class.is_some_and(|allowed| allowed >> other.0 & 1 == 0) {
                return;
            }
            if earlier.max(equal) + EARLIER >= arrival {
                return;
            }
            let Some(committed) = paced.take_last(path) else { return };
            earliest.take_back(path, committed.wire_len);
            earliest.commit(now, other, committed.wire_len);
            paced.adopt(other, committed);
            paced.wake_at(now);
        }
    }
}
