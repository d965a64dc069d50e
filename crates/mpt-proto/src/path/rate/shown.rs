//! What people are told of the estimate.

use std::time::Duration;

use super::points::Sample;
use super::{Findings, RateEstimator, RateStage, SHORTEST, Stage};
use crate::time::Instant;

impl RateEstimator {
    /// What stands in queues on the way is held near this, if the path is paced.
    pub(crate) fn queue_target(&self, round_trip: Duration) -> Option<Duration> {
        let target = || Duration::from_micros(self.target(round_trip.max(SHORTEST)) as u64);
        (self.stage != Stage::Open).then(target)
    }

    /// What the estimate is at.
    pub(crate) fn stage(&self) -> RateStage {
        match self.stage {
            _ if self.stopped => RateStage::Stopped,
            Stage::Open => RateStage::Open,
            Stage::Start => RateStage::Start,
            Stage::Servo if self.competes() => RateStage::Competing,
            Stage::Servo if self.draining_until.is_some() => RateStage::Draining,
            Stage::Servo => RateStage::Servo,
        }
    }

    /// What was found out last.
    pub(crate) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Notes for people what a sample has changed: before it, stage and rate were these.
    pub(super) fn tell(&mut self, now: Instant, sample: &Sample, stage: Stage, rate: f64) {
        self.findings.on_sample(sample.busy);
        match self.stage {
            Stage::Servo if stage == Stage::Servo => {
                let loss = (sample.busy && self.drops(sample)).then(|| sample.loss());
                self.findings.on_rate(now, rate, self.rate, loss);
            }
            Stage::Servo => self.findings.on_full(now, self.rate, self.queue),
            Stage::Open | Stage::Start => {}
        }
    }
}
