//! Spans of time as people write them.

use std::time::Duration;

/// A span of time such as `30m`, `24h` or `7d`, of at least a minute and at most a year.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    let usage = || "not a time such as 30m, 24h or 7d".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(usage)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(usage()),
    };
    let number: u64 = number.parse().map_err(|_| usage())?;
    let all = number.saturating_mul(seconds);
    if !(60..=366 * 86_400).contains(&all) {
        return Err("not within a minute and a year".to_owned());
    }
    Ok(Duration::from_secs(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        assert_eq!(lifetime("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(lifetime("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(lifetime("7d"), Ok(Duration::from_secs(604_800)));
        for bad in ["", "h", "24", "-1h", "59s", "367d", "1é", "99999999999999999999d"] {
            assert!(lifetime(bad).is_err(), "{bad}");
        }
    }
}
