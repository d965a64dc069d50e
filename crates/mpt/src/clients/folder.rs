//! The files of clients: `van.toml` is the client `van`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use thiserror::Error;

use crate::config::{self, Client};

/// The longest name in bytes: what is left of 64, the longest name of a connection, after that of its template and a hyphen.
const MAX_NAME: usize = 39;

/// A name that no client can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no name of a client: use 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`, the first one a letter or digit"
)]
pub(crate) struct NameError(String);

/// The file of the client with this name.
///
/// # Errors
///
/// If no client can have it.
pub(crate) fn file_of(folder: &Path, name: &str) -> Result<PathBuf, NameError> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || name.len() > MAX_NAME || !name.chars().all(is_good) {
        return Err(NameError(name.to_owned()));
    }
    Ok(folder.join(format!("{name}.toml")))
}

/// The clients in a folder by their names; and what is wrong with files, each with its name.
///
/// # Errors
///
/// If the folder cannot be read.
#[expect(clippy::type_complexity, reason = "two lists")]
pub(crate) fn read(folder: &Path) -> Result<(BTreeMap<Box<str>, Client>, Vec<(Box<str>, String)>)> {
    let what = || format!("cannot read the folder of clients {}", folder.display());
    let (mut clients, mut faults) = (BTreeMap::new(), Vec::new());
    for entry in fs::read_dir(folder).with_context(what)? {
        let path = entry.with_context(what)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(name) = name.strip_suffix(".toml").filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let client = file_of(folder, name).map_err(anyhow::Error::from).and_then(|_| parse(&path));
        match client {
            Ok(client) => drop(clients.insert(name.into(), client)),
            Err(error) => faults.push((name.into(), format!("{}: {error:#}", path.display()))),
        }
    }
    faults.sort();
    Ok((clients, faults))
}

fn parse(path: &Path) -> Result<Client> {
    let text = config::text_of(path).context("cannot be read")?;
    let parsed = Client::parse(&text, &path.display().to_string());
    parsed.map_err(|report| anyhow::anyhow!("not a client\n{}", report.render(false)))
}

/// Writes the file of a further client.
///
/// # Errors
///
/// If there is one of that name, or the file cannot be written.
pub(crate) fn create(folder: &Path, path: &Path, text: &str) -> Result<()> {
    if path.try_exists().unwrap_or(true) {
        bail!("{} is there already: remove that client first", path.display());
    }
    write(folder, path, text)
}

/// Removes the file of a client.
///
/// # Errors
///
/// If that fails.
pub(crate) fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Has the file of a client, which said `before`, say who it is from now on. Where it says something else by now,
/// or is gone, it stays like that: somebody else has had a reason.
///
/// # Errors
///
/// If it cannot be read or written.
pub(super) fn pin(folder: &Path, name: &str, before: &Client, now: &Client) -> Result<()> {
    let path = file_of(folder, name)?;
    if !path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let text = config::text_of(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let shown = path.display().to_string();
    if Client::parse(&text, &shown).ok().as_ref() != Some(before) {
        return Ok(());
    }
    // What people have written beside the settings stays, if they have not written it across lines.
    let is_used = |line: &&str| line.trim_start().starts_with("invitation");
    let rest = text.lines().filter(|line| !is_used(line)).map(|line| format!("{line}\n"));
    let key = now.public_key.map(|key| format!("public_key = \"{key}\"\n")).unwrap_or_default();
    let edited = key + &rest.collect::<String>();
    let is_it = Client::parse(&edited, &shown).is_ok_and(|edited| edited == *now);
    write(folder, &path, &if is_it { edited } else { now.to_text() })
}

/// Puts a file in place at once, and on the disk.
fn write(folder: &Path, path: &Path, text: &str) -> Result<()> {
    let what = || format!("cannot write {}", path.display());
    let mut file = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .tempfile_in(folder)
        .with_context(what)?;
    file.write_all(text.as_bytes()).with_context(what)?;
    file.as_file().sync_all().with_context(what)?;
    file.persist(path).map_err(|error| error.error).with_context(what)?;
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(what)
}
