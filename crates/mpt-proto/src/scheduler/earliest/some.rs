//! Choices among some of the paths, or of several paths at once.

use std::time::Duration;

use super::{Earliest, Lane};
use crate::id::PathId;
use crate::time::Instant;

impl Earliest {
    /// The choice among these paths only, one bit each, as it is at the moment.
    pub(crate) fn within(&self, allowed: u64) -> Self {
        let lanes = self.lanes.iter().filter(|lane| allowed >> lane.path.0 & 1 != 0);
        let favourite = self.favourite.filter(|path| allowed >> path.0 & 1 != 0);
        let mut within =
            Self { rule: self.rule, lanes: lanes.copied().collect(), favourite, ..Self::default() };
        within.set_slowest();
        within
    }

    /// Whether no path carries.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The rate of the paths in use that take no longer than so much more than the fastest, in bytes per second.
    pub(crate) fn rate_within(&self, delay: Duration) -> u64 {
        self.used().filter(|lane| lane.delay <= delay).filter_map(|lane| lane.rate).sum()
    }

    /// All paths but one that carry and cost nothing, that by which a packet of `len` bytes that goes before all that is committed
    /// arrives first in front.
    pub(crate) fn others_ahead(&self, now: Instant, len: usize, but: PathId) -> Vec<PathId> {
        let free = self.least_price();
        let others = self.used().filter(|lane| lane.price <= free && lane.path != but);
        let mut others: Vec<&Lane> = others.collect();
        others.sort_by_key(|lane| lane.next.max(now) + lane.time(lane.ahead + len) + lane.delay);
        others.into_iter().map(|lane| lane.path).collect()
    }

    /// A packet of `len` bytes that goes before all that is committed takes this path, which was chosen for it.
    pub(crate) fn commit_ahead_chosen(&mut self, now: Instant, path: PathId, len: usize) {
        self.commit_ahead(now, path, len);
        if self.lane(path).is_some_and(|lane| lane.rate.is_none()) {
            self.favourite = Some(path);
        }
    }
}
