//! Which path, for this packet, now?

mod weighted;

use crate::config::SchedulerConfig;
use crate::path::PathId;
use weighted::Weighted;

/// A policy that answers the question. Each policy has a file.
#[derive(Debug)]
pub(crate) enum Scheduler {
    Weighted(Weighted),
}

impl Scheduler {
    pub(crate) fn new(config: SchedulerConfig) -> Self {
        match config {
            SchedulerConfig::Weighted => Self::Weighted(Weighted::default()),
        }
    }

    /// Tells the policy which paths are up, with their weights. It starts afresh with them.
    pub(crate) fn set_paths(&mut self, paths: impl Iterator<Item = (PathId, u16)>) {
        match self {
            Self::Weighted(weighted) => weighted.set_paths(paths),
        }
    }

    /// The path for the next packet; `None` if there is none.
    pub(crate) fn select(&mut self) -> Option<PathId> {
        match self {
            Self::Weighted(weighted) => weighted.select(),
        }
    }
}
