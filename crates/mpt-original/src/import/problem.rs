//! What is wrong with a file, with its place.

use std::ops::Range;

/// One thing that is wrong, with its place in the text and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub title: String,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// What is to be said at the place.
    pub label: String,
    /// What to do about it.
    pub help: String,
}

impl Problem {
    /// `title` says what is wrong, `span` where, in bytes of the text.
    pub(super) fn new(title: impl Into<String>, span: Range<usize>) -> Self {
        Self { title: title.into(), span, label: String::new(), help: String::new() }
    }

    /// The text that stands at the place.
    pub(super) fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// What to do about it.
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: help.into(), ..self }
    }
}

/// A file that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The file, as it was named.
    pub name: String,
    /// Its text, without keys, of the same length.
    pub text: String,
    /// What is wrong, at least one thing, in the order of the text.
    pub problems: Vec<Problem>,
}
