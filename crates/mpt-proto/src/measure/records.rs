//! The packets that each were the highest so far, as runs: the past that RFC 4737 asks for.
//!
//! The extent of a reordered packet and its late time offset are counted from the first packet that came
//! with a higher number (RFC 4737 sections 4.2 and 4.3). That one was the highest when it came, and it
//! followed upon a gap, because the reordered packet was missing. So of all the packets that were the highest so far
//! only the first of each run without a gap must be remembered, and they can be searched by number.

use std::collections::VecDeque;

use super::bits;
use crate::sequence::Seq;
use crate::time::Instant;

/// How many runs are remembered until a packet was reordered: the path of a connection with many has one
/// run per packet, and most paths keep their order for ever. 1 KiB.
const BEFORE: usize = 64;

/// How many runs are remembered then, 16 KiB.
const LONG: usize = 1024;

/// Packets that came with consecutive numbers, each the highest so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    /// The number of its first packet.
    pub(super) start: Seq,
    /// How many packets had arrived before it, modulo 2^32.
    pub(super) index: u32,
    /// When it came.
    pub(super) at: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    /// The runs before the last, oldest first.
    past: VecDeque<Run>,
    last: Run,
    long: bool,
}

/// The packets that came last.
pub(super) struct Tail<I> {
    /// The least number that could have come instead of the first of them.
    pub(super) least: Seq,
    /// How many they are.
    pub(super) len: u32,
    /// Their numbers, in the order in which they came.
    pub(super) numbers: I,
}

impl Records {
    /// Restarts with a run that may still be empty.
    pub(super) fn begin(&mut self, run: Run) {
        self.past.clear();
        self.last = run;
    }

    /// Forgets the past, and gives back its memory.
    pub(super) fn rest(&mut self) {
        self.past = VecDeque::new();
    }

    /// A gap was left: a run begins.
    pub(super) fn push(&mut self, run: Run) {
        let limit = if self.long { LONG } else { BEFORE };
        let gone = |past: &Run| run.start.offset_from(past.start) > bits::LEN.cast_signed();
        while self.past.len() >= limit || self.past.front().is_some_and(gone) {
            self.past.pop_front();
        }
        self.past.push_back(self.last);
        self.last = run;
    }

    /// The first run with higher numbers than `seq`, a number that had not come; the oldest that is
    /// known if that is forgotten.
    pub(super) fn first_above(&mut self, seq: Seq) -> Run {
        self.long = true;
        let below = self.past.partition_point(|run| run.start.offset_from(seq) <= 0);
        self.past.get(below).copied().unwrap_or(self.last)
    }

    /// The last packets, at most `count` of them, if all that came are in runs and they are `packets`.
    pub(super) fn tail(&self, packets: u64, count: u32) -> Tail<impl Iterator<Item = Seq>> {
        let age = move |run: Run| (packets as u32).wrapping_sub(run.index);
        let mut first = self.past.len();
        while first > 0 && age(self.run(first)) < count {
            first -= 1;
        }
        let begin = self.run(first);
        let skipped = age(begin).saturating_sub(count);
        let least = match first.checked_sub(1).map(|before| self.run(before)) {
            Some(before) if skipped == 0 => {
                before.start.plus(begin.index.wrapping_sub(before.index))
            }
            _ => begin.start.plus(skipped),
        };
        let numbers = (first..=self.past.len()).flat_map(move |place| {
            let run = self.run(place);
            let later = if place < self.past.len() { age(self.run(place + 1)) } else { 0 };
            (0..age(run) - later).map(move |n| run.start.plus(n))
        });
        Tail { least, len: age(begin) - skipped, numbers: numbers.skip(skipped as usize) }
    }

    /// The run at a place, the last one behind the past ones.
    fn run(&self, place: usize) -> Run {
        self.past.get(place).copied().unwrap_or(self.last)
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.past.capacity() * size_of::<Run>()
    }
}
