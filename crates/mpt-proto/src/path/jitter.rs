//! The interarrival jitter of RFC 3550 section 6.4.1, of a path's keepalives.
//!
//! Sending times are of the peer's clock, arrival times of the own one. Only differences between them count, so
//! the clocks need not agree; one that is fast by 100 ppm adds 50 µs at a keepalive interval of 0.5 s.

use std::time::Duration;

use crate::time::Instant;

/// Longer than this between two keepalives says nothing about either, and sending times wrap.
const PAUSE: Duration = Duration::from_secs(600);

/// No path delays two keepalives so differently.
const OTHER_CLOCK: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub(super) struct Jitter {
    /// Sending time in µs of the peer's clock, and arrival, of the last keepalive.
    last: Option<(u32, Instant)>,
    /// 16 times the jitter in nanoseconds; `None` before two keepalives were compared.
    scaled: Option<u64>,
}

impl Jitter {
    pub(super) fn on_arrival(&mut self, sent: u32, now: Instant) {
        let Some((last_sent, last_now)) = self.last.replace((sent, now)) else { return };
        let between = now.since(last_now);
        // A copy says how the network copies.
        if sent == last_sent || between > PAUSE {
            return;
        }
        let sent_between = i64::from(sent.wrapping_sub(last_sent).cast_signed()) * 1000;
        if sent_between.unsigned_abs() > PAUSE.as_nanos() as u64 {
            return; // Another clock: the peer has restarted.
        }
        let difference = (between.as_nanos() as i64 - sent_between).unsigned_abs();
        if difference > OTHER_CLOCK.as_nanos() as u64 {
            return; // The peer has restarted, or somebody stood still: neither says anything about the path.
        }
        // J += (|D| - J) / 16.
        let scaled = self.scaled.unwrap_or(0);
        self.scaled = Some(scaled + difference - (scaled + 8) / 16);
    }

    /// The next keepalive tells the time of another clock.
    pub(super) fn on_other_clock(&mut self) {
        self.last = None;
    }

    /// The jitter; `None` before two keepalives were compared.
    pub(super) fn get(&self) -> Option<Duration> {
        self.scaled.map(|scaled| Duration::from_nanos(scaled / 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_restarts_with_another_clock_is_not_jitter() {
        let steady = [(0, 0), (500_000, 500_000), (1_000_000, 1_000_000)];
        let restarted = [(20_000, 1_600_000), (520_000, 2_100_000)];
        assert_eq!(of(&[&steady[..], &restarted[..]].concat()), Some(Duration::ZERO));
    }

    fn of(arrivals: &[(u32, u64)]) -> Option<Duration> {
        let mut jitter = Jitter::default();
        for &(sent, now) in arrivals {
            jitter.on_arrival(sent, Instant::from_nanos(now * 1000));
        }
        jitter.get()
    }

    #[test]
    fn is_the_sixteenth_of_what_changes() {
        assert_eq!(of(&[(100, 7000)]), None);
        assert_eq!(of(&[(100, 7000), (600, 7500)]), Some(Duration::ZERO));
        assert_eq!(of(&[(100, 7000), (600, 7660)]), Some(Duration::from_micros(10)));
        let back = [(100, 7000), (600, 7660), (1100, 8000)];
        // 10 + (160 - 10) / 16 µs.
        assert_eq!(of(&back), Some(Duration::from_nanos(19_375)));
    }

    #[test]
    fn sending_times_wrap_and_restart() {
        assert_eq!(of(&[(u32::MAX - 99, 0), (400, 500)]), Some(Duration::ZERO));
        assert_eq!(of(&[(3_000_000_000, 0), (5, 500)]), None, "another clock");
        assert_eq!(of(&[(5, 0), (5, 300)]), None, "a copy");
        // Overtaken: sent 500 before, arrived 100 after.
        assert_eq!(of(&[(1000, 0), (500, 100)]), Some(Duration::from_nanos(37_500)));
    }
}
