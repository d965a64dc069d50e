//! Signals as something to wait for.
//!
//! Each kind writes a byte into its own pipe, so that the loop that waits for the control socket
//! waits for signals too and nothing happens inside a signal handler.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// The signals that the daemon reacts to.
#[derive(Debug)]
pub(super) struct Signals {
    /// TERM or INT: end.
    pub(super) end: Signal,
    /// HUP: reload.
    pub(super) reload: Signal,
}

/// One kind of signal.
#[derive(Debug)]
pub(super) struct Signal(UnixStream);

impl Signals {
    /// From here on these signals do not end the process by themselves.
    ///
    /// # Errors
    /// The kernel's error, such as too many open files.
    pub(super) fn register() -> io::Result<Self> {
        Ok(Self { end: Signal::of(&[SIGTERM, SIGINT])?, reload: Signal::of(&[SIGHUP])? })
    }
}

impl Signal {
    /// Any of these signals, which from here on do not end the process by themselves.
    ///
    /// # Errors
    /// The kernel's error, such as too many open files.
    pub(super) fn of(numbers: &[i32]) -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        for &number in numbers {
            pipe::register(number, write.try_clone()?)?;
        }
        Ok(Self(read))
    }

    /// Whether such a signal came since this was asked last.
    pub(super) fn came(&self) -> bool {
        let mut came = false;
        let mut bytes = [0; 64];
        while let Ok(1..) = (&self.0).read(&mut bytes) {
            came = true;
        }
        came
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
