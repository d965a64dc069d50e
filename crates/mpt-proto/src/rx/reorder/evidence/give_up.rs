//! When numbers are given up.

use std::time::Duration;

use super::beyond::Beyond;
use super::bits::bits;
use super::margin::LONGEST_WAIT;
use super::path::PathEvidence;
use super::{EvidenceOrder, Loss};
use crate::id::PathId;
use crate::rx::reorder::arrived::{Accepted, Arrived};
use crate::rx::reorder::history::{self, History, REACH};
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::stats::Drop;
use crate::time::Instant;

/// What was sent at the same time is hardly overtaken for longer. What was lost takes longer to come again, or waits no longer than this.
const OVERTAKEN: Duration = Duration::from_millis(10);

impl EvidenceOrder {
    /// Whether nothing that was sent after this number has come, or so lately that it may have overtaken it.
    pub(in crate::rx::reorder) fn is_timely(&self, now: Instant, seq: Seq) -> bool {
        if seq.offset_from(self.end) >= 0 {
            return true;
        }
        let paths = self.paths.iter().chain([&self.out_of_turn]);
        let missing_since = paths.filter_map(|path| path.first(seq)).map(|record| record.at).min();
        missing_since.is_some_and(|since| now.since(since) < OVERTAKEN)
    }

    /// When the expected number will be given up, if nothing comes. Where nothing is held that is not urgent, and
    /// happens with the next packet.
    pub(in crate::rx::reorder) fn deadline(&self) -> Option<Instant> {
        if self.waiting.held() == 0 {
            return None;
        }
        let mut first = self.inherited.map_or(Instant::MAX, |record| record.at);
        if let Some(record) = self.out_of_turn.first(self.next) {
            first = first.min(self.out_of_turn.overdue_at(record) + self.out_of_turn_patience());
        }
        let (repair, patience) = (self.repairs.wait(), self.patience());
        // When the last live path will have passed the expected number.
        let mut passed = if self.live == 0 { Instant::MAX } else { Instant::ZERO };
        for (index, path) in self.paths.iter().enumerate() {
            let is_live = self.live >> index & 1 != 0;
            match path.first(self.next) {
                Some(record) => {
                    first = first.min(path.overdue_at(record) + patience);
                    if is_live {
                        passed = passed.max(path.passes_at(record) + repair);
                    }
                }
                None if is_live => passed = Instant::MAX,
                None => {}
            }
        }
        Some(first.min(passed)).filter(|at| *at < Instant::MAX)
    }

    /// Gives up what a number that came by this path shows to be lost.
    pub(super) fn give_up_after(&mut self, now: Instant, path: PathId, sink: &mut impl Sink) {
        if self.next == self.end {
            return;
        }
        if self.waiting.held() == 1 {
            // It may be the first to wait: where nothing is held no timer runs.
            self.on_timeout(now, sink);
            return;
        }
        self.give_up_passed(now, sink);
        // Of packets that were read together the first one shows it.
        if self.examined == (now, path) {
            return;
        }
        self.examined = (now, path);
        if let Some(overdue) = self.paths[path.index()].overdue(self.has_waited(now)) {
            self.give_up_to(overdue.next(), Loss::Overdue, sink);
        }
    }

    /// How much longer than delays explain the expected number is waited for: until it may be repaired, and where a path that was in
    /// use has not come to it, until its sender may have found out that the path is silent, and have sent it again by another one.
    fn patience(&self) -> Duration {
        let is_silent = self.may_be_silent().next().is_some();
        let silence = if is_silent { self.repairs.silence() } else { Duration::ZERO };
        self.repairs.wait().max(silence)
    }

    /// How much longer than [`LONGEST_WAIT`] what is missing before a packet out of turn is waited for: it may be repaired as well.
    fn out_of_turn_patience(&self) -> Duration {
        self.repairs.wait().saturating_sub(LONGEST_WAIT)
    }

    /// The paths that may be silent, and have the expected number.
    fn may_be_silent(&self) -> impl Iterator<Item = usize> {
        bits(self.live).filter(|path| self.paths[*path].may_be_silent(self.next))
    }

    /// When packets have been held for as long as delays explain, or will have been, for what may be on paths that are silent: these,
    /// one bit each.
    pub(in crate::rx::reorder) fn silent_at(&self) -> Option<(Instant, u64)> {
        let silent = self.may_be_silent().fold(0, |bits, path| bits | 1 << path);
        if self.waiting.held() == 0 || silent == 0 {
            return None;
        }
        let first = |path: &PathEvidence| Some(path.overdue_at(path.first(self.next)?));
        Some((self.paths.iter().filter_map(first).min()?, silent))
    }

