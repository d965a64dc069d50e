//! Texts that are no files, for fuzzing: what `mpt check` says of them, and where.

use std::ops::Range;

use super::{Report, parse};

/// What is wrong with a text.
#[derive(Debug)]
pub struct Refused {
    /// The places of the problems, in bytes of the text, in its order.
    pub spans: Vec<Range<usize>>,
    /// The report, as `mpt check` shows it without colour.
    pub report: String,
}

/// Reads a configuration from `text`, as `mpt check` does from a file.
///
/// # Errors
/// If `mpt check` would refuse it.
pub fn check_text(text: &str) -> Result<(), Refused> {
    parse(text).map(drop).map_err(|problems| {
        let spans = problems.iter().map(|problem| problem.span().clone()).collect();
        let report = Report::new("text".to_owned(), text.to_owned(), problems);
        Refused { spans, report: report.render(false) }
    })
}
