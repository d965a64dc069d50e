//! Detection of MTU black holes.
//!
//! A router may silently drop packets that are too large for its next link (RFC 2923 section 2.1).
//! Keepalives are small, so the path stays up and loses every large packet. Therefore keepalives
//! report the length of the longest datagram that arrived recently, which [`Arrived`](super::arrived::Arrived) records.
//! [`BlackHoleDetector`] compares the peer's reports with the lengths sent.
//!
//! ```text
//! sent       1472 1472 60 1472 1472 1472 60 1472 1472 1472 1472 1472 ...
//! peer tells     1472         1472            60         60         60 ...   all that is longer is lost
//! ```
//!
//! Ordinary loss must not be taken for a black hole. If loss is independent of length, the lost
//! datagrams are a random sample of all. Fisher's exact test (R. A. Fisher, Statistical Methods for
//! Research Workers, section 21.02) gives the probability that this sample contains every longer
//! datagram, and few of our keepalives, which are short and counted by the peer. Detection requires
//! a very small probability, time, and several keepalives (the constants below); a single longer
//! datagram that arrives discards the evidence. Without reports, or if nothing arrived, there is no
//! conclusion: that is an outage, which the dead time detects.
//!
//! A path must carry inner packets of 1280 bytes; the length of such a datagram is the *floor*. If
//! longer datagrams are lost, the MTU can be lowered. If shorter ones are lost, the path is
//! unusable. So there are two detectors, each for the datagrams on one side of the floor.

use std::time::Duration;

use crate::path::mtu::LEAST_INNER;
use crate::time::Instant;
use crate::wire::keepalive::Arrivals;

/// This many keepalives must report that nothing longer arrived while longer datagrams were sent.
const TOLD: u32 = 3;

/// Over at least this time: the round trip that RFC 8085 section 3.1.1 assumes where none was measured,
/// so that datagrams still under way are not taken for lost.
const SPAN: Duration = Duration::from_secs(3);

/// The largest probability at which ordinary loss is ruled out. Every datagram that arrives after
/// others were lost starts another trial, so it is small enough for months of trials on a bad path.
const CHANCE: f64 = 1e-8;

/// Of the longer datagrams lost between two keepalives no more than this count: they may have shared one
/// misfortune, such as a full queue.
const COUNTED: u32 = 8;

/// Evidence that did not grow for so long is forgotten. A TCP that meets losses only tries again less
/// and less often, so this is long.
const STALE: Duration = Duration::from_secs(30);

/// What became of the long datagrams sent on one path.
#[derive(Debug)]
pub(crate) struct BlackHoleDetector {
    /// The length of a datagram with the least inner packet.
    floor: usize,
    /// Of datagrams longer than the floor.
    above: Evidence,
    /// Of all others.
    below: Evidence,
    /// Keepalives sent since the peer's last report.
    keepalives_sent: u32,
    /// The peer's last report about them.
    keepalives_told: Option<u8>,
}

/// What became of keepalives.
#[derive(Clone, Copy, Debug, Default)]
struct Small {
    sent: u32,
    arrived: u32,
}

/// Evidence that nothing longer than some limit arrives.
#[derive(Debug)]
struct Evidence {
    /// Longer datagrams are counted. `usize::MAX` as long as there is nothing to compare with.
    limit: usize,
    /// Longer ones sent since the last keepalive.
    sent: u32,
    /// Longer ones that are known not to have arrived, as far as they count.
    lost: u32,
    /// Keepalives of ours meanwhile.
    small: Small,
    /// The peer's keepalives that said so.
    told: u32,
    /// When the first and the last of these came; without a meaning before there is one.
    first: Instant,
    last: Instant,
}

impl BlackHoleDetector {
    /// For datagrams with this many bytes of header before the inner packet.
    pub(crate) fn new(header_len: usize) -> Self {
        let floor = header_len + LEAST_INNER;
        let (above, below) = (Evidence::new(), Evidence::new());
        Self { floor, above, below, keepalives_sent: 0, keepalives_told: None }
    }

    /// A keepalive was sent.
    pub(crate) fn on_keepalive_sent(&mut self) {
        self.keepalives_sent = self.keepalives_sent.saturating_add(1);
    }

    /// A datagram of this length was sent.
    pub(crate) fn on_sent(&mut self, len: usize) {
        let evidence = if len > self.floor { &mut self.above } else { &mut self.below };
        evidence.sent += u32::from(len > evidence.limit);
    }

