//! How much a path may carry in a month: `quota = "50 GB"`.

use std::fmt;

use super::report::{Problem, Problems};
use super::table::Table;
use super::value::Value;
use super::written::Written;

/// A volume per month, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota(u64);

/// Units, the largest of those that a whole number can be written in first.
const UNITS: [(&str, u64); 9] = [
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("kB", 1000),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// The least volume, below which path statuses alone use it up, and the greatest, which no link carries in a month.
const LEAST: u64 = 1_000_000;
const MOST: u64 = 1_000_000_000_000_000;

impl Quota {
    /// A quota of so many bytes.
    #[cfg(test)]
    pub(crate) fn of(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    /// The quota that a text says; `None` if it says none.
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(end);
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
        let number: f64 = number.parse().ok()?;
        let bytes = (number * unit as f64).round();
        Some(Self(bytes as u64))
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.into_iter().find(|(_, unit)| self.0.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl Written for Quota {
    fn written(&self) -> String {
        self.to_string().written()
    }
}

/// A volume with its unit.
pub(super) fn quota(value: &Value<'_>, problems: &mut Problems) -> Option<Quota> {
    let help = "write a number and MB, GB, TB, MiB, GiB or TiB, such as \"50 GB\"";
    let Some(text) = value.get().as_str() else {
        problems.push(value.wrong_type("a string").help(help));
        return None;
    };
    let fault = match Quota::parse(text) {
        None => "not a number of bytes with its unit",
        Some(Quota(bytes)) if !(LEAST..=MOST).contains(&bytes) => "out of range: 1 MB to 1000 TB",
        found => return found,
    };
    problems.push(value.impossible(fault).help(help));
    None
}

/// Whether the table that says when a month begins says of what.
pub(super) fn check(table: &Table<'_>, problems: &mut Problems) {
    if table.has("quota_day") && !table.has("quota") {
        problems.push(
            Problem::new("`quota_day` without `quota`", table.span_of("quota_day"))
                .label("is the day on which the month of a quota begins")
                .help("add `quota = \"50 GB\"`, or remove `quota_day`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_a_number_and_a_unit() {
        for (text, bytes) in [
            ("50 GB", Some(50_000_000_000)),
            ("50GB", Some(50_000_000_000)),
            ("1.5 TB", Some(1_500_000_000_000)),
            ("2 GiB", Some(2 << 30)),
            ("0.5 MiB", Some(1 << 19)),
            ("7 kB", Some(7000)),
            ("7 B", Some(7)),
            ("50", None),
            ("50 gb", None),
            ("50 Gbit", None),
            ("GB", None),
            ("-1 GB", None),
            ("1.2.3 GB", None),
            ("1e3 GB", None),
            ("", None),
        ] {
            assert_eq!(Quota::parse(text).map(Quota::bytes), bytes, "{text}");
        }
    }

    #[test]
    fn a_volume_is_written_as_it_is_read() {
        for (bytes, text) in [
            (50_000_000_000, "50 GB"),
            (1_500_000_000_000, "1500 GB"),
            (3 << 30, "3 GiB"),
            (1_234_567, "1234567 B"),
            (MOST, "1000 TB"),
        ] {
            assert_eq!(Quota(bytes).to_string(), text);
            assert_eq!(Quota::parse(text), Some(Quota(bytes)));
        }
    }
}
