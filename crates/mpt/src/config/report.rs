//! What is wrong with a file, and how it is shown.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Most problems that are shown at once; a file with more is mended in steps.
const MAX_SHOWN: usize = 20;

/// One thing that is wrong, with its place in the text and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    title: String,
    span: Range<usize>,
    label: Option<String>,
    other: Option<(Range<usize>, String)>,
    help: Option<String>,
}

impl Problem {
    /// `title` says what is wrong, `span` where, in bytes of the text.
    pub(super) fn new(title: impl Into<String>, span: Range<usize>) -> Self {
        Self { title: title.into(), span, label: None, other: None, help: None }
    }

    /// The text that stands at the place.
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// A second place that the problem has to do with.
    pub(super) fn other(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.other = Some((span, label.into()));
        self
    }

    /// What to do about it.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What the TOML parser found.
    pub(super) fn syntax(error: &toml::de::Error) -> Self {
        let (what, expected) = match error.message().split_once(", expected ") {
            Some((what, "nothing")) => (what, None),
            Some((what, expected)) => (what, Some(expected)),
            None => (error.message(), None),
        };
        let problem = Self::new(format!("not TOML: {what}"), error.span().unwrap_or(0..0));
        match expected {
            Some(expected) => problem.label(format!("expected {expected}")),
            None => problem.label("here"),
        }
        .help("see https://toml.io for how values, keys and tables are written")
    }

    /// Where it is, in bytes of the text.
    pub(super) fn span(&self) -> &Range<usize> {
        &self.span
    }

    fn render(&self, file: &str, text: &str, renderer: &Renderer) -> String {
        let mut primary = AnnotationKind::Primary.span(whole(&self.span, text));
        if let Some(label) = &self.label {
            primary = primary.label(label);
        }
        let mut snippet = Snippet::source(text).path(file).annotation(primary);
        if let Some((span, label)) = &self.other {
            let span = whole(span, text);
            snippet = snippet.annotation(AnnotationKind::Context.span(span).label(label));
        }
        let mut group: Group<'_> = Level::ERROR.primary_title(&self.title).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

/// The span within the text and on the borders of characters, which the renderer insists on.
fn whole(span: &Range<usize>, text: &str) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// All problems in the order of the text.
    pub(super) fn into_sorted(mut self) -> Vec<Problem> {
        self.0.sort_by_key(|problem| problem.span.start);
        self.0
    }
}

/// Everything that is wrong with one file.
#[derive(Debug)]
pub(crate) struct Report {
    file: String,
    text: String,
    problems: Vec<Problem>,
}

impl Report {
    pub(super) fn new(file: String, text: String, problems: Vec<Problem>) -> Self {
        Self { file, text, problems }
    }

    /// A report for each problem: what, where with line and caret, and what to do about it.
    pub(crate) fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for problem in self.problems.iter().take(MAX_SHOWN) {
            out.push_str(&problem.render(&self.file, &self.text, &renderer));
            out.push_str("\n\n");
        }
        out
    }
}

/// The closing line: how many problems there are.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let problems = if count == 1 { "problem" } else { "problems" };
        write!(f, "{}: {count} {problems}", self.file)?;
        if count > MAX_SHOWN {
            write!(f, ", the first {MAX_SHOWN} shown")?;
        }
        write!(f, ": correct and try again with `mpt check {}`", self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_widened_to_whole_characters_and_kept_within_the_text() {
        let text = "é = 1";
        for (span, expected) in
            [(0..2, 0..2), (1..2, 0..2), (1..1, 0..2), (5..99, 5..6), (98..99, 6..6)]
        {
            assert_eq!(whole(&span, text), expected, "{span:?}");
            let problem = Problem::new("t", span).label("l").help("h");
            assert!(problem.render("f", text, &Renderer::plain()).contains("--> f:1:"));
        }
    }
}
