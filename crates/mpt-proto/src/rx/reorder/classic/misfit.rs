//! Numbers that do not fit the order: late, strays, and the beginning of another order.

use super::left::Left;
use super::restart_detector::{self, Verdict};
use super::{ClassicOrder, first};
use crate::config::Late;
use crate::id::PathId;
use crate::rx::reorder::arrived::Accepted;
use crate::rx::reorder::history::CLASSIC_REACH as REACH;
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::stats::Drop;
use crate::time::Instant;

impl ClassicOrder {
    /// A number from behind, or out of all reach.
    pub(super) fn misfit(
        &mut self,
        now: Instant,
        path: PathId,
        seq: Seq,
        offset: i32,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        let behind = (-REACH..0).contains(&offset);
        // A peer that announced a restart begins at 0, wherever a former order ended.
        if !behind
            && !self.restart_detector.is_announced(seq, false)
            && let Some(left) = self.left.take(now, seq)
        {
            self.leave_for(now, left.next, left.packets, sink);
            return match seq.offset_from(left.next) {
                0.. => self.fit(now, path, seq, packet, sink).map(|()| Accepted::Return),
                _ => self.late(path, seq, packet, sink).map(|()| Accepted::Return),
            };
        }
        let needed = match behind {
            // A session begins with its numbers, so that in it they never go back.
            true if !self.infers_restarts || now < self.copies_until => u32::MAX,
            true => restart_detector::BEHIND,
            false => restart_detector::STRAYS,
        };
        let missed = behind && !self.history.was_delivered(seq);
        let begin = match self.restart_detector.on_misfit(seq, path, self.live, needed, missed) {
            Verdict::Doubted => None,
            Verdict::Announced => Some(first(seq)),
            Verdict::Confirmed => Some(seq),
        };
        if let Some(begin) = begin {
            let expected = self.restart(now, begin, sink);
            self.fit(now, path, seq, packet, sink)?;
            return Ok(Accepted::Restart { expected });
        }
        if !behind {
            return Err(Drop::Stray);
        }
        if !missed {
            return Err(Drop::Duplicate);
        }
        self.late(path, seq, packet, sink).map(|()| Accepted::Fits)
    }

    /// A number from behind that was not delivered.
    fn late(
        &mut self,
        path: PathId,
        seq: Seq,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Drop> {
        if self.config.late == Late::Drop && !self.tentative.covers(seq) {
            return Err(Drop::Late);
        }
        self.stats.late += 1;
        sink.deliver(packet);
        self.history.set_delivered(seq);
        self.came_by(path, seq);
        Ok(())
    }

    /// Begins to count anew, and returns the number that was expected; what was held is delivered.
    fn restart(&mut self, now: Instant, begin: Seq, sink: &mut impl Sink) -> Seq {
        self.stats.restarts += 1;
        self.leave_for(now, begin, 0, sink)
    }

    /// Goes on with another order at `begin`, in which so many packets have come; which of them were delivered
    /// is not known. Returns the number that was expected.
    fn leave_for(&mut self, now: Instant, begin: Seq, packets: u64, sink: &mut impl Sink) -> Seq {
        self.release_all(sink);
        self.restart_detector.clear();
        self.tentative.clear();
        self.history.clear();
        self.highest.fill(None);
        let accepted = self.stats.in_order + self.stats.reordered + self.stats.late;
        let expected = self.next.replace(begin).unwrap_or(begin);
        let packets_left = accepted.wrapping_sub(self.begun_at);
        self.left.put(Left { next: expected, packets: packets_left, at: now });
        self.begun_at = accepted.wrapping_sub(packets);
        expected
    }
}
