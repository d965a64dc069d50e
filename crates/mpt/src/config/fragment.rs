//! A path or a connection given by itself, to be added to what runs.
//!
//! A fragment is what would stand below the header: its keys, and for a connection also `[[path]]`
//! tables. It is judged together with all that runs, as if it stood at the end of the file: the
//! settings are written, both texts are parsed, the fragment's table is put where it belongs, and
//! the whole is read as always. Problems point into the fragment, and where something else is
//! involved into the file that what runs would be.

use std::ops::Range;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::report::{Appendix, Problem, Report};
use super::{Settings, read, syntax_problems, write};

/// How what runs is called in reports.
const RUNNING: &str = "what runs";

/// What a fragment is and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'n> {
    /// A path of the connection with this name.
    Path {
        /// The name.
        connection: &'n str,
    },
    /// A connection of the tunnel with this name.
    Connection {
        /// The name.
        tunnel: &'n str,
    },
}

/// Why a fragment gives no settings.
#[derive(Debug, Error)]
pub(crate) enum FragmentError {
    /// Its tunnel or connection does not exist.
    #[error("no {what} `{name}`")]
    Missing {
        /// A connection or a tunnel.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Its content is wrong, by itself or together with what runs.
    #[error("{0}")]
    Invalid(Report),
}

/// The settings with what `fragment` describes added at `place`; `name` is how reports call the
/// fragment. Connections that were accepted by a template must not be among the settings, because
/// no file can name such.
///
/// # Errors
///
/// See [`FragmentError`].
pub(crate) fn with_fragment(
    settings: &Settings,
    place: Place<'_>,
    fragment: &str,
    name: &str,
) -> Result<Settings, FragmentError> {
    let (tunnel, connection) = find(settings, place)?;
    let text = write(settings);
    // Blank lines in front move all places of the fragment behind those of the text.
    let start = text.len();
    let moved = "\n".repeat(start) + fragment;
    let invalid = |problems| {
        let appendix = Appendix { name: name.to_owned(), text: fragment.to_owned() };
        FragmentError::Invalid(
            Report::new(RUNNING.to_owned(), text.clone(), problems).with_appendix(appendix),
        )
    };

    let (body, errors) = DeTable::parse_recoverable(&moved);
    if !errors.is_empty() {
        return Err(invalid(syntax_problems(&moved, &errors)));
    }
    let body = body.into_inner();
    if let Some((key, _)) = body.get_key_value("tunnel") {
        return Err(invalid(vec![with_header(key.span())]));
    }
    let header = start..start + fragment.lines().next().map_or(0, str::len);
    let body = Spanned::new(header, DeValue::Table(body));
    // The written text can be parsed; if not, the report shows the errors.
    let (document, _) = DeTable::parse_recoverable(&text);
    let mut document = document.into_inner();
    if let Some(tables) = target(&mut document, tunnel, connection) {
        tables.push(body);
    }
    let mut added = read(&document).map_err(invalid)?;
    // No file can say it.
    for (tunnel, before) in added.tunnels.iter_mut().zip(&settings.tunnels) {
        tunnel.checksum_partial = before.checksum_partial;
    }
    Ok(added)
}

/// The problem that a fragment was cut out of a file with what stands above it.
fn with_header(span: Range<usize>) -> Problem {
    Problem::new("a header of the configuration file", span)
        .label("not needed here")
        .help("give the keys alone, and each path of a connection below `[[path]]`")
}

/// The number of the tunnel, and that of its connection if the place is within one.
fn find(settings: &Settings, place: Place<'_>) -> Result<(usize, Option<usize>), FragmentError> {
    let mut tunnels = settings.tunnels.iter().enumerate();
    let (found, what, name) = match place {
        Place::Connection { tunnel: name } => {
            let found = tunnels.find(|(_, tunnel)| tunnel.name == name);
            (found.map(|(number, _)| (number, None)), "tunnel", name)
        }
        Place::Path { connection: name } => {
            let found = tunnels.find_map(|(number, tunnel)| {
                let mut connections = tunnel.connections.iter();
                let connection = connections.position(|connection| connection.name == name)?;
                Some((number, Some(connection)))
            });
            (found, "connection", name)
        }
    };
    found.ok_or_else(|| FragmentError::Missing { what, name: name.to_owned() })
}

/// The tables among which the fragment belongs, in the document that was written.
fn target<'d, 't>(
    document: &'d mut DeTable<'t>,
    tunnel: usize,
    connection: Option<usize>,
) -> Option<&'d mut DeArray<'t>> {
    let tunnel = tables(document, "tunnel")?.get_mut(tunnel)?;
    let connections = tables(table(tunnel)?, "connection")?;
    match connection {
        None => Some(connections),
        Some(connection) => tables(table(connections.get_mut(connection)?)?, "path"),
    }
}

/// The tables under a key, which are none where there is no such key.
fn tables<'d, 't>(owner: &'d mut DeTable<'t>, key: &'static str) -> Option<&'d mut DeArray<'t>> {
    const NOWHERE: Range<usize> = 0..0;
    let none = || Spanned::new(NOWHERE, DeValue::Array(DeArray::new()));
    let value = owner.entry(Spanned::new(NOWHERE, key.into())).or_insert_with(none);
    if let DeValue::Array(tables) = value.get_mut() { Some(tables) } else { None }
}

fn table<'d, 't>(value: &'d mut Spanned<DeValue<'t>>) -> Option<&'d mut DeTable<'t>> {
    if let DeValue::Table(table) = value.get_mut() { Some(table) } else { None }
}
