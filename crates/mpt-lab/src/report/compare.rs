//! Two folders of results beside each other: what became better, what worse, and what only varies.
//!
//! Only what both folders measured in the same form is compared, cell by cell. A change is
//! significant if the ranges of the two, from minimum to maximum of the repetitions, do not overlap
//! and the medians differ by more than [`NOISE`].

use serde::Serialize;

use super::answer::{self, Form};
use super::table::{figures, systems};
use crate::output::table::align;
use crate::plot::figure;
use crate::results::{Better, Figure, Quantity, Results};

/// Medians that differ by no more than this share are equal regardless of their ranges.
pub const NOISE: f64 = 0.05;

/// The comparison of two folders.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// What both have, by experiment, the changes that count most first.
    pub changes: Vec<Change>,
    /// What could not be compared, in words.
    pub left_out: Vec<String>,
}

/// A figure in both folders.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The experiment, by name.
    pub experiment: String,
    /// The cell, in words.
    pub cell: String,
    /// The system, by name, or `link:NAME`.
    pub system: String,
    /// The figure, by name.
    pub figure: String,
    /// In the first folder.
    pub a: Figure,
    /// In the second folder.
    pub b: Figure,
    /// Second over first; absent if the first is 0.
    pub ratio: Option<f64>,
    /// What it means.
    pub meaning: Meaning,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// It is within the spread, or small.
    Alike,
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// It differs, and neither way is better.
    Different,
}

/// Compares two folders: the figures of each experiment's tables, or `all` there are.
pub fn compare(a: &Results, b: &Results, all: bool) -> Comparison {
    let mut comparison = Comparison::default();
    let (in_a, in_b) = (answer::names(a), answer::names(b));
    for name in &in_a {
        if in_b.contains(name) {
            compare_experiment(&mut comparison, a, b, name, all);
        } else {
            comparison.left_out.push(format!("{name} is only in the first folder."));
        }
    }
    let only = in_b.iter().filter(|name| !in_a.contains(name));
    comparison.left_out.extend(only.map(|name| format!("{name} is only in the second folder.")));
    comparison
}

fn compare_experiment(into: &mut Comparison, a: &Results, b: &Results, name: &str, all: bool) {
    let (forms_a, forms_b) = (answer::forms(a, name), answer::forms(b, name));
    let Some(form) = forms_a.iter().copied().find(|form| forms_b.contains(form)) else {
        let word = |forms: &[Form]| match forms.first() {
            None => "no cells",
            Some(Form::Full) => "only full cells",
            Some(Form::Quick) => "only quick cells",
        };
        let (a, b) = (word(&forms_a), word(&forms_b));
        into.left_out.push(format!("{name} has {a} in the first folder and {b} in the second."));
        return;
    };
    let (one, other) = (answer::of_form(a, name, form), answer::of_form(b, name, form));
    let mut changes = Vec::new();
    let (mut alone, mut gone) = (0, 0);
    for cell in &one.cells {
        let Some(twin) = other.cells.iter().find(|twin| twin.place() == cell.place()) else {
            alone += 1;
            continue;
        };
        for system in systems(&one) {
            let (Some(first), Some(second)) = (cell.system(&system), twin.system(&system)) else {
                let one_side = cell.system(&system).is_some() != twin.system(&system).is_some();
                gone += usize::from(one_side);
                continue;
            };
            gone += usize::from(first.figures.is_empty() != second.figures.is_empty());
            let wanted = |figure: &String| all || figures(&one).contains(figure);
            for (figure, a) in first.figures.iter().filter(|(figure, _)| wanted(figure)) {
                let Some(b) = second.figures.get(figure) else { continue };
                changes.push(Change {
                    experiment: name.into(),
                    cell: cell.place(),
                    system: system.clone(),
                    figure: figure.clone(),
                    a: *a,
                    b: *b,
                    ratio: ratio(a, b),
                    meaning: meaning(figure, a, b),
                });
            }
        }
    }
    let in_b_alone = other
        .cells
        .iter()
        .filter(|cell| !one.cells.iter().any(|twin| twin.place() == cell.place()));
    let alone = alone + in_b_alone.count();
    if gone > 0 {
        into.left_out.push(format!("{name}: {gone} systems were measured in one folder only."));
    }
    if alone > 0 {
        into.left_out.push(format!("{name}: {alone} cells are in one folder only."));
    }
    changes.sort_by(|one, other| other.weight().total_cmp(&one.weight()));
    into.changes.extend(changes);
}

