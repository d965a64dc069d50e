//! `mpt host apply|restore`

use anyhow::{Context as _, Result};

use super::line::HostAction;
use crate::exit::Exit;
use crate::setup::{Folder, Record, host};

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
