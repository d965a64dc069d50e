//! Measured against stored.

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Less than stored by more than the tolerance.
    Better,
    /// As stored.
    Same,
    /// Nothing is stored.
    Unknown,
    /// Stored, but there is no such case.
    Vanished,
    /// More than stored by more than the tolerance.
    Worse,
}

impl Verdict {
    /// Compares, with a tolerance in percent.
    pub(super) fn of(stored: Option<f64>, measured: f64, tolerance: f64) -> Self {
        match stored.map(|stored| change(stored, measured)) {
            None => Self::Unknown,
            Some(change) if change > tolerance => Self::Worse,
            Some(change) if change < -tolerance => Self::Better,
            Some(_) => Self::Same,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "",
            Self::Unknown => "not stored",
            Self::Vanished => "no such case",
            Self::Worse => "WORSE",
        }
    }
}

/// A row of the table, behind the case's name.
pub(super) fn row(stored: Option<f64>, measured: f64, verdict: Verdict) -> String {
    let (before, change) = match stored {
        Some(stored) => (format!("{stored:.1}"), percent(change(stored, measured))),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let row = format!("{before:>9} {measured:>9.1} {change:>9}   {}", verdict.word());
    row.trim_end().to_owned()
}

/// With a sign and one decimal place; nothing is not negative.
fn percent(change: f64) -> String {
    let rounded = (change * 10.0).round() / 10.0;
    format!("{:+.1} %", if rounded == 0.0 { 0.0 } else { rounded })
}

/// Growth in percent.
fn change(stored: f64, measured: f64) -> f64 {
    (measured / stored - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leaves_the_tolerance_is_worse_or_better() {
        let verdict = |measured| Verdict::of(Some(200.0), measured, 5.0);
        assert_eq!(verdict(209.9), Verdict::Same);
        assert_eq!(verdict(210.1), Verdict::Worse);
        assert_eq!(verdict(190.1), Verdict::Same);
        assert_eq!(verdict(189.9), Verdict::Better);
        assert_eq!(Verdict::of(None, 1.0, 5.0), Verdict::Unknown);
    }

    #[test]
    fn a_row_tells_both_numbers_and_the_growth() {
        assert_eq!(
            row(Some(200.0), 230.04, Verdict::Worse),
            "    200.0     230.0   +15.0 %   WORSE"
        );
        assert_eq!(row(None, 7.0, Verdict::Unknown), "        -       7.0         -   not stored");
        assert_eq!(row(Some(7.0), 6.999, Verdict::Same), "      7.0       7.0    +0.0 %");
    }
}
