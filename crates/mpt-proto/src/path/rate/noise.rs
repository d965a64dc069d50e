//! By how much the delays of a path vary although nothing stands in its queue.

use super::points::Points;
use crate::wire::extended::feedback::Block;

/// How slowly the means follow: a part of the difference at each feedback.
const PART: f64 = 16.0;

/// The mean second difference of independent values, in their standard deviations.
const BEND: f64 = 1.95;

/// What is known of it, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    /// The smoothed mean deviation of the delays of single datagrams.
    pub(super) single: f64,
    /// The deviation of the least delays of successive feedbacks. It may be much less, as where most datagrams wait for
    /// something and a few for nothing.
    pub(super) least: f64,
}

impl Noise {
    /// Feedback arrived, which is the last of the points. A packet takes `packet` microseconds on the path.
    pub(super) fn update(&mut self, block: &Block, points: &Points, packet: f64) {
        // Datagrams of one burst wait for each other, and a queue that grows or shrinks is no noise. What these three
        // contribute is independent, so their squares add up.
        let all = f64::from(block.delay_deviation).powi(2);
        let own = (all - packet.powi(2) - points.ramp().powi(2)).max(0.0).sqrt();
        self.single += (own - self.single) / PART;
        // The least one waits for up to two others.
        let burst = 2.0 * packet;
        let bend = (points.bend().powi(2) - burst.powi(2)).max(0.0).sqrt();
        let least = (bend / BEND).min(own);
        self.least += (least - self.least) / PART;
    }
}
