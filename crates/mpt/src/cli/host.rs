//! `mpt host apply|restore`

use anyhow::{Context as _, Result};
use clap::Subcommand;

use super::setup::DirOption;
use crate::exit::Exit;
use crate::setup::{Folder, Record, host};

#[derive(Debug, Subcommand)]
pub(super) enum HostAction {
    /// Have the resolver, or forwarding and masquerading, be as `setup.toml` says
    Apply(DirOption),
    /// Have them be as they were before
    Restore(DirOption),
}

/// Does what holds as long as the daemon runs, or undoes it.
pub(super) fn host(action: &HostAction) -> Result<Exit> {
    let (dir, work): (_, fn(&Folder, &Record) -> Result<()>) = match action {
        HostAction::Apply(dir) => (dir, host::apply),
        HostAction::Restore(dir) => (dir, host::restore),
    };
    let folder = dir.folder()?;
    let record = Record::load(&folder)?.with_context(|| {
        format!("{} was not made by `mpt init` or `mpt join`", folder.path().display())
    })?;
    work(&folder, &record).map(|()| Exit::Done)
}
