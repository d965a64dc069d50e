//! How much delays vary although nothing stands in a queue.

use super::points::{after, earlier};

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

/// If so many of the last 32 feedbacks tell of datagrams that were overtaken, the path delays each by another time.
const USUAL: u32 = 3;

/// Whether datagrams overtake each other on the path. No queue does that, however it grows.
#[derive(Debug, Default)]
pub(super) struct Overtaking {
    /// A bit for each of the last feedbacks, the latest one lowest: whether what had not arrived before has since.
    recent: u32,
}

impl Overtaking {
    /// So many of all up to the highest one had not arrived by the last feedback, and by this one.
    pub(super) fn on_missing(&mut self, before: u32, now: u32) {
        self.recent = self.recent << 1 | u32::from(after(now, before) < 0);
    }

    /// Whether it is usual.
    pub(super) fn is_usual(&self) -> bool {
        self.recent.count_ones() >= USUAL
    }
}

/// The mean is of about so many feedbacks.
const SMOOTHED: f64 = 32.0;

/// One counts for as many times the mean at the most, and for so many microseconds at least: a host that stood still is no link that varies.
const MOST_OF_ONE: f64 = 4.0;
const LEAST_OF_ONE: f64 = 1000.0;

/// How much the delay of data that is paced deviates beside its trend. What stands in a queue grows or shrinks steadily, so of a feedback's
/// delays it explains a deviation of a quarter of what they have grown by.
#[derive(Debug, Default)]
pub(super) struct Wavering {
    mean: f32,
}

impl Wavering {
    /// Feedback tells of delays that have grown by so many microseconds since the one before, and deviate by so many, of which so many are
    /// due to what was sent at once.
    pub(super) fn on_delays(&mut self, grown: f64, deviation: f64, burst: f64) {
        let rest = deviation.powi(2) - (grown / 4.0).powi(2) - burst.powi(2);
        let most = (MOST_OF_ONE * self.mean()).max(LEAST_OF_ONE);
        let rest = rest.max(0.0).sqrt().min(most);
        self.mean += ((rest - self.mean()) / SMOOTHED) as f32;
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

    /// Whether datagrams seem to overtake each other if so many of all had not arrived by these feedbacks.
    fn overtake(missing: &[u32]) -> bool {
        let mut overtaking = Overtaking::default();
        missing.windows(2).for_each(|two| overtaking.on_missing(two[0], two[1]));
        overtaking.is_usual()
    }

    #[test]
    fn what_comes_after_a_later_one_was_overtaken() {
        // Each time three are missing, and some of them come with the next feedback; the others are lost.
        let told = |come: u32, times: u32| -> Vec<u32> {
            let lost = |time: u32| (u32::MAX - 5).wrapping_add((3 - come) * time);
            (0..times).flat_map(|time| [lost(time).wrapping_add(3), lost(time + 1)]).collect()
        };
        assert!(overtake(&told(3, 4)));
        assert!(overtake(&told(1, 4)), "though others are lost");
        assert!(!overtake(&told(0, 16)), "a queue that drops overtakes nothing");
        assert!(!overtake(&told(3, 2)), "a route may change once");
        let past = [told(3, 4), told(0, 20)].concat();
        assert!(!overtake(&past), "as it was lately");
    }

    /// What data deviates by beside its trend after feedbacks of which the delay has grown by and deviates by so many microseconds.
    fn wavers(told: impl Iterator<Item = (f64, f64)>) -> f64 {
        let mut wavering = Wavering::default();
        told.for_each(|(grown, deviation)| wavering.on_delays(grown, deviation, 480.0));
        wavering.mean()
    }

    #[test]
    fn a_queue_that_grows_is_no_delay_that_varies() {
        assert_eq!(
            wavers((0..200).map(|_| (5000.0, 1250.0))),
            0.0,
            "twice as much is sent as the path carries"
        );
        assert_eq!(wavers((0..200).map(|_| (0.0, 400.0))), 0.0, "two packets leave at once");
        let held = wavers((0..200).map(|_| (0.0, 1500.0)));
        assert!((1300.0..1500.0).contains(&held), "{held}");
    }

    #[test]
    fn a_host_that_stands_still_now_and_then_is_no_delay_that_varies() {
        let stalls = wavers((0..400).map(|nth| (0.0, if nth % 8 == 0 { 20_000.0 } else { 100.0 })));
        assert!(stalls < 250.0, "{stalls}");
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
