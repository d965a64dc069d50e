//! What was read from a TUN device, in numbers.

/// What was read. A packet or super-packet whose header lies is dropped under the name of the lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounters {
    /// Inner packets in what was read.
    pub packets: u64,
    /// Reads that returned more than one packet.
    pub super_packets: u64,
    /// Reads too short for a header and a packet behind it.
    pub truncated: u64,
    /// Drops because the kind of segmentation is none that exists.
    pub unknown_type: u64,
    /// Drops because the kernel was never asked for this kind of segmentation.
    pub unasked_type: u64,
    /// Super-packets dropped because their segments would have no size.
    pub no_size: u64,
    /// Super-packets dropped because header and packet contradict each other: another protocol or
    /// version, lengths that do not add up, nothing to cut.
    pub contradicted: u64,
    /// Drops because the checksum to be completed is not where the packet has one, or because a
    /// super-packet comes without one.
    pub misplaced_checksum: u64,
}

/// A claim of a header that does not hold, as the way to its counter.
pub(super) type Lie = fn(&mut ReadCounters) -> &mut u64;

impl ReadCounters {
    /// All drops together.
    pub fn dropped(&self) -> u64 {
        let types = self.unknown_type + self.unasked_type;
        self.truncated + types + self.no_size + self.contradicted + self.misplaced_checksum
    }
}
