//! What a client would rather be sent: `Accept` (RFC 9110 section 12.5.1).

/// How much a client that sends this `Accept` wants `kind`, such as `text/plain`, with the parameter
/// `version`: 0 is not at all, 1000 is most. Without the field it takes everything.
pub(crate) fn quality(accept: Option<&str>, kind: &str, version: &str) -> u16 {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else { return 1000 };
    let group = kind.split('/').next().unwrap_or_default();
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (mut weight, mut versioned) = (1000, 0);
        for part in parts {
            let (key, value) = part.split_once('=')?;
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "q" => weight = thousandths(value)?,
                "version" if value == version => versioned = 1,
                "version" => return None,
                _ => {}
            }
        }
        // The most specific range counts.
        let specific = match name {
            "*/*" => 0,
            name if name.eq_ignore_ascii_case(&format!("{group}/*")) => 1,
            name if name.eq_ignore_ascii_case(kind) => 2 + versioned,
            _ => return None,
        };
        Some((specific, weight))
    });
    ranges.max().map_or(0, |(_, weight)| weight)
}

/// `0.5` as 500 (RFC 9110 section 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let weight: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&weight).then(|| (weight * 1000.0).round() as u16)
}
