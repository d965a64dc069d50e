//! A set of sequence numbers within reach of each other, one bit each.

use crate::sequence::Seq;

/// How many consecutive numbers a set can distinguish: as many as the reorder buffer remembers, and
/// a power of two, so that a number's place is its low bits.
pub(super) const LEN: u32 = 16_384;

const WORDS: usize = (LEN / 64) as usize;

/// Allocated with the first number that is put into it.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Option<Box<[u64; WORDS]>>);

impl Bits {
    /// All numbers.
    pub(super) fn full() -> Self {
        Self(Some(Box::new([u64::MAX; WORDS])))
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |words| size_of_val(&**words))
    }

    pub(super) fn contains(&self, seq: Seq) -> bool {
        let (word, bit) = place(seq);
        self.0.as_ref().is_some_and(|words| words[word] & bit != 0)
    }

    pub(super) fn insert(&mut self, seq: Seq) {
        let (word, bit) = place(seq);
        self.words()[word] |= bit;
    }

    pub(super) fn remove(&mut self, seq: Seq) {
        let (word, bit) = place(seq);
        if let Some(words) = &mut self.0 {
            words[word] &= !bit;
        }
    }

    fn words(&mut self) -> &mut [u64; WORDS] {
        self.0.get_or_insert_with(|| Box::new([0; WORDS]))
    }

    /// Puts `count` numbers from `seq` on into the set or out of it. Returns how many of their bits were
    /// zero: these numbers, or those [`LEN`] before them, were not in it.
    pub(super) fn fill(&mut self, seq: Seq, count: u32, full: bool) -> u32 {
        if !full && self.0.is_none() {
            return count;
        }
        let words = self.words();
        let mut zeros = 0;
        for (word, mask) in masks(seq, count) {
            let bits = &mut words[word];
            zeros += (!*bits & mask).count_ones();
            *bits = if full { *bits | mask } else { *bits & !mask };
        }
        zeros
    }

    /// How many of `count` numbers from `seq` on are in the set.
    pub(super) fn count(&self, seq: Seq, count: u32) -> u32 {
        let Some(words) = &self.0 else { return 0 };
        masks(seq, count).map(|(word, mask)| (words[word] & mask).count_ones()).sum()
    }

    /// The first of `count` numbers from `seq` on that is in the set.
    pub(super) fn first(&self, seq: Seq, count: u32) -> Option<Seq> {
        let words = self.0.as_ref()?;
        let mut from = seq;
        for (word, mask) in masks(seq, count) {
            let found = words[word] & mask;
            if found != 0 {
                return Some(from.plus(found.trailing_zeros() - from.value() % 64));
            }
            from = from.plus(mask.count_ones());
        }
        None
    }
}

fn place(seq: Seq) -> (usize, u64) {
    let place = seq.value() % LEN;
    ((place / 64) as usize, 1 << (place % 64))
}

/// The words in which the bits of `count` numbers from `seq` on stand, and which bits these are.
fn masks(mut seq: Seq, mut count: u32) -> impl Iterator<Item = (usize, u64)> {
    std::iter::from_fn(move || {
        if count == 0 {
            return None;
        }
        let (word, bit) = (place(seq).0, seq.value() % 64);
        let step = count.min(64 - bit);
        seq = seq.plus(step);
        count -= step;
        Some((word, (u64::MAX >> (64 - step)) << bit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_filled_counted_and_searched_across_words_and_the_wrap() {
        for (from, count) in [(u32::MAX - 70, 200), (64, 64), (5, 1), (63, 2), (7, LEN)] {
            let (mut bits, from) = (Bits::default(), Seq::new(from));
            assert_eq!((bits.first(from, LEN), bits.count(from, LEN), bits.memory()), (None, 0, 0));
            assert_eq!((bits.fill(from, 7, false), bits.memory()), (7, 0));
            assert_eq!(bits.fill(from, count, true), count);
            let before = from.minus(LEN - count);
            assert_eq!(bits.count(before, LEN), count);
            assert_eq!(bits.first(before, LEN), Some(from));
            assert!(bits.contains(from) && bits.contains(from.plus(count - 1)));
            bits.remove(from);
            assert_eq!(bits.count(from, count), count - 1);
            assert_eq!(bits.first(from, count), (count > 1).then(|| from.next()));
            assert_eq!(bits.fill(from, count, false), 1);
            bits.insert(from);
            assert_eq!(bits.first(before, LEN), Some(from));
        }
    }
}
