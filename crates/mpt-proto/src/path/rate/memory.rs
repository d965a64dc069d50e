//! What the estimate of a path takes of memory.

use super::RateEstimator;

impl RateEstimator {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.points.memory() + self.findings.memory()
    }

    /// Gives back what is not needed while nothing is sent. What is known of the path stays.
    pub(crate) fn rest(&mut self) {
        self.points.rest();
    }
}
