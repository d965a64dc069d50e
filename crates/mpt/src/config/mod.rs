//! The configuration file: from text to settings that can be run.
//!
//! [mod@settings] has the table of settings: every key of every kind of table with its type, range, default
//! and documentation. Reading, writing ([`write()`](write::write)), differences ([`change`]), the list in
//! `docs/guide.md` and the keys in `docs/mpt.toml` come from it.
//!
//! The file is TOML. It is read in one pass over the parsed document ([`table`], [`value`],
//! [`address`]), noun by noun ([`daemon`], [`tunnel`], [`connection`], [`path`], [`accept`]), which add what
//! several settings must fulfil together. Whatever is wrong becomes a [`report::Problem`] with its place
//! in the text. Reading goes on after a problem, so that one look at the reports is enough to correct the
//! file; what depends on a faulty value is not reported again. What must differ between tunnels,
//! connections and paths is kept in [`distinct`] while reading.
//!
//! The document is walked by hand rather than by `serde`, which stops at the first error and
//! forgets where the values stood.

mod accept;
mod address;
mod change;
mod classes;
mod clients;
mod commands;
mod connection;
mod daemon;
mod distinct;
mod edit;
mod fragment;
mod keys;
mod moment;
mod offloads;
mod path;
mod peer;
mod pins;
mod policies;
mod ports;
mod prefix;
mod quota;
mod remote;
mod reorder;
mod report;
mod schema;
mod sealing;
mod selector;
mod settings;
mod table;
mod text;
mod timers;
mod tunnel;
mod uplinks;
mod value;
mod words;
mod write;
mod writer;
mod written;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path as FilePath;

use thiserror::Error;
use toml::de::DeTable;

pub(crate) use change::{apply, difference};
pub(crate) use classes::Class;
pub(crate) use commands::Auth;
#[cfg(test)]
pub(crate) use commands::Commands;
pub(crate) use edit::Effect;
pub(crate) use fragment::{FragmentError, Place, with_fragment};
pub(crate) use moment::Moment;
pub(crate) use mpt_control::PathStatus;
pub(crate) use mpt_proto::PeerKind;
pub(crate) use offloads::Offloads;
pub(crate) use pins::Pins;
pub(crate) use prefix::Prefix;
pub(crate) use quota::Quota;
pub(crate) use remote::{Remote, is_host};
pub(crate) use reorder::{Late, Reorder};
pub(crate) use report::{Problem, Report};
pub(crate) use selector::Match;
pub(crate) use settings::{
    Accept, Client, Connection, Control, Daemon, Listen, Metrics, Mtu, Path, Policies, Settings,
    Threads, Tunnel, Web,
};
pub(crate) use uplinks::Found;
#[cfg(test)]
pub(crate) use uplinks::{Interfaces, Pattern, Uplink};
pub(crate) use value::interface_fault;
#[cfg(test)]
pub(crate) use words::Repair;
pub(crate) use words::{Framing, Profile, Scheduler};
pub(crate) use write::write;
#[cfg(test)]
pub(crate) use written::Written;

pub use text::{Accepted, Refused, check_text};

use distinct::Distinct;
use report::Problems;
use schema::Tabled as _;
use settings::{ConnectionRead, PoliciesRead};
use table::Table;

/// Largest file in bytes. 64 paths take about 10 kB, so this is room for 100 such connections, and a
/// device or log given by mistake is not read to its end.
const MAX_FILE: u64 = 1 << 20;

/// Why a file gives no settings.
#[derive(Debug, Error)]
pub(crate) enum LoadError {
    /// The file cannot be read at all.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The file can be read and its content is wrong.
    #[error("{0}")]
    Invalid(Report),
}

/// Reads the settings in `file`.
///
/// # Errors
/// See [`LoadError`].
pub(crate) fn load(file: &FilePath) -> Result<Settings, LoadError> {
    let name = file.display().to_string();
    let text = match text_of(file) {
        Ok(text) => text,
        Err(error) => return Err(LoadError::Unreadable { file: name, error }),
    };
    parse(&text).map_err(|problems| LoadError::Invalid(Report::new(name, text, problems)))
}

/// The settings that a running daemon has written; `None` if they are of another version.
pub(crate) fn parse_running(text: &str) -> Option<Settings> {
    parse(text).ok()
}

/// The text of a file that should be a configuration.
///
/// # Errors
///
/// If it cannot be read, is too large to be one, or is no text.
pub(crate) fn text_of(file: &FilePath) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    if bytes.len() as u64 > MAX_FILE {
        return Err(invalid(format!(
            "it is larger than {MAX_FILE} bytes: is it a configuration file?"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
        invalid(format!("line {line} is not UTF-8: save the file as UTF-8"))
    })
}

/// The settings in `text`, or everything that is wrong with it in the order of the text.
fn parse(text: &str) -> Result<Settings, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(syntax_problems(text, &errors));
    }
    read(&document.into_inner())
}

/// The settings in a document, or everything that is wrong with it in the order of the text.
fn read(document: &DeTable<'_>) -> Result<Settings, Vec<Problem>> {
    let mut problems = Problems::default();
    let settings = settings(document, &mut problems);
    match (settings, problems.into_sorted()) {
        (Some(settings), problems) if problems.is_empty() => Ok(settings),
        (_, problems) => Err(problems),
    }
}

/// Says whether settings fit together as those of a file do, which they do not always after
/// [`apply()`]. The report shows them as the file `name`.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn check(settings: &Settings, name: &str) -> Result<(), Report> {
    judge(&write(settings), name).map(drop)
}

/// The settings in a text, which the report shows as the file `name`.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn judge(text: &str, name: &str) -> Result<Settings, Report> {
    parse(text).map_err(|problems| Report::new(name.to_owned(), text.to_owned(), problems))
}

/// One problem per line: what follows on the same line is mostly a consequence of the first.
fn syntax_problems(text: &str, errors: &[toml::de::Error]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = errors.iter().map(Problem::syntax).collect();
    problems.sort_by_key(|problem| problem.span().start);
    let line = |problem: &Problem| {
        let end = problem.span().start.min(text.len());
        text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count()
    };
    problems.dedup_by_key(|problem| line(problem));
    problems
}

fn settings(document: &DeTable<'_>, problems: &mut Problems) -> Option<Settings> {
    let mut distinct = Distinct::default();
    let root = Table::file(&settings::ALL, document);
    let control = daemon::control(&root, problems);
    let metrics = daemon::metrics(&root, problems);
    let web = daemon::web(&root, control.as_ref(), metrics.as_ref(), problems);
    let daemon = daemon::daemon(&root, problems);
    let mut tunnels = Vec::new();
    let tables = root.tables("tunnel", &Tunnel::KEYS, problems);
    for table in tables.iter().flatten() {
        tunnels.push(tunnel::read(table, &mut distinct, problems));
    }
    // A key that is not known may be a tunnel under a wrong name.
    let is_known = root.finish(problems);
    if is_known && tables.is_some_and(|tables| tables.is_empty()) {
        problems.push(
            Problem::new("the file has no tunnel", 0..0)
                .help("add a `[[tunnel]]` with `name`, `addresses` and a `[[tunnel.connection]]`"),
        );
    }
    distinct.finish(problems);
    Some(Settings {
        control: control?,
        daemon: daemon?,
        metrics: metrics?,
        web: web?,
        tunnels: tunnels.into_iter().collect::<Option<_>>()?,
    })
}
