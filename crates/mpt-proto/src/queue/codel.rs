//! CoDel (RFC 8289): which packets of a queue are dropped, or marked, so that the queue does not stand.
//!
//! A sender that does not slow down for marks makes a queue stand however many there are. So after some time what can
//! be marked is dropped as well, as RFC 7567 section 4.2.1 wants of a queue management under overload.
//!
//! The times by which it judges are of the round trip that the tunnel knows of, not constants: see [`Times`].

use std::time::Duration;

use crate::time::Instant;

/// For so many intervals in turn marks are enough. A sender that heeds them has been told eight times by then.
const MARKS: u32 = 4;

/// What CoDel wants of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is sent.
    Send,
    /// Its sender is to be told of congestion, by a mark if it understands them and by a loss otherwise.
    Tell,
    /// It is to be dropped: marks did not help.
    Drop,
}

/// How much is left behind a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing worth a packet.
    Nothing,
    Some,
    /// So much that after an interval it is too late to tell the sender.
    Much,
}

/// What CoDel judges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The delay that a queue may have for good.
    pub(crate) target: Duration,
    /// How long it may have more before anything is dropped: the longest usual round trip.
    pub(crate) interval: Duration,
    /// The round trip of a flow while nothing waits here. Flows that pause for little longer go on with the same transfer.
    pub(crate) round_trip: Duration,
}

impl Default for Times {
    /// Those of RFC 8289 section 4.
    fn default() -> Self {
        let round_trip = Duration::ZERO;
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), round_trip }
    }
}

/// What it knows of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Codel {
    /// When the delay will have been above the target for an interval.
    first_above: Option<Instant>,
    /// While it drops: when the next packet is due.
    dropping: Option<Instant>,
    /// Since when it drops.
    since: Instant,
    count: u32,
    last_count: u32,
    /// When it last dropped.
    last_next: Instant,
}

impl Codel {
    /// Whether the sender slows down for nothing that it was told.
    pub(super) fn is_ignored(&self, now: Instant, times: Times) -> bool {
        self.dropping.is_some() && now.since(self.since) >= times.interval * MARKS
    }

    /// A packet leaves the queue that has waited for `sojourn`.
    pub(super) fn on_dequeue(
        &mut self,
        now: Instant,
        sojourn: Duration,
        left: Left,
        times: Times,
    ) -> Judgement {
        let above = self.is_above(now, sojourn, left, times);
        match self.dropping {
            Some(_) if !above => {
                self.dropping = None;
                Judgement::Send
            }
            Some(next) if now >= next => {
                self.count += 1;
                self.drop_next(next, times);
                if self.is_ignored(now, times) { Judgement::Drop } else { Judgement::Tell }
            }
            Some(_) => Judgement::Send,
            None if above => {
                // Drops that ended lately go on where they were (RFC 8289 section 5.5).
                let delta = self.count.saturating_sub(self.last_count);
                let recent = now.since(self.last_next) < times.interval * 16;
                self.count = if delta > 1 && recent { delta } else { 1 };
                self.last_count = self.count;
                self.since = now;
                self.drop_next(now, times);
                Judgement::Tell
            }
            None => Judgement::Send,
        }
    }

    fn drop_next(&mut self, after: Instant, times: Times) {
        let next = after + times.interval.div_f64(f64::from(self.count).sqrt());
        self.dropping = Some(next);
        self.last_next = next;
    }

    /// Whether the delay has been above the target for an interval, or since the queue was long.
    fn is_above(&mut self, now: Instant, sojourn: Duration, left: Left, times: Times) -> bool {
        if sojourn < times.target || left == Left::Nothing {
            self.first_above = None;
            return false;
        }
        let first_above = self.first_above.get_or_insert(now + times.interval);
        if left == Left::Much {
            *first_above = now.min(*first_above);
        }
        now >= *first_above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the packets that leave every millisecond for `millis` are dropped, each having waited `sojourn`.
    fn drops(codel: &mut Codel, from: u64, millis: u64, sojourn: u64) -> usize {
        let times = Times::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let sojourn = Duration::from_millis(sojourn);
        let drop = |&n: &u64| {
            codel.on_dequeue(at(from + n), sojourn, Left::Some, times) != Judgement::Send
        };
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
            Left::Nothing,
            Times::default(),
        );
        assert_eq!(last, Judgement::Send, "the last packet of a queue is not dropped");
    }

    #[test]
    fn marks_that_do_not_help_are_followed_by_drops() {
        let mut codel = Codel::default();
        let judge = |millis: u64, codel: &mut Codel| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            codel.on_dequeue(now, Duration::from_millis(20), Left::Some, Times::default())
        };
        let judgements: Vec<Judgement> =
            (0..1000).map(|millis| judge(millis, &mut codel)).collect();
        let first = judgements.iter().position(|&it| it == Judgement::Drop).unwrap();
        let told = judgements.iter().filter(|&&it| it == Judgement::Tell).count();
        assert!((500..=560).contains(&first) && (7..=9).contains(&told), "{first}, {told}");
        // Once the queue was short, it begins with marks again.
        drops(&mut codel, 1000, 10, 1);
        let again: Vec<Judgement> = (1010..1200).map(|millis| judge(millis, &mut codel)).collect();
        assert!(again.contains(&Judgement::Tell) && !again.contains(&Judgement::Drop));
    }
}
