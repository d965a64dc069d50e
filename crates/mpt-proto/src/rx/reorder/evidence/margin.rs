//! How long a packet may be overtaken by others on the same path.
//!
//! A path that keeps its order has no margin. One that does not gets it when a packet arrives after its gap was
//! given up: four mean deviations of the path's delay at first, which is some 99.9 % of what a normal distribution
//! allows, and twice as much each time that is not enough. A time and not a number of packets, because jitter of
//! 12 ms reorders hundreds of packets at 100 Mbit/s. What is not needed for a while is halved.

use std::time::Duration;

use crate::time::Instant;

/// The shortest time for which anything is waited: the accuracy of a timer.
pub(super) const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// The longest: more than the delays of terrestrial paths differ.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How many mean deviations a margin has at least when it is raised.
const DEVIATIONS: u32 = 4;

/// A path whose delay has a greater mean deviation may break the order.
const UNSTEADY: Duration = Duration::from_millis(1);

/// A margin that was not needed for so long is halved: more than 16 round trips of most paths.
const UNNEEDED: Duration = Duration::from_secs(16);

/// It is raised once in this time, because what arrives late seldom arrives alone.
const RAISE_INTERVAL: Duration = Duration::from_millis(100);

/// The margin of a path of which nothing is known, and for how many datagrams.
const NEW: Duration = Duration::from_millis(30);
const NEW_DATAGRAMS: u64 = 250;

#[derive(Clone, Debug, Default)]
pub(super) struct Margin {
    time: Duration,
    /// Mean deviation of the path's delay.
    deviation: Duration,
    raised_at: Instant,
    needed_at: Instant,
    /// Whether enough has been seen of the path to say that no margin is needed.
    is_known: bool,
    /// Whether nothing is known of the path.
    is_new: bool,
}

impl Margin {
    /// That of a path of which nothing has been seen. The first gaps of a transfer would otherwise be given up before it
    /// shows that the path breaks the order, and one packet that seems lost ends the slow start of TCP.
    pub(super) fn of_new_path() -> Self {
        Self { time: NEW, is_new: true, ..Self::default() }
    }

    /// So many datagrams have come by the path.
    pub(super) fn set_received(&mut self, datagrams: u64) {
        if self.is_new && datagrams >= NEW_DATAGRAMS {
            self.is_new = false;
            if self.needed_at == Instant::ZERO {
                self.time = Duration::ZERO;
                self.set_deviation(self.deviation);
            }
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// The mean deviation of the path's delay. As long as little is known of the path, a delay that varies is taken to
    /// break the order of packets.
    pub(super) fn set_deviation(&mut self, deviation: Duration) {
        self.deviation = deviation;
        if !self.is_known && deviation >= UNSTEADY {
            self.time = self.time.max(deviation * DEVIATIONS).min(LONGEST_WAIT);
        }
    }

    /// A packet that others had overtaken on the path came after its gap had been given up.
    pub(super) fn on_late(&mut self, now: Instant) {
        self.needed_at = now;
        if !self.time.is_zero() && now.since(self.raised_at) < RAISE_INTERVAL {
            return;
        }
        self.raised_at = now;
        self.raise(self.time * 2);
    }

    /// A packet came in time, so long after the first one that had overtaken it on the path.
    pub(super) fn on_overtaken(&mut self, now: Instant, by: Duration) {
        if by > self.time {
            self.raise(by);
        }
        if by * 2 > self.time {
            self.needed_at = now;
        }
    }

    /// Time passes.
    #[inline]
    pub(super) fn relax(&mut self, now: Instant) {
        if !self.time.is_zero() && !self.is_new {
            self.do_relax(now);
        }
    }

    fn do_relax(&mut self, now: Instant) {
        if self.needed_at == Instant::ZERO {
            self.needed_at = now;
        }
        if now.since(self.needed_at) < UNNEEDED {
            return;
        }
        self.is_known = true;
        self.needed_at = now;
        self.time /= 2;
        if self.time < SHORTEST_WAIT {
            self.time = Duration::ZERO;
        }
    }

    fn raise(&mut self, time: Duration) {
        let least = (self.deviation * DEVIATIONS).max(SHORTEST_WAIT);
        self.time = time.max(least).min(LONGEST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn is_raised_by_late_packets_and_halved_without() {
        let ms = Duration::from_millis;
        let mut margin = Margin { is_known: true, ..Margin::default() };
        margin.set_deviation(ms(3));
        assert_eq!(margin.time(), Duration::ZERO, "a path that keeps its order");
        margin.on_late(at(1000));
        assert_eq!(margin.time(), ms(12));
        margin.on_late(at(1050));
        assert_eq!(margin.time(), ms(12), "of the same disturbance");
        margin.on_late(at(1100));
        assert_eq!(margin.time(), ms(24));
        (12..100).for_each(|n| margin.on_late(at(n * 100)));
        assert_eq!(margin.time(), LONGEST_WAIT);
        let last = 9900;
        margin.relax(at(last + 15_999));
        assert_eq!(margin.time(), LONGEST_WAIT);
        margin.relax(at(last + 16_000));
        assert_eq!(margin.time(), LONGEST_WAIT / 2);
        (2..9).for_each(|n| margin.relax(at(last + n * 16_000)));
        assert_eq!(margin.time(), Duration::ZERO, "less than a millisecond is none");
    }

    #[test]
    fn a_new_path_of_varying_delay_has_one_until_it_proves_to_keep_its_order() {
        let ms = Duration::from_millis;
        let mut margin = Margin::default();
        margin.set_deviation(Duration::from_micros(900));
        assert_eq!(margin.time(), Duration::ZERO);
        margin.set_deviation(ms(3));
        assert_eq!(margin.time(), ms(12));
        margin.relax(at(1000));
        margin.relax(at(16_999));
        assert_eq!(margin.time(), ms(12));
        margin.relax(at(17_000));
        margin.set_deviation(ms(3));
        assert_eq!(margin.time(), ms(6));
    }

    #[test]
    fn a_new_path_has_one_until_it_has_brought_enough_in_order() {
        let mut margin = Margin::of_new_path();
        margin.set_received(NEW_DATAGRAMS - 1);
        margin.relax(at(20_000));
        assert_eq!(margin.time(), NEW);
        margin.set_received(NEW_DATAGRAMS);
        assert_eq!(margin.time(), Duration::ZERO);
        let mut unsteady = Margin::of_new_path();
        unsteady.set_deviation(Duration::from_millis(3));
        unsteady.set_received(NEW_DATAGRAMS);
        assert_eq!(unsteady.time(), Duration::from_millis(12));
    }

    #[test]
    fn what_is_needed_is_kept() {
        let ms = Duration::from_millis;
        let mut margin = Margin::default();
        margin.on_overtaken(at(0), ms(8));
        assert_eq!(margin.time(), ms(8), "the next one may come too late");
        margin.on_overtaken(at(15_000), ms(5));
        margin.relax(at(20_000));
        assert_eq!(margin.time(), ms(8), "more than half of it was needed");
        margin.on_overtaken(at(30_000), ms(4));
        margin.relax(at(31_000));
        assert_eq!(margin.time(), ms(4));
    }
}
