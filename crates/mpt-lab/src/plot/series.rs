//! What a plot is about: which cells share a panel, and the series of points in it.

use super::Subject;
use super::style::Look;
use crate::results::{CellRecord, Coordinate, Figure, Plot};

/// The cells that differ only along the axes of the plot.
#[derive(Clone, Debug)]
pub(super) struct Facet<'a> {
    /// Where they are on the other axes; empty if there are none.
    pub(super) title: String,
    pub(super) cells: Vec<&'a CellRecord>,
}

/// Points that belong together: those of a system, at one point of a further axis.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Vec<Point>,
    pub(super) published: Vec<Point>,
}

/// A figure somewhere along the bottom axis.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The number of its label.
    pub(super) stop: usize,
    pub(super) figure: Figure,
}

/// The points of the bottom axis, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Stops {
    pub(super) title: String,
    pub(super) labels: Vec<String>,
    /// Where they are, if all of them are different numbers.
    pub(super) values: Option<Vec<f64>>,
}

/// The cells of a subject, apart by all axes but those named.
pub(super) fn facets<'a>(subject: &Subject<'a>, within: &[&str]) -> Vec<Facet<'a>> {
    let apart = |at: &&Coordinate| {
        !within.contains(&at.axis.as_str()) && stops(subject, &at.axis).labels.len() > 1
    };
    let mut facets: Vec<Facet<'a>> = Vec::new();
    for cell in subject.cells {
        let title = words(subject, cell.cell.iter().filter(apart));
        match facets.iter_mut().find(|facet| facet.title == title) {
            Some(facet) => facet.cells.push(cell),
            None => facets.push(Facet { title, cells: vec![cell] }),
        }
    }
    facets
}

/// Coordinates in words, with units: `delay 20 ms, window 100`.
pub(super) fn words<'a>(
    subject: &Subject<'_>,
    place: impl Iterator<Item = &'a Coordinate>,
) -> String {
    let unit = |at: &Coordinate| {
        let mut axes = subject.entry.axes.iter();
        axes.find(|axis| axis.name == at.axis).map(|axis| axis.unit.as_str()).unwrap_or_default()
    };
    let words =
        place.map(|at| format!("{} {} {}", at.axis, at.label, unit(at)).trim_end().to_owned());
    words.collect::<Vec<_>>().join(", ")
}

/// The points of an axis at which there are cells: in the order of the experiment, with unknown
/// ones at the end.
pub(super) fn stops(subject: &Subject<'_>, axis: &str) -> Stops {
    let entry = subject.entry.axes.iter().find(|known| known.name == axis);
    let coordinates =
        || subject.cells.iter().filter_map(|cell| cell.cell.iter().find(|at| at.axis == axis));
    let known = entry.iter().flat_map(|entry| &entry.labels);
    let mut labels: Vec<String> =
        known.filter(|label| coordinates().any(|at| at.label == **label)).cloned().collect();
    for at in coordinates() {
        if !labels.contains(&at.label) {
            labels.push(at.label.clone());
        }
    }
    let value = |label: &String| coordinates().find(|at| at.label == *label)?.value;
    let values: Option<Vec<f64>> = labels.iter().map(value).collect();
    let values = values.filter(|values| values.iter().all(|value| value.is_finite()));
    let values = values.filter(|values| all_different(values));
    let title = entry
        .map_or(axis, |entry| if entry.title.is_empty() { axis } else { entry.title.as_str() });
    let unit = entry.map(|entry| entry.unit.as_str()).unwrap_or_default();
    let title = if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") };
    Stops { title, labels, values }
}

fn all_different(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.windows(2).all(|pair| pair[0] < pair[1])
}

/// The systems of a plot, by name, in the order of the tables: those with a figure, or a published one,
/// in any cell.
pub(super) fn systems(subject: &Subject<'_>, plot: &Plot) -> Vec<String> {
    let wanted = |name: &str| plot.systems.is_empty() || plot.systems.iter().any(|one| one == name);
    let drawn = |name: &str| {
        subject.cells.iter().any(|cell| {
            measured(cell, name, &plot.figure).is_some()
                || cell.published(name, &plot.figure).is_some()
        })
    };
    let mut names: Vec<String> = Vec::new();
    let listed = subject.entry.systems.iter().map(|system| system.name.clone());
    let measured =
        subject.cells.iter().flat_map(|cell| &cell.systems).map(|record| record.system.clone());
    // Links come after the systems, and only if the plot asks for them.
    for name in listed.chain(measured).chain(plot.systems.iter().cloned()) {
        if !names.contains(&name) && wanted(&name) && drawn(&name) {
            names.push(name);
        }
    }
    names
}

/// A figure, if it is a number.
pub(super) fn measured(cell: &CellRecord, system: &str, figure: &str) -> Option<Figure> {
    let figure = *cell.system(system)?.figures.get(figure)?;
    [figure.median, figure.min, figure.max].iter().all(|value| value.is_finite()).then_some(figure)
}

/// The series of some cells: one for each system and each point of the plot's further axis.
pub(super) fn series(
    subject: &Subject<'_>,
    plot: &Plot,
    systems: &[String],
    cells: &[&CellRecord],
) -> Vec<Series> {
    let bottom = stops(subject, &plot.x);
    let further = stops(subject, &plot.by);
    let points_of_by: Vec<Option<&str>> = if plot.by.is_empty() {
        vec![None]
    } else {
        further.labels.iter().map(|label| Some(label.as_str())).collect()
    };
    let mut all = Vec::new();
    for (system_number, system) in systems.iter().enumerate() {
        for (number, by) in points_of_by.iter().enumerate() {
            let here = || {
                cells.iter().filter(|cell| by.is_none_or(|by| label(cell, &plot.by) == by)).map(
                    |cell| {
                        let at = label(cell, &plot.x);
                        let stop = bottom.labels.iter().position(|label| label == at).unwrap_or(0);
                        (stop, *cell)
                    },
                )
            };
            let mut points: Vec<Point> = here()
                .filter_map(|(stop, cell)| {
                    Some(Point { stop, figure: measured(cell, system, &plot.figure)? })
                })
                .collect();
            points.sort_by_key(|point| point.stop);
            let printed = |(stop, cell): (usize, &CellRecord)| {
                let value =
                    cell.published(system, &plot.figure).filter(|value| value.is_finite())?;
                let figure = Figure { median: value, min: value, max: value, count: 1 };
                Some(Point { stop, figure })
            };
            let published: Vec<Point> = here().filter_map(printed).collect();
            let title = subject.title(system);
            let (name, look) = match by {
                None => (title.to_owned(), Look::of(system_number)),
                Some(by) if systems.len() == 1 => (format!("{} {by}", plot.by), Look::of(number)),
                Some(by) => {
                    (format!("{title}, {} {by}", plot.by), Look::crossed(number, system_number))
                }
            };
            if !(points.is_empty() && published.is_empty()) {
                all.push(Series { name, look, points, published });
            }
        }
    }
    all
}

/// Where a cell is on an axis; empty if it is not on it.
pub(super) fn label<'a>(cell: &'a CellRecord, axis: &str) -> &'a str {
    cell.cell.iter().find(|at| at.axis == axis).map(|at| at.label.as_str()).unwrap_or_default()
}
