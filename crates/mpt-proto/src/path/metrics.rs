//! The sending side's information about a path for the selection.

use std::time::Duration;

/// Measurements of one path in the direction in which this end sends. Each is `None` until it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathMetrics {
    /// How long datagrams take to the peer and back: the latest or the smoothed round trip, whichever is
    /// longer.
    pub round_trip: Option<Duration>,
    /// The rate at which the path's interface sends, in bytes per second, while it is the bottleneck.
    pub egress_rate: Option<u64>,
}
