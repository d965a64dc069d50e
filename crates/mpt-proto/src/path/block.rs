//! What a host says of the datagrams that arrived on one path: a block of feedback (section 8.2 of
//! `docs/protocol.md`).

use std::num::NonZeroU16;
use std::ops::Deref;

/// The most ranges of a block.
pub(crate) const MAX_RANGES: usize = 32;

/// The most words in the bitmap of a block.
pub(crate) const MAX_WORDS: usize = 16;

/// A few values of a block, up to `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List<T, const N: usize> {
    items: [T; N],
    len: u8,
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    /// Appends a value, or returns false if there are `N` already.
    #[must_use]
    pub(crate) fn push(&mut self, item: T) -> bool {
        let Some(place) = self.items.get_mut(usize::from(self.len)) else { return false };
        *place = item;
        self.len += 1;
        true
    }
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        const { assert!(N <= u8::MAX as usize) };
        Self { items: [T::default(); N], len: 0 }
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..usize::from(self.len)]
    }
}

/// Path sequences that are missing, and below them some that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// How many are missing between this range and the one before, which is higher; 0 for the first.
    pub(crate) missing: u16,
    /// How many were received.
    pub(crate) received: u16,
}

/// What has arrived on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// The path id, in the numbering of the receiver of the feedback.
    pub(crate) path: u8,
    /// The highest path sequence received.
    pub(crate) highest: u32,
    /// The send timestamp of the highest, as it was received.
    pub(crate) highest_sent: u32,
    /// When the highest arrived, in microseconds of the clock of the feedback's sender, modulo 2^32.
    pub(crate) highest_arrived: u32,
    /// Datagrams received since the session began, modulo 2^32, duplicates not counted.
    pub(crate) received: u32,
    /// The bytes of UDP payload in them.
    pub(crate) received_bytes: u64,
    /// Datagrams lost for certain since the session began, modulo 2^32.
    pub(crate) lost: u32,
    /// Every path sequence before this one was received or counted as lost.
    pub(crate) resolved: u32,
    /// Datagrams that came twice, modulo 2^16.
    pub(crate) duplicates: u16,
    /// Datagrams that came after they were counted as lost, modulo 2^16.
    pub(crate) late: u16,
    /// Datagrams with the congestion mark CE in their outer header, modulo 2^32.
    pub(crate) ce: u32,
    /// Datagrams that the host dropped because a socket buffer was full, modulo 2^32; over all paths of the
    /// socket.
    pub(crate) overflows: u32,
    /// When the first datagram since the last feedback arrived, in microseconds as `highest_arrived`.
    pub(crate) first_arrived: u32,
    /// The bytes of UDP payload that arrived after that one, to the highest included.
    pub(crate) bytes_after_first: u32,
    /// The smallest delay since the last feedback: arrival time minus send timestamp, in microseconds, modulo
    /// 2^32.
    pub(crate) delay_min: u32,
    /// How many microseconds the mean delay since the last feedback is above the smallest.
    pub(crate) delay_mean: u32,
    /// The mean absolute deviation from that mean, in microseconds.
    pub(crate) delay_deviation: u32,
    /// The length in bytes of UDP payload of the longest datagram that recently arrived; `None` if it is not
    /// reported.
    pub(crate) longest: Option<NonZeroU16>,
    /// What was received, downward from `highest`.
    pub(crate) ranges: List<Range, MAX_RANGES>,
    /// Bit `i` of word `j`, counted from the least significant, is set if path sequence
    /// `resolved + 64 * j + i` was received.
    pub(crate) bitmap: List<u64, MAX_WORDS>,
}
