//! How fast a path may be sent on, found out by feedback while data is sent.
//!
//! The delay of a path above its least is what stands in queues on the way, *q*. While a path is kept busy, a servo
//! holds q near a small target: it sends a little faster than the path delivers as long as q is below, and slower
//! while q is above. What the path delivers while something stands in its queue is its rate, whatever was sent; what
//! it delivers otherwise is no more than what was sent, so it is a lower bound.
//!
//! ```text
//! pace = rate * (1 + clamp((target - q) / round trip, -1/2, gain))
//! ```
//!
//! Before anything is known of a path nothing is held back (*open*), as on a path that is never full. A path that
//! is first needed when others are full starts with few packets and doubles them per round trip (*start*).
//!
//! If q does not fall although less is sent than the path delivers, the least delay has risen, by another route for
//! example ([`base`]). A path that drops what exceeds its rate, and queues nothing, shows it by its loss ([`ceiling`]).

mod base;
mod ceiling;
mod found;
mod learn;
mod noise;
mod points;
mod shown;

use std::time::Duration;

use crate::time::Instant;
use crate::wire::extended::feedback::Block;
use base::Base;
use ceiling::Ceiling;
pub(crate) use found::Findings;
pub use found::{Finding, Found, RateStage};
use noise::Noise;
use points::{Point, Points, after};

/// Bounds of the target of q.
const TARGET: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

/// The least delay of some packets is above that of all by so many of its deviations.
const NOISE: f64 = 3.0;

/// A path is no longer open when q has reached this, or an eighth of the round trip.
const OPEN: Duration = Duration::from_millis(5);

/// A round trip that is shorter counts as this: hosts need as long to react.
const SHORTEST: Duration = Duration::from_millis(10);

/// Rates are measured over half a round trip, but no more than this.
const SPAN: Duration = Duration::from_millis(25);

/// The most by which the pace exceeds the rate, at first, and when each round trip brought more.
const GAIN: f64 = 0.25;
const MOST_GAIN: f64 = 0.5;

/// After how long a path that is not used starts again, at first and at the most.
const RETRY: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];

/// The most that the queue grows before it is seen that it does, where more than [`GAIN`] is tried.
const OVERSHOOT: Duration = Duration::from_millis(40);

/// The most by which the pace is below the rate.
const LEAST_GAIN: f64 = -0.75;

/// What a path starts with, in bytes per round trip.
const START: f64 = 15_000.0;

/// The queue that a path which starts can have before anything is known of it: what buffers of links hold at least. In
/// a longer round trip it grows by less than double.
const START_QUEUE: Duration = Duration::from_millis(80);

/// No path has less, in bytes per second.
const LEAST: f64 = 8_000.0;

/// The pace while the least delay is looked for.
const LOW_PACE: f64 = 0.75;

/// Feedback that comes after more than this was not waited for.
const LONGEST_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Start,
    Servo,
}

/// The estimate of one path.
#[derive(Debug)]
pub(crate) struct RateEstimator {
    stage: Stage,
    points: Points,
    /// In bytes of IP packets per second.
    rate: f64,
    pace: f64,
    /// Microseconds above the least delay.
    queue: i32,
    noise: Noise,
    base: Base,
    /// When q was above its target last.
    excess_at: Instant,
    ceiling: Ceiling,
    /// Until when less is sent so that the least delay shows.
    draining_until: Option<Instant>,
    /// The smoothed time between two feedbacks.
    interval: Duration,
    /// What the gain is multiplied with: more after each success.
    boost: f64,
    boosted_at: Instant,
    /// When q was a quarter of its target last, or less was sent than the path is believed to deliver.
    filled_at: Instant,
    /// The rate then, and the gain since.
    rate_before: f64,
    gain: f64,
    /// The path sequence from which on the path has been kept busy.
    busy_from: u32,
    /// When it may start again, and how long after the last time that was.
    retry_at: Instant,
    retry_after: Duration,
    findings: Findings,
}

impl Default for RateEstimator {
    fn default() -> Self {
        Self {
            stage: Stage::Open,
            points: Points::default(),
            rate: 0.0,
            pace: 0.0,
            queue: 0,
            noise: Noise::default(),
            base: Base::default(),
            excess_at: Instant::ZERO,
            ceiling: Ceiling::default(),
            draining_until: None,
            interval: Duration::ZERO,
            boost: 1.0,
            boosted_at: Instant::ZERO,
            filled_at: Instant::ZERO,
            rate_before: 0.0,
            gain: 0.0,
            busy_from: 0,
            retry_at: Instant::ZERO,
            retry_after: Duration::ZERO,
            findings: Findings::default(),
        }
    }
}

impl RateEstimator {
    /// The rate at which to send, in bytes of IP packets per second; `None` without a limit.
    pub(crate) fn pace(&self) -> Option<u64> {
        (self.stage != Stage::Open).then_some(self.pace.max(LEAST) as u64)
    }

    /// What the path is believed to carry, in bytes of IP packets per second; `None` if nothing is known.
    pub(crate) fn rate(&self) -> Option<u64> {
        (self.rate > 0.0).then_some(self.rate as u64)
    }

    /// Whether the path has been full, so that its rate is what it carries.
    pub(crate) fn is_measured(&self) -> bool {
        self.stage == Stage::Servo
    }

