//! How much delays vary although nothing stands in a queue.

use super::points::earlier;

/// Fewer datagrams say nothing of how much delays vary.
const FEWEST: u32 = 6;

/// So many values are remembered.
const REMEMBERED: usize = 8;

/// A value counts for as many times the median of all at the most: a link that stood still once is none whose delay varies.
const MOST: f64 = 3.0;

/// By how many microseconds the delays of small datagrams exceed their least on average.
#[derive(Debug, Default)]
pub(super) struct Spread {
    values: [u32; REMEMBERED],
    /// How many there are, and where the next one goes.
    count: u8,
    next: u8,
    mean: f32,
    few: Few,
    /// Whether there was any feedback.
    has_begun: bool,
}

/// Datagrams of which too few are told of at once: their least delay, and by how much they exceed that, in all.
#[derive(Debug, Default)]
struct Few {
    least: u32,
    longer: u32,
    count: u32,
}

impl Spread {
    /// Feedback tells of so many datagrams, of their least delay modulo 2^32, and by how much they exceeded that on average.
    pub(super) fn add(&mut self, least: u32, longer: u32, count: u32) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if count >= FEWEST {
            self.remember(longer);
            // What a mobile link does that was asleep. It counts beside others.
            self.mean = if is_first { 0.0 } else { self.mean };
            return;
        }
        let few = &mut self.few;
        let before = if few.count == 0 { least } else { few.least };
        few.least = earlier(before, least);
        let above = |delay: u32, longer: u32, count: u32| {
            delay.wrapping_sub(few.least).saturating_add(longer).saturating_mul(count)
        };
        let more = above(before, 0, few.count).saturating_add(above(least, longer, count));
        few.longer = few.longer.saturating_add(more);
        few.count += count;
        if few.count >= FEWEST {
            let Few { longer, count, .. } = std::mem::take(few);
            self.remember(longer / count);
        }
    }

    fn remember(&mut self, value: u32) {
        self.values[usize::from(self.next)] = value;
        self.next = (self.next + 1) % REMEMBERED as u8;
        self.count = (self.count + 1).min(REMEMBERED as u8);
        let mut values = self.values;
        let values = &mut values[..usize::from(self.count)];
        values.sort_unstable();
        let most = MOST * f64::from(values[(values.len() - 1) / 2]);
        let counted = values.iter().map(|value| f64::from(*value).min(most));
        self.mean = (counted.sum::<f64>() / values.len() as f64) as f32;
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean in milliseconds, of so many datagrams each whose delays exceed their least by so much.
    fn mean(values: &[(u32, u32)]) -> f64 {
        let mut spread = Spread::default();
        values.iter().for_each(|(count, longer)| spread.add(50_000, 1000 * longer, *count));
        spread.mean() / 1000.0
    }

    #[test]
    fn the_first_feedback_counts_beside_others() {
        assert_eq!(mean(&[(12, 30)]), 0.0);
        assert_eq!(mean(&[(12, 10), (12, 20)]), 15.0);
        assert_eq!(mean(&[(1, 0), (12, 10)]), 10.0, "one datagram is a feedback");
    }

    #[test]
    fn delays_do_not_vary_because_a_link_stood_still_once() {
        assert_eq!(mean(&[(8, 2), (8, 40), (8, 2), (8, 2)]), 3.0);
        let later = [vec![(8, 80)], vec![(8, 2); 8]].concat();
        assert_eq!(mean(&later), 2.0, "eight are remembered");
        assert_eq!(mean(&[(8, 40); 4]), 40.0, "what is usual counts");
    }

    #[test]
    fn few_datagrams_count_when_there_are_enough_of_them() {
        let mut spread = Spread::default();
        // From 100 ms on to 150, in any order, also where the counter wraps.
        let delays = [2, 0, 5, 3, 1, 4].map(|nth: u32| (nth * 10_000).wrapping_sub(20_000));
        spread.add(delays[0], 0, 1);
        delays[1..5].iter().for_each(|least| spread.add(*least, 0, 1));
        assert_eq!(spread.mean(), 0.0, "five");
        spread.add(delays[5], 0, 1);
        assert_eq!(spread.mean(), 25_000.0);
    }
}
