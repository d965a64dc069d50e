//! What arrived on a path since the last feedback: when, how much, and with what delay.

use std::time::Duration;

use crate::time::Instant;

/// So few bytes before such a pause are not counted with what follows: a path status that was sent before a train would make
/// that seem slow.
const LITTLE: u64 = 1500;
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Samples {
    first_at: Option<Instant>,
    /// When a datagram arrived last, as long as there were few.
    last_at: Instant,
    /// Bytes that arrived after the first datagram; and how many had arrived with the highest path sequence.
    bytes: u64,
    bytes_to_highest: u64,
    /// A delay to which the others are relative. It stays for the session.
    reference: Option<u32>,
    count: i64,
    /// Delays relative to the reference, in microseconds.
    min: i32,
    sum: i64,
    /// Deviations from a mean that follows with an eighth, and eight times that mean.
    deviations: i64,
    mean: i64,
}

/// The delays since the last feedback, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    /// Arrival time minus send timestamp, modulo 2^32, of the fastest.
    pub(super) min: u32,
    /// How much the mean is above it.
    pub(super) mean: u32,
    /// Mean absolute deviation from the mean, as that was when each datagram arrived: the mean of all is known too
    /// late.
    pub(super) deviation: u32,
}

impl Samples {
    /// So many bytes arrived, with the highest path sequence or not.
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Instant, len: usize, is_highest: bool) {
        if self.bytes <= LITTLE {
            self.on_one_of_few(now, len);
        } else {
            self.bytes += len as u64;
        }
        if is_highest {
            self.bytes_to_highest = self.bytes;
        }
    }

    fn on_one_of_few(&mut self, now: Instant, len: usize) {
        if self.first_at.is_some() && now.since(self.last_at) < PAUSE {
            self.bytes += len as u64;
        } else {
            (self.first_at, self.bytes, self.bytes_to_highest) = (Some(now), 0, 0);
        }
        self.last_at = now;
    }

    /// Whether there is no delay since the last feedback.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What was sent at that time says something about the delay.
    pub(super) fn on_sample(&mut self, now: Instant, sent: u32) {
        let delay = now.micros().wrapping_sub(sent);
        let Some(reference) = self.reference else {
            self.reference = Some(delay);
            self.count = 1;
            return;
        };
        let delay = delay.wrapping_sub(reference).cast_signed();
        self.min = if self.count == 0 { delay } else { self.min.min(delay) };
        self.count += 1;
        self.sum += i64::from(delay);
        self.deviations += (i64::from(delay) - self.mean / 8).abs();
        self.mean += i64::from(delay) - self.mean / 8;
    }

    /// When the first datagram arrived, in microseconds modulo 2^32.
    pub(super) fn first_arrived(&self) -> u32 {
        self.first_at.map_or(0, Instant::micros)
    }

    /// The bytes that arrived after that one, to the highest included.
    pub(super) fn bytes_after_first(&self) -> u32 {
        u32::try_from(self.bytes_to_highest).unwrap_or(u32::MAX)
    }

    /// The delays; `None` if nothing arrived.
    pub(super) fn delay(&self) -> Option<Delay> {
        let mean = self.sum.checked_div(self.count)?;
        let limited = |micros: i64| u32::try_from(micros).unwrap_or(0);
        Some(Delay {
            min: self.reference?.wrapping_add_signed(self.min),
            mean: limited(mean - i64::from(self.min)),
            deviation: limited(self.deviations / self.count),
        })
    }

    /// Feedback was sent.
    pub(super) fn clear(&mut self) {
        *self = Self { reference: self.reference, mean: self.mean, ..Self::default() };
    }
}
