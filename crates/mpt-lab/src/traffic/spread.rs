//! Median, percentiles and spread of a handful or a million of measurements.

use serde::Serialize;

/// The distribution of one measured quantity, in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of values.
    pub count: usize,
    /// Smallest value.
    pub min: f64,
    /// Middle value; mean of the two middle ones for an even count.
    pub median: f64,
    /// Value that 99 % of all values do not exceed (nearest rank).
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`, `None` if there are none. Values that are not numbers are left out.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        Some(Self {
            count: sorted.len(),
            min: *sorted.first()?,
            median: middle(&sorted)?,
            p99: rank(&sorted, 0.99)?,
            max: *sorted.last()?,
        })
    }
}

/// The middle value, or the mean of the two middle ones. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
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
    fn p99_is_a_value_that_occurred() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let spread = Spread::of(&values).unwrap();
        assert_eq!((spread.min, spread.median, spread.p99, spread.max), (1.0, 100.5, 198.0, 200.0));
        assert_eq!(Spread::of(&[7.0]).unwrap().p99, 7.0);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        assert_eq!(Spread::of(&[f64::NAN]), None);
        assert_eq!(Spread::of(&[f64::NAN, 2.0]).unwrap().count, 1);
    }
}
