//! An experiment on the page: question, verdicts, drawings, tables, remarks, and how to run it again.

use super::{anchor, badge, folded, text};
use crate::plot::markup::Element;
use crate::plot::{self, Drawing, Subject};
use crate::report::table::{Entry, Row, Table};
use crate::report::verdict::Judgement;
use crate::report::{Form, Section, form_of_run};
use crate::results::{Plot, PlotKind};

/// A table with more rows than this is folded.
const LONG: usize = 30;
/// More misses of one target than this are not listed.
const MISSES: usize = 100;

/// The section number `number` of the page.
pub(super) fn section(section: &Section, number: usize) -> Element {
    let entry = &section.answer.entry;
    let anchor = anchor(number);
    let mut parts = vec![
        text("h2", section.title()),
        Element::new("p").class("faint").child(text("code", &entry.name)).text(about(section)),
    ];
    if !entry.question.is_empty() {
        parts.push(text("p", &entry.question).class("question"));
    }
    if !entry.source.is_empty() {
        parts.push(text("p", format_args!("Repeats {}.", entry.source.trim_end_matches('.'))));
    }
    if !section.remarks.is_empty() {
        let items = section.remarks.iter().map(|remark| text("li", remark));
        parts.push(Element::new("div").class("remarks").child(Element::new("ul").children(items)));
    }
    parts.extend(verdicts(section));
    parts.extend(setup(section));
    parts.extend(drawings(section, &anchor));
    let tables = section.tables.iter().map(table);
    parts.push(Element::new("div").class("tables").children(tables));
    parts.extend(doubts(section));
    if !section.notes.is_empty() {
        parts.push(text("h3", "Notes"));
        let items = section.notes.iter().map(|note| text("li", note));
        parts.push(Element::new("ul").class("notes").children(items));
    }
    if !entry.command.is_empty() {
        parts.push(text("h3", "To repeat it"));
        parts.push(Element::new("pre").child(text("code", &entry.command)));
    }
    if !entry.text.is_empty() {
        let file = Element::new("pre").child(text("code", entry.text.trim_end()));
        parts.push(folded(
            format_args!("{}.toml, the experiment itself", entry.name),
            "words",
            file,
        ));
    }
    Element::new("section").with("id", anchor).children(parts)
}

/// What was set: what a paper has to say of an experiment beside its figures.
fn setup(section: &Section) -> Vec<Element> {
    let facts = section.setup();
    if facts.is_empty() {
        return Vec::new();
    }
    let row = |(name, value): &(&str, String)| {
        let name = text("th", name).class("words").with("scope", "row");
        Element::new("tr").child(name).child(text("td", value).class("words"))
    };
    let table = Element::new("table")
        .with("aria-label", "What was set")
        .child(Element::new("tbody").children(facts.iter().map(row)));
    let scroll = Element::new("div").class("scroll").with("tabindex", "0").child(table);
    vec![folded("What was set: links, tunnel and traffic", "words", scroll)]
}

/// Form, cells and seconds in a few words.
fn about(section: &Section) -> String {
    let answer = &section.answer;
    let form = form_of_run(&answer.form_in_words());
    let cells = match answer.cells.len() {
        1 => "1 cell".to_owned(),
        count => format!("{count} cells"),
    };
    let seconds = answer.cells.first().map(|cell| {
        format!(", {} s of traffic each, the first {} s omitted", cell.seconds, cell.omit)
    });
    format!(" · {form} · {cells}{}", seconds.unwrap_or_default())
}

fn verdicts(section: &Section) -> Vec<Element> {
    if section.judgements.is_empty() {
        return Vec::new();
    }
    let item = |judgement: &Judgement| {
        let mut item = Element::new("li")
            .child(badge(Some(judgement.verdict)))
            .text(" ")
            .text(&judgement.text)
            .text(" – ")
            .child(text("span", judgement.outcome()).class("faint"));
        if judgement.misses.len() > 1 {
            item = item.child(misses(judgement));
        }
        item
    };
    let items = section.judgements.iter().map(item);
    vec![text("h3", "Verdict"), Element::new("ul").class("plain").children(items)]
}

fn misses(judgement: &Judgement) -> Element {
    let miss = |miss: &crate::report::verdict::Miss| {
        let doubtful = if miss.doubtful { " (doubtful)" } else { "" };
        let (got, by) = (plot::figure(miss.got), plot::figure(miss.by));
        text("li", format_args!("{}: {got}, missed by {by}{doubtful}", miss.place))
    };
    let list = judgement.misses.iter().take(MISSES).map(miss);
    let more = judgement.misses.len().saturating_sub(MISSES);
    let more = (more > 0).then(|| text("li", format_args!("and {more} more")));
    let list = Element::new("ul").class("notes").children(list).children(more);
    folded(format_args!("the {} cells that miss the target", judgement.misses.len()), "words", list)
}

