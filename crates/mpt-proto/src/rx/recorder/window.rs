//! Which of the last path sequences of a path were received.

/// How many are remembered: at 80,000 datagrams per second, a gigabit, those of 200 ms. Where delays vary normally by 30 ms some are 200 ms
/// late, and with 2048 a path of 200 Mbit/s like that seemed to lose all that it carried beyond 95. A power of two, so that
/// a number's place is its low bits.
pub(super) const LEN: u32 = 16_384;

const WORDS: usize = (LEN / 64) as usize;

/// One bit each, allocated when the first one is missing, because most paths of a server are idle.
#[derive(Debug, Default)]
pub(super) struct Window(Option<Box<[u64; WORDS]>>);

impl Window {
    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        if self.is_used() { WORDS * 8 } else { 0 }
    }

    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.0.is_some()
    }

    /// Begins to remember. So far all of the `span` numbers up to `highest` were received, and none before.
    pub(super) fn allocate(&mut self, highest: u32, span: u64) {
        if self.0.is_some() {
            return;
        }
        self.0 = Some(Box::new([u64::MAX; WORDS]));
        let span = span.min(u64::from(LEN)) as u32;
        self.set_missing(highest.wrapping_add(1), LEN - span);
    }

    /// Nothing was received.
    pub(super) fn clear(&mut self) {
        if let Some(words) = &mut self.0 {
            words.fill(0);
        }
    }

    pub(super) fn set_received(&mut self, number: u32) {
        if let Some(words) = &mut self.0 {
            words[place(number)] |= 1 << (number % 64);
        }
    }

    pub(super) fn was_received(&self, number: u32) -> bool {
        self.0.as_ref().is_some_and(|words| words[place(number)] >> (number % 64) & 1 != 0)
    }

    /// `count` numbers from `number` on were not received. At most [`LEN`].
    pub(super) fn set_missing(&mut self, number: u32, count: u32) {
        let Some(words) = &mut self.0 else { return };
        pieces(number, count, |place, mask| words[place] &= !mask);
    }

    /// How many of `count` numbers from `number` on were not received.
    pub(super) fn missing(&self, number: u32, count: u32) -> u32 {
        let Some(words) = &self.0 else { return 0 };
        let mut missing = 0;
        pieces(number, count, |place, mask| missing += (!words[place] & mask).count_ones());
        missing
    }

    /// How many numbers from `number` on were received without a gap, at most `count`.
    pub(super) fn received(&self, number: u32, count: u32) -> u32 {
        let Some(words) = &self.0 else { return count };
        let mut received = 0;
        while received < count {
            let at = number.wrapping_add(received);
            let run = (words[place(at)] >> (at % 64)).trailing_ones();
            received += run;
            if run < 64 - at % 64 {
                break;
            }
        }
        received.min(count)
    }

    /// How many numbers directly below `above` were received without a gap, at most `count`.
    pub(super) fn received_below(&self, above: u32, count: u32) -> u32 {
        self.run_below(above, count, |word| word)
    }

    /// How many were not.
    pub(super) fn missing_below(&self, above: u32, count: u32) -> u32 {
        self.run_below(above, count, |word| !word)
    }

    fn run_below(&self, above: u32, count: u32, of: impl Fn(u64) -> u64) -> u32 {
        let Some(words) = &self.0 else { return count };
        let mut length = 0;
        while length < count {
            let at = above.wrapping_sub(length + 1);
            let run = (of(words[place(at)]) << (63 - at % 64)).leading_ones();
            length += run;
            if run < at % 64 + 1 {
                break;
            }
        }
        length.min(count)
    }

    /// One bit for each of 64 numbers from `number` on, the first in the least significant bit; those above `highest`
    /// were not received.
    pub(super) fn word(&self, number: u32, highest: u32) -> u64 {
        let Some(words) = &self.0 else { return 0 };
        let (first, second) = (words[place(number)], words[place(number.wrapping_add(64))]);
        let shift = number % 64;
        let word = if shift == 0 { first } else { first >> shift | second << (64 - shift) };
        let count = highest.wrapping_sub(number).wrapping_add(1).min(64);
        word & (u64::MAX >> (64 - count))
    }
}

/// The words of `count` numbers from `number` on, each with the bits of those in it.
fn pieces(mut number: u32, mut count: u32, mut piece: impl FnMut(usize, u64)) {
    while count > 0 {
        let bit = number % 64;
        let step = count.min(64 - bit);
        piece(place(number), (u64::MAX >> (64 - step)) << bit);
        number = number.wrapping_add(step);
        count -= step;
    }
}

fn place(number: u32) -> usize {
    (number % LEN / 64) as usize
}
