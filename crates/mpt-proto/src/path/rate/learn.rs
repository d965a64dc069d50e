//! What the samples of a path say of its rate: while nothing is known, while it starts, and while it is full.

use std::time::Duration;

use super::base::Judgement;
use super::points::{Point, Sample};
use super::{Finding, LEAST, NOISE, OPEN, RateEstimator, Stage, start_rate};
use crate::time::Instant;

/// A path that drops such a share of what it is sent carries no more, though it is not kept busy.
const FUTILE: f64 = 0.2;

impl RateEstimator {
    /// Whether nothing has stood in the queue for so long that what it dropped has been reported.
    fn is_clear(&self, now: Instant, round_trip: Duration) -> bool {
        now.since(self.excess_at) >= 2 * self.reaction(round_trip)
    }

    /// Whether so much more is lost than usual that something must be full.
    pub(super) fn drops(&self, sample: &Sample) -> bool {
        sample.lost > 4.0 && sample.loss() > 0.05 + 2.0 * self.ceiling.usual()
    }

    pub(super) fn update_open(&mut self, now: Instant, sample: &Sample, round_trip: Duration) {
        let limit = OPEN.max(round_trip / 8).as_micros() as f64 + NOISE * self.noise.least;
        if f64::from(self.queue) > limit || self.drops(sample) {
            self.fill(now, sample.rate());
        } else {
            self.rate = self.rate.max(sample.rate());
        }
    }

    pub(super) fn update_start(&mut self, now: Instant, sample: &Sample, round_trip: Duration) {
        let rate = sample.rate();
        if f64::from(self.queue) > self.target(round_trip) || self.drops(sample) {
            self.fill(now, rate);
        } else {
            self.rate = self.rate.max(rate);
        }
    }

    /// The path is full, and carries `rate`.
    fn fill(&mut self, now: Instant, rate: f64) {
        self.rate = rate;
        self.stage = Stage::Servo;
        // What was dropped until now was too much for any link.
        self.ceiling.restart(now);
    }

    pub(super) fn update(&mut self, now: Instant, sample: &Sample, round_trip: Duration) {
        let target = self.target(round_trip);
        let queue = f64::from(self.queue);
        let change = sample.arrived - sample.sent;
        let moves = change.abs() > 0.03 * sample.sent.max(sample.arrived) + 2.0 * self.noise.single;
        let delivered = sample.bytes * 1e6 / sample.arrived.max(1.0);
        if queue > target {
            self.boost = 1.0;
            // Something stands in the queue now. So it did all the time if it became less; and if it became more, more
            // was sent than the path carries. If it stays although little is sent, the least delay has risen.
            if sample.leaps {
                // Another route, or the feedback after this one will tell.
            } else if moves && (sample.busy || change > 0.1 * sample.sent + 2.0 * self.noise.single)
            {
                let share = if change > 0.0 { 0.5 } else { 0.25 };
                self.rate += share * (delivered - self.rate);
            } else if sample.busy && self.pace > 0.9 * self.rate {
                self.rate += 0.25 * (delivered - self.rate);
            }
        } else if !sample.leaps {
            self.rate = self.rate.max(sample.rate());
        }
        let reaction = self.reaction(round_trip);
        if queue > target / 4.0 || self.pace < self.rate {
            self.filled_at = now;
        }
        if now.since(self.boosted_at) >= reaction * 5 / 4 {
            let grown = self.rate > self.rate_before * (1.0 + 0.3 * self.gain.max(0.02));
            // More was sent than the path was believed to deliver, and it does not show.
            let is_absorbed = sample.busy && now.since(self.filled_at) >= reaction;
            let grown = (grown || is_absorbed) && queue <= target;
            self.boost = if grown { (self.boost * 2.0).min(16.0) } else { 1.0 };
            self.boosted_at = now;
            self.rate_before = self.rate;
        }
        // A path that is not kept busy is sent less than it is believed to carry, and if it drops much of that, even that
        // is too much.
        let is_futile = sample.busy || sample.loss() > FUTILE;
        if is_futile && self.is_clear(now, round_trip) && self.drops(sample) {
            let least = if sample.busy { LEAST } else { start_rate(round_trip) };
            self.rate = self.rate.min(sample.rate().max(least));
            self.boost = 1.0;
        }
        self.rate = self.rate.max(LEAST);
    }

    /// Whether what is above the least delay is a queue, and whether what is lost is the path's own.
    pub(super) fn check(&mut self, now: Instant, point: &Point, round_trip: Duration) {
        if self.stage != Stage::Servo {
            return;
        }
        let is_low = f64::from(self.queue) <= self.target(round_trip);
        let is_filled = self.pace >= 0.98 * self.rate || self.ceiling.bound(self.rate).is_some();
        let is_clear = self.is_clear(now, round_trip) && is_filled;
        self.ceiling.on_point(point, is_clear.then_some(self.busy_from), round_trip);
        if let Some(delivered) = self.ceiling.delivered() {
            self.rate = self.rate.min(delivered.max(start_rate(round_trip)));
        }
        if is_low {
            self.base.trust();
            return;
        }
        self.excess_at = now;
        let Some(points) = self.points.last_two() else { return };
        match self.base.on_excess(now, self.rate, self.noise.single, points) {
            Some(Judgement::Delivers(rate)) => self.rate = rate.max(LEAST),
            Some(Judgement::Rose) => {
                self.findings.push(now, Finding::Longer { by: self.queue() });
                self.queue = 0;
            }
            None => {}
        }
    }
}
