//! Which path, for this packet, now?
//!
//! Paths come in tiers by priority. The usable paths with the lowest number carry packets; the
//! others are on standby, and carry only pinned packets.

pub(crate) mod earliest;
mod flow;
mod share;
mod weighted;

use crate::config::SchedulerConfig;
use crate::framing::datagram::Item;
use crate::id::PathId;
use crate::path::metrics::PathMetrics;
use crate::time::Instant;
use earliest::{Earliest, Rule};
use flow::FlowMapping;
pub(crate) use share::Share;
use weighted::Weighted;

/// Tiers, and the policy that chooses within the best.
#[derive(Debug)]
pub(crate) struct Scheduler {
    policy: Policy,
    /// The paths on standby, one bit for each.
    standby: u64,
}

/// A policy that answers the question. Each policy has a file.
#[derive(Debug)]
enum Policy {
    /// And what chooses in plain framing.
    Earliest(Earliest, Weighted),
    Flow(FlowMapping),
    Weighted(Weighted),
}

/// What a policy may ask about the paths.
pub(crate) trait Paths {
    /// What was measured on a path.
    fn metrics(&self, path: PathId) -> PathMetrics;
}

impl Scheduler {
    pub(crate) fn new(config: SchedulerConfig) -> Self {
        let measured = |rule| Policy::Earliest(Earliest::new(rule), Weighted::default());
        let policy = match config {
            SchedulerConfig::Earliest => measured(Rule::Earliest),
            SchedulerConfig::LowestRtt => measured(Rule::LowestRtt),
            SchedulerConfig::Redundant => measured(Rule::Redundant),
            SchedulerConfig::Flow => Policy::Flow(FlowMapping::default()),
            SchedulerConfig::Weighted => Policy::Weighted(Weighted::default()),
        };
        Self { policy, standby: 0 }
    }

    /// Sets the usable paths and their shares; called whenever one of these changes. An excess or
    /// deficit of a path is compensated afterwards.
    pub(crate) fn set_paths<'p>(&mut self, usable: impl Iterator<Item = Share<'p>> + Clone) {
        let best = usable.clone().map(|share| share.tier).min();
        let carries = move |share: &Share<'_>| Some(share.tier) == best;
        let waiting = usable.clone().filter(|share| !carries(share));
        self.standby = waiting.fold(0, |bits, share| bits | bit(share.path));
        let best_tier = usable.clone().filter(carries);
        match &mut self.policy {
            Policy::Earliest(earliest, weighted) => {
                earliest.set_paths(best_tier.clone().map(|share| share.path));
                weighted.set_paths(best_tier.map(|share| (share.path, share.weight)));
            }
            Policy::Flow(mapping) => mapping.set_paths(usable, best_tier),
            Policy::Weighted(weighted) => {
                weighted.set_paths(best_tier.map(|share| (share.path, share.weight)));
            }
        }
    }

    /// The path for an inner packet that is sent at this time; `None` if there is none. No policy so far
    /// depends on the time or on what was measured on the paths.
    #[inline(always)]
    pub(crate) fn select(
        &mut self,
        _now: Instant,
        item: &Item<'_>,
        _paths: &impl Paths,
    ) -> Option<PathId> {
        match &mut self.policy {
            Policy::Flow(mapping) => mapping.select(item),
            Policy::Weighted(weighted) | Policy::Earliest(_, weighted) => weighted.select(),
        }
    }

    /// A path has had so many packets beyond those for which it was selected.
    pub(crate) fn add(&mut self, path: PathId, packets: u32) {
        match &mut self.policy {
            Policy::Weighted(weighted) | Policy::Earliest(_, weighted) => {
                weighted.add(path, packets)
            }
            Policy::Flow(_) => {}
        }
    }

    /// What the path with the least share has of all that is sent in a session, where several take packets in turn: so many
    /// parts of so many.
    pub(crate) fn least_share(&self) -> Option<(u32, u32)> {
        match &self.policy {
            Policy::Earliest(earliest, _) => earliest.fast().map(|paths| (1, paths)),
            Policy::Flow(_) => None,
            Policy::Weighted(weighted) => weighted.least_share(),
        }
    }

    /// The choice by earliest arrival, if that is the policy.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<&Earliest> {
        match &self.policy {
            Policy::Earliest(earliest, _) => Some(earliest),
            Policy::Flow(_) | Policy::Weighted(_) => None,
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn earliest_mut(&mut self) -> Option<&mut Earliest> {
        match &mut self.policy {
            Policy::Earliest(earliest, _) => Some(earliest),
            Policy::Flow(_) | Policy::Weighted(_) => None,
        }
    }

    /// The paths that are usable while a better tier carries, one bit for each.
    pub(crate) fn standby(&self) -> u64 {
        self.standby
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        match &self.policy {
            Policy::Earliest(earliest, weighted) => earliest.memory() + weighted.memory(),
            Policy::Flow(mapping) => mapping.memory(),
            Policy::Weighted(weighted) => weighted.memory(),
        }
    }

    /// Gives back memory that is not needed.
    pub(crate) fn rest(&mut self) {
        if let Policy::Earliest(earliest, _) = &mut self.policy {
            earliest.rest();
        }
    }

    /// Whether a path is usable, but a better tier carries.
    pub(crate) fn is_standby(&self, path: PathId) -> bool {
        self.standby & bit(path) != 0
    }
}

const fn bit(path: PathId) -> u64 {
    1 << path.0
}
