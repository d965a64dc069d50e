//! Paths in doubt: what was sent on one should have arrived, and has not, but not for so long that it is [left](super::fail_over).
//!
//! A packet of a call that comes a few milliseconds too late is as good as lost. So as soon as a path is in doubt, what it has of
//! flows that have a deadline is sent again by another one, and what follows of them takes two paths, until feedback tells that
//! the path delivers, or it is left. That costs bytes and nothing else, if the path was only slow.

use super::connection::TransmitHalf;
use super::path::TransmitPath;
use crate::class::{RepairMode, Wanted};
use crate::time::Instant;

impl TransmitHalf {
    /// A path is in doubt, if there is another one that is not.
    pub(super) fn doubt(&mut self, now: Instant, index: usize) {
        let doubts = self.doubts.present(now);
        let is_sure = |(other, path): &(usize, &TransmitPath)| {
            path.carries() && *other != index && doubts >> other & 1 == 0
        };
        let carries = self.paths.get(index).is_some_and(TransmitPath::carries);
        let has_other = self.paths.iter().any(|path| is_sure(&path));
        if !carries || !has_other || doubts >> index & 1 != 0 || !self.is_repaired() {
            return;
        }
        self.paths[index].doubted_from = self.paths[index].wire.next;
        self.doubts.begin(now, index);
    }

    /// Whether packets of a class are looked after as soon as their path is in doubt.
    pub(super) fn minds_doubt(wanted: Wanted) -> bool {
        wanted.deadline.is_some() && wanted.repair != RepairMode::None
    }
}