    /// Handles a report of the peer, which may be empty. Returns the length of the longest datagram
    /// that the path carries, if longer ones are lost in a black hole. Datagrams up to the floor
    /// count as carried until the opposite is detected too, which is a separate result.
    pub(crate) fn on_told(&mut self, now: Instant, arrivals: Option<Arrivals>) -> Option<usize> {
        let Some(Arrivals { longest, keepalives }) = arrivals else {
            self.above.sent = 0;
            self.below.sent = 0;
            return None;
        };
        let small = self.small(keepalives);
        let longest = usize::from(longest.get());
        let above = self.above.on_told(now, longest.max(self.floor), small);
        let below = if longest < self.floor {
            self.below.on_told(now, longest, small)
        } else {
            self.below = Evidence::new();
            None
        };
        below.or(above)
    }

    /// The fate of our keepalives since the peer's last report, from its new count.
    fn small(&mut self, keepalives: u8) -> Small {
        let sent = std::mem::take(&mut self.keepalives_sent);
        let before = self.keepalives_told;
        let Some(arrived) = before.map(|before| keepalives.wrapping_sub(before)) else {
            self.keepalives_told = Some(keepalives);
            return Small::default();
        };
        if arrived > u8::MAX / 2 {
            // The peer sent this report before its last one: its keepalives were reordered.
            return Small { sent, arrived: 0 };
        }
        self.keepalives_told = Some(keepalives);
        Small { sent, arrived: u32::from(arrived) }
    }

    /// What is known is out of date: another state of the path, another status.
    pub(crate) fn forget(&mut self) {
        (self.above, self.below) = (Evidence::new(), Evidence::new());
        // The peer may have restarted, and its count with it.
        self.keepalives_told = None;
    }
}

impl Evidence {
    fn new() -> Self {
        Self::beyond(usize::MAX)
    }

    /// None yet that what is longer than `limit` is lost.
    fn beyond(limit: usize) -> Self {
        let (first, last) = (Instant::ZERO, Instant::ZERO);
        Self { limit, sent: 0, lost: 0, small: Small::default(), told: 0, first, last }
    }

    /// Nothing longer than `longest` arrived lately. Returns the limit once that is certain for
    /// everything longer; then it starts again.
    fn on_told(&mut self, now: Instant, longest: usize, small: Small) -> Option<usize> {
        let sent = std::mem::take(&mut self.sent);
        if longest > self.limit {
            // Something longer does arrive.
            *self = Self::beyond(longest);
            return None;
        }
        if sent > 0 {
            self.first = if self.told == 0 { now } else { self.first };
            self.last = now;
            self.told += 1;
            self.lost += sent.min(COUNTED);
        } else if self.told == 0 || now.since(self.last) >= STALE {
            *self = Self::beyond(longest);
        }
        self.small.sent += small.sent;
        self.small.arrived += small.arrived;
        let certain = self.told >= TOLD && now.since(self.first) >= SPAN && self.chance() <= CHANCE;
        certain.then(|| std::mem::replace(self, Self::beyond(longest)).limit)
    }

