//! Socket options whose value is one integer, and a few that are a structure.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option that takes a C `int`.
pub(crate) fn set(fd: impl AsFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel
    // only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(&value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Reads an option whose value is a C `int`.
pub(crate) fn get(fd: impl AsFd, level: i32, option: i32) -> io::Result<i32> {
    let mut bytes = [0; size_of::<i32>()];
    read(fd, level, option, &mut bytes)?;
    Ok(i32::from_ne_bytes(bytes))
}

/// Reads an option into `bytes` and says how many of them the kernel filled in.
pub(crate) fn read(fd: impl AsFd, level: i32, option: i32, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = libc::socklen_t::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: the pointer and `len` describe `bytes`, exclusively borrowed for the call; the
    // kernel writes at most `len` bytes there and the length that it used to `len`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(len as usize),
    }
}
