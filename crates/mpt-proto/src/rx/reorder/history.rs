//! Which of the last numbers were delivered.

use crate::sequence::Seq;

/// How many numbers are remembered: more than the largest window, and a power of two, so that a
/// number's place is its low bits. 8 KiB per connection.
pub(super) const LEN: u32 = 65_536;

/// How far ahead a number can be and still be of the same order, where no session says where numbers begin: an outage of so
/// many packets is no restart. More than the largest window that can be configured.
pub(super) const CLASSIC_REACH: i32 = 16_384;

/// The same in the order by evidence.
pub(super) const REACH: i32 = LEN as i32;

/// One bit each, allocated when a number is missing: until then all were delivered, and those before the first never
/// existed.
#[derive(Debug, Default)]
pub(super) struct History(Option<Box<[u64; WORDS]>>);

const WORDS: usize = (LEN / 64) as usize;

impl History {
    /// No number was delivered.
    pub(super) fn none() -> Self {
        Self(Some(Box::new([0; WORDS])))
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |words| size_of_val(&**words))
    }

    /// Whether `seq`, which is one of the last [`LEN`] numbers, was delivered.
    pub(super) fn was_delivered(&self, seq: Seq) -> bool {
        let (word, bit) = place(seq);
        self.0.as_ref().is_none_or(|words| words[word] & bit != 0)
    }

    /// Remembers that `seq` was delivered, and so forgets the number [`LEN`] before it.
    #[inline]
    pub(super) fn set_delivered(&mut self, seq: Seq) {
        let (word, bit) = place(seq);
        if let Some(words) = &mut self.0 {
            words[word] |= bit;
        }
    }

    /// Remembers that `count` numbers from `seq` on were not delivered; word by word, because one
    /// forged datagram can make it [`LEN`] of them.
    #[inline]
    pub(super) fn set_missing(&mut self, seq: Seq, count: u32) {
        if count == 0 {
            return;
        }
        let words = self.0.get_or_insert_with(|| Box::new([u64::MAX; WORDS]));
        // Most gaps are short.
        let bit = seq.value() % 64;
        if count <= 64 - bit {
            words[place(seq).0] &= !((u64::MAX >> (64 - count)) << bit);
        } else {
            pieces(seq, count, |word, mask| words[word] &= !mask);
        }
    }

    /// How many numbers from `seq` on were delivered without a gap. Counts at most to the end of a word, which is
    /// somewhere within the next 64, so 0 only if `seq` itself was not delivered.
    pub(super) fn run(&self, seq: Seq) -> u32 {
        let word = self.0.as_ref().map_or(u64::MAX, |words| words[place(seq).0]);
        (word >> (seq.value() % 64)).trailing_ones()
    }

    /// How many of `count` numbers from `seq` on were not delivered.
    pub(super) fn missing(&self, seq: Seq, count: u32) -> u32 {
        let Some(words) = &self.0 else { return 0 };
        let mut missing = 0;
        pieces(seq, count, |word, mask| missing += (!words[word] & mask).count_ones());
        missing
    }

    /// No number was delivered.
    pub(super) fn clear(&mut self) {
        *self = Self::none();
    }

    /// Takes all numbers for delivered, and gives back its memory.
    pub(super) fn fill(&mut self) {
        self.0 = None;
    }
}

/// The words of `count` numbers from `seq` on, each with the bits of those in it.
fn pieces(mut seq: Seq, mut count: u32, mut piece: impl FnMut(usize, u64)) {
    while count > 0 {
        let bit = seq.value() % 64;
        let step = count.min(64 - bit);
        piece(place(seq).0, (u64::MAX >> (64 - step)) << bit);
        seq = seq.plus(step);
        count -= step;
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
        let mut history = History::none();
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
            let mut history = History::none();
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