    /// Since when a number has to be overdue, if what is missing before it is not waited for any more.
    fn has_waited(&self, now: Instant) -> Instant {
        now.before(self.patience())
    }

    /// Gives up what is known not to come any more.
    pub(in crate::rx::reorder) fn on_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        self.now = now;
        self.give_up_passed(now, sink);
        for path in 0..self.paths.len() {
            self.paths[path].forget_before(self.next);
            if let Some(overdue) = self.paths[path].overdue(self.has_waited(now)) {
                self.give_up_to(overdue.next(), Loss::Overdue, sink);
            }
        }
        self.out_of_turn.forget_before(self.next);
        if let Some(overdue) = self.out_of_turn.overdue(now.before(self.out_of_turn_patience())) {
            self.give_up_to(overdue.next(), Loss::Overdue, sink);
        }
        if let Some(record) = self.inherited.take_if(|record| record.at <= now) {
            self.give_up_to(record.seq.next(), Loss::Overdue, sink);
        }
    }

    /// Gives up what every live path has passed.
    #[inline]
    pub(super) fn give_up_passed(&mut self, now: Instant, sink: &mut impl Sink) {
        // A path without a record has passed nothing. Where a fast path waits for a slow one, that is the slow one.
        if self.live & !self.recorded == 0 {
            self.give_up_to_slowest(now, sink);
        }
    }

    fn give_up_to_slowest(&mut self, now: Instant, sink: &mut impl Sink) {
        let slowest = usize::from(self.slowest);
        if self.live >> slowest & 1 != 0 && !self.paths[slowest].may_pass(self.next) {
            return;
        }
        let mut least = None;
        for path in bits(self.live) {
            match self.paths[path]
                .passed(self.repairs.before(now))
                .map(|seq| seq.offset_from(self.next))
            {
                Some(passed @ 0..REACH) => {
                    least = Some(least.map_or(passed, |least: i32| least.min(passed)));
                }
                _ => {
                    self.slowest = path as u8;
                    return;
                }
            }
        }
        if let Some(least) = least {
            self.give_up_to(self.next.plus(least.unsigned_abs() + 1), Loss::Passed, sink);
        }
    }

    /// Moves the expected number to `seq` at least, which is not behind the end.
    pub(super) fn give_up_to(&mut self, seq: Seq, loss: Loss, sink: &mut impl Sink) {
        while seq.offset_from(self.next) > 0 {
            let next = self.next;
            let mut passed = 1;
            if self.waiting.held() == 0 {
                passed = self.ahead(seq);
                self.count_lost(self.history.missing(next, passed), loss);
            } else if let Some(held) = self.waiting.take(next) {
                self.deliver_held(next, held, sink);
                self.deliver_followers(next, sink);
            } else if !self.history.was_delivered(next) {
                self.count_lost(1, loss);
                self.deliver_followers(next, sink);
            }
            self.next = next.plus(passed);
        }
        self.advance(sink);
    }

    fn count_lost(&mut self, lost: u32, loss: Loss) {
        match loss {
            Loss::Passed => self.stats.lost_early_release += u64::from(lost),
            Loss::Overdue => self.stats.lost_max_delay += u64::from(lost),
            Loss::Window => self.stats.lost_window += u64::from(lost),
        }
        self.repairs.on_lost(lost);
    }
}

impl EvidenceOrder {
    /// A packet came whose number is out of reach.
    #[cold]
    pub(super) fn out_of_reach(
        &mut self,
        now: Instant,
        arrived: Arrived,
        packet: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Accepted, Drop> {
        // What is sent again may come in long rows from behind.
        let behind = arrived.seq.offset_from(self.next) < 0;
        if behind && now < self.copies_until {
            return Err(Drop::Stray);
        }
        let number = (arrived.seq, arrived.path);
        let begin = self.beyond.on_number(now, number, self.next, self.live);
        let begin = begin.ok_or(Drop::Stray)?;
        self.go_on_with(begin, sink);
        self.insert(now, arrived, packet, sink).map(|_| Accepted::Return)
    }

    /// Gives up all before a number that is out of reach. What is held is delivered.
    fn go_on_with(&mut self, begin: Seq, sink: &mut impl Sink) {
        self.give_up_to(self.end, Loss::Window, sink);
        let ahead = begin.offset_from(self.end);
        if ahead > 0 {
            self.stats.lost_window += u64::from(ahead.unsigned_abs());
            self.history.set_missing(self.end, ahead.unsigned_abs().min(history::LEN));
        } else {
            self.history = History::none();
        }
        (self.next, self.end) = (begin, begin);
        self.beyond = Beyond::default();
        self.recorded = 0;
        self.inherited = None;
        self.out_of_turn.forget_records();
        for path in &mut self.paths {
            path.highest = None;
            path.forget_records();
        }
    }
}
