//! What is around a plot: the axes with their ticks and titles, the heading and the legend.

use super::lettering::{BOLD, LINE, fit, width};
use super::markup::{Element, Pixels};
use super::scale::Scale;
use super::style::{self, Look};

/// What a frame is made of.
pub(super) struct Parts<'a> {
    /// Width and height of the whole, without the legend.
    pub(super) size: (f64, f64),
    /// What stands above a panel; empty if it is the only one.
    pub(super) heading: &'a str,
    /// What is along the side, with its unit.
    pub(super) y_title: &'a str,
    /// The scale along the side.
    pub(super) y: &'a Scale,
    /// What is along the bottom, with its unit.
    pub(super) x_title: &'a str,
    /// The labels along the bottom, with their places from 0 to 1.
    pub(super) x: &'a [(f64, String)],
    /// Whether labels may be omitted if there is no space; if not, they are slanted.
    pub(super) x_thins: bool,
    /// What the legend says; no legend if empty.
    pub(super) keys: &'a [Key],
}

/// An entry of a legend.
#[derive(Clone, Debug)]
pub(super) enum Key {
    /// A line with marks.
    Line(Look, String),
    /// A line without marks.
    Plain(Look, String),
    /// A mark without a line.
    Mark(Look, String),
    /// A bar.
    Bar(Look, String),
    /// What was published.
    Published,
    /// The time that goodput leaves out.
    Omitted,
}

/// A frame, ready to be drawn into.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Width and height of the whole.
    pub(super) size: (f64, f64),
    /// What is drawn before everything else.
    pub(super) ground: Vec<Element>,
}

/// How much slanted labels lean, in degrees, if there is room between them; they stand upright else.
const SLANT: f64 = 35.0;
/// Least space between two labels.
const GAP: f64 = 8.0;

impl Frame {
    /// Lays out a frame.
    pub(super) fn new(parts: &Parts<'_>) -> Self {
        let (whole, height) = parts.size;
        let ticks = parts.y.ticks();
        let widest = ticks.iter().map(|(_, label)| width(label)).fold(0.0, f64::max);
        let left = widest + 16.0;
        let last = parts.x.last().map_or(0.0, |(at, label)| {
            (width(label) / 2.0 - (1.0 - at) * (whole - left - 12.0)).max(0.0)
        });
        let right = whole - 12.0 - last;
        let heading = if parts.heading.is_empty() { 0.0 } else { LINE + 2.0 };
        let top = heading + LINE + 9.0;

        let labels = Labels::new(parts, left, right);
        let below = 8.0 + labels.height + if parts.x_title.is_empty() { 0.0 } else { LINE };
        let bottom = (height - below - 4.0).max(top + 80.0);
        let rows = rows(parts.keys, whole);
        let legend_top = bottom + below + 8.0;
        let end = if rows.is_empty() {
            bottom + below + 4.0
        } else {
            legend_top + rows.len() as f64 * LINE + 4.0
        };

        let mut frame = Self { left, right, top, bottom, size: (whole, end), ground: Vec::new() };
        frame.side(parts, &ticks, heading);
        frame.ground.extend(labels.draw(&frame));
        if !parts.x_title.is_empty() {
            let title = fit(parts.x_title, whole - 8.0);
            let half = width(&title) / 2.0;
            let middle =
                f64::midpoint(left, right).clamp(half + 2.0, (whole - half - 2.0).max(half + 2.0));
            frame
                .ground
                .push(word(middle, bottom + below - 2.0, &title).with("text-anchor", "middle"));
        }
        frame.ground.extend(legend(&rows, 4.0, legend_top + 12.0));
        frame
    }

