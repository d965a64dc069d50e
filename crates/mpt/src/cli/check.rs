//! `mpt check FILE`

use std::path::Path;

use anyhow::{Result, anyhow};

use crate::config::{self, LoadError, Settings};
use crate::exit::Exit;
use crate::preflight::{self, Severity};
use crate::{keys, output};

/// Why a file cannot be read, and where there is none how to get one.
pub(super) fn unreadable(error: LoadError, file: &Path) -> anyhow::Error {
    match file.exists() {
        true => error.into(),
        false => anyhow!("{error}: name another file, or have `mpt init` or `mpt join` write one"),
    }
}

/// Says whether `mpt run` would take the file, and unless `file_only`, whether it would run here.
pub(super) fn check(file: &Path, file_only: bool) -> Result<Exit> {
    let settings = match config::load(file) {
        Ok(settings) => settings,
        Err(LoadError::Invalid(report)) => {
            output::report(&report);
            return Ok(Exit::Negative);
        }
        Err(error) => return Err(unreadable(error, file)),
    };
    let (name, size) = (file.display(), size(&settings));
    if file_only {
        return output::print(&format!("{name}: good: {size}\n"));
    }

    let findings = preflight::lacks(&settings);
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    // What does not run is not called good, although the file has no error of its own.
    let verdict = if errors == 0 { "good: " } else { "" };
    output::print(&format!("{name}: {verdict}{size}\n"))?;
    let text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    output::print(&text)?;
    for open in settings.tunnels.iter().filter_map(keys::unsealed) {
        output::print(&format!("note: {open}\n"))?;
    }
    if errors == 0 {
        return Ok(Exit::Done);
    }
    output::complain(format_args!(
        "{name} cannot be run here: fix {} and try again",
        counted(errors, "error")
    ));
    Ok(Exit::Negative)
}

/// How many tunnels, connections and paths there are.
pub(super) fn size(settings: &Settings) -> String {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let counts = [
        (settings.tunnels.len(), "tunnel"),
        (connections.clone().count(), "connection"),
        (connections.clone().map(|connection| connection.paths.len()).sum(), "path"),
    ];
    let found = connections.clone().filter(|connection| connection.remote.is_some()).count();
    let learned = connections.filter(|connection| connection.learns_paths()).count();
    let mut size = counts.map(|(count, what)| counted(count, what)).join(", ");
    for (count, how) in [(found, "found"), (learned, "learned")] {
        if count > 0 {
            size.push_str(&format!("; paths of {} are {how}", counted(count, "connection")));
        }
    }
    let templates = settings.tunnels.iter().map(|tunnel| tunnel.accepts.len()).sum();
    if templates > 0 {
        size.push_str(&format!("; clients of {} are accepted", counted(templates, "template")));
    }
    size
}

/// A number of things.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
