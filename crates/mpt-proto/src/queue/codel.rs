//! CoDel (RFC 8289): which packets of a queue are dropped, or marked, so that the queue does not stand.
//!
//! The times by which it judges are of the round trip that the tunnel knows of, not constants: see [`Times`].

use std::time::Duration;

use crate::time::Instant;

/// What CoDel judges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The delay that a queue may have for good.
    pub(crate) target: Duration,
    /// How long it may have more before anything is dropped: the longest usual round trip.
    pub(crate) interval: Duration,
}

impl Default for Times {
    /// Those of RFC 8289 section 4.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// What it knows of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// When the delay will have been above the target for an interval.
    first_above: Option<Instant>,
    /// While it drops: when the next packet is due.
    dropping: Option<Instant>,
    count: u32,
    last_count: u32,
    /// When it last dropped.
    last_next: Instant,
}

impl Codel {
    /// A packet leaves the queue that has waited for `sojourn`. Returns whether it is to be dropped or marked.
    /// `is_last`: nothing worth a packet is left behind it.
    pub(crate) fn on_dequeue(
        &mut self,
        now: Instant,
        sojourn: Duration,
        is_last: bool,
        times: Times,
    ) -> bool {
        let above = self.is_above(now, sojourn, is_last, times);
        match self.dropping {
            Some(_) if !above => {
                self.dropping = None;
                false
            }
            Some(next) if now >= next => {
                self.count += 1;
                self.drop_next(next, times);
                true
            }
            Some(_) => false,
            None if above => {
                // Drops that ended lately go on where they were (RFC 8289 section 5.5).
                let delta = self.count.saturating_sub(self.last_count);
                let recent = now.since(self.last_next) < times.interval * 16;
                self.count = if delta > 1 && recent { delta } else { 1 };
                self.last_count = self.count;
                self.drop_next(now, times);
                true
            }
            None => false,
        }
    }

    fn drop_next(&mut self, after: Instant, times: Times) {
        let next = after + times.interval.div_f64(f64::from(self.count).sqrt());
        self.dropping = Some(next);
        self.last_next = next;
    }

    /// Whether the delay has been above the target for an interval.
    fn is_above(&mut self, now: Instant, sojourn: Duration, is_last: bool, times: Times) -> bool {
        if sojourn < times.target || is_last {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + times.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the packets that leave every millisecond for `millis` are dropped, each having waited `sojourn`.
    fn drops(codel: &mut Codel, from: u64, millis: u64, sojourn: u64) -> usize {
        let times = Times::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let drop =
            |&n: &u64| codel.on_dequeue(at(from + n), Duration::from_millis(sojourn), false, times);
        (0..millis).filter(drop).count()
    }

    #[test]
    fn a_short_queue_and_a_burst_lose_nothing() {
        let mut codel = Codel::default();
        assert_eq!(drops(&mut codel, 0, 1000, 4), 0);
        assert_eq!(drops(&mut codel, 1000, 99, 50), 0, "less than an interval");
        assert_eq!(drops(&mut codel, 1099, 500, 1), 0);
    }

    #[test]
    fn a_standing_queue_loses_more_and_more() {
        let mut codel = Codel::default();
        assert_eq!(drops(&mut codel, 0, 101, 20), 1, "after an interval");
        // Intervals of 100 / sqrt(n): 100 + 71 + 58 + 50 + 45 + ..., then less and less.
        assert_eq!(drops(&mut codel, 101, 500, 20), 9);
        assert_eq!(drops(&mut codel, 601, 500, 20), 23);
    }

    #[test]
    fn it_ends_when_the_queue_is_short_or_empty() {
        let mut codel = Codel::default();
        drops(&mut codel, 0, 300, 20);
        assert_eq!(drops(&mut codel, 300, 1, 4) + drops(&mut codel, 301, 90, 20), 0);
        let last = codel.on_dequeue(
            Instant::ZERO + Duration::from_secs(1),
            Duration::from_secs(1),
            true,
            Times::default(),
        );
        assert!(!last, "the last packet of a queue is not dropped");
    }
}