    /// The chance that of all datagrams lost, chosen blindly, every longer one is among them: for n
    /// longer ones, and k keepalives of which l were lost, C(k, l) / C(k + n, l + n).
    fn chance(&self) -> f64 {
        let lost = self.small.sent.saturating_sub(self.small.arrived);
        let factor = |i: u32| f64::from(lost + i) / f64::from(self.small.sent + i);
        (1..=self.lost).map(factor).product()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    const HEADER: usize = 8;
    const FLOOR: usize = 1288;
    const INTERVAL: Duration = Duration::from_millis(500);

    fn told(longest: u16) -> Option<NonZeroU16> {
        NonZeroU16::new(longest)
    }

    /// A path on which this many datagrams of each length are sent in every interval, at whose end
    /// the peer sends a report. Of our keepalives every one arrives, or every other.
    struct Path {
        black_hole: BlackHoleDetector,
        now: Instant,
        lossy: bool,
        keepalives: u8,
    }

    impl Path {
        fn new() -> Self {
            let black_hole = BlackHoleDetector::new(HEADER);
            Self { black_hole, now: Instant::ZERO + INTERVAL, lossy: false, keepalives: 250 }
        }

        fn interval(&mut self, sent: &[(usize, u32)], longest: u16) -> Option<usize> {
            self.after(INTERVAL, sent, longest)
        }

        fn after(&mut self, time: Duration, sent: &[(usize, u32)], longest: u16) -> Option<usize> {
            for &(len, count) in sent {
                (0..count).for_each(|_| self.black_hole.on_sent(len));
            }
            for n in 0..2 {
                self.black_hole.on_keepalive_sent();
                if n == 0 || !self.lossy {
                    self.keepalives = self.keepalives.wrapping_add(1);
                }
            }
            self.now += time;
            let keepalives = self.keepalives;
            let arrivals = told(longest).map(|longest| Arrivals { longest, keepalives });
            self.black_hole.on_told(self.now, arrivals)
        }

        /// After how many intervals of this there is a verdict, and which.
        fn until(&mut self, sent: &[(usize, u32)], longest: u16) -> Option<(u32, usize)> {
            (1..200).find_map(|count| Some((count, self.interval(sent, longest)?)))
        }
    }

    #[test]
    fn datagrams_longer_than_all_arrivals_are_lost() {
        let mut path = Path::new();
        assert_eq!(path.until(&[(1472, 100), (60, 9)], 1472), None, "all is well");
        // One keepalive to compare with, then three seconds from the first that proves something.
        assert_eq!(path.until(&[(1472, 100), (1372, 9)], 1372), Some((8, 1372)));
        assert_eq!(path.until(&[(1372, 100)], 1372), None, "and then well again");
        assert_eq!(path.until(&[(1372, 100)], 60), Some((8, FLOOR)), "as far as there is a choice");
        assert_eq!(path.until(&[(FLOOR, 100)], FLOOR as u16), None);
        assert_eq!(path.until(&[(FLOOR, 100)], 60), Some((8, 60)), "and then no further");
    }

    #[test]
    fn it_takes_keepalives_time_and_losses() {
        // Few are lost at a time: it takes longer.
        assert_eq!(Path::new().until(&[(1472, 1)], 60), Some((12, FLOOR)));
        // Short ones are lost too, so that the losses are little evidence.
        let mut path = Path { lossy: true, ..Path::new() };
        assert_eq!(path.until(&[(1472, 1)], 60), Some((37, FLOOR)));
        // All at once: that was one event, and what comes later arrives or is never sent.
        let mut path = Path::new();
        path.interval(&[], 60);
        path.interval(&[(1472, 1000)], 60);
        path.interval(&[(1472, 1000)], 60);
        assert_eq!(path.until(&[], 60), None);
        // Keepalives in quick succession are no reason for haste.
        let mut path = Path::new();
        let hasty = (0..30).find_map(|_| path.after(INTERVAL / 5, &[(1472, 9)], 60));
        assert_eq!(hasty, None);
        // Rare ones are reason to wait.
        let mut path = Path::new();
        let rare = (1..20).find(|_| path.after(INTERVAL * 40, &[(1472, 9)], 60).is_some());
        assert_eq!(rare, Some(6));
    }

    #[test]
    fn the_chance_is_that_of_fishers_exact_test() {
        let evidence = |lost, sent, arrived| {
            let small = Small { sent, arrived };
            Evidence { lost, small, ..Evidence::new() }.chance()
        };
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        close(evidence(5, 20, 20), 1.0 / 53_130.0); // 1 / C(25, 5)
        close(evidence(3, 4, 2), 6.0 / 21.0); // C(4, 2) / C(7, 5)
        close(evidence(9, 0, 0), 1.0);
        close(evidence(9, 7, 0), 1.0);
    }

    #[test]
    fn one_longer_arrival_discards_the_evidence() {
        for every in 2..8 {
            let mut path = Path::new();
            for interval in 0..1000 {
                let longest = if interval % every == 0 { 1472 } else { 60 };
                assert_eq!(path.interval(&[(1472, 100)], longest), None, "every {every}");
            }
        }
    }

    #[test]
    fn arriving_small_datagrams_keep_the_evidence_against_large_ones() {
        let mut path = Path::new();
        let verdict = (0..8).find_map(|n| path.interval(&[(1472, 9), (60 + n, 9)], 60 + n as u16));
        assert_eq!(verdict, Some(FLOOR));
    }

    #[test]
    fn missing_reports_and_an_outage_are_no_evidence() {
        assert_eq!(Path::new().until(&[(1472, 100)], 0), None);
        // An outage that begins and ends with keepalives that got through alone, again and again.
        let mut path = Path::new();
        for _ in 0..50 {
            assert_eq!(path.interval(&[(1472, 100)], 1472), None);
            assert_eq!(path.interval(&[(1472, 100)], 44), None);
            for _ in 0..9 {
                assert_eq!(path.interval(&[(1472, 100)], 0), None);
            }
            assert_eq!(path.interval(&[(1472, 100)], 44), None);
        }
    }

    #[test]
    fn a_path_that_is_idle_or_carries_only_small_packets_is_never_suspected() {
        let mut path = Path::new();
        assert_eq!(path.until(&[], 44), None);
        assert_eq!(path.until(&[(100, 50), (1472, 1)], 1472), None);
        assert_eq!(path.until(&[(100, 50)], 100), None, "although longer ones arrived before");
        for _ in 0..20 {
            // Single large ones, lost long apart.
            path.interval(&[(1472, 1)], 100);
            (0..61).for_each(|_| assert_eq!(path.interval(&[(100, 9)], 100), None));
        }
    }

    #[test]
    fn a_change_of_state_discards_the_evidence() {
        let mut path = Path::new();
        for _ in 0..7 {
            assert_eq!(path.interval(&[(1472, 100)], 60), None);
        }
        path.black_hole.forget();
        assert_eq!(path.until(&[(1472, 100)], 60), Some((8, FLOOR)));
    }
}
