//! How things in plots look: colours, dashes, marks and hatchings, so that colour is never the only cue.
//!
//! The colours are those of Okabe and Ito, which people with any kind of colour blindness can
//! distinguish, in the order of largest difference in greyscale; a dark page uses lighter ones.

use super::markup::Element;

/// The style sheet that every plot needs: once in a page, or in each file that stands alone.
///
/// It holds none of the characters that HTML or XML would have to escape.
pub const SHEET: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--faint:#59636e;--rule:#d8dde3;--paper:#fff;--panel:#f5f7f9;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#aa4499;--c4:#e69f00;--c5:#56b4e9;--c6:#332288;--c7:#777}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#a3adb8;--rule:#3b434c;--paper:#15181c;\
--panel:#1e2329;--c0:#56b4e9;--c1:#ff8a3d;--c2:#2fc79a;--c3:#e58fd0;--c4:#f2c14e;--c5:#9fd3f5;--c6:#a99be8;--c7:#aaa}}
@media print{:root{--ink:#000;--faint:#333;--rule:#bbb;--paper:#fff;--panel:#f5f5f5;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#aa4499;--c4:#e69f00;--c5:#56b4e9;--c6:#332288;--c7:#777}}
svg.plot{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;max-width:100%;height:auto}
svg.plot text{fill:var(--ink)}
svg.plot text.faint{fill:var(--faint)}
svg.plot text.head{font-weight:600}
svg.plot .rule{stroke:var(--rule);stroke-width:1;fill:none}
svg.plot .axis{stroke:var(--faint);stroke-width:1;fill:none}
svg.plot .omit{fill:var(--rule);opacity:.45}
svg.plot .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
svg.plot .time .line,svg.plot.time .line{stroke-width:1.3}
svg.plot .whisker{fill:none;stroke-width:1.2}
svg.plot .mark{stroke-width:1.2;stroke:var(--paper)}
svg.plot .published{fill:none;stroke-width:1.8}
svg.plot .edge{stroke:var(--paper);stroke-width:.8;fill:none}
svg.plot .hatch{stroke:var(--paper);stroke-width:1.6;fill:none}
svg.plot .l0{stroke:var(--c0)}svg.plot .f0{fill:var(--c0)}
svg.plot .l1{stroke:var(--c1)}svg.plot .f1{fill:var(--c1)}
svg.plot .l2{stroke:var(--c2)}svg.plot .f2{fill:var(--c2)}
svg.plot .l3{stroke:var(--c3)}svg.plot .f3{fill:var(--c3)}
svg.plot .l4{stroke:var(--c4)}svg.plot .f4{fill:var(--c4)}
svg.plot .l5{stroke:var(--c5)}svg.plot .f5{fill:var(--c5)}
svg.plot .l6{stroke:var(--c6)}svg.plot .f6{fill:var(--c6)}
svg.plot .l7{stroke:var(--c7)}svg.plot .f7{fill:var(--c7)}
svg.plot .lp{stroke:var(--ink)}
";

/// The number of colours.
const COLOURS: usize = 8;

/// Dashes and gaps of lines, in pixels; an empty one is a line without gaps.
const DASHES: [&str; 5] = ["", "7 4", "2 4", "10 4 2 4", "14 5"];

/// The number of mark shapes.
const SHAPES: usize = 6;

/// The number of bar hatchings, the first one being none.
const HATCHINGS: usize = 4;

/// How one of several things looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    colour: usize,
    dash: usize,
    shape: usize,
}

impl Look {
    /// Of the thing number `index`; no two of the first 120 look the same.
    pub(super) fn of(index: usize) -> Self {
        Self { colour: index % COLOURS, dash: index % DASHES.len(), shape: index % SHAPES }
    }

    /// One that shares colour and mark with others of this number, and dashes with others of that.
    pub(super) fn crossed(index: usize, other: usize) -> Self {
        Self { dash: other % DASHES.len(), ..Self::of(index) }
    }

    /// One that shares its colour with others of this number, and its mark with others of that.
    pub(super) fn shaped(index: usize, other: usize) -> Self {
        Self { shape: other % SHAPES, ..Self::of(index) }
    }

    /// A line along an SVG path.
    pub(super) fn line(self, path: &str) -> Element {
        let line =
            Element::new("path").class(format_args!("line l{}", self.colour)).with("d", path);
        let dash = DASHES[self.dash];
        if dash.is_empty() { line } else { line.with("stroke-dasharray", dash) }
    }

    /// A whisker from one height to another, with short bars at its ends.
    pub(super) fn whisker(self, x: f64, top: f64, bottom: f64) -> Element {
        let path = format!(
            "M{x:.1} {top:.1}V{bottom:.1}M{:.1} {top:.1}h7M{:.1} {bottom:.1}h7",
            x - 3.5,
            x - 3.5
        );
        Element::new("path").class(format_args!("whisker l{}", self.colour)).with("d", path)
    }

    /// A full mark.
    pub(super) fn mark(self, x: f64, y: f64) -> Element {
        let shape = Element::new("path").class(format_args!("mark f{}", self.colour));
        shape.with("d", outline(self.shape, x, y, 4.6))
    }

    /// A hollow mark, for a published value.
    pub(super) fn published(self, x: f64, y: f64) -> Element {
        let shape = Element::new("path").class(format_args!("published l{}", self.colour));
        shape.with("d", outline(self.shape, x, y, 5.6))
    }

    /// A bar, hatched so that neighbours differ in grey too.
    pub(super) fn bar(self, x: f64, y: f64, width: f64, height: f64) -> Element {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let rect = Element::new("rect").class(format_args!("f{}", self.colour));
        let rect = rect.at("x", x).at("y", y).at("width", width).at("height", height);
        let hatching = hatching(self.shape % HATCHINGS, x, y, width, height);
        let bar = Element::new("g").class("bar").child(rect);
        if hatching.is_empty() {
            bar
        } else {
            bar.child(Element::new("path").class("hatch").with("d", hatching))
        }
    }
}

/// The mark that stands for published values in a legend.
pub(super) fn published(x: f64, y: f64) -> Element {
    Element::new("path").class("published lp").with("d", outline(0, x, y, 5.0))
}

/// The path of a mark of about this radius.
fn outline(shape: usize, x: f64, y: f64, r: f64) -> String {
    match shape {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", x - r, d = 2.0 * r),
        1 => polygon(x, y, &[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)], r),
        2 => polygon(x, y, &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)], r),
        3 => polygon(x, y, &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)], r),
        4 => polygon(x, y, &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)], r),
        _ => polygon(
            x,
            y,
            &[
                (-0.4, -1.1),
                (0.4, -1.1),
                (0.4, -0.4),
                (1.1, -0.4),
                (1.1, 0.4),
                (0.4, 0.4),
                (0.4, 1.1),
                (-0.4, 1.1),
                (-0.4, 0.4),
                (-1.1, 0.4),
                (-1.1, -0.4),
                (-0.4, -0.4),
            ],
            r,
        ),
    }
}

