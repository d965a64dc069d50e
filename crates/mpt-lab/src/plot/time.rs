//! Goodput over time: a panel for each cell, a line for each system.

use super::frame::{Frame, Key, Parts};
use super::markup::{Element, Pixels};
use super::scale::Scale;
use super::series::words;
use super::style::Look;
use super::{Drawing, PART, Subject, WHOLE, figure, height, legend, size, svg};
use crate::results::{CellRecord, Plot};

/// If the highest panel is not this many times as high as the lowest, all have the same scale.
const ALIKE: f64 = 4.0;

/// The samples of a system in a cell, in the units of the experiment's file.
struct Curve<'a> {
    name: &'a str,
    look: Look,
    /// Seconds, and Mbit/s.
    points: Vec<(f64, f64)>,
}

struct Panel<'a> {
    cell: &'a CellRecord,
    curves: Vec<Curve<'a>>,
    high: f64,
}

/// Draws the plot.
pub(super) fn draw(subject: &Subject<'_>, plot: &Plot, id: &str) -> Drawing {
    let names = names(subject, plot);
    let panels: Vec<_> =
        subject.cells.iter().filter_map(|cell| panel(subject, &names, cell)).collect();
    let highest = panels.iter().map(|panel| panel.high).fold(0.0, f64::max);
    let lowest = panels.iter().map(|panel| panel.high).fold(f64::INFINITY, f64::min);
    let shared = highest <= ALIKE * lowest;
    let single = panels.len() == 1;
    let mut keys: Vec<Key> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let title = subject.title(name);
        if panels.iter().any(|panel| panel.curves.iter().any(|curve| curve.name == title)) {
            keys.push(Key::Plain(Look::of(number), title.to_owned()));
        }
    }
    keys.extend(panels.iter().any(|panel| panel.cell.omit > 0.0).then_some(Key::Omitted));
    let title =
        if plot.title.is_empty() { "Goodput over time".to_owned() } else { plot.title.clone() };
    let drawn: Vec<Element> = panels
        .iter()
        .enumerate()
        .map(|(number, panel)| {
            let y = Scale::from_zero(
                [if shared { highest } else { panel.high }],
                height(size(panels.len())),
            );
            let keys: &[Key] = if single { &keys } else { &[] };
            panel.draw(subject, &y, keys, size(panels.len()), &title, &format!("{id}-{number}"))
        })
        .collect();
    let mut caption = Vec::new();
    caption.extend((!shared).then_some("Each panel has its own scale."));
    let scaled = panels.iter().any(|panel| is_scaled(panel.cell));
    caption.extend(
        scaled.then_some("Times and rates of scaled cells are given in the units of the file."),
    );
    let legend = if single { None } else { legend(id, &keys) };
    Drawing { title, caption: caption.join(" "), legend, panels: drawn }
}

/// The systems that have samples, in the order of the tables.
fn names(subject: &Subject<'_>, plot: &Plot) -> Vec<String> {
    let wanted = |name: &String| plot.systems.is_empty() || plot.systems.contains(name);
    let sampled = |name: &String| {
        subject
            .cells
            .iter()
            .any(|cell| cell.system(name).is_some_and(|record| !record.samples_mbps.is_empty()))
    };
    let listed = subject.entry.systems.iter().map(|system| system.name.clone());
    let measured = subject.cells.iter().flat_map(|cell| &cell.systems);
    let mut names: Vec<String> = Vec::new();
    for name in listed
        .chain(measured.map(|record| record.system.clone()))
        .chain(plot.systems.iter().cloned())
    {
        if !names.contains(&name) && wanted(&name) && sampled(&name) {
            names.push(name);
        }
    }
    names
}

fn panel<'a>(
    subject: &Subject<'a>,
    names: &'a [String],
    cell: &'a CellRecord,
) -> Option<Panel<'a>> {
    if cell.sample_seconds.is_nan() || cell.sample_seconds <= 0.0 {
        return None;
    }
    let scale = scale(cell);
    let curve = |(number, name): (usize, &'a String)| {
        let samples = &cell.system(name)?.samples_mbps;
        let at = |n: usize| (n as f64 + 0.5) * cell.sample_seconds / scale;
        let points: Vec<_> = samples
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_finite())
            .map(|(n, value)| (at(n), value * scale))
            .collect();
        let title = title_of(subject, name);
        (!points.is_empty()).then_some(Curve { name: title, look: Look::of(number), points })
    };
    let curves: Vec<_> = names.iter().enumerate().filter_map(curve).collect();
    let every = curves.iter().flat_map(|curve| curve.points.iter().map(|(_, value)| *value));
    let high = every.reduce(f64::max)?;
    Some(Panel { cell, curves, high })
}

