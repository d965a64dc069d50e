//! Which datagrams of an epoch have been received: none is accepted twice (section 9.1 of `docs/protocol.md`).

/// So many numbers are remembered in each space: the highest, and those below it. Above the largest reordering at
/// 10 Gbit/s and 10 ms.
pub(crate) const WINDOW: u32 = 8192;

/// One word more than the window has, so that the words in it are always whole (RFC 6479).
const WORDS: u32 = WINDOW / 64 + 1;

/// What stands for a space of which nothing has been received.
const NONE: u8 = u8::MAX;

/// The replay windows of one epoch, one for each space: path ids, and 255 for numbered control.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The place of each space among the windows.
    places: [u8; 256],
    windows: Vec<Window>,
}

/// The numbers of one space.
#[derive(Debug)]
struct Window {
    /// Numbers are counted from here, so that they do not wrap within an epoch.
    base: u32,
    /// The highest number received, from the base.
    highest: u32,
    /// One bit for each number, in a ring.
    bits: Box<[u64; WORDS as usize]>,
}

impl Replay {
    /// Nothing has been received.
    pub(crate) fn new() -> Self {
        Self { places: [NONE; 256], windows: Vec::new() }
    }

    /// Takes note of an authenticated number. Returns whether it came for the first time, as far as is known.
    #[inline]
    pub(crate) fn accept(&mut self, space: u8, number: u32) -> bool {
        let place = self.places[usize::from(space)];
        match self.windows.get_mut(usize::from(place)) {
            Some(window) => window.accept(number),
            None => self.begin(space, number),
        }
    }

    #[cold]
    fn begin(&mut self, space: u8, number: u32) -> bool {
        // All path ids and numbered control are 256 spaces; of those a sender has at most 65 at a time.
        let Some(place) = u8::try_from(self.windows.len()).ok().filter(|place| *place != NONE)
        else {
            return false;
        };
        self.places[usize::from(space)] = place;
        let half = 1 << 31;
        let mut window = Window {
            base: number.wrapping_sub(half),
            highest: half,
            bits: Box::new([0; WORDS as usize]),
        };
        window.set(half);
        self.windows.push(window);
        true
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.windows.capacity() * size_of::<Window>()
            + self.windows.len() * size_of::<[u64; WORDS as usize]>()
    }
}

impl Window {
    #[inline]
    fn accept(&mut self, number: u32) -> bool {
        let number = number.wrapping_sub(self.base);
        if number > self.highest {
            let (first, last) = (self.highest / 64 + 1, number / 64);
            for word in (first..=last).take(WORDS as usize) {
                self.bits[(word % WORDS) as usize] = 0;
            }
            if last - self.highest / 64 > WORDS {
                self.bits.fill(0);
            }
            self.highest = number;
            self.set(number);
            return true;
        }
        self.highest - number < WINDOW && self.set(number)
    }

    /// Sets the bit of a number. Returns whether it was not set.
    #[inline]
    fn set(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.bits[(number / 64 % WORDS) as usize], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
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

    proptest! {
        /// The same as a set of all numbers and the highest.
        #[test]
        fn it_agrees_with_a_set(
            start in any::<u32>(),
            steps in prop::collection::vec(
                prop_oneof![-9000_i64..200, -70_i64..70, 0_i64..20_000, 0_i64..3_000_000], 1..400,
            ),
        ) {
            let mut replay = Replay::new();
            let (mut seen, mut highest) = (HashSet::from([0]), 0_i64);
            prop_assert!(replay.accept(7, start));
            for step in steps {
                let number = highest + step;
                let wire = start.wrapping_add(number as u32);
                let fits = number > highest || highest - number < WINDOW.into();
                let expected = fits && seen.insert(number);
                prop_assert_eq!(replay.accept(7, wire), expected, "{}", number);
                highest = highest.max(number);
            }
        }
    }
}
