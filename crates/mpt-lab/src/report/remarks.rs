//! The remarks of a report about an experiment: skipped, scaled, unused or doubtful results.

use std::slice;

use super::answer::{Answer, repetitions};
use super::prediction::Prediction;
use super::table::title;
use crate::results::CellRecord;

/// At most this many places are named in a remark.
const NAMED: usize = 4;

/// The remarks, each a sentence or two.
pub(super) fn remarks(answer: &Answer) -> Vec<String> {
    let mut remarks = Vec::new();
    if answer.cells.is_empty() {
        remarks.push("No cell has been measured.".into());
    } else if !answer.missing.is_empty() {
        let missing: Vec<_> = answer
            .missing
            .iter()
            .map(|place| {
                let words: Vec<_> =
                    place.iter().map(|at| format!("{} {}", at.axis, at.label)).collect();
                words.join(", ")
            })
            .collect();
        let all = missing.len() + answer.cells.len();
        remarks.push(format!(
            "{} of {all} cells were not measured: {}.",
            missing.len(),
            some(&missing)
        ));
    }
    remarks.extend(uneven(answer));
    remarks.extend(skipped(answer));
    remarks.extend(scaled(answer));
    let limited = answer.cells.iter().filter_map(|cell| {
        Some((format!("Host-limited: {}", cell.host_limited.as_ref()?), place(cell)))
    });
    remarks.extend(grouped(answer, limited));
    remarks.extend(mispredicted(answer));
    remarks.extend(answer.remarks.iter().cloned());
    remarks
}

/// Which cells were measured less often than others, as after an interruption.
fn uneven(answer: &Answer) -> Option<String> {
    let (least, most) = (answer.repetitions(), answer.cells.iter().map(repetitions).max()?);
    let few = answer.cells.iter().filter(|cell| repetitions(cell) == least);
    let few: Vec<_> = few.map(place).collect();
    (least < most).then(|| {
        format!(
            "{} of {} cells have {least} repetitions, others up to {most}: {}.",
            few.len(),
            answer.cells.len(),
            some(&few)
        )
    })
}

/// Cells in which the model is wrong, and by how much.
fn mispredicted(answer: &Answer) -> Option<String> {
    let far = Prediction::of(slice::from_ref(answer)).far;
    let places: Vec<String> = far
        .iter()
        .map(|(place, off)| {
            let place = place.split_once(", ").map_or("", |(_, place)| place);
            format!("{place} ({:+.0} %)", off * 100.0).trim().to_owned()
        })
        .collect();
    let cells = match places.len() {
        0 => return None,
        1 => "1 cell".to_owned(),
        count => format!("{count} cells"),
    };
    Some(format!(
        "The model's prediction for MPT classic is more than 10 % off in {cells}: {}.",
        some(&places)
    ))
}

/// Cells with something that the profiles of their links do not explain, and what.
pub(super) fn doubts(answer: &Answer) -> Vec<(String, Vec<String>)> {
    let doubtful = answer.cells.iter().filter(|cell| cell.doubtful);
    doubtful.map(|cell| (place(cell), cell.reasons.clone())).collect()
}

fn skipped(answer: &Answer) -> Vec<String> {
    let found = answer.cells.iter().flat_map(|cell| {
        let why = |record: &crate::results::SystemRecord| {
            let why = record.skipped.clone()?;
            Some((format!("{} was skipped: {why}", title(answer, &record.system)), place(cell)))
        };
        cell.systems.iter().filter_map(why).collect::<Vec<_>>()
    });
    grouped(answer, found)
}

fn scaled(answer: &Answer) -> Vec<String> {
    let found = answer.cells.iter().filter(|cell| is_scaled(cell)).map(|cell| {
        let why = if cell.scale_reason.is_empty() { "no reason is given" } else { &cell.scale_reason };
        let words = format!(
            "Scaled by {}: rates were divided and times multiplied by it, and the figures are given in \
             the units of the file; timers of the kernel's TCP do not scale. Why: {why}",
            cell.scale
        );
        (words, place(cell))
    });
    grouped(answer, found)
}

/// The experiment's own notes, and what was taken from other cells.
pub(super) fn notes(answer: &Answer) -> Vec<String> {
    answer.entry.notes.iter().cloned().chain(shared(answer)).collect()
}

