//! Feedback: what has arrived on the paths that the receiver of this message sends on.
//!
//! ```text
//! offset  0        1        2..4     4..8    8..
//!       | blocks | before | number | clock | a block for each path |
//! ```
//!
//! [`Writer`] takes blocks as long as there is room; [`Feedback`] gives them back. Nothing allocates.

use std::num::NonZeroU16;
use std::ops::Deref;

use super::fields::{self, Reader};
use super::header::CONTROL_LEN;
use crate::stats::Drop;

/// The most bytes of a message: with the header 1200, which every path carries.
pub const MAX_LEN: usize = 1200 - CONTROL_LEN;

/// The most blocks of a message.
pub const MAX_BLOCKS: u8 = 64;

/// The most ranges of a block.
pub const MAX_RANGES: usize = 32;

/// The most words in the bitmap of a block.
pub const MAX_WORDS: usize = 16;

/// Set in a block that is about a path which is [quiet](Block::quiet).
const QUIET: u8 = 0x01;

/// A few values of a block, up to `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<T, const N: usize> {
    items: [T; N],
    len: u8,
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    /// Appends a value, or returns false if there are `N` already.
    #[must_use]
    pub fn push(&mut self, item: T) -> bool {
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
pub struct Range {
    /// How many are missing between this range and the one before, which is higher; 0 for the first.
    pub missing: u16,
    /// How many were received.
    pub received: u16,
}

/// What has arrived on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The path id, in the numbering of the receiver of the feedback.
    pub path: u8,
    /// Whether something should have come by the path, behind the highest, and has not.
    pub quiet: bool,
    /// The highest path sequence received.
    pub highest: u32,
    /// The send timestamp of the highest, as it was received.
    pub highest_sent: u32,
    /// When the highest arrived, in microseconds of the clock of the feedback's sender, modulo 2^32.
    pub highest_arrived: u32,
    /// Datagrams received since the session began, modulo 2^32, duplicates not counted.
    pub received: u32,
    /// The bytes of UDP payload in them.
    pub received_bytes: u64,
    /// Datagrams lost for certain since the session began, modulo 2^32.
    pub lost: u32,
    /// Every path sequence before this one was received or counted as lost.
    pub resolved: u32,
    /// Datagrams that came twice, modulo 2^16.
    pub duplicates: u16,
    /// Datagrams that came after they were counted as lost, modulo 2^16.
    pub late: u16,
    /// Datagrams with the congestion mark CE in their outer header, modulo 2^32.
    pub ce: u32,
    /// Datagrams that the host dropped because a socket buffer was full, modulo 2^32; over all paths of the
    /// socket.
    pub overflows: u32,
    /// When the first datagram since the last feedback arrived, in microseconds as `highest_arrived`. Little that came
    /// before a pause is left out.
    pub first_arrived: u32,
    /// The bytes of UDP payload that arrived after that one, to the highest included.
    pub bytes_after_first: u32,
    /// The smallest delay since the last feedback: arrival time minus send timestamp, in microseconds, modulo
    /// 2^32.
    pub delay_min: u32,
    /// How many microseconds the mean delay since the last feedback is above the smallest.
    pub delay_mean: u32,
    /// The mean absolute deviation from that mean, in microseconds.
    pub delay_deviation: u32,
    /// The length in bytes of UDP payload of the longest datagram that recently arrived; `None` if it is not
    /// reported.
    pub longest: Option<NonZeroU16>,
    /// How many path sequences before `resolved` the ranges and the bitmap tell about: what is missing there is lost
    /// for certain.
    pub below: u16,
    /// What was received, downward from `highest`.
    pub ranges: List<Range, MAX_RANGES>,
    /// Bit `i` of word `j`, counted from the least significant, is set if path sequence
    /// `resolved - below + 64 * j + i` was received.
    pub bitmap: List<u64, MAX_WORDS>,
}

impl Block {
    /// The bytes of a block without ranges and bitmap.
    pub const BARE_LEN: usize = 72;

