//! The control socket: who may ask.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use mpt_control::ErrorKind;
use nix::unistd::User;

use super::server::{Decoder, error_line};
use crate::server::{Accepted, BindError, Listen, SocketFile};

/// The setting that names it.
const SETTING: &str = "`socket` in [control]";

/// The control socket of this daemon. Its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Listener(SocketFile);

impl Listener {
    /// Listens on `path`: see [`SocketFile::bind`].
    ///
    /// # Errors
    /// See [`BindError`].
    pub(crate) fn bind(path: &Path) -> Result<Self, BindError> {
        SocketFile::bind(path, SETTING).map(Self)
    }

    /// Where it listens.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Changes the owner of the socket: see [`SocketFile::hand_over`].
    ///
    /// # Errors
    /// See [`BindError`].
    pub(crate) fn hand_over(&mut self, user: &User) -> Result<(), BindError> {
        self.0.hand_over(user)
    }

    /// As if the daemon belonged to `owner`.
    #[cfg(test)]
    pub(crate) fn set_owner(&mut self, owner: u32) {
        self.0.set_owner(owner);
    }
}

impl Listen for Listener {
    type Decoder = Decoder;

    fn accept(&self) -> io::Result<Accepted> {
        let (socket, stranger) = self.0.accept()?;
        let Some(who) = stranger else { return Ok(Accepted::Allowed(socket)) };
        let message = "only root and the daemon's own user may ask: use sudo";
        Ok(Accepted::Refused {
            socket,
            reason: format!("{who} may not use the control socket"),
            reply: error_line(ErrorKind::NotAllowed, message),
        })
    }

    fn busy(&self, message: &str) -> Vec<u8> {
        error_line(ErrorKind::Busy, message)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