fn title_of<'a>(subject: &Subject<'a>, name: &'a str) -> &'a str {
    subject.title(name)
}

fn scale(cell: &CellRecord) -> f64 {
    if is_scaled(cell) { cell.scale } else { 1.0 }
}

fn is_scaled(cell: &CellRecord) -> bool {
    cell.scale.is_finite() && cell.scale > 0.0 && cell.scale != 1.0
}

impl Panel<'_> {
    fn draw(
        &self,
        subject: &Subject<'_>,
        y: &Scale,
        keys: &[Key],
        size: (f64, f64),
        title: &str,
        id: &str,
    ) -> Element {
        let last = |curve: &Curve<'_>| curve.points.last().map_or(0.0, |(at, _)| *at);
        let end = self.curves.iter().map(last).fold(0.0, f64::max)
            + self.cell.sample_seconds / scale(self.cell) / 2.0;
        let heading = words(subject, self.cell.cell.iter());
        let mut ticks: Vec<(f64, String)> = Scale::from_zero([end], size.0).ticks();
        ticks.retain(|(at, _)| *at <= end * 1.001);
        let ticks: Vec<_> = ticks.into_iter().map(|(at, label)| (at / end, label)).collect();
        let frame = Frame::new(&Parts {
            size: (size.0, if size == WHOLE { 300.0 } else { PART.1 - 40.0 }),
            heading: &heading,
            y_title: "Goodput, Mbit/s",
            y,
            x_title: "Time, s",
            x: &ticks,
            x_thins: true,
            keys,
        });
        let omitted = (self.cell.omit > 0.0).then(|| {
            let right = frame.x((self.cell.omit / end).min(1.0));
            let band = Element::new("rect").class("omit").at("x", frame.left).at("y", frame.top);
            band.at("width", right - frame.left).at("height", frame.bottom - frame.top)
        });
        let curves = self.curves.iter().map(|curve| {
            let path = path(&curve.points, |at| frame.x(at / end), |value| frame.y(y, value));
            Element::new("g")
                .class("series")
                .with("data-name", curve.name)
                .child(curve.look.line(&path))
        });
        let name =
            if heading.is_empty() { title.to_owned() } else { format!("{title}: {heading}") };
        svg(id, frame.size, &name, &self.describe())
            .children(omitted)
            .children(frame.ground.iter().cloned())
            .child(Element::new("g").class("time").children(curves))
    }

    fn describe(&self) -> String {
        let words = self.curves.iter().map(|curve| {
            let values = || curve.points.iter().map(|(_, value)| *value);
            let mean = values().sum::<f64>() / curve.points.len() as f64;
            let (low, high) = (
                values().fold(f64::INFINITY, f64::min),
                values().fold(f64::NEG_INFINITY, f64::max),
            );
            format!(
                "{}: mean {}, smallest {}, largest {} Mbit/s.",
                curve.name,
                figure(mean),
                figure(low),
                figure(high)
            )
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// A path through points. Where several share a column of pixels, its first, smallest, largest and
/// last are kept: it looks the same.
pub(super) fn path(
    points: &[(f64, f64)],
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
) -> String {
    let mut path = String::new();
    let mut add = |&(at, value): &(f64, f64)| {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let round = |place: f64| Pixels((place * 10.0).round() / 10.0);
        path.push_str(&format!("{letter}{} {}", round(x(at)), round(y(value))));
    };
    let column = |point: &(f64, f64)| x(point.0).floor() as i64;
    for group in points.chunk_by(|one, other| column(one) == column(other)) {
        let mut kept = vec![0, group.len() - 1];
        let numbered = || group.iter().enumerate();
        kept.extend(numbered().min_by(|one, other| one.1.1.total_cmp(&other.1.1)).map(|(n, _)| n));
        kept.extend(numbered().max_by(|one, other| one.1.1.total_cmp(&other.1.1)).map(|(n, _)| n));
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().for_each(|n| add(&group[n]));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_the_extremes_of_each_column() {
        let points: Vec<_> = (0..1000).map(|n| (f64::from(n) / 100.0, f64::from(n % 7))).collect();
        let path = path(&points, |at| at, |value| value);
        assert!(path.matches(['M', 'L']).count() <= 4 * 11, "{path}");
        assert!(path.contains(" 6") && path.contains(" 0"));
        assert_eq!(super::path(&[], |at| at, |value| value), "");
    }
}
