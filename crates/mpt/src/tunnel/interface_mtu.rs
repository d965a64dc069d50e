//! The interface's MTU.

use mpt_proto::Instant;

/// The least inner MTU: what every IPv6 link must carry (RFC 8200 section 5).
pub(super) const MIN_MTU: u32 = 1280;

/// The interface's MTU and when it may change.
pub(super) struct Mtu {
    /// What is in force, in bytes; 0 before there is any.
    pub(super) bytes: u32,
    /// The largest inner packet that is sent: that, or what the smallest usable path carries if a
    /// larger MTU was configured.
    pub(super) limit: u32,
    /// The largest that the buffers allow.
    pub(super) max: u32,
    pub(super) next_check: Instant,
    /// Whether any path carries less than it did.
    pub(super) limited: bool,
    /// Whether all paths are to be looked at, because routes have changed.
    pub(super) all: bool,
    /// Whether there are other paths than before.
    pub(super) changed: bool,
    /// Packets that had been read from the interface at the last check.
    pub(super) read: u64,
    /// The place among all paths of the first one to be looked up in its turn.
    pub(super) turn: usize,
}

impl Mtu {
    /// For packets of at most so many bytes.
    pub(super) fn new(max: u32) -> Self {
        Self {
            bytes: 0,
            limit: u32::MAX,
            max,
            next_check: Instant::ZERO,
            limited: false,
            all: false,
            changed: true,
            read: 0,
            turn: 0,
        }
    }
}
