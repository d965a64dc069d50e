//! The top of the page: what this is, on what it was measured, and how it went.

use super::{anchor, badge, folded, text};
use crate::plot::figure;
use crate::plot::markup::Element;
use crate::report::Report;
use crate::report::verdict::Verdict;
use crate::results::{Manifest, SelfTest};

/// The top of the page.
pub(super) fn head(report: &Report) -> Vec<Element> {
    let mut parts = vec![
        text("h1", "Report of the MPT lab"),
        text("p", INTRODUCTION).class("lead"),
        summary(report),
    ];
    let latest = report.runs.last();
    parts.extend(latest.map(|run| facts(report, run)));
    if report.runs.len() > 1 {
        parts.push(runs(&report.runs));
    }
    let tested = report.runs.iter().rev().find_map(|run| run.selftest.as_ref());
    parts.extend(self_test(tested));
    parts.push(text("h3", "Experiments"));
    parts.push(contents(report));
    parts.push(text("h3", "Prediction"));
    let words = report.prediction.outcome();
    parts
        .push(Element::new("p").child(badge(Some(report.prediction.verdict()))).text(format_args!(
        " The model and the goodput of classic MPT: {words}. The target is 90\u{a0}% of the cells."
    )));
    if !report.prediction.far.is_empty() {
        let far = report.prediction.far.iter();
        let far =
            far.map(|(place, off)| text("li", format_args!("{place}: {:+.1} %", off * 100.0)));
        let list = Element::new("ul").class("notes").children(far);
        let title = format!("{} cells with a larger error", report.prediction.far.len());
        parts.push(folded(title, "words", list));
    }
    parts
}

const INTRODUCTION: &str = "Measurements of MPT, a multipath tunnel, and of other systems, over \
    links emulated on one machine. The daemons, the kernel's TCP and the packets are real. \
    Published figures are shown beside those measured here. All figures are computed from the \
    results in the folder of this page.";

fn summary(report: &Report) -> Element {
    let counts = report.counts();
    let worst = if counts[1].1 > 0 {
        Some(Verdict::Missed)
    } else {
        counts.iter().filter(|(_, count)| *count > 0).map(|(verdict, _)| *verdict).max()
    };
    Element::new("p")
        .class("lead")
        .child(badge(worst))
        .text(format_args!(" Targets: {}.", crate::report::counts_in_words(report)))
}

fn facts(report: &Report, run: &Manifest) -> Element {
    let known =
        |value: &str| if value.is_empty() { "not known".to_owned() } else { value.to_owned() };
    let commits: Vec<&str> = distinct(report.runs.iter().map(|run| run.commit.as_str()));
    let commit = if commits.len() > 1 {
        format!("{} (cells of several commits: {})", known(&run.commit), commits.join(", "))
    } else {
        known(&run.commit)
    };
    let forms: Vec<String> =
        report.sections.iter().map(|section| section.answer.form_in_words()).collect();
    let mut forms = distinct(forms.iter().map(String::as_str)).join(" and ");
    if forms.contains("quick") {
        forms.push_str(
            " (quick: a few points of each axis, a few seconds each; no transients and no \
             distributions are claimed)",
        );
    }
    let cells = || report.sections.iter().flat_map(|section| &section.answer.cells);
    let scaled = cells().filter(|cell| cell.scale > 0.0 && cell.scale != 1.0).count();
    let scale = match (scaled, cells().count()) {
        (0, _) => "1 in all cells".to_owned(),
        (some, all) => {
            format!("{some} of {all} cells are scaled; see their experiments for the reason")
        }
    };
    let doubtful = cells().filter(|cell| cell.doubtful).count();
    let rows = [
        ("Measured", known(&run.started)),
        ("Version", known(&run.version)),
        ("Commit", commit),
        ("Kernel", known(&run.kernel)),
        ("Processor", format!("{}, {} of them", known(&run.cpu), run.processors)),
        ("Links by", known(&run.backend)),
        ("Runs", known(&forms)),
        ("Seeds", seeds(&report.seeds)),
        ("Scale", scale),
        ("Cells", format!("{}, of which {doubtful} doubtful", cells().count())),
        ("Command", known(&run.command)),
    ];
    let rows = rows.into_iter().flat_map(|(name, value)| [text("dt", name), text("dd", value)]);
    Element::new("dl").class("facts").children(rows)
}

