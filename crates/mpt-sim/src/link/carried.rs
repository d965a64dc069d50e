//! What goes over a link.

/// What a link can carry. Real packets are bytes; where only their sizes matter, something smaller
/// can stand for them.
pub trait Carried: Clone {
    /// Bytes of the whole IP packet.
    fn size(&self) -> usize;

    /// Inverts one bit, counted from 0 and below eight times the size.
    fn invert_bit(&mut self, bit: usize);
}

impl Carried for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn invert_bit(&mut self, bit: usize) {
        self[bit / 8] ^= 1 << (bit % 8);
    }
}
