//! What has come by one path, and what that says of numbers that have not come.
//!
//! When a number comes by a path, lower ones that are missing will not come by it any more, apart from those that it
//! has overtaken there: the path has *passed* them, as soon as the [margin](super::margin) is over. When it has been
//! here for the path's *wait*, lower ones will not come by any path. Both follow from the same records, of which one
//! is made for each number that comes while lower ones are missing.

use std::collections::VecDeque;
use std::time::Duration;

use super::margin::{LONGEST_WAIT, Margin, SHORTEST_WAIT};
use crate::sequence::Seq;
use crate::time::Instant;

/// Nothing up to a number is to be expected after this one came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) seq: Seq,
    pub(super) at: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct PathEvidence {
    /// The highest number that came by the path.
    pub(super) highest: Option<Seq>,
    /// The number up to which a beacon has said last that nothing is outstanding on the path.
    covered: Option<Seq>,
    /// Numbers rise, and so do times.
    records: VecDeque<Record>,
    margin: Margin,
    wait: Duration,
}

impl PathEvidence {
    /// A path by which nothing came.
    pub(super) fn new(wait: Duration) -> Self {
        let wait = wait.clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let (highest, covered, records) = (None, None, VecDeque::new());
        Self { highest, covered, records, margin: Margin::of_new_path(), wait }
    }

    /// It has proven to keep its order.
    #[cfg(test)]
    pub(super) fn set_steady(&mut self) {
        self.margin = Margin::default();
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
    }

    /// Gives back memory that is not needed.
    pub(super) fn shrink(&mut self) {
        self.records.shrink_to(0);
    }

    pub(super) fn set_wait(&mut self, wait: Duration, deviation: Duration) {
        self.wait = wait.clamp(SHORTEST_WAIT, LONGEST_WAIT);
        self.margin.set_deviation(deviation);
    }

    /// So many datagrams have come by it.
    pub(super) fn set_received(&mut self, datagrams: u64) {
        self.margin.set_received(datagrams);
    }

    pub(super) fn margin(&self) -> Duration {
        self.margin.time()
    }

    /// A number came that was not given up, while numbers from `next` on are missing.
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Instant, seq: Seq, next: Seq) {
        // Most packets are read together with the one before.
        match self.records.back_mut() {
            Some(last) if last.at == now && seq.offset_from(last.seq) > 0 => {
                last.seq = seq;
                self.came_by(seq);
            }
            // Where a fast path waits for a slow one, most packets of the slow one fill a gap.
            None if seq == next => {
                self.margin.relax(now);
                self.came_by(seq);
            }
            _ => self.on_first_arrival(now, seq, next),
        }
    }

    fn on_first_arrival(&mut self, now: Instant, seq: Seq, next: Seq) {
        self.margin.relax(now);
        self.came_by(seq);
        if let Some(last) = self.records.back()
            && seq.offset_from(last.seq) < 0
        {
            let at = self.records.partition_point(|record| record.seq.offset_from(seq) < 0);
            self.margin.on_overtaken(now, now.since(self.records[at].at));
        } else if seq != next {
            self.record(now, seq, next);
        }
    }

    /// A number came after it was given up. Unless that `may_be_a_copy`, the path may have broken its order.
    pub(super) fn on_late(&mut self, now: Instant, seq: Seq, may_be_a_copy: bool) {
        let overtaken = self.highest.is_some_and(|highest| seq.offset_from(highest) < 0);
        if overtaken && !may_be_a_copy {
            self.margin.on_late(now);
        }
        self.came_by(seq);
    }

    fn came_by(&mut self, seq: Seq) {
        if self.highest.is_none_or(|highest| seq.offset_from(highest) > 0) {
            self.highest = Some(seq);
        }
    }

    /// A beacon says that nothing up to this number is outstanding on the path.
    pub(super) fn on_beacon(&mut self, seq: Seq) {
        self.covered = Some(seq);
    }

    /// Whether it has been in use since its last beacon, and has not come to `next`: if it is silent, what is missing may be on it.
    pub(super) fn may_be_silent(&self, next: Seq) -> bool {
        let is_idle = |highest: &Seq| self.covered.is_some_and(|it| highest.offset_from(it) <= 0);
        let highest = self.highest.filter(|highest| !is_idle(highest));
        highest.is_some_and(|highest| highest.offset_from(next) < 0)
    }

    /// Nothing up to `seq` is to be expected on the path. Numbers from `next` on are missing.
    pub(super) fn record(&mut self, now: Instant, seq: Seq, next: Seq) {
        self.forget_before(next);
        match self.records.back_mut() {
            _ if seq.offset_from(next) < 0 => {}
            Some(last) if seq.offset_from(last.seq) <= 0 => {}
            Some(last) if last.at == now => last.seq = seq,
            Some(_) | None => self.records.push_back(Record { seq, at: now }),
        }
    }

    /// Everything before `next` is resolved.
    pub(super) fn forget_before(&mut self, next: Seq) {
        while self.records.front().is_some_and(|record| record.seq.offset_from(next) < 0) {
            self.records.pop_front();
        }
    }

    /// Nothing is missing any more.
    pub(super) fn forget_records(&mut self) {
        self.records.clear();
    }

    /// Nothing came by the path. Returns the number, if any, up to which what is missing was to be given up by its
    /// records, and when.
    pub(super) fn forget(&mut self, wait: Duration) -> Option<Record> {
        let last = self.records.back().map(|last| Record { at: last.at + self.wait, ..*last });
        *self = Self::new(wait);
        last
    }

    /// Whether it may pass `next`, now or when a margin is over.
    pub(super) fn may_pass(&self, next: Seq) -> bool {
        self.records.back().is_some_and(|last| last.seq.offset_from(next) >= 0)
    }

    /// The number up to which it has passed all.
    pub(super) fn passed(&self, now: Instant) -> Option<Seq> {
        let margin = self.margin.time();
        if self.records.back().is_some_and(|last| last.at + margin <= now) {
            return self.records.back().map(|last| last.seq);
        }
        self.last(|record| record.at + margin <= now)
    }

    /// When it will have passed what its first record concerns, if nothing else comes.
    pub(super) fn passes_at(&self, record: &Record) -> Instant {
        record.at + self.margin.time()
    }

    /// The number up to which nothing is to be expected by any path.
    pub(super) fn overdue(&self, now: Instant) -> Option<Seq> {
        self.records.front().filter(|first| first.at + self.wait <= now)?;
        self.last(|record| record.at + self.wait <= now)
    }

    /// When that will be overdue, if nothing else comes.
    pub(super) fn overdue_at(&self, record: &Record) -> Instant {
        record.at + self.wait
    }

    /// The last of the first records for which something holds.
    fn last(&self, holds: impl FnMut(&Record) -> bool) -> Option<Seq> {
        let count = self.records.partition_point(holds);
        Some(self.records[count.checked_sub(1)?].seq)
    }

    /// The first record that concerns `next`.
    #[inline]
    pub(super) fn first(&self, next: Seq) -> Option<&Record> {
        let before = |record: &Record| record.seq.offset_from(next) < 0;
        let first = self.records.front()?;
        if before(first) {
            self.records.get(self.records.partition_point(before))
        } else {
            Some(first)
        }
    }
}
