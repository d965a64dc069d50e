//! What a session measures of the peer's datagrams.

use std::time::Duration;

use crate::id::PathId;
use crate::path::delay::Delays;
use crate::time::Instant;

/// The measurements of one session.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) delays: Delays,
    /// When the last feedback was given out, and what arrived since, in bytes.
    pub(super) told_at: Instant,
    pub(super) bytes: u64,
    /// When the next one is due, if anything arrived since.
    pub(super) due: Option<Instant>,
}

/// What is known of the way from the peer by one path, in extended framing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiveQuality {
    /// How much longer datagrams take by this path than by the fastest of the connection at its best.
    pub delay: Duration,
    /// How much longer than they take at best, on average: the time in queues.
    pub queueing: Duration,
    /// The mean deviation of the delay.
    pub deviation: Duration,
    /// Interarrival jitter (RFC 3550 section 6.4.1) of all datagrams.
    pub jitter: Duration,
    /// Datagrams that were lost for certain.
    pub lost: u64,
    /// Datagrams that arrived, control included, copies not.
    pub received: u64,
}

impl Measured {
    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.delays.memory()
    }

    /// A path is gone, or new.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.delays.forget_path(path);
    }

    /// When the next feedback is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }
}
