//! What is known of others that keep a queue on the way of a path.

use std::time::Duration;

use super::points::after;
use super::window::Window;
use crate::time::Instant;

/// Two failed drains and a loss are no further apart.
pub(super) const TOGETHER: Duration = Duration::from_secs(5);

/// A path that loses so many times in this time while q is not above so many times its target loses at random, and for as long after that: there
/// a loss betrays nobody.
const STRAYS: u8 = 3;
const STRAYED: Duration = Duration::from_secs(60);
pub(super) const SHORT: f64 = 1.25;

/// No route becomes longer so many times, each so soon after the last time, and by so many microseconds in all: a queue grows, although
/// nothing is lost yet. Two tunnels on one link keep up to 18 ms there.
pub(super) const AGAIN: u8 = 3;
pub(super) const SOON: Duration = Duration::from_secs(2);
pub(super) const GROWN: f64 = 20_000.0;

/// The least delay from before the first failed drain counts for so long after the last one.
pub(super) const SUSPECTED: Duration = Duration::from_secs(30);

/// A path that competes does not give way below this share of what it carried alone, half of what is fair beside one other flow,
/// as long as this share of what it sends at the most is lost. That is counted for some seconds each: where a queue of a second overflows
/// once much is lost, and a mean of long standing had it give way for half a minute after that.
const SHARE: f64 = 0.25;
const SMALL_LOSS: f64 = 0.02;
const COUNTED: Duration = Duration::from_secs(5);

/// The queue is nearly empty at this share of its greatest length, which is one of so many round trips, and with no more microseconds
/// in it than this: when one of a second has overflowed it is short for a moment, although others are there.
pub(super) const EMPTY: f64 = 0.1;
pub(super) const MOST_EMPTY: f64 = 20_000.0;
pub(super) const TRIPS: u32 = 5;

/// A queue of others is above the target by so many mean deviations of the delay.
pub(super) const CLEAR: f64 = 6.0;

/// It is tested so often whether anybody else is there, and no more often than each so many round trips. All paths of a
/// connection are tested at the same time, as they may be each other's rivals.
pub(super) const TESTS: Duration = Duration::from_secs(4);
pub(super) const TEST_TRIPS: u32 = 10;

/// A test takes a round trip, and this time at least.
pub(super) const TEST: Duration = Duration::from_millis(40);

/// Nobody else is there if the queue falls by this share of what it must then; by more than the other one it falls because
/// somebody else yields.
pub(super) const ALONE: f64 = 0.8;
pub(super) const YIELDS: f64 = 1.5;

/// After it was found that nobody else is there a path does not compete for this time, twice as long each time, up to the longest.
/// A path that has competed for long had a reason to.
pub(super) const TRUSTED: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(160)];
pub(super) const LONG: Duration = Duration::from_secs(20);

/// When the next test is, where a round trip takes so long at present: at a time that all paths with the same phase have in
/// common.
pub(super) fn next_test(now: Instant, latest: Duration, phase: Duration) -> Instant {
    let times = (latest * TEST_TRIPS).as_nanos().div_ceil(TESTS.as_nanos()).max(1) as u32;
    let period = TESTS * times.next_power_of_two();
    let into = (now.since(Instant::ZERO) + phase).as_nanos() % period.as_nanos();
    now + (period - Duration::from_nanos(u64::try_from(into).unwrap_or(0)))
}

/// The highest rate is of once to twice this time.
const PEAK: Duration = Duration::from_secs(20);

/// What is known of others.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    pub(super) evidence: Option<Evidence>,
    /// Datagrams lost by the last feedback, and when their number has grown.
    pub(super) lost: u32,
    pub(super) lost_at: Option<Instant>,
    /// How many times something was lost while nothing stood in a queue, and when that was the first time.
    strays: u8,
    strays_began: Instant,
    pub(super) competition: Option<Box<Competition>>,
    /// The highest rate of the present period and of the one before, and when the present one began.
    pub(super) peak: [f64; 2],
    pub(super) peak_began: Instant,
    /// Until when the path does not compete, and for how long that was.
    pub(super) trusted_until: Instant,
    pub(super) trusted_for: Duration,
}

impl Rivals {
    /// What the path carried at the most lately, in bytes per second, before it had to compete.
    pub(super) fn peak(&self) -> f64 {
        self.peak[0].max(self.peak[1])
    }

    /// Something was lost, and whether nothing stood in a queue then.
    pub(super) fn on_loss(&mut self, now: Instant, is_stray: bool) {
        self.lost_at = Some(now);
        if is_stray {
            if now.since(self.strays_began) >= STRAYED {
                (self.strays, self.strays_began) = (0, now);
            }
            self.strays = self.strays.saturating_add(1);
        }
    }

