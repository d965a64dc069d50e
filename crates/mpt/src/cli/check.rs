//! `mpt check FILE`

use std::path::Path;

use anyhow::Result;

use super::Exit;
use crate::config::{self, LoadError, Settings};
use crate::output;

/// Says whether `mpt run` would take the file.
pub(super) fn check(file: &Path) -> Result<Exit> {
    match config::load(file) {
        Ok(settings) => output::print(&format!("{}: good: {}\n", file.display(), size(&settings))),
        Err(LoadError::Invalid(report)) => {
            output::report(&report);
            Ok(Exit::Negative)
        }
        Err(error) => Err(error.into()),
    }
}

fn size(settings: &Settings) -> String {
    let connections = settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    [
        (settings.tunnels.len(), "tunnel"),
        (connections.clone().count(), "connection"),
        (connections.map(|connection| connection.paths.len()).sum(), "path"),
    ]
    .map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
    .join(", ")
}
