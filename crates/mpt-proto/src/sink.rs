//! Where received inner packets go.

/// A held packet, as the number under which the sink stored it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(pub u32);

/// The receiver of inner packets, which also holds those that came too early.
///
/// The core borrows every packet and never copies one. What must wait is stored by the sink, which
/// alone knows whether a reference into its receive buffers will do or a copy is needed; the core
/// remembers only the [`Held`] number. Each number is given back exactly once, by
/// [`deliver_held`](Self::deliver_held).
pub trait Sink {
    /// Takes a packet that is next in order.
    fn deliver(&mut self, packet: &[u8]);

    /// Stores a packet that must wait; `None` if there is no room.
    fn hold(&mut self, packet: &[u8]) -> Option<Held>;

    /// Takes a stored packet whose turn has come, forgets its number, and returns its length.
    fn deliver_held(&mut self, held: Held) -> usize;
}
