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
}

/// The delays of a train's datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delays {
    /// Those of the blocks so far relative to the mean of small ones, in sum, and of how many datagrams.
    sum: i64,
    count: u32,
}

impl Delays {
    /// A block is about so many datagrams of the train.
    pub(super) fn add(&mut self, block: &Block, count: u32, alone: Alone) {
        let mean = block.delay_min.wrapping_add(block.delay_mean);
        self.sum += i64::from(after(mean, alone.mean)) * i64::from(count);
        self.count = self.count.saturating_add(count);
    }

    /// The datagrams per second that the path carries at least, where delays exceed their least by so many microseconds on average;
    /// `None` while they are too few.
    pub(super) fn rate(&self, alone: Alone, spread: f64) -> Option<f64> {
        let count = f64::from(self.count);
        // Both means are off by that much.
        let error = spread * (1.0 / count + 1.0 / f64::from(alone.count)).sqrt();
        let longer = (self.sum as f64 / count).max(0.0) + error;
        (self.count >= FEWEST).then(|| count / 2.0 * 1e6 / longer.max(1.0))
    }
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
        for first in [0_u32, 16] {
            let mean = (0..16).map(|number| 30_000 + (first + number) * 500).sum::<u32>() / 16;
            let delay_min = 5_000_u32.wrapping_sub(40_000);
            let delay_mean = mean.wrapping_add_signed(off).wrapping_sub(delay_min);
            delays.add(&Block { delay_min, delay_mean, ..Block::default() }, 16, alone);
        }
        delays.rate(alone, spread).unwrap()
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
