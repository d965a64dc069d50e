//! Random bytes for what others must not be able to guess.

use std::fs::File;
use std::io::{self, Read as _};

/// As many as the array has.
///
/// # Errors
/// The kernel's error; the random numbers of Linux are always there, but a file needs a descriptor.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
