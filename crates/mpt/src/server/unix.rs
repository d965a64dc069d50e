//! A socket in the file system: who may come in, and how it comes and goes.
//!
//! The file has mode 0600 from the moment it exists. There is a second check: a client with
//! a connection must be root or the user of the daemon by the credentials that the kernel recorded
//! (`SO_PEERCRED`, unix(7)), whatever became of the file's mode.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{User, fchownat};
use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;
use tracing::warn;

use super::lock::Lock;

/// Mode of the socket's file.
const MODE: u32 = 0o600;

/// Mode of its directory if that is made. The socket guards itself.
const DIRECTORY_MODE: u32 = 0o755;

/// Connections that wait to be accepted, beyond which the kernel lets clients wait.
const BACKLOG: i32 = 16;

/// A listening socket of this daemon. Its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, so that no other file is removed.
    identity: (u64, u64),
    /// The directory, if it was made for the socket.
    made: Option<PathBuf>,
    owner: u32,
    /// The setting that names it, for errors.
    setting: &'static str,
}

/// Why a socket cannot be made.
#[derive(Debug, Error)]
pub(crate) enum BindError {
    /// A daemon lives there.
    #[error(
        "a daemon listens on {} already: end that one, or name another {setting}", .path.display()
    )]
    Living {
        /// The socket's path.
        path: PathBuf,
        /// The setting that names it.
        setting: &'static str,
    },
    /// Another daemon is about to live there.
    #[error(
        "another daemon is starting on {} and holds {}: try again, or name another {setting}",
        .path.display(), Lock::path_of(.path).display()
    )]
    Locked {
        /// The socket's path.
        path: PathBuf,
        /// The setting that names it.
        setting: &'static str,
    },
    /// Something else is there.
    #[error("{} exists and is not a socket: remove it, or name another {setting}", .path.display())]
    NoSocket {
        /// The socket's path.
        path: PathBuf,
        /// The setting that names it.
        setting: &'static str,
    },
    /// The kernel did not let us.
    #[error(
        "cannot listen on {}: {error}; {} another {setting}", .path.display(), remedy(.error)
    )]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// The setting that names it.
        setting: &'static str,
        /// What the kernel reported.
        error: io::Error,
    },
}

impl SocketFile {
    /// Listens on `path`, which `setting` names, and makes its directory if only that is missing. The
    /// file of a daemon that was killed is replaced. Never blocks.
    ///
    /// # Errors
    /// See [`BindError`].
    pub(crate) fn bind(path: &Path, setting: &'static str) -> Result<Self, BindError> {
        let io = |error| BindError::Io { path: path.into(), setting, error };
        let directory = path.parent().unwrap_or(Path::new("/"));
        let made = make_directory(directory).map_err(io)?;
        // Two daemons must not both find the same dead socket and one of them remove the fresh
        // socket of the other.
        let lock = Lock::take(path)
            .map_err(io)?
            .ok_or_else(|| BindError::Locked { path: path.into(), setting })?;
        clear(path, setting)?;
        let socket = bind(path).map_err(io)?;
        drop(lock);
        let file = fs::symlink_metadata(path).map_err(io)?;
        Ok(Self {
            socket,
            path: path.into(),
            identity: (file.dev(), file.ino()),
            made,
            owner: nix::unistd::geteuid().as_raw(),
            setting,
        })
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the owner of the socket to the user that the daemon switches to, who may then
    /// connect, and remove its file at the end: also that of the directory, if it was created for
    /// the socket.
    ///
    /// # Errors
    /// See [`BindError`].
    pub(crate) fn hand_over(&mut self, user: &User) -> Result<(), BindError> {
        let setting = self.setting;
        let io = |error| BindError::Io { path: self.path.clone(), setting, error };
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        give(&self.path, self.identity, user).map_err(io)?;
        if let Some(made) = &self.made {
            let file = fs::symlink_metadata(made).map_err(io)?;
            give(made, (file.dev(), file.ino()), user).map_err(io)?;
        } else if !may_write(&fs::metadata(directory).map_err(io)?, user) {
            warn!(
                "user `{}` may not remove {} at the end: give it the directory with `chown {} {}`",
                user.name,
                self.path.display(),
                user.name,
                directory.display()
            );
        }
        self.owner = user.uid.as_raw();
        Ok(())
    }

    /// The next client, and who it is if it may not ask: neither root nor the daemon's user.
    ///
    /// # Errors
    /// The kernel's error: `EAGAIN` if there is none.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Option<String>)> {
        let (stream, _) = self.socket.accept()?;
        stream.set_nonblocking(true)?;
        let user = getsockopt(&stream, sockopt::PeerCredentials).ok().map(|peer| peer.uid());
        let socket = Socket::from(OwnedFd::from(stream));
        Ok(match user {
            Some(user) if user == 0 || user == self.owner => (socket, None),
            Some(user) => (socket, Some(format!("user {user}"))),
            None => (socket, Some("an unknown user".into())),
        })
    }

