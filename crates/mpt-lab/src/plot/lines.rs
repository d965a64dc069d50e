//! Lines: a figure along an axis, for each system and each point of a further axis.

use super::frame::{Frame, Key, Parts};
use super::markup::{Element, Pixels};
use super::scale::Scale;
use super::series::{Series, Stops, facets, series, stops, systems};
use super::{Drawing, Subject, height, legend, size, svg, title};
use crate::results::{CellRecord, Plot, Quantity};

/// With more lines than this in one panel, every system gets its own panel.
const TOGETHER: usize = 6;
/// Share of the width to the left of the first and to the right of the last point.
const MARGIN: f64 = 0.03;

/// Draws the plot.
pub(super) fn draw(subject: &Subject<'_>, plot: &Plot, id: &str) -> Drawing {
    let all_systems = systems(subject, plot);
    let groups = groups(subject, plot, &all_systems);
    let panels: Vec<(String, Vec<Series>)> = groups
        .into_iter()
        .map(|(heading, systems, cells)| (heading, series(subject, plot, &systems, &cells)))
        .filter(|(_, series)| !series.is_empty())
        .collect();
    let every = || panels.iter().flat_map(|(_, series)| series);
    let points = || every().flat_map(|series| series.points.iter().chain(&series.published));
    let single = panels.len() == 1;
    let values = points().flat_map(|point| [point.figure.min, point.figure.max]);
    let y = Scale::around(values, height(size(panels.len())));
    let keys = keys(every());
    let bottom = stops(subject, &plot.x);
    let places = places(&bottom, plot.log_x);
    let title = title(subject, plot);
    let panel = |(number, (heading, series)): (usize, &(String, Vec<Series>))| {
        let labels: Vec<_> = places.iter().copied().zip(bottom.labels.iter().cloned()).collect();
        let frame = Frame::new(&Parts {
            size: size(panels.len()),
            heading: if single { "" } else { heading },
            y_title: &Quantity::of(&plot.figure).heading(),
            y: &y,
            x_title: &bottom.title,
            x: &labels,
            x_thins: bottom.values.is_some(),
            keys: if single { &keys } else { &[] },
        });
        let name = if heading.is_empty() { title.clone() } else { format!("{title}: {heading}") };
        let lines = series.iter().map(|series| line(&frame, &y, &places, series));
        let published = series.iter().filter(|series| !series.published.is_empty());
        let published = published.map(|series| published_of(&frame, &y, &places, series));
        let drawn: Vec<_> = lines.chain(published).collect();
        svg(&format!("{id}-{number}"), frame.size, &name, &describe(series, &bottom))
            .children(frame.ground.iter().cloned())
            .children(drawn)
    };
    let drawn = panels.iter().enumerate().map(panel).collect();
    let legend = if single { None } else { legend(id, &keys) };
    let repeated = points().any(|point| point.figure.count > 1);
    Drawing {
        title,
        caption: caption(repeated, every().any(|s| !s.published.is_empty())),
        legend,
        panels: drawn,
    }
}

/// Which systems and cells share a panel.
fn groups<'a>(
    subject: &Subject<'a>,
    plot: &Plot,
    systems: &[String],
) -> Vec<(String, Vec<String>, Vec<&'a CellRecord>)> {
    let lines_each = if plot.by.is_empty() { 1 } else { stops(subject, &plot.by).labels.len() };
    let together =
        systems.len() <= 1 || lines_each * systems.len() <= TOGETHER || plot.by.is_empty();
    let mut groups = Vec::new();
    for facet in facets(subject, &[&plot.x, &plot.by]) {
        if together {
            groups.push((facet.title, systems.to_vec(), facet.cells));
            continue;
        }
        for system in systems {
            let name = subject.title(system);
            let heading = if facet.title.is_empty() {
                name.to_owned()
            } else {
                format!("{name}, {}", facet.title)
            };
            groups.push((heading, vec![system.clone()], facet.cells.clone()));
        }
    }
    groups
}

/// The shares of the width at which the points of the axis stand.
fn places(stops: &Stops, log: bool) -> Vec<f64> {
    let by_number = || {
        let values = stops.values.as_ref()?;
        let values: Vec<f64> =
            if log { values.iter().map(|value| value.log10()).collect() } else { values.clone() };
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The logarithm of nothing has no place; the points then stand side by side.
        let spread = (high - low).is_finite() && high > low;
        spread.then(|| values.iter().map(|value| (value - low) / (high - low)).collect())
    };
    let side_by_side = || {
        let gaps = stops.labels.len().saturating_sub(1);
        let place = |n| if gaps == 0 { 0.5 } else { n as f64 / gaps as f64 };
        (0..stops.labels.len().max(1)).map(place).collect()
    };
    let shares: Vec<f64> = by_number().unwrap_or_else(side_by_side);
    shares.into_iter().map(|share| MARGIN + share * (1.0 - 2.0 * MARGIN)).collect()
}

