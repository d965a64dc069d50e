//! Which of the last numbers were delivered.

use crate::sequence::Seq;

/// How many numbers are remembered: more than the largest window, and a power of two, so that a
/// number's place is its low bits. 2 KiB per connection.
pub(super) const LEN: u32 = 16_384;

/// How far ahead a number can be and still be of the same order: an outage of so many packets is no
/// restart.
pub(super) const REACH: i32 = LEN as i32;

#[derive(Debug)]
pub(super) struct History(Box<[u64; (LEN / 64) as usize]>);

impl History {
    /// Bytes of memory apart from its own size.
    pub(super) const MEMORY: usize = LEN as usize / 8;

    pub(super) fn new() -> Self {
        Self(Box::new([0; (LEN / 64) as usize]))
    }

    /// Whether `seq`, which is one of the last [`LEN`] numbers, was delivered.
    pub(super) fn was_delivered(&self, seq: Seq) -> bool {
        let (word, bit) = place(seq);
        self.0[word] & bit != 0
    }

    /// Remembers that `seq` was delivered, and so forgets the number [`LEN`] before it.
    pub(super) fn set_delivered(&mut self, seq: Seq) {
        let (word, bit) = place(seq);
        self.0[word] |= bit;
    }

    /// Remembers that `count` numbers from `seq` on were not delivered; word by word, because one
    /// forged datagram can make it [`LEN`] of them.
    #[inline]
    pub(super) fn set_missing(&mut self, seq: Seq, count: u32) {
        // Most gaps are short.
        let bit = seq.value() % 64;
        if (1..=64 - bit).contains(&count) {
            self.0[place(seq).0] &= !((u64::MAX >> (64 - count)) << bit);
        } else {
            self.set_many_missing(seq, count);
        }
    }

    fn set_many_missing(&mut self, mut seq: Seq, mut count: u32) {
        while count > 0 {
            let bit = seq.value() % 64;
            let step = count.min(64 - bit);
            let mask = (u64::MAX >> (64 - step)) << bit;
            self.0[place(seq).0] &= !mask;
            seq = seq.plus(step);
            count -= step;
        }
    }

    /// How many numbers from `seq` on were delivered without a gap. Counts at most to the end of a word, which is
    /// somewhere within the next 64, so 0 only if `seq` itself was not delivered.
    pub(super) fn run(&self, seq: Seq) -> u32 {
        (self.0[place(seq).0] >> (seq.value() % 64)).trailing_ones()
    }

    /// How many of `count` numbers from `seq` on were not delivered.
    pub(super) fn missing(&self, mut seq: Seq, mut count: u32) -> u32 {
        let mut missing = 0;
        while count > 0 {
            let bit = seq.value() % 64;
            let step = count.min(64 - bit);
            let mask = (u64::MAX >> (64 - step)) << bit;
            missing += (!self.0[place(seq).0] & mask).count_ones();
            seq = seq.plus(step);
            count -= step;
        }
        missing
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Takes all numbers for delivered: those before the first never existed.
    pub(super) fn fill(&mut self) {
        self.0.fill(u64::MAX);
    }
}

fn place(seq: Seq) -> (usize, u64) {
    let place = seq.value() % LEN;
    ((place / 64) as usize, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_what_is_missing_and_gaps_are_counted() {
        let mut history = History::new();
        let seq = |at: u32| Seq::new(u32::MAX - 70).plus(at);
        (0..200)
            .filter(|at| ![3, 90, 91].contains(at))
            .for_each(|at| history.set_delivered(seq(at)));
        // Number 0 has bit 57 of its word, so the word ends behind number 6.
        let runs = [(0, 3), (3, 0), (4, 3), (7, 64), (71, 19), (91, 0), (92, 43)];
        for (at, run) in runs {
            assert_eq!(history.run(seq(at)), run, "{at}");
        }
        for (at, count, missing) in [(0, 200, 3), (4, 86, 0), (3, 88, 2), (0, 0, 0), (199, 11, 10)]
        {
            assert_eq!(history.missing(seq(at), count), missing, "{at} {count}");
        }
    }

    #[test]
    fn a_range_is_forgotten_exactly_and_across_the_wrap() {
        for (from, count) in [(u32::MAX - 70, 200), (64, 64), (5, 1), (63, 2), (7, LEN)] {
            let mut history = History::new();
            let around = |at: u32| Seq::new(from).minus(100).plus(at);
            (0..LEN).for_each(|at| history.set_delivered(around(at)));
            history.set_missing(Seq::new(from), count);
            for at in 0..LEN {
                let inside = (around(at).value().wrapping_sub(from)) % LEN < count;
                assert_eq!(history.was_delivered(around(at)), !inside, "{from} {count} {at}");
            }
        }
    }
}