    /// Whether datagrams are lost though no queue is full.
    pub(super) fn loses_at_random(&self, now: Instant) -> bool {
        self.strays >= STRAYS && now.since(self.strays_began) < STRAYED * 2
    }

    /// The path carries so much, in bytes per second.
    pub(super) fn on_rate(&mut self, now: Instant, rate: f64) {
        if now.since(self.peak_began) >= PEAK {
            (self.peak, self.peak_began) = ([rate, self.peak[0]], now);
        }
        self.peak[0] = self.peak[0].max(rate);
    }

    /// The path does not compete any more, whatever others do.
    pub(super) fn forget(&mut self) {
        (self.competition, self.evidence) = (None, None);
    }

    /// Whether the least delay is not to be forgotten, as others do not let it be seen.
    pub(super) fn keep_base(&self) -> bool {
        self.competition.is_some()
    }
}

/// Drains have failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// The least delay before the first of them.
    pub(super) base: u32,
    /// When the last one failed.
    pub(super) at: Instant,
    /// How many times the route seemed longer, each soon after the last time.
    pub(super) times: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Competition {
    pub(super) since: Instant,
    /// What the path carried at the most before, in bytes per second.
    pub(super) peak: f64,
    pub(super) window: Window,
    /// Bytes that had arrived by the last feedback.
    pub(super) bytes: u64,
    /// q at the most and at the least in some round trips, and since when; and at the most before that.
    pub(super) most: i32,
    pub(super) least: i32,
    pub(super) began: Instant,
    pub(super) most_before: i32,
    pub(super) test: Option<Test>,
    pub(super) test_at: Instant,
    pub(super) phase: Duration,
    pub(super) passed: bool,
    pub(super) losses: Losses,
}

/// The share of datagrams that is lost, counted anew each few seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) share: f64,
    since: Instant,
    /// Datagrams lost, and arrived, by then.
    then: [u32; 2],
}

impl Losses {
    /// So far this share was lost, and so many datagrams were lost and have arrived.
    pub(super) fn new(now: Instant, share: f64, counts: [u32; 2]) -> Self {
        Self { share, since: now, then: counts }
    }

    /// Datagrams lost, and arrived, until now.
    pub(super) fn on_counts(&mut self, now: Instant, counts: [u32; 2]) {
        if now.since(self.since) < COUNTED {
            return;
        }
        let [lost, arrived] =
            [0, 1].map(|which| f64::from(after(counts[which], self.then[which]).max(0)));
        *self = Self::new(now, lost / (lost + arrived).max(1.0), counts);
    }
}

impl Competition {
    /// What the path does not give way below, in bytes per second.
    pub(super) fn least_share(&self) -> f64 {
        if self.losses.share < SMALL_LOSS { self.peak * SHARE } else { 0.0 }
    }
}

/// Less is sent for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// q before, and the least since.
    pub(super) before: i32,
    pub(super) lowest: i32,
    /// By how much it falls if nobody else is there, in microseconds.
    pub(super) predicted: f64,
    pub(super) ends: Instant,
    pub(super) judged_at: Instant,
    /// Whether the path had enough to send all the time.
    pub(super) busy: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_loses_while_its_queue_is_short_loses_at_random() {
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let mut rivals = Rivals::default();
        for (second, is_stray) in [(1, true), (2, false), (3, false), (4, true)] {
            rivals.on_loss(at(second), is_stray);
        }
        assert!(!rivals.loses_at_random(at(4)));
        rivals.on_loss(at(5), true);
        assert!(rivals.loses_at_random(at(5)));
        assert!(!rivals.loses_at_random(at(121)), "it is long ago");
        rivals.on_loss(at(121), true);
        assert!(!rivals.loses_at_random(at(122)), "once");
    }

    #[test]
    fn what_was_lost_once_is_forgotten_after_some_seconds() {
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let mut losses = Losses::new(at(0), 0.0, [u32::MAX, 0]);
        losses.on_counts(at(4), [u32::MAX.wrapping_add(200), 800]);
        assert_eq!(losses.share, 0.0, "it is not counted yet");
        losses.on_counts(at(5), [u32::MAX.wrapping_add(200), 800]);
        assert_eq!(losses.share, 0.2);
        losses.on_counts(at(10), [u32::MAX.wrapping_add(210), 1790]);
        assert_eq!(losses.share, 0.01);
    }
}
