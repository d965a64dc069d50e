//! One daemon at a time takes a socket.
//!
//! Finding a dead socket, removing it and binding a fresh one are three steps, and two daemons that
//! take them side by side could remove each other's. So a daemon first takes `SOCKET.lock`, a file
//! of our own beside the socket. It has mode 0600, because a process that may open a file may lock
//! it: a lock on the directory could be held by every local user. It never blocks.
//!
//! The file is removed when the socket is bound. A stale one, of a daemon killed in between, is not
//! locked and harmless.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};

/// Mode of the file.
const MODE: u32 = 0o600;

/// How often the file is opened again because its holder removed it meanwhile. Each time another
/// daemon came and went, so more than once is already strange.
const ATTEMPTS: usize = 8;

/// The right to take a socket. The file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Unlocks when it is closed.
    _file: Flock<File>,
}

/// What came of locking an open file.
#[derive(Debug)]
enum Attempt {
    Held(Lock),
    /// Another process holds it.
    Taken,
    /// Its holder removed it before we locked it. Others lock the next one, so it is worth nothing.
    Stale,
}

impl Lock {
    /// The lock of the socket `socket`, or `None` if another process holds it.
    ///
    /// # Errors
    /// The kernel's error; `ELOOP` if a symbolic link stands in the file's place.
    pub(crate) fn take(socket: &Path) -> io::Result<Option<Self>> {
        let path = Self::path_of(socket);
        for _ in 0..ATTEMPTS {
            match Self::hold(&path, open(&path)?)? {
                Attempt::Held(lock) => return Ok(Some(lock)),
                Attempt::Taken => return Ok(None),
                Attempt::Stale => {}
            }
        }
        Ok(None)
    }

    /// The file that guards `socket`.
    pub(crate) fn path_of(socket: &Path) -> PathBuf {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        path.into()
    }

    fn hold(path: &Path, file: File) -> io::Result<Attempt> {
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(Attempt::Taken),
            Err((_, error)) => return Err(error.into()),
        };
        let ours = file.metadata()?;
        let there = fs::symlink_metadata(path);
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            Ok(Attempt::Held(Self { path: path.into(), _file: file }))
        } else {
            Ok(Attempt::Stale)
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still locked, so the file there is this one. If it cannot be removed, that does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    // The standard library adds O_CLOEXEC. O_NONBLOCK matters if something is there that is no
    // file, such as a pipe.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_owner_holds_it_and_no_other_may_open_it() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("control.sock");
        let lock = Lock::take(&socket).unwrap().unwrap();
        let file = dir.path().join("control.sock.lock");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(Lock::take(&socket).unwrap().is_none());
        drop(lock);
        assert!(!file.exists());
        assert!(Lock::take(&socket).unwrap().is_some());
    }

    #[test]
    fn a_stale_lock_file_is_not_locked() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("control.sock");
        fs::write(Lock::path_of(&socket), "").unwrap();
        assert!(Lock::take(&socket).unwrap().is_some());
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("control.sock");
        let elsewhere = dir.path().join("elsewhere");
        symlink(&elsewhere, Lock::path_of(&socket)).unwrap();
        let error = Lock::take(&socket).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::ELOOP as i32));
        assert!(!elsewhere.exists());
    }

    #[test]
    fn a_file_removed_before_it_was_locked_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("control.sock");
        let path = Lock::path_of(&socket);
        let first = Lock::take(&socket).unwrap().unwrap();
        let file = open(&path).unwrap();
        drop(first);
        let second = Lock::take(&socket).unwrap().unwrap();
        assert!(matches!(Lock::hold(&path, file).unwrap(), Attempt::Stale));
        let file = open(&path).unwrap();
        drop(second);
        assert!(matches!(Lock::hold(&path, file).unwrap(), Attempt::Stale));
    }
}
