//! What is wrong with a file, and how it is shown.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Most problems shown at once; a file with more is fixed in steps.
const MAX_SHOWN: usize = 20;

/// One thing that is wrong, with its place in the text and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    title: String,
    span: Range<usize>,
    label: Option<String>,
    other: Option<(Range<usize>, String)>,
    help: Option<String>,
}

impl Problem {
    /// `title` says what is wrong, `span` where, in bytes of the text.
    pub(crate) fn new(title: impl Into<String>, span: Range<usize>) -> Self {
        Self { title: title.into(), span, label: None, other: None, help: None }
    }

    /// The text that stands at the place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// A second place that the problem has to do with.
    pub(crate) fn other(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.other = Some((span, label.into()));
        self
    }

    /// What to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
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
    pub(crate) fn span(&self) -> &Range<usize> {
        &self.span
    }

    fn render<'a>(&'a self, sources: &Sources<'a>, renderer: &Renderer) -> String {
        let primary = (&self.span, self.label.as_deref());
        let other = self.other.as_ref().map(|(span, label)| (span, Some(label.as_str())));
        // The added settings contain the error, not the file.
        let ((span, label), other) = match other {
            Some(other) if sources.is_added(other.0) && !sources.is_added(&self.span) => {
                (other, Some(primary))
            }
            other => (primary, other),
        };
        let annotation = |kind: AnnotationKind, span, label: Option<&'a str>| match label {
            Some(label) => kind.span(span).label(label),
            None => kind.span(span),
        };
        let (source, span) = sources.locate(span);
        let mut snippet =
            source.snippet().annotation(annotation(AnnotationKind::Primary, span, label));
        let mut elsewhere = None;
        if let Some((span, label)) = other {
            let (other, span) = sources.locate(span);
            let annotation = annotation(AnnotationKind::Context, span, label);
            if std::ptr::eq(source, other) {
                snippet = snippet.annotation(annotation);
            } else {
                elsewhere = Some(other.snippet().annotation(annotation));
            }
        }
        let group: Group<'_> = Level::ERROR.primary_title(&self.title).element(snippet);
        let mut group = group.elements(elsewhere);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

/// A text that problems point into.
#[derive(Clone, Copy, Debug)]
struct Source<'t> {
    name: &'t str,
    text: &'t str,
}

impl<'t> Source<'t> {
    fn snippet<T: Clone>(&self) -> Snippet<'t, T> {
        Snippet::source(self.text).path(self.name)
    }
}

/// The texts that problems point into.
#[derive(Debug)]
struct Sources<'t> {
    file: Source<'t>,
    /// Its places come behind all of the file's.
    appendix: Option<Source<'t>>,
}

impl<'t> Sources<'t> {
    /// Whether a span is in what is added.
    fn is_added(&self, span: &Range<usize>) -> bool {
        self.appendix.is_some() && span.start >= self.file.text.len()
    }

    /// In which text a span is, and where there.
    fn locate(&self, span: &Range<usize>) -> (&Source<'t>, Range<usize>) {
        let end = self.file.text.len();
        match &self.appendix {
            Some(appendix) if self.is_added(span) => {
                (appendix, whole(&(span.start - end..span.end - end), appendix.text))
            }
            Some(_) | None => (&self.file, whole(span, self.file.text)),
        }
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
    /// What is about to be added to the file.
    appendix: Option<Appendix>,
    problems: Vec<Problem>,
}

/// A text by itself that is read together with a file. Its places come behind all of the file's.
#[derive(Debug)]
pub(super) struct Appendix {
    pub(super) name: String,
    pub(super) text: String,
}

impl Report {
    /// What is wrong with a file, in the order of its text.
    pub(crate) fn new(file: String, text: String, problems: Vec<Problem>) -> Self {
        Self { file, text, appendix: None, problems }
    }

    /// How many problems there are.
    pub(crate) fn count(&self) -> usize {
        self.problems.len()
    }

    /// A report about what is added to the file rather than about the file.
    pub(super) fn with_appendix(self, appendix: Appendix) -> Self {
        Self { appendix: Some(appendix), ..self }
    }

    /// A report for each problem: what, where with line and caret, and what to do about it.
    pub(crate) fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let sources = Sources {
            file: Source { name: &self.file, text: &self.text },
            appendix: self
                .appendix
                .as_ref()
                .map(|appendix| Source { name: &appendix.name, text: &appendix.text }),
        };
        let mut out = String::new();
        for problem in self.problems.iter().take(MAX_SHOWN) {
            out.push_str(&problem.render(&sources, &renderer));
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
        let subject = self.appendix.as_ref().map_or(&self.file, |appendix| &appendix.name);
        write!(f, "{subject}: {count} {problems}")?;
        if count > MAX_SHOWN {
            write!(f, ", the first {MAX_SHOWN} shown")?;
        }
        match self.appendix {
            Some(_) => f.write_str(": nothing was changed; correct and try again"),
            None => write!(f, ": correct and try again with `mpt check {subject}`"),
        }
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
            let file = Source { name: "f", text };
            let sources = Sources { file, appendix: None };
            assert!(problem.render(&sources, &Renderer::plain()).contains("--> f:1:"));
        }
    }
}
