//! A report as one page of HTML that needs nothing else: no script, no font, no request.
//!
//! The page's Content Security Policy forbids everything that it does not need. Everything is built
//! of elements, so that no text of a result can become markup.

mod head;
mod section;
mod trace;

pub use trace::{trace_page, trace_plots};

use super::Report;
use super::verdict::Verdict;
use crate::plot;
use crate::plot::markup::Element;

/// Nothing may be loaded and nothing run; only styles inside the page count.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The rules of the page, beside those of plots.
const SHEET: &str = include_str!("page.css");

/// The page.
pub fn page(report: &Report) -> String {
    let sections = report.sections.iter().enumerate();
    let body = Element::new("body").child(
        Element::new("main")
            .children(head::head(report))
            .children(sections.map(|(number, section)| section::section(section, number))),
    );
    shell("Report of the MPT lab", body)
}

/// A page with this title and body.
fn shell(title: &str, body: Element) -> String {
    let head = Element::new("head")
        .child(Element::new("meta").with("charset", "utf-8"))
        .child(
            Element::new("meta")
                .with("http-equiv", "Content-Security-Policy")
                .with("content", POLICY),
        )
        .child(
            Element::new("meta")
                .with("name", "viewport")
                .with("content", "width=device-width, initial-scale=1"),
        )
        .child(Element::new("meta").with("name", "color-scheme").with("content", "light dark"))
        .child(Element::new("title").text(title))
        .child(Element::new("style").text(plot::SHEET).text(SHEET));
    let html = Element::new("html").with("lang", "en").child(head).child(body);
    format!("<!DOCTYPE html>\n{html}\n")
}

/// Every plot that an experiment asks for, as files of SVG with their names: a file for each panel, and
/// one for the legend that several share.
pub fn plots(report: &Report) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for section in &report.sections {
        let entry = &section.answer.entry.name;
        // A name of a file, whatever the experiment is called.
        let name = entry.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        for (number, drawing) in (1..).zip(section::plots(section, &name)) {
            let legend = drawing.legend.iter().map(|legend| ("legend".to_owned(), legend));
            let panels =
                (1..).zip(&drawing.panels).map(|(n, panel): (u32, _)| (n.to_string(), panel));
            let file =
                |(part, drawn)| (format!("{name}-plot-{number}-{part}.svg"), plot::alone(drawn));
            files.extend(legend.chain(panels).map(file));
        }
    }
    files
}

/// An element with a text in it.
fn text(name: &'static str, text: impl std::fmt::Display) -> Element {
    Element::new(name).text(text)
}

/// A verdict as a sign and words, so that its colour is not needed.
fn badge(verdict: Option<Verdict>) -> Element {
    let (class, words) = match verdict {
        Some(Verdict::Met) => ("badge passed", "✓ met"),
        Some(Verdict::Missed) => ("badge missed", "✗ missed"),
        Some(Verdict::NotClaimed) => ("badge open", "– not claimed"),
        Some(Verdict::NotMeasured) => ("badge open", "? not measured"),
        None => ("badge open", "no target"),
    };
    Element::new("span").class(class).text(words)
}

/// The name of a section in links.
fn anchor(number: usize) -> String {
    format!("experiment-{}", number + 1)
}

/// A list that can be folded away.
fn folded(summary: impl std::fmt::Display, class: &str, inside: Element) -> Element {
    Element::new("details").class(class).child(text("summary", summary)).child(inside)
}
