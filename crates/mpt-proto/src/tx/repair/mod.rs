//! Repair: what paths have lost is sent again (section 8.5.1 of `docs/protocol.md`).
//!
//! Copies of what was sent are [kept](Unacknowledged) until feedback tells what became of them. This is what is known of
//! repairs in one connection: how many bytes they may take, and what became of them.

pub(in crate::tx) mod groups;
mod latency;
mod overtaken;
mod spare;
mod store;
mod twins;

use std::time::Duration;

use crate::id::PathId;
use crate::time::Instant;
use crate::wire::extended::feedback::Block;
pub(crate) use groups::{Covered, Groups};
pub(crate) use latency::Latency;
pub(crate) use overtaken::Overtaken;
pub(crate) use spare::Spare;
pub use store::StoreStats;
pub(crate) use store::{Kept, Place, Seen, Unacknowledged};
pub(crate) use twins::{Fate, Twins};

/// A repair takes two paths if more than this share of both would be lost otherwise: at 100 Mbit/s and 20 ms that holds
/// up a transfer (algorithm of Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997).
const RESIDUAL: f64 = 1e-5;

/// How long after it was sent first a packet may be sent again. The retransmission timer of TCP (RFC 6298) includes the queues on the way,
/// which this end knows only later, and a copy that comes too late costs its bytes and nothing else. Over paths of 300 ms one way it
/// takes up to 1.4 s to leave one that is silent.
pub(crate) const DEADLINE: Duration = Duration::from_millis(1500);

/// Why a packet is sent more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyKind {
    /// Its path has lost it.
    Lost,
    /// Its path is left.
    Left,
    /// It is small and critical, and takes two paths at once.
    Duplicate,
    /// It is sent once, and parity covers it; or it is a parity, which is the second of what is sent.
    Covered,
}

/// What is known of a packet that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Again {
    /// When it was sent first.
    pub(crate) first: Instant,
    /// How often it was sent before.
    pub(crate) times: u8,
    pub(crate) kind: CopyKind,
    /// Whether it is the second of two copies: if it is lost as well, the other one is looked after.
    pub(crate) is_second: bool,
}

impl Again {
    /// Whether nothing follows from its loss. Of what takes two paths because it is critical, both are looked after.
    pub(super) fn is_not_missed(self) -> bool {
        self.is_second && self.kind != CopyKind::Duplicate
    }

    /// Whether parity covers it.
    pub(super) fn is_covered(self) -> bool {
        self.kind == CopyKind::Covered && !self.is_second
    }

    /// Whether it is a parity.
    pub(super) fn is_parity(self) -> bool {
        self.kind == CopyKind::Covered && self.is_second
    }
}

/// What became of packets that were sent more than once, for one reason, since the connection was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Packets that were sent again.
    pub tried: u64,
    /// Those of them that arrived then, as feedback tells.
    pub saved: u64,
    /// Those of them that were lost once more.
    pub in_vain: u64,
    /// Packets that were not sent again because as much was as may be.
    pub refused: u64,
    /// The bytes of IP packets that were sent for it.
    pub bytes: u64,
}

/// What became of packets that were lost, since the connection was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairStats {
    /// Packets that feedback told to be lost, those among them included that had been sent again.
    pub lost: u64,
    /// Packets that were sent again because of that, or because they seemed to be lost.
    pub repaired: CopyStats,
    /// Those of them that took a second path as well.
    pub doubled: u64,
    /// Packets that were sent again before it was certain that they are lost.
    pub early: u64,
    /// Those of them that were only late.
    pub needless: u64,
    /// Packets that were sent again because their path is left.
    pub moved: CopyStats,
    /// Packets that took two paths at once because they are small and critical. Those were saved of which one copy was
    /// lost; it was in vain if none was, or both.
    pub duplicated: CopyStats,
    /// Parities that were sent, and the packets that the peer has brought back by them; those were in vain in whose group no packet
    /// was lost.
    pub parity: CopyStats,
    /// Lost packets that were not sent again because it would have been too late.
    pub too_late: u64,
    /// How often a path was left because it was silent.
    pub leaves: u64,
    /// How often one was used again before it counted as down.
    pub returns: u64,
}

/// What became of lost packets of one class, since the connection was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Packets that feedback told to be lost.
    pub lost: u64,
    /// Packets that were sent again.
    pub repaired: u64,
    /// Packets that took two paths at once because of the class.
    pub duplicated: u64,
    /// Packets that parity covers.
    pub covered: u64,
    /// Lost packets that were not sent again because the class does not want it, or it would have been too late for it.
    pub given_up: u64,
}

