//! From values to places: scales with round ticks, and figures as people read them.

/// The distance of ticks in pixels, approximately.
const APART: f64 = 32.0;

/// A linear scale from 0 or near the smallest value to near the largest, with round ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// A scale of this many pixels that begins at 0 and includes all values; up to 1 if there are
    /// none.
    pub(super) fn from_zero(values: impl IntoIterator<Item = f64>, length: f64) -> Self {
        let (low, high) = ends(values);
        Self::over(low.min(0.0), high.max(0.0), length)
    }

    /// A scale of this many pixels that includes all values, and 0 unless they are close together
    /// far from it.
    pub(super) fn around(values: impl IntoIterator<Item = f64>, length: f64) -> Self {
        let (low, high) = ends(values);
        // Data below half of the height would show little.
        if low > 0.5 * high && high > low {
            Self::over(low, high, length)
        } else {
            Self::over(low.min(0.0), high.max(0.0), length)
        }
    }

    fn over(low: f64, high: f64, length: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / (length / APART).max(2.0));
        let snap = |value: f64| if value.abs() < 1e-9 * step { 0.0 } else { value };
        Self {
            low: snap(((low / step) + 1e-9).floor() * step),
            high: snap(((high / step) - 1e-9).ceil() * step),
            step,
        }
    }

    /// Where a value is: 0 at the lower end, 1 at the upper.
    pub(super) fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The ticks from the lower end to the upper.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        let digits = digits(self.step);
        let tick = |n: usize| {
            let value = self.low + n as f64 * self.step;
            let value = if value.abs() < self.step * 1e-6 { 0.0 } else { value };
            (value, format!("{value:.digits$}"))
        };
        (0..=count).map(tick).collect()
    }
}

fn ends(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let ends = finite.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    ends.unwrap_or((0.0, 1.0))
}

/// The fewest digits behind the point with which a step is what it is.
fn digits(step: f64) -> usize {
    let exact = |digits: &i32| {
        let whole = step * 10_f64.powi(*digits);
        (whole - whole.round()).abs() < 1e-6 * whole
    };
    (0..9).find(exact).unwrap_or(9) as usize
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0].into_iter().find(|times| times * power >= least * 0.999_999);
    round.unwrap_or(10.0) * power
}

/// A figure with at least three significant digits, as short as it goes.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        // Rounding decides: 99.96 is 100, not 100.0.
        _ if !size.is_finite() => return "?".into(),
        _ if size == 0.0 => return "0".into(),
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 1e-4 => 3 + (-(size * 1.0005).log10()).floor().max(0.0) as usize,
        _ => return format!("{value:.2e}"),
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        assert_eq!(
            labels(&Scale::from_zero([3.0, 93.1], 200.0)),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            labels(&Scale::from_zero([0.97], 200.0)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&Scale::from_zero([1000.0], 200.0)),
            ["0", "200", "400", "600", "800", "1000"]
        );
        assert_eq!(
            labels(&Scale::from_zero([0.004], 200.0)),
            ["0.000", "0.001", "0.002", "0.003", "0.004"]
        );
    }

    #[test]
    fn lines_leave_zero_when_they_are_far_from_it() {
        assert_eq!(
            labels(&Scale::around([0.95, 0.99], 200.0)),
            ["0.95", "0.96", "0.97", "0.98", "0.99"]
        );
        assert_eq!(labels(&Scale::around([20.0, 95.0], 200.0))[0], "0");
        assert_eq!(
            labels(&Scale::around([50.0], 200.0))[0],
            "0",
            "a single value has no surroundings"
        );
        assert_eq!(labels(&Scale::around([-4.0, 3.0], 200.0)), ["-4", "-2", "0", "2", "4"]);
    }

    #[test]
    fn empty_and_invalid_data_have_a_scale_too() {
        for scale in [
            Scale::from_zero([], 200.0),
            Scale::around([f64::NAN], 200.0),
            Scale::from_zero([0.0], 200.0),
        ] {
            assert_eq!(labels(&scale).len(), 6, "{scale:?}");
            assert!(scale.place(0.5).is_finite());
        }
    }

    #[test]
    fn places_run_from_end_to_end() {
        let scale = Scale::from_zero([80.0], 200.0);
        assert_eq!((scale.place(0.0), scale.place(40.0), scale.place(80.0)), (0.0, 0.5, 1.0));
    }

    #[test]
    fn figures_have_three_digits() {
        let shown: Vec<_> =
            [0.0, 1097.4, 109.72, 99.96, 93.14, 9.996, 1.0, 0.9996, 0.98765, 0.0123]
                .map(figure)
                .into();
        let wanted = ["0", "1097", "110", "100", "93.1", "10.0", "1.00", "1.00", "0.988", "0.0123"];
        assert_eq!(shown, wanted);
        assert_eq!(figure(-0.5), "-0.500");
        assert_eq!(figure(0.000_012), "1.20e-5");
        assert_eq!(figure(f64::NAN), "?");
    }
}
