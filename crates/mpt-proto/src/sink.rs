//! Where received inner packets go.

/// A held packet: the number under which the sink stored it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(pub u32);

/// The receiver of inner packets, which also stores those that arrived too early.
///
/// The core borrows every packet and never copies one. Packets that must be held are stored by the
/// sink, because only the sink knows whether a reference into its receive buffers is sufficient;
/// the core stores only the [`Held`] number. Each number is returned exactly once, by
/// [`deliver_held`](Self::deliver_held).
pub trait Sink {
    /// Takes a packet that is next in order.
    fn deliver(&mut self, packet: &[u8]);

    /// Stores a packet that must wait; `None` if there is no room.
    fn hold(&mut self, packet: &[u8]) -> Option<Held>;

    /// Takes a stored packet whose turn has come, forgets its number, and returns its length.
    fn deliver_held(&mut self, held: Held) -> usize;
}
