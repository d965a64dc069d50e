//! Which paths are in [doubt](super::doubt), and until when.

use std::time::Duration;

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

    /// The paths that are in doubt, one bit each.
    pub(super) fn present(&self, now: Instant) -> u64 {
        if self.any(now) { self.paths.0 } else { 0 }
    }

    /// A path is in doubt from now on.
    pub(super) fn begin(&mut self, now: Instant, index: usize) {
        self.paths = (self.present(now) | 1 << index, now + LONGEST);
        self.again = (self.again.0 | 1 << index, now);
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
