//! Rates over the last second, from counters that only grow.

use std::collections::VecDeque;
use std::time::Duration;

/// The window of a rate shown to a person.
const WINDOW: Duration = Duration::from_secs(1);

/// Readings of some counters, as far back as one window.
#[derive(Debug, Default)]
pub(super) struct Meter {
    readings: VecDeque<(Duration, Vec<u64>)>,
}

impl Meter {
    /// Takes the counters' bytes at a time; gives each one's rate in bit/s over the last second, or
    /// since the first reading.
    pub(super) fn read(&mut self, at: Duration, bytes: Vec<u64>) -> Vec<f64> {
        let (from, before) = self.readings.front().map_or((at, &bytes), |(at, bytes)| (*at, bytes));
        let seconds = at.saturating_sub(from).as_secs_f64();
        let rate = |(now, before): (&u64, &u64)| {
            if seconds > 0.0 { now.saturating_sub(*before) as f64 * 8.0 / seconds } else { 0.0 }
        };
        let rates = bytes.iter().zip(before).map(rate).collect();
        self.readings.push_back((at, bytes));
        while self.readings.front().is_some_and(|(first, _)| at.saturating_sub(*first) >= WINDOW) {
            self.readings.pop_front();
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_covers_the_last_second_only() {
        let mut meter = Meter::default();
        let mut rates = Vec::new();
        for quarter in 0..=12u64 {
            // 1000 bytes per quarter second up to second 2, then nothing.
            let bytes = 1000 * quarter.min(8);
            rates.push(meter.read(Duration::from_millis(quarter * 250), vec![bytes])[0]);
        }
        assert_eq!(rates[0], 0.0, "one reading is no rate");
        assert_eq!(rates[8], 32_000.0);
        assert_eq!(rates[10], 16_000.0, "half the second was silent");
        assert_eq!(rates[12], 0.0);
    }
}
