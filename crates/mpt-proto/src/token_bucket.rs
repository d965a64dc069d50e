//! A limit on how often something may happen.

use std::time::Duration;

use crate::time::Instant;

/// A token bucket: it holds a number of tokens at the most, each use takes one, and one comes back
/// every interval.
///
/// This is the way to limit ICMP errors that RFC 4443 section 2.4 (f) recommends: it permits a
/// burst, for many senders that need the same message at once, and bounds the rate.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    interval: Duration,
    size: u32,
    /// When it will be full again, if nothing is taken.
    full_at: Instant,
}

impl TokenBucket {
    /// A full bucket of `size` tokens, at least one, of which one comes back every `interval`. An
    /// interval of zero limits nothing.
    pub const fn new(size: u32, interval: Duration) -> Self {
        let size = if size == 0 { 1 } else { size };
        Self { interval, size, full_at: Instant::ZERO }
    }

    /// Takes a token, if there is one at `now`.
    pub fn take(&mut self, now: Instant) -> bool {
        let left = self.left_at(now);
        if let Some(full_at) = left {
            self.full_at = full_at;
        }
        left.is_some()
    }

    /// Whether there is a token at `now`, which is left where it is.
    pub fn has(&self, now: Instant) -> bool {
        self.left_at(now).is_some()
    }

    /// When it will be full again if a token is taken at `now`, if there is one.
    fn left_at(&self, now: Instant) -> Option<Instant> {
        let full_at = self.full_at.max(now) + self.interval;
        let all = self.interval.saturating_mul(self.size);
        (full_at.since(now) <= all).then_some(full_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// How many can be taken at this time.
    fn take_all(bucket: &mut TokenBucket, now: Instant) -> usize {
        (0..1000).take_while(|_| bucket.take(now)).count()
    }

    #[test]
    fn a_burst_passes_and_then_one_per_interval() {
        let mut bucket = TokenBucket::new(5, INTERVAL);
        assert_eq!(take_all(&mut bucket, at(1000)), 5);
        assert_eq!(take_all(&mut bucket, at(1009)), 0);
        assert_eq!(take_all(&mut bucket, at(1010)), 1);
        assert_eq!(take_all(&mut bucket, at(1030)), 2);
        assert!((0..9).all(|_| bucket.has(at(9000))), "to ask takes nothing");
        assert_eq!(take_all(&mut bucket, at(9000)), 5, "never more than it holds");
        assert!(!bucket.has(at(9009)) && bucket.has(at(9010)));
    }

    #[test]
    fn over_a_long_time_the_rate_holds_however_often_it_is_asked() {
        let mut bucket = TokenBucket::new(3, INTERVAL);
        let taken = (0..10_000).filter(|millis| bucket.take(at(*millis))).count();
        assert_eq!(taken, 3 + 999, "what it held, and one for each further interval");
    }

    #[test]
    fn the_ends_of_time_and_of_settings_do_no_harm() {
        let mut bucket = TokenBucket::new(u32::MAX, Duration::MAX);
        assert!(bucket.take(Instant::from_nanos(u64::MAX)));
        let mut bucket = TokenBucket::new(0, INTERVAL);
        assert_eq!(take_all(&mut bucket, at(5)), 1);
        assert!(!bucket.take(Instant::ZERO), "time that goes back gives nothing");
        let mut bucket = TokenBucket::new(1, Duration::ZERO);
        assert_eq!(take_all(&mut bucket, at(5)), 1000);
    }
}
