//! How long it takes to hear of losses.

use std::time::Duration;

/// One loss changes the mean by so much.
const WEIGHT: f64 = 1.0 / 16.0;

/// So many mean deviations above the mean: of the packets that a flow waits for at a time the last one counts.
const DEVIATIONS: f64 = 2.0;

/// How long after a packet was sent first the peer has told that it is lost, smoothed, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Latency {
    mean: f64,
    deviation: f64,
}

impl Latency {
    /// The peer has told that a packet is lost that was sent so long ago, and once.
    pub(in crate::tx) fn on_told(&mut self, after: Duration) {
        let after = after.as_secs_f64();
        if self.mean == 0.0 {
            self.mean = after;
        }
        self.deviation += ((after - self.mean).abs() - self.deviation) * WEIGHT;
        self.mean += (after - self.mean) * WEIGHT;
    }

    /// How long that takes at the most, nearly always; zero before the first loss.
    pub(in crate::tx) fn expected(&self) -> Duration {
        Duration::from_secs_f64(self.mean + self.deviation * DEVIATIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_losses_are_told_within_what_is_expected() {
        let mut latency = Latency::default();
        assert_eq!(latency.expected(), Duration::ZERO);
        // 60 to 99 ms, each as often.
        let times = (0..4000_u64).map(|n| Duration::from_millis(60 + n * 7 % 40));
        times.clone().for_each(|after| latency.on_told(after));
        let within = times.filter(|after| *after <= latency.expected()).count();
        assert!((3500..=4000).contains(&within), "{within}");
        assert!(latency.expected() < Duration::from_millis(110), "{:?}", latency.expected());
    }
}
