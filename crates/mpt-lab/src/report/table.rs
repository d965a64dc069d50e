//! The tables of an experiment, whatever they are written as: for each figure a row per cell, and for
//! each system what was measured beside what was published and predicted.

use super::answer::Answer;
use crate::plot::figure;
use crate::results::{CellRecord, Figure, Quantity};

/// The figure of a table if an experiment names none, and the one that predictions are about.
pub(super) const GOODPUT: &str = "goodput_mbps";
/// What the model expects of [`GOODPUT`].
pub(super) const PREDICTED: &str = "predicted_mbps";

/// With at most this many cells, all figures fit one table, a row for each.
const FEW: usize = 2;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What stands above it.
    pub title: String,
    /// Names over groups of columns, with the number of columns of each.
    pub groups: Vec<(String, usize)>,
    /// What stands over each column.
    pub head: Vec<String>,
    /// How many columns at the left say where a row is.
    pub stubs: usize,
    /// The rows, each as long as `head`.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Whether its cell is doubtful.
    pub doubtful: bool,
    /// What is in each column.
    pub entries: Vec<Entry>,
}

/// What is in a column of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The figure or name; empty if there is none.
    pub text: String,
    /// What stands smaller beside it; empty if nothing.
    pub small: String,
}

impl Entry {
    fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), small: String::new() }
    }
}

/// The tables of an experiment, without those that would be empty.
pub fn tables(answer: &Answer) -> Vec<Table> {
    let figures = figures(answer);
    let cells: Vec<&CellRecord> = answer.cells.iter().collect();
    if answer.cells.len() <= FEW && figures.len() > 1 {
        let rows = cells.iter().flat_map(|cell| figures.iter().map(|name| (*cell, name.as_str())));
        return vec![table(answer, "Figures", &rows.collect::<Vec<_>>(), true)]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect();
    }
    let one = |name: &String| {
        let rows: Vec<_> = cells.iter().map(|cell| (*cell, name.as_str())).collect();
        table(answer, &Quantity::of(name).heading(), &rows, false)
    };
    figures.iter().map(one).filter(|table| !table.rows.is_empty()).collect()
}

/// The names of the figures that have a table.
pub(super) fn figures(answer: &Answer) -> Vec<String> {
    if answer.entry.columns.is_empty() {
        vec![GOODPUT.into()]
    } else {
        answer.entry.columns.clone()
    }
}

/// The systems of an experiment and its links alone, by name, in the order of the tables.
pub(super) fn systems(answer: &Answer) -> Vec<String> {
    let listed = answer.entry.systems.iter().map(|system| system.name.clone());
    let records = answer.cells.iter().flat_map(|cell| &cell.systems);
    let links = answer.cells.iter().flat_map(|cell| &cell.links);
    let links = links.filter(|link| link.alone.is_some()).map(|link| format!("link:{}", link.name));
    let printed = answer.cells.iter().flat_map(|cell| &cell.published);
    let printed = printed.map(|printed| printed.system.clone());
    let mut names: Vec<String> = Vec::new();
    for name in
        listed.chain(records.map(|record| record.system.clone())).chain(links).chain(printed)
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A system's name for people.
pub(super) fn title(answer: &Answer, system: &str) -> String {
    if let Some(link) = system.strip_prefix("link:") {
        return format!("link {link} alone");
    }
    let known = answer.entry.systems.iter().find(|entry| entry.name == system);
    match known {
        Some(entry) if !entry.title.is_empty() => entry.title.clone(),
        _ => system.to_owned(),
    }
}

fn table(answer: &Answer, title_of_it: &str, rows: &[(&CellRecord, &str)], named: bool) -> Table {
    let axes = &answer.entry.axes;
    let mut head: Vec<String> = axes
        .iter()
        .map(|axis| {
            let unit =
                if axis.unit.is_empty() { String::new() } else { format!(", {}", axis.unit) };
            format!("{}{unit}", axis.name)
        })
        .collect();
    if named {
        head.push("figure".into());
    }
    if head.is_empty() {
        head.push("cell".into());
    }
    let stubs = head.len();
    let mut groups = vec![(String::new(), stubs)];
    let mut columns: Vec<(String, Column)> = Vec::new();
    for system in systems(answer) {
        let has = |column: &Column| {
            rows.iter().any(|(cell, name)| column.entry(cell, &system, name).is_some())
        };
        let skipped = || {
            rows.iter().any(|(cell, _)| {
                cell.system(&system).is_some_and(|record| record.skipped.is_some())
            })
        };
        let kept: Vec<_> = Column::ALL
            .into_iter()
            .filter(|column| has(column) || (*column == Column::Measured && skipped()))
            .collect();
        if !kept.is_empty() {
            groups.push((title(answer, &system), kept.len()));
            head.extend(kept.iter().map(|column| column.head().to_owned()));
            columns.extend(kept.into_iter().map(|column| (system.clone(), column)));
        }
    }
    if columns.is_empty() {
        return Table::default();
    }
    let row = |(cell, name): &(&CellRecord, &str)| {
        let on_axis = |axis: &crate::results::Axis| {
            let at = cell.cell.iter().find(|at| at.axis == axis.name);
            Entry::of(at.map(|at| at.label.clone()).unwrap_or_default())
        };
        let mut entries: Vec<Entry> = axes.iter().map(on_axis).collect();
        if named {
            entries.push(Entry::of(Quantity::of(name).heading()));
        }
        if entries.is_empty() {
            entries.push(Entry::of("all"));
        }
        entries.extend(
            columns
                .iter()
                .map(|(system, column)| column.entry(cell, system, name).unwrap_or_default()),
        );
        Row { doubtful: cell.doubtful, entries }
    };
    Table { title: title_of_it.into(), groups, head, stubs, rows: rows.iter().map(row).collect() }
}

/// The columns for a figure of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Measured,
    Published,
    Ratio,
    Predicted,
    Deviation,
}