    /// What stands in queues on the way.
    pub(crate) fn queue(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.queue).unwrap_or(0))
    }

    /// The least delay: arrival minus send timestamp, modulo 2^32.
    pub(crate) fn base(&self) -> Option<u32> {
        self.base.get()
    }

    /// Others are full, and this path is needed: it is not to be flooded.
    pub(crate) fn start(&mut self, round_trip: Duration) {
        if self.stage == Stage::Open {
            self.stage = Stage::Start;
            self.rate = self.rate.max(start_rate(round_trip));
            self.pace = self.rate;
        }
    }

    /// The path is not used although others are full: what is believed of it may be wrong, so it starts again. After
    /// each time it takes twice as long until the next, from 2 s to a minute, as it may be right.
    pub(crate) fn retry(&mut self, now: Instant, round_trip: Duration) {
        if self.stage == Stage::Servo && now >= self.retry_at {
            self.retry_after = (self.retry_after * 2).clamp(RETRY[0], RETRY[1]);
            self.retry_at = now + self.retry_after;
            self.stage = Stage::Open;
            self.start(round_trip);
        }
    }

    /// The path has nothing to send, `next` being its next path sequence.
    pub(crate) fn on_idle(&mut self, next: u32) {
        self.busy_from = next;
    }

    /// Feedback about the path arrived. `header` bytes of IP and UDP stand before each datagram.
    pub(crate) fn on_feedback(
        &mut self,
        now: Instant,
        block: &Block,
        header: u64,
        round_trip: Duration,
    ) {
        let bytes = block.received_bytes + u64::from(block.received) * header;
        let point = Point {
            at: now,
            highest: block.highest,
            sent: block.highest_sent,
            arrived: block.highest_arrived,
            bytes,
            packets: block.received,
            lost: block.lost,
            delay: block.delay_min,
            mean: block.delay_min.wrapping_add(block.delay_mean),
        };
        if self.points.last().is_some_and(|last| after(point.highest, last.highest) <= 0) {
            return;
        }
        if let Some(last) = self.points.last() {
            let interval = now.since(last.at).min(LONGEST_INTERVAL);
            self.interval = (self.interval * 7 + interval) / 8;
        }
        self.points.push(point);
        self.noise.update(block, &self.points, self.packet());
        let round_trip = round_trip.max(SHORTEST);
        self.on_delay(now, round_trip);
        if let Some(sample) = self.points.sample(
            (round_trip / 2).clamp(SHORTEST, SPAN),
            self.noise.single,
            self.busy_from,
        ) {
            let (stage, rate) = (self.stage, self.rate);
            match self.stage {
                Stage::Open => self.update_open(now, &sample, round_trip),
                Stage::Start => self.update_start(now, &sample, round_trip),
                Stage::Servo => self.update(now, &sample, round_trip),
            }
            self.tell(now, &sample, stage, rate);
        }
        self.check(now, &point, round_trip);
        self.set_pace(now, round_trip);
    }

    /// The time that the path takes for a packet, in microseconds.
    fn packet(&self) -> f64 {
        1500.0 * 1e6 / self.rate.max(LEAST)
    }

    /// After how long it is seen what was done: then feedback has come about it.
    fn reaction(&self, round_trip: Duration) -> Duration {
        round_trip + self.interval
    }

    /// The target of q.
    fn target(&self, round_trip: Duration) -> f64 {
        let packets = 2.0 * self.packet();
        let target = (round_trip / 20).clamp(TARGET[0], TARGET[1]);
        (target.as_micros() as f64).max(packets) + NOISE * self.noise.least
    }

    fn on_delay(&mut self, now: Instant, round_trip: Duration) {
        let Some(last) = self.points.last().copied() else { return };
        let unseen = self.base.on_delay(now, last.delay, 1000.0 + NOISE * self.noise.least);
        // The least delay is seen only while nothing stands in the queue.
        if unseen && self.stage == Stage::Servo {
            self.draining_until = Some(now + round_trip + Duration::from_millis(20));
        }
        let Some(base) = self.base() else { return };
        let noise = Duration::from_micros((4.0 * self.noise.single) as u64);
        let recent = (round_trip / 2).clamp(SHORTEST, SPAN + noise);
        let least = self.points.least_delay(recent).unwrap_or(last.delay);
        self.queue = after(least, base);
    }

    fn set_pace(&mut self, now: Instant, round_trip: Duration) {
        self.gain = match self.stage {
            Stage::Open => 0.0,
            Stage::Start => (START_QUEUE.as_secs_f64() / round_trip.as_secs_f64()).clamp(0.35, 1.0),
            Stage::Servo => {
                let reaction = self.reaction(round_trip);
                let off =
                    (self.target(round_trip) - f64::from(self.queue)) / reaction.as_micros() as f64;
                let most =
                    (OVERSHOOT.as_secs_f64() / reaction.as_secs_f64()).clamp(GAIN, MOST_GAIN);
                (off * self.boost).clamp(LEAST_GAIN, most.min(GAIN * self.boost))
            }
        };
        self.pace = self.rate * (1.0 + self.gain);
        if self.stage != Stage::Servo {
            return;
        }
        if self.draining_until.is_some_and(|until| now < until) {
            self.pace = self.pace.min(self.rate * LOW_PACE);
        } else {
            self.draining_until = None;
        }
        for bound in [self.base.bound(), self.ceiling.bound(self.rate)].into_iter().flatten() {
            self.pace = self.pace.min(bound.max(start_rate(round_trip)));
        }
        self.findings.on_queue(now, self.draining_until.is_some(), self.queue);
    }
}

/// What a path starts with, in bytes per second. What it delivers of less says nothing of what it can deliver.
fn start_rate(round_trip: Duration) -> f64 {
    START / round_trip.max(SHORTEST).as_secs_f64()
}
