//! What the estimate of a rate is given beside feedback.

use std::time::Duration;

use super::Queues;

/// What is known of a path beside feedback.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    /// The number of the feedback.
    pub(crate) number: u16,
    /// So many bytes of IP and UDP stand before each datagram.
    pub(crate) header: u64,
    /// The least round trip, and the last one.
    pub(crate) least: Duration,
    pub(crate) latest: Duration,
    /// Of how many datagrams the delays are that feedback tells.
    pub(crate) meant: u32,
    /// Whether the path may compete with others for a queue, and the phase of its tests: that of the connection.
    pub(crate) competes: bool,
    pub(crate) phase: Duration,
    /// The path sequence of what was sent on it last.
    pub(crate) last: u32,
    /// What stands in the queues of the connection's other paths.
    pub(crate) others: Queues,
    /// So many bytes have been sent on it of which no feedback tells yet.
    pub(crate) ahead: u64,
}
