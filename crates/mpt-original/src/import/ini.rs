//! The form of current files: `[section]` and `key = value`, in the dialect of iniparser 3.
//!
//! Names are of any case. `;` or `#` begins a comment, at the start of a line or behind a value;
//! quotes around a value, single or double, keep them. A `\` at the end continues a line.

use std::ops::Range;

use super::document::{Document, Entry, Section};
use super::mask;
use super::problem::Problem;

/// The remark on a last line without newline.
const NO_NEWLINE: &str =
    "the original drops this line, because no newline ends it; it is used here";

/// Reads the file.
///
/// # Errors
///
/// Each line that is neither section, key nor comment.
pub(super) fn read(name: &str, text: &str) -> Result<Document, Vec<Problem>> {
    let mut sections = Vec::new();
    // Entries before the first section.
    let mut section = Section { name: String::new(), span: 0..0, entries: Vec::new() };
    let mut problems = Vec::new();
    for line in Lines::new(text) {
        match line.content() {
            Content::Nothing => {}
            Content::Section(name) => {
                let opened = Section { name, span: line.span, entries: Vec::new() };
                sections.push(std::mem::replace(&mut section, opened));
            }
            Content::Entry { key, value, remark } => {
                let unended = (!line.ended).then(|| NO_NEWLINE.to_owned());
                let remarks: Vec<String> = remark.into_iter().chain(unended).collect();
                let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
                let entry = Entry { key, value, line: line.number, span: line.span, remark };
                section.entries.push(entry);
            }
            Content::Wrong(title, help) => {
                problems.push(Problem::new(title, line.span).label("here").help(help));
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    sections.push(section);
    sections.retain(|section: &Section| !section.name.is_empty() || !section.entries.is_empty());
    Ok(Document::new(name.to_owned(), text.to_owned(), sections))
}

/// A line, with those that continue it.
#[derive(Debug)]
struct Line {
    /// Its number, from 1.
    number: usize,
    /// All of it without white space around, in bytes of the text.
    span: Range<usize>,
    content: String,
    /// Whether a newline ends it.
    ended: bool,
}

/// The content of a line.
#[derive(Debug)]
enum Content {
    Nothing,
    Section(String),
    Entry {
        key: String,
        value: String,
        remark: Option<String>,
    },
    /// What is wrong, and how to correct it.
    Wrong(&'static str, &'static str),
}

impl Line {
    fn content(&self) -> Content {
        let line = self.content.trim();
        if line.is_empty() || line.starts_with(COMMENT) {
            return Content::Nothing;
        }
        if let Some(rest) = line.strip_prefix('[') {
            return section(rest);
        }
        let Some((key, value)) = line.split_once('=') else {
            return Content::Wrong(
                "a line that is neither `[section]` nor `key = value`",
                "write `key = value`, or put `#` in front of it to make it a comment",
            );
        };
        if key.trim().is_empty() {
            return Content::Wrong("a value without a key", "write `key = value`");
        }
        let (value, comment) = value_of(value.trim());
        // The separators of ports in the papers include the mark of a comment.
        let cut = comment.strip_prefix(';').is_some_and(|rest| {
            rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) && !value.is_empty()
        });
        let key = key.trim().to_ascii_lowercase();
        let comment = if mask::is_secret(&key) { mask::HIDDEN } else { comment };
        let remark = cut.then(|| {
            format!("the text after the value is a comment, as in the original: `{comment}`")
        });
        Content::Entry { key, value: value.to_owned(), remark }
    }
}

const COMMENT: [char; 2] = [';', '#'];

fn section(rest: &str) -> Content {
    const HELP: &str = "write `[section]` on a line by itself";
    let Some((name, behind)) = rest.split_once(']') else {
        return Content::Wrong("a section without `]`", HELP);
    };
    let behind = behind.trim();
    if !behind.is_empty() && !behind.starts_with(COMMENT) {
        return Content::Wrong("text after a section", HELP);
    }
    match name.trim().to_ascii_lowercase() {
        name if name.is_empty() => Content::Wrong("a section without a name", HELP),
        name => Content::Section(name),
    }
}

/// The value at the beginning of `text`, and the comment behind it.
fn value_of(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some((value, behind)) =
            text.strip_prefix(quote).and_then(|rest| rest.split_once(quote))
        {
            return (value, behind.trim());
        }
    }
    let end = text.find(COMMENT).unwrap_or(text.len());
    (text[..end].trim_end(), &text[end..])
}

/// The lines of a text, continued ones as one.
struct Lines<'t> {
    text: &'t str,
    /// Where the next begins.
    start: usize,
    /// Its number.
    number: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, start, number: 1 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let (number, begin) = (self.number, self.start);
        let mut content = String::new();
        loop {
            let rest = &self.text[self.start..];
            if rest.is_empty() && self.start == begin {
                return None;
            }
            let end = rest.find('\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            self.start += end.map_or(rest.len(), |end| end + 1);
            self.number += 1;
            let line = line.trim_end();
            let continued = line.strip_suffix('\\').filter(|_| end.is_some());
            content.push_str(continued.unwrap_or(line));
            if continued.is_none() {
                let whole = &self.text[begin..self.start];
                let from = begin + (whole.len() - whole.trim_start().len());
                let to = (begin + whole.trim_end().len()).max(from);
                return Some(Line { number, span: from..to, content, ended: end.is_some() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_all_forms_of_quotes_and_comments() {
        for (line, key, value) in [
            ("a = b\n", "a", "b"),
            ("\t A_B=c d \r\n", "a_b", "c d"),
            ("a = b # c\n", "a", "b"),
            ("a = b;c\n", "a", "b"),
            ("a = \"b # c\" ; d\n", "a", "b # c"),
            ("a = 'b ; c'\n", "a", "b ; c"),
            ("a = \"\"\n", "a", ""),
            ("a = \"b\n", "a", "\"b"),
            ("a =\n", "a", ""),
            ("a = ; b\n", "a", ""),
            ("a = b = c\n", "a", "b = c"),
            ("a = b \\\n  c\n", "a", "b   c"),
            ("a \\\r\n= b\n", "a", "b"),
            ("\u{feff}a = b\n", "a", "b"),
        ] {
            let document = read("f", line).unwrap();
            let entry = &document.sections[0].entries[0];
            assert_eq!((&*entry.key, &*entry.value, entry.line), (key, value, 1), "{line:?}");
            assert_eq!(entry.remark, None, "{line:?}");
        }
    }

    #[test]
    fn continued_lines_count_as_lines() {
        let text = "; one\n\n[A]\nb = 1 \\\n # two \\\n\nc = 2\n[ a ] # again\nd = 3";
        let document = read("f", text).unwrap();
        let [section] = &document.sections[..] else { panic!("{document:?}") };
        let lines: Vec<_> = section.entries.iter().map(|entry| (&*entry.key, entry.line)).collect();
        assert_eq!(lines, [("b", 4), ("c", 7), ("d", 9)]);
        assert_eq!(section.entries[0].value, "1");
        assert_eq!(&text[section.entries[2].span.clone()], "d = 3");
        assert_eq!(section.entries[2].remark.as_deref(), Some(NO_NEWLINE));
        assert_eq!(section.entries[1].remark, None);
    }

    #[test]
    fn ports_after_a_semicolon_get_a_remark() {
        let document = read("f", "[p]\ntcp_dst = 80;443\nx = 1 ; only a comment\n").unwrap();
        let entries = &document.sections[0].entries;
        assert!(entries[0].remark.as_deref().unwrap().contains("`;443`"));
        assert_eq!(entries[1].remark, None);
    }

    #[test]
    fn malformed_lines_are_problems_with_their_place() {
        let text = "[a]\nnonsense\n[b\n= 1\n[c] d\n[ ]\n";
        let problems = read("f", text).unwrap_err();
        let places: Vec<_> = problems.iter().map(|problem| &text[problem.span.clone()]).collect();
        assert_eq!(places, ["nonsense", "[b", "= 1", "[c] d", "[ ]"]);
    }
}
