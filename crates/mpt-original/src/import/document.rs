//! A file of the original, in either of its two forms.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use super::mask;

/// A file that has been read.
#[derive(Debug)]
pub(super) struct Document {
    /// The name of the file.
    pub(super) name: String,
    /// Its name in comments.
    pub(super) label: String,
    /// The text with keys masked, for reports.
    pub(super) text: String,
    pub(super) form: Form,
    /// Sections of different names.
    pub(super) sections: Vec<Section>,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Sections with keys.
    Ini,
    /// One value to a line.
    Positional,
}

/// Entries that belong together: those of a `[section]`, or of a block of the positional form.
#[derive(Debug)]
pub(super) struct Section {
    /// In lower case.
    pub(super) name: String,
    /// Where it begins, in bytes of the text.
    pub(super) span: Range<usize>,
    pub(super) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// In lower case. The positional form has none, and borrows those of the other.
    pub(super) key: String,
    /// Without quotes and comment.
    pub(super) value: String,
    /// The line on which it begins, from 1.
    pub(super) line: usize,
    /// Where it is, in bytes of the text.
    pub(super) span: Range<usize>,
    /// A remark on how it is written.
    pub(super) remark: Option<String>,
}

impl Document {
    /// A document of sections in the order of the text, those of one name made one: the original
    /// looks keys up by both names.
    pub(super) fn new(name: String, text: String, found: Vec<Section>) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        let mut places = HashMap::new();
        for section in found {
            let place = *places.entry(section.name.clone()).or_insert(sections.len());
            match sections.get_mut(place) {
                Some(earlier) => earlier.entries.extend(section.entries),
                None => sections.push(section),
            }
        }
        let text = mask::masked(&text);
        Self { label: name.clone(), name, text, form: Form::Ini, sections }
    }

    /// The section of that name, unless there is none or it has been taken before.
    pub(super) fn take(&mut self, name: &str) -> Option<Section> {
        let place = self.sections.iter().position(|section| section.name == name)?;
        Some(self.sections.remove(place))
    }

    /// Whether some section's name is this, or this and a number.
    pub(super) fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|section| {
            section
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || number(rest).is_some())
        })
    }

    /// The numbers of the sections called `name` and a number, in ascending order.
    pub(super) fn numbers(&self, name: &str) -> Vec<u32> {
        let rests = self.sections.iter().filter_map(|section| section.name.strip_prefix(name));
        let mut numbers: Vec<u32> = rests.filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The number that a section's name ends with, as the original would write it.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| number.to_string() == text)
}

/// The entry on one line, with a key masked.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if mask::is_secret(&self.key) {
            return write!(f, "{} = {}", Shown(&self.key), mask::HIDDEN);
        }
        write!(f, "{} = {}", Shown(&self.key), Shown(&self.value))
    }
}

/// A text of the file on one line: TOML has no control characters in comments, and terminals should
/// see none.
#[derive(Debug)]
pub(super) struct Shown<'t>(pub(super) &'t str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| {
            if c.is_control() { write!(f, "{}", c.escape_default()) } else { write!(f, "{c}") }
        })
    }
}
