//! `mpt import DIR|FILE...`

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::Exit;
use super::check::{counted, size};
use crate::import::{self, ImportError, Imported, Peer};
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

impl Import {
    /// Imports, and says what came of it.
    pub(super) fn run(&self) -> Result<Exit> {
        let sources = import::gather(&self.from)?;
        let name =
            if self.stdout { "standard output".into() } else { self.output.display().to_string() };
        let imported = match import::import(&sources, self.peer, &name) {
            Ok(imported) => imported,
            Err(error) => {
                if let ImportError::Malformed(reports) = &error {
                    reports.iter().for_each(output::problems);
                }
                return Err(error.into());
            }
        };
        for warning in &imported.warnings {
            output::complain(format_args!("warning: {warning}"));
        }
        if self.check {
            output::print(&told(&imported))?;
        } else if self.stdout {
            output::print(&imported.text)?;
        } else {
            write(&self.output, &imported.text, self.force)?;
            output::print(&format!("{name}: written: {}\n", outcome(&imported)))?;
        }
        match &imported.verdict {
            Ok(_) => Ok(Exit::Done),
            Err(report) => {
                output::problems(report);
                let problems = counted(report.count(), "problem");
                output::complain(format_args!("{name} has {problems}: mend by hand what is shown"));
                Ok(Exit::Negative)
            }
        }
    }
}

/// What there is, and what does not count any more.
fn told(imported: &Imported) -> String {
    let mut text = format!("can be imported: {}\n", outcome(imported));
    for aside in &imported.asides {
        text.push_str("  not a setting: ");
        text.push_str(aside);
        text.push('\n');
    }
    text
}

fn outcome(imported: &Imported) -> String {
    let size = match &imported.verdict {
        Ok(settings) => size(settings),
        Err(_) => "with problems".to_owned(),
    };
    let asides = counted(imported.asides.len(), "comment");
    let warnings = counted(imported.warnings.len(), "warning");
    format!("{size}, {warnings}, {asides} on what is no setting")
}

/// Writes the file. It may hold a key, so it is its owner's alone.
fn write(file: &Path, text: &str, force: bool) -> Result<()> {
    let what = || format!("cannot write {}", file.display());
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let mut opened = match options.open(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
            "{} exists already: name another file with --output, or write over it with --force",
            file.display()
        ),
        opened => opened.with_context(what)?,
    };
    let written = opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all());
    if written.is_err() && !force {
        // Half a configuration is worse than none.
        let _ = fs::remove_file(file);
    }
    written.with_context(what)
}
