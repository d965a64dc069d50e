//! Limits of this machine that decide how well a tunnel can run.

use std::io;

use crate::sysctl;

/// How large an unprivileged process may make a socket's buffers, in bytes as given to `SO_RCVBUF`
/// and `SO_SNDBUF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffers {
    /// `net.core.rmem_max`.
    pub receive: usize,
    /// `net.core.wmem_max`.
    pub send: usize,
}

/// Reads `net.core.rmem_max` and `net.core.wmem_max`.
///
/// # Errors
///
/// `NotFound` in a separate network namespace on kernels that show these limits only in the initial
/// one; or the error of reading `/proc`.
pub fn socket_buffers() -> io::Result<SocketBuffers> {
    let number = |name| usize::try_from(sysctl::number(name)?).map_err(io::Error::other);
    Ok(SocketBuffers { receive: number("net/core/rmem_max")?, send: number("net/core/wmem_max")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_positive_where_they_can_be_read() {
        match socket_buffers() {
            Ok(limits) => assert!(limits.receive > 0 && limits.send > 0),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
        }
    }
}
