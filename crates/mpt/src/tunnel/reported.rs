//! What ICMP messages say that a path carries, and how far that is believed.
//!
//! Anybody can forge them (RFC 5927), and the kernel keeps what they say for ten minutes. So they only
//! suggest: a path carries at least [`MIN_MTU`], and at least what the peer's keepalives tell of the
//! longest datagram that lately arrived. Probes of the length that interface and route allow show which of
//! both is right; one that arrives refutes the report (`docs/protocol.md`, section 7.1).

use std::time::Duration;

use mpt_proto::Instant;

use super::interface_mtu::MIN_MTU;

/// So long after a report a datagram that arrived before it may still be the longest that the peer tells,
/// with the default keepalive interval: the peer tells what came in three intervals.
const CONFIRMED_AFTER: Duration = Duration::from_secs(3);

/// The same in keepalive intervals, where these are longer.
const CONFIRMED_INTERVALS: u32 = 4;

/// Between probes of a path that carries too little to be used.
const RETRY: Duration = Duration::from_secs(2);

/// Between the first probes of any other path, and how many of them come before the interval doubles.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const FIRST_PROBES: u32 = 4;

/// The longest interval: PMTU_RAISE_TIMER of RFC 8899, section 5.1.1.
const RAISE: Duration = Duration::from_secs(600);

/// How much a path carries by what this host knows, as sizes of inner packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownMtu {
    /// What the interface and the route allow, which the operator set.
    pub(super) allowed: u32,
    /// What ICMP messages reported, if they did.
    pub(super) reported: Option<u32>,
    /// Whether a path begins with the least, because probes will tell the rest (RFC 8899).
    pub(super) from_below: bool,
}

impl KnownMtu {
    /// No ICMP message reported anything.
    pub(super) fn allowed(allowed: u32) -> Self {
        Self { allowed, reported: None, from_below: false }
    }

    /// What to begin with, before the peer has told anything.
    pub(super) fn at_first(self) -> u32 {
        match self.from_below {
            true => MIN_MTU.min(self.allowed),
            false => believed(self.allowed, self.reported, None),
        }
    }
}

/// The report about one path, if there is one.
#[derive(Debug, Default)]
pub(super) struct Reported(Option<Report>);

#[derive(Debug)]
struct Report {
    mtu: u32,
    since: Instant,
    refuted: bool,
}

impl Reported {
    /// The largest inner packet of a path with keepalives at this interval, of which the peer tells that
    /// datagrams with inner packets of `carried` bytes lately arrived.
    pub(super) fn mtu(
        &mut self,
        now: Instant,
        known: KnownMtu,
        carried: Option<u32>,
        keepalive: Duration,
    ) -> u32 {
        let Some(mtu) = known.reported.filter(|&mtu| mtu < known.allowed) else {
            self.0 = None;
            return known.allowed;
        };
        if self.0.as_ref().is_none_or(|report| report.mtu != mtu) {
            self.0 = Some(Report { mtu, since: now, refuted: false });
        }
        let Some(report) = &mut self.0 else { return known.allowed };
        let confirmed = CONFIRMED_AFTER.max(keepalive * CONFIRMED_INTERVALS);
        if now.since(report.since) >= confirmed && carried.is_some_and(|carried| carried > mtu) {
            report.refuted = true;
        }
        match report.refuted {
            true => known.allowed,
            false => believed(known.allowed, Some(mtu), carried),
        }
    }

    /// Whether there is a report that has not been refuted.
    pub(super) fn is_open(&self) -> bool {
        self.0.as_ref().is_some_and(|report| !report.refuted)
    }
}

/// What a path is taken to carry, by a report that is neither refuted nor proven.
fn believed(allowed: u32, reported: Option<u32>, carried: Option<u32>) -> u32 {
    let reported = reported.unwrap_or(allowed);
    reported.max(MIN_MTU).max(carried.unwrap_or(0)).min(allowed)
}

/// When to probe a path that carries less than its interface and route allow, or may do so.
#[derive(Debug, Default)]
pub(super) struct Probing {
    next: Option<Instant>,
    sent: u32,
}