/// A line with its marks and whiskers, and the published values.
fn line(frame: &Frame, y: &Scale, places: &[f64], series: &Series) -> Element {
    let place = |stop: usize| frame.x(places.get(stop).copied().unwrap_or(0.5));
    let mut sorted: Vec<_> = series.points.iter().collect();
    sorted.sort_by(|one, other| place(one.stop).total_cmp(&place(other.stop)));
    let mut path = String::new();
    let mut marks = Vec::new();
    let mut whiskers = Vec::new();
    for point in sorted {
        let (x, height) = (place(point.stop), frame.y(y, point.figure.median));
        let letter = if path.is_empty() { 'M' } else { 'L' };
        path.push_str(&format!("{letter}{} {}", Pixels(x), Pixels(height)));
        marks.push(series.look.mark(x, height));
        if point.figure.count > 1 {
            let (top, bottom) = (frame.y(y, point.figure.max), frame.y(y, point.figure.min));
            whiskers.push(series.look.whisker(x, top, bottom));
        }
    }
    let line = path.contains('L').then(|| series.look.line(&path));
    Element::new("g")
        .class("series")
        .with("data-name", &series.name)
        .children(line)
        .children(whiskers)
        .children(marks)
}

/// The published values of a series: above everything, so that none is hidden.
fn published_of(frame: &Frame, y: &Scale, places: &[f64], series: &Series) -> Element {
    let mark = |point: &super::series::Point| {
        let x = frame.x(places.get(point.stop).copied().unwrap_or(0.5));
        series.look.published(x, frame.y(y, point.figure.median))
    };
    Element::new("g").children(series.published.iter().map(mark))
}

/// An entry for each name of a series, and one for published values if there are any.
fn keys<'a>(series: impl Iterator<Item = &'a Series> + Clone) -> Vec<Key> {
    let published = series.clone().any(|series| !series.published.is_empty());
    let mut names: Vec<&str> = Vec::new();
    let mut keys = Vec::new();
    for one in series {
        // Panels of different systems name their lines equally: the heading names the system.
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
            keys.push(Key::Line(one.look, one.name.clone()));
        }
    }
    keys.extend(published.then_some(Key::Published));
    keys
}

/// The drawing in words: where each line begins, ends and is highest.
pub(super) fn describe(series: &[Series], stops: &Stops) -> String {
    let label = |stop: usize| stops.labels.get(stop).map(String::as_str).unwrap_or_default();
    let words = series.iter().map(|series| {
        let value = |point: &super::series::Point| {
            let value = super::figure(point.figure.median);
            if label(point.stop).is_empty() {
                value
            } else {
                format!("{value} at {}", label(point.stop))
            }
        };
        let points: Vec<_> = series.points.iter().map(value).collect();
        let measured = if points.is_empty() { "not measured".into() } else { points.join(", ") };
        let published: Vec<_> = series.published.iter().map(value).collect();
        if published.is_empty() {
            format!("{}: {measured}.", series.name)
        } else {
            format!("{}: {measured}; published {}.", series.name, published.join(", "))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What the marks mean.
pub(super) fn caption(repeated: bool, published: bool) -> String {
    let mut words = Vec::new();
    words.extend(repeated.then_some("Whiskers show the minimum and maximum of the repetitions."));
    words.extend(published.then_some("Hollow marks are published values."));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops_at(values: &[f64]) -> Stops {
        let labels = values.iter().map(f64::to_string).collect();
        Stops { title: String::new(), labels, values: Some(values.to_vec()) }
    }

    #[test]
    fn points_stand_where_their_numbers_are() {
        let linear = places(&stops_at(&[0.0, 10.0, 40.0]), false);
        assert!((linear[1] - (MARGIN + 0.25 * (1.0 - 2.0 * MARGIN))).abs() < 1e-9);
        let log = places(&stops_at(&[10.0, 100.0, 1000.0]), true);
        assert!((log[1] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_logarithm_or_number_stands_side_by_side() {
        let zero = places(&stops_at(&[0.0, 10.0, 1000.0]), true);
        assert!((zero[1] - 0.5).abs() < 1e-9);
        let named = Stops { labels: vec!["a".into(), "b".into()], ..Stops::default() };
        assert_eq!(places(&named, false), [MARGIN, 1.0 - MARGIN]);
        assert_eq!(places(&Stops::default(), false), [0.5]);
    }
}
