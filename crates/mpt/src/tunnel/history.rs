//! What counters were in the last seconds, so that it can be said what has happened since.

use std::collections::VecDeque;
use std::time::Duration;

use mpt_proto::{Beyond, Drop, Instant, PathId, ReceiveHalf, RepairStats, Traffic, TransmitHalf};

/// How much of the past is told: long enough for people to see what they have just done, short enough that rates are
/// those of now.
pub(super) const SPAN: Duration = Duration::from_secs(5);

/// Between two points. Counts are about the span and up to this much more.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// The last values of some counters, oldest first, each from its time on until that of the next. One that does not
/// change takes no room.
#[derive(Debug)]
pub(super) struct History<T>(VecDeque<(Instant, T)>);

impl<T> Default for History<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy + PartialEq + Default> History<T> {
    /// Nothing has been counted yet.
    pub(super) fn beginning(now: Instant) -> Self {
        Self(VecDeque::from([(now, T::default())]))
    }

    /// The counters are at this value now.
    pub(super) fn put(&mut self, now: Instant, value: T) {
        if self.0.back().is_some_and(|(_, last)| *last == value) {
            return;
        }
        // One is kept that is as old as the span.
        while self.0.get(1).is_some_and(|(at, _)| now.since(*at) >= SPAN) {
            self.0.pop_front();
        }
        self.0.push_back((now, value));
    }

    /// How long ago what begins, and the value before it: a span, or less after the start. `None` if nothing is known.
    pub(super) fn before(&self, now: Instant) -> Option<(Duration, T)> {
        let old = self.0.iter().rev().find(|(at, _)| now.since(*at) >= SPAN);
        let (at, value) = old.or_else(|| self.0.front())?;
        Some((now.since(*at).min(SPAN + INTERVAL), *value))
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(Instant, T)>()
    }
}

/// What was counted of a connection when it sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) sent: Traffic,
    pub(super) no_path: u64,
    pub(super) dropped_delay: u64,
    pub(super) dropped_full: u64,
    pub(super) acks_thinned: u64,
    pub(super) marked: u64,
    pub(super) repair: RepairStats,
    pub(super) beyond: Beyond,
}

/// What was counted of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathSent {
    pub(super) sent: Traffic,
    pub(super) resent: u64,
    pub(super) lost: u64,
    pub(super) samples: u32,
    pub(super) busy_samples: u32,
}

/// What was counted of the order of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ordered {
    pub(super) delivered: u64,
    pub(super) reordered: u64,
    pub(super) repaired: u64,
    pub(super) late: u64,
    pub(super) lost: u64,
}

impl Sent {
    /// What is counted of a connection.
    pub(super) fn of(half: &TransmitHalf) -> Self {
        let stats = half.stats();
        Self {
            sent: stats.sent,
            no_path: stats.drops.count(Drop::NoPath),
            dropped_delay: stats.drops.count(Drop::QueueDelay),
            dropped_full: stats.drops.count(Drop::QueueFull),
            acks_thinned: stats.drops.count(Drop::AckObsolete),
            marked: half.queue_standing().map_or(0, |queue| queue.marked),
            repair: half.repair_stats(),
            beyond: half.beyond(),
        }
    }
}

impl PathSent {
    /// What is counted of a path.
    pub(super) fn of(now: Instant, half: &TransmitHalf, path: PathId) -> Self {
        let stats = half.path_stats(path);
        let standing = half.standing(now, path);
        let samples = standing.map_or([0; 2], |standing| [standing.samples, standing.busy_samples]);
        Self {
            sent: stats.sent,
            resent: stats.resent,
            lost: half.transmit_quality(now, path).map_or(0, |quality| quality.lost),
            samples: samples[0],
            busy_samples: samples[1],
        }
    }
}

impl Ordered {
    /// What is counted of the order of a connection.
    pub(super) fn of(half: &ReceiveHalf) -> Self {
        let stats = half.stats();
        let order = stats.reorder;
        Self {
            delivered: stats.delivered.packets,
            reordered: order.reordered,
            repaired: order.repaired,
            late: order.late,
            lost: order.lost_early_release + order.lost_max_delay + order.lost_window,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_was_before_the_span_is_found_and_no_more_is_kept() {
        let mut history = History::default();
        assert_eq!(history.before(at(0)), None);
        for step in 0..100 {
            history.put(at(step * 500), step);
        }
        let now = at(99 * 500);
        assert_eq!(history.before(now), Some((SPAN, 89)));
        assert_eq!(
            history.before(now + Duration::from_millis(200)),
            Some((Duration::from_millis(5200), 89))
        );
        assert!(history.0.len() <= 12, "{}", history.0.len());
    }

    #[test]
    fn shortly_after_the_start_it_is_less_than_the_span() {
        let mut history = History::default();
        history.put(at(100), 1);
        history.put(at(600), 7);
        assert_eq!(history.before(at(2100)), Some((Duration::from_secs(2), 1)));
    }

    #[test]
    fn what_did_not_change_for_long_takes_no_room_and_counts_from_the_span_on() {
        let mut history = History::default();
        for step in 0..100 {
            history.put(at(step * 500), 3);
        }
        assert_eq!(history.0.len(), 1);
        assert_eq!(history.before(at(60_000)), Some((SPAN + INTERVAL, 3)));
    }
}