impl Column {
    const ALL: [Self; 5] =
        [Self::Measured, Self::Published, Self::Ratio, Self::Predicted, Self::Deviation];

    fn head(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Ratio => "ours ÷ published",
            Self::Predicted => "predicted",
            Self::Deviation => "prediction off by",
        }
    }

    fn entry(self, cell: &CellRecord, system: &str, name: &str) -> Option<Entry> {
        let record = cell.system(system);
        let median = |name: &str| cell.figure(system, name).filter(|value| value.is_finite());
        let predicted = || if name == GOODPUT { median(PREDICTED) } else { None };
        match self {
            Self::Measured => match record {
                Some(record) if record.skipped.is_some() => Some(Entry::of("skipped")),
                Some(record) => record.figures.get(name).copied().and_then(measured),
                None => None,
            },
            Self::Published => Some(Entry::of(cell.published(system, name)?.to_string())),
            Self::Ratio => {
                let quotient = median(name)? / cell.published(system, name)?;
                quotient.is_finite().then(|| Entry::of(figure(quotient)))
            }
            Self::Predicted => Some(Entry::of(figure(predicted()?))),
            Self::Deviation => {
                let off = predicted()? / median(name)? - 1.0;
                // Rounded first, and without the sign of what is less than nothing.
                let percent = (off * 1000.0).round() / 10.0 + 0.0;
                off.is_finite().then(|| Entry::of(format!("{percent:+.1} %")))
            }
        }
    }
}

/// A figure with its spread.
fn measured(value: Figure) -> Option<Entry> {
    let Figure { median, min, max, count } = value;
    if !median.is_finite() {
        return None;
    }
    let (low, high) = (figure(min), figure(max));
    let small = if count > 1 && low != high { format!("{low} – {high}") } else { String::new() };
    Some(Entry { text: figure(median), small })
}

#[cfg(test)]
mod tests {
    use super::super::answer::Form;
    use super::*;
    use crate::results::{
        Axis, Coordinate, ExperimentEntry, LinkRecord, Published, SystemEntry, SystemRecord,
    };

    fn figure_of(values: &[f64]) -> Figure {
        Figure::of(values).unwrap()
    }

