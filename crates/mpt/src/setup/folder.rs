//! The folder with all files of a host, and how files in it are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Gid, Uid, User};

/// Who is to own a file, if not who writes it.
pub(crate) type Owner = Option<(Uid, Gid)>;

/// A folder such as /etc/mpt.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Where the service looks.
    pub(crate) const DEFAULT: &'static str = "/etc/mpt";

    /// The folder at a path, whether it exists or not.
    ///
    /// # Errors
    ///
    /// The path is empty, or there is no current folder.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path);
        Ok(Self(absolute.with_context(|| format!("cannot find {}", path.display()))?))
    }

    /// The configuration that `mpt run` reads if no other one is named.
    pub(crate) fn usual_config() -> PathBuf {
        Self(Self::DEFAULT.into()).config()
    }

    /// Whether it is the one of the service.
    pub(crate) fn is_default(&self) -> bool {
        self.0 == Path::new(Self::DEFAULT)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The daemon's configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("mpt.toml")
    }

    /// The private key of this host.
    pub(crate) fn private_key(&self) -> PathBuf {
        self.0.join("private.key")
    }

    /// The secret by which a client is let in the first time.
    pub(crate) fn invitation(&self) -> PathBuf {
        self.0.join("invitation")
    }

    /// The folder with the server's clients.
    pub(crate) fn peers(&self) -> PathBuf {
        self.0.join("peers.d")
    }

    /// What was done, for `mpt leave`.
    pub(crate) fn record(&self) -> PathBuf {
        self.0.join("setup.toml")
    }

    /// What the kernel's settings were before.
    pub(crate) fn before(&self) -> PathBuf {
        self.0.join("before.toml")
    }

    /// What a daemon in the foreground logs while the terminal shows something else.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("mpt.log")
    }

    /// The control socket of its daemon.
    pub(crate) fn socket(&self) -> PathBuf {
        if self.is_default() {
            mpt_control::DEFAULT_SOCKET.into()
        } else {
            self.0.join("control.sock")
        }
    }

    /// `--dir` as other commands of this host need it; nothing for the usual folder.
    pub(crate) fn option(&self) -> String {
        if self.is_default() { String::new() } else { format!(" --dir {}", self.0.display()) }
    }

    /// Makes the folder, and those around it. Returns whether it did not exist.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn make(&self) -> Result<bool> {
        if self.0.is_dir() {
            return Ok(false);
        }
        make(&self.0, 0o755)?;
        Ok(true)
    }

    /// Waits for other commands that change this folder, and keeps them waiting until the result is dropped.
    ///
    /// # Errors
    ///
    /// There is no folder, or the kernel's.
    pub(crate) fn lock(&self) -> Result<Flock<File>> {
        let what = || format!("cannot lock {}", self.0.display());
        let file = File::open(&self.0).with_context(what)?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error).with_context(what)
    }
}

/// Makes a folder with this mode, and those around it.
///
/// # Errors
///
/// The kernel's, with what may be done about it.
pub(crate) fn make(path: &Path, mode: u32) -> Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(mode).create(path);
    // Whatever the umask takes away.
    let made = made.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    made.with_context(|| format!("cannot make {}", path.display()))
}

/// Writes a file at once: it has its old content or all of the new one, whatever happens.
///
/// # Errors
///
/// The kernel's, with what may be done about it.
pub(crate) fn write(path: &Path, text: &[u8], mode: u32, owner: Owner) -> Result<()> {
    let written = write_at_once(path, text, mode, owner);
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn write_at_once(path: &Path, text: &[u8], mode: u32, owner: Owner) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.tmp"));
    let write = || {
        // What an earlier attempt has left may have another mode.
        if let Err(error) = fs::remove_file(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        if let Some((user, group)) = owner {
            fchown(&file, Some(user.as_raw()), Some(group.as_raw()))?;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    let written = write();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Removes a file, if it exists.
///
/// # Errors
///
/// The kernel's.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The user called `name` with its group, if there is one.
pub(crate) fn user(name: &str) -> Owner {
    User::from_name(name).ok().flatten().map(|user| (user.uid, user.gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        write(&file, b"one", 0o600, None).unwrap();
        // As after a crash.
        fs::write(folder.path().join(".secret.tmp"), "half").unwrap();
        write(&file, b"two", 0o640, None).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        remove(&file).unwrap();
        remove(&file).unwrap();
        assert!(write(&folder.path().join("none/file"), b"", 0o600, None).is_err());
    }

    #[test]
    fn only_the_folder_of_the_service_needs_no_options() {
        let usual = Folder::new(Path::new(Folder::DEFAULT)).unwrap();
        assert_eq!(usual.option(), "");
        assert_eq!(usual.socket(), Path::new(mpt_control::DEFAULT_SOCKET));
        let other = Folder::new(Path::new("/srv/x")).unwrap();
        assert_eq!(other.option(), " --dir /srv/x");
        assert_eq!(other.socket(), Path::new("/srv/x/control.sock"));
    }
}
