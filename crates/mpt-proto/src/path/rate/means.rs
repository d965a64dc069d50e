//! What a train shows where delays vary: its datagrams wait for each other, so on average they take longer than small ones that
//! are sent alone, by half of what the whole train takes to leave. How far apart they arrive says little there.

use crate::wire::extended::feedback::Block;

use super::points::after;

/// Fewer datagrams of a train say nothing.
const FEWEST: u32 = 12;

/// Fewer single ones say too little to tell a queue.
const ENOUGH: u32 = 16;

/// More single ones are not counted, so that the mean follows.
const MOST: u32 = 64;

/// The mean of some differs from that of all by more than so many mean deviations, divided by the root of how many they are, in one
/// of forty.
const SURE: f64 = 2.5;

/// The mean delay of small datagrams, and how many that is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    mean: u32,
    count: u32,
}

impl Alone {
    /// So many small datagrams took so long on average.
    pub(super) fn add(alone: &mut Option<Self>, mean: u32, count: u32) {
        let Self { mean: before, count: of } = *alone.get_or_insert(Self { mean, count: 0 });
        let count = count.min(MOST);
        let of = (of + count).min(MOST);
        let off = i64::from(after(mean, before)) * i64::from(count) / i64::from(of);
        *alone = Some(Self { mean: before.wrapping_add_signed(off as i32), count: of });
    }

    /// The mean, if it is of enough.
    pub(super) fn known(self) -> Option<u32> {
        (self.count >= ENOUGH).then_some(self.mean)
    }

    /// What the mean of all hardly exceeds, if delays deviate by `noise` microseconds on average.
    pub(super) fn most(self, noise: f64) -> Option<u32> {
        let off = SURE * noise / f64::from(self.count).sqrt();
        Some(self.known()?.wrapping_add(off as u32))
    }
}

/// So many of the feedbacks about a train may come in another order than they were sent.
const KEPT: usize = 8;

/// If a train takes so many times longer than may be by chance, what follows is close to what the path carries.
const CLOSE: f64 = 3.0;

/// A feedback tells of no more datagrams of a train.
const MOST_TOLD: u32 = 1 << 10;

/// What one feedback tells of a train.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Its number.
    number: u16,
    /// How many datagrams had arrived by the path.
    received: u32,
    /// The mean delay of those that had arrived since the feedback before it, and about how many these are.
    mean: u32,
    count: u32,
}

impl Told {
    /// The feedback with this number, the delays of which are of about so many datagrams.
    pub(super) fn new(number: u16, block: &Block, count: u32) -> Self {
        let mean = block.delay_min.wrapping_add(block.delay_mean);
        Self { number, received: block.received, mean, count }
    }

    /// Of how many datagrams its delays are, where a feedback before it has that number, and so many had arrived by then.
    fn count(&self, before: Option<(u16, u32)>) -> u32 {
        let Some((number, received)) = before else { return self.count };
        let since = self.received.wrapping_sub(received);
        let follows = self.number.wrapping_sub(number) == 1;
        if follows { since } else { self.count.min(since) }
    }
}

/// The delays of a train's datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delays {
    /// Those of the feedbacks that are not kept any more relative to the mean of small ones, in sum, and of how many datagrams.
    sum: i64,
    count: u32,
    /// The number of the last one of these, and how many datagrams had arrived by then.
    before: Option<(u16, u32)>,
    /// The ones after these in the order of their numbers, and how many they are.
    told: ([Told; KEPT], u8),
}

impl Delays {
    /// A feedback tells of the train. It may have been overtaken by others, and it may be a copy.
    pub(super) fn add(&mut self, new: Told, alone: Alone) {
        let is_older = |number: u16| number.wrapping_sub(new.number).cast_signed() >= 0;
        if self.before.is_some_and(|(number, _)| is_older(number)) {
            return;
        }
        let (told, kept) = &mut self.told;
        let kept = usize::from(*kept);
        let place = told[..kept].iter().position(|told| is_older(told.number)).unwrap_or(kept);
        if told[..kept].get(place).is_some_and(|told| told.number == new.number) {
            return;
        }
        if kept < KEPT {
            told[place..=kept].rotate_right(1);
            told[place] = new;
            self.told.1 += 1;
        } else if place > 0 {
            let oldest = told[0];
            told[..place].rotate_left(1);
            told[place - 1] = new;
            self.fold(oldest, alone);
        } else {
            self.fold(new, alone);
        }
    }

    /// Counts what the feedback after those before tells.
    fn fold(&mut self, told: Told, alone: Alone) {
        let count = told.count(self.before).min(MOST_TOLD);
        self.sum += i64::from(after(told.mean, alone.mean)) * i64::from(count);
        self.count = self.count.saturating_add(count);
        self.before = Some((told.number, told.received));
    }

    /// With those that are kept.
    fn all(mut self, alone: Alone) -> Self {
        let (told, kept) = self.told;
        told[..usize::from(kept)].iter().for_each(|told| self.fold(*told, alone));
        self
    }

    /// Of how many datagrams they are.
    pub(super) fn count(&self, alone: Alone) -> u32 {
        self.all(alone).count
    }

