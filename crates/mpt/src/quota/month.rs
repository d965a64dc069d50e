//! Months that begin on a day of the calendar, at 0:00 UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
pub(super) const DAY: u64 = 24 * 60 * 60;

/// A clock that shows less has not been set since the host was started: 2025-01-01.
const SET: u64 = 1_735_689_600;

/// The seconds since 1970 that the host's clock shows; `None` if it is not set.
pub(crate) fn now() -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    (now >= SET).then_some(now)
}

/// From when to when a month lasts, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Month {
    /// When it begins.
    pub(crate) begin: u64,
    /// When the next one does.
    pub(crate) end: u64,
}

impl Month {
    /// The month around a time, if months begin on this day, 1 to 28.
    pub(crate) fn around(now: u64, day: u8) -> Self {
        let (year, month, today) = date(now / DAY);
        let begins = |year: i64, month: i64| days(year, month, i64::from(day)) * DAY;
        let (before, after) = (neighbour(year, month, -1), neighbour(year, month, 1));
        if today >= u64::from(day) {
            Self { begin: begins(year, month), end: begins(after.0, after.1) }
        } else {
            Self { begin: begins(before.0, before.1), end: begins(year, month) }
        }
    }
}

/// The month before or after.
fn neighbour(year: i64, month: i64, step: i64) -> (i64, i64) {
    let months = year * 12 + month - 1 + step;
    (months.div_euclid(12), months.rem_euclid(12) + 1)
}

/// The days from 1970-01-01 to a date of the Gregorian calendar from then on. Years are taken to begin in March, so that
/// the day of a leap year is their last one; then months have 30.6 days in the mean.
fn days(year: i64, month: i64, day: i64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    // 719_468 days lead from March of the year 0 to 1970.
    (365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468).unsigned_abs()
}

/// Year, month and day of the month, so many days after 1970-01-01.
fn date(count: u64) -> (i64, i64, u64) {
    // A year too late rather than too early, so that the way leads back.
    let mut year = 1970 + (count / 365) as i64;
    while days(year, 1, 1) > count {
        year -= 1;
    }
    let month = (1..=12).rev().find(|month| days(year, *month, 1) <= count).unwrap_or(1);
    (year, month, count - days(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u -d @$((86400 * DAYS))` has them.
        for (count, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (789, (1972, 2, 29)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_453, (2025, 12, 31)),
            (20_454, (2026, 1, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(count), expected, "{count}");
        }
        let mut before = date(0);
        for count in 1..60_000 {
            let (year, month, day) = date(count);
            assert_eq!(days(year, month, day as i64), count);
            let follows = (year, month, day) == (before.0, before.1, before.2 + 1)
                || day == 1 && (year, month) == neighbour(before.0, before.1, 1);
            assert!(follows, "{before:?} and {:?}", (year, month, day));
            before = (year, month, day);
        }
    }

    #[test]
    fn a_month_begins_on_its_day() {
        let at = |year, month, day| days(year, month, day) * DAY;
        for (now, day, begin, end) in [
            (at(2026, 11, 25), 1, at(2026, 11, 1), at(2026, 12, 1)),
            (at(2026, 11, 25), 25, at(2026, 11, 25), at(2026, 12, 25)),
            (at(2026, 11, 25) - 1, 25, at(2026, 10, 25), at(2026, 11, 25)),
            (at(2026, 12, 31), 15, at(2026, 12, 15), at(2027, 1, 15)),
            (at(2027, 1, 1), 15, at(2026, 12, 15), at(2027, 1, 15)),
            (at(2028, 2, 29), 28, at(2028, 2, 28), at(2028, 3, 28)),
        ] {
            assert_eq!(Month::around(now, day), Month { begin, end }, "{now} {day}");
        }
    }
}
