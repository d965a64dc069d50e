//! Moments in UTC, as TOML writes them: `2030-01-01T00:00:00Z`.

use std::fmt;
use std::time::Duration;

use toml::de::DeValue;
use toml::value::{Date, Offset, Time};

use super::report::Problems;
use super::value::Value;
use super::written::Written;

const DAY: u64 = 86_400;

/// A moment, in time since 1970-01-01 00:00 UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) Duration);

/// A date with a time and an offset from UTC.
pub(super) fn moment(value: &Value<'_>, problems: &mut Problems) -> Option<Moment> {
    let help = "write a date with a time in UTC, without quotes: 2030-01-01T00:00:00Z";
    let DeValue::Datetime(written) = value.get() else {
        problems.push(value.wrong_type("a date and time").help(help));
        return None;
    };
    let whole = written.date.zip(written.time).zip(written.offset);
    let moment = whole.and_then(|((date, time), offset)| since_1970(date, time, offset));
    if moment.is_none() {
        problems.push(value.impossible("no moment since 1970").help(help));
    }
    moment
}

fn since_1970(date: Date, time: Time, offset: Offset) -> Option<Moment> {
    let east = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes) * 60,
    };
    let days = days(date.year.into(), date.month.into(), date.day.into()) as i64;
    let of_day = i64::from(time.hour) * 3600
        + i64::from(time.minute) * 60
        + i64::from(time.second.unwrap_or(0));
    let seconds = days.checked_sub(days_to_1970())? * DAY as i64 + of_day - east;
    Some(Moment(Duration::from_secs(u64::try_from(seconds).ok()?)))
}

fn days_to_1970() -> i64 {
    days(1970, 1, 1) as i64
}

/// The days from the beginning of the Gregorian calendar to a date in it: its years are counted from March, so that the
/// leap day is their last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, second) = (self.0.as_secs() / DAY, self.0.as_secs() % DAY);
        let day = day + days_to_1970() as u64;
        // At most a year too late: none is longer than 366 days.
        let mut year = day / 365;
        while days(year, 3, 1) > day {
            year -= 1;
        }
        let of_year = day - days(year, 3, 1);
        let month = (5 * of_year + 2) / 153;
        let date = of_year - (153 * month + 2) / 5 + 1;
        let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
        let (hour, minute) = (second / 3600, second / 60 % 60);
        write!(
            formatter,
            "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{:02}Z",
            second % 60
        )
    }
}

impl Written for Moment {
    fn written(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `date -u -d @SECONDS`.
    #[test]
    fn moments_are_written_and_read_as_others_do() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let moment = Moment(Duration::from_secs(seconds));
            assert_eq!(moment.to_string(), text);
            let toml::value::Datetime { date, time, offset } = text.parse().expect("a moment");
            let read = since_1970(date.expect("it"), time.expect("it"), offset.expect("it"));
            assert_eq!(read, Some(moment));
        }
        let east = Offset::Custom { minutes: 120 };
        let (date, time) = (Date { year: 1970, month: 1, day: 1 }, |hour| Time {
            hour,
            minute: 0,
            second: None,
            nanosecond: None,
        });
        assert_eq!(since_1970(date, time(3), east), Some(Moment(Duration::from_secs(3600))));
        assert_eq!(since_1970(date, time(1), east), None, "before 1970");
    }
}