fn drawings(section: &Section, anchor: &str) -> Vec<Element> {
    let answer = &section.answer;
    let mut parts: Vec<Element> = plots(section, anchor).into_iter().map(figure).collect();
    let shown =
        answer.plots().iter().any(|plot| plot.kind == PlotKind::Time && plot.systems.is_empty());
    if answer.form == Form::Full && !shown {
        let plot = Plot { kind: PlotKind::Time, ..Plot::default() };
        let subject = Subject { entry: &answer.entry, cells: &answer.cells };
        let drawing = plot::draw(subject, &plot, &format!("{anchor}-time"));
        if !drawing.panels.is_empty() {
            let title = format!("Goodput over time in {} cells", drawing.panels.len());
            parts.push(folded(title, "time", figure(drawing)));
        }
    }
    parts
}

/// The plots that an experiment asks for, without those that show nothing.
pub(super) fn plots(section: &Section, anchor: &str) -> Vec<Drawing> {
    let entry = &section.answer.entry;
    let subject = Subject { entry, cells: &section.answer.cells };
    let asked = section.answer.plots();
    let drawn = asked
        .iter()
        .enumerate()
        .map(|(number, plot)| plot::draw(subject, plot, &format!("{anchor}-plot-{}", number + 1)));
    drawn.filter(|drawing| !drawing.panels.is_empty()).collect()
}

fn figure(drawing: Drawing) -> Element {
    let Drawing { title, caption, legend, panels } = drawing;
    let mut words = Element::new("figcaption").text(title);
    if !caption.is_empty() {
        words = words.child(text("small", caption));
    }
    let class = if panels.len() > 1 { "panels many" } else { "panels" };
    let panels = Element::new("div").class(class).children(panels);
    Element::new("figure").child(words).children(legend).child(panels)
}

fn table(table: &Table) -> Element {
    let starts: Vec<usize> = table
        .groups
        .iter()
        .scan(0, |at, (_, count)| {
            let start = *at;
            *at += count;
            Some(start)
        })
        .skip(1)
        .collect();
    let edge = |n: usize| if starts.contains(&n) { " group" } else { "" };
    let groups = table.groups.iter().enumerate().map(|(n, (name, count))| {
        let class = if n > 0 { "group" } else { "" };
        text("th", name).class(class).with("colspan", count).with("scope", "colgroup")
    });
    let heads = table.head.iter().enumerate().map(|(n, name)| {
        let words = if n < table.stubs { "words" } else { "" };
        text("th", name)
            .class(format_args!("{words}{}", edge(n)).to_string().trim())
            .with("scope", "col")
    });
    let row = |row: &Row| {
        let cell = |(n, entry): (usize, &Entry)| {
            let stub = n < table.stubs;
            let cell = Element::new(if stub { "th" } else { "td" });
            let class = format!(
                "{}{}",
                if stub && !is_number(&entry.text) { "words" } else { "" },
                edge(n)
            );
            let mut cell = cell.class(class.trim());
            if stub {
                cell = cell.with("scope", "row");
            }
            let mark = if row.doubtful && n + 1 == table.stubs { " ?" } else { "" };
            let cell = cell.text(format_args!("{}{mark}", entry.text));
            if entry.small.is_empty() { cell } else { cell.child(text("small", &entry.small)) }
        };
        let class = if row.doubtful { "doubtful" } else { "" };
        Element::new("tr").class(class).children(row.entries.iter().enumerate().map(cell))
    };
    let head = Element::new("thead")
        .child(Element::new("tr").class("first").children(groups))
        .child(Element::new("tr").class("second").children(heads));
    let body = Element::new("tbody").children(table.rows.iter().map(row));
    let whole = Element::new("table").with("aria-label", &table.title).child(head).child(body);
    let scroll = Element::new("div").class("scroll").with("tabindex", "0").child(whole);
    if table.rows.len() > LONG {
        return folded(
            format_args!("Table: {} ({} cells)", table.title, table.rows.len()),
            "words",
            scroll,
        );
    }
    Element::new("div").child(text("h3", &table.title)).child(scroll)
}

/// Whether a label is to stand under others like a number.
fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

fn doubts(section: &Section) -> Vec<Element> {
    if section.doubts.is_empty() {
        return Vec::new();
    }
    let item = |(place, reasons): &(String, Vec<String>)| {
        let inside = reasons.iter().map(|reason| text("li", reason));
        Element::new("li").text(place).child(Element::new("ul").children(inside))
    };
    let items = section.doubts.iter().map(item);
    let list = Element::new("ul").class("notes").children(items);
    let words = match section.doubts.len() {
        1 => "1 cell is doubtful (marked ?): why".to_owned(),
        count => format!("{count} cells are doubtful (marked ?): why"),
    };
    vec![folded(words, "words", list)]
}
