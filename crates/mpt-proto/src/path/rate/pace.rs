//! How fast a path is sent on, by what is known of it.

use std::time::Duration;

use super::points::FEWEST;
use super::train::Trains;
use super::{Finding, GAIN, Given, LEAST, LOW_PACE, MOST_GAIN, RateEstimator, START_QUEUE, Stage};
use crate::time::Instant;

/// A pace that goes by mean delays follows so many mean deviations of the delay more slowly.
const SMOOTHED: f64 = 16.0;

/// Beside the round trip it takes this long until q is known: feedback comes each 5 ms or more, and tells the least delay of a while. A pace
/// that overlooks that swings where round trips are short, and the queue runs empty (at 10 ms of round trip it cost 3 %). With longer round
/// trips it matters less.
const OBSERVING: Duration = Duration::from_millis(20);

/// On a slow path it takes longer, since q is the least of some datagrams: these. A slow path over a short round trip swung between an empty
/// and a full queue; 2 Mbit/s at 20 ms lost what did not fit in 50 ms of it, and seemed to have rivals.
const OBSERVED: f64 = FEWEST as f64 * 1500.0;

/// That holds for q up to so many times its target.
const NEAR: f64 = 5.0;

/// Bounds of the target of q.
const TARGET: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(10)];

/// Over longer round trips the pace goes by q as it is: a link that has become faster would be found too late.
const FORESEEN: Duration = Duration::from_millis(100);

/// A path whose rate has grown by this share in a round trip has room.
const GROWN: f64 = 0.04;

/// By what the pace exceeds the rate is multiplied with this each time that a path has room, up to the second.
const BOOST: (f64, f64) = (1.5, 8.0);

/// The same where delays vary, as that is looked at so rarely there.
const BOOST_OF_VARYING: (f64, f64) = (2.0, 16.0);

/// Where delays vary a path has room if q is below its target by this share of it on average.
const ROOM: f64 = 0.25;

impl RateEstimator {
    /// What follows from the estimate for the pace. The least round trip and the last one are these.
    pub(super) fn set_pace(
        &mut self,
        now: Instant,
        [round_trip, latest]: [Duration; 2],
        given: &Given,
    ) {
        if let Some(pace) = self.competing_pace(now, latest) {
            self.pace = pace;
            return;
        }
        let gain = match self.stage {
            Stage::Open => 0.0,
            // Trains have shown the least only, and what there is may be many times as much: it doubles each round trip, as slow start does.
            Stage::Start if self.is_least() => 1.0,
            Stage::Start => {
                let gain = START_QUEUE.as_secs_f64() / round_trip.as_secs_f64();
                let most = if self.varies() { MOST_GAIN } else { 1.0 };
                // Beyond what trains have shown it goes slowly.
                let shown = self.shown().map_or(f64::MAX, |rate| rate / self.rate - 1.0);
                gain.clamp(0.35, most).min(shown.max(GAIN))
            }
            Stage::Servo => {
                let target = self.target(round_trip);
                let off = target - self.expected(now, target, round_trip, given);
                let off = off / (self.reaction(round_trip) + self.caution(target, round_trip));
                let most = (GAIN * self.boost).min(MOST_GAIN);
                (off * self.boost).clamp(-0.5, most)
            }
        };
        let gain = if self.held { gain.min(0.0) } else { gain };
        self.pace = (self.trusted() * (1.0 + gain)).min(self.most().unwrap_or(f64::MAX));
        if self.draining_until.is_some_and(|until| now < until) {
            self.pace = self.pace.min(self.rate * LOW_PACE);
        } else {
            self.draining_until = None;
        }
        self.findings.on_queue(now, self.draining_until.is_some(), self.queue);
        self.check_base(now, round_trip, given);
    }

    /// The target of q.
    pub(super) fn target(&self, round_trip: Duration) -> f64 {
        let target = (round_trip / 20).clamp(TARGET[0], TARGET[1]);
        (target.as_micros() as f64).max(self.burst_takes()) + self.allowance()
    }

    /// What the servo takes for q. Below its target that is what it will be: q is known a round trip late, and a pace that goes by what
    /// it was swings, so that the queue of a slow path runs empty (with one flow of CUBIC over 100 and 10 Mbit/s that cost 2 % of both).
    /// Above the target a prediction would hide a rate that has fallen.
    fn expected(&self, now: Instant, target: f64, round_trip: Duration, given: &Given) -> f64 {
        let queue = f64::from(self.queue);
        if self.boost > 1.0 || queue > target || round_trip > FORESEEN {
            return queue;
        }
        self.foreseen(now, given)
    }

    /// What q will be when all has arrived that was sent, in microseconds, if the path delivers its rate: what is on its way is added, and what
    /// the path delivers in the time since what feedback tells of was sent is not there any more (a Smith predictor). Where delays vary
    /// it is q.
    pub(super) fn foreseen(&self, now: Instant, given: &Given) -> f64 {
        let queue = f64::from(self.queue);
        if self.is_jittery() {
            return queue;
        }
        let passed = self.points.last().map_or(0, |last| now.micros().wrapping_sub(last.sent));
        let ahead = given.ahead as f64 * 1e6 / self.rate.max(LEAST);
        (queue + ahead - f64::from(passed)).max(0.0)
    }

    /// How long it takes until q shows what was sent, in microseconds: a round trip. Where delays vary it is told from means, which
    /// follow later, and a pace that does not allow for that swings.
    fn reaction(&self, round_trip: Duration) -> f64 {
        let round_trip = round_trip.as_micros() as f64;
        if self.is_jittery() { 2.0 * round_trip + SMOOTHED * self.noise } else { round_trip }
    }

