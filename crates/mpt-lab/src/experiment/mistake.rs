//! What cannot be meant in a file, and the line that says it.

use std::fmt;
use std::ops::Range;

use super::closest::with_meant;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A mistake, its place, and the line it stands in, ready to be printed.
#[derive(Debug)]
pub struct Report(String);

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What cannot be meant, and the bytes of the file that say it.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

impl Mistake {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    /// What `toml` says. A mistake without a place is one of the whole: something is missing.
    pub(super) fn of(error: &toml::de::Error) -> Self {
        Self::new(error.span().unwrap_or(0..0), with_meant(error.message()))
    }

    pub(super) fn report(&self, name: &str, text: &str) -> Report {
        let marked = AnnotationKind::Primary.span(self.span.clone());
        let snippet = Snippet::source(text).path(name).annotation(marked);
        let group = Level::ERROR.primary_title(self.message.trim_end()).element(snippet);
        Report(Renderer::plain().render(&[group]))
    }
}
