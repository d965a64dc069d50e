//! How fast a path may be sent on, found out by feedback while data is sent.
//!
//! The delay of a path above its least is what stands in queues on the way, *q*. While a path is kept busy, a servo
//! holds q near a small target: it sends a little faster than the path delivers as long as q is below, and slower
//! while q is above. What the path delivers while something stands in its queue is its rate, whatever was sent; what
//! it delivers otherwise is no more than what was sent, so it is a lower bound.
//!
//! ```text
//! pace = rate * (1 + clamp((target - q) / (round trip + caution), -1/2, gain))
//! ```
//!
//! where the caution, up to 15 ms where round trips are short, stands for the time that it takes to see a queue. Up to the
//! target q is what it will be when all has arrived that was sent.
//!
//! Before anything is known of a path nothing is held back (*open*), as on a path that is never full. A path that
//! is first needed when others are full starts with few packets and doubles them per round trip (*start*).
//!
//! If q does not fall although less is sent than the path delivers, the least delay has risen, by another route for
//! example. Then the present one is the least.

mod base;
mod begin;
mod check;
mod compete;
mod drain;
mod empty;
mod evidence;
mod excess;
mod found;
mod given;
mod means;
mod memory;
mod pace;
mod points;
mod policer;
mod rivals;
mod shown;
mod spread;
mod train;
mod window;

use std::time::Duration;

use crate::time::Instant;
use crate::wire::extended::feedback::Block;
use check::DrainCheck;
pub(crate) use check::Queues;
use excess::Excess;
pub(crate) use found::Findings;
pub use found::{Finding, Found, RateStage};
pub(crate) use given::Given;
use points::{Point, Points, Sample, after};
use rivals::Rivals;
use spread::{Overtaking, Spread, Wavering};
use train::Trains;

/// A round trip that is shorter counts as this: hosts need as long to react.
const SHORTEST: Duration = Duration::from_millis(10);

/// The most by which the pace exceeds the rate.
const GAIN: f64 = 0.25;
const MOST_GAIN: f64 = 0.5;

/// The queue that a path which starts can have before anything is known of it: what buffers of links hold at least. In
/// a longer round trip it grows by less than double.
const START_QUEUE: Duration = Duration::from_millis(80);

/// No path has less, in bytes per second.
const LEAST: f64 = 8_000.0;

/// So many are lost at random at the most.
const AT_RANDOM: f64 = 0.1;