fn ratio(a: &Figure, b: &Figure) -> Option<f64> {
    let ratio = b.median / a.median;
    ratio.is_finite().then_some(ratio)
}

fn meaning(name: &str, a: &Figure, b: &Figure) -> Meaning {
    let apart = a.max < b.min || b.max < a.min;
    let size = a.median.abs().max(f64::MIN_POSITIVE);
    if !apart || (b.median - a.median).abs() <= NOISE * size {
        return Meaning::Alike;
    }
    match (Quantity::of(name).better, b.median > a.median) {
        (Better::Neither, _) => Meaning::Different,
        (Better::Higher, true) | (Better::Lower, false) => Meaning::Better,
        (Better::Higher, false) | (Better::Lower, true) => Meaning::Worse,
    }
}

impl Change {
    /// How much it changed: equal for twice and half as much; without bound for what was 0.
    fn size(&self) -> f64 {
        match self.ratio {
            Some(ratio) if ratio > 0.0 => ratio.ln().abs(),
            Some(_) => f64::INFINITY,
            None if self.a.median == self.b.median => 0.0,
            None => f64::INFINITY,
        }
    }

    /// For sorting: worse before better before other differences, each by size.
    fn weight(&self) -> f64 {
        let class = match self.meaning {
            Meaning::Worse => 3.0,
            Meaning::Better => 2.0,
            Meaning::Different => 1.0,
            Meaning::Alike => 0.0,
        };
        // The size, squeezed below 1.
        class + self.size().min(1e6) / (1e6 + 1.0)
    }

    /// Whether it is worse, beyond chance, by more than a share of what it was.
    pub fn is_worse_by(&self, share: f64) -> bool {
        self.meaning == Meaning::Worse
            && (self.b.median - self.a.median).abs() > share * self.a.median.abs()
    }
}

impl Comparison {
    /// Whether anything is worse, beyond chance, by more than a share of what it was.
    pub fn is_worse_by(&self, share: f64) -> bool {
        self.changes.iter().any(|change| change.is_worse_by(share))
    }

    /// As a table for each experiment.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for group in self.changes.chunk_by(|one, other| one.experiment == other.experiment) {
            lines.push(group[0].experiment.clone());
            let head = ["cell", "system", "figure", "A", "B", "B/A", ""];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(group.iter().map(row));
            lines.extend(align(&rows).into_iter().map(|line| format!("  {line}")));
            lines.push(String::new());
        }
        lines.extend(self.left_out.iter().cloned());
        let count =
            |meaning| self.changes.iter().filter(|change| change.meaning == meaning).count();
        lines.push(format!(
            "{} figures: {} worse, {} better, {} different, {} alike (spreads overlap, or within {} %).",
            self.changes.len(),
            count(Meaning::Worse),
            count(Meaning::Better),
            count(Meaning::Different),
            count(Meaning::Alike),
            NOISE * 100.0
        ));
        lines.join("\n")
    }
}

