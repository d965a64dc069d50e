//! Labs that are up, so that another terminal finds them.
//!
//! A running lab has a file with its process id and the descriptors of its hosts, in a folder that
//! belongs to the user and that no other user may write to. The file is removed with the lab; for a
//! stale file the process does not exist or is younger than the file says, and the next reader
//! removes it.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::lab::{Host, Lab};
use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// A lab as its file describes it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Running {
    /// The lab's name.
    pub name: String,
    /// The process that holds it.
    pub pid: u32,
    /// When that process was started, in the kernel's ticks; process ids come back.
    started: u64,
    /// The hosts.
    pub hosts: Vec<RunningHost>,
}

/// A host of a running lab.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunningHost {
    /// `left` or `right`.
    pub name: String,
    /// The descriptor of its network namespace in the lab's process.
    pub descriptor: i32,
}

/// The user's folder of running labs. Must be opened before the process enters a user namespace, in
/// which it no longer knows its user id.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// The file of a lab; dropping it removes the file.
#[derive(Debug)]
pub struct Entry {
    file: PathBuf,
}

impl Folder {
    /// Opens the user's folder, making it if necessary: in `XDG_RUNTIME_DIR`, else in `/run` for
    /// root, else in `/tmp`.
    ///
    /// # Errors
    ///
    /// It cannot be made, or somebody else could have put something into it.
    pub fn open() -> Result<Self> {
        let user = Uid::effective();
        Self::at(match env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
            Some(folder) if folder.is_absolute() && folder.is_dir() => folder.join("mpt-lab"),
            _ if user.is_root() => PathBuf::from("/run/mpt-lab"),
            _ => env::temp_dir().join(format!("mpt-lab-{user}")),
        })
    }

    /// Opens this folder, making it if necessary.
    ///
    /// # Errors
    ///
    /// It cannot be made, or somebody else could have put something into it.
    pub fn at(path: PathBuf) -> Result<Self> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make {}", path.display()));
            }
        }
        let data = fs::symlink_metadata(&path)
            .with_context(|| format!("cannot look at {}", path.display()))?;
        ensure!(
            data.is_dir() && data.uid() == Uid::effective().as_raw() && data.mode() & 0o022 == 0,
            "{} is not a folder of this user alone: remove it and try again",
            path.display()
        );
        Ok(Self { path })
    }

    /// Announces a lab of this process.
    ///
    /// # Errors
    ///
    /// One of that name is up already, or the file cannot be written.
    pub fn announce(&self, name: &str, lab: &Lab) -> Result<Entry> {
        if self.find(name)?.is_some() {
            bail!("a lab called `{name}` is running already: end it, or give this one a --name");
        }
        let pid = std::process::id();
        let running = Running {
            name: name.to_owned(),
            pid,
            started: start_of(pid).context("cannot tell when this process was started")?,
            hosts: [lab.left(), lab.right()].map(host).into(),
        };
        // A reader must not find half a file, so it gets its name when it is whole.
        let mut file = NamedTempFile::new_in(&self.path)
            .with_context(|| format!("cannot make a file in {}", self.path.display()))?;
        let entry = Entry { file: self.path.join(format!("{name}.json")) };
        serde_json::to_writer(&mut file, &running)
            .map_err(io::Error::from)
            .and_then(|()| file.flush())
            .and_then(|()| file.persist(&entry.file).map_err(io::Error::from))
            .with_context(|| format!("cannot write {}", entry.file.display()))?;
        Ok(entry)
    }

    /// The lab of that name, if it is up.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<Running>> {
        Ok(self.all()?.into_iter().find(|running| running.name == name))
    }

    /// All labs that are up, sorted by name. Files of others are removed.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn all(&self) -> Result<Vec<Running>> {
        let context = || format!("cannot read {}", self.path.display());
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.path).with_context(context)? {
            let file = entry.with_context(context)?.path();
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&file) {
                Some(running) if start_of(running.pid) == Some(running.started) => {
                    all.push(running);
                }
                // Two may notice at once; then one of them finds it gone.
                _ => drop(fs::remove_file(&file)),
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // What stays behind is recognised as stale.
        let _ = fs::remove_file(&self.file);
    }
}

fn host(host: &Host) -> RunningHost {
    RunningHost { name: host.name().into(), descriptor: host.as_fd().as_raw_fd() }
}

fn read(file: &Path) -> Option<Running> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Field 22 of /proc/PID/stat (proc(5)); `None` if there is no such process.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}
