//! Path challenge and path answer: whether an origin receives what is sent to it, and at what size.
//!
//! ```text
//! offset  0..8            8..10  10..12
//!       | random number | size | reserved |
//! ```
//!
//! A challenge is the random number, and may be padded to any size. An answer repeats it, with the size of the
//! datagram that brought it.

use super::fields::{Reader, Writer};
use crate::stats::Drop;

/// The length of a challenge without padding.
pub const LEN: usize = 8;

/// The length of an answer.
pub const ANSWER_LEN: usize = 12;

/// A path challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The random number.
    pub number: u64,
}

impl Challenge {
    /// Writes the challenge, and zeros as padding to the end of `message`.
    ///
    /// # Panics
    ///
    /// If `message` is shorter than [`LEN`].
    pub fn emit(&self, message: &mut [u8]) {
        Writer::new(message).u64(self.number);
    }

    /// Reads a challenge of any size.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it is shorter than [`LEN`].
    pub fn parse(message: &[u8]) -> Result<Self, Drop> {
        Ok(Self { number: Reader::new(message).u64()? })
    }
}

/// A path answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The random number of the challenge.
    pub number: u64,
    /// The bytes of the UDP payload that brought the challenge.
    pub size: u16,
}

impl Answer {
    /// Writes the answer.
    ///
    /// # Panics
    ///
    /// If `message` is shorter than [`ANSWER_LEN`].
    pub fn emit(&self, message: &mut [u8]) {
        Writer::new(message).u64(self.number).u16(self.size);
    }

    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it is shorter than [`ANSWER_LEN`].
    pub fn parse(message: &[u8]) -> Result<Self, Drop> {
        let mut from = Reader::new(message);
        let answer = Self { number: from.u64()?, size: from.u16()? };
        from.bytes(2)?;
        Ok(answer)
    }
}
