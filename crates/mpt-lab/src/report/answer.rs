//! Which cells answer an experiment's question: the latest of each place, full ones before quick ones.

use super::table::GOODPUT;
use super::versions;
use crate::results::{
    Axis, CellRecord, Coordinate, ExperimentEntry, Manifest, Plot, PlotKind, Results, merge,
};

/// Whether cells were measured in full or in the short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the file says.
    Full,
    /// The short form, which claims no transients and no distributions.
    Quick,
}

impl Form {
    fn of(quick: bool) -> Self {
        if quick { Self::Quick } else { Self::Full }
    }
}

/// So many repetitions make a run full: with fewer, nothing is known of how results vary.
const REPETITIONS: usize = 3;

/// An experiment with the cells that count.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The experiment, as the latest run of this form presents it.
    pub entry: ExperimentEntry,
    /// How its cells were measured.
    pub form: Form,
    /// The latest record of each place, of all its repetitions, in the order of the axes.
    pub cells: Vec<CellRecord>,
    /// Places that belong to the experiment and have no record.
    pub missing: Vec<Vec<Coordinate>>,
    /// What was set aside, in words.
    pub remarks: Vec<String>,
}

impl Answer {
    /// How often its cells were measured; of several numbers the least, 0 without cells.
    pub fn repetitions(&self) -> usize {
        self.cells.iter().map(repetitions).min().unwrap_or(0)
    }

    /// How its cells were measured, in words: `full`, `quick`, `single run` or `2 repetitions`.
    pub fn form_in_words(&self) -> String {
        match (self.form, self.repetitions()) {
            (Form::Quick, _) => "quick".into(),
            (Form::Full, 1) => "single run".into(),
            (Form::Full, count @ 2..REPETITIONS) => format!("{count} repetitions"),
            (Form::Full, _) => "full".into(),
        }
    }

    /// The plots of the experiment; of one that asks for none those that its axes suggest.
    pub fn plots(&self) -> Vec<Plot> {
        let entry = &self.entry;
        if !entry.plots.is_empty() {
            return entry.plots.clone();
        }
        let figure = entry.columns.first().cloned().unwrap_or_else(|| GOODPUT.into());
        let numeric = |axis: &Axis| axis.labels.iter().all(|label| label.parse::<f64>().is_ok());
        let x = |axis: &Axis| axis.name.clone();
        match entry.axes.as_slice() {
            [] => vec![Plot { kind: PlotKind::Time, ..Plot::default() }],
            [axis] if axis.labels.len() > 2 && numeric(axis) => {
                vec![Plot { x: x(axis), figure, ..Plot::default() }]
            }
            [axis] => vec![Plot { kind: PlotKind::Bars, x: x(axis), figure, ..Plot::default() }],
            [.., by, last] if last.labels.len() > 2 && numeric(last) => {
                vec![Plot { x: x(last), by: x(by), figure, ..Plot::default() }]
            }
            [first, .., last] => {
                let kind = PlotKind::Bars;
                vec![Plot { kind, x: x(last), by: x(first), figure, ..Plot::default() }]
            }
        }
    }
}

/// How often a cell was measured.
pub(super) fn repetitions(cell: &CellRecord) -> usize {
    let figures = cell.systems.iter().flat_map(|system| system.figures.iter());
    // What was computed beforehand was not measured.
    let measured = figures.filter(|(name, _)| !name.starts_with("predicted"));
    measured.map(|(_, figure)| figure.count).max().unwrap_or(1)
}

/// The answers of all experiments, in the order in which they were first run.
pub fn answers(results: &Results) -> Vec<Answer> {
    names(results).into_iter().filter_map(|name| answer(results, name)).collect()
}

