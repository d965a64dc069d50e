//! A trace of a daemon: rates, delays, queues and decisions over time, a panel for each, a line for each path.

use super::frame::{Frame, Key, Parts};
use super::markup::Element;
use super::scale::Scale;
use super::style::Look;
use super::time::path as line_of;
use super::{Drawing, WHOLE, figure, height, legend, svg};
use crate::trace::{Kind, PathTrace, Points, Trace};

/// Width and height of a panel.
const PANEL: (f64, f64) = (WHOLE.0, 230.0);

/// A line.
struct Curve<'a> {
    name: String,
    look: Look,
    points: &'a Points,
}

/// A mark at a time, at the value of its curve.
struct Mark {
    at: f64,
    value: f64,
    look: Look,
}

/// A panel before it is drawn.
struct Panel<'a> {
    title: &'static str,
    y_title: &'static str,
    curves: Vec<Curve<'a>>,
    marks: Vec<Mark>,
}

/// Draws a trace. The names of its elements begin with `id`, which has to be unique in the page.
pub fn draw(trace: &Trace, id: &str) -> Drawing {
    let curves = |points: fn(&PathTrace) -> &Points| -> Vec<Curve<'_>> {
        let of = |(number, path)| {
            let (name, look) = (path_name(path), Look::of(number));
            Curve { name, look, points: points(path) }
        };
        trace.paths.iter().enumerate().map(of).collect()
    };
    let mut rates = curves(|path| &path.sent_mbps);
    rates.extend(trace.paths.iter().enumerate().map(|(number, path)| {
        let (name, look) = (format!("{}, believed", path.name), Look::crossed(number, number + 1));
        Curve { name, look, points: &path.rate_mbps }
    }));
    let mut waiting = curves(|path| &path.committed_kb);
    let front = Look::of(trace.paths.len());
    let name = "in front of the paths".to_owned();
    waiting.push(Curve { name, look: front, points: &trace.waiting_kb });
    let panel = |title, y_title, curves| Panel { title, y_title, curves, marks: Vec::new() };
    let panels = [
        Panel { marks: marks(trace), ..panel("Rates and findings", "Rate, Mbit/s", rates) },
        panel("Share of the bytes", "Share, %", curves(|path| &path.share_percent)),
        panel("Queue on the way", "Queueing delay, ms", curves(|path| &path.queue_ms)),
        panel("Delay above the fastest path", "Delay, ms", curves(|path| &path.skew_ms)),
        panel("What waits here", "Waiting, kB", waiting),
    ];
    let has_points = |panel: &&Panel<'_>| panel.curves.iter().any(|it| !it.points.is_empty());
    let drawn = panels.iter().filter(has_points).enumerate();
    let drawn = drawn.map(|(number, panel)| panel.draw(trace, &format!("{id}-{number}"))).collect();
    Drawing {
        title: "What the daemon traced".to_owned(),
        caption: caption(trace),
        legend: legend(id, &keys(trace, front)),
        panels: drawn,
    }
}

fn path_name(path: &PathTrace) -> String {
    path.name.clone()
}

/// What lines and marks mean.
fn keys(trace: &Trace, front: Look) -> Vec<Key> {
    let mut keys = Vec::new();
    for (number, path) in trace.paths.iter().enumerate() {
        keys.push(Key::Plain(Look::of(number), path.name.clone()));
    }
    for (number, path) in trace.paths.iter().enumerate() {
        let look = Look::crossed(number, number + 1);
        keys.push(Key::Plain(look, format!("{}: rate as believed", path.name)));
    }
    if !trace.waiting_kb.is_empty() {
        keys.push(Key::Plain(front, "waiting in front of the paths".to_owned()));
    }
    let happened = |kind: &Kind| trace.events.iter().any(|event| event.kind == Some(*kind));
    for (shape, kind) in Kind::ALL.into_iter().enumerate() {
        if happened(&kind) {
            keys.push(Key::Mark(
                Look::shaped(trace.paths.len() + 1, shape),
                kind.words().to_owned(),
            ));
        }
    }
    keys
}

/// Findings at the rate that was believed when they were made.
fn marks(trace: &Trace) -> Vec<Mark> {
    let mark = |event: &crate::trace::Event| {
        let path = trace.paths.get(event.path?)?;
        let shape = Kind::ALL.iter().position(|kind| Some(*kind) == event.kind)?;
        let before = path.rate_mbps.iter().rev().find(|(at, _)| *at <= event.at + 0.1);
        let value = before.map_or(0.0, |(_, rate)| *rate);
        Some(Mark { at: event.at, value, look: Look::shaped(event.path?, shape) })
    };
    trace.events.iter().filter_map(mark).collect()
}

