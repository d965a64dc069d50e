//! The plan of a transfer and its paths.

use std::time::Duration;

use super::order::Order;
use crate::profile::Profile;
use crate::tcp::cubic::Growth;

/// The plan of a transfer.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The links and the paths over them, in their order; at least one.
    pub paths: Vec<Path>,
    /// How the receiving end puts packets in order.
    pub order: Order,
    /// Flows at once.
    pub flows: usize,
    /// How their windows grow.
    pub growth: Growth,
    /// Payload of a full segment in bytes.
    pub segment: usize,
    /// Bytes of an inner IP header.
    pub inner_header: usize,
    /// The most bytes of payload that a sender's socket lets be outstanding.
    pub send_buffer: usize,
    /// How long the flows send.
    pub length: Duration,
    /// Where all chance comes from.
    pub seed: u64,
}

/// A path and the link under it.
#[derive(Clone, Debug)]
pub struct Path {
    /// The link in the direction of the data.
    pub there: Profile,
    /// The link in the direction of the acknowledgements.
    pub back: Profile,
    /// Its weight.
    pub weight: u16,
    /// Bytes of the headers around an inner packet.
    pub overhead: usize,
}
