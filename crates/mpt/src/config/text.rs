//! Texts that are no files, for fuzzing: what `mpt check` says of them and where, and what comes of
//! those that are accepted.

use std::ops::Range;

use super::fragment::{FragmentError, Place};
use super::{Report, Settings, parse, with_fragment, write};

/// What is wrong with a text.
#[derive(Debug)]
pub struct Refused {
    /// The places of the problems, in bytes of the text, in its order.
    pub spans: Vec<Range<usize>>,
    /// The report, as `mpt check` shows it without colour.
    pub report: String,
}

/// A configuration that was accepted.
#[derive(Debug, PartialEq)]
pub struct Accepted(Settings);

impl Accepted {
    /// As `mpt config` writes it.
    pub fn written(&self) -> String {
        write(&self.0)
    }

    /// How many connections there are, and how many paths.
    pub fn counts(&self) -> (usize, usize) {
        let connections = || self.0.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
        (connections().count(), connections().map(|connection| connection.paths.len()).sum())
    }

    /// What `mpt path add` or `mpt connection add` makes of it: with a path of its first connection
    /// added, or a connection of its first tunnel.
    ///
    /// # Errors
    /// The report, if that would be refused.
    pub fn with_added(&self, path: bool, fragment: &str) -> Result<Self, String> {
        let tunnel = self.0.tunnels.first().ok_or("no tunnel")?;
        let connection = tunnel.connections.first().ok_or("no connection")?;
        let place = if path {
            Place::Path { connection: &connection.name }
        } else {
            Place::Connection { tunnel: &tunnel.name }
        };
        match with_fragment(&self.0, place, fragment, "fragment") {
            Ok(settings) => Ok(Self(settings)),
            Err(FragmentError::Invalid(report)) => Err(report.render(false)),
            Err(missing @ FragmentError::Missing { .. }) => Err(missing.to_string()),
        }
    }
}

/// Reads a configuration from `text`, as `mpt check` does from a file.
///
/// # Errors
/// If `mpt check` would refuse it.
pub fn check_text(text: &str) -> Result<Accepted, Refused> {
    parse(text).map(Accepted).map_err(|problems| {
        let spans = problems.iter().map(|problem| problem.span().clone()).collect();
        let report = Report::new("text".to_owned(), text.to_owned(), problems);
        Refused { spans, report: report.render(false) }
    })
}
