//! The highest rate of late.

use std::time::Duration;

use crate::time::Instant;

/// Half of the time that is remembered.
const HALF: Duration = Duration::from_millis(2500);

/// The highest rate of the last 2.5 to 5 s, in bytes per second.
#[derive(Debug, Default)]
pub(super) struct HighestRate {
    /// Since when the later of both is kept.
    since: Option<Instant>,
    before: u64,
    later: u64,
}

impl HighestRate {
    /// The rate is this one now. Returns the highest, which is not below it.
    pub(super) fn of_late(&mut self, now: Instant, rate: u64) -> u64 {
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= HALF {
            let is_recent = now.since(since) < HALF * 2;
            self.before = if is_recent { self.later } else { 0 };
            (self.since, self.later) = (Some(now), 0);
        }
        self.later = self.later.max(rate);
        self.later.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_remembered_for_some_seconds() {
        let mut highest = HighestRate::default();
        let mut at =
            |millis, rate| highest.of_late(Instant::ZERO + Duration::from_millis(millis), rate);
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
