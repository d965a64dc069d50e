//! The receiving end: what is in order goes to the application, everything is acknowledged.

use std::time::Duration;

use mpt_proto::Instant;

use super::ranges::Ranges;
use super::{Acknowledgement, MOST_RANGES, OLD, Segment};

/// How long the acknowledgement of a single segment may wait: Linux's least.
const DELAY: Duration = Duration::from_millis(40);
/// The first segments, this many, are acknowledged at once, for the sender's slow start.
const QUICK: u64 = 16;

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    next: u64,
    early: Ranges,
    /// Segments in order that are not acknowledged yet.
    pending: u64,
    due: Option<Instant>,
    echo: u64,
}

impl Receiver {
    /// Segments delivered to the application so far.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// When [`on_time`](Self::on_time) has something to say.
    pub fn next_due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes `count` segments that follow each other and came at once, as the kernel merges them;
    /// returns the acknowledgement, unless it is delayed.
    pub fn on_segments(
        &mut self,
        now: Instant,
        first: Segment,
        count: u64,
    ) -> Option<Acknowledgement> {
        let end = first.number + count;
        if first.stamp + OLD < self.echo {
            let duplicate = Some(first.number).filter(|&number| number < self.next);
            return Some(self.acknowledge(now, duplicate));
        }
        if first.number <= self.next {
            self.echo = self.echo.max(first.stamp);
        }
        let known = |number| number < self.next || self.early.contains(number);
        let duplicate = (first.number..end).find(|&number| known(number));
        let fresh: Vec<u64> = (first.number..end).filter(|&number| !known(number)).collect();
        let had_gaps = !self.early.is_empty();
        for number in fresh {
            if number == self.next {
                self.next += 1;
                while let Some(end) = self.early.take(self.next) {
                    self.next = end;
                }
            } else {
                self.early.insert((number, number + 1));
            }
        }
        self.pending += count;
        let at_once = had_gaps || !self.early.is_empty() || duplicate.is_some();
        if at_once || self.pending >= 2 || self.next <= QUICK {
            return Some(self.acknowledge(now, duplicate));
        }
        self.due = Some(now + DELAY);
        None
    }

    /// The delayed acknowledgement, if it is due.
    pub fn on_time(&mut self, now: Instant) -> Option<Acknowledgement> {
        (self.due? <= now).then(|| self.acknowledge(now, None))
    }

    fn acknowledge(&mut self, now: Instant, duplicate: Option<u64>) -> Acknowledgement {
        self.pending = 0;
        self.due = None;
        let mut ranges = self.early.named();
        if duplicate.is_some() {
            // The report of a duplicate takes the place of a range.
            ranges[MOST_RANGES - 1] = None;
        }
        let stamp = now.as_nanos() / 1_000_000;
        Acknowledgement { next: self.next, stamp, echo: self.echo, duplicate, ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(receiver: &mut Receiver, ms: u64, number: u64) -> Option<Acknowledgement> {
        let now = Instant::ZERO + Duration::from_millis(ms);
        receiver.on_segments(now, Segment { number, stamp: ms, echo: 0 }, 1)
    }

    /// A receiver past its quick start.
    fn past_quick_start() -> Receiver {
        let mut receiver = Receiver::default();
        let first = Segment { number: 0, stamp: 0, echo: 0 };
        receiver.on_segments(Instant::ZERO, first, 20).unwrap();
        receiver
    }

    #[test]
    fn every_second_segment_in_order_is_acknowledged() {
        let mut receiver = past_quick_start();
        assert_eq!(give(&mut receiver, 1, 20), None);
        assert_eq!(give(&mut receiver, 2, 21).unwrap().next, 22);
        assert_eq!(give(&mut receiver, 3, 22), None);
        let due = receiver.next_due().unwrap();
        assert_eq!(due, Instant::ZERO + Duration::from_millis(43));
        assert_eq!(receiver.on_time(due).unwrap().next, 23);
        assert_eq!(receiver.on_time(due), None);
    }

    #[test]
    fn a_late_segment_behind_a_repetition_is_dropped_as_too_old() {
        let mut receiver = past_quick_start();
        give(&mut receiver, 5, 23);
        // Segment 20 is repeated; of the first transmissions, 21 comes with an older stamp.
        give(&mut receiver, 9, 20);
        let answer = give(&mut receiver, 6, 21).unwrap();
        assert_eq!((answer.next, answer.duplicate), (21, None));
        assert_eq!(give(&mut receiver, 8, 21).unwrap().next, 22, "a millisecond is no age");
    }

    #[test]
    fn gaps_and_duplicates_are_reported_at_once() {
        let mut receiver = past_quick_start();
        let gap = give(&mut receiver, 5, 22).unwrap();
        assert_eq!((gap.next, gap.ranges[0], gap.echo), (20, Some((22, 23)), 0));
        let again = give(&mut receiver, 6, 22).unwrap();
        assert_eq!((again.duplicate, again.option_bytes()), (Some(22), 20));
        let filled = give(&mut receiver, 7, 20).unwrap();
        assert_eq!((filled.next, filled.echo), (21, 7), "the gap at 21 is still open");
        assert_eq!(give(&mut receiver, 8, 21).unwrap().next, 23);
        assert_eq!(receiver.delivered(), 23);
    }
}
