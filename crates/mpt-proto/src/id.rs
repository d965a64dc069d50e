//! The numbers by which connections, paths, sockets and templates are known.
//!
//! A number names its thing for as long as it lives; it is no position in a list. [`Change`](crate::Change)
//! says when one may be used again.

/// The most paths of one connection: path numbers are 0 to 63, so that a set of paths is one `u64`.
pub const MAX_PATHS: usize = 64;

/// The number of a connection within its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u16);

/// The number of a path within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

/// The number of a UDP socket, given by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u16);

/// The number of a template ([`AcceptConfig`](crate::AcceptConfig)) within its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AcceptId(pub u16);

/// The number of a client that is known by its key ([`ClientConfig`](crate::ClientConfig)), within its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

impl ConnectionId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl PathId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}
