//! The import of the original's configuration files.
//!
//! Its files (`source`) are read in the form of today (`ini`) or in that of earlier packages
//! (`positional`), and either gives a `document`: sections of entries, each with its place. From
//! there it goes section by section (`interface`, `own`, `connection`, `peers`, `path`, `network`, `pins`, `auth`): a
//! `ledger` makes sure that no entry is forgotten, and a `table` is filled with settings, each followed
//! by where it is from. What has no counterpart becomes a comment with the reason. Of keys, messages and
//! comments show nothing (`mask`).
//!
//! A value that cannot be read, or is missing without a default, is a `problem` with its place, and then there is
//! no result. Otherwise the result is the text of a configuration. Its reader is not part of this crate, and gives
//! the bounds that it checks in a `target`.

mod auth;
mod blocks;
mod connection;
mod document;
mod general;
mod ini;
mod integer;
mod interface;
mod keys;
mod ledger;
mod mask;
mod name;
mod network;
mod own;
mod path;
mod peers;
mod pins;
mod positional;
mod problem;
mod source;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod value;

use std::collections::HashSet;
use std::fmt::Write as _;

use thiserror::Error;

pub use problem::{Malformed, Problem};
pub use source::{Source, Sources};
pub use target::{Peer, Target};

use connection::Connection;
use document::{Document, Shown};
use ledger::{Findings, Ledger};
use table::Table;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The configuration, as TOML.
    pub text: String,
    /// Whether a key is in it, be it commented out.
    pub holds_key: bool,
    /// Warnings to the user, one line each.
    pub warnings: Vec<String>,
    /// Entries that are no setting here, one line each.
    pub asides: Vec<String>,
}

/// Why an import failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ImportError {
    /// Files with problems, at least one.
    #[error("{}", closing(.0))]
    Malformed(Vec<Malformed>),
    /// There is nothing of a tunnel.
    #[error("there is no interface.conf: give its path, or the folder that contains it")]
    NoInterface,
    /// There are two tunnels.
    #[error("{0} and {1} both describe an interface: give one of them")]
    TwoInterfaces(String, String),
    /// There is nothing of a connection.
    #[error(
        "there is no file of a connection: give their paths, or the folder that contains \
        `connections`"
    )]
    NoConnection,
}

fn closing(files: &[Malformed]) -> String {
    let count: usize = files.iter().map(|file| file.problems.len()).sum();
    let problems = if count == 1 { "problem" } else { "problems" };
    format!("{count} {problems} in what is to be imported: correct and try again")
}

/// Makes a configuration of files of the original.
///
/// # Errors
///
/// See [`ImportError`].
pub fn import(from: &Sources, target: &Target) -> Result<Imported, ImportError> {
    let documents = read(&from.files)?;
    let mut sorted = Sorted::new(documents)?;
    let mut findings = Findings::default();
    findings.warnings.extend(from.unread.iter().map(|file| unread(file)));
    let mut malformed = Vec::new();
    let mut finish = |document: &mut Document, findings: &mut Findings| {
        let asides = leftovers(document, findings);
        add_problems(document, findings, &mut malformed);
        asides
    };

    let general = general::read(&mut sorted.interface, target.peer, &mut findings);
    let mut connections = Vec::new();
    let mut names = HashSet::new();
    for document in &mut sorted.connections {
        let mut own = Findings::default();
        let mut connection = connection::read(document, &general, target, &mut names, &mut own);
        finish(document, &mut own).into_iter().for_each(|aside| connection.aside(aside));
        findings.warnings.append(&mut own.warnings);
        connections.push(connection);
    }
    peers::merge(&mut connections, &mut findings);
    let interface = &mut sorted.interface;
    let mut tunnel = interface::tunnel(interface, general, target, &mut connections, &mut findings);
    tunnel.asides.append(&mut finish(interface, &mut findings));
    if !malformed.is_empty() {
        return Err(ImportError::Malformed(malformed));
    }
    let connections = connections.into_iter().flat_map(Connection::into_tables);
    let tables: Vec<Table> = std::iter::once(tunnel).chain(connections).collect();

    let mut text = heading(from);
    tables.iter().for_each(|table| table.write(&mut text));
    let holds_key = tables.iter().any(|table| table.holds_key);
    let mut asides: Vec<String> = tables.into_iter().flat_map(|table| table.asides).collect();
    for template in &mut sorted.templates {
        let mut lines = template_asides(template, &mut findings);
        write_template(&mut text, &lines);
        asides.append(&mut lines);
    }
    Ok(Imported { text, holds_key, warnings: findings.warnings, asides })
}

