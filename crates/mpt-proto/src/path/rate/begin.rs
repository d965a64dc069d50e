//! How a path begins: open as long as nothing shows that it is full, and with little when others are full and it is needed.

use std::time::Duration;

use super::points::Sample;
use super::{RateEstimator, SHORTEST, Stage};
use crate::time::Instant;

/// A path is no longer open when q has reached this, or an eighth of the round trip.
const OPEN: Duration = Duration::from_millis(5);

/// After how long a path that is not used starts again, at first and at the most.
const RETRY: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];

/// What a path starts with, in bytes per round trip.
const START: f64 = 15_000.0;

impl RateEstimator {
    /// Others are full, and this path is needed: it is not to be flooded.
    pub(crate) fn start(&mut self, round_trip: Duration) {
        if self.stage == Stage::Open {
            self.stage = Stage::Start;
            let start = START / round_trip.max(SHORTEST).as_secs_f64();
            let start = start.min(self.shown().unwrap_or(f64::MAX));
            self.rate = self.rate.max(start).max(self.trains.start());
            self.pace = self.rate;
        }
    }

    /// Trains may have shown more than the path has begun with: others have become full while one was on its way, by their own trains, if
    /// their queues are short.
    pub(super) fn begin_with_shown(&mut self) {
        if self.stage == Stage::Start && self.trains.start() > self.rate {
            (self.rate, self.pace) = (self.trains.start(), self.trains.start());
        }
    }

    /// The path is not used although others are full: what is believed of it may be wrong, so it starts again. After
    /// each time it takes twice as long until the next, from 2 s to a minute, as it may be right.
    pub(crate) fn retry(&mut self, now: Instant, round_trip: Duration) {
        if self.stage == Stage::Servo && !self.held && now >= self.retry_at {
            self.retry_after = (self.retry_after * 2).clamp(RETRY[0], RETRY[1]);
            self.retry_at = now + self.retry_after;
            self.start_again(round_trip);
        }
    }

    /// The path takes over what another one has carried. One that was never kept busy seemed full with next to nothing sent, as a longer
    /// route makes it: it starts.
    pub(crate) fn take_over(&mut self, round_trip: Duration) {
        if self.stage == Stage::Servo && !self.was_busy && !self.held {
            self.start_again(round_trip);
        }
    }

    fn start_again(&mut self, round_trip: Duration) {
        self.stage = Stage::Open;
        self.start(round_trip);
    }

    /// What a sample says of a path that has never been full.
    pub(super) fn update_open(&mut self, sample: &Sample, round_trip: Duration) {
        let limit = OPEN.max(round_trip / 8).as_micros() as f64 + self.allowance();
        // Much less than trains have shown does not fill it. Where delays vary they exceed this by chance now and then.
        let is_little = self.is_little(sample, limit, self.trains.known().unwrap_or_default());
        if self.shows_nothing(sample, limit) {
            self.rate = self.rate.max(sample.rate());
        } else if f64::from(self.queue) > limit && !is_little {
            // A host that stood still looks like a full path that delivers next to nothing. What the path has delivered
            // before it can deliver; if not any more, that soon shows.
            // Nor does what a flow in bursts sends on average.
            self.rate = self.rate.max(sample.rate()).max(self.trains.burst().unwrap_or(0.0));
            self.stage = Stage::Servo;
        } else if self.drops(sample) {
            self.rate = sample.rate();
            self.stage = Stage::Servo;
        } else {
            self.rate = self.rate.max(sample.rate());
        }
    }

    /// What it says of one that starts.
    pub(super) fn update_start(&mut self, sample: &Sample, round_trip: Duration) {
        let rate = sample.rate();
        // Of few datagrams the mean delay is often above the target by chance.
        let more = if self.is_jittery() { self.noise } else { 0.0 };
        let target = self.target(round_trip) + more;
        let is_full = f64::from(self.queue) > target && !self.is_sparse(sample, target);
        if (is_full || self.drops(sample)) && !self.shows_nothing(sample, target) {
            self.rate = rate;
            self.stage = Stage::Servo;
        } else {
            self.rate = self.rate.max(rate);
        }
    }
}
