//! Repair: what paths have lost is sent again (section 8.5.1 of `docs/protocol.md`).
//!
//! Copies of what was sent are [kept](Unacknowledged) until feedback tells what became of them. This is what is known of
//! repairs in one connection: how many bytes they may take, and what became of them.

mod store;

use crate::id::PathId;
use crate::wire::extended::feedback::Block;
pub use store::StoreStats;
pub(crate) use store::{Kept, Place, Unacknowledged};

/// What may be sent again of each byte that is sent: so much always, and so much of the share that is lost. A first repair
/// on two paths takes all of the latter.
const ALWAYS: f64 = 0.03;
const OF_LOSS: f64 = 2.0;
const AT_MOST: f64 = 0.15;

/// What may be saved up, in bytes: a queue of some access links that overflows.
const SAVED: f64 = (128 << 10) as f64;

/// A repair takes two paths if more than this share of both would be lost otherwise: at 100 Mbit/s and 20 ms that holds
/// up a transfer (algorithm of Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997).
const RESIDUAL: f64 = 1e-5;

/// What became of packets that were lost, in one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairStats {
    /// Packets that feedback told to be lost, those among them included that had been sent again.
    pub lost: u64,
    /// Packets that were sent again because of that.
    pub repaired: u64,
    /// Those of them that took a second path as well.
    pub doubled: u64,
    /// Packets that were sent again because their path is left.
    pub moved: u64,
    /// The bytes of IP packets that all of these took.
    pub bytes: u64,
    /// Lost packets that were not sent again because it would have been too late.
    pub too_late: u64,
    /// The same because as much was sent again as may be.
    pub over_budget: u64,
    /// How often a path was left because it was silent.
    pub leaves: u64,
    /// How often one was used again.
    pub returns: u64,
}

/// What is known of repairs in one connection.
#[derive(Debug)]
pub(crate) struct Repair {
    /// Whether the peer repairs losses, too.
    peer: bool,
    /// Bytes that may be sent again.
    left: f64,
    /// What the peer has just told of a path.
    told: Option<(PathId, Block)>,
    pub(super) stats: RepairStats,
}

impl Default for Repair {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Repair {
    /// A session begins with a peer that repairs losses or not.
    pub(super) fn new(peer: bool) -> Self {
        Self { peer, left: SAVED, told: None, stats: RepairStats::default() }
    }

    /// Whether the peer repairs losses, too.
    #[inline]
    pub(super) fn has_peer(&self) -> bool {
        self.peer
    }

    /// A packet was sent on a path that loses this share of datagrams.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: usize, loss: f64) {
        let share = (ALWAYS + OF_LOSS * loss).min(AT_MOST);
        self.left = (self.left + bytes as f64 * share).min(SAVED);
    }

    /// Whether so many bytes may be sent again; if so they count.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let has = self.left >= bytes as f64;
        if has {
            self.left -= bytes as f64;
        }
        has
    }

    /// Whether what a path has lost that loses a share of datagrams takes a second one, where the first loses a share, too.
    pub(super) fn doubles(lost_by: f64, taken: f64) -> bool {
        lost_by * taken > RESIDUAL
    }

    /// The peer tells what arrived by a path.
    pub(super) fn on_report(&mut self, path: PathId, block: &Block) {
        if self.peer {
            self.told = Some((path, *block));
        }
    }

    /// What it has told, once.
    pub(super) fn take_told(&mut self) -> Option<(PathId, Block)> {
        self.told.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_take_a_share_that_follows_the_loss() {
        for (loss, expected) in [(0.0, 0.03), (0.02, 0.07), (0.3, 0.15)] {
            let mut repair = Repair::new(true);
            assert!(repair.take(SAVED as usize) && !repair.take(1));
            (0..500).for_each(|_| repair.on_sent(1000, loss));
            let taken = (0..).take_while(|_| repair.take(100)).count() * 100;
            let share = taken as f64 / 5e5;
            assert!((expected - 0.0003..=expected).contains(&share), "{loss}: {share}");
        }
    }

    #[test]
    fn no_more_is_saved_up_than_a_queue_that_overflows() {
        let mut repair = Repair::new(true);
        (0..100_000).for_each(|_| repair.on_sent(1500, 0.0));
        assert!(repair.take(SAVED as usize) && !repair.take(1));
    }

    #[test]
    fn what_both_paths_would_lose_too_often_takes_both() {
        assert!(Repair::doubles(0.01, 0.01) && Repair::doubles(0.05, 0.001));
        assert!(!Repair::doubles(0.003, 0.003) && !Repair::doubles(0.05, 0.0));
    }
}
