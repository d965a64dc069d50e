//! What a connection knows of its silent paths: see [`fail_over`](super::fail_over).

use super::path::TransmitPath;
use crate::time::Instant;

/// What is known of paths that are silent or left.
#[derive(Debug, Default)]
pub(super) struct FailOver {
    /// When the next path may be silent, or is to be probed.
    pub(super) at: Option<Instant>,
    /// Until then a path that was left lately is suspected.
    pub(super) suspicion: Instant,
    /// Until then nothing is concluded, because the host stood still.
    pub(super) grace: Instant,
    /// When the last feedback was written, in microseconds of the peer's clock.
    pub(super) written: u32,
    /// Bytes of inner packets that were sent, and on how many paths they may be.
    bytes: u64,
    pub(super) paths: u64,
    /// Paths of which what is not acknowledged is to be sent again: one bit each, and since when.
    left: (u64, Instant),
}

impl FailOver {
    /// A datagram with an inner packet leaves on a path.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, path: &mut TransmitPath, bytes: usize) {
        self.bytes += bytes as u64;
        let sequence = path.wire.next.wrapping_sub(1);
        path.silence.on_sent(now, sequence, bytes as u32, self.bytes, self.paths);
    }

    /// What was sent on these paths, one bit each, and is not acknowledged is to be sent again.
    pub(super) fn resend(&mut self, now: Instant, paths: u64) {
        self.left = (self.left.0 | paths, now);
    }

    /// These paths, and when.
    pub(super) fn take_left(&mut self) -> Option<(u64, Instant)> {
        let (paths, at) = std::mem::take(&mut self.left);
        (paths != 0).then_some((paths, at))
    }

    /// When something may have to be done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.at
    }
}
