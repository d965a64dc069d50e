//! Flows that send so little that nothing is gained if they wait: calls, names, key strokes, and the beginning of any
//! other.

use crate::time::Instant;

/// What a flow may send at once: ten packets, as many as TCP begins with (RFC 6928).
const BURST: u64 = 15_000;

/// What it may send in the long run, in bytes per second: a call with video.
const RATE: u64 = 64_000;

/// What a flow has sent of what it may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    spent: u64,
    at: Instant,
}

impl Allowance {
    /// Whether a packet of `len` bytes is within what the flow may send. All its packets count, so a flow that keeps
    /// sending more is out of it until it pauses.
    pub(super) fn take(&mut self, now: Instant, len: usize) -> bool {
        let regained = now.since(self.at).as_micros().min(1 << 40) as u64 * RATE / 1_000_000;
        self.at = now;
        self.spent = (self.spent.saturating_sub(regained) + len as u64).min(2 * BURST);
        self.spent <= BURST
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// How many of the packets that a flow sends in 10 s are within its allowance.
    fn share(len: usize, interval: Duration) -> f64 {
        let mut allowance = Allowance::default();
        let (mut now, mut taken, mut sent) = (Instant::ZERO, 0, 0);
        while now < Instant::ZERO + Duration::from_secs(10) {
            taken += u32::from(allowance.take(now, len));
            sent += 1;
            now += interval;
        }
        f64::from(taken) / f64::from(sent)
    }

    #[test]
    fn a_call_is_sparse_and_a_download_is_not() {
        assert_eq!(share(200, Duration::from_millis(20)), 1.0);
        assert_eq!(share(1200, Duration::from_millis(20)), 1.0);
        assert!(share(1400, Duration::from_millis(10)) < 0.05);
        assert!(share(60, Duration::from_micros(100)) < 0.05);
    }
}
