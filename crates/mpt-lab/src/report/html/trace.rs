//! A trace of a daemon as a page: its drawing, and what happened as a table.

use super::{shell, text};
use crate::plot::markup::Element;
use crate::plot::{self, Drawing};
use crate::trace::{Event, Trace};

/// More events than this are counted only.
const MOST_EVENTS: usize = 500;

/// The page of a trace with this name.
pub fn trace_page(name: &str, trace: &Trace) -> String {
    let Drawing { title, caption, legend, panels } = plot::trace(trace, "trace");
    let summary = format!(
        "{} paths, {:.1} s, {} events.",
        trace.paths.len(),
        trace.seconds,
        trace.events.len()
    );
    let mut main = Element::new("main").child(text("h1", name)).child(text("p", summary));
    main = main.child(text("h2", title));
    if !caption.is_empty() {
        main = main.child(text("p", caption));
    }
    main = main.children(legend).children(panels);
    if !trace.events.is_empty() {
        main = main.child(text("h2", "What happened")).child(table(trace));
    }
    let hidden = trace.events.len().saturating_sub(MOST_EVENTS);
    if hidden > 0 {
        main = main.child(text("p", format!("{hidden} further events are in the file.")));
    }
    shell(name, Element::new("body").child(main))
}

/// Every panel and the legend as files of SVG with their names.
pub fn trace_plots(name: &str, trace: &Trace) -> Vec<(String, String)> {
    let drawing = plot::trace(trace, "trace");
    let legend = drawing.legend.iter().map(|legend| ("legend".to_owned(), legend));
    let panels =
        (1..).zip(&drawing.panels).map(|(number, panel): (u32, _)| (number.to_string(), panel));
    let files = legend.chain(panels);
    files.map(|(part, drawn)| (format!("{name}-{part}.svg"), plot::alone(drawn))).collect()
}

fn table(trace: &Trace) -> Element {
    let words = ["path", "what"].map(|title| text("th", title).class("words"));
    let row = |event: &Event| {
        let path = event.path.and_then(|path| trace.paths.get(path));
        Element::new("tr")
            .child(text("td", format!("{:.2}", event.at)))
            .child(text("td", path.map_or("", |path| &path.name)).class("words"))
            .child(text("td", &event.text).class("words"))
    };
    Element::new("table")
        .child(Element::new("tr").child(text("th", "time, s")).children(words))
        .children(trace.events.iter().take(MOST_EVENTS).map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::PathTrace;

    #[test]
    fn names_and_events_cannot_become_markup() {
        let trace = Trace {
            paths: vec![PathTrace {
                name: "<b>".into(),
                sent_mbps: vec![(0.0, 1.0)],
                ..PathTrace::default()
            }],
            events: vec![Event { at: 0.5, path: Some(0), kind: None, text: "<script>".into() }],
            seconds: 1.0,
            ..Trace::default()
        };
        let page = trace_page("a<i>", &trace);
        assert!(page.contains("&lt;script&gt;") && page.contains("a&lt;i&gt;"), "{page}");
        assert!(!page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>"));
        assert!(page.contains("The end of the trace is missing."));
        assert_eq!(trace_plots("x", &trace)[0].0, "x-legend.svg");
    }
}
