//! Bars side by side: a group for each point of an axis.

use super::frame::{Frame, Key, Parts};
use super::lines::{caption, describe};
use super::markup::Element;
use super::scale::Scale;
use super::series::{Series, facets, series, stops, systems};
use super::{Drawing, PART, Subject, WHOLE, height, legend, size, svg, title};
use crate::results::{Plot, Quantity};

/// The share of a group's room that its bars take.
const FILL: f64 = 0.78;
/// With more bars than this, a panel is as wide as if it were the only one.
const CROWD: usize = 20;
/// The widest bar, in pixels.
const WIDEST: f64 = 46.0;

/// Draws the plot.
pub(super) fn draw(subject: &Subject<'_>, plot: &Plot, id: &str) -> Drawing {
    let systems = systems(subject, plot);
    // Systems stand side by side to be compared; a further axis then takes panels.
    let plot =
        &if systems.len() > 1 { Plot { by: String::new(), ..plot.clone() } } else { plot.clone() };
    let facets = facets(subject, &[&plot.x, &plot.by]);
    let panels: Vec<(String, Vec<Series>)> = facets
        .into_iter()
        .map(|facet| (facet.title, series(subject, plot, &systems, &facet.cells)))
        .filter(|(_, series)| !series.is_empty())
        .collect();
    let every = || panels.iter().flat_map(|(_, series)| series);
    let points = || every().flat_map(|series| series.points.iter().chain(&series.published));
    let values = points().flat_map(|point| [point.figure.min, point.figure.max]);
    let y = Scale::from_zero(values, height(size(panels.len())));
    // The same names in every panel, and the same place in every group.
    let mut names: Vec<(&str, _)> = Vec::new();
    for series in every() {
        if !names.iter().any(|(name, _)| *name == series.name) {
            names.push((&series.name, series.look));
        }
    }
    let mut keys: Vec<Key> =
        names.iter().map(|(name, look)| Key::Bar(*look, (*name).to_owned())).collect();
    let published = every().any(|series| !series.published.is_empty());
    keys.extend(published.then_some(Key::Published));

    let bottom = stops(subject, &plot.x);
    let groups = bottom.labels.len().max(1);
    let middle = |stop: usize| (stop as f64 + 0.5) / groups as f64;
    let labels: Vec<_> =
        bottom.labels.iter().enumerate().map(|(n, label)| (middle(n), label.clone())).collect();
    let title = title(subject, plot);
    let single = panels.len() == 1;
    let crowded = !single && groups * names.len() > CROWD;
    let panel = |(number, (heading, series)): (usize, &(String, Vec<Series>))| {
        let frame = Frame::new(&Parts {
            size: if crowded { (WHOLE.0, PART.1 + 50.0) } else { size(panels.len()) },
            heading,
            y_title: &Quantity::of(&plot.figure).heading(),
            y: &y,
            x_title: &bottom.title,
            x: &labels,
            x_thins: false,
            keys: if single { &keys } else { &[] },
        });
        let room = (frame.right - frame.left) / groups as f64;
        let width = (room * FILL / names.len() as f64).min(WIDEST);
        let left = |stop: usize, place: usize| {
            frame.x(middle(stop)) + (place as f64 - names.len() as f64 / 2.0) * width
        };
        let drawn: Vec<_> = series
            .iter()
            .map(|series| {
                let place = names.iter().position(|(name, _)| *name == series.name).unwrap_or(0);
                bars(&frame, &y, series, width, |stop| left(stop, place))
            })
            .collect();
        let name = if heading.is_empty() { title.clone() } else { format!("{title}: {heading}") };
        svg(&format!("{id}-{number}"), frame.size, &name, &describe(series, &bottom))
            .children(frame.ground.iter().cloned())
            .children(drawn)
    };
    let drawn = panels.iter().enumerate().map(panel).collect();
    let legend = if single { None } else { legend(id, &keys) };
    let repeated = points().any(|point| point.figure.count > 1);
    Drawing { title, caption: caption(repeated, published), legend, panels: drawn }
}

/// The bars of one series, their whiskers and the published values.
fn bars(
    frame: &Frame,
    y: &Scale,
    series: &Series,
    width: f64,
    left: impl Fn(usize) -> f64,
) -> Element {
    let gap = (width * 0.08).min(2.0);
    let mut drawn = Vec::new();
    for point in &series.points {
        let (x, base) = (left(point.stop), frame.y(y, 0.0));
        let top = frame.y(y, point.figure.median);
        drawn.push(series.look.bar(x + gap, top.min(base), width - 2.0 * gap, (base - top).abs()));
    }
    for point in series.points.iter().filter(|point| point.figure.count > 1) {
        let (top, bottom) = (frame.y(y, point.figure.max), frame.y(y, point.figure.min));
        let middle = left(point.stop) + width / 2.0;
        drawn.push(
            Element::new("path")
                .class("whisker lp")
                .with("d", format!("M{middle:.1} {top:.1}V{bottom:.1}")),
        );
    }
    for point in &series.published {
        let middle = left(point.stop) + width / 2.0;
        drawn.push(series.look.published(middle, frame.y(y, point.figure.median)));
    }
    Element::new("g").class("series").with("data-name", &series.name).children(drawn)
}