fn polygon(x: f64, y: f64, corners: &[(f64, f64)], r: f64) -> String {
    let corner = |&(dx, dy): &(f64, f64)| format!("{:.1} {:.1}", x + dx * r, y + dy * r);
    let corners: Vec<_> = corners.iter().map(corner).collect();
    format!("M{}z", corners.join("L"))
}

/// Lines across a bar, all inside it.
fn hatching(kind: usize, x: f64, y: f64, width: f64, height: f64) -> String {
    const GAP: f64 = 6.0;
    let (right, bottom) = (x + width, y + height);
    let mut path = String::new();
    // A line with slope 1 or -1 through the bar, cut at its edges.
    let mut slanted = |rising: bool| {
        let count = ((width + height) / GAP).floor() as usize;
        for n in 1..=count {
            let along = n as f64 * GAP;
            let (near, far) = ((along - height).max(0.0), along.min(width));
            if far - near < 1.0 {
                continue;
            }
            let height_at = |dx: f64| if rising { bottom - (along - dx) } else { y + (along - dx) };
            let line = [(near, height_at(near)), (far, height_at(far))];
            for (letter, (dx, dy)) in ["M", "L"].into_iter().zip(line) {
                path.push_str(&format!("{letter}{:.1} {dy:.1}", x + dx));
            }
        }
    };
    match kind {
        1 => slanted(true),
        2 => slanted(false),
        3 => {
            let count = (height / GAP).floor() as usize;
            for n in 1..=count {
                path.push_str(&format!("M{x:.1} {:.1}H{right:.1}", bottom - n as f64 * GAP));
            }
        }
        _ => (),
    }
    path
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn many_series_have_different_styles() {
        let looks: HashSet<_> =
            (0..120).map(Look::of).map(|look| (look.colour, look.dash, look.shape)).collect();
        assert_eq!(looks.len(), 120);
        let near: Vec<_> = (0..4).map(|index| hatching(index, 0.0, 0.0, 20.0, 40.0)).collect();
        assert!(near[0].is_empty() && near[1..].iter().all(|path| path.contains('M')));
        assert_eq!(near.iter().collect::<HashSet<_>>().len(), 4);
    }

    #[test]
    fn crossed_axes_share_their_common_cells() {
        let (one, two) = (Look::crossed(3, 0), Look::crossed(3, 1));
        assert_eq!((one.colour, one.shape), (two.colour, two.shape));
        assert_ne!(one.dash, two.dash);
    }

    #[test]
    fn hatching_stays_inside_its_bar() {
        for kind in 1..HATCHINGS {
            let path = hatching(kind, 10.0, 20.0, 15.0, 37.0);
            let numbers = |letters: &'static [char]| {
                path.split(|c: char| c.is_ascii_alphabetic())
                    .filter(|part| !part.is_empty())
                    .flat_map(move |part| {
                        part.split(letters).map(|n| n.parse::<f64>().unwrap()).collect::<Vec<_>>()
                    })
            };
            let all: Vec<f64> = numbers(&[' ']).collect();
            assert!(all.iter().all(|value| (10.0..=57.0).contains(value)), "{kind}: {path}");
        }
    }

    #[test]
    fn the_sheet_needs_no_escaping() {
        assert!(!SHEET.contains(['<', '>', '&', '"']));
    }
}