    fn side(&mut self, parts: &Parts<'_>, ticks: &[(f64, String)], heading: f64) {
        if !parts.heading.is_empty() {
            let text = fit(parts.heading, (self.size.0 - 8.0) / BOLD);
            self.ground.push(word(2.0, 14.0, &text).class("head"));
        }
        let title = fit(parts.y_title, self.size.0 - 8.0);
        self.ground.push(word(2.0, heading + 13.0, &title).class("faint"));
        let mut rules = String::new();
        for (value, label) in ticks {
            let y = self.y(parts.y, *value);
            rules.push_str(&format!("M{} {}H{}", Pixels(self.left), Pixels(y), Pixels(self.right)));
            self.ground.push(word(self.left - 8.0, y + 4.0, label).with("text-anchor", "end"));
        }
        self.ground.insert(0, Element::new("path").class("rule").with("d", rules));
        let base = self.y(parts.y, 0.0).clamp(self.top, self.bottom);
        let line = format!("M{} {}H{}", Pixels(self.left), Pixels(base), Pixels(self.right));
        self.ground.push(Element::new("path").class("axis").with("d", line));
    }

    /// The place of a share of the width.
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    /// The place of a value.
    pub(super) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom - scale.place(value).clamp(0.0, 1.0) * (self.bottom - self.top)
    }
}

/// The labels along the bottom as they will stand.
struct Labels {
    /// Place from 0 to 1, and text.
    shown: Vec<(f64, String)>,
    /// In degrees.
    slant: f64,
    height: f64,
}

impl Labels {
    fn new(parts: &Parts<'_>, left: f64, right: f64) -> Self {
        let room = right - left;
        let upright = thin(parts.x, room);
        if parts.x_thins || upright.len() == parts.x.len() {
            let height = if upright.is_empty() { 0.0 } else { LINE };
            return Self { shown: upright, slant: 0.0, height };
        }
        let apart = room / parts.x.len() as f64;
        let slant = if apart * SLANT.to_radians().sin() >= LINE - 3.0 { SLANT } else { 90.0 };
        let lean = slant.to_radians();
        // Slanted labels end below their tick, and the first must not leave the drawing.
        let cut = |(at, label): &(f64, String)| {
            (*at, fit(label, ((left + at * room) / lean.cos()).clamp(40.0, 120.0)))
        };
        let shown: Vec<_> = parts.x.iter().map(cut).collect();
        let widest = shown.iter().map(|(_, label)| width(label)).fold(0.0, f64::max);
        Self { shown, slant, height: widest * lean.sin() + 12.0 }
    }

    fn draw(&self, frame: &Frame) -> Vec<Element> {
        let label = |(at, label): &(f64, String)| {
            let (x, y) = (frame.x(*at), frame.bottom + 6.0);
            if self.slant > 0.0 {
                let turn = format!("rotate(-{} {} {})", self.slant, Pixels(x), Pixels(y));
                word(x, y + 8.0, label).with("text-anchor", "end").with("transform", turn)
            } else {
                word(x, y + 12.0, label).with("text-anchor", "middle")
            }
        };
        self.shown.iter().map(label).collect()
    }
}

/// As many labels as have room, the first and the last before others.
fn thin(labels: &[(f64, String)], room: f64) -> Vec<(f64, String)> {
    let span = |(at, label): &(f64, String)| {
        let half = width(label) / 2.0 + GAP / 2.0;
        (at * room - half, at * room + half)
    };
    let Some((last, others)) = labels.split_last() else { return Vec::new() };
    let (end, _) = span(last);
    let mut shown: Vec<(f64, String)> = Vec::new();
    let mut taken = f64::NEG_INFINITY;
    for label in others {
        let (from, to) = span(label);
        if from >= taken && to <= end {
            taken = to;
            shown.push(label.clone());
        }
    }
    shown.push(last.clone());
    shown
}

/// A text.
pub(super) fn word(x: f64, y: f64, text: &str) -> Element {
    Element::new("text").at("x", x).at("y", y).text(text)
}

/// Room for the sample in front of an entry.
const SAMPLE: f64 = 36.0;

impl Key {
    fn text(&self) -> &str {
        match self {
            Self::Line(_, text)
            | Self::Plain(_, text)
            | Self::Mark(_, text)
            | Self::Bar(_, text) => text,
            Self::Published => "published",
            Self::Omitted => "omitted from goodput",
        }
    }

