//! What becomes of packets that paths lose.

use serde::{Deserialize, Serialize};

/// Packets of a connection that were sent more than once towards the peer, and what is sent beyond inner packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairStatus {
    /// Whether losses are repaired at present: both hosts do so, in a session.
    pub active: bool,
    /// Packets that were found to be lost, those included that had been sent again.
    pub lost: u64,
    /// Lost packets that were not sent again because it would have been too late.
    pub too_late: u64,
    /// Packets that were sent again because they were lost.
    pub repaired: CopyCounters,
    /// How many of them took two paths at once.
    pub doubled: u64,
    /// How many of them were sent again before it was certain that they were lost.
    pub early: u64,
    /// How many of these were only late.
    pub needless: u64,
    /// Packets that were sent again because their path was left.
    pub moved: CopyCounters,
    /// Packets that took two paths at once because they are small and critical. Those were saved of which one copy was
    /// lost; it was in vain if none was, or both.
    pub duplicated: CopyCounters,
    /// Parities that were sent, and the packets that the peer has brought back by them; those were in vain in whose group nothing was
    /// lost.
    pub parity: CopyCounters,
    /// How often a path was left because it was silent.
    pub leaves: u64,
    /// How often one that was left was used again before it counted as down.
    pub returns: u64,
    /// Bytes of headers in front of inner packets that were sent for the first time: IP, UDP and those of the framing.
    pub header_bytes: u64,
    /// Bytes of all packets that were sent on another path too, or before, headers included.
    pub copy_bytes: u64,
    /// Bytes of the tunnel's own messages, headers included.
    pub control_bytes: u64,
    /// The three together as a share of the bytes of inner packets; none if none was sent.
    pub beyond: Option<f64>,
}

/// What became of packets that were sent more than once for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyCounters {
    /// How many were sent again.
    pub tried: u64,
    /// How many of them arrived by that, as far as feedback tells.
    pub saved: u64,
    /// How many of them did not help.
    pub in_vain: u64,
    /// How many were not sent again, because no more bytes may be spent on it.
    pub refused: u64,
    /// The bytes of IP packets that it took.
    pub bytes: u64,
}

/// Copies of packets that are kept until it is known what became of them, of all connections of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreStatus {
    /// Packets that are kept at this moment.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were not kept, or not for long enough, because of a bound. They cannot be sent again.
    pub forgotten: u64,
    /// The most packets that are kept.
    pub most_packets: u64,
    /// The most bytes that are kept.
    pub most_bytes: u64,
    /// The most bytes that are copied per second. While more are sent, none are kept.
    pub most_bytes_per_second: u64,
}

/// What became of lost packets of one class of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassCounters {
    /// Its name: `realtime`, `interactive` or `bulk`, or as configured.
    pub name: String,
    /// Packets that were found to be lost.
    pub lost: u64,
    /// Packets that were sent again.
    pub repaired: u64,
    /// Packets that took two paths at once because of the class.
    pub duplicated: u64,
    /// Packets that parity covers.
    pub covered: u64,
    /// Lost packets that were not sent again because the class does not want it, or it would have been too late for it.
    pub given_up: u64,
}