fn caption(trace: &Trace) -> String {
    let mut caption = Vec::new();
    if !trace.is_whole {
        caption.push("The end of the trace is missing.".to_owned());
    }
    if trace.missed > 0 {
        caption.push(format!("{} lines are missing.", trace.missed));
    }
    caption.join(" ")
}

impl Panel<'_> {
    fn draw(&self, trace: &Trace, id: &str) -> Element {
        let end = trace.seconds.max(0.1);
        let values =
            self.curves.iter().flat_map(|curve| curve.points.iter().map(|(_, value)| *value));
        let y = Scale::from_zero(values, height(PANEL));
        let mut ticks = Scale::from_zero([end], PANEL.0).ticks();
        ticks.retain(|(at, _)| *at <= end * 1.001);
        let ticks: Vec<_> = ticks.into_iter().map(|(at, label)| (at / end, label)).collect();
        let frame = Frame::new(&Parts {
            size: PANEL,
            heading: self.title,
            y_title: self.y_title,
            y: &y,
            x_title: "Time, s",
            x: &ticks,
            x_thins: true,
            keys: &[],
        });
        let curves = self.curves.iter().map(|curve| {
            let line = line_of(curve.points, |at| frame.x(at / end), |value| frame.y(&y, value));
            Element::new("g")
                .class("series")
                .with("data-name", &curve.name)
                .child(curve.look.line(&line))
        });
        let marks = self.marks.iter().map(|mark| {
            mark.look.mark(frame.x((mark.at / end).clamp(0.0, 1.0)), frame.y(&y, mark.value))
        });
        svg(id, frame.size, self.title, &self.describe())
            .children(frame.ground.iter().cloned())
            .child(Element::new("g").class("time").children(curves))
            .child(Element::new("g").class("marks").children(marks))
    }

    fn describe(&self) -> String {
        let words = self.curves.iter().filter(|curve| !curve.points.is_empty()).map(|curve| {
            let values = || curve.points.iter().map(|(_, value)| *value);
            let mean = values().sum::<f64>() / curve.points.len() as f64;
            let high = values().fold(f64::NEG_INFINITY, f64::max);
            format!("{}: mean {}, largest {}.", curve.name, figure(mean), figure(high))
        });
        format!("{}. {}", self.y_title, words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::Event;

    use super::*;

    fn trace() -> Trace {
        let path = |name: &str, mbps: f64| PathTrace {
            name: name.into(),
            sent_mbps: vec![(0.0, mbps), (1.0, mbps)],
            rate_mbps: vec![(0.0, mbps), (1.0, mbps)],
            queue_ms: vec![(0.0, 1.0), (1.0, 3.0)],
            skew_ms: vec![(0.0, 0.0), (1.0, 0.0)],
            committed_kb: vec![(0.0, 3.0), (1.0, 3.0)],
            share_percent: vec![(0.5, 50.0)],
        };
        let event = |at, kind| Event { at, path: Some(1), kind, text: "x".into() };
        Trace {
            paths: vec![path("fibre", 50.0), path("<lte>", 20.0)],
            waiting_kb: vec![(0.0, 9.0), (1.0, 9.0)],
            events: vec![event(0.5, Some(Kind::Cut)), event(0.7, None)],
            seconds: 1.0,
            missed: 3,
            is_whole: true,
        }
    }

    #[test]
    fn every_panel_has_a_line_for_each_path_and_findings_have_marks() {
        let drawing = draw(&trace(), "t");
        assert_eq!(drawing.panels.len(), 5);
        assert_eq!(drawing.caption, "3 lines are missing.");
        let text = drawing.panels[0].to_string();
        assert_eq!(text.matches("class=\"series\"").count(), 4, "{text}");
        assert_eq!(text.matches("class=\"mark ").count(), 1, "{text}");
        assert!(text.contains("&lt;lte&gt;") && !text.contains("<lte>"), "{text}");
        assert!(text.contains("largest 50.0"), "{text}");
        let legend = drawing.legend.expect("several panels").to_string();
        assert!(legend.contains("rate cut because of loss") && !legend.contains("route longer"));
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn a_trace_of_weights_has_what_was_sent_and_no_empty_panel() {
        let mut trace = trace();
        trace.waiting_kb.clear();
        for path in &mut trace.paths {
            *path = PathTrace {
                name: path.name.clone(),
                sent_mbps: path.sent_mbps.clone(),
                share_percent: path.share_percent.clone(),
                ..PathTrace::default()
            };
        }
        assert_eq!(draw(&trace, "t").panels.len(), 2);
        assert!(draw(&Trace::default(), "t").panels.is_empty());
    }
}
