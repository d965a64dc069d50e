//! What the estimate of a path takes of memory.

use super::RateEstimator;
use super::excess::Excess;
use super::rivals::Competition;

impl RateEstimator {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let competes = self.competes().then_some(size_of::<Competition>());
        self.points.memory()
            + self.findings.memory()
            + self.trains.memory()
            + competes.unwrap_or_default()
            + self.excess.as_ref().map_or(0, |_| size_of::<Excess>())
    }

    /// Gives back what is not needed while nothing is sent. What is known of the path stays.
    pub(crate) fn rest(&mut self) {
        self.points.rest();
        self.trains.rest();
        self.findings.rest();
        // The rate, which a cap has lowered, stays.
        self.excess = None;
    }
}
