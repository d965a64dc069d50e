//! The documents that list the settings: the guide's reference and the commented sample file.
//!
//! What stands in the table of settings is put into them: with `INSTA_UPDATE=always`, as for the
//! snapshots. Otherwise they are compared.

use std::path::Path as FilePath;

use crate::config::keys::{Keys, Row};
use crate::config::settings::ALL;

const GUIDE: &str = "guide.md";
const SAMPLE: &str = "mpt.toml";

/// The line that begins the reference of a table in the guide.
const HEAD: &str = "| key | default | meaning |\n|---|---|---|\n";

/// Where comments of the sample file begin, and the longest line.
const COLUMN: usize = 36;
const WIDTH: usize = 100;

#[test]
fn the_guide_lists_what_the_table_has() {
    up_to_date(GUIDE, guide);
}

#[test]
fn the_sample_file_says_what_the_table_has() {
    up_to_date(SAMPLE, sample);
}

#[test]
fn the_guide_describes_nothing_twice() {
    let guide = read(GUIDE);
    let mut headings: Vec<_> = guide.lines().filter(|line| line.starts_with('#')).collect();
    let count = headings.len();
    headings.sort_unstable();
    headings.dedup();
    assert_eq!(headings.len(), count);
}

/// A setting that the sample file does not have yet is put where its table stands first.
#[test]
fn a_further_setting_is_put_into_both() {
    let without = |text: String, key: &str| -> String {
        let lines = text.split_inclusive('\n').filter(|line| !line.contains(key));
        lines.collect()
    };
    let missing = without(read(GUIDE), "| `clamp_mss` |");
    assert_ne!(missing, read(GUIDE));
    assert_eq!(guide(&missing), guide(&read(GUIDE)));
    let missing = without(read(SAMPLE), "clamp_mss =");
    assert_ne!(missing, read(SAMPLE));
    assert!(sample(&missing).contains("\n# clamp_mss = false "));
}

fn file(name: &str) -> std::path::PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

fn up_to_date(name: &str, make: fn(&str) -> String) {
    let text = read(name);
    let made = make(&text);
    if made != text && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(file(name), &made).unwrap();
        return;
    }
    let differs = made.lines().zip(text.lines()).find(|(made, there)| made != there);
    assert!(
        made == text,
        "docs/{name} differs from the table of settings: {differs:#?}\n\
         to update it: INSTA_UPDATE=always cargo test -p mpt --lib documents"
    );
}

/// The guide with its references of all tables.
fn guide(text: &str) -> String {
    let mut text = text.to_owned();
    for keys in ALL.into_iter().skip(1) {
        let heading = format!("\n### `{}`\n", keys.table);
        let section = text.find(&heading).unwrap_or_else(|| panic!("no heading {}", keys.table));
        let start = section + text[section..].find(HEAD).expect("a reference") + HEAD.len();
        let rows = |line: &&str| line.starts_with('|');
        let len: usize = text[start..].split_inclusive('\n').take_while(rows).map(str::len).sum();
        let rows: String = described(keys).map(guide_row).collect();
        text.replace_range(start..start + len, &rows);
    }
    text
}

/// The keys that have a meaning of their own.
fn described(keys: &Keys) -> impl Iterator<Item = &'static Row> {
    keys.rows().into_iter().filter(|row| !row.doc.is_empty())
}

fn guide_row(row: &Row) -> String {
    let default = match (row.shown, (row.default)()) {
        (Some(shown), _) => shown.to_owned(),
        (None, Some(default)) if default.contains(['"', '[', '{']) => format!("`{default}`"),
        (None, default) => default.unwrap_or_default(),
    };
    format!("| `{}` | {default} | {} |\n", row.key, meaning(row)).replace("|  |", "| |")
}

/// What a key means, as a part of a sentence, with its range.
fn meaning(row: &Row) -> String {
    let doc = row.doc.trim();
    let doc = doc.strip_suffix('.').unwrap_or(doc);
    let mut letters = doc.chars();
    let (first, second) = (letters.next(), letters.next());
    let word = second.is_some_and(|second| second.is_lowercase() || second == ' ');
    let doc = match first.filter(|_| word) {
        Some(first) => format!("{}{}", first.to_lowercase(), &doc[first.len_utf8()..]),
        None => doc.to_owned(),
    };
    match (row.range)() {
        Some(range) => format!("{doc} ({range})"),
        None => doc,
    }
}

/// The sample file with comments and defaults from the table, where a table has a key for the first
/// time; all else is as it was.
fn sample(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut open: Vec<(&Keys, Vec<&Row>)> =
        ALL.into_iter().map(|keys| (keys, described(keys).collect())).collect();
    let mut table = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with('[') {
            table = open.iter().position(|(keys, _)| keys.table == line);
        }
        let rows = table.map(|table| &mut open[table].1);
        let key = line.strip_prefix("# ").unwrap_or(line).split(" = ").next().unwrap_or_default();
        let row = rows.and_then(|rows| {
            let place = rows.iter().position(|row| line.contains(" = ") && row.key == key)?;
            Some(rows.remove(place))
        });
        let Some(row) = row else {
            out.push(line.to_owned());
            continue;
        };
        // What stood there of its comment goes.
        while lines.peek().is_some_and(|next| next.trim_start() != *next) {
            lines.next();
        }
        let value = match (row.default)().filter(|_| line.starts_with('#')) {
            Some(default) => default,
            None => value_in(line).to_owned(),
        };
        let mark = if line.starts_with('#') { "# " } else { "" };
        let key = format!("{mark}{key} = {value}");
        // A long line below a paragraph has been explained there.
        if key.len() >= COLUMN && out.last().is_some_and(|above| above.starts_with("# ")) {
            out.push(key);
        } else {
            out.extend(commented(&key, row));
        }
    }
    for (keys, rows) in open {
        let Some(header) = out.iter().position(|line| line == keys.table) else { continue };
        let end = out[header..].iter().position(String::is_empty).unwrap_or(out.len() - header);
        let further = rows.into_iter().flat_map(|row| {
            let value = (row.default)().unwrap_or(row.example.unwrap_or_default().to_owned());
            commented(&format!("# {} = {value}", row.key), row)
        });
        out.splice(header + end..header + end, further);
    }
    out.join("\n") + "\n"
}

/// The value of a line, whose comment begins behind two spaces.
fn value_in(line: &str) -> &str {
    let (_, rest) = line.split_once(" = ").expect("a key");
    let strings = |end: &usize| rest[..*end].matches('"').count() % 2 == 0;
    let mut ends = rest.match_indices(" #").map(|(end, _)| end);
    let end = ends.find(strings).unwrap_or(rest.len());
    rest[..end].trim_end()
}

/// The line of a key, and the lines of its comment.
fn commented(key: &str, row: &Row) -> Vec<String> {
    let mut lines = vec![format!("{key:<width$}#", width = COLUMN)];
    if key.len() >= COLUMN {
        lines = vec![key.to_owned(), format!("{:COLUMN$}#", "")];
    }
    let shown = row.shown.filter(|shown| row.example.is_none() && !key.ends_with(shown));
    let default = shown.map(|shown| format!("; default: {shown}")).unwrap_or_default();
    for word in
        format!("{}{default}", meaning(row)).replace('`', "").replace(", below", "").split(' ')
    {
        let last = lines.last_mut().expect("one at least");
        if last.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{:COLUMN$}# {word}", ""));
        } else {
            *last = format!("{last} {word}");
        }
    }
    lines
}
