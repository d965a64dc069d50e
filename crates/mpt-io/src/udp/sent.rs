//! What became of what was sent.

use std::io;

/// What became of the datagrams of a send batch. `datagrams + full + too_big + failed` is their number.
#[derive(Debug, Default)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub datagrams: usize,
    /// Messages in which it took them: super-datagrams, and datagrams that went alone.
    pub messages: usize,
    /// Bytes of payload in them.
    pub bytes: usize,
    /// Datagrams dropped because the socket's buffer or the interface's queue was full.
    pub full: usize,
    /// Datagrams dropped because they are longer than the path MTU allows.
    pub too_big: usize,
    /// Datagrams dropped for any other reason.
    pub failed: usize,
    /// The first of those other reasons.
    pub error: Option<io::Error>,
}