fn row(change: &Change) -> Vec<String> {
    let value = |value: &Figure| {
        if value.count > 1 {
            format!("{} [{} - {}]", figure(value.median), figure(value.min), figure(value.max))
        } else {
            figure(value.median)
        }
    };
    let mark = match change.meaning {
        Meaning::Alike => "",
        Meaning::Better => "better",
        Meaning::Worse => "WORSE",
        Meaning::Different => "different",
    };
    vec![
        if change.cell.is_empty() { "all".into() } else { change.cell.clone() },
        change.system.clone(),
        change.figure.clone(),
        value(&change.a),
        value(&change.b),
        change.ratio.map_or("-".into(), figure),
        mark.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{CellRecord, Coordinate, ExperimentEntry, Manifest, SystemRecord};

    fn folder(quick: bool, cells: &[(&str, &str, &[f64])]) -> Results {
        let cell = |(delay, name, values): &(&str, &str, &[f64])| CellRecord {
            experiment: "x".into(),
            quick,
            cell: vec![Coordinate { axis: "delay".into(), label: (*delay).into(), value: None }],
            systems: vec![SystemRecord {
                system: "classic".into(),
                figures: [((*name).to_owned(), Figure::of(values).unwrap())].into(),
                ..SystemRecord::default()
            }],
            ..CellRecord::default()
        };
        let axis = crate::results::Axis { name: "delay".into(), ..crate::results::Axis::default() };
        let entry =
            ExperimentEntry { name: "x".into(), axes: vec![axis], ..ExperimentEntry::default() };
        let run = Manifest { quick, experiments: vec![entry], ..Manifest::default() };
        Results { runs: vec![run], cells: cells.iter().map(cell).collect(), ..Results::default() }
    }

    fn meaning_of(name: &str, a: &[f64], b: &[f64]) -> Meaning {
        let compared =
            compare(&folder(false, &[("0", name, a)]), &folder(false, &[("0", name, b)]), true);
        compared.changes[0].meaning
    }

    #[test]
    fn only_what_is_beyond_the_spreads_and_five_per_cent_is_a_change() {
        let name = "goodput_mbps";
        assert_eq!(meaning_of(name, &[100.0], &[90.0]), Meaning::Worse);
        assert_eq!(meaning_of(name, &[100.0], &[96.0]), Meaning::Alike, "small");
        assert_eq!(
            meaning_of(name, &[80.0, 100.0, 101.0], &[70.0, 75.0, 81.0]),
            Meaning::Alike,
            "overlap"
        );
        assert_eq!(meaning_of(name, &[100.0], &[120.0]), Meaning::Better);
        assert_eq!(meaning_of("longest_gap_ms", &[10.0], &[12.0]), Meaning::Worse);
        assert_eq!(meaning_of("predicted_mbps", &[10.0], &[12.0]), Meaning::Different);
        assert_eq!(meaning_of("lost_packets", &[0.0], &[0.0]), Meaning::Alike);
        assert_eq!(meaning_of("lost_packets", &[0.0], &[3.0]), Meaning::Worse, "from nothing");
    }

    #[test]
    fn the_worst_stands_first_and_the_limit_decides() {
        let name = "goodput_mbps";
        let a =
            folder(false, &[("0", name, &[100.0]), ("1", name, &[100.0]), ("2", name, &[100.0])]);
        let b = folder(false, &[("0", name, &[120.0]), ("1", name, &[90.0]), ("2", name, &[60.0])]);
        let compared = compare(&a, &b, false);
        let cells: Vec<_> = compared.changes.iter().map(|change| change.cell.as_str()).collect();
        assert_eq!(cells, ["delay 2", "delay 1", "delay 0"]);
        assert!(compared.is_worse_by(0.39) && !compared.is_worse_by(0.41));
        let text = compared.text();
        assert!(text.contains("WORSE") && text.contains("3 figures: 2 worse, 1 better"), "{text}");
    }

    #[test]
    fn figures_outside_the_tables_are_compared_on_demand() {
        let a = folder(false, &[("0", "retransmits", &[1.0])]);
        assert!(compare(&a, &a, false).changes.is_empty());
        assert_eq!(compare(&a, &a, true).changes.len(), 1);
    }

    #[test]
    fn quick_and_full_are_not_compared() {
        let name = "goodput_mbps";
        let full = folder(false, &[("0", name, &[1.0])]);
        let quick = folder(true, &[("0", name, &[1.0])]);
        let compared = compare(&full, &quick, true);
        assert!(compared.changes.is_empty());
        assert!(compared.left_out[0].contains("only full cells in the first"), "{compared:?}");
    }

    #[test]
    fn figures_of_only_one_folder_are_reported() {
        let name = "goodput_mbps";
        let a = folder(false, &[("0", name, &[1.0]), ("1", name, &[1.0])]);
        let b = folder(false, &[("0", name, &[1.0]), ("2", name, &[1.0])]);
        let compared = compare(&a, &b, true);
        assert_eq!((compared.changes.len(), compared.left_out.len()), (1, 1));
        assert!(compared.left_out[0].contains("2 cells"));
        let mut other = b;
        other.runs.clear();
        other.cells.clear();
        assert!(compare(&a, &other, true).left_out[0].contains("only in the first"));
    }
}
