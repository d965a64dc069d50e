use super::*;
use crate::results::{Axis, Coordinate, Figure, Published, SystemEntry, SystemRecord};

/// Cells over two axes: `delay` 0, 10, 20 and `kind` a, b; two systems, of which the first reaches
/// 10 times the cell's number; every second cell is published.
struct Fixture {
    entry: ExperimentEntry,
    cells: Vec<CellRecord>,
}

impl Fixture {
    fn new() -> Self {
        let axis = |name: &str, unit: &str, labels: &[&str]| Axis {
            kept: Vec::new(),
            name: name.into(),
            title: String::new(),
            unit: unit.into(),
            labels: labels.iter().map(|&label| label.into()).collect(),
        };
        let entry = ExperimentEntry {
            name: "x".into(),
            axes: vec![axis("delay", "ms", &["0", "10", "20"]), axis("kind", "", &["a", "b"])],
            systems: vec![
                SystemEntry { name: "classic".into(), title: "MPT <classic>".into() },
                SystemEntry { name: "mptcp".into(), title: String::new() },
            ],
            ..ExperimentEntry::default()
        };
        let mut cells = Vec::new();
        for delay in ["0", "10", "20"] {
            for kind in ["a", "b"] {
                cells.push(Self::cell(cells.len() + 1, delay, kind));
            }
        }
        Self { entry, cells }
    }

    fn cell(number: usize, delay: &str, kind: &str) -> CellRecord {
        let goodput = number as f64 * 10.0;
        let system = |name: &str, goodput: f64| SystemRecord {
            system: name.into(),
            figures: [(
                "goodput_mbps".to_owned(),
                Figure::of(&[goodput - 1.0, goodput, goodput + 2.0]).unwrap(),
            )]
            .into(),
            samples_mbps: vec![0.0, goodput, goodput],
            ..SystemRecord::default()
        };
        let printed = Published {
            system: "classic".into(),
            figure: "goodput_mbps".into(),
            value: goodput + 1.0,
        };
        let at = |axis: &str, label: &str| Coordinate {
            axis: axis.into(),
            label: label.into(),
            value: label.parse().ok(),
        };
        CellRecord {
            cell: vec![at("delay", delay), at("kind", kind)],
            systems: vec![system("classic", goodput), system("mptcp", goodput / 2.0)],
            published: if number.is_multiple_of(2) { vec![printed] } else { Vec::new() },
            sample_seconds: 0.1,
            ..CellRecord::default()
        }
    }

    fn draw(&self, plot: &Plot) -> Drawing {
        draw(Subject { entry: &self.entry, cells: &self.cells }, plot, "id")
    }
}

fn plot(kind: PlotKind, x: &str, by: &str) -> Plot {
    Plot { kind, x: x.into(), by: by.into(), figure: "goodput_mbps".into(), ..Plot::default() }
}

/// How often a class occurs in all panels, without legends.
fn count(drawing: &Drawing, class: &str) -> usize {
    let class = format!("class=\"{class}");
    drawing.panels.iter().map(|panel| panel.to_string().matches(&class).count()).sum()
}

#[test]
fn every_point_of_the_other_axis_has_a_panel_and_every_system_a_line() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Lines, "delay", ""));
    assert_eq!(drawing.panels.len(), 2);
    assert_eq!(drawing.title, "Goodput, Mbit/s by delay");
    assert_eq!((count(&drawing, "line "), count(&drawing, "mark ")), (4, 12));
    assert_eq!((count(&drawing, "whisker "), count(&drawing, "published ")), (12, 3));
    let legend = drawing.legend.expect("several panels share a legend").to_string();
    assert!(legend.contains("MPT &lt;classic&gt;") && legend.contains("published"), "{legend}");
    assert!(drawing.panels[1].to_string().contains("kind b"));
}

#[test]
fn every_point_of_a_further_axis_has_a_line_and_few_share_a_panel() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Lines, "delay", "kind"));
    assert_eq!((drawing.panels.len(), drawing.legend), (1, None));
    // The legend stands in the panel and shows a line and a mark for each.
    let drawing = Fixture::new().draw(&plot(PlotKind::Lines, "delay", "kind"));
    assert_eq!((count(&drawing, "line "), count(&drawing, "mark ")), (4 + 4, 12 + 4));
    assert!(drawing.panels[0].to_string().contains("MPT &lt;classic&gt;, kind b"));
}

#[test]
fn many_lines_are_parted_by_system() {
    let mut fixture = Fixture::new();
    fixture.entry.axes[1].labels.extend(["c".into(), "d".into()]);
    for kind in ["c", "d"] {
        fixture.cells.push(Fixture::cell(fixture.cells.len() + 1, "0", kind));
    }
    let drawing = fixture.draw(&plot(PlotKind::Lines, "delay", "kind"));
    assert_eq!(drawing.panels.len(), 2);
    assert!(drawing.panels[1].to_string().contains("mptcp"), "a heading");
}

