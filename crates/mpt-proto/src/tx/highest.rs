//! The highest rate of late.

use std::time::Duration;

use crate::time::Instant;

/// Half of the time that is remembered.
const HALF: Duration = Duration::from_millis(2500);

/// In bytes per second.
const UNIT: u64 = 16;

/// The highest rate of the last 2.5 to 5 s, in bytes per second.
#[derive(Debug, Default)]
pub(super) struct HighestRate {
    /// Since when the later of both is kept.
    since: Instant,
    /// In units of [`UNIT`], rounded up.
    before: u32,
    later: u32,
}

impl HighestRate {
    /// The rate is this one now. Returns the highest, which is not below it.
    pub(super) fn of_late(&mut self, now: Instant, rate: u64) -> u64 {
        let passed = now.since(self.since);
        if passed >= HALF {
            self.before = if passed < HALF * 2 { self.later } else { 0 };
            (self.since, self.later) = (now, 0);
        }
        self.later = self.later.max(u32::try_from(rate.div_ceil(UNIT)).unwrap_or(u32::MAX));
        (u64::from(self.later.max(self.before)) * UNIT).max(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_remembered_for_some_seconds() {
        let mut highest = HighestRate::default();
        let mut at = |millis, rate| {
            highest.of_late(Instant::ZERO + Duration::from_millis(millis), rate * UNIT) / UNIT
        };
        assert_eq!(at(1000, 80), 80);
        assert_eq!(at(1100, 20), 80);
        assert_eq!(at(3500, 20), 80);
        assert_eq!(at(3600, 40), 80);
        assert_eq!(at(6100, 20), 40, "80 was five seconds ago");
        assert_eq!(at(8600, 20), 20);
        assert_eq!(at(8700, 90), 90);
        assert_eq!(at(60_000, 10), 10, "nobody asked for long");
    }
}