impl Probing {
    /// Whether a probe is due at `now` on a path that is limited; on one that is not used for that often
    /// enough for it to be used again within five seconds.
    pub(super) fn is_due(&mut self, now: Instant, limited: bool, unusable: bool) -> bool {
        if !limited {
            *self = Self::default();
            return false;
        }
        // One that has become unusable does not wait for the end of a long interval.
        let next = match unusable {
            true => self.next.map(|next| next.min(now + RETRY)),
            false => self.next,
        };
        self.next = next;
        if next.is_some_and(|next| now < next) {
            return false;
        }
        self.sent = self.sent.saturating_add(1);
        let doublings = self.sent.saturating_sub(FIRST_PROBES - 1).min(10);
        let interval = if unusable { RETRY } else { PROBE_INTERVAL * 2_u32.pow(doublings) };
        self.next = Some(now + interval.min(RAISE));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(500);
    const ALLOWED: u32 = 1464;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn reported(mtu: u32) -> KnownMtu {
        KnownMtu { reported: Some(mtu), ..KnownMtu::allowed(ALLOWED) }
    }

    #[test]
    fn a_report_takes_no_path_below_what_the_peer_receives_nor_below_the_least() {
        let mut report = Reported::default();
        let mut mtu =
            |second, mtu, carried| report.mtu(at(second), reported(mtu), carried, INTERVAL);
        // Before the change each of the forged reports made the path unusable.
        for forged in [0, 32, 516, 1243] {
            assert_eq!(mtu(0, forged, None), MIN_MTU, "{forged}");
            assert_eq!(mtu(0, forged, Some(1400)), 1400, "{forged}");
            assert_eq!(mtu(0, forged, Some(ALLOWED)), ALLOWED, "{forged}");
        }
        assert_eq!(mtu(1, 1364, Some(52)), 1364, "one that nothing refutes is believed");
        assert_eq!(mtu(60, 1364, Some(1364)), 1364, "and stays so");
        for forged in [0, 516, 1243] {
            assert_eq!(reported(forged).at_first(), MIN_MTU);
        }
        assert_eq!(reported(1364).at_first(), 1364);
        assert_eq!(KnownMtu::allowed(1000).at_first(), 1000, "the operator is always believed");
    }

    #[test]
    fn a_longer_datagram_that_arrives_later_refutes_a_report() {
        let mut report = Reported::default();
        assert_eq!(report.mtu(at(0), reported(1364), Some(ALLOWED), INTERVAL), ALLOWED);
        assert!(report.is_open(), "it may have arrived before the report");
        assert_eq!(report.mtu(at(2), reported(1364), Some(52), INTERVAL), 1364);
        assert_eq!(report.mtu(at(3), reported(1364), Some(ALLOWED), INTERVAL), ALLOWED);
        assert!(!report.is_open());
        assert_eq!(report.mtu(at(9), reported(1364), Some(52), INTERVAL), ALLOWED, "for good");
        assert_eq!(report.mtu(at(10), reported(1300), Some(52), INTERVAL), 1300, "another report");
        assert!(report.is_open());
        assert_eq!(report.mtu(at(11), KnownMtu::allowed(ALLOWED), None, INTERVAL), ALLOWED);
        assert!(!report.is_open(), "the kernel has forgotten it");
    }

    #[test]
    fn rare_keepalives_refute_later() {
        let mut report = Reported::default();
        let rare = Duration::from_secs(10);
        for (second, open) in [(0, true), (39, true), (40, false)] {
            report.mtu(at(second), reported(1364), Some(ALLOWED), rare);
            assert_eq!(report.is_open(), open, "{second}");
        }
    }

    #[test]
    fn probes_come_quickly_at_first_and_always_on_an_unusable_path() {
        let due = |unusable: bool| {
            let mut probing = Probing::default();
            let due = |&second: &u64| probing.is_due(at(second), true, unusable);
            (0..3600).filter(due).collect::<Vec<_>>()
        };
        let times = due(false);
        assert_eq!(times[..8], [0, 1, 2, 3, 5, 9, 17, 33]);
        assert_eq!(times[times.len() - 1] - times[times.len() - 2], 600);
        assert_eq!(due(true), (0..3600).step_by(2).collect::<Vec<_>>());

        let mut probing = Probing::default();
        for second in 0..100 {
            probing.is_due(at(second), true, false);
        }
        let next = (100..).find(|&second| probing.is_due(at(second), true, true));
        assert!(next <= Some(102), "it became unusable: {next:?}");
        assert!(!probing.is_due(at(110), false, false));
        assert!(probing.is_due(at(110), true, false), "begins again");
    }
}
