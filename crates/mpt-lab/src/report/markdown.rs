//! The same report as Markdown, without drawings.

use super::table::{Entry, Table};
use super::verdict::{Judgement, Verdict};
use super::{Report, Section, counts_in_words, form_of_run};
use crate::plot::figure;

/// The whole report.
pub fn text(report: &Report) -> String {
    let mut lines = vec!["# Report of the MPT lab".to_owned(), String::new()];
    lines.extend(head(report));
    for section in &report.sections {
        lines.push(String::new());
        lines.extend(self::section(section));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn head(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(run) = report.runs.last() {
        for (name, value) in [
            ("Measured", run.started.clone()),
            ("Version", run.version.clone()),
            ("Commit", run.commit.clone()),
            ("Kernel", run.kernel.clone()),
            ("Processor", format!("{}, {} of them", run.cpu, run.processors)),
            ("Links by", run.backend.clone()),
            ("Command", run.command.clone()),
        ] {
            lines.push(format!("- {name}: {}", escape(&value)));
        }
    }
    let test = report.runs.iter().rev().find_map(|run| run.selftest.as_ref());
    match test {
        None => lines.push("- Emulator: not tested".into()),
        Some(test) => {
            lines.push(format!("- Emulator: carries {} Mbit/s on time", figure(test.ceiling_mbps)));
            lines.extend([
                String::new(),
                "| emulator | set | measured | accepted | unit | |".into(),
            ]);
            lines.push("| --- | ---: | ---: | ---: | --- | --- |".into());
            lines.extend(test.checks.iter().map(|check| {
                format!(
                    "| {} | {} | {} | ± {} | {} | {} |",
                    escape(&check.name),
                    figure(check.set),
                    figure(check.got),
                    figure(check.tolerance),
                    escape(&check.unit),
                    if check.passed { "passed" } else { "missed" }
                )
            }));
        }
    }
    lines.extend([String::new(), format!("Targets: {}.", counts_in_words(report))]);
    lines.push(String::new());
    lines.push(format!(
        "Prediction: {}: {}.",
        report.prediction.verdict().name(),
        report.prediction.outcome()
    ));
    lines.extend([String::new(), "| experiment | | verdict | targets | cells | form |".into()]);
    lines.push("| --- | --- | --- | --- | ---: | --- |".into());
    lines.extend(report.sections.iter().map(|section| {
        let (verdict, words) = section.verdict();
        format!(
            "| {} | {} | {} | {words} | {} | {} |",
            escape(&section.answer.entry.name),
            escape(section.title()),
            verdict.map_or("-", Verdict::name),
            section.answer.cells.len(),
            section.answer.form_in_words()
        )
    }));
    lines
}

fn section(section: &Section) -> Vec<String> {
    let entry = &section.answer.entry;
    let mut lines = vec![format!("## {}", escape(section.title())), String::new()];
    let mut paragraph = |text: String| {
        if !text.is_empty() {
            lines.extend([text, String::new()]);
        }
    };
    let form = section.answer.form_in_words();
    paragraph(format!("`{}`, {}", entry.name.replace('`', ""), form_of_run(&form)));
    paragraph(escape(&entry.question));
    if !entry.source.is_empty() {
        paragraph(format!("Repeats {}.", escape(entry.source.trim_end_matches('.'))));
    }
    paragraph(list(section.remarks.iter().map(|remark| escape(remark))));
    let setup = section.setup();
    if !setup.is_empty() {
        let rows =
            setup.iter().map(|(name, value)| format!("| {} | {} |", escape(name), escape(value)));
        let head = ["| set | |".to_owned(), "| --- | --- |".to_owned()];
        paragraph(head.into_iter().chain(rows).collect::<Vec<_>>().join("\n"));
    }
    paragraph(list(section.judgements.iter().map(judgement)));
    for table in &section.tables {
        paragraph(format!("**{}**", escape(&table.title)));
        paragraph(self::table(table));
    }
    paragraph(list(section.doubts.iter().map(|(place, reasons)| {
        format!("doubtful: {}: {}", escape(place), escape(&reasons.join("; ")))
    })));
    paragraph(list(section.notes.iter().map(|note| escape(note))));
    if !entry.command.is_empty() {
        lines.extend([
            "```console".into(),
            format!("$ {}", one_line(&entry.command)),
            "```".into(),
        ]);
    }
    if !entry.text.is_empty() {
        // A file may have fences of its own.
        let fence = "`".repeat(3 + longest_run(&entry.text, '`'));
        lines.extend([
            String::new(),
            format!("with `{}.toml`:", entry.name.replace('`', "")),
            String::new(),
            format!("{fence}toml"),
            entry.text.trim_end().to_owned(),
            fence,
        ]);
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// How often a letter stands side by side at the most.
fn longest_run(text: &str, letter: char) -> usize {
    text.split(|other| other != letter).map(str::len).max().unwrap_or(0)
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}

fn judgement(judgement: &Judgement) -> String {
    let Judgement { text, verdict, .. } = judgement;
    format!("**{}**: {} – {}", verdict.name(), escape(text), escape(&judgement.outcome()))
}

fn table(table: &Table) -> String {
    // Markdown has one header row: the group is in the first of its columns.
    let groups = table.groups.iter().flat_map(|(name, count)| {
        (0..*count).map(move |n| if n == 0 { name.as_str() } else { "" })
    });
    let heads = table.head.iter().zip(groups).map(|(head, group)| {
        if group.is_empty() { escape(head) } else { format!("{}: {}", escape(group), escape(head)) }
    });
    let rule = (0..table.head.len()).map(|n| if n < table.stubs { "---" } else { "---:" });
    let mut lines = vec![line(heads), line(rule.map(str::to_owned))];
    lines.extend(table.rows.iter().map(|row| {
        line(row.entries.iter().enumerate().map(|(n, entry)| {
            let mark = if row.doubtful && n + 1 == table.stubs { " ?" } else { "" };
            cell(entry) + mark
        }))
    }));
    lines.join("\n")
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(entry: &Entry) -> String {
    if entry.small.is_empty() {
        escape(&entry.text)
    } else {
        format!("{} ({})", escape(&entry.text), escape(&entry.small))
    }
}

/// Text that Markdown takes as text, on one line.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in one_line(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::table::Row;
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(
            escape("a|b <script>\n*c* & `d` _e_"),
            "a\\|b &lt;script&gt; \\*c\\* &amp; \\`d\\` \\_e\\_"
        );
    }

    #[test]
    fn a_table_has_as_many_cells_in_every_row() {
        let entry = |text: &str, small: &str| Entry { text: text.into(), small: small.into() };
        let table = Table {
            title: "Goodput".into(),
            groups: vec![(String::new(), 1), ("MPT".into(), 2)],
            head: ["delay, ms", "measured", "published"].map(str::to_owned).into(),
            stubs: 1,
            rows: vec![Row {
                doubtful: true,
                entries: vec![entry("10", ""), entry("91.0", "90.0 – 92.0"), entry("104.5", "")],
            }],
        };
        assert_eq!(
            super::table(&table).lines().collect::<Vec<_>>(),
            [
                "| delay, ms | MPT: measured | published |",
                "| --- | ---: | ---: |",
                "| 10 ? | 91.0 (90.0 – 92.0) | 104.5 |"
            ]
        );
    }
}
