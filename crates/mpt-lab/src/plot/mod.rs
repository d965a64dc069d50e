//! Plots: results in, SVG out. Nothing here runs or reads anything.
//!
//! [`draw`] makes a [`Drawing`] of one [`Plot`] of an experiment: one panel if the plot names every axis
//! of the experiment, else one for each point of the others. Panels are SVG elements that share the
//! style sheet [`SHEET`], so that they follow a page into the dark and onto paper; [`alone`] makes a
//! file of one of them.
//!
//! Lines and bars differ in dashes, marks and hatchings as well as in colour, and the fields of a grid
//! have their values printed in them. Every drawing has a title and a description for those who do not
//! see it. Text is text, measured by estimate because no font is at hand.

mod bars;
mod frame;
mod grid;
mod lettering;
mod lines;
pub mod markup;
mod scale;
mod series;
mod style;
mod time;
mod trace;

use crate::results::{CellRecord, ExperimentEntry, Plot, PlotKind, Quantity};

use frame::Key;
use markup::Element;
pub use scale::figure;
pub use style::SHEET;
pub use trace::draw as trace;

/// Width and height of the only panel of a drawing, in pixels.
const WHOLE: (f64, f64) = (760.0, 360.0);
/// Width and height of one panel of several.
const PART: (f64, f64) = (372.0, 230.0);

/// What is drawn: an experiment and the cells that count.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The experiment.
    pub entry: &'a ExperimentEntry,
    /// Its cells, in the order of its axes.
    pub cells: &'a [CellRecord],
}

/// A plot that has been drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// What stands above it.
    pub title: String,
    /// Remarks about its marks; may be empty.
    pub caption: String,
    /// What the lines and bars of all panels mean, as an `svg` element; absent if the only panel says
    /// it itself.
    pub legend: Option<Element>,
    /// The panels: `svg` elements.
    pub panels: Vec<Element>,
}

/// Draws a plot. It has no panels if there is nothing to draw. The names of its elements begin with
/// `id`, which has to be unique in the page.
pub fn draw(subject: Subject<'_>, plot: &Plot, id: &str) -> Drawing {
    let mut plot = plot.clone();
    if plot.x.is_empty() {
        plot.x = subject.bottom(&plot.by);
    }
    match plot.kind {
        PlotKind::Lines => lines::draw(&subject, &plot, id),
        PlotKind::Bars => bars::draw(&subject, &plot, id),
        PlotKind::Grid => grid::draw(&subject, &plot, id),
        PlotKind::Time => time::draw(&subject, &plot, id),
    }
}

/// A panel or legend as a separate file.
pub fn alone(drawn: &Element) -> String {
    let paper = drawn.clone().with("style", "background:var(--paper)");
    let whole = paper.child(Element::new("style").text(SHEET));
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{whole}\n")
}

impl<'a> Subject<'a> {
    /// The axis along the bottom if a plot names none: the one with most points.
    fn bottom(&self, by: &str) -> String {
        let others = self.entry.axes.iter().filter(|axis| axis.name != by);
        let longest = others.rev().max_by_key(|axis| axis.labels.len());
        longest.map(|axis| axis.name.clone()).unwrap_or_default()
    }

    /// A system's name for people.
    pub fn title(&self, system: &'a str) -> &'a str {
        let mut systems = self.entry.systems.iter();
        let known = systems.find(|entry| entry.name == system).map(|entry| entry.title.as_str());
        match known {
            Some(title) if !title.is_empty() => title,
            _ => system,
        }
    }
}

/// A plot's own title, or what it shows.
fn title(subject: &Subject<'_>, plot: &Plot) -> String {
    if !plot.title.is_empty() {
        return plot.title.clone();
    }
    let quantity = Quantity::of(&plot.figure).heading();
    let axis = |name: &str| {
        let known = subject.entry.axes.iter().find(|axis| axis.name == name);
        known.map_or(name, |axis| if axis.title.is_empty() { name } else { &axis.title }).to_owned()
    };
    match (plot.x.as_str(), plot.by.as_str()) {
        ("", _) => quantity,
        (x, "") => format!("{quantity} by {}", axis(x)),
        (x, by) => format!("{quantity} by {} and {}", axis(x), axis(by)),
    }
}

/// An `svg` element with a title and a description.
fn svg(id: &str, size: (f64, f64), title: &str, description: &str) -> Element {
    let (width, height) = size;
    let view = format!("0 0 {} {}", markup::Pixels(width), markup::Pixels(height.ceil()));
    Element::new("svg")
        .class("plot")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .at("width", width)
        .at("height", height.ceil())
        .with("viewBox", view)
        .with("role", "img")
        .with("aria-labelledby", format_args!("{id}-title {id}-description"))
        .child(Element::new("title").with("id", format_args!("{id}-title")).text(title))
        .child(Element::new("desc").with("id", format_args!("{id}-description")).text(description))
}

/// The legend of several panels.
fn legend(id: &str, keys: &[Key]) -> Option<Element> {
    if keys.is_empty() {
        return None;
    }
    let (drawn, height) = frame::alone(keys, WHOLE.0);
    let words = "Legend of the following panels.";
    Some(svg(&format!("{id}-legend"), (WHOLE.0, height), "Legend", words).child(drawn))
}

/// The size of each of this many panels.
fn size(panels: usize) -> (f64, f64) {
    if panels == 1 { WHOLE } else { PART }
}

/// About how much of a panel's height is left for what is drawn.
fn height(size: (f64, f64)) -> f64 {
    size.1 - 90.0
}

#[cfg(test)]
mod tests;
