//! Paths in doubt: what was sent on one should have arrived, and has not, but not for so long that it is [left](super::fail_over).
//!
//! A packet of a call that comes a few milliseconds too late is as good as lost. So as soon as a path is in doubt, what it has of
//! flows that have a deadline is sent again by another one, and what follows of them takes two paths, until feedback tells that
//! the path delivers, or it is left. That costs bytes and nothing else, if the path was only slow.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use crate::class::{RepairMode, Wanted};
use crate::time::Instant;

/// A path is in doubt for so long at the most.
const LONGEST: Duration = Duration::from_secs(1);

/// The paths in doubt.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// One bit each, and until when any is.
    paths: (u64, Instant),
    /// Those of them of which something is to be sent again, and since when.
    again: (u64, Instant),
}

impl Doubts {
    /// Whether a path is in doubt.
    #[inline]
    pub(super) fn any(&self, now: Instant) -> bool {
        self.paths.0 != 0 && now < self.paths.1
    }

    /// A path delivers after all, or is left.
    pub(super) fn end(&mut self, index: usize) {
        self.paths.0 &= !(1 << index);
        self.again.0 &= !(1 << index);
    }

    /// The paths of which something is to be sent again, and since when.
    pub(super) fn take(&mut self) -> Option<(u64, Instant)> {
        let (paths, at) = std::mem::take(&mut self.again);
        (paths != 0).then_some((paths, at))
    }
}

impl TransmitHalf {
    /// A path is in doubt, if there is another one that is not.
    pub(super) fn doubt(&mut self, now: Instant, index: usize) {
        let doubts = if self.doubts.any(now) { self.doubts.paths.0 } else { 0 };
        let is_sure = |(other, path): &(usize, &TransmitPath)| {
            path.carries() && *other != index && doubts >> other & 1 == 0
        };
        let carries = self.paths.get(index).is_some_and(TransmitPath::carries);
        let has_other = self.paths.iter().any(|path| is_sure(&path));
        if !carries || !has_other || doubts >> index & 1 != 0 || !self.is_repaired() {
            return;
        }
        self.paths[index].doubted_from = self.paths[index].wire.next;
        self.doubts.paths = (doubts | 1 << index, now + LONGEST);
        self.doubts.again = (self.doubts.again.0 | 1 << index, now);
    }

    /// Whether packets of a class are looked after as soon as their path is in doubt.
    pub(super) fn minds_doubt(wanted: Wanted) -> bool {
        wanted.deadline.is_some() && wanted.repair != RepairMode::None
    }
}
