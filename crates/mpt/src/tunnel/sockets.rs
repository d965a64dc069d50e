//! The sockets of a tunnel as one of its sides has them: by their numbers, opened and closed while
//! it runs.

use std::ops::Index;
use std::sync::Arc;

use mpt_io::udp::Socket;
use mpt_proto::SocketId;

/// The socket number of a path without a socket: it is never used for sending.
pub(super) const NO_SOCKET: SocketId = SocketId(u16::MAX);

/// A side's own list. The sockets themselves are shared with the other side.
#[derive(Debug, Default)]
pub(super) struct Sockets(Vec<Option<Arc<Socket>>>);

impl Sockets {
    /// Puts a socket under its number.
    pub(super) fn put(&mut self, id: SocketId, socket: Arc<Socket>) {
        let place = usize::from(id.0);
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place] = Some(socket);
    }

    /// Takes a socket out.
    pub(super) fn take(&mut self, id: SocketId) -> Option<Arc<Socket>> {
        self.0.get_mut(usize::from(id.0))?.take()
    }

    /// The socket of that number, unless it has been closed.
    pub(super) fn get(&self, id: SocketId) -> Option<&Socket> {
        self.0.get(usize::from(id.0))?.as_deref()
    }

    /// All of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketId, &Arc<Socket>)> {
        (0..).map(SocketId).zip(&self.0).filter_map(|(id, socket)| Some((id, socket.as_ref()?)))
    }
}

/// Panics if there is no socket of that number.
impl Index<SocketId> for Sockets {
    type Output = Socket;

    #[inline]
    fn index(&self, id: SocketId) -> &Socket {
        self.get(id).expect("a socket is closed after its last path")
    }
}