    fn cell(delay: &str) -> CellRecord {
        let classic = SystemRecord {
            system: "classic".into(),
            figures: [
                (GOODPUT.to_owned(), figure_of(&[90.0, 91.0, 99.0])),
                (PREDICTED.to_owned(), figure_of(&[94.0])),
                ("retransmits".to_owned(), figure_of(&[7.0])),
            ]
            .into(),
            ..SystemRecord::default()
        };
        let mptcp = SystemRecord {
            system: "mptcp".into(),
            skipped: Some("no kernel".into()),
            ..SystemRecord::default()
        };
        let alone = SystemRecord {
            figures: [(GOODPUT.to_owned(), figure_of(&[40.0]))].into(),
            ..SystemRecord::default()
        };
        CellRecord {
            cell: vec![Coordinate { axis: "delay".into(), label: delay.into(), value: None }],
            systems: vec![classic, mptcp],
            links: vec![LinkRecord {
                name: "a".into(),
                alone: Some(alone),
                ..LinkRecord::default()
            }],
            published: vec![Published {
                system: "classic".into(),
                figure: GOODPUT.into(),
                value: 104.5,
            }],
            doubtful: delay == "20",
            ..CellRecord::default()
        }
    }

    fn answer(delays: &[&str], columns: &[&str]) -> Answer {
        let entry = ExperimentEntry {
            axes: vec![Axis { name: "delay".into(), unit: "ms".into(), ..Axis::default() }],
            systems: vec![SystemEntry { name: "classic".into(), title: "MPT classic".into() }],
            columns: columns.iter().map(|&name| name.into()).collect(),
            ..ExperimentEntry::default()
        };
        let cells = delays.iter().map(|delay| cell(delay)).collect();
        Answer { entry, form: Form::Full, cells, missing: Vec::new(), remarks: Vec::new() }
    }

    #[test]
    fn a_row_has_measured_published_ratio_and_prediction() {
        let tables = tables(&answer(&["0", "10", "20"], &[]));
        assert_eq!(tables.len(), 1);
        let table = &tables[0];
        assert_eq!(table.title, "Goodput, Mbit/s");
        let groups: Vec<_> =
            table.groups.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(groups, [("", 1), ("MPT classic", 5), ("mptcp", 1), ("link a alone", 1)]);
        assert_eq!(table.head[0], "delay, ms");
        let texts: Vec<_> = table.rows[2].entries.iter().map(|entry| entry.text.as_str()).collect();
        assert_eq!(texts, ["20", "91.0", "104.5", "0.871", "94.0", "+3.3 %", "skipped", "40.0"]);
        assert_eq!(table.rows[2].entries[1].small, "90.0 – 99.0");
        assert!(table.rows[2].doubtful && !table.rows[0].doubtful);
    }

    #[test]
    fn a_prediction_that_is_as_good_as_right_is_off_by_nothing() {
        let mut answer = answer(&["0", "10", "20"], &[]);
        for (cell, predicted) in answer.cells.iter_mut().zip([90.998, 91.002, 90.0]) {
            let figures = &mut cell.systems[0].figures;
            figures.insert(PREDICTED.to_owned(), figure_of(&[predicted]));
        }
        let rows = tables(&answer).remove(0).rows;
        let off: Vec<_> = rows.iter().map(|row| row.entries[5].text.as_str()).collect();
        assert_eq!(off, ["+0.0 %", "+0.0 %", "-1.1 %"]);
    }

    #[test]
    fn every_figure_has_a_table_and_only_goodput_is_predicted() {
        let tables = tables(&answer(&["0", "10", "20"], &[GOODPUT, "retransmits", "unknown_ms"]));
        let shape: Vec<_> =
            tables.iter().map(|table| (table.title.as_str(), table.head.len())).collect();
        assert_eq!(shape[..2], [("Goodput, Mbit/s", 8), ("Retransmits", 3)]);
        assert!(
            tables
                .iter()
                .all(|table| table.rows.iter().all(|row| row.entries.len() == table.head.len()))
        );
    }

    #[test]
    fn few_cells_share_a_table_with_a_row_per_figure() {
        let tables = tables(&answer(&["0"], &[GOODPUT, "retransmits"]));
        assert_eq!((tables.len(), tables[0].rows.len(), tables[0].stubs), (1, 2, 2));
        assert_eq!(tables[0].rows[1].entries[1].text, "Retransmits");
    }

    #[test]
    fn no_cells_make_no_table() {
        assert!(tables(&answer(&[], &[])).is_empty());
        assert!(tables(&answer(&[], &["a", "b"])).is_empty());
    }
}
