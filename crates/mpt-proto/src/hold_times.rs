//! For how long packets were held.

use std::time::Duration;

/// How many packets were held for how long, waiting for earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldTimes {
    counts: [u64; Self::BOUNDS.len() + 1],
    micros: u64,
}

impl HoldTimes {
    /// The longest times that are counted together, in milliseconds; what is longer is counted behind them.
    pub const BOUNDS: [u16; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

    /// A packet was held for so many microseconds.
    pub(crate) fn add(&mut self, micros: u32) {
        let is_longer = |bound: &&u16| micros > u32::from(**bound) * 1000;
        self.counts[Self::BOUNDS.iter().take_while(is_longer).count()] += 1;
        self.micros += u64::from(micros);
    }

    /// How many were held for no longer than each of the [bounds](Self::BOUNDS), and longer than the one before; the last
    /// ones for longer than all.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// All times together.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_up_to_their_bounds() {
        let mut times = HoldTimes::default();
        [0, 1000, 1001, 50_000, 50_001, 500_000, 500_001, u32::MAX]
            .into_iter()
            .for_each(|micros| times.add(micros));
        assert_eq!(times.counts(), [2, 1, 0, 0, 0, 1, 1, 0, 1, 2]);
        assert_eq!(times.sum(), Duration::from_micros(1_102_003 + u64::from(u32::MAX)));
    }
}
