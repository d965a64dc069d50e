//! Reordering by the book in a few lines: RFC 4737 and RFC 5236.

use mpt_control::Reordering;

use super::quantity::{percent, three_digits};

/// How many displacements either side, depths and occupancies are shown; the JSON has more.
const SHOWN: usize = 8;

/// In one line what share came out of order, how far and how late; `None` before the first numbered
/// packet.
pub(crate) fn order(reordering: &Reordering) -> Option<String> {
    if reordering.packets == 0 && reordering.duplicates == 0 {
        return None;
    }
    let mut text = format!("{} % of {} reordered", percent(reordering.ratio), reordering.packets);
    if reordering.reordered > 0 {
        text += &format!(
            ", extent {} (at most {}), late {} ms (at most {})",
            three_digits(reordering.extent_mean),
            reordering.extent_max,
            three_digits(reordering.late_ms_mean),
            three_digits(reordering.late_ms_max),
        );
    }
    if reordering.duplicates > 0 {
        text += &format!(", duplicates {}", reordering.duplicates);
    }
    Some(text)
}

/// The distributions, a line each with a title; those without a packet are left out.
pub(crate) fn distributions(reordering: &Reordering) -> Vec<String> {
    let mut displacements: Vec<(i64, u64)> = reordering
        .density
        .iter()
        .filter_map(|(place, &count)| Some((place.parse().ok()?, count)))
        .filter(|(place, _): &(i64, u64)| place.unsigned_abs() <= SHOWN as u64)
        .collect();
    displacements.sort_unstable();
    let numbered = |counts: &[u64], first: i64| -> Vec<(i64, u64)> {
        (first..).zip(counts.iter().copied()).take(SHOWN).collect()
    };
    let distributions = [
        ("n-reordered", numbered(&reordering.n_reordering, 1)),
        ("displacement", displacements),
        ("buffer occupancy", numbered(&reordering.buffer_occupancy, 0)),
    ];
    let line = |(title, counts): (&str, Vec<(i64, u64)>)| {
        let counts = counts.into_iter().filter(|&(_, count)| count > 0);
        let counts: Vec<String> = counts.map(|(at, count)| format!("{at}: {count}")).collect();
        (!counts.is_empty()).then(|| format!("{title}  {}", counts.join("  ")))
    };
    distributions.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn nothing_is_printed_without_data() {
        assert_eq!(order(&Reordering::default()), None);
        assert!(distributions(&Reordering::default()).is_empty());
    }

    #[test]
    fn displacements_are_in_the_order_of_numbers() {
        let density = [("-1", 2), ("-12", 1), ("-2", 1), ("0", 90), ("10", 1), ("3", 1)];
        let reordering = Reordering {
            packets: 96,
            reordered: 3,
            ratio: 0.03125,
            extent_mean: 1.5,
            extent_max: 3,
            late_ms_mean: 0.75,
            late_ms_max: 12.0,
            n_reordering: vec![3, 0, 1],
            density: BTreeMap::from(density.map(|(place, count)| (place.to_owned(), count))),
            buffer_occupancy: vec![90, 6],
            duplicates: 1,
        };
        assert_eq!(
            order(&reordering).unwrap(),
            "3.12 % of 96 reordered, extent 1.50 (at most 3), late 0.75 ms (at most 12.0), duplicates 1"
        );
        assert_eq!(
            distributions(&reordering),
            [
                "n-reordered  1: 3  3: 1",
                "displacement  -2: 1  -1: 2  0: 90  3: 1",
                "buffer occupancy  0: 90  1: 6"
            ]
        );
    }
}
