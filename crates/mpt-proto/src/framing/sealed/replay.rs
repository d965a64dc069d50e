//! Which datagrams of an epoch have been received: none is accepted twice (section 9.1 of `docs/protocol.md`).

use super::cipher::place;

/// So many numbers are remembered in each space: the highest, and those below it. Above the largest reordering at
/// 10 Gbit/s and 10 ms.
pub(crate) const WINDOW: u32 = 8192;

/// One word more than the window has, so that the words in it are always whole (RFC 6479).
const WORDS: u32 = WINDOW / 64 + 1;

/// The replay windows of one epoch, one for each space, by their [places](place).
#[derive(Debug, Default)]
pub(crate) struct Replay(Vec<Option<Window>>);

/// The numbers of one space.
#[derive(Debug)]
struct Window {
    /// Numbers are counted from here, so that they do not wrap within an epoch.
    base: u32,
    /// The highest number received, from the base.
    highest: u32,
    /// The first number of those that have all been received, apart from what is missing of the last 64. Of no meaning
    /// where there are bits.
    first: u32,
    /// Of the 64 numbers up to the highest: the lowest bit is the highest's.
    recent: u64,
    /// One bit for each number, in a ring, from when a number that is missing is not among the last 64 any more, until a
    /// [rest](Replay::rest). Most spaces need none.
    bits: Option<Box<Bits>>,
}

type Bits = [u64; WORDS as usize];

impl Replay {
    /// Nothing has been received.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes note of an authenticated number. Returns whether it came for the first time, as far as is known.
    #[inline]
    pub(crate) fn accept(&mut self, space: u8, number: u32) -> bool {
        match self.0.get_mut(place(space)) {
            Some(Some(window)) => window.accept(number),
            _ => self.begin(place(space), number),
        }
    }

    #[cold]
    fn begin(&mut self, place: usize, number: u32) -> bool {
        if place >= self.0.len() {
            self.0.reserve_exact(place + 1 - self.0.len());
            self.0.resize_with(place + 1, || None);
        }
        let half = 1 << 31;
        let base = number.wrapping_sub(half);
        self.0[place] = Some(Window { base, highest: half, first: half, recent: 1, bits: None });
        true
    }

    /// Gives back memory. What has not come yet, and is not among the last 64, does not come any more: it would not be
    /// accepted.
    pub(crate) fn rest(&mut self) {
        self.0.iter_mut().flatten().for_each(Window::rest);
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let bits = self.0.iter().flatten().filter(|window| window.bits.is_some()).count();
        self.0.capacity() * size_of::<Option<Window>>() + bits * size_of::<Bits>()
    }
}

impl Window {
    #[inline]
    fn accept(&mut self, number: u32) -> bool {
        let number = number.wrapping_sub(self.base);
        if let Some(bits) = &mut self.bits {
            return accept(bits, &mut self.highest, number);
        }
        let is_next = number.wrapping_sub(self.highest) == 1 && number != 0;
        if is_next && self.leaves_none(1) {
            (self.highest, self.recent) = (number, self.recent << 1 | 1);
            return true;
        }
        self.accept_other(number)
    }

    /// Whether so many more numbers leave none behind among the last 64 that is missing.
    #[inline]
    fn leaves_none(&self, count: u32) -> bool {
        let known = self.highest - self.first;
        let below = if known >= 63 { 0 } else { u64::MAX << (known + 1) };
        (self.recent | below) >> (64 - count) == u64::MAX >> (64 - count)
    }

    #[inline(never)]
    fn accept_other(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.highest);
        if number > self.highest && ahead < 64 && self.leaves_none(ahead) {
            (self.highest, self.recent) = (number, self.recent << ahead | 1);
            return true;
        }
        let behind = self.highest.wrapping_sub(number);
        if number <= self.highest && number >= self.first {
            let bit = 1_u64.checked_shl(behind).unwrap_or_default();
            let is_new = bit != 0 && self.recent & bit == 0;
            self.recent |= bit;
            return is_new;
        }
        if number < self.first && behind >= WINDOW {
            return false;
        }
        let mut bits = self.expanded();
        let accepted = accept(&mut bits, &mut self.highest, number);
        self.bits = Some(bits);
        accepted
    }

    /// The same as bits.
    fn expanded(&self) -> Box<Bits> {
        let mut bits = Box::new([0; WORDS as usize]);
        for behind in 0..=(self.highest - self.first).min(WINDOW - 1) {
            if behind >= 64 || self.recent >> behind & 1 != 0 {
                set(&mut bits, self.highest - behind);
            }
        }
        bits
    }

    fn rest(&mut self) {
        let Some(bits) = self.bits.take() else { return };
        let has = |behind: u32| {
            let number = self.highest - behind;
            bits[(number / 64 % WORDS) as usize] >> (number % 64) & 1
        };
        self.recent = (0..64).fold(0, |recent, behind| recent | has(behind) << behind);
        self.first = 0;
    }
}

