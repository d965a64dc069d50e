//! How far a run has come, and how long the rest takes.

use std::collections::BTreeSet;
use std::slice;
use std::time::{Duration, Instant};

use crate::experiment::plan::Experiment;
use crate::experiment::repetition::{self, Repetition};
use crate::experiment::step::steps;

/// How far a run has come.
pub(super) struct Progress {
    /// The durations of the remaining flows, the next one last.
    ahead: Vec<Duration>,
    done: usize,
    began: Instant,
    /// Time spent so far on traffic; all else is set-up.
    traffic: Duration,
}

impl Progress {
    /// A run that begins now, with flows of these durations.
    pub(super) fn through(lengths: Vec<Duration>) -> Self {
        let mut progress =
            Self { ahead: Vec::new(), done: 0, began: Instant::now(), traffic: Duration::ZERO };
        progress.expect(lengths);
        progress
    }

    /// Only flows of these durations remain.
    pub(super) fn expect(&mut self, lengths: Vec<Duration>) {
        self.ahead = lengths;
        self.ahead.reverse();
    }

    /// The number of the flow under way, counted from 1.
    pub(super) fn number(&self) -> usize {
        self.done + 1
    }

    /// How many flows there are.
    pub(super) fn count(&self) -> usize {
        self.done + self.ahead.len().max(1)
    }

    /// The next flow is over, or it is left out; it has this duration.
    pub(super) fn finish(&mut self, length: Duration) {
        self.ahead.pop();
        self.done += 1;
        self.traffic += length;
    }

    /// How long the rest will take, if setting up takes as long as before.
    pub(super) fn remaining(&self) -> Duration {
        let traffic: Duration = self.ahead.iter().sum();
        let steps = u32::try_from(self.done.max(1)).unwrap_or(u32::MAX);
        let rest = u32::try_from(self.ahead.len()).unwrap_or(u32::MAX);
        let set_up = self.began.elapsed().saturating_sub(self.traffic) / steps;
        traffic + set_up * if self.done == 0 { 0 } else { rest }
    }
}

impl Experiment {
    /// How long it takes, set-up not counted.
    pub fn length(&self, quick: bool) -> Duration {
        let this = slice::from_ref(self);
        lengths(this, &repetition::all(this), quick).iter().sum()
    }
}

/// How long each flow takes, those left out that will be known by then.
pub(super) fn lengths(
    experiments: &[Experiment],
    repetitions: &[Repetition],
    quick: bool,
) -> Vec<Duration> {
    let mut seen = BTreeSet::new();
    let mut lengths = Vec::new();
    for repetition in repetitions {
        let (experiment, cell) = repetition.of(experiments);
        for step in steps(experiment, cell, quick) {
            let is_new = seen.insert((repetition.number, step.key.clone())) || !quick;
            if is_new && step.unfit.is_none() {
                lengths.extend(step.lengths());
            }
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::library;

    #[test]
    fn a_flow_during_an_outage_is_counted_beside_the_others() {
        let demo = library::find("demo").expect("it is built in");
        let lengths = lengths(&demo, &repetition::all(&demo), false);
        // Two links alone, two systems, and one of them while a link fails.
        assert_eq!(lengths.len(), 5);
        assert_eq!(lengths.iter().sum::<Duration>(), demo[0].length(false));
    }
}