/// The names of all experiments of runs and cells, in the order of their first occurrence.
pub fn names(results: &Results) -> Vec<&str> {
    let entries = results.runs.iter().flat_map(|run| &run.experiments);
    let listed = entries.map(|entry| entry.name.as_str());
    let measured = results.cells.iter().map(|cell| cell.experiment.as_str());
    let mut names = Vec::new();
    for name in listed.chain(measured) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The forms in which an experiment has cells.
pub fn forms(results: &Results, name: &str) -> Vec<Form> {
    let has = |form: &Form| {
        let mut cells = results.cells.iter().filter(|cell| cell.experiment == name);
        cells.any(|cell| Form::of(cell.quick) == *form)
    };
    [Form::Full, Form::Quick].into_iter().filter(has).collect()
}

/// The answer of an experiment: from its full cells if there are any. `None` if neither a run nor a
/// cell has it.
pub fn answer(results: &Results, name: &str) -> Option<Answer> {
    let forms = forms(results, name);
    let latest = || {
        let runs = results.runs.iter().rev();
        runs.filter(|run| run.experiments.iter().any(|entry| entry.name == name))
            .map(|run| Form::of(run.quick))
            .next()
    };
    // An experiment that was begun and has no cell yet is shown too.
    let form = forms.first().copied().or_else(latest)?;
    let mut answer = of_form(results, name, form);
    if forms.len() > 1 {
        answer.remarks.push("Cells of quick runs are not used, because there are others.".into());
    }
    Some(answer)
}

/// The answer of an experiment from its cells of one form.
pub fn of_form(results: &Results, name: &str, form: Form) -> Answer {
    let of_this_form = |run: &&Manifest| Form::of(run.quick) == form;
    let find = |run: &Manifest| run.experiments.iter().find(|entry| entry.name == name).cloned();
    let entry = results.runs.iter().rev().filter(of_this_form).find_map(find);
    let known = entry.is_some();
    let entry = entry
        .or_else(|| results.runs.iter().rev().find_map(find))
        .unwrap_or_else(|| ExperimentEntry { name: name.into(), ..ExperimentEntry::default() });

    let of_this_form =
        results.cells.iter().filter(|cell| cell.experiment == name && Form::of(cell.quick) == form);
    let axes = |cell: &CellRecord| cell.cell.iter().map(|at| at.axis.clone()).collect::<Vec<_>>();
    let wanted = if known {
        entry.axes.iter().map(|axis| axis.name.clone()).collect()
    } else {
        of_this_form.clone().next_back().map(axes).unwrap_or_default()
    };
    let mut places: Vec<Vec<&CellRecord>> = Vec::new();
    let mut strangers = 0;
    for cell in of_this_form {
        if axes(cell) != wanted {
            strangers += 1;
            continue;
        }
        match places.iter_mut().find(|place| is_same_place(&place[0].cell, &cell.cell)) {
            Some(place) => place.push(cell),
            None => places.push(vec![cell]),
        }
    }
    let mut cells: Vec<CellRecord> =
        places.iter().filter_map(|lines| merge(&results.runs, lines)).collect();
    let entry = with_strangers(entry, &cells);
    cells.sort_by_key(|cell| order(&entry, &cell.cell));
    let missing = missing(&entry, form, &cells);
    let mut remarks = Vec::new();
    if strangers > 0 {
        remarks.push(format!(
            "{strangers} older cells have other axes than the experiment and are not used."
        ));
    }
    remarks.extend(versions::remarks(&results.runs, &cells));
    Answer { entry, form, cells, missing, remarks }
}

fn is_same_place(one: &[Coordinate], other: &[Coordinate]) -> bool {
    let labels = |place: &[Coordinate]| -> Vec<(String, String)> {
        place.iter().map(|at| (at.axis.clone(), at.label.clone())).collect()
    };
    labels(one) == labels(other)
}

/// The experiment with labels that occur only in cells appended to its axes.
fn with_strangers(mut entry: ExperimentEntry, cells: &[CellRecord]) -> ExperimentEntry {
    for at in cells.iter().flat_map(|cell| &cell.cell) {
        let position = entry.axes.iter().position(|axis| axis.name == at.axis);
        let axis = if let Some(position) = position {
            &mut entry.axes[position]
        } else {
            let name = at.axis.clone();
            entry.axes.push(Axis { name, ..Axis::default() });
            let last = entry.axes.len() - 1;
            &mut entry.axes[last]
        };
        if !axis.labels.contains(&at.label) {
            axis.labels.push(at.label.clone());
        }
    }
    entry
}

fn order(entry: &ExperimentEntry, place: &[Coordinate]) -> Vec<usize> {
    let position = |at: &Coordinate| {
        let axis = entry.axes.iter().find(|axis| axis.name == at.axis)?;
        axis.labels.iter().position(|label| *label == at.label)
    };
    place.iter().map(|at| position(at).unwrap_or(usize::MAX)).collect()
}

/// The places that have no record, of those that the run was to measure.
fn missing(entry: &ExperimentEntry, form: Form, cells: &[CellRecord]) -> Vec<Vec<Coordinate>> {
    let places = entry.axes.iter().fold(vec![Vec::new()], |places: Vec<Vec<Coordinate>>, axis| {
        let longer = |place: &Vec<Coordinate>| {
            let at = |label: &String| {
                let at = Coordinate { axis: axis.name.clone(), label: label.clone(), value: None };
                [place.clone(), vec![at]].concat()
            };
            let meant = if axis.kept.is_empty() { &axis.labels } else { &axis.kept };
            meant.iter().map(at).collect::<Vec<_>>()
        };
        places.iter().flat_map(longer).collect()
    });
    let meant = cells.iter().map(|cell| cell.count).max().unwrap_or(0);
    let is_told = entry.axes.iter().all(|axis| !axis.kept.is_empty());
    if form == Form::Quick && !is_told && meant != places.len() && !cells.is_empty() {
        return Vec::new();
    }
    let measured =
        |place: &Vec<Coordinate>| cells.iter().any(|cell| is_same_place(&cell.cell, place));
    places.into_iter().filter(|place| !measured(place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Figure, SystemRecord};

    fn cell(delay: &str, quick: bool, run: &str) -> CellRecord {
        let at =
            Coordinate { axis: "delay".into(), label: delay.into(), value: delay.parse().ok() };
        CellRecord {
            run: run.into(),
            experiment: "x".into(),
            cell: vec![at],
            quick,
            count: 3,
            ..CellRecord::default()
        }
    }

    fn results(cells: Vec<CellRecord>) -> Results {
        let axis = Axis {
            name: "delay".into(),
            labels: ["0", "10", "20"].map(str::to_owned).into(),
            ..Axis::default()
        };
        let entry = |title: &str| ExperimentEntry {
            name: "x".into(),
            title: title.into(),
            axes: vec![axis.clone()],
            ..ExperimentEntry::default()
        };
        let run = |id: &str, quick| Manifest {
            id: id.into(),
            quick,
            experiments: vec![entry(id)],
            ..Manifest::default()
        };
        Results {
            runs: vec![run("full", false), run("again", false), run("quick", true)],
            cells,
            ..Results::default()
        }
    }

    fn places(answer: &Answer) -> Vec<(String, String)> {
        answer.cells.iter().map(|cell| (cell.cell[0].label.clone(), cell.run.clone())).collect()
    }

    #[test]
    fn the_latest_of_each_place_counts_in_the_order_of_the_axis() {
        let cells =
            vec![cell("20", false, "full"), cell("0", false, "full"), cell("20", false, "again")];
        let answer = answer(&results(cells), "x").unwrap();
        assert_eq!(places(&answer), [("0".into(), "full".into()), ("20".into(), "again".into())]);
        assert_eq!(answer.entry.title, "again");
        assert_eq!(answer.missing.len(), 1);
        assert_eq!(answer.missing[0][0].label, "10");
    }

    #[test]
    fn a_full_run_wins_over_a_later_quick_one_and_they_are_not_mixed() {
        let cells =
            vec![cell("0", false, "full"), cell("10", true, "quick"), cell("0", true, "quick")];
        let answer = answer(&results(cells), "x").unwrap();
        assert_eq!((answer.form, places(&answer)), (Form::Full, vec![("0".into(), "full".into())]));
        assert!(answer.remarks[0].contains("quick"), "{:?}", answer.remarks);
    }

    #[test]
    fn full_is_only_what_was_measured_three_times() {
        let cell = |count| {
            let figures = [
                (GOODPUT, Figure { count, ..Figure::default() }),
                ("predicted_mbps", Figure { count: 9, ..Figure::default() }),
            ];
            let figures = figures.map(|(name, figure)| (name.to_owned(), figure)).into();
            let system = SystemRecord { figures, ..SystemRecord::default() };
            CellRecord { systems: vec![system], ..cell("0", false, "full") }
        };
        for (counts, words) in [
            (&[1][..], "single run"),
            (&[2], "2 repetitions"),
            (&[3], "full"),
            (&[5, 1], "single run"),
            (&[5, 4], "full"),
        ] {
            let mut answer = answer(&results(Vec::new()), "x").unwrap();
            (answer.form, answer.cells) = (Form::Full, counts.iter().map(|it| cell(*it)).collect());
            assert_eq!(answer.form_in_words(), words, "{counts:?}");
            answer.form = Form::Quick;
            assert_eq!(answer.form_in_words(), "quick");
        }
    }

    #[test]
    fn an_experiment_without_plots_gets_one_that_its_axes_suggest() {
        let axis = |name: &str, labels: &[&str]| Axis {
            name: name.into(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..Axis::default()
        };
        let (delay, kind) = (axis("delay", &["0", "10", "20"]), axis("kind", &["near", "far"]));
        for (axes, plot, x, by) in [
            (vec![], PlotKind::Time, "", ""),
            (vec![delay.clone()], PlotKind::Lines, "delay", ""),
            (vec![kind.clone()], PlotKind::Bars, "kind", ""),
            (vec![axis("delay", &["0", "10"])], PlotKind::Bars, "delay", ""),
            (vec![kind.clone(), delay.clone()], PlotKind::Lines, "delay", "kind"),
            (vec![delay, kind], PlotKind::Bars, "kind", "delay"),
        ] {
            let mut answer = answer(&results(vec![cell("0", false, "full")]), "x").unwrap();
            answer.entry.axes = axes;
            let plots = answer.plots();
            let [one] = plots.as_slice() else { panic!("{plots:?}") };
            assert_eq!((one.kind, one.x.as_str(), one.by.as_str()), (plot, x, by));
            answer.entry.plots = vec![Plot { title: "own".into(), ..Plot::default() }];
            assert_eq!(answer.plots()[0].title, "own");
        }
    }

    #[test]
    fn a_quick_run_reports_only_its_own_cells_as_missing() {
        let quick = |count| CellRecord { count, ..cell("0", true, "quick") };
        let answer_of = |cells| answer(&results(cells), "x").unwrap();
        assert!(answer_of(vec![quick(1)]).missing.is_empty());
        assert_eq!(answer_of(vec![quick(3)]).missing.len(), 2);
        assert_eq!(answer_of(vec![quick(3)]).form, Form::Quick);
    }

    #[test]
    fn cells_with_other_axes_are_set_aside_and_counted() {
        let mut old = cell("0", false, "full");
        old.cell[0].axis = "speed".into();
        let answer = answer(&results(vec![old, cell("0", false, "full")]), "x").unwrap();
        assert_eq!(answer.cells.len(), 1);
        assert!(answer.remarks[0].contains("1 older"), "{:?}", answer.remarks);
    }

    #[test]
    fn cells_without_a_run_are_shown() {
        let mut results = results(vec![cell("7", false, "lost")]);
        results.runs.clear();
        let answer = answer(&results, "x").unwrap();
        assert_eq!((answer.entry.name.as_str(), answer.cells.len()), ("x", 1));
        assert_eq!(answer.entry.axes[0].labels, ["7"]);
        assert!(super::answer(&results, "y").is_none());
    }

    #[test]
    fn an_unknown_label_comes_last() {
        let answer =
            answer(&results(vec![cell("7", false, "full"), cell("20", false, "full")]), "x")
                .unwrap();
        assert_eq!(places(&answer)[1].0, "7");
    }

    #[test]
    fn an_experiment_without_cells_is_shown_with_all_of_them_missing() {
        let answer = answer(&results(Vec::new()), "x").unwrap();
        assert_eq!((answer.cells.len(), answer.missing.len()), (0, 3));
    }
}