    fn draw(&self, x: f64, y: f64) -> Vec<Element> {
        let middle = y - 4.0;
        let stroke = format!("M{x:.1} {middle:.1}h28");
        match self {
            Self::Line(look, _) => vec![look.line(&stroke), look.mark(x + 14.0, middle)],
            Self::Plain(look, _) => vec![look.line(&stroke)],
            Self::Mark(look, _) => vec![look.mark(x + 14.0, middle)],
            Self::Bar(look, _) => vec![look.bar(x, y - 11.0, 28.0, 13.0)],
            Self::Published => vec![style::published(x + 14.0, middle)],
            Self::Omitted => {
                let band = Element::new("rect").class("omit").at("x", x).at("y", y - 11.0);
                vec![band.with("width", 28).with("height", 13)]
            }
        }
    }
}

/// Entries in rows that fit, each with its place.
fn rows(keys: &[Key], room: f64) -> Vec<Vec<(f64, &Key, String)>> {
    let mut rows: Vec<Vec<(f64, &Key, String)>> = Vec::new();
    let mut x = f64::INFINITY;
    for key in keys {
        let text = fit(key.text(), room - SAMPLE - 12.0);
        let wide = SAMPLE + width(&text) + 18.0;
        if x + wide > room + 14.0 {
            rows.push(Vec::new());
            x = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, key, text));
        }
        x += wide;
    }
    rows
}

fn legend(rows: &[Vec<(f64, &Key, String)>], left: f64, first: f64) -> Vec<Element> {
    let mut drawn = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let y = first + number as f64 * LINE;
        for (x, key, text) in row {
            drawn.extend(key.draw(left + x, y));
            drawn.push(word(left + x + SAMPLE, y, text));
        }
    }
    vec![Element::new("g").class("legend").children(drawn)]
}

/// A legend that stands alone, above several panels, and its height.
pub(super) fn alone(keys: &[Key], room: f64) -> (Element, f64) {
    let rows = rows(keys, room);
    let height = rows.len() as f64 * LINE + 4.0;
    (Element::new("g").children(legend(&rows, 4.0, 13.0)), height)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> Vec<(f64, String)> {
        let last = (texts.len() - 1).max(1) as f64;
        texts.iter().enumerate().map(|(n, text)| (n as f64 / last, (*text).to_owned())).collect()
    }

    #[test]
    fn labels_that_do_not_fit_are_left_out_but_never_the_last() {
        let all = labels(&["25", "50", "100", "200", "400", "10000"]);
        assert_eq!(thin(&all, 600.0).len(), 6);
        let few = thin(&all, 100.0);
        assert!(few.len() < 6 && few.last() == all.last() && few[0] == all[0], "{few:?}");
        assert!(thin(&[], 100.0).is_empty());
    }

    #[test]
    fn names_that_do_not_fit_are_slanted_and_cost_height() {
        let scale = Scale::from_zero([10.0], 250.0);
        let parts = |x| Parts {
            size: (360.0, 240.0),
            heading: "",
            y_title: "Goodput, Mbit/s",
            y: &scale,
            x_title: "profile",
            x,
            x_thins: false,
            keys: &[],
        };
        let (short, long) = (labels(&["a", "b"]), labels(&["fiber_and_lte"; 9]));
        let (one, other) = (Frame::new(&parts(&short)), Frame::new(&parts(&long)));
        let text = |frame: &Frame| Element::new("g").children(frame.ground.clone()).to_string();
        assert!(!text(&one).contains("rotate") && text(&other).contains("rotate"));
        assert!(other.bottom < one.bottom);
    }

    #[test]
    fn legends_break_into_rows() {
        let keys: Vec<_> =
            (0..6).map(|n| Key::Line(Look::of(n), format!("a system called {n}"))).collect();
        let rows = rows(&keys, 360.0);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
        assert!(rows.iter().all(|row| row[0].0 == 0.0));
    }
}
