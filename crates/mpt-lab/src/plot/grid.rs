//! Grids: a field of coloured cells with their values, for two axes.

use super::frame::word;
use super::lettering::{BOLD, LINE, fit, width};
use super::markup::Element;
use super::series::{Facet, facets, label, measured, stops, systems};
use super::{Drawing, Subject, figure, svg, title};
use crate::results::{CellRecord, Plot, Quantity};

/// Colours from little to much, each darker than the one before (ColorBrewer's YlGnBu), as red, green
/// and blue: in grey they stay in order.
const RAMP: [[f64; 3]; 9] = [
    [255.0, 255.0, 217.0],
    [237.0, 248.0, 177.0],
    [199.0, 233.0, 180.0],
    [127.0, 205.0, 187.0],
    [65.0, 182.0, 196.0],
    [29.0, 145.0, 192.0],
    [34.0, 94.0, 168.0],
    [37.0, 52.0, 148.0],
    [8.0, 29.0, 88.0],
];

/// Height of a field.
const HIGH: f64 = 26.0;
/// Least and greatest width of a field.
const WIDE: (f64, f64) = (44.0, 84.0);
/// The most that the fields of a row take.
const ROOM: f64 = 470.0;

/// Draws the plot.
pub(super) fn draw(subject: &Subject<'_>, plot: &Plot, id: &str) -> Drawing {
    let layout = Layout::new(subject, plot);
    let mut panels = Vec::new();
    for facet in facets(subject, &[&plot.x, &plot.by]) {
        for system in systems(subject, plot) {
            for printed in [true, false] {
                let value = |cell: &CellRecord| {
                    if printed {
                        cell.published(&system, &plot.figure).filter(|value| value.is_finite())
                    } else {
                        measured(cell, &system, &plot.figure).map(|figure| figure.median)
                    }
                };
                if facet.cells.iter().any(|cell| value(cell).is_some()) {
                    let name = subject.title(&system);
                    let name = if printed { format!("{name}, published") } else { name.to_owned() };
                    let mut panel = Panel::new(name, &facet, &layout, plot, value);
                    panel.fields.iter_mut().for_each(|field| field.doubtful &= !printed);
                    panels.push(panel);
                }
            }
        }
    }
    let values = || panels.iter().flat_map(|panel| panel.fields.iter().map(|field| field.value));
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let span = if high > low { high - low } else { 1.0 };
    let title = title(subject, plot);
    let quantity = Quantity::of(&plot.figure);
    let drawn = panels.iter().enumerate().map(|(number, panel)| {
        panel.draw(&layout, &format!("{id}-{number}"), &title, &quantity.heading(), |value| {
            (value - low) / span
        })
    });
    let drawn: Vec<_> = drawn.collect();
    let caption = if drawn.is_empty() {
        String::new()
    } else {
        format!("Colours run from {} (light) to {} (dark).", figure(low), figure(high))
    };
    let doubtful = panels.iter().any(|panel| panel.fields.iter().any(|field| field.doubtful));
    let caption =
        if doubtful { caption + " A question mark stands at doubtful cells." } else { caption };
    Drawing { title, caption, legend: None, panels: drawn }
}

struct Layout {
    columns: Vec<String>,
    rows: Vec<String>,
    x_title: String,
    y_title: String,
    left: f64,
    wide: f64,
}

impl Layout {
    fn new(subject: &Subject<'_>, plot: &Plot) -> Self {
        let (x, y) = (stops(subject, &plot.x), stops(subject, &plot.by));
        let or_one =
            |labels: Vec<String>| if labels.is_empty() { vec![String::new()] } else { labels };
        let (columns, rows) = (or_one(x.labels), or_one(y.labels));
        let widest = rows.iter().map(|label| width(label)).fold(0.0, f64::max).min(120.0);
        let wide = (ROOM / columns.len() as f64).clamp(WIDE.0, WIDE.1);
        Self { columns, rows, x_title: x.title, y_title: y.title, left: widest + 14.0, wide }
    }
}

struct Panel {
    name: String,
    place: String,
    fields: Vec<Field>,
}

struct Field {
    column: usize,
    row: usize,
    value: f64,
    doubtful: bool,
    place: String,
}

impl Panel {
    fn new(
        name: String,
        facet: &Facet<'_>,
        layout: &Layout,
        plot: &Plot,
        value: impl Fn(&CellRecord) -> Option<f64>,
    ) -> Self {
        let at = |labels: &[String], wanted: &str| labels.iter().position(|one| one == wanted);
        let field = |cell: &&CellRecord| {
            Some(Field {
                column: at(&layout.columns, label(cell, &plot.x))?,
                row: at(&layout.rows, label(cell, &plot.by))?,
                value: value(cell)?,
                doubtful: cell.doubtful,
                place: cell.place(),
            })
        };
        Self {
            name,
            place: facet.title.clone(),
            fields: facet.cells.iter().filter_map(field).collect(),
        }
    }

