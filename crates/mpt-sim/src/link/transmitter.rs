//! The transmitter at the head of a wire: a virtual clock in place of a queue and a timer.
//!
//! A packet of L bytes that arrives at t leaves at max(t, time the transmitter becomes free) +
//! 8 L / rate, and that is also when the transmitter is free again. The arithmetic is in whole
//! nanoseconds with the remainder carried along, so that a million packets take exactly as long
//! as their bits do. What waits is not stored either: it is the time until the transmitter is
//! free, times the rate.

use std::collections::VecDeque;

use mpt_proto::Instant;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Sends packets one after the other at a rate.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    rate: Option<u64>,
    free: Instant,
    /// How far beyond `free` the last bit really leaves, in 1/rate nanoseconds, below rate.
    remainder: u128,
    /// Stretches of the present backlog planned at earlier rates: each up to a time, at a rate.
    earlier: VecDeque<(Instant, u64)>,
}

impl Transmitter {
    /// `rate` in bits per second; `None` sends in no time.
    pub(super) fn new(rate: Option<u64>) -> Self {
        Self { rate: positive(rate), free: Instant::ZERO, remainder: 0, earlier: VecDeque::new() }
    }

    /// Plans a packet of `len` bytes; returns when its last bit has left.
    pub(super) fn send(&mut self, now: Instant, len: usize) -> Instant {
        if now > self.free {
            self.free = now;
            self.remainder = 0;
        }
        let Some(rate) = self.rate else {
            return self.free;
        };
        let rate = u128::from(rate);
        let total = len as u128 * 8 * NANOS_PER_SECOND + self.remainder;
        let nanos = u64::try_from(total / rate).unwrap_or(u64::MAX);
        self.remainder = total % rate;
        self.free = Instant::from_nanos(self.free.as_nanos().saturating_add(nanos));
        self.free
    }

    /// When everything will have been sent.
    pub(super) fn free(&self) -> Instant {
        self.free
    }

    /// Bytes not yet sent at `now`, rounded up.
    pub(super) fn backlog(&self, now: Instant) -> u64 {
        let mut from = now;
        let mut bit_nanos = 0;
        let present = self.rate.map(|rate| (self.free, rate));
        for &(until, rate) in self.earlier.iter().chain(&present) {
            bit_nanos += until.since(from).as_nanos() * u128::from(rate);
            from = from.max(until);
        }
        if bit_nanos > 0 {
            bit_nanos += self.remainder;
        }
        u64::try_from(bit_nanos.div_ceil(8 * NANOS_PER_SECOND)).unwrap_or(u64::MAX)
    }

    /// Sends at another rate from when the present backlog has left.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<u64>) {
        let rate = positive(rate);
        if rate == self.rate {
            return;
        }
        self.earlier.retain(|&(until, _)| until > now);
        if let Some(previous) = self.rate
            && self.free > now
        {
            self.earlier.push_back((self.free, previous));
        }
        self.rate = rate;
        self.remainder = 0;
    }
}

/// A rate that can be divided by.
fn positive(rate: Option<u64>) -> Option<u64> {
    rate.map(|rate| rate.max(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_million_packets_take_exactly_as_long_as_their_bits() {
        // 1000 bytes at 7 Mbit/s are 1142857.142857... ns, which no rounding may gather.
        let mut transmitter = Transmitter::new(Some(7_000_000));
        for _ in 0..1_000_000 {
            transmitter.send(Instant::ZERO, 1000);
        }
        assert_eq!(transmitter.free.as_nanos(), 8_000_000_000_000_000 / 7_000);
    }

    #[test]
    fn the_backlog_is_what_was_sent_minus_what_has_left() {
        let mut transmitter = Transmitter::new(Some(8_000_000)); // a byte per microsecond
        assert_eq!(transmitter.backlog(Instant::ZERO), 0);
        transmitter.send(Instant::ZERO, 1500);
        transmitter.send(Instant::ZERO, 500);
        assert_eq!(transmitter.backlog(Instant::ZERO), 2000);
        assert_eq!(transmitter.backlog(Instant::from_nanos(600_000)), 1400);
        assert_eq!(transmitter.backlog(Instant::from_nanos(2_000_000)), 0);
    }

    #[test]
    fn a_change_of_rate_neither_makes_nor_destroys_backlog() {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut transmitter = Transmitter::new(Some(8_000)); // a byte per millisecond
        transmitter.send(ms(0), 1000);
        transmitter.set_rate(ms(100), Some(8_000_000));
        assert_eq!(transmitter.backlog(ms(100)), 900);
        // What comes then leaves at the later rate, after what was planned before.
        assert_eq!(transmitter.send(ms(100), 2000), ms(1002));
        assert_eq!(transmitter.backlog(ms(100)), 2900);
        transmitter.set_rate(ms(500), Some(80_000));
        assert_eq!(transmitter.backlog(ms(500)), 2500);
        assert_eq!(transmitter.backlog(ms(1001)), 1000);
        assert_eq!(transmitter.backlog(ms(1002)), 0);
        transmitter.set_rate(ms(2000), None);
        assert_eq!(transmitter.send(ms(2000), 9000), ms(2000));
        assert_eq!(transmitter.backlog(ms(2000)), 0);
        assert!(transmitter.earlier.is_empty());
    }
}
