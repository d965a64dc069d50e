//! Origins of a session that no path has: what was challenged, and what became of it.

use std::net::SocketAddr;

use crate::id::{ConnectionId, PathId, SocketId};

/// An origin that has proved to receive what is sent to it, in a session with a configured peer. The owner
/// adds the path, or has the path it replaces move there ([`Change`](crate::Change)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// The connection.
    pub connection: ConnectionId,
    /// The socket by which it is reached.
    pub socket: SocketId,
    /// Its address and port.
    pub remote: SocketAddr,
    /// The path that has moved there; `None` if it is a further one.
    pub moved: Option<PathId>,
}