/// A few seeds each, many as a range.
fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [] => "none".into(),
        [first, .., last] if seeds.len() > 8 => format!("{} from {first} to {last}", seeds.len()),
        some => some.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

fn runs(runs: &[Manifest]) -> Element {
    let head =
        ["Run", "Commit", "Kernel", "Form", "Command"].map(|name| text("th", name).class("words"));
    let row = |run: &Manifest| {
        let form = if run.quick { "quick" } else { "full" };
        let cells = [&run.id, &run.commit, &run.kernel, form, &run.command];
        Element::new("tr").children(cells.map(|cell| text("td", cell).class("words")))
    };
    let table = Element::new("table")
        .child(Element::new("thead").child(Element::new("tr").children(head)))
        .child(Element::new("tbody").children(runs.iter().map(row)));
    let scroll = Element::new("div").class("scroll").child(table);
    folded(format_args!("The cells are of {} runs", runs.len()), "words", scroll)
}

fn self_test(test: Option<&SelfTest>) -> Vec<Element> {
    let title = text("h3", "Accuracy of the emulated links on this machine");
    let Some(test) = test else {
        return vec![title, text("p", "The emulator was not tested.")];
    };
    let failed = test.checks.iter().filter(|check| !check.passed).count();
    let verdict =
        if failed == 0 { "All are within the limits." } else { "Not all are within the limits!" };
    let words = format!(
        "Measured without any tunnel. Links of {} Mbit/s in all are carried on time; cells above half of \
         that are scaled. {verdict}",
        figure(test.ceiling_mbps)
    );
    let head = ["property", "set", "measured", "accepted", "unit", ""];
    let head = head.iter().enumerate().map(|(n, name)| {
        let class = if [0, 4, 5].contains(&n) { "words" } else { "" };
        text("th", name).class(class)
    });
    let row = |check: &crate::results::Check| {
        let cells = [
            text("th", &check.name).class("words").with("scope", "row"),
            text("td", figure(check.set)),
            text("td", figure(check.got)),
            text("td", format_args!("± {}", figure(check.tolerance))),
            text("td", &check.unit).class("words"),
            Element::new("td").class("words").child(badge(Some(if check.passed {
                Verdict::Met
            } else {
                Verdict::Missed
            }))),
        ];
        Element::new("tr").children(cells)
    };
    let table = Element::new("table")
        .child(Element::new("thead").child(Element::new("tr").children(head)))
        .child(Element::new("tbody").children(test.checks.iter().map(row)));
    vec![title, text("p", words), Element::new("div").class("scroll").child(table)]
}

/// What is on the page, with a verdict for each experiment.
fn contents(report: &Report) -> Element {
    let head = ["experiment", "", "verdict", "targets", "cells", "form"];
    let head = head
        .iter()
        .enumerate()
        .map(|(n, name)| text("th", name).class(if n == 4 { "" } else { "words" }));
    let row = |(number, section): (usize, &crate::report::Section)| {
        let (verdict, words) = section.verdict();
        let answer = &section.answer;
        let form = answer.form_in_words();
        let link = Element::new("a")
            .with("href", format_args!("#{}", anchor(number)))
            .text(&answer.entry.name);
        let cells = [
            Element::new("th").class("words short").with("scope", "row").child(link),
            text("td", section.title()).class("words"),
            Element::new("td").class("words").child(badge(verdict)),
            text("td", words).class("words short"),
            text("td", answer.cells.len()),
            text("td", form).class("words"),
        ];
        Element::new("tr").children(cells)
    };
    let table = Element::new("table")
        .child(Element::new("thead").child(Element::new("tr").children(head)))
        .child(Element::new("tbody").children(report.sections.iter().enumerate().map(row)));
    Element::new("nav")
        .with("aria-label", "Experiments")
        .child(Element::new("div").class("scroll").child(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_seeds_are_a_range() {
        assert_eq!(seeds(&[]), "none");
        assert_eq!(seeds(&[1, 7]), "1, 7");
        assert_eq!(seeds(&(1..=20).collect::<Vec<_>>()), "20 from 1 to 20");
    }
}
