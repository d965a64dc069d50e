//! What `mpt init`, `mpt invite`, `mpt join` and `mpt leave` have in common on the command line.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use toml::Value;

use super::check::counted;
use crate::config::{self, LoadError, Prefix};
use crate::preflight::{self, Severity};
use crate::setup::{Folder, Record, folder, service};
use crate::{control, output};

/// Where the files are.
#[derive(Debug, Args)]
pub(super) struct DirOption {
    /// The folder with all files. With another one than the default no service is made, and the daemon's control socket is in it
    #[arg(long, value_name = "DIR", default_value = Folder::DEFAULT)]
    dir: PathBuf,
}

impl DirOption {
    /// The folder that was named.
    ///
    /// # Errors
    ///
    /// The path is empty.
    pub(super) fn folder(&self) -> Result<Folder> {
        Folder::new(&self.dir)
    }
}

/// `ADDRESS/LEN` of the command line.
pub(super) fn prefix(text: &str) -> Result<Prefix, String> {
    let usage = || "not an address with the length of its network, such as 10.66.0.1/24".to_owned();
    let (addr, len) = text.split_once('/').ok_or_else(usage)?;
    let addr = addr.parse().map_err(|_| usage())?;
    let len: u8 = len.parse().map_err(|_| usage())?;
    if len > Prefix::max_len(addr) {
        return Err(usage());
    }
    Ok(Prefix { addr, len })
}

/// The name of an interface on the command line.
pub(super) fn interface(text: &str) -> Result<String, String> {
    match config::interface_fault(text) {
        Some(fault) => Err(fault.to_string()),
        None => Ok(text.to_owned()),
    }
}

/// Addresses as an array of a configuration.
pub(super) fn list<T: ToString>(items: &[T]) -> Value {
    Value::Array(items.iter().map(|item| Value::from(item.to_string())).collect())
}

/// The control socket in a configuration, if it is not the usual one.
pub(super) fn control(folder: &Folder) -> String {
    if folder.is_default() {
        return String::new();
    }
    let socket = Value::from(folder.socket().display().to_string());
    format!("[control]\nsocket = {socket}\n\n")
}

/// How the daemon is started where systemd does not do it.
pub(super) fn how_to_start(folder: &Folder, record: &Record) -> String {
    let what = match (record.internet, record.everything) {
        (true, _) => "the clients have no Internet",
        (_, true) => "this host does not send everything through the tunnel",
        _ => return format!("to start: mpt run {}\n", folder.config().display()),
    };
    format!(
        "to start: mpt run {}\nonce it runs: mpt host apply{1}, without which {what}\nafter its end: mpt host restore{1}\n",
        folder.config().display(),
        folder.option()
    )
}

/// What starts the tunnel of this host when it does not run, as a part of a sentence.
pub(super) fn starter(folder: &Folder, record: &Record) -> String {
    let run = format!("`mpt run {}`", folder.config().display());
    match (record.service, record.internet || record.everything) {
        (true, _) => format!("`systemctl start {}` starts it", service::UNIT),
        (false, true) => format!("{run} and then `mpt host apply{}` start it", folder.option()),
        (false, false) => format!("{run} starts it"),
    }
}

/// Whether the configuration that was written is one.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn check(folder: &Folder) -> Result<()> {
    match config::load(&folder.config()) {
        Ok(_) => Ok(()),
        Err(LoadError::Invalid(report)) => {
            output::problems(&report);
            bail!("this would not be a configuration; nothing was changed")
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the configuration that was written would run on this host.
///
/// # Errors
///
/// It would not. What is missing has been said, with what to do about it.
pub(super) fn able(folder: &Folder) -> Result<()> {
    let settings = config::load(&folder.config())?;
    let mut errors = preflight::lacks(&settings);
    errors.retain(|finding| finding.severity == Severity::Error);
    if errors.is_empty() {
        return Ok(());
    }
    for error in &errors {
        output::complain(error);
    }
    bail!(
        "this host cannot run it: fix {} and try again; nothing was changed",
        counted(errors.len(), "error")
    )
}

/// What somebody else has written there, with what to do about it.
pub(super) fn foreign(folder: &Folder) -> Option<String> {
    let files = [folder.config(), folder.private_key(), folder.peers(), folder.invitation()];
    let existing = files.iter().find(|file| file.symlink_metadata().is_ok())?;
    Some(format!(
        "{} exists, and `mpt init` or `mpt join` did not write it: move it away, or choose another folder with --dir",
        existing.display()
    ))
}

/// Does something, and undoes all of it if it fails.
///
/// # Errors
///
/// Why it failed.
pub(super) fn or_undo(
    folder: &Folder,
    record: &mut Record,
    work: impl FnOnce(&mut Record) -> Result<()>,
) -> Result<()> {
    let done = work(record);
    if done.is_err() {
        if let Err(error) = service::uninstall(record) {
            output::complain(format_args!("{error:#}"));
        }
        if let Err(error) = remove_files(folder, record) {
            output::complain(format_args!("{error:#}"));
        }
    }
    done
}

/// Removes all files of a host, and the folder if it was made for them and has no others. Returns what is left in it.
///
/// # Errors
///
/// One cannot be removed.
pub(super) fn remove_files(folder: &Folder, record: &Record) -> Result<Vec<String>> {
    if let Err(error) = std::fs::remove_dir_all(folder.peers())
        && error.kind() != ErrorKind::NotFound
    {
        bail!("cannot remove {}: {error}", folder.peers().display());
    }
    let files =
        [folder.config(), folder.private_key(), folder.invitation(), folder.log(), folder.before()];
    for file in &files {
        folder::remove(file)?;
    }
    let socket = folder.socket();
    if let Err(error) = UnixStream::connect(&socket)
        && error.kind() == ErrorKind::ConnectionRefused
    {
        // A daemon that was killed has left it.
        folder::remove(&control::lock_file(&socket))?;
        folder::remove(&socket)?;
    }
    // The last one, so that the command can be repeated after a failure.
    folder::remove(&folder.record())?;
    let left = std::fs::read_dir(folder.path());
    let left: Vec<_> = left
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if record.made_folder && left.is_empty() {
        let _ = std::fs::remove_dir(folder.path());
    }
    Ok(left)
}
