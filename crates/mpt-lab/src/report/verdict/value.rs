//! The value of a cell that a target is about, and how far it lies beyond the bound.

use crate::results::{Bound, CellRecord, Coordinate, Figure, OfRuns, Target};

/// The `of` of a target that is measured against the publication.
pub(super) const PUBLISHED: &str = "published";

pub(super) fn is_about(target: &Target, place: &[Coordinate]) -> bool {
    let is_at = |axis: &String, labels: &Vec<String>| {
        place.iter().any(|at| at.axis == *axis && labels.contains(&at.label))
    };
    target.only.iter().all(|(axis, labels)| is_at(axis, labels))
}

/// The figure or quotient that is held against the bound; `None` if the cell has nothing to do with the
/// target, an error with what is missing.
pub(super) fn value(cell: &CellRecord, target: &Target) -> Option<Result<f64, String>> {
    let Target { system, figure, of, .. } = target;
    let printed_by = match of.split_once('/') {
        _ if of == PUBLISHED => Some(system.as_str()),
        Some((PUBLISHED, other)) => Some(other),
        _ => None,
    };
    let divisor = match (printed_by, of.as_str()) {
        (Some(other), _) => Ok(cell.published(other, figure)?),
        (None, "") => Ok(1.0),
        (None, other) => match other.rsplit_once('/') {
            Some((system, figure)) => measured(cell, system, figure),
            None => measured(cell, system, other),
        }
        .map(|figure| figure.median),
    };
    let quotient = measured(cell, system, figure).and_then(|value| {
        let quotient = of_runs(value, target) / divisor?;
        if quotient.is_finite() { Ok(quotient) } else { Err(format!("{of} is 0")) }
    });
    Some(quotient)
}

/// The one value of all repetitions that counts.
fn of_runs(figure: Figure, target: &Target) -> f64 {
    match (target.of_runs, target.bound) {
        (OfRuns::Median, _) => figure.median,
        (OfRuns::Worst, Bound::AtLeast) => figure.min,
        (OfRuns::Worst, Bound::AtMost) => figure.max,
        (OfRuns::Worst, Bound::Within) => {
            let far = |value: f64| (value - 1.0).abs();
            if far(figure.min) > far(figure.max) { figure.min } else { figure.max }
        }
    }
}

fn measured(cell: &CellRecord, system: &str, figure: &str) -> Result<Figure, String> {
    let Some(record) = cell.system(system) else {
        return Err(format!("{system} was not measured"));
    };
    if let Some(why) = &record.skipped {
        return Err(format!("{system} was skipped: {why}"));
    }
    let value = record.figures.get(figure).copied();
    value
        .filter(|figure| figure.median.is_finite())
        .ok_or_else(|| format!("{system} has no {figure}"))
}

/// How far a value is beyond the bound; below 0 where it is on the right side.
pub(super) fn excess(target: &Target, cell: &CellRecord, value: f64) -> f64 {
    let longest = cell.links.iter().map(|link| link.rtt_ms).fold(0.0, f64::max);
    let allowed = target.value + target.round_trips * longest;
    let by = match target.bound {
        Bound::AtLeast => allowed - value,
        Bound::AtMost => value - allowed,
        Bound::Within => (value - 1.0).abs() - allowed,
    };
    // What is written as 0.97 must not be missed by the last bit of a quotient.
    let slack = 1e-9 * (1.0 + allowed.abs());
    if by.abs() <= slack { 0.0 } else { by }
}
