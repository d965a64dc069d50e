//! A datagram to send, before it is written.

use crate::id::{ConnectionId, PathId};
use crate::wire::gre::Header;

/// A datagram to send on a path.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// The path to send it on.
    pub path: PathId,
    /// The type of service or traffic class to send it with.
    pub tos: u8,
    /// Whether it is one to be kept.
    pub(super) keeps: bool,
    pub(super) header: Header,
    pub(super) payload: &'a [u8],
}

impl Transmit<'_> {
    /// The length of the datagram.
    pub const fn size(&self) -> usize {
        self.header.size() + self.payload.len()
    }

    /// Writes the datagram in place; the payload is copied once, here.
    ///
    /// # Panics
    ///
    /// If `datagram` is not [`Transmit::size`] bytes long.
    pub fn emit(&self, datagram: &mut [u8]) {
        self.emit_with(datagram, |place| place.copy_from_slice(self.payload));
    }

    /// The same, with the payload written by `emit_payload`: an inner packet that is finished on its
    /// way into the datagram.
    ///
    /// # Panics
    ///
    /// If `datagram` is shorter than the header.
    pub fn emit_with(&self, datagram: &mut [u8], emit_payload: impl FnOnce(&mut [u8])) {
        emit_payload(&mut datagram[self.header.size()..]);
        // Last, as its checksum covers the payload.
        self.header.emit(datagram);
    }
}
