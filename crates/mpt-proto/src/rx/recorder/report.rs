//! What feedback says of a path.
//!
//! A feedback may get lost. So each tells again what the last ones have told of path sequences that are resolved: the
//! sender keeps what it has sent until it knows what became of it.

use super::{Recorder, is_before};
use crate::time::Instant;
use crate::wire::extended::feedback::{Block, MAX_WORDS, Range};

use super::window::LEN;

/// How many path sequences a bitmap can tell about.
const BITMAP: u32 = 64 * MAX_WORDS as u32;

impl Recorder {
    /// Whether something was lost that no feedback has told.
    #[inline]
    pub(crate) fn has_untold_loss(&self) -> bool {
        self.lost > self.told.lost
    }

    /// Counts as lost what is so by now. Returns when more will be.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.count_lost(now);
        self.expires_at()
    }

    /// When something that is missing will be lost, if nothing comes.
    #[inline]
    pub(crate) fn expires_at(&self) -> Option<Instant> {
        self.marks.front().map(|(_, since)| *since + self.margin)
    }

    /// What feedback says of the path, by the path id of its sender; `None` if nothing has arrived, or was lost, since the
    /// last one.
    /// `overflows` and `longest` are for the caller to fill in. If the sender `repairs`, it is told what was lost; `again`: also if
    /// nothing has arrived since.
    pub(crate) fn block(
        &mut self,
        now: Instant,
        path: u8,
        repairs: bool,
        again: bool,
    ) -> Option<Block> {
        self.count_lost(now);
        let highest = self.highest?;
        let before = self.told.delay.filter(|_| again || self.has_untold_loss());
        let delay = self.samples.delay().or(before)?;
        self.told.delay = Some(delay);
        let mut block = Block {
            path,
            highest: highest.sequence,
            highest_sent: highest.sent,
            highest_arrived: highest.at.micros(),
            received: self.received as u32,
            received_bytes: self.received_bytes,
            lost: self.lost as u32,
            resolved: self.resolved,
            duplicates: self.duplicates,
            late: self.late,
            ce: self.ce,
            first_arrived: self.samples.first_arrived(),
            bytes_after_first: self.samples.bytes_after_first(),
            delay_min: delay.min,
            delay_mean: delay.mean,
            delay_deviation: delay.deviation,
            ..Block::default()
        };
        self.samples.clear();
        // What is not resolved yet.
        let open = highest.sequence.wrapping_add(1).wrapping_sub(self.resolved);
        let below = if repairs { self.below(open) } else { 0 };
        block.below = below as u16;
        if !self.list_ranges(&mut block, highest.sequence) {
            block.below = below.min(BITMAP.saturating_sub(open)) as u16;
            let mut word = block.first();
            while !is_before(highest.sequence, word)
                && block.bitmap.push(self.window.word(word, highest.sequence))
            {
                word = word.wrapping_add(64);
            }
        }
        self.told.on_feedback(now, self.resolved, self.lost);
        Some(block)
    }

    /// How many resolved path sequences are told again, where so many are `open`. All of them are in the window, and were
    /// sent after the first one that arrived.
    fn below(&self, open: u32) -> u32 {
        let known = self.span.min(u64::from(LEN) - 1) as u32;
        let wanted = self.told.first().map(|first| self.resolved.wrapping_sub(first));
        wanted.unwrap_or(u32::MAX).min(known.saturating_sub(open))
    }

    /// Lists what was received from the highest down to the first that the block tells about. Returns false if that takes
    /// too many ranges.
    fn list_ranges(&self, block: &mut Block, highest: u32) -> bool {
        let (mut above, mut missing) = (highest.wrapping_add(1), 0);
        let first = block.first();
        while is_before(first, above) {
            let left = above.wrapping_sub(first);
            let received = self.window.received_below(above, left);
            // The window is shorter than the largest of these numbers.
            if !block.ranges.push(Range { missing: missing as u16, received: received as u16 }) {
                return false;
            }
            above = above.wrapping_sub(received);
            missing = self.window.missing_below(above, left - received);
            above = above.wrapping_sub(missing);
        }
        true
    }
}
