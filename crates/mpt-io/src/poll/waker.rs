//! A wake-up by another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use super::{Poll, owned};

/// Ends the wait of a [`Poll`] from any thread.
///
/// Clones wake the same set.
#[derive(Clone, Debug)]
pub struct Waker {
    eventfd: Arc<OwnedFd>,
}

impl Waker {
    /// A waker whose wake-ups appear in `poll` as readable events under `token`.
    ///
    /// Several wake-ups before a wait make one event, and nothing needs to be drained. It works as
    /// long as one of its clones lives.
    ///
    /// # Errors
    ///
    /// The kernel's error, for example when the process has too many files open.
    pub fn new(poll: &Poll, token: u64) -> io::Result<Self> {
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        let eventfd = owned(fd)?;
        // Edge-triggered: every write is a separate event, even if the counter was not read. It
        // counts to 2^64.
        let bits = (libc::EPOLLIN | libc::EPOLLET) as u32;
        poll.control(libc::EPOLL_CTL_ADD, eventfd.as_fd(), token, bits)?;
        Ok(Self { eventfd: Arc::new(eventfd) })
    }

    /// Ends the current wait, or the next one if there is none.
    pub fn wake(&self) {
        let one = 1_u64;
        // SAFETY: the kernel reads eight bytes of `one`. The write cannot fail: the descriptor is
        // open and the counter never full.
        unsafe {
            libc::write(self.eventfd.as_raw_fd(), std::ptr::from_ref(&one).cast(), size_of::<u64>())
        };
    }
}
