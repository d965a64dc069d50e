//! Parity: what brings packets of a group back that are lost.
//!
//! ```text
//! offset  0        1       2             3          4..8            8..8+w   8+w..
//!       | number | count | bitmap bytes | reserved | first sequence | bitmap | parity |
//! ```
//!
//! Bit *i* of the bitmap, counted from the least significant one of its first byte, stands for the global sequence that is
//! *i* behind the first. Each packet of the group counts with its flow distance, 2 bytes, in front.

use super::fields::{Reader, Writer};
use crate::sequence::Seq;
use crate::stats::Drop;
use crate::wire::erasure::{MOST_PACKETS, MOST_PARITIES};

/// The most global sequences from the first of a group to the last.
pub const MOST_SPAN: u32 = 1024;

/// The bytes that count in front of each packet.
pub const COVER_LEN: usize = 2;

const LEAD_LEN: usize = 8;

/// The numbers of a group: which packets it has, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    first: Seq,
    bitmap: Vec<u8>,
}

impl Members {
    /// The group of these numbers: up to [`MOST_PACKETS`], in ascending order, no further than [`MOST_SPAN`] apart. `None` if
    /// there can be no such group.
    pub fn new(numbers: &[Seq]) -> Option<Self> {
        let first = *numbers.first()?;
        let mut bitmap = Vec::new();
        let mut before = None;
        for number in numbers {
            let at = u32::try_from(number.offset_from(first)).ok().filter(|at| *at < MOST_SPAN)?;
            if before.is_some_and(|before| before >= at) || numbers.len() > MOST_PACKETS {
                return None;
            }
            before = Some(at);
            let byte = at as usize / 8;
            bitmap.resize(byte + 1, 0);
            bitmap[byte] |= 1 << (at % 8);
        }
        Some(Self { first, bitmap })
    }

    /// The first number.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// All numbers.
    pub fn iter(&self) -> impl Iterator<Item = Seq> + '_ {
        let bits = (0..8 * self.bitmap.len() as u32)
            .filter(|at| self.bitmap[*at as usize / 8] >> (at % 8) & 1 != 0);
        bits.map(|at| self.first.plus(at))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bitmap.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Whether there are none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a number is one of them.
    pub fn contains(&self, number: Seq) -> bool {
        let at = usize::try_from(number.offset_from(self.first)).ok();
        let byte = at.and_then(|at| Some((at, self.bitmap.get(at / 8)?)));
        byte.is_some_and(|(at, byte)| byte >> (at % 8) & 1 != 0)
    }
}

/// A parity that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity<'m> {
    /// Which of the group's it is, from 0.
    pub number: usize,
    /// How many the group has, 1 to [`MOST_PARITIES`].
    pub count: usize,
    /// The packets of the group.
    pub members: Members,
    /// The parity itself.
    pub bytes: &'m [u8],
}

impl<'m> Parity<'m> {
    /// The length of a message, whose parity has so many bytes.
    pub fn size(members: &Members, bytes: usize) -> usize {
        LEAD_LEN + members.bitmap.len() + bytes
    }

    /// Writes the message.
    ///
    /// # Panics
    ///
    /// If `message` does not have the [`size`](Self::size) that it needs.
    pub fn emit(&self, message: &mut [u8]) {
        let bitmap = &self.members.bitmap;
        let (lead, rest) = message.split_at_mut(LEAD_LEN);
        let mut to = Writer::new(lead);
        to.u8(self.number as u8).u8(self.count as u8).u8((bitmap.len() - 1) as u8).reserved(1);
        to.u32(self.members.first.value());
        let (place, parity) = rest.split_at_mut(bitmap.len());
        place.copy_from_slice(bitmap);
        parity.copy_from_slice(self.bytes);
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it ends before the parity has more than [`COVER_LEN`] bytes, or a number in it is out of its
    /// range: more than [`MOST_PARITIES`] of them or more than [`MOST_PACKETS`] packets, or a group without its first number.
    pub fn parse(message: &'m [u8]) -> Result<Self, Drop> {
        let mut from = Reader::new(message);
        let (number, count) = (usize::from(from.u8()?), usize::from(from.u8()?));
        let words = usize::from(from.u8()?) + 1;
        from.bytes(1)?;
        let first = Seq::new(from.u32()?);
        let bitmap = from.bytes(words)?;
        let bytes = message.get(LEAD_LEN + words..).unwrap_or_default();
        let members = Members { first, bitmap: bitmap.to_vec() };
        let fits = count <= MOST_PARITIES
            && number < count
            && words <= MOST_SPAN as usize / 8
            && bitmap[0] & 1 != 0
            && members.len() <= MOST_PACKETS
            && bytes.len() > COVER_LEN;
        if !fits {
            return Err(Drop::ControlLength);
        }
        Ok(Self { number, count, members, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[u32]) -> Vec<Seq> {
        numbers.iter().copied().map(Seq::new).collect()
    }

    #[test]
    fn a_group_is_named_by_its_first_number_and_bits() {
        let all = numbers(&[u32::MAX - 1, u32::MAX, 7, 1000]);
        let members = Members::new(&all).expect("a group");
        assert_eq!(members.iter().collect::<Vec<_>>(), all);
        assert_eq!((members.len(), members.bitmap.len()), (4, 126));
        assert!(members.contains(Seq::new(7)) && !members.contains(Seq::new(8)));
        assert!(!members.contains(Seq::new(u32::MAX - 2)) && !members.contains(Seq::new(5000)));
        assert_eq!(Members::new(&numbers(&[1, 1025])), None, "too far apart");
        assert_eq!(Members::new(&numbers(&[2, 1])), None, "not in order");
        assert_eq!(Members::new(&[]), None);
        assert_eq!(Members::new(&(0..65).map(Seq::new).collect::<Vec<_>>()), None, "too many");
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let members = Members::new(&numbers(&[9, 11])).expect("a group");
        let parity = Parity { number: 1, count: 2, members, bytes: b"parity" };
        let mut message = vec![0xff; Parity::size(&parity.members, 6)];
        parity.emit(&mut message);
        assert_eq!(message, b"\x01\x02\x00\x00\x00\x00\x00\x09\x05parity");
        assert_eq!(Parity::parse(&message), Ok(parity));
        for (at, value) in [(0, 2), (1, 0), (1, 9), (2, 6), (8, 4)] {
            let mut wrong = message.clone();
            wrong[at] = value;
            assert_eq!(Parity::parse(&wrong), Err(Drop::ControlLength), "{value} at {at}");
        }
        let shorter = |len: usize| Parity::parse(&message[..len]).is_err();
        assert!((0..12).all(shorter), "it ends too early");
        assert!(!shorter(12));
    }
}
