//! Network interfaces by name: which names are possible, and requests that carry one.
//!
//! A name comes from a configuration file and goes into fixed fields of kernel structures. It is
//! checked once, here, by the kernel's own rule (`dev_valid_name` in `net/core/dev.c`) plus one:
//! `%` is refused too, because the kernel reads `tun%d` as a pattern and would open another name
//! than the one that was asked for.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// Longest name of an interface, in bytes (`IFNAMSIZ` less the closing zero).
pub const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// Why a text cannot be the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty.
    #[error("an interface name is empty: give one of 1 to {NAME_MAX} bytes")]
    Empty,
    /// The text is longer than [`NAME_MAX`].
    #[error(
        "interface name '{name}' is {} bytes long: choose one of at most {NAME_MAX}",
        name.len()
    )]
    TooLong {
        /// The text.
        name: String,
    },
    /// The text is `.` or `..`, which would be directories in sysfs.
    #[error("'{name}' cannot name an interface: choose letters, digits, '-' and '_'")]
    Reserved {
        /// The text.
        name: String,
    },
    /// The text contains a byte that the kernel does not take in a name.
    #[error(
        "interface name {name:?} contains {:?}: choose letters, digits, '-' and '_'",
        char::from(*.byte)
    )]
    BadByte {
        /// The text.
        name: String,
        /// The first offending byte.
        byte: u8,
    },
}

/// Checks that `name` can be the name of an interface.
///
/// # Errors
///
/// The first rule that it breaks.
pub fn check_name(name: &str) -> Result<(), NameError> {
    // The kernel's isspace() also covers 0xa0, which UTF-8 text can contain.
    let bad = |byte: &u8| *byte <= b' ' || matches!(*byte, b'/' | b':' | b'%' | 0x7f | 0xa0);
    match name {
        "" => Err(NameError::Empty),
        _ if name.len() > NAME_MAX => Err(NameError::TooLong { name: name.into() }),
        "." | ".." => Err(NameError::Reserved { name: name.into() }),
        _ => match name.bytes().find(bad) {
            Some(byte) => Err(NameError::BadByte { name: name.into(), byte }),
            None => Ok(()),
        },
    }
}

/// An empty request about the interface `name`.
pub(crate) fn request(name: &str) -> Result<libc::ifreq, NameError> {
    check_name(name)?;
    // SAFETY: ifreq is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    Ok(request)
}

/// Index of the interface `name` in the calling thread's network namespace.
///
/// # Errors
///
/// The kernel's error; `ENODEV` when there is no such interface.
pub fn index(name: &str) -> io::Result<u32> {
    let mut request = request(name).map_err(io::Error::other)?;
    // SAFETY: SIOCGIFINDEX reads the name and writes the index, both inside the request.
    unsafe { ask(libc::SIOCGIFINDEX as libc::Ioctl, &mut request)? };
    // SAFETY: every bit pattern of the union is a valid integer, and the kernel wrote this member.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    u32::try_from(index).map_err(io::Error::other)
}

/// Makes an interface request in the calling thread's network namespace.
///
/// Any socket will do for that; a Unix one exists even where a protocol family is switched off.
///
/// # Safety
///
/// `number` must be a request that takes a `struct ifreq`, and everything that `request` points to
/// must be valid for what that request reads and writes.
pub(crate) unsafe fn ask(number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // SAFETY: the descriptor is open, the request is exclusively borrowed, and the caller vouches
    // for what it points to.
    match unsafe { libc::ioctl(socket.as_raw_fd(), number, std::ptr::from_mut(request)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_kernels_rule() {
        for good in ["a", "mpt0", "eth0.100", "wlp2s0", "fifteen-bytes-x", "büro"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert!(matches!(check_name("sixteen-bytes-xx"), Err(NameError::TooLong { .. })));
        assert!(matches!(check_name(".."), Err(NameError::Reserved { .. })));
        for bad in ["a/b", "a b", "a\tb", "a\n", "a:1", "tun%d", "a\0", "\u{e0}"] {
            assert!(matches!(check_name(bad), Err(NameError::BadByte { .. })), "{bad:?}");
        }
    }

    #[test]
    fn an_error_names_the_text_and_the_remedy() {
        let text = check_name("my tunnel").unwrap_err().to_string();
        assert!(text.contains("\"my tunnel\"") && text.contains("choose"), "{text}");
    }

    #[test]
    fn loopback_is_found_and_an_unknown_name_is_not() {
        assert_eq!(index("lo").unwrap(), 1);
        assert_eq!(index("mpt-not-here").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
