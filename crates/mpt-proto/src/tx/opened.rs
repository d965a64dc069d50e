//! What was sent at the beginning of a session to find out what paths are like: see [`opening`](super::opening).

use crate::id::PathId;
use crate::time::Instant;

/// What was sent on one path, when the next may follow, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opened {
    pub(super) trains: u8,
    /// Whether trains were left out because there was no other path.
    pub(super) alone: bool,
    pub(super) singles: u8,
    pub(super) next: Instant,
    /// The next path sequence when it was last looked, and since when it is that.
    pub(super) latest: u32,
    pub(super) quiet_since: Instant,
    pub(super) until: Instant,
}

/// When the next is due, and which train is being sent: its path, and how many datagrams are left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    pub(super) at: Option<Instant>,
    pub(super) train: Option<(PathId, usize)>,
}
