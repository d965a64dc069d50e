//! What feedback says of a path.
//!
//! A feedback may get lost. So each tells again what the last ones have told of path sequences that are resolved: the
//! sender keeps what it has sent until it knows what became of it.

use std::time::Duration;

use super::{Recorder, is_before};
use crate::time::Instant;
use crate::wire::extended::feedback::{Block, MAX_WORDS, Range};

use super::samples::Delay;
use super::window::LEN;

/// What was resolved since so many feedbacks ago is told again.
const FEEDBACKS: usize = 4;

/// Of feedbacks that are closer together only the first one counts.
const APART: Duration = Duration::from_millis(5);

/// How many path sequences a bitmap can tell about.
const BITMAP: u32 = 64 * MAX_WORDS as u32;

/// What the last feedbacks said.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// When they were written, and the first path sequence that was not resolved then; the last one first.
    resolved: [Option<(Instant, u32)>; FEEDBACKS],
    /// How many datagrams were lost by the last one.
    lost: u64,
    delay: Option<Delay>,
}

impl Told {
    /// Path sequences begin anew.
    pub(super) fn forget(&mut self) {
        self.resolved = [None; FEEDBACKS];
    }

    fn on_feedback(&mut self, now: Instant, resolved: u32, lost: u64) {
        self.lost = lost;
        if self.resolved[0].is_none_or(|(at, _)| now.since(at) >= APART) {
            self.resolved.rotate_right(1);
            self.resolved[0] = Some((now, resolved));
        }
    }

    /// The first path sequence that is told again; `None` if all are.
    fn first(&self) -> Option<u32> {
        self.resolved[FEEDBACKS - 1].map(|(_, resolved)| resolved)
    }
}

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
    /// `overflows` and `longest` are for the caller to fill in. If the sender `repairs`, it is told what was lost.
    pub(crate) fn block(&mut self, now: Instant, path: u8, repairs: bool) -> Option<Block> {
        self.count_lost(now);
        let highest = self.highest?;
        let before = self.told.delay.filter(|_| self.has_untold_loss());
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
