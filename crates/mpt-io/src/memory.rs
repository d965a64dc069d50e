//! What happens where memory runs out: under a limit of the process (`ulimit -v`, `LimitAS=` of a unit) or
//! where the kernel grants no more than there is (`vm.overcommit_memory = 2`).
//!
//! Large requests are [tried](try_reserve) beforehand, so that the caller can report an error and go on
//! without. If any other request is refused, the process ends with a message: unwinding needs memory too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write as _};
use std::io;

/// The exit code of a process that ran out of memory: that of any failure of `mpt`.
const EXIT_CODE: libc::c_int = 2;

/// How long the message may take where nobody reads standard error, in milliseconds.
const MESSAGE_LIMIT: libc::c_int = 1000;

/// Longest message, in bytes.
const MESSAGE: usize = 256;

/// The system's allocator, which ends the process with a message and exit code 2 where it has no
/// memory. To be made the `#[global_allocator]` of a program.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: every call goes to the system's allocator with what it was called with, and its result is
// returned unless it is null, after which nothing is returned at all.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        or_end(unsafe { System.realloc(memory, layout, size) }, size)
    }
}

/// Whether `bytes` of memory can be had at this moment. They are not kept.
///
/// # Errors
///
/// The kernel's refusal, `ENOMEM`.
pub fn try_reserve(bytes: usize) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this is the mapping just made, to which nothing points.
    unsafe { libc::munmap(memory, bytes) };
    Ok(())
}

#[inline]
fn or_end(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end(bytes);
    }
    memory
}

/// Ends the process without any more memory.
#[cold]
fn end(bytes: usize) -> ! {
    let mut message = Message { bytes: [0; MESSAGE], len: 0 };
    // What does not fit is left out.
    let _ = writeln!(
        message,
        "mpt: out of memory: the system refused {bytes} bytes; raise the limit of the process \
         (`ulimit -v`, or `LimitAS=` of its unit), or see vm.overcommit_memory in sysctl(8)"
    );
    let mut standard_error =
        libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the kernel writes to one pollfd, which the pointer leads to, and reads `len` bytes of the
    // message, which are there; `_exit` has no conditions.
    unsafe {
        if libc::poll(&raw mut standard_error, 1, MESSAGE_LIMIT) > 0 {
            libc::write(libc::STDERR_FILENO, message.bytes.as_ptr().cast(), message.len);
        }
        libc::_exit(EXIT_CODE)
    }
}

/// A text in memory that is there already.
struct Message {
    bytes: [u8; MESSAGE],
    len: usize,
}

impl fmt::Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused_and_a_little_is_not() {
        try_reserve(0).unwrap();
        try_reserve(1 << 20).unwrap();
        let error = try_reserve(1 << 62).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn a_message_is_cut_where_its_room_ends() {
        let mut message = Message { bytes: [0; MESSAGE], len: 0 };
        write!(message, "{}four", "x".repeat(MESSAGE - 2)).unwrap();
        assert_eq!(message.len, MESSAGE);
        assert!(message.bytes.ends_with(b"xfo"));
        write!(message, "more").unwrap();
        assert_eq!(message.len, MESSAGE);
    }
}
