//! `mpt import DIR|FILE...`

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::check::{counted, size};
use crate::config::{Report, Settings};
use crate::exit::Exit;
use crate::import::{self, ImportError, Imported};
use crate::output;

/// What to import, and what for.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The original's folder, or its files: interface.conf and those of the connections
    #[arg(value_name = "DIR|FILE", required = true)]
    from: Vec<PathBuf>,
    /// The file to write, which must not exist yet
    #[arg(long, short, value_name = "FILE", default_value = "mpt.toml")]
    output: PathBuf,
    /// Write over the file if it exists
    #[arg(long)]
    force: bool,
    /// Print the configuration and write no file
    #[arg(long, conflicts_with_all = ["output", "force"])]
    stdout: bool,
    /// Say what would come of it, and write nothing
    #[arg(long, conflicts_with_all = ["output", "force", "stdout"])]
    check: bool,
    /// What the other ends run
    #[arg(long, value_enum, default_value_t = Peer::Original)]
    peer: Peer,
}

/// What the peers run.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Peer {
    /// The original still: connections of the kind `mpt-original`
    #[value(name = "mpt-original")]
    Original,
    /// This `mpt` too, from the same moment on
    Mpt,
}

impl From<Peer> for import::Peer {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Original => Self::Original,
            Peer::Mpt => Self::Mpt,
        }
    }
}

/// What `mpt check` says of the configuration that was made.
type Verdict = Result<Settings, Report>;

impl Import {
    /// Imports, and says what came of it.
    pub(super) fn run(&self) -> Result<Exit> {
        let sources = import::find(&self.from)?;
        let name =
            if self.stdout { "standard output".into() } else { self.output.display().to_string() };
        let (imported, verdict) = match import::import(&sources, self.peer.into(), &name) {
            Ok(imported) => imported,
            Err(error) => {
                if let ImportError::Malformed(files) = &error {
                    files.iter().for_each(|file| output::problems(&import::report(file)));
                }
                return Err(error.into());
            }
        };
        for warning in &imported.warnings {
            output::complain(format_args!("warning: {warning}"));
        }
        if self.check {
            output::print(&told(&imported, &verdict))?;
        } else if self.stdout {
            output::print(&imported.text)?;
        } else {
            write(&self.output, &imported, self.force)?;
            output::print(&format!("{name}: written: {}\n", outcome(&imported, &verdict)))?;
            if imported.holds_key {
                output::print(&format!(
                    "{name}: contains a key, and only its owner may read it; for the service: \
                     chgrp mpt {name}; chmod 0640 {name}\n"
                ))?;
            }
        }
        match &verdict {
            Ok(_) => Ok(Exit::Done),
            Err(report) => {
                output::problems(report);
                let problems = counted(report.count(), "problem");
                output::complain(format_args!("{name} has {problems}: fix the settings shown"));
                Ok(Exit::Negative)
            }
        }
    }
}

/// What there is, and what does not count any more.
fn told(imported: &Imported, verdict: &Verdict) -> String {
    let mut text = format!("can be imported: {}\n", outcome(imported, verdict));
    for aside in &imported.asides {
        text.push_str("  not a setting: ");
        text.push_str(aside);
        text.push('\n');
    }
    text
}

fn outcome(imported: &Imported, verdict: &Verdict) -> String {
    let size = match verdict {
        Ok(settings) => size(settings),
        Err(_) => "with problems".to_owned(),
    };
    let asides = counted(imported.asides.len(), "comment");
    let warnings = counted(imported.warnings.len(), "warning");
    format!("{size}, {warnings}, {asides} on what is no setting")
}

/// Writes the file at once or not at all: beside its place first, so that what stands there is whole
/// until the whole of this does. Who may read it is decided by what is in it, and not by what stood there.
fn write(file: &Path, imported: &Imported, force: bool) -> Result<()> {
    let what = || format!("cannot write {}", file.display());
    // Where a link leads, as any other way to write would.
    let place = if force { fs::canonicalize(file) } else { Err(io::ErrorKind::NotFound.into()) };
    let place = place.unwrap_or_else(|_| file.to_owned());
    if force && place.exists() && !place.is_file() {
        bail!("{} is not a regular file, which could be replaced: see --stdout", file.display());
    }
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mode = if imported.holds_key { 0o600 } else { 0o644 };
    let mut written = tempfile::Builder::new()
        .prefix(".mpt-import-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .with_context(what)?;
    // That is less than intended with a restrictive umask.
    written
        .as_file()
        .set_permissions(Permissions::from_mode(mode))
        .and_then(|()| written.write_all(imported.text.as_bytes()))
        .and_then(|()| written.as_file().sync_all())
        .with_context(what)?;
    let put = if force { written.persist(&place) } else { written.persist_noclobber(&place) };
    match put.map_err(|failed| failed.error) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
            "{} exists already: name another file with --output, or overwrite it with --force",
            file.display()
        ),
        put => put.with_context(what)?,
    };
    // The name is on the disk when its folder is.
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(what)
}
