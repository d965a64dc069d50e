//! Time as the core sees it: a number that comes in by the door.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time, in nanoseconds since an origin that the caller chose.
///
/// The core never asks what time it is. The daemon counts from its start by the monotonic clock,
/// the simulator from zero by its virtual one; both reach 2^64 ns after 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The end of time.
    pub(crate) const MAX: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the origin, modulo 2^32, as in keepalives.
    pub(crate) const fn micros(self) -> u32 {
        (self.0 / 1000) as u32
    }

    /// So much earlier, or the origin if that is later.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub((Self::ZERO + duration).0))
    }

    /// So many nanoseconds later, or the end of time. It costs less than to add a [`Duration`], for what is done for each packet.
    #[must_use]
    pub(crate) const fn after(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// The time since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at the end of time, so that "never" can be a very long duration.
    #[inline(always)]
    fn add(self, duration: Duration) -> Self {
        let seconds = duration.as_secs().saturating_mul(1_000_000_000);
        let nanos = seconds.saturating_add(duration.subsec_nanos().into());
        Self(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Same as [`Instant::since`].
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_underflow_and_sums_never_overflow() {
        let early = Instant::from_nanos(5);
        let late = early + Duration::from_nanos(7);
        assert_eq!(late.since(early), Duration::from_nanos(7));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(early.after(7), late);
        assert_eq!(late.after(u64::MAX), Instant::MAX);
        assert_eq!((late + Duration::MAX).as_nanos(), u64::MAX);
        assert_eq!(late.before(Duration::from_nanos(7)), early);
        assert_eq!(late.before(Duration::MAX), Instant::ZERO);
    }
}