#[test]
fn bars_stand_beside_each_other_and_a_further_axis_takes_panels() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Bars, "delay", "kind"));
    assert_eq!((drawing.panels.len(), count(&drawing, "bar")), (2, 12));
    assert_eq!(count(&drawing, "published "), 3);
    let one = Plot { systems: vec!["mptcp".into()], ..plot(PlotKind::Bars, "delay", "kind") };
    let drawing = Fixture::new().draw(&one);
    assert_eq!((drawing.panels.len(), count(&drawing, "bar")), (1, 6 + 2), "with the legend");
}

#[test]
fn grids_print_every_value_and_have_a_panel_for_what_was_published() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Grid, "delay", "kind"));
    let texts: Vec<_> = drawing.panels.iter().map(ToString::to_string).collect();
    assert_eq!(drawing.panels.len(), 3);
    assert!(texts[0].contains("MPT &lt;classic&gt;, published") && texts[0].contains(">61.0<"));
    assert_eq!(
        (texts[0].matches("class=\"cell\"").count(), texts[1].matches("class=\"cell\"").count()),
        (3, 6)
    );
    for value in ["10.0", "20.0", "30.0", "40.0", "50.0", "60.0"] {
        assert!(texts[1].contains(&format!(">{value}<")), "{value}");
    }
}

#[test]
fn time_has_a_panel_for_every_cell() {
    let mut fixture = Fixture::new();
    fixture.cells[0].systems[0].samples_mbps.clear();
    let drawing = fixture.draw(&plot(PlotKind::Time, "", ""));
    assert_eq!((drawing.panels.len(), count(&drawing, "line ")), (6, 11));
    assert!(drawing.caption.contains("its own scale"), "10 and 60 Mbit/s: {}", drawing.caption);
}

#[test]
fn scaled_cells_are_drawn_in_the_units_of_the_file() {
    let mut fixture = Fixture::new();
    fixture.cells.truncate(1);
    fixture.cells[0].scale = 10.0;
    let drawing = fixture.draw(&plot(PlotKind::Time, "", ""));
    assert!(drawing.panels[0].to_string().contains("largest 100 Mbit/s"), "10 measured, times 10");
    assert!(drawing.caption.contains("units of the file"));
}

#[test]
fn nothing_to_draw_makes_no_panel() {
    let mut fixture = Fixture::new();
    for kind in [PlotKind::Lines, PlotKind::Bars, PlotKind::Grid] {
        let unknown = Plot { figure: "unknown".into(), ..plot(kind, "delay", "kind") };
        assert!(fixture.draw(&unknown).panels.is_empty(), "{kind:?}");
    }
    fixture.cells.clear();
    for kind in [PlotKind::Lines, PlotKind::Bars, PlotKind::Grid, PlotKind::Time] {
        assert!(fixture.draw(&plot(kind, "delay", "kind")).panels.is_empty(), "{kind:?}");
    }
}

#[test]
fn figures_that_are_no_numbers_are_left_out() {
    let mut fixture = Fixture::new();
    for value in [f64::NAN, f64::INFINITY] {
        let figure = Figure { median: value, min: 1.0, max: value, count: 2 };
        fixture.cells[0].systems[0].figures.insert("goodput_mbps".into(), figure);
        fixture.cells[0].systems[0].samples_mbps = vec![value, 1.0];
        for kind in [PlotKind::Lines, PlotKind::Bars, PlotKind::Grid, PlotKind::Time] {
            let drawing = fixture.draw(&plot(kind, "delay", "kind"));
            let text: String = drawing.panels.iter().map(ToString::to_string).collect();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{kind:?}");
        }
    }
}

#[test]
fn a_plot_without_axes_takes_the_longest() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Lines, "", ""));
    assert_eq!(drawing.title, "Goodput, Mbit/s by delay");
    let own = Plot { title: "Mine".into(), ..plot(PlotKind::Lines, "", "") };
    assert_eq!(Fixture::new().draw(&own).title, "Mine");
}

#[test]
fn a_plot_has_a_text_description() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Lines, "delay", ""));
    let text = drawing.panels[1].to_string();
    assert!(
        text.contains("role=\"img\"")
            && text.contains("aria-labelledby=\"id-1-title id-1-description\"")
    );
    assert!(
        text.contains(
            "MPT &lt;classic&gt;: 20.0 at 0, 40.0 at 10, 60.0 at 20; published 21.0 at 0"
        ),
        "{text}"
    );
}

#[test]
fn a_panel_alone_brings_its_styles() {
    let drawing = Fixture::new().draw(&plot(PlotKind::Bars, "delay", ""));
    let file = alone(&drawing.panels[0]);
    assert!(
        file.starts_with("<?xml") && file.contains("--c0:#0072b2") && file.ends_with("</svg>\n")
    );
}
