//! What is remembered of a drain until it is judged, and what the queues of other paths say of it.

use crate::time::Instant;

/// Whether others of the connection's paths have a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Queues {
    /// None of them.
    #[default]
    Empty,
    /// All that have one are sent on by less than they deliver.
    Draining,
    /// At least one that has may be what fills it.
    Filling,
}

/// A time in which less is sent than the path delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrainCheck {
    /// q at its beginning, or as long as it was by what was sent before.
    pub(super) before: i32,
    /// What was sent last when it began.
    pub(super) from: u32,
    /// By how much q should have fallen, in microseconds.
    pub(super) predicted: f64,
    /// When it is to be judged, and when that was decided what was sent last, and by how much q should have fallen by then.
    pub(super) judged: Option<(Instant, u32, f64)>,
}
