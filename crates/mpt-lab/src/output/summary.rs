//! Many cells as one table for people.

use super::table::align;
use super::{Style, Terminal};
use crate::results::{CellRecord, ExperimentEntry, SystemRecord};

/// What stands in the table where an experiment names no columns.
const COLUMNS: [&str; 1] = ["goodput_mbps"];

/// How many reasons for doubt are printed.
const MAX_REASONS: usize = 3;

/// An experiment's cells, one row each: what was printed, and what every system got.
pub fn text(entry: &ExperimentEntry, cells: &[CellRecord], terminal: Terminal) -> String {
    let mut lines = vec![String::new(), terminal.paint(Style::Bold, &entry.title)];
    lines.push(terminal.paint(Style::Dim, &entry.question));
    let columns: Vec<&str> = match entry.columns.as_slice() {
        [] => COLUMNS.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    for column in columns {
        lines.push(String::new());
        lines.extend(align(&table(entry, cells, column)));
    }
    let doubtful: Vec<_> = cells.iter().filter(|cell| cell.doubtful).collect();
    if !doubtful.is_empty() {
        lines.push(String::new());
        let text = format!("{} of {} cells are doubtful", doubtful.len(), cells.len());
        lines.push(terminal.paint(Style::Yellow, &text));
        lines.extend(reasons(&doubtful));
    }
    lines.join("\n")
}

/// Why cells are doubtful, the first reasons of them.
fn reasons(doubtful: &[&CellRecord]) -> Vec<String> {
    let of = |cell: &CellRecord| match cell.place() {
        place if place.is_empty() => String::new(),
        place => format!("{place}: "),
    };
    let all = doubtful.iter().flat_map(|cell| cell.reasons.iter().map(move |why| (of(cell), why)));
    let mut lines: Vec<_> = all.map(|(place, why)| format!("  {place}{why}")).collect();
    if lines.len() > MAX_REASONS {
        let more = lines.len() - MAX_REASONS;
        lines.truncate(MAX_REASONS);
        lines.push(format!("  and {more} more: see `--json` and reports"));
    }
    lines
}

/// The rows of one figure, its name and the systems' first.
fn table(entry: &ExperimentEntry, cells: &[CellRecord], figure: &str) -> Vec<Vec<String>> {
    let mut head = vec![figure.to_owned()];
    // Of a system that was left out there is nothing to show but what was printed.
    let is_shown = |system: &str| cells.iter().any(|cell| cell.system(system).is_some());
    let is_printed =
        |system: &str| cells.iter().any(|cell| cell.published(system, figure).is_some());
    for system in &entry.systems {
        if is_printed(&system.name) {
            head.push(format!("{}, published", system.name));
        }
        if is_shown(&system.name) {
            head.push(system.name.clone());
        }
    }
    head.push("each link alone".into());
    let mut rows = vec![head];
    for cell in cells {
        let scaled =
            if cell.scale > 1.0 { format!(" (scale {})", cell.scale) } else { String::new() };
        let limited = if cell.host_limited.is_some() { " (host-limited)" } else { "" };
        let mut row = vec![format!("{}{scaled}{limited}", cell.place())];
        for system in &entry.systems {
            if is_printed(&system.name) {
                row.push(number(cell.published(&system.name, figure)));
            }
            if is_shown(&system.name) {
                row.push(entry_of(cell.system(&system.name), figure));
            }
        }
        let alone = cell.links.iter().filter_map(|link| link.alone.as_ref());
        let alone: Vec<_> = alone.map(|alone| entry_of(Some(alone), figure)).collect();
        row.push(alone.join(" + "));
        rows.push(row);
    }
    rows
}

fn entry_of(system: Option<&SystemRecord>, figure: &str) -> String {
    match system {
        Some(SystemRecord { skipped: Some(_), .. }) => "skipped".into(),
        Some(record) => number(record.figures.get(figure).map(|figure| figure.median)),
        None => "-".into(),
    }
}

/// Three digits that count.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".into() };
    // Of the rounded value: 0.9996 has as many digits before the point as 1.
    let rounded = format!("{value:.2e}").parse().unwrap_or(value).abs();
    let digits = if rounded == 0.0 { 0.0 } else { rounded.log10().floor() };
    let places = (2.0 - digits).clamp(0.0, 4.0) as usize;
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let all = [Some(0.0), Some(0.01234), Some(0.9996), Some(1.234), Some(94.77), None];
        assert_eq!(all.map(number), ["0.00", "0.0123", "1.00", "1.23", "94.8", "-"]);
        assert_eq!([Some(999.6), Some(1020.4)].map(number), ["1000", "1020"]);
    }
}