    /// What they show, where delays exceed their least by so many microseconds on average; `None` while they are too few.
    pub(super) fn shown(&self, alone: Alone, spread: f64) -> Option<Shown> {
        let Self { sum, count: told, .. } = self.all(alone);
        let count = f64::from(told);
        // Both means are off by that much.
        let error = spread * (1.0 / count + 1.0 / f64::from(alone.count)).sqrt();
        let longer = (sum as f64 / count).max(0.0);
        let is_close = error * CLOSE <= longer;
        let at_most = if is_close { longer } else { longer + error };
        let rate = |longer: f64| count / 2.0 * 1e6 / longer.max(1.0);
        (told >= FEWEST).then(|| Shown { rate: rate(at_most), is_close, likely: rate(longer) })
    }
}

/// What the delays of a train show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The datagrams per second that the path carries, at least.
    pub(super) rate: f64,
    /// Whether that is close to what it carries.
    pub(super) is_close: bool,
    /// What it is likely to carry: as much as the delays show, as if they were off by nothing.
    pub(super) likely: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What 32 datagrams show that leave 500 us apart, where those that are sent alone take 30 ms on average and all of them by
    /// chance so many microseconds more.
    fn shown(spread: f64, off: i32) -> f64 {
        let mut alone = None;
        Alone::add(&mut alone, 30_000, 24);
        let alone = alone.unwrap();
        let mut delays = Delays::default();
        for (number, first) in [(1, 0_u32), (2, 16)] {
            let mean = (0..16).map(|number| 30_000 + (first + number) * 500).sum::<u32>() / 16;
            let delay_min = 5_000_u32.wrapping_sub(40_000);
            let delay_mean = mean.wrapping_add_signed(off).wrapping_sub(delay_min);
            let block = Block { delay_min, delay_mean, received: first + 16, ..Block::default() };
            delays.add(Told::new(number, &block, 16), alone);
        }
        delays.shown(alone, spread).unwrap().rate
    }

    #[test]
    fn a_train_takes_longer_on_average_by_half_of_what_it_takes_to_leave() {
        let rate = shown(0.0, 0);
        assert!((rate / 2000.0 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn what_the_means_may_be_off_by_does_not_make_a_path_seem_faster() {
        for off in [-2700, 0, 2700] {
            let rate = shown(10_000.0, off);
            assert!((1000.0..2100.0).contains(&rate), "{off}: {rate}");
        }
    }

    #[test]
    fn a_slow_path_is_known_closely_though_its_delay_varies() {
        // 32 datagrams take 190 ms of one path, and 2 ms of another one.
        for (longer, is_close) in [(95_000, true), (1000, false)] {
            let mut alone = None;
            Alone::add(&mut alone, 30_000, 24);
            let mut delays = Delays::default();
            let block = Block { delay_min: 30_000 + longer, received: 32, ..Block::default() };
            delays.add(Told::new(1, &block, 32), alone.unwrap());
            assert_eq!(delays.shown(alone.unwrap(), 10_000.0).unwrap().is_close, is_close);
        }
    }

    #[test]
    fn feedback_that_was_overtaken_or_comes_twice_counts_once() {
        let mut alone = None;
        Alone::add(&mut alone, 30_000, 24);
        let alone = alone.unwrap();
        // Each tells of four datagrams, which take 1 ms longer than those before. Of what was overtaken the next one is not sure how much it tells.
        let told = |number: u16| {
            let received = 100 + u32::from(number) * 4;
            let mean = 30_000 + u32::from(number) * 1000;
            Told { number: number.wrapping_sub(3), received, mean, count: 1 }
        };
        let rate = |order: &[u16]| {
            let mut delays = Delays::default();
            order.iter().for_each(|number| delays.add(told(*number), alone));
            (delays.count(alone), delays.shown(alone, 0.0).map(|shown| shown.rate as u32))
        };
        let in_order: Vec<u16> = (0..20).collect();
        let (count, known) = rate(&in_order);
        assert_eq!((count, known), (77, Some(3_900)), "of the first one only one is known");
        let with = |swap: &[(usize, usize)]| {
            let mut order = in_order.clone();
            swap.iter().for_each(|(one, other)| order.swap(*one, *other));
            order.insert(9, 8);
            rate(&order)
        };
        assert_eq!(with(&[(1, 2), (4, 8), (12, 19)]), (count, known));
        assert_eq!(rate(&[0, 1, 3, 2]), (13, rate(&[0, 1, 2, 3]).1));
        assert_eq!(rate(&[0, 1, 3]).0, 6, "one is lost");
    }

    #[test]
    fn the_mean_of_single_datagrams_follows_and_wraps() {
        let mut alone = None;
        Alone::add(&mut alone, u32::MAX, 24);
        Alone::add(&mut alone, 999, 24);
        assert_eq!(alone.unwrap().mean, 499);
        (0..50).for_each(|_| Alone::add(&mut alone, 5000, 16));
        let mean = alone.unwrap().mean;
        assert!((4990..=5000).contains(&mean), "{mean}");
    }
}
