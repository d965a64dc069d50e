//! Waiting for the readiness of descriptors, a wake-up by another thread, and one deadline.
//!
//! A thin layer over epoll, level-triggered: what was not drained is reported again. The deadline has
//! nanosecond resolution where the kernel offers it (`epoll_pwait2`, Linux 5.11); on older ones it is
//! rounded up to the next millisecond, so that a wait never ends before its deadline.

mod event;
mod waker;

pub use event::{Event, Events, Interest};
pub use waker::Waker;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    /// Whether this kernel was found to lack `epoll_pwait2`.
    coarse: AtomicBool,
}

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    ///
    /// The kernel's error, for example when the process has too many files open.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        Ok(Self { epoll: owned(fd)?, coarse: AtomicBool::new(false) })
    }

    /// Adds a descriptor under a number of the caller's choice.
    ///
    /// # Errors
    ///
    /// The kernel's error: `EEXIST` if it is in the set already, `EPERM` if it is of a kind that
    /// cannot be waited for.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_fd(), token, interest.bits())
    }

    /// Changes the number and the interest of a descriptor in the set.
    ///
    /// # Errors
    ///
    /// The kernel's error: `ENOENT` if it is not in the set.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_fd(), token, interest.bits())
    }

    /// Takes a descriptor out of the set; closing it does that too.
    ///
    /// # Errors
    ///
    /// The kernel's error: `ENOENT` if it is not in the set.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_fd(), 0, 0)
    }

    /// Waits until a descriptor is ready or `timeout` has passed (`None`: as long as it takes), and
    /// says how many events there are.
    ///
    /// 0 means that time has passed or that a signal came; the caller looks at its clock and at its
    /// signals in either case.
    ///
    /// # Errors
    ///
    /// The kernel's error, which would be a defect of this module.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        events.count = 0;
        let mut result = self.wait_fine(events, timeout);
        if let Err(error) = &result
            && matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
        {
            // Old kernels lack the call; some containers' filters refuse it.
            self.coarse.store(true, Ordering::Relaxed);
            result = self.wait_coarse(events, timeout);
        }
        match result {
            Ok(count) => events.count = count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(events.count)
    }

    fn wait_fine(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        if self.coarse.load(Ordering::Relaxed) {
            return self.wait_coarse(events, timeout);
        }
        let timeout = timeout.map(|timeout| KernelTimespec {
            seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: i64::from(timeout.subsec_nanos()),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the kernel writes at most as many events as there is room for into `room`, which
        // is exclusively borrowed; it reads the timespec, which outlives the call and has the
        // kernel's 64-bit layout; a null signal mask leaves signals alone.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.room.as_mut_ptr(),
                events.room.len() as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn wait_coarse(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
        let millis = timeout.map_or(-1, |timeout| {
            i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        // SAFETY: the kernel writes at most as many events as there is room for into `room`, which
        // is exclusively borrowed.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                events.room.as_mut_ptr(),
                events.room.len() as libc::c_int,
                millis,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: BorrowedFd<'_>,
        token: u64,
        bits: u32,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: bits, u64: token };
        // SAFETY: both descriptors are open, and the kernel only reads the event.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event)
        };
        match result {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl AsFd for Poll {
    /// Readable when a wait would return at once, so that one set can be waited for in another.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Sets how late the kernel may let this thread's timers fire in order to save wake-ups, 1 ns or
/// more. The default is 50 µs; threads started later inherit the value.
///
/// # Errors
///
/// The kernel's error, which would be a defect of this module.
pub fn set_timer_slack(slack: Duration) -> io::Result<()> {
    let nanos = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX).max(1);
    // SAFETY: no pointers are involved.
    match unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// `struct __kernel_timespec`: 64 bits each on every architecture.
#[repr(C)]
struct KernelTimespec {
    seconds: i64,
    nanoseconds: i64,
}

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor to the caller, which owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    fn soon(poll: &Poll, events: &mut Events) -> Vec<Event> {
        poll.wait(events, Some(Duration::from_secs(10))).unwrap();
        events.iter().collect()
    }

    #[test]
    fn readiness_is_reported_under_its_token_until_drained() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(4));
        poll.add(&near, 7, Interest::READABLE).unwrap();
        assert_eq!(poll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        far.write_all(b"x").unwrap();
        let expected = Event { token: 7, readable: true, writable: false, closed: false };
        assert_eq!(soon(&poll, &mut events), [expected]);
        assert_eq!(soon(&poll, &mut events), [expected]);
        near.read_exact(&mut [0]).unwrap();
        assert_eq!(poll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        assert!(events.is_empty());
    }

    #[test]
    fn interest_can_change_and_end() {
        let (near, far) = UnixStream::pair().unwrap();
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(4));
        poll.add(&near, 1, Interest::READABLE).unwrap();
        poll.modify(&near, 2, Interest::BOTH).unwrap();
        assert_eq!(soon(&poll, &mut events)[0].token, 2);
        assert!(events.iter().all(|event| event.writable && !event.readable));
        drop(far);
        assert!(soon(&poll, &mut events)[0].closed);
        poll.remove(&near).unwrap();
        assert_eq!(poll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        assert_eq!(poll.remove(&near).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_wait_never_ends_before_its_deadline() {
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
        for coarse in [false, true] {
            poll.coarse.store(coarse, Ordering::Relaxed);
            for micros in [0, 1, 300, 1_001] {
                let (timeout, start) = (Duration::from_micros(micros), Instant::now());
                assert_eq!(poll.wait(&mut events, Some(timeout)).unwrap(), 0);
                assert!(start.elapsed() >= timeout, "{micros} µs, coarse: {coarse}");
            }
        }
    }

    #[test]
    fn short_deadlines_are_not_rounded_to_milliseconds() {
        set_timer_slack(Duration::from_nanos(1)).unwrap();
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
        let mut shortest = Duration::MAX;
        for _ in 0..50 {
            let start = Instant::now();
            poll.wait(&mut events, Some(Duration::from_micros(100))).unwrap();
            shortest = shortest.min(start.elapsed());
        }
        // The shortest of many, so that a stall of the machine does not matter.
        let fine = !poll.coarse.load(Ordering::Relaxed);
        assert!(!fine || shortest < Duration::from_millis(1), "{shortest:?}");
    }

    #[test]
    fn a_waker_ends_a_wait_from_another_thread() {
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(4));
        let waker = Waker::new(&poll, 99).unwrap();
        let thread = std::thread::spawn({
            let waker = waker.clone();
            move || waker.wake()
        });
        poll.wait(&mut events, None).unwrap();
        assert_eq!(events.iter().map(|event| event.token).collect::<Vec<_>>(), [99]);
        thread.join().unwrap();
    }

    #[test]
    fn wake_ups_before_a_wait_make_one_event_and_later_ones_another() {
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(4));
        let waker = Waker::new(&poll, 5).unwrap();
        for _ in 0..3 {
            waker.wake();
            waker.wake();
            assert_eq!(soon(&poll, &mut events).len(), 1);
            assert_eq!(poll.wait(&mut events, Some(Duration::ZERO)).unwrap(), 0);
        }
    }

    #[test]
    fn many_events_come_in_several_waits() {
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(2));
        let pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().unwrap()).collect();
        for (token, (near, _)) in pairs.iter().enumerate() {
            poll.add(near, token as u64, Interest::WRITABLE).unwrap();
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            seen.extend(soon(&poll, &mut events).iter().map(|event| event.token));
            assert!(events.len() <= 2);
        }
        assert_eq!(seen.len(), 5, "no descriptor starves");
    }
}