    /// By how much longer than a round trip the pace takes to correct q, in microseconds. Only near the target: what is far above it is to go at
    /// once, and an empty queue says that there may be room.
    fn caution(&self, target: f64, round_trip: Duration) -> f64 {
        if self.is_jittery() {
            return 0.0;
        }
        let share = f64::from(self.queue) / target;
        let share = share.min((NEAR - share) / (NEAR - 1.0)).clamp(0.0, 1.0);
        let observing = OBSERVING.max(Duration::from_secs_f64(OBSERVED / self.rate.max(LEAST)));
        observing.saturating_sub(round_trip / 2).as_micros() as f64 * share
    }

    /// The pace grows faster than the rate does as long as the path proves not to be full.
    pub(super) fn set_boost(&mut self, now: Instant, round_trip: Duration, is_below: bool) {
        if (now.since(self.boosted_at).as_micros() as f64) < self.reaction(round_trip) {
            return;
        }
        let (room, looks) = std::mem::take(&mut self.room);
        // Over a long round trip an empty queue makes the pace exceed the rate by less than that; and what arrives now left by what the
        // boost was two round trips ago.
        let excess = self.target(round_trip) / self.reaction(round_trip);
        let grown = if excess < GROWN { GROWN.min(self.boost * excess / 4.0) } else { GROWN };
        // Where delays vary q hardly shows room in one feedback, but it does on average.
        let (grows, most) = if self.is_jittery() { BOOST_OF_VARYING } else { BOOST };
        let more = match self.is_jittery() {
            // It could not grow.
            _ if self.draining_until.is_some() => 1.0,
            true if looks == 0.0 => 1.0,
            true if room / looks > ROOM => grows,
            false if self.rate > (1.0 + grown) * self.rate_before && is_below => grows,
            _ => 0.0,
        };
        self.boost = (self.boost * more).clamp(1.0, most);
        (self.boosted_at, self.rate_before) = (now, self.rate);
    }

    /// Whether no less may be sent.
    pub(crate) fn is_at_floor(&self) -> bool {
        self.stage == Stage::Servo && self.rate <= 1.5 * LEAST
    }

    /// Too much is lost: half as much is sent, whatever the delay says, and no more until [`free`](Self::free).
    pub(crate) fn slow_down(&mut self) {
        self.stage = Stage::Servo;
        self.rivals.forget();
        self.rate = (self.rate.min(self.pace.max(LEAST)) / 2.0).max(LEAST);
        (self.held, self.boost) = (true, 1.0);
        self.pace = self.rate;
    }

    /// No more is lost than is usual: the pace follows the delay again.
    pub(crate) fn free(&mut self) {
        self.held = false;
    }

    /// The path is stopped: so much was lost.
    pub(crate) fn stop(&mut self, now: Instant, loss: f64) {
        self.findings.push(now, Finding::Stopped { loss });
        (self.rate, self.pace, self.stopped) = (LEAST, LEAST, true);
    }

    /// The path is used again, and begins as one of which nothing is known.
    pub(crate) fn resume(&mut self, now: Instant, round_trip: Duration) {
        self.findings.push(now, Finding::Resumed);
        (self.held, self.stopped) = (false, false);
        (self.rate, self.stage, self.trains) = (0.0, Stage::Open, Trains::default());
        self.excess = None;
        self.start(round_trip);
    }
}

#[cfg(test)]
mod tests {
    use super::super::points::Point;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A path of 20 Mbit/s with q in microseconds; what feedback told of last was sent 20 ms ago.
    fn path(queue: i32) -> (RateEstimator, Instant) {
        let now = Instant::ZERO + 100 * MS;
        let (stage, rate) = (Stage::Servo, 2.5e6);
        let mut path = RateEstimator { stage, rate, queue, ..RateEstimator::default() };
        path.points
            .push(Point { at: now, sent: (now.micros()) - 20_000, ..Point::default() }, false);
        (path, now)
    }

    /// The pace over the rate if so many milliseconds of the rate are on their way.
    fn pace(path: &mut RateEstimator, now: Instant, ahead: u64) -> f64 {
        path.set_pace(now, [20 * MS; 2], &Given { ahead: ahead * 2500, ..Given::default() });
        path.pace / path.rate
    }

    #[test]
    fn a_path_that_starts_doubles_if_trains_have_shown_only_the_least() {
        // Its delay varies by 20 ms, by 2 ms, and not at all; trains have shown 20 Mbit/s.
        for (spread, gain) in [(20_000, 2.0), (2000, 1.5), (0, 2.0)] {
            let (mut path, now) = path(0);
            path.stage = Stage::Start;
            (0..2).for_each(|_| path.spread.add(0, spread, 16));
            path.trains.show(Some(2.5e6));
            let got = pace(&mut path, now, 0);
            assert!((got - gain).abs() < 0.01, "{spread}: {got}");
        }
    }

    #[test]
    fn what_is_on_its_way_counts_as_if_it_stood_in_the_queue_already() {
        let (mut path, now) = path(500);
        let usual = pace(&mut path, now, 20);
        assert!(usual > 1.03, "{usual}: the queue is below its target");
        assert!((pace(&mut path, now, 21) - 1.0).abs() < 0.025, "it will be 1.5 ms");
        assert!(pace(&mut path, now, 24) < 0.95, "it will be 4.5 ms");
        assert!(pace(&mut path, now, 15) > usual, "it will be empty");
    }

    #[test]
    fn a_queue_above_its_target_is_not_believed_to_fall() {
        let (mut path, now) = path(5000);
        assert_eq!(pace(&mut path, now, 20), pace(&mut path, now, 5));
    }

    #[test]
    fn a_pace_that_grows_is_not_held_back() {
        let (mut path, now) = path(500);
        path.boost = 1.5;
        assert_eq!(pace(&mut path, now, 20), pace(&mut path, now, 24));
    }
}
