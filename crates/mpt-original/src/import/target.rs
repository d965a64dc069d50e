//! What the configuration is made for, and what it permits.

use std::ops::RangeInclusive;
use std::time::Duration;

/// What the peers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The original MPT still: connections of the kind `mpt-original`.
    Original,
    /// `mpt` too, from the same moment on.
    Mpt,
}

/// What the configuration is made for, and what its reader permits. The reader's owner says it, so that the
/// bounds are written down in one place.
#[derive(Clone, Debug)]
pub struct Target {
    /// What the peers run.
    pub peer: Peer,
    /// The MTUs of a tunnel in bytes.
    pub mtu: RangeInclusive<u16>,
    /// The least MTU in bytes of a tunnel that carries IPv6.
    pub min_mtu_ipv6: u16,
    /// The largest reorder window in packets.
    pub max_window: u32,
    /// The longest time that a packet is held.
    pub max_delay: Duration,
    /// Why a text cannot be the name of an interface, unless it can.
    pub interface_fault: fn(&str) -> Option<String>,
}
