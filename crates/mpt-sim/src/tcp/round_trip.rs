//! The smoothed round-trip time and the retransmission timeout (RFC 6298, as Linux computes it).

use std::time::Duration;

/// The floor of the variation's part of the timeout.
const LEAST_VARIATION: Duration = Duration::from_millis(200);
/// The longest timeout.
const GREATEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Round-trip times of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    least: Duration,
    backoff: u32,
}

impl RoundTrip {
    /// Begins with the handshake's.
    pub(super) fn new(first: Duration) -> Self {
        Self { smoothed: first, variation: first / 2, least: first, backoff: 0 }
    }

    pub(super) fn on_sample(&mut self, sample: Duration) {
        self.least = self.least.min(sample);
        self.variation = self.variation * 3 / 4 + self.smoothed.abs_diff(sample) / 4;
        self.smoothed = self.smoothed * 7 / 8 + sample / 8;
        self.backoff = 0;
    }

    pub(super) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(15);
    }

    pub(super) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    pub(super) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(super) fn least(&self) -> Duration {
        self.least
    }

    /// Linux holds up the variation, not the whole.
    pub(super) fn timeout(&self) -> Duration {
        let base = self.smoothed + (4 * self.variation).max(LEAST_VARIATION);
        base.saturating_mul(1 << self.backoff).min(GREATEST_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_two_hundred_milliseconds_beyond_the_round_trip() {
        let mut round_trip = RoundTrip::new(Duration::from_millis(10));
        for _ in 0..50 {
            round_trip.on_sample(Duration::from_millis(10));
        }
        let near = |ms| Duration::from_millis(ms).abs_diff(round_trip.timeout()).as_micros() < 2;
        assert!(near(210), "{:?}", round_trip.timeout());
        round_trip.on_timeout();
        assert!(round_trip.timeout() > Duration::from_millis(419));
        round_trip.on_sample(Duration::from_millis(10));
        assert!(round_trip.timeout() < Duration::from_millis(211));
    }
}