/// The pace while the least delay is looked for.
const LOW_PACE: f64 = 0.75;

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
    /// The smoothed mean deviation of the delay, in microseconds: what q varies by although nothing stands in a queue.
    noise: f64,
    deviations: u8,
    /// How much the delay of small datagrams exceeds its least on average.
    spread: Spread,
    overtaking: Overtaking,
    wavering: Wavering,
    /// The share of datagrams that is lost in the long run.
    usual_loss: f64,
    /// The least delay of the present and of the last period, and when the present one began.
    base: Option<[u32; 2]>,
    base_began: Instant,
    /// The least mean delay of the same periods.
    mean_base: Option<[u32; 2]>,
    /// Whether it is of small datagrams alone, of which there were few.
    is_base_of_few: bool,
    /// The same over longer periods, whatever was found out of the route, and since when.
    least: (Option<[u32; 2]>, Instant),
    /// For how many periods it has been seen without sending less.
    bases_seen: u8,
    /// Until when less is sent so that the least delay shows.
    draining_until: Option<Instant>,
    drain: Option<Box<DrainCheck>>,
    /// What was lost while no queue stood.
    excess: Option<Box<Excess>>,
    /// From when on what is lost counts, after the path was dead.
    judged_from: Instant,
    misses: u8,
    /// What the path is sent on by while its rate is doubted, and q when that began; zero on a path alone.
    doubted: Option<(f64, i32)>,
    /// What arrived per second lately, in bytes.
    delivered: f64,
    /// What the gain is multiplied with: more after each success.
    boost: f64,
    boosted_at: Instant,
    /// By which share of its target q was below that since then, in sum, and how often that was looked at. Only while the path
    /// was kept busy: otherwise little in its queue says nothing.
    room: (f64, f64),
    /// The rate a round trip ago.
    rate_before: f64,
    /// The path sequence from which on the path has been kept busy.
    busy_from: u32,
    /// When it may start again, and how long after the last time that was.
    retry_at: Instant,
    retry_after: Duration,
    trains: Trains,
    rivals: Rivals,
    /// Whether it has been kept busy since it was seen to be full.
    was_busy: bool,
    /// Whether the pace is not to grow because too much is lost, and whether the path is stopped because of that.
    held: bool,
    stopped: bool,
    updated: Instant,
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
            noise: 0.0,
            deviations: 0,
            spread: Spread::default(),
            overtaking: Overtaking::default(),
            wavering: Wavering::default(),
            usual_loss: 0.0,
            base: None,
            base_began: Instant::ZERO,
            mean_base: None,
            is_base_of_few: false,
            least: (None, Instant::ZERO),
            bases_seen: 0,
            draining_until: None,
            drain: None,
            excess: None,
            judged_from: Instant::ZERO,
            misses: 0,
            doubted: None,
            delivered: 0.0,
            boost: 1.0,
            boosted_at: Instant::ZERO,
            room: (0.0, 0.0),
            rate_before: 0.0,
            busy_from: 0,
            retry_at: Instant::ZERO,
            retry_after: Duration::ZERO,
            trains: Trains::default(),
            rivals: Rivals::default(),
            was_busy: false,
            held: false,
            stopped: false,
            updated: Instant::ZERO,
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

    /// Whether the path is not known to have been full.
    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether feedback is about a train. That stands in a queue of its own making, which says nothing of the path.
    pub(crate) fn is_of_train(&self, block: &Block) -> bool {
        self.trains.is_in(block)
    }

    /// The path has nothing to send, `next` being its next path sequence.
    pub(crate) fn on_idle(&mut self, next: u32) {
        self.busy_from = next;
    }

    /// Feedback about the path arrived.
    pub(crate) fn on_feedback(&mut self, now: Instant, block: &Block, given: Given) {
        let Given { header, least: round_trip, .. } = given;
        let bytes = block.received_bytes.saturating_add(u64::from(block.received) * header);
        let point = Point {
            at: now,
            highest: block.highest,
            sent: block.highest_sent,
            arrived: block.highest_arrived,
            bytes,
            payload: block.received_bytes,
            packets: block.received,
            meant: given.meant,
            lost: block.lost,
            delay: block.delay_min,
            mean: block.delay_min.wrapping_add(block.delay_mean),
            sum: 0,
        };
        let follows = self.points.last().is_none_or(|last| after(point.highest, last.highest) > 0);
        if follows {
            self.on_least(now, block.delay_min);
        }
        let is_of_train = self.is_of_train(block);
        if is_of_train {
            let about = self.about(given.number, header);
            self.trains.on_block(now, block, given.meant, self.points.last(), about);
            self.begin_with_shown();
        }
        let is_open = self.stage == Stage::Open;
        let begins = is_open || self.stage == Stage::Start && self.has_train(now);
        if is_of_train && begins || is_open && self.trains.is_overtaken(now) {
            self.points = Points::default();
            self.points.push(point, false);
            return;
        }
        if !follows {
            self.on_late(block, given.meant);
            self.points.add_delays(&point);
            return;
        }
        self.trains.on_burst(block, self.points.last(), header);
        self.on_spread(block, given.meant);
        self.on_data(block);
        self.points.push(point, self.varies());
        let deviation = self.without_burst(f64::from(block.delay_deviation), self.burst_takes());
        self.deviations = (self.deviations + 1).min(16);
        self.noise += (deviation - self.noise) / f64::from(self.deviations);
        let round_trip = round_trip.max(SHORTEST);
        let latest = given.latest.max(round_trip);
        self.on_delay(now, round_trip);
        let lost = self.on_lost(now, block.lost, round_trip);
        if given.competes && self.stage == Stage::Servo && !self.held {
            self.look_for_rivals(now, [round_trip, latest], given.phase);
        }
        // What is lost while a queue stands may be lost because it is full.
        let is_short = f64::from(self.queue) < 3.0 * self.target(round_trip);
        let at_random = if is_short { AT_RANDOM } else { 0.0 };
        let sample = self.points.sample(
            (round_trip / 2).max(SHORTEST),
            self.noise,
            self.is_jittery().then_some(at_random),
            self.busy_from,
        );
        let competed = self.competes();
        if competed {
            self.compete(now, sample.as_ref(), lost, [round_trip, latest]);
        }
        if let Some(sample) = sample {
            self.delivered = sample.bytes * 1e6 / sample.arrived.max(1.0);
            let (stage, rate) = (self.stage, self.rate);
            match self.stage {
                Stage::Servo if competed => {}
                Stage::Open => self.update_open(&sample, round_trip),
                Stage::Start => self.update_start(&sample, round_trip),
                Stage::Servo => self.update(now, &sample, round_trip, given.others),
            }
            self.was_busy = self.stage == Stage::Servo && (self.was_busy || sample.busy);
            if self.held {
                self.rate = self.rate.min(rate);
            } else if stage != Stage::Open {
                self.look_for_excess(now, &sample, round_trip, given.last);
            }
            if !competed {
                self.rivals.on_rate(now, self.rate);
            }
            self.usual_loss += (sample.loss() - self.usual_loss) / 64.0;
            self.tell(now, &sample, stage, rate);
        }
        self.set_pace(now, [round_trip, latest], &given);
        self.updated = now;
    }

    fn update(&mut self, now: Instant, sample: &Sample, round_trip: Duration, others: Queues) {
        let target = self.target(round_trip);
        let queue = f64::from(self.queue);
        let change = sample.arrived - sample.sent;
        let noise = self.allowance() / 2.0;
        let moves = change.abs() > 0.03 * sample.sent.max(sample.arrived) + noise;
        let delivered = sample.bytes * 1e6 / sample.arrived.max(1.0);
        if sample.busy {
            self.room.0 += 1.0 - queue / target;
            self.room.1 += 1.0;
        }
        if queue > target {
            self.boost = if self.is_jittery() { (self.boost / 2.0).max(1.0) } else { 1.0 };
            // Something stands in the queue now. So it did all the time if it became less; and if it became more, more
            // was sent than the path carries. If it stays although little is sent, the least delay has risen.
            // A route that becomes longer lets it seem to grow once, when q is above its target for the first time, and no other path has a queue.
            let is_first = self.drain.is_none() && others == Queues::Empty;
            let grows = change > 0.1 * sample.sent + 2.0 * noise && !is_first;
            if moves && (sample.busy || grows && !self.is_sparse(sample, target)) {
                let share = if change > 0.0 { 0.5 } else { 0.25 };
                let share = if self.is_jittery() { share / 2.0 } else { share };
                self.rate += share * (delivered - self.rate);
            } else if sample.busy && self.pace > 0.9 * self.rate && self.doubted.is_none() {
                let share = if self.is_jittery() { 0.1 } else { 0.25 };
                self.rate += share * (delivered - self.rate);
            }
        } else if self.is_jittery() {
            // The highest of many samples that vary is too high.
            self.rate += 0.25 * (sample.rate() - self.rate).max(0.0);
        } else {
            self.rate = self.rate.max(sample.rate());
        }
        self.set_boost(now, round_trip, queue <= target);
        if sample.busy && self.drops(sample) {
            self.rate = self.rate.min(sample.rate());
            self.boost = 1.0;
        }
        self.rate = self.rate.max(LEAST);
    }
}
