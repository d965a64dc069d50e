//! How soon a flow has what the links carry after their rates have changed.

use std::time::Duration;

use serde::Serialize;

use super::megabits;
use crate::traffic::series::Series;

/// The share of the ideal that counts as having arrived at it.
const NEAR: f64 = 0.9;
/// How long a flow may take before its goodput is held against the ideal.
const ALLOWED: Duration = Duration::from_secs(2);
/// Changes that are followed by another one sooner than this are not judged one by one: their average is.
const LEAST: Duration = Duration::from_secs(4);

/// What became of a flow after rates have changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settling {
    /// Seconds until the first second at 90 % of what the links carry now began. If there was none, the time until the
    /// next change or the end, which is less than it would have taken.
    pub seconds: f64,
    /// Goodput ÷ ideal from two seconds after the change to the next one or the end.
    pub efficiency: f64,
}

impl Settling {
    /// Of the flow with these deliveries, between a change and the next one or the end of the run, while the links carried
    /// `ideal` bit/s of payload, in a cell that was scaled by `scale`. `None` if that is too short to be judged.
    pub fn of(series: &Series, [at, until]: [Duration; 2], ideal: f64, scale: f64) -> Option<Self> {
        let until = until.min(series.length());
        if until < at + LEAST.mul_f64(scale) || ideal <= 0.0 {
            return None;
        }
        let last = until.saturating_sub(Duration::from_secs(1));
        let near = series.reaches(NEAR * ideal, at).filter(|time| *time <= last);
        Some(Self {
            seconds: near.unwrap_or(until).saturating_sub(at).as_secs_f64(),
            efficiency: megabits(series.rate(at + ALLOWED.mul_f64(scale), until)) / megabits(ideal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds at these kbit/s, each second a value.
    fn series(rates: [usize; 10]) -> Series {
        let mut series = Series::new(Duration::from_secs(10));
        for sample in 0..100u64 {
            let at = Duration::from_millis(sample * 100 + 50);
            series.on_delivery(at, rates[sample as usize / 10] * 1000 / 80);
        }
        series
    }

    fn of(rates: [usize; 10], at: u64, until: u64) -> Option<Settling> {
        Settling::of(&series(rates), [at, until].map(Duration::from_secs), 80_000.0, 1.0)
    }

    #[test]
    fn in_slow_motion_a_flow_may_take_longer() {
        let rates = series([40, 40, 40, 40, 40, 80, 80, 80, 80, 80]);
        let of = |scale| Settling::of(&rates, [1, 10].map(Duration::from_secs), 80_000.0, scale);
        assert!((of(1.0).unwrap().efficiency - 6.0 / 7.0).abs() < 1e-9, "from second 3 on");
        assert!((of(2.0).unwrap().efficiency - 1.0).abs() < 1e-9, "from second 5 on");
        assert_eq!(of(3.0), None, "too short");
    }

    #[test]
    fn a_flow_that_follows_has_settled_and_keeps_its_share() {
        let settling = of([40, 40, 40, 40, 60, 80, 80, 80, 80, 80], 4, 10).unwrap();
        // A second that begins at 4.7 has 30 % of the slow and 70 % of the fast one: 74 of 80.
        assert!((settling.seconds - 0.6).abs() < 1e-9, "{settling:?}");
        assert!((settling.efficiency - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_flow_that_stays_behind_has_not_settled_before_the_next_change() {
        let settling = of([40, 40, 40, 40, 40, 40, 40, 40, 80, 80], 2, 8).unwrap();
        assert!((settling.seconds - 6.0).abs() < 1e-9, "{settling:?}");
        assert!((settling.efficiency - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_changes_again_at_once_is_not_judged() {
        assert_eq!(of([80; 10], 2, 5), None);
        assert_eq!(of([80; 10], 7, 60), None, "the run ends");
    }
}