    /// As if the daemon belonged to `owner`.
    #[cfg(test)]
    pub(crate) fn set_owner(&mut self, owner: u32) {
        self.owner = owner;
    }
}

impl AsFd for SocketFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Nothing can be done about failures here, and the next daemon copes with what is left.
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|file| (file.dev(), file.ino()) == self.identity);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(directory) = &self.made {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// What may help besides another place. Only where the kernel refuses does being root.
fn remedy(error: &io::Error) -> &'static str {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::PermissionDenied, Some(_)) => "run as root, or name",
        _ => "name",
    }
}

fn make_directory(directory: &Path) -> io::Result<Option<PathBuf>> {
    match DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Ok(()) => Ok(Some(directory.into())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a file to a user, if it still is the one of that device and inode.
fn give(path: &Path, identity: (u64, u64), user: &User) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    let found = file.metadata()?;
    if (found.dev(), found.ino()) != identity {
        return Err(io::Error::other("another process has replaced it"));
    }
    fchownat(&file, "", Some(user.uid), Some(user.gid), AtFlags::AT_EMPTY_PATH)?;
    Ok(())
}

/// Whether a user may make and remove files in a directory, by owner, group and others.
fn may_write(directory: &Metadata, user: &User) -> bool {
    let shift = match (directory.uid() == user.uid.as_raw(), directory.gid() == user.gid.as_raw()) {
        (true, _) => 6,
        (false, true) => 3,
        (false, false) => 0,
    };
    // In a directory with the sticky bit users may remove only their own files (inode(7)).
    directory.mode() >> shift & 0o3 == 0o3
}

/// Removes the socket of a dead daemon.
fn clear(path: &Path, setting: &'static str) -> Result<(), BindError> {
    let io = |error| BindError::Io { path: path.into(), setting, error };
    let living = || Err(BindError::Living { path: path.into(), setting });
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(BindError::NoSocket { path: path.into(), setting });
        }
        Ok(_) => {}
    }
    // A refused connection means that there is no listener. A full backlog (EAGAIN) is that of a
    // running daemon.
    let request = Socket::new(Domain::UNIX, Type::STREAM, None).and_then(|socket| {
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    });
    match request {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(io)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => living(),
        Err(error) => Err(io(error)),
        Ok(()) => living(),
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // bind(2) gives the file the mode of the socket's own inode, less the umask: so the file never
    // has a wider mode, and the umask of the process is not changed.
    let file = File::from(OwnedFd::from(socket));
    file.set_permissions(Permissions::from_mode(MODE))?;
    let socket = Socket::from(OwnedFd::from(file));
    socket.bind(&SockAddr::unix(path)?)?;
    let mode = fs::symlink_metadata(path)?.permissions().mode() & 0o7777;
    if mode & !MODE != 0 {
        fs::remove_file(path)?;
        let what = format!("the file system gave the socket mode {mode:o} instead of {MODE:o}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    Ok(UnixListener::from(OwnedFd::from(socket)))
}
