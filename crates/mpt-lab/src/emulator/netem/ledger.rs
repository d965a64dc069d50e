//! What netem has counted, in the words of the emulator's statistics.

use mpt_sim::link::{Count, DropReason, Stats};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;

use super::ETHERNET_HEADER;
use super::qdisc::NetemCounters;

/// The counters of one direction. They must be read before the settings change, because netem has
/// one counter for all drops and only the settings show their reason.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    latest: NetemCounters,
    drops: Vec<(DropReason, u64)>,
}

/// What drops are under these settings: where packets may both be lost and find the queue full, they
/// count as lost.
pub(super) fn reason(profile: &Profile, cut: bool) -> DropReason {
    match profile.loss {
        _ if cut => DropReason::Blackout,
        Loss::None => DropReason::Queue,
        Loss::Random(_) | Loss::GilbertElliott(_) => DropReason::Loss,
    }
}

impl Ledger {
    /// Takes down the counters as they are, what was dropped since the last time for this reason.
    pub(super) fn enter(&mut self, counters: NetemCounters, reason: DropReason) {
        let dropped = counters.dropped.saturating_sub(self.latest.dropped);
        self.latest = counters;
        self.drops.push((reason, dropped));
        self.merge();
    }

    /// The sum balances, but contains neither the bytes of dropped packets nor duplicates: netem
    /// counts those as offered.
    pub(super) fn stats(&self) -> Stats {
        let NetemCounters { packets, bytes, waiting, waiting_bytes, reordered, .. } = self.latest;
        let header = u64::from(ETHERNET_HEADER);
        let count = |packets: u64, bytes: u64| Count {
            packets,
            bytes: bytes.saturating_sub(packets * header),
        };
        let mut stats = Stats::default();
        stats.delivered = count(packets, bytes);
        stats.in_flight = count(waiting, waiting_bytes);
        stats.reordered = Count { packets: reordered, bytes: 0 };
        for &(reason, packets) in &self.drops {
            stats.add_drops(reason, Count { packets, bytes: 0 });
        }
        stats.offered = [stats.delivered, stats.in_flight, stats.dropped()].into_iter().sum();
        stats
    }

    /// One entry for each reason.
    fn merge(&mut self) {
        let sum = |reason| {
            let drops = self.drops.iter().filter(|(other, _)| *other == reason);
            (reason, drops.map(|(_, packets)| packets).sum())
        };
        self.drops = DropReason::ALL.map(sum).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_named_by_the_settings_under_which_they_happened() {
        let mut ledger = Ledger::default();
        let lossy = Profile { loss: Loss::Random(0.1), ..Profile::default() };
        let counters = |packets, dropped| NetemCounters {
            packets,
            bytes: packets * 114,
            dropped,
            waiting: 2,
            waiting_bytes: 228,
            reordered: 0,
        };
        ledger.enter(counters(10, 3), reason(&lossy, false));
        ledger.enter(counters(10, 8), reason(&lossy, true));
        ledger.enter(counters(15, 9), reason(&Profile::default(), false));
        ledger.enter(counters(20, 11), reason(&lossy, false));
        let stats = ledger.stats();
        let drops = |reason| stats.drops(reason).packets;
        let [blackout, loss, queue] =
            [DropReason::Blackout, DropReason::Loss, DropReason::Queue].map(drops);
        assert_eq!((blackout, loss, queue), (5, 5, 1));
        assert_eq!(stats.delivered, Count { packets: 20, bytes: 2000 });
        assert_eq!(stats.in_flight, Count { packets: 2, bytes: 200 });
        assert_eq!(stats.offered.packets, 33);
        assert!(stats.is_balanced());
    }
}
