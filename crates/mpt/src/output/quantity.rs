//! Numbers for people: three digits and a unit.

use std::collections::BTreeMap;

/// A size in bytes: `4.19 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (value, prefix) = scaled(bytes as f64);
    format!("{value} {prefix}B")
}

/// A number of things, `what` being one: `1 packet`, `2 packets`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A rate in bits per second: `94.2 Mbit/s`.
pub(crate) fn rate(bits: f64) -> String {
    let (value, prefix) = scaled(bits);
    format!("{value} {prefix}bit/s")
}

/// A number under a title that has the unit: `94.2 M`.
pub(crate) fn short(number: f64) -> String {
    let (value, prefix) = scaled(number);
    format!("{value} {prefix}").trim_end().to_owned()
}

/// A share, 0 to 1, in percent without the sign: `0.41`.
pub(crate) fn percent(share: f64) -> String {
    three_digits(share.max(0.0) * 100.0)
}

/// The two largest units of a time in seconds that matter.
pub(crate) fn duration(seconds: f64) -> String {
    // Not a number and what lies in the future count as nothing.
    let seconds = seconds.max(0.0);
    // What would be rounded to the next unit belongs to it.
    if seconds < 0.9995 {
        return format!("{:.0} ms", seconds * 1000.0);
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds.max(60.0);
    let minutes = (seconds / 60.0) as u64;
    match minutes {
        0..60 => format!("{minutes} min {:02.0} s", (seconds % 60.0).floor()),
        60..1440 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, minutes % 1440 / 60),
    }
}

/// The counts that are not zero, by name: `late 3, lost 1`. Empty if all are.
pub(crate) fn counts(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter().filter(|(_, count)| **count > 0);
    let counts: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    counts.join(", ")
}

/// Milliseconds, to the tenth where that matters.
pub(crate) fn ms(value: f64) -> String {
    let decimals = if value < 9.95 { 1 } else { 0 };
    format!("{value:.decimals$}")
}

/// Three digits, as many of them behind the point as are needed.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value {
        0.0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Three digits below 1000 and the decimal prefix that makes it so.
fn scaled(number: f64) -> (String, &'static str) {
    let mut value = number.max(0.0);
    let mut prefix = "";
    // What would be rounded to 1000 belongs to the next prefix.
    for larger in ["k", "M", "G", "T", "P"] {
        if value < 999.5 {
            break;
        }
        (value, prefix) = (value / 1000.0, larger);
    }
    (three_digits(value), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (value, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_501, "1.00 MB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn rates_have_three_digits_and_a_unit_or_its_prefix() {
        for (value, text, brief) in [
            (0.0, "0 bit/s", "0"),
            (-3.0, "0 bit/s", "0"),
            (f64::NAN, "0 bit/s", "0"),
            (512.4, "512 bit/s", "512"),
            (94_240_000.0, "94.2 Mbit/s", "94.2 M"),
            (999_600_000.0, "1.00 Gbit/s", "1.00 G"),
        ] {
            assert_eq!((rate(value).as_str(), short(value).as_str()), (text, brief));
        }
    }

    #[test]
    fn shares_become_percent() {
        for (value, text) in
            [(0.0, "0"), (0.00123, "0.12"), (0.5, "50.0"), (1.0, "100"), (-0.1, "0")]
        {
            assert_eq!(percent(value), text);
        }
    }

    #[test]
    fn times_have_the_units_that_matter() {
        for (value, text) in [
            (-1.0, "0 ms"),
            (f64::NAN, "0 ms"),
            (0.0123, "12 ms"),
            (0.9999, "1.0 s"),
            (1.75, "1.8 s"),
            (59.97, "1 min 00 s"),
            (61.0, "1 min 01 s"),
            (3_600.0 * 5.0 + 120.0, "5 h 02 min"),
            (86_400.0 * 9.0 + 7_200.0, "9 d 2 h"),
        ] {
            assert_eq!(duration(value), text);
        }
    }

    #[test]
    fn counts_that_are_zero_are_left_out() {
        let map = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
        };
        assert_eq!(counts(&map(&[("late", 3), ("none", 0), ("window", 1)])), "late 3, window 1");
        assert_eq!(counts(&map(&[("none", 0)])), "");
    }
}