    fn draw(
        &self,
        layout: &Layout,
        id: &str,
        title: &str,
        quantity: &str,
        share: impl Fn(f64) -> f64,
    ) -> Element {
        let field_width = layout.wide * layout.columns.len() as f64;
        let whole = (layout.left + field_width + 10.0).max(240.0);
        let heading = if self.place.is_empty() {
            self.name.clone()
        } else {
            format!("{}, {}", self.name, self.place)
        };
        let side = if layout.y_title.is_empty() { 0.0 } else { LINE };
        let top = LINE + side + 8.0;
        let bottom = top + HIGH * layout.rows.len() as f64;
        let mut drawn = vec![word(2.0, 14.0, &fit(&heading, (whole - 6.0) / BOLD)).class("head")];
        if side > 0.0 {
            drawn.push(word(2.0, 14.0 + LINE, &fit(&layout.y_title, whole - 6.0)).class("faint"));
        }
        // The first row is at the bottom, as numbers grow on the axes of other plots.
        let row_top = |row: usize| bottom - HIGH * (row + 1) as f64;
        for (row, text) in layout.rows.iter().enumerate() {
            let text = fit(text, layout.left - 12.0);
            drawn.push(
                word(layout.left - 7.0, row_top(row) + 17.0, &text).with("text-anchor", "end"),
            );
        }
        for (column, text) in layout.columns.iter().enumerate() {
            let x = layout.left + (column as f64 + 0.5) * layout.wide;
            let text = fit(text, layout.wide - 4.0);
            drawn.push(word(x, bottom + 16.0, &text).with("text-anchor", "middle"));
        }
        let bottom_title = fit(&layout.x_title, whole - 6.0);
        let half = width(&bottom_title) / 2.0;
        let middle =
            (layout.left + field_width / 2.0).clamp(half + 2.0, (whole - half).max(half + 2.0));
        drawn.push(word(middle, bottom + 16.0 + LINE, &bottom_title).with("text-anchor", "middle"));
        for field in &self.fields {
            let x = layout.left + field.column as f64 * layout.wide;
            drawn.push(field.draw(x, row_top(field.row), layout.wide, share(field.value)));
        }
        let words =
            self.fields.iter().map(|field| format!("{}: {}", field.place, figure(field.value)));
        let description = format!("{quantity}. {}.", words.collect::<Vec<_>>().join("; "));
        let size = (whole, bottom + 16.0 + LINE + 8.0);
        let drawn = drawn.into_iter().filter(|part| !part.is_empty());
        svg(id, size, &format!("{title}: {heading}"), &description).children(drawn)
    }
}

impl Field {
    fn draw(&self, x: f64, y: f64, wide: f64, share: f64) -> Element {
        let colour = colour(share);
        let [red, green, blue] = colour.map(|part| part.round() as u8);
        let rect = Element::new("rect").at("x", x + 0.5).at("y", y + 0.5).at("width", wide - 1.0);
        let rect = rect.at("height", HIGH - 1.0).with("rx", 2).class("field");
        let rect = rect.with("fill", format_args!("#{red:02x}{green:02x}{blue:02x}"));
        let ink = if is_dark(colour) { "#fff" } else { "#111" };
        let text = figure(self.value) + if self.doubtful { "?" } else { "" };
        let text = word(x + wide / 2.0, y + 17.0, &text).with("text-anchor", "middle");
        Element::new("g")
            .class("cell")
            .child(rect)
            .child(text.with("style", format_args!("fill:{ink}")))
    }
}

/// The colour at a share of the ramp.
fn colour(share: f64) -> [f64; 3] {
    let place = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let low = (place.floor() as usize).min(RAMP.len() - 2);
    let part = place - low as f64;
    [0, 1, 2].map(|n| RAMP[low][n] + part * (RAMP[low + 1][n] - RAMP[low][n]))
}

/// Whether white letters are easier to read on it than black ones (WCAG 2, relative luminance).
fn is_dark(colour: [f64; 3]) -> bool {
    let linear = colour.map(|part| (part / 255.0).powf(2.2));
    let luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    luminance < 0.18
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_darker_so_that_grey_keeps_the_order() {
        let grey = |share: f64| {
            let [red, green, blue] = colour(share);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let shades: Vec<_> = (0..=20).map(|n| grey(f64::from(n) / 20.0)).collect();
        assert!(shades.windows(2).all(|pair| pair[0] > pair[1]), "{shades:?}");
        assert_eq!(colour(-1.0), RAMP[0]);
        assert_eq!(colour(2.0), RAMP[8]);
    }

    #[test]
    fn letters_are_light_on_dark_fields() {
        assert!(is_dark(colour(1.0)) && !is_dark(colour(0.0)));
    }
}
