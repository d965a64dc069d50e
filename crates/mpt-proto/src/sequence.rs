//! Sequence numbers that wrap around.

use std::fmt;

/// A 32-bit sequence number, compared by serial number arithmetic (RFC 1982 with SERIAL_BITS 32).
///
/// It does not implement `Ord`, because "greater" is only defined within half the number space: use
/// the [`offset_from`](Self::offset_from) another number instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

impl Seq {
    /// The number that a connection's first datagram carries.
    pub const FIRST: Self = Self(0);

    /// The number as it stands on the wire.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The number as it stands on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number that follows this one.
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number `count` places after this one.
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The number `count` places before this one.
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// How far ahead of `other` this number is; negative when it is behind.
    ///
    /// RFC 1982 leaves two numbers that are exactly 2^31 apart unordered; here each of them is
    /// behind the other, so neither can be mistaken for newer ones.
    pub const fn offset_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let last = Seq::new(u32::MAX);
        assert_eq!(last.next(), Seq::new(0));
        assert_eq!(Seq::new(2).offset_from(last), 3);
        assert_eq!(last.offset_from(Seq::new(2)), -3);
        assert_eq!(Seq::new(2).minus(3), last);
    }

    #[test]
    fn numbers_half_the_space_apart_are_both_behind() {
        let (a, b) = (Seq::new(0), Seq::new(1 << 31));
        assert!(a.offset_from(b) < 0);
        assert!(b.offset_from(a) < 0);
    }
}
