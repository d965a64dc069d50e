//! What was found out about the order of a stream.

use std::collections::BTreeMap;
use std::time::Duration;

/// The order in which numbered packets arrived, before anything put them in order again.
///
/// The classification of the latest packets can depend on later ones. They are counted as if the
/// stream ended, so a later result may differ for a few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Packets that arrived. Of several copies only the first counts, here and everywhere below
    /// (RFC 4737 section 3.3).
    pub packets: u64,
    /// Packets that came after one with a higher number: Type-P-Reordered (RFC 4737 section 3.3).
    pub reordered: u64,
    /// The extents of the reordered packets (RFC 4737 section 4.2) added up. The extent of a packet says
    /// how many packets before it the first one with a higher number came.
    pub extent_sum: u64,
    /// The greatest extent.
    pub extent_max: u64,
    /// How much later reordered packets came than the first one with a higher number (late time offset,
    /// RFC 4737 section 4.3), added up.
    pub late_sum: Duration,
    /// The greatest late time offset.
    pub late_max: Duration,
    /// How many packets were n-reordered (RFC 4737 section 5), 1-reordered first: the n packets that
    /// came just before all have higher numbers. Without the zeros behind the last that is not zero, and
    /// never more than [`Self::MAX_N`].
    pub n_reordering: Vec<u64>,
    /// Reorder density (RD of RFC 5236), not normalized: how many packets were displaced by so much.
    /// Negative displacements are those of packets that came early, 0 is that of a packet in its place.
    /// What is displaced by more than [`Self::DISPLACEMENT_THRESHOLD`] is not in it.
    pub density: BTreeMap<i32, u64>,
    /// Reorder buffer-occupancy density (RBD of RFC 5236), not normalized: after how many packets
    /// a buffer that puts them in order would have held 0, 1, 2 ... of them. As many packets as in the
    /// [`density`](Self::density).
    pub buffer_occupancy: Vec<u64>,
    /// Further copies of packets that had arrived.
    pub duplicates: u64,
    /// Numbers that have not arrived although one that is [`Self::REACH`] higher has. Of a connection
    /// only: which numbers were sent on a path cannot be known from what arrives.
    pub lost: u64,
    /// Numbers below the highest that have not arrived, but still could. Of a connection only.
    pub missing: u64,
}

impl Reordering {
    /// The greatest n for which n-reordering is counted: ten times the threshold at which TCP takes
    /// a packet for lost.
    pub const MAX_N: usize = 32;

    /// The displacement threshold DT of RFC 5236, which here is the buffer-occupancy threshold BT, too:
    /// what is displaced farther is as good as lost. 1024 packets of 1400 bytes are 11 ms at
    /// 1 Gbit/s and 115 ms at 100 Mbit/s.
    pub const DISPLACEMENT_THRESHOLD: u32 = 1024;

    /// How far behind the highest a number can be and still be expected: as far as the reorder
    /// buffer remembers.
    pub const REACH: u32 = super::bits::LEN;

    /// The share of reordered packets, Type-P-Reordered-Ratio (RFC 4737 section 4.1); `None` if none
    /// arrived.
    pub fn ratio(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.reordered as f64 / self.packets as f64)
    }

    /// The mean extent of the reordered packets.
    pub fn extent_mean(&self) -> Option<f64> {
        (self.reordered > 0).then(|| self.extent_sum as f64 / self.reordered as f64)
    }

    /// The mean late time offset of the reordered packets.
    pub fn late_mean(&self) -> Option<Duration> {
        (self.reordered > 0).then(|| self.late_sum.div_f64(self.reordered as f64))
    }
}
