//! Numbers as the original reads them: with `strtol` of C, any base.

/// The number at the beginning of a text and the rest, which the original ignores; `None` if there is no
/// number, which the original takes for 0.
pub(super) fn read(text: &str) -> Option<(i64, &str)> {
    let text = text.trim();
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if unsigned.starts_with('0') => (8, unsigned),
        None => (10, unsigned),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() {
        return None;
    }
    // A number that does not fit is beyond every limit.
    let number = i64::from_str_radix(digits, radix).unwrap_or(i64::MAX);
    Some((if negative { -number } else { number }, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtol_does() {
        for (text, expected) in [
            ("0", Some((0, ""))),
            ("128", Some((128, ""))),
            (" 0x80 ", Some((128, ""))),
            ("0X1f", Some((31, ""))),
            ("010", Some((8, ""))),
            ("08", Some((0, "8"))),
            ("0x", Some((0, "x"))),
            ("-1", Some((-1, ""))),
            ("+7", Some((7, ""))),
            ("100 ms", Some((100, "ms"))),
            ("99999999999999999999", Some((i64::MAX, ""))),
            ("", None),
            ("-", None),
            ("up", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
