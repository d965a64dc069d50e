//! The next deadline, with its reason.

use crate::time::Instant;

/// Why the core wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A path has become idle, which its beacon says.
    Beacon,
    /// The dead time of a silent path expires.
    DeadTime,
    /// What arrived is to be reported to the peer.
    Feedback,
    /// A packet that waits for its play-out time is due.
    PlayOut,
    /// A packet that waits may leave, or be given a number.
    Pace,
    /// A probe of what a path carries is due, or its answer is overdue.
    Probe,
    /// A hello or hello confirm is due.
    Hello,
    /// A session all of whose paths are down is forgotten.
    SessionEnd,
    /// A keepalive is due.
    Keepalive,
    /// A path on which packets may still have been in flight has brought the last of them.
    Linger,
    /// A held packet has waited for the maximum delay.
    MaxDelay,
}

/// A deadline and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Instant,
    /// What for.
    pub timer: Timer,
}

impl Deadline {
    /// The earlier of two deadlines that may not exist.
    pub(crate) fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (one, other) => one.or(other),
        }
    }
}
