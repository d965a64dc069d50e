//! How much a flow sends. With little nothing is gained if it waits: calls, names, key strokes, and the beginning of any
//! other. Much for a while is a transfer in bulk.

use std::time::Duration;

use crate::time::Instant;

/// What a flow may send at once: ten packets, as many as TCP begins with (RFC 6928).
const BURST: u64 = 15_000;

/// What it may send in the long run, in bytes per second: a call with video.
const RATE: u64 = 64_000;

/// A flow that has sent so much, over such a time, without a pause of that time, is bulk.
const BULK: u64 = 1_000_000;
const BULK_TIME: Duration = Duration::from_secs(1);

/// How much a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Volume {
    /// So little that it need not wait.
    Sparse,
    /// More.
    Usual,
    /// Much, for a while.
    Bulk,
}

/// What a flow has sent of what it may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    spent: u64,
    at: Instant,
    /// Since when it has sent more without a long pause, when it did so last, and the bytes.
    over_since: Instant,
    over_at: Instant,
    over: u64,
}

impl Allowance {
    /// The flow sends a packet of `len` bytes. All its packets count, so one that keeps sending more than it may is not
    /// sparse until it pauses.
    pub(super) fn take(&mut self, now: Instant, len: usize) -> Volume {
        let regained = now.since(self.at).as_micros().min(1 << 40) as u64 * RATE / 1_000_000;
        self.at = now;
        self.spent = (self.spent.saturating_sub(regained) + len as u64).min(2 * BURST);
        let is_over = self.spent > BURST;
        if now.since(self.over_at) >= BULK_TIME {
            (self.over_since, self.over) = (now, 0);
        }
        if is_over {
            self.over_at = now;
            self.over = self.over.saturating_add(len as u64);
        }
        if self.over >= BULK && now.since(self.over_since) >= BULK_TIME {
            Volume::Bulk
        } else if is_over {
            Volume::Usual
        } else {
            Volume::Sparse
        }
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
            taken += u32::from(allowance.take(now, len) == Volume::Sparse);
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

    #[test]
    fn bulk_is_much_over_a_second_and_remains_so_over_short_pauses() {
        let mut allowance = Allowance::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(5000 + millis);
        let mut send =
            |from: u64, to: u64| (from..to).map(|millis| allowance.take(at(millis), 3000)).last();
        assert_eq!(send(0, 900), Some(Volume::Usual), "not for long");
        assert_eq!(send(900, 1200), Some(Volume::Bulk));
        assert_eq!(send(1700, 1701), Some(Volume::Bulk), "a pause");
        assert_eq!(send(3000, 3001), Some(Volume::Sparse), "another transfer");
        let mut slow = Allowance::default();
        let volumes: Vec<_> = (0..300).map(|count| slow.take(at(count * 10), 1000)).collect();
        assert!(!volumes.contains(&Volume::Bulk), "not much");
    }
}
