//! Close: the end of a session, or that the sender knows none with an index.
//!
//! ```text
//! offset  0        1..4       4..8
//!       | reason | reserved | index |
//! ```

use super::fields::{Reader, Writer};
use crate::stats::Drop;

/// The length of the message.
pub const LEN: usize = 8;

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The host shuts down.
    ShutDown,
    /// The connection is switched off.
    SwitchedOff,
    /// Another session replaces it.
    Replaced,
    /// The peer violated the protocol.
    ProtocolError,
    /// The host knows no session with the index in the message.
    UnknownIndex,
    /// A reason without a meaning, 5 to 255. It ends the session like the first four.
    Unassigned(u8),
}

impl Reason {
    const fn number(self) -> u8 {
        match self {
            Self::ShutDown => 0,
            Self::SwitchedOff => 1,
            Self::Replaced => 2,
            Self::ProtocolError => 3,
            Self::UnknownIndex => 4,
            Self::Unassigned(number) => number,
        }
    }

    const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::ShutDown,
            1 => Self::SwitchedOff,
            2 => Self::Replaced,
            3 => Self::ProtocolError,
            4 => Self::UnknownIndex,
            number => Self::Unassigned(number),
        }
    }
}

/// A close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// The reason.
    pub reason: Reason,
    /// The index that is not known, with [`Reason::UnknownIndex`]; 0 with every other reason.
    pub index: u32,
}

impl Close {
    /// Writes the message.
    ///
    /// # Panics
    ///
    /// If `message` is shorter than [`LEN`].
    pub fn emit(&self, message: &mut [u8]) {
        Writer::new(message).u8(self.reason.number()).reserved(3).u32(self.index);
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it is shorter than [`LEN`].
    pub fn parse(message: &[u8]) -> Result<Self, Drop> {
        let mut from = Reader::new(message);
        let reason = Reason::from_number(from.u8()?);
        from.bytes(3)?;
        Ok(Self { reason, index: from.u32()? })
    }
}