fn shared(answer: &Answer) -> Option<String> {
    let found = answer.cells.iter().flat_map(|cell| {
        let links = cell
            .links
            .iter()
            .filter_map(|link| Some((format!("link {} alone", link.name), link.alone.as_ref()?)));
        let systems = cell.systems.iter().map(|record| (title(answer, &record.system), record));
        let shared = |(name, record): (String, &crate::results::SystemRecord)| {
            record.shared.as_ref()?;
            Some((name, place(cell)))
        };
        links.chain(systems).filter_map(shared).collect::<Vec<_>>()
    });
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (name, _) in found {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    if counts.is_empty() {
        return None;
    }
    let in_cells = |count: usize| match count {
        1 => "1 cell".to_owned(),
        count => format!("{count} cells"),
    };
    let words = counts.iter().map(|(name, count)| format!("{name} in {}", in_cells(*count)));
    let words: Vec<_> = words.collect();
    Some(format!(
        "Not measured again, because another cell has the same links, settings and traffic; its figures are shown: {}.",
        words.join(", ")
    ))
}

fn is_scaled(cell: &CellRecord) -> bool {
    cell.scale.is_finite() && cell.scale > 0.0 && cell.scale != 1.0
}

/// Equal sentences once, with the places they are about.
fn grouped(answer: &Answer, found: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (words, place) in found {
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, places)) => places.push(place),
            None => groups.push((words, vec![place])),
        }
    }
    let sentence = |(words, places): (String, Vec<String>)| {
        let words = words.trim_end_matches('.');
        if places.len() == answer.cells.len() {
            format!("{words} (all cells).")
        } else {
            format!(
                "{words} ({} of {} cells: {}).",
                places.len(),
                answer.cells.len(),
                some(&places)
            )
        }
    };
    groups.into_iter().map(sentence).collect()
}

pub(super) fn some(places: &[String]) -> String {
    let named = places.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let more = places.len().saturating_sub(NAMED);
    if more > 0 { format!("{named}; and {more} more") } else { named }
}

pub(super) fn place(cell: &CellRecord) -> String {
    let place = cell.place();
    if place.is_empty() { "the only cell".into() } else { place }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Form;
    use super::*;
    use crate::results::{Coordinate, ExperimentEntry, Figure, SystemRecord};

    fn answer(cells: Vec<CellRecord>) -> Answer {
        Answer {
            entry: ExperimentEntry::default(),
            form: Form::Full,
            cells,
            missing: Vec::new(),
            remarks: vec!["Set aside.".into()],
        }
    }

    fn cell(delay: u32, why: Option<&str>, scale: f64) -> CellRecord {
        let mptcp = SystemRecord {
            system: "mptcp".into(),
            skipped: why.map(str::to_owned),
            ..SystemRecord::default()
        };
        CellRecord {
            cell: vec![Coordinate { axis: "delay".into(), label: delay.to_string(), value: None }],
            systems: vec![mptcp],
            scale,
            scale_reason: "too fast".into(),
            ..CellRecord::default()
        }
    }

    #[test]
    fn skipped_systems_are_listed_once_with_reason_and_cells() {
        let cells = (0..6).map(|n| cell(n, (n > 0).then_some("no kernel."), 1.0)).collect();
        let remarks = remarks(&answer(cells));
        assert_eq!(
            remarks,
            [
                "mptcp was skipped: no kernel (5 of 6 cells: delay 1; delay 2; delay 3; delay 4; and 1 more).",
                "Set aside."
            ]
        );
    }

    #[test]
    fn scale_is_said_with_its_reason() {
        let remarks = remarks(&answer(vec![cell(0, None, 10.0)]));
        assert!(
            remarks[0].starts_with("Scaled by 10:")
                && remarks[0].ends_with("too fast (all cells).")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut partial = answer(vec![cell(0, None, 1.0)]);
        partial.missing = vec![cell(7, None, 1.0).cell];
        assert_eq!(remarks(&partial)[0], "1 of 2 cells were not measured: delay 7.");
        partial.cells.clear();
        assert_eq!(remarks(&partial)[0], "No cell has been measured.");
    }

    #[test]
    fn cells_that_were_measured_less_often_are_named() {
        let mut cells = vec![cell(0, None, 1.0), cell(1, None, 1.0)];
        for (cell, count) in cells.iter_mut().zip([3, 2]) {
            let figure = Figure { count, ..Figure::default() };
            cell.systems[0].figures.insert("goodput_mbps".into(), figure);
        }
        let words = remarks(&answer(cells.clone()))[0].clone();
        assert_eq!(words, "1 of 2 cells have 2 repetitions, others up to 3: delay 1.");
        cells.pop();
        assert_eq!(remarks(&answer(cells)), ["Set aside."]);
    }

    #[test]
    fn figures_copied_from_other_cells_are_marked() {
        let mut copied = cell(0, None, 1.0);
        copied.systems[0].shared = Some("x/1".into());
        assert!(
            notes(&answer(vec![copied]))[0].ends_with("its figures are shown: mptcp in 1 cell.")
        );
    }

    #[test]
    fn doubts_carry_their_reasons() {
        let mut bad = cell(3, None, 1.0);
        bad.doubtful = true;
        bad.reasons = vec!["it stood still".into()];
        assert_eq!(
            doubts(&answer(vec![bad])),
            [("delay 3".to_owned(), vec!["it stood still".to_owned()])]
        );
    }
}
