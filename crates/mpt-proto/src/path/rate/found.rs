//! What the estimate of a rate has come to lately, for people.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;

/// So many of the last findings of a path are kept: as many as it makes in some seconds.
const KEPT: usize = 8;

/// And of a path that rests: the one that still says what it is like.
const RESTING: usize = 1;

/// A rate that differs from the one told last by more than this share is told again.
const TOLD: f64 = 0.15;

/// What the estimate of a path's rate is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateStage {
    /// The path has never been full: nothing is held back.
    #[default]
    Open,
    /// Nothing is sent on the path yet: trains of padded beacons show what it can carry.
    Trains,
    /// The path is needed for the first time because others are full: it begins with little and doubles that per
    /// round trip.
    Start,
    /// The pace keeps the queue on the way short.
    Servo,
    /// For a round trip less is sent than the path carries, so that its least delay shows.
    Draining,
    /// Others keep a queue on the way: the path is sent on as one flow of CUBIC would be.
    Competing,
    /// The path is stopped because it goes on to lose too much.
    Stopped,
}

/// Something that was found out of a path. Rates are in bytes of IP packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// The path was filled for the first time.
    Full {
        /// What it carried then.
        rate: u64,
        /// What stood in its queue.
        queue: Duration,
    },
    /// The rate is another one than that which was told last.
    Rate {
        /// What it was.
        from: u64,
        /// What it is.
        to: u64,
    },
    /// The rate was cut because more was lost than usual.
    Cut {
        /// What it was.
        from: u64,
        /// What it is.
        to: u64,
        /// The share of datagrams that was lost, 0 to 1.
        loss: f64,
    },
    /// Less was sent for a round trip, so that the least delay shows.
    Drained {
        /// What stood in the queue before.
        before: Duration,
        /// What stood in it at the end.
        after: Duration,
    },
    /// The least delay has risen: the route is longer.
    Longer {
        /// By how much.
        by: Duration,
    },
    /// Others keep a queue on the way: it did not become shorter when less was sent, and it overflowed. From now on the path
    /// competes.
    Rival {
        /// What stands in it.
        queue: Duration,
    },
    /// The path is stopped: it went on to lose too much although next to nothing was sent.
    Stopped {
        /// The share of datagrams that was lost, 0 to 1.
        loss: f64,
    },
    /// The path was stopped, and is used again: what it is probed with arrives.
    Resumed,
    /// The queue was nearly empty, or became shorter when less was sent: the path does not compete any more.
    Alone {
        /// What stands in it.
        queue: Duration,
    },
}

/// A finding and when it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// When.
    pub at: Instant,
    /// What.
    pub what: Finding,
}

/// The last findings of a path.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Samples of what the path carried, and those of them in which it was kept busy; modulo 2^32.
    samples: [u32; 2],
    kept: VecDeque<Found>,
    /// The rate that was told last.
    told: f64,
    /// What stood in the queue when less began to be sent.
    before: Option<i32>,
}

impl Findings {
    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<Found>()
    }

    /// Gives back memory: nothing was sent for long, so only the last one still says what the path is like.
    pub(super) fn rest(&mut self) {
        self.kept.drain(..self.kept.len().saturating_sub(RESTING));
        self.kept.shrink_to_fit();
    }

    /// The last ones, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Found> {
        self.kept.iter()
    }

    /// How often it was measured what the path carried, and how often of these it had been kept busy; modulo 2^32.
    pub(crate) fn samples(&self) -> [u32; 2] {
        self.samples
    }

    pub(super) fn on_sample(&mut self, busy: bool) {
        self.samples[0] = self.samples[0].wrapping_add(1);
        self.samples[1] = self.samples[1].wrapping_add(u32::from(busy));
    }

    pub(super) fn push(&mut self, at: Instant, what: Finding) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Found { at, what });
    }

    pub(super) fn on_full(&mut self, at: Instant, rate: f64, queue: i32) {
        self.told = rate;
        self.push(at, Finding::Full { rate: rate as u64, queue: micros(queue) });
    }

    /// The rate is this, and was `before` until this feedback; `loss` is the share that was lost, if that is why it fell.
    pub(super) fn on_rate(&mut self, at: Instant, before: f64, rate: f64, loss: Option<f64>) {
        if let Some(loss) = loss
            && rate < before * (1.0 - TOLD)
        {
            self.told = rate;
            self.push(at, Finding::Cut { from: before as u64, to: rate as u64, loss });
        } else if (rate - self.told).abs() > TOLD * self.told {
            let from = std::mem::replace(&mut self.told, rate);
            self.push(at, Finding::Rate { from: from as u64, to: rate as u64 });
        }
    }

    /// Whether less is sent now so that the least delay shows, where this stands in the queue.
    pub(super) fn on_queue(&mut self, at: Instant, drains: bool, queue: i32) {
        if drains {
            self.before.get_or_insert(queue);
        } else if let Some(before) = self.before.take() {
            self.push(at, Finding::Drained { before: micros(before), after: micros(queue) });
        }
    }
}

/// Microseconds, none if they are less.
fn micros(micros: i32) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn kept(findings: &Findings) -> Vec<Finding> {
        findings.iter().map(|found| found.what).collect()
    }

    #[test]
    fn a_rate_is_told_when_it_differs_from_what_was_told() {
        let mut findings = Findings::default();
        findings.on_full(at(0), 100.0, 7000);
        findings.on_rate(at(1), 100.0, 110.0, None);
        findings.on_rate(at(2), 110.0, 114.0, None);
        findings.on_rate(at(3), 114.0, 116.0, None);
        findings.on_rate(at(4), 116.0, 60.0, Some(0.25));
        let queue = Duration::from_millis(7);
        let expected = [
            Finding::Full { rate: 100, queue },
            Finding::Rate { from: 100, to: 116 },
            Finding::Cut { from: 116, to: 60, loss: 0.25 },
        ];
        assert_eq!(kept(&findings), expected);
    }

    #[test]
    fn a_drain_is_told_at_its_end() {
        let mut findings = Findings::default();
        for (millis, drains, queue) in
            [(0, false, 3000), (1, true, 2500), (2, true, 400), (3, false, -1)]
        {
            findings.on_queue(at(millis), drains, queue);
        }
        let before = Duration::from_micros(2500);
        assert_eq!(kept(&findings), [Finding::Drained { before, after: Duration::ZERO }]);
    }

    #[test]
    fn the_last_ones_are_kept() {
        let mut findings = Findings::default();
        for by in 1..=100 {
            findings.push(at(by), Finding::Longer { by: Duration::from_millis(by) });
        }
        assert_eq!(findings.iter().count(), KEPT);
        assert_eq!(findings.iter().last().map(|found| found.at), Some(at(100)));
    }
}
