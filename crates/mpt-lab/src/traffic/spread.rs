//! Median, percentiles and spread of a handful or a million of measurements.

use serde::Serialize;

/// The distribution of one measured quantity, in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of values.
    pub count: usize,
    /// Smallest value.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Middle value; mean of the two middle ones for an even count.
    pub median: f64,
    /// Value that 95 % of all values do not exceed (nearest rank).
    pub p95: f64,
    /// Value that 99 % of all values do not exceed (nearest rank).
    pub p99: f64,
    /// Largest value.
    pub max: f64,
    /// Standard deviation of these values taken as the whole population, as ping(8) gives it.
    pub stddev: f64,
}

impl Spread {
    /// The spread of `values`, `None` if there are none. Values that are not numbers are left out.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let squares = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Some(Self {
            count: sorted.len(),
            min: *sorted.first()?,
            mean,
            median: middle(&sorted)?,
            p95: rank(&sorted, 0.95)?,
            p99: rank(&sorted, 0.99)?,
            max: *sorted.last()?,
            stddev: (squares / sorted.len() as f64).sqrt(),
        })
    }
}

/// The middle value, or the mean of the two middle ones. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

/// The mean of the middle half: the quarter of the values that are smallest and that of the largest are left out. Up to four
/// values have their median. `None` without values.
///
/// It is as little moved by outliers as long as they are less than a quarter, and varies less than the median where values
/// come in clusters, between which the median jumps.
pub fn middle_half(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    if sorted.len() <= 4 {
        return middle(&sorted);
    }
    let quarter = sorted.len() / 4;
    let half = &sorted[quarter..sorted.len() - quarter];
    Some(half.iter().sum::<f64>() / half.len() as f64)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted[half - 1] + upper) / 2.0) }
}

/// The smallest value that at least `share` of all values do not exceed.
fn rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_middle_half_leaves_out_a_quarter_at_either_end() {
        assert_eq!(middle_half(&[9.0, 1.0, 4.0, 2.0, 1e9, 3.0, 3.0, -1e9]), Some(3.0));
        assert_eq!(middle_half(&[1.0, 1.0, 1.0, 3.0, 5.0, 5.0, 5.0, 5.0]), Some(3.5));
        assert_eq!(middle_half(&[1.0, 8.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(middle_half(&[]), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let spread = Spread::of(&values).unwrap();
        assert_eq!((spread.min, spread.median, spread.p99, spread.max), (1.0, 100.5, 198.0, 200.0));
        assert_eq!(spread.p95, 190.0);
        let one = Spread::of(&[7.0]).unwrap();
        assert_eq!((one.p95, one.p99), (7.0, 7.0));
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_population() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((spread.mean, spread.stddev), (5.0, 2.0));
        assert_eq!(Spread::of(&[7.0]).unwrap().stddev, 0.0);
    }

    #[test]
    fn values_that_are_not_numbers_are_omitted() {
        assert_eq!(Spread::of(&[f64::NAN]), None);
        assert_eq!(Spread::of(&[f64::NAN, 2.0]).unwrap().count, 1);
    }
}