impl RepairStats {
    /// What is counted of one kind.
    pub(super) fn of(&mut self, kind: CopyKind) -> &mut CopyStats {
        match kind {
            CopyKind::Lost => &mut self.repaired,
            CopyKind::Left => &mut self.moved,
            CopyKind::Duplicate => &mut self.duplicated,
            CopyKind::Covered => &mut self.parity,
        }
    }
}

/// What is known of repairs in one connection.
#[derive(Debug)]
pub(crate) struct Repair {
    /// Whether the peer repairs losses, too, and reads parity.
    peer: bool,
    parity: bool,
    /// What the peer has just told of a path.
    told: Option<(PathId, Box<Block>)>,
    /// Packets that were sent on two paths at once.
    pub(super) twins: Twins,
    /// Packets that parity covers.
    pub(super) groups: Groups,
    /// How long it takes to hear of losses.
    pub(super) latency: Latency,
    /// What was counted of each class, by its name.
    pub(super) classes: Vec<(Box<str>, ClassStats)>,
    /// Whether packets of some class may have to take two paths, or only some paths.
    pub(super) any_treated: bool,
    pub(super) stats: RepairStats,
}

impl Default for Repair {
    fn default() -> Self {
        Self::new(false, false)
    }
}

impl Repair {
    /// A session begins with a peer that repairs losses and reads parity or not.
    pub(super) fn new(peer: bool, parity: bool) -> Self {
        Self {
            peer,
            parity,
            told: None,
            twins: Twins::default(),
            groups: Groups::default(),
            latency: Latency::default(),
            classes: Vec::new(),
            any_treated: false,
            stats: RepairStats::default(),
        }
    }

    /// Another session begins with a peer that repairs losses or not.
    pub(super) fn renewed(&self, peer: bool, parity: bool) -> Self {
        let (stats, classes) = (self.stats(), self.classes.clone());
        Self { stats, classes, ..Self::new(peer, parity) }
    }

    /// Whether the peer repairs losses, too.
    #[inline]
    pub(super) fn has_peer(&self) -> bool {
        self.peer
    }

    /// Whether the peer reads parity.
    pub(super) fn has_parity(&self) -> bool {
        self.peer && self.parity
    }

    /// What became of lost packets.
    pub(super) fn stats(&self) -> RepairStats {
        let mut stats = self.stats;
        stats.parity.in_vain += self.groups.in_vain;
        stats
    }

    /// Whether what a path has lost that loses a share of datagrams takes a second one, where the first loses a share, too.
    pub(super) fn doubles(lost_by: f64, taken: f64) -> bool {
        lost_by * taken > RESIDUAL
    }

    /// The peer tells what arrived by a path.
    pub(super) fn on_report(&mut self, path: PathId, block: &Block) {
        if self.peer {
            self.told = Some((path, Box::new(*block)));
        }
    }

    /// What it has told, once.
    pub(super) fn take_told(&mut self) -> Option<(PathId, Box<Block>)> {
        self.told.take()
    }

    /// What is counted of the class of this name.
    pub(super) fn class(&mut self, name: &str) -> &mut ClassStats {
        let at = self.classes.iter().position(|(known, _)| **known == *name);
        let at = at.unwrap_or_else(|| {
            self.classes.reserve_exact(1);
            self.classes.push((name.into(), ClassStats::default()));
            self.classes.len() - 1
        });
        &mut self.classes[at].1
    }

    /// Gives back memory. Nothing is awaited any more.
    pub(super) fn rest(&mut self) {
        self.twins = Twins::default();
        self.groups.rest();
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        let names: usize = self.classes.iter().map(|(name, _)| name.len()).sum();
        self.twins.memory()
            + self.groups.memory()
            + self.classes.capacity() * size_of::<(Box<str>, ClassStats)>()
            + names
            + self.told.as_ref().map_or(0, |(_, block)| size_of_val(&**block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_is_sent_only_to_a_host_that_reads_it() {
        let peers = [(true, true), (true, false), (false, true)];
        assert_eq!(
            peers.map(|(peer, parity)| Repair::new(peer, parity).has_parity()),
            [true, false, false]
        );
        assert!(!Repair::new(true, true).renewed(true, false).has_parity(), "another session");
    }

    #[test]
    fn what_both_paths_would_lose_too_often_takes_both() {
        assert!(Repair::doubles(0.01, 0.01) && Repair::doubles(0.05, 0.001));
        assert!(!Repair::doubles(0.003, 0.003) && !Repair::doubles(0.05, 0.0));
    }
}