/// The documents in the files.
fn read(files: &[Source]) -> Result<Vec<Document>, ImportError> {
    let mut documents = Vec::new();
    let mut malformed = Vec::new();
    for (Source { name, text }, label) in files.iter().zip(source::labels(files)) {
        let read = if blocks::is_positional(text) {
            positional::read(name, text)
        } else {
            ini::read(name, text).map(|document| vec![document])
        };
        match read {
            Ok(read) => {
                documents
                    .extend(read.into_iter().map(|read| Document { label: label.clone(), ..read }));
            }
            Err(problems) => {
                malformed.push(Malformed {
                    name: name.clone(),
                    text: mask::masked(text),
                    problems,
                });
            }
        }
    }
    if malformed.is_empty() { Ok(documents) } else { Err(ImportError::Malformed(malformed)) }
}

/// The documents by kind.
#[derive(Debug)]
struct Sorted {
    interface: Document,
    connections: Vec<Document>,
    /// Templates of connections that a peer creates.
    templates: Vec<Document>,
}

impl Sorted {
    fn new(documents: Vec<Document>) -> Result<Self, ImportError> {
        let mut interface: Option<Document> = None;
        let (mut connections, mut templates) = (Vec::new(), Vec::new());
        let mut malformed = Vec::new();
        for document in documents {
            if document.name.ends_with(".template") {
                templates.push(document);
            } else if ["connection", "path_", "net_"].iter().any(|name| document.has(name)) {
                connections.push(document);
            } else if ["general", "tun_"].iter().any(|name| document.has(name)) {
                if let Some(first) = &interface {
                    let (first, second) = (first.name.clone(), document.name);
                    return Err(ImportError::TwoInterfaces(first, second));
                }
                interface = Some(document);
            } else {
                let problem = Problem::new("neither an interface nor a connection", 0..0)
                    .label("not a known section")
                    .help("an interface has the sections `[general]` and `[tun_0]`, a connection `[connection]` and `[path_0]`");
                let Document { name, text, .. } = document;
                malformed.push(Malformed { name, text, problems: vec![problem] });
            }
        }
        if !malformed.is_empty() {
            return Err(ImportError::Malformed(malformed));
        }
        let interface = interface.ok_or(ImportError::NoInterface)?;
        if connections.is_empty() {
            return Err(ImportError::NoConnection);
        }
        Ok(Self { interface, connections, templates })
    }
}

/// The entries of unknown sections.
fn leftovers(document: &mut Document, findings: &mut Findings) -> Vec<String> {
    let sections = std::mem::take(&mut document.sections);
    let ledgers = sections.into_iter().map(|section| Ledger::open(&document.label, section));
    ledgers.flat_map(|ledger| ledger.close(findings)).collect()
}

/// Takes the problems of a document, in the order of its text.
fn add_problems(document: &Document, findings: &mut Findings, malformed: &mut Vec<Malformed>) {
    let mut problems = std::mem::take(&mut findings.problems);
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.span.start);
        let (name, text) = (document.name.clone(), document.text.clone());
        malformed.push(Malformed { name, text, problems });
    }
}

/// The warning about a file that is not read.
fn unread(file: &str) -> String {
    let file = Shown(file);
    format!("{file}: not read: beside `connections` the original reads only interface.conf")
}

fn heading(Sources { files, unread }: &Sources) -> String {
    const END: &str = "\
# The comment after each setting gives its source. What has no counterpart is below its table.\n";
    let mut text = "# Made by `mpt import` from these files of the original MPT:\n".to_owned();
    for source in files {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "#   {}", Shown(&source.name));
    }
    text += END;
    for file in unread {
        let _ = writeln!(text, "# {}", self::unread(file));
    }
    if files.iter().any(|source| blocks::is_positional(&source.text)) {
        text +=
            "# For a file with one value per line, the key that it has in other files is shown.\n";
    }
    text
}

fn template_asides(template: &mut Document, findings: &mut Findings) -> Vec<String> {
    let why = "the original uses it when a peer creates a connection";
    let sections = std::mem::take(&mut template.sections);
    let ledgers = sections.into_iter().map(|section| Ledger::open(&template.label, section));
    ledgers
        .flat_map(|mut ledger| {
            ledger.set_all_aside(why);
            ledger.close(findings)
        })
        .collect()
}

fn write_template(text: &mut String, lines: &[String]) {
    text.push_str(
        "\n# A template. For peers that run `mpt` use a [[tunnel.accept]]: see docs/guide.md.\n",
    );
    for line in lines {
        let _ = writeln!(text, "#   {line}");
    }
}