#[inline]
fn accept(bits: &mut Bits, highest: &mut u32, number: u32) -> bool {
    if number > *highest {
        let (first, last) = (*highest / 64 + 1, number / 64);
        for word in (first..=last).take(WORDS as usize) {
            bits[(word % WORDS) as usize] = 0;
        }
        if last - *highest / 64 > WORDS {
            bits.fill(0);
        }
        *highest = number;
        set(bits, number);
        return true;
    }
    *highest - number < WINDOW && set(bits, number)
}

/// Sets the bit of a number. Returns whether it was not set.
#[inline]
fn set(bits: &mut Bits, number: u32) -> bool {
    let (word, bit) = (&mut bits[(number / 64 % WORDS) as usize], 1 << (number % 64));
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn each_number_of_a_space_is_accepted_once() {
        let mut replay = Replay::new();
        for number in [u32::MAX - 1, 1, u32::MAX, 0] {
            assert!(replay.accept(3, number));
            assert!(replay.accept(4, number), "another space");
            assert!(!replay.accept(3, number));
        }
    }

    #[test]
    fn what_is_behind_the_window_is_not_accepted() {
        let mut replay = Replay::new();
        assert!(replay.accept(0, 100_000));
        assert!(replay.accept(0, 100_000 - WINDOW + 1));
        assert!(!replay.accept(0, 100_000 - WINDOW));
        assert!(replay.accept(0, 200_000_000), "far ahead");
        assert!(!replay.accept(0, 100_001));
    }

    #[test]
    fn no_space_takes_more_than_its_window() {
        let mut replay = Replay::new();
        for space in 0..=255 {
            replay.accept(space, 5);
            replay.accept(space, 5_000_000);
        }
        assert!(replay.memory() < 300_000, "{}", replay.memory());
    }

    #[test]
    fn bits_are_there_only_while_numbers_are_missing() {
        let mut replay = Replay::new();
        for number in (0..1000).filter(|number| number % 50 != 3) {
            assert!(replay.accept(0, number));
        }
        assert!(replay.memory() > 1000, "{}", replay.memory());
        replay.rest();
        assert!(replay.memory() < 100, "{}", replay.memory());
        for number in (0..1000).filter(|number| number % 50 != 3) {
            assert!(!replay.accept(0, number), "{number}");
        }
        assert!(replay.accept(0, 953) && !replay.accept(0, 953), "one of the last 64");
        assert!(!replay.accept(0, 903), "not one of the last 64");
        for number in (1000..3000).filter(|number| number % 50 != 3) {
            assert!(replay.accept(0, number) && !replay.accept(0, number));
        }
        assert!(replay.accept(0, 1003) && !replay.accept(0, 1003));
    }

    #[test]
    fn a_space_that_is_nearly_in_order_needs_no_bits() {
        let mut replay = Replay::new();
        assert!(replay.accept(0, 0));
        for pair in 1..10_000 {
            assert!(replay.accept(0, 2 * pair) && replay.accept(0, 2 * pair - 1), "{pair}");
        }
        assert!(replay.memory() < 100, "{}", replay.memory());
    }

    proptest! {
        /// The same as a set of all numbers and the highest.
        #[test]
        fn it_agrees_with_a_set(
            start in any::<u32>(),
            steps in prop::collection::vec(
                prop_oneof![-9000_i64..200, -70_i64..70, 0_i64..20_000, 0_i64..3_000_000], 1..400,
            ),
        ) {
            compare(start, steps, i64::MIN)?;
        }

        #[test]
        fn it_agrees_with_a_set_where_few_are_missing(
            start in any::<u32>(),
            steps in prop::collection::vec(
                prop_oneof![90 => Just(1), 8 => 2_i64..4, 8 => -300_i64..0, 1 => 60_i64..70], 1..800,
            ),
        ) {
            compare(start, steps, 0)?;
        }
    }

    /// Nothing comes before the number `least`.
    fn compare(start: u32, steps: Vec<i64>, least: i64) -> Result<(), TestCaseError> {
        let mut replay = Replay::new();
        let (mut seen, mut highest) = (HashSet::from([0]), 0_i64);
        prop_assert!(replay.accept(7, start));
        for step in steps {
            let number = (highest + step).max(least);
            let wire = start.wrapping_add(number as u32);
            let fits = number > highest || highest - number < WINDOW.into();
            let expected = fits && seen.insert(number);
            prop_assert_eq!(replay.accept(7, wire), expected, "{}", number);
            highest = highest.max(number);
        }
        Ok(())
    }
}