    /// Of how many datagrams the delays are about, where `packets` of so many bytes of UDP payload in all have arrived since another feedback: those that
    /// came after the last feedback of its sender, which may have been lost or overtaken.
    pub fn of_delays(&self, packets: u32, bytes: u64) -> u32 {
        let after_first = u64::from(self.bytes_after_first) * u64::from(packets);
        let count = after_first.checked_div(bytes).unwrap_or(0) + 1;
        packets.min(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The bytes that this block takes.
    pub fn size(&self) -> usize {
        Self::BARE_LEN + 4 * self.ranges.len() + 8 * self.bitmap.len()
    }

    /// The first path sequence that the ranges and the bitmap tell about.
    pub fn first(&self) -> u32 {
        self.resolved.wrapping_sub(self.below.into())
    }

    /// The path sequence after the last one that the bitmap tells about; the first one if there is none.
    pub fn bitmap_end(&self) -> u32 {
        let open = self.highest.wrapping_add(1).wrapping_sub(self.first());
        self.first().wrapping_add(open.min(64 * self.bitmap.len() as u32))
    }

    /// Whether a path sequence was received; `None` if the block does not tell.
    pub fn was_received(&self, sequence: u32) -> Option<bool> {
        let (up, down) = (sequence.wrapping_sub(self.first()), self.highest.wrapping_sub(sequence));
        if up.cast_signed() < 0 || down.cast_signed() < 0 {
            return None;
        }
        if let Some(word) = self.bitmap.get(up as usize / 64) {
            return Some(word >> (up % 64) & 1 != 0);
        }
        let mut below = 0;
        for range in &*self.ranges {
            below += u32::from(range.missing);
            if down < below {
                return Some(false);
            }
            below += u32::from(range.received);
            if down < below {
                return Some(true);
            }
        }
        (self.bitmap.is_empty() && !self.ranges.is_empty()).then_some(false)
    }

    fn emit(&self, to: &mut fields::Writer<'_>) {
        // The lists are shorter than a byte counts.
        to.u8(self.path).u8(self.ranges.len).u8(self.bitmap.len).u8(u8::from(self.quiet) * QUIET);
        to.u32(self.highest).u32(self.highest_sent).u32(self.highest_arrived);
        to.u32(self.received).u64(self.received_bytes).u32(self.lost).u32(self.resolved);
        to.u16(self.duplicates).u16(self.late).u32(self.ce).u32(self.overflows);
        to.u32(self.first_arrived).u32(self.bytes_after_first);
        to.u32(self.delay_min).u32(self.delay_mean).u32(self.delay_deviation);
        to.u16(self.longest.map_or(0, NonZeroU16::get)).u16(self.below);
        for range in &*self.ranges {
            to.u16(range.missing).u16(range.received);
        }
        for &word in &*self.bitmap {
            to.u64(word);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Self, Drop> {
        let path = from.u8()?;
        let (ranges, words) = (from.u8()?, from.u8()?);
        let quiet = from.u8()? & QUIET != 0;
        let mut block = Self {
            path,
            quiet,
            highest: from.u32()?,
            highest_sent: from.u32()?,
            highest_arrived: from.u32()?,
            received: from.u32()?,
            received_bytes: from.u64()?,
            lost: from.u32()?,
            resolved: from.u32()?,
            duplicates: from.u16()?,
            late: from.u16()?,
            ce: from.u32()?,
            overflows: from.u32()?,
            first_arrived: from.u32()?,
            bytes_after_first: from.u32()?,
            delay_min: from.u32()?,
            delay_mean: from.u32()?,
            delay_deviation: from.u32()?,
            longest: NonZeroU16::new(from.u16()?),
            below: from.u16()?,
            ..Self::default()
        };
        let fits = |fits: bool| if fits { Ok(()) } else { Err(Drop::ControlLength) };
        for _ in 0..ranges {
            let range = Range { missing: from.u16()?, received: from.u16()? };
            fits(block.ranges.push(range))?;
        }
        for _ in 0..words {
            fits(block.bitmap.push(from.u64()?))?;
        }
        Ok(block)
    }
}

/// A feedback that is being written.
#[derive(Debug)]
pub struct Writer<'m> {
    to: fields::Writer<'m>,
    blocks: u8,
}

impl<'m> Writer<'m> {
    /// Begins a feedback at the start of `message`, of which at most [`MAX_LEN`] bytes are used. `number` is
    /// that of the one before plus 1, modulo 2^16, and `before` the path id by which that one was sent; `clock` is the
    /// sender's, in microseconds, modulo 2^32.
    ///
    /// # Panics
    ///
    /// If there is no room for 8 bytes.
    pub fn new(message: &'m mut [u8], number: u16, before: Option<u8>, clock: u32) -> Self {
        let len = message.len().min(MAX_LEN);
        let mut to = fields::Writer::new(&mut message[..len]);
        to.reserved(1).u8(before.map_or(0, |path| path.wrapping_add(1))).u16(number).u32(clock);
        Self { to, blocks: 0 }
    }

    /// Appends a block, or returns false if it does not fit: it then belongs into a further feedback.
    #[must_use]
    pub fn push(&mut self, block: &Block) -> bool {
        // So there is no room for more blocks than their number can say.
        const { assert!(MAX_LEN < Block::BARE_LEN * MAX_BLOCKS as usize) };
        if block.size() > self.to.room() {
            return false;
        }
        block.emit(&mut self.to);
        self.blocks += 1;
        true
    }

    /// Ends the feedback: the bytes it takes. One without a block must not be sent.
    pub fn finish(mut self) -> usize {
        *self.to.byte_mut(0) = self.blocks;
        self.to.len()
    }
}

/// A feedback that was received. All of its blocks are complete.
#[derive(Clone, Debug)]
pub struct Feedback<'m> {
    /// Its number, modulo 2^16.
    pub number: u16,
    /// The path id, in the numbering of its sender, by which the feedback with the number before was sent; `None` if it
    /// does not say.
    pub before: Option<u8>,
    /// The sender's clock when it was written, in microseconds, modulo 2^32.
    pub clock: u32,
    blocks: Blocks<'m>,
}

impl<'m> Feedback<'m> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it does not have 1 to 64 blocks, ends inside one of them, or a block has more
    /// than 32 ranges or 16 words of bitmap.
    pub fn parse(message: &'m [u8]) -> Result<Self, Drop> {
        let mut from = Reader::new(message);
        let left = from.u8()?;
        let before = from.u8()?.checked_sub(1);
        let (number, clock) = (from.u16()?, from.u32()?);
        let blocks = Blocks { from, left };
        let is_complete = blocks.clone().count() == usize::from(left);
        if !is_complete || !(1..=MAX_BLOCKS).contains(&left) {
            return Err(Drop::ControlLength);
        }
        Ok(Self { number, before, clock, blocks })
    }

    /// Its blocks, in order.
    pub fn blocks(&self) -> Blocks<'m> {
        self.blocks.clone()
    }
}

/// The blocks of a feedback.
#[derive(Clone, Debug)]
pub struct Blocks<'m> {
    from: Reader<'m>,
    /// How many are left.
    left: u8,
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        self.left = self.left.checked_sub(1)?;
        Block::parse(&mut self.from).ok()
    }
}

#[cfg(test)]
mod tests;
