//! Hello, hello answer and hello confirm: how a session begins.
//!
//! ```text
//! offset  0         1          2..4    4..8           8..16     16..24
//!       | version | reserved | lanes | capabilities | session | echo |
//!         24..40             40..56               56..60   60..64        64..72   72..
//!       | sender's address | receiver's address | key    | key present | cookie | indices |
//! ```
//!
//! The three have one layout. Offsets count from the end of the header of extended framing.

use std::net::IpAddr;
use std::ops::BitOr;

use super::fields::{Reader, Writer};
use super::header::Kind;
use crate::stats::Drop;

/// The version of extended framing that this module writes.
pub const VERSION: u8 = 1;

/// The length of a message with one lane.
pub const LEN: usize = BARE_LEN + 4;

/// The least length of a hello, which is that of the longest answer: so that an answer is never longer than
/// what it answers.
pub const PADDED_LEN: usize = BARE_LEN + 4 * MAX_LANES as usize;

const BARE_LEN: usize = 72;
const MAX_LANES: u16 = 64;
const HAS_KEY: u32 = 1;

/// What a host understands or wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Nothing of it.
    pub const NONE: Self = Self(0);
    /// It accepts data with [`Flags::PARTIAL`](super::Flags::PARTIAL).
    pub const PARTIAL: Self = Self(1);
    /// It wants feedback.
    pub const FEEDBACK: Self = Self(2);
    /// It repairs losses.
    pub const REPAIR: Self = Self(4);
    /// It reads parity, and data that parity covers.
    pub const PARITY: Self = Self(8);

    /// What this implementation offers, where it repairs losses or not.
    pub const fn own(repair: bool) -> Self {
        let repair = if repair { Self(Self::REPAIR.0 | Self::PARITY.0) } else { Self::NONE };
        Self(Self::PARTIAL.0 | Self::FEEDBACK.0 | repair.0)
    }

    /// Whether all of `capabilities` are present.
    pub const fn contains(self, capabilities: Self) -> bool {
        self.0 & capabilities.0 == capabilities.0
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A hello, hello answer or hello confirm. This implementation uses one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of extended framing; [`VERSION`] is the one that is known. Later versions keep the layout.
    pub version: u8,
    /// What the sender understands; bits without a meaning are not kept.
    pub capabilities: Capabilities,
    /// The sender's session id.
    pub session: u64,
    /// The receiver's session id; 0 in a hello.
    pub echo: u64,
    /// The sender's tunnel address.
    pub sender: IpAddr,
    /// The receiver's tunnel address.
    pub receiver: IpAddr,
    /// The configured key, if there is one.
    pub key: Option<u32>,
    /// What the responder later recognises its own answer by; 0 in a hello.
    pub cookie: u64,
    /// The connection index that the receiver is to use on the first lane; not 0.
    pub index: u32,
}

/// The length of the message at the start of `payload`, by the number of lanes that it names.
pub(crate) fn len_of(payload: &[u8]) -> usize {
    let lanes = payload.get(2..4).map_or(0, |lanes| u16::from_be_bytes([lanes[0], lanes[1]]));
    BARE_LEN + 4 * usize::from(lanes)
}

impl Hello {
    /// Writes the message at the start of `message`, and zeros as padding to its end: [`LEN`] bytes for an
    /// answer and a confirm, at least [`PADDED_LEN`] for a hello.
    ///
    /// # Panics
    ///
    /// If `message` is shorter than [`LEN`].
    pub fn emit(&self, message: &mut [u8]) {
        let mut to = Writer::new(message);
        to.u8(self.version).reserved(1).u16(1).u32(self.capabilities.0);
        to.u64(self.session).u64(self.echo).address(self.sender).address(self.receiver);
        to.u32(self.key.unwrap_or(0)).u32(if self.key.is_some() { HAS_KEY } else { 0 });
        to.u64(self.cookie).u32(self.index);
    }

    /// Reads a message of `kind`: [`Kind::Hello`], [`Kind::HelloAnswer`] or [`Kind::HelloConfirm`].
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it is shorter than its lanes require, their number is not 1 to 64, or it is a
    /// hello and shorter than [`PADDED_LEN`]. [`Drop::UnknownIndex`] if the index of the first lane is 0, which
    /// stands for no session.
    pub fn parse(kind: Kind, message: &[u8]) -> Result<Self, Drop> {
        if kind == Kind::Hello && message.len() < PADDED_LEN {
            return Err(Drop::ControlLength);
        }
        let mut from = Reader::new(message);
        let version = from.u8()?;
        from.bytes(1)?;
        let lanes = from.u16()?;
        let repair = Capabilities::own(true);
        let known = Capabilities::PARTIAL | Capabilities::FEEDBACK | repair;
        let capabilities = Capabilities(from.u32()? & known.0);
        let (session, echo) = (from.u64()?, from.u64()?);
        let (sender, receiver) = (from.address()?, from.address()?);
        let (key, has_key) = (from.u32()?, from.u32()? & HAS_KEY != 0);
        let cookie = from.u64()?;
        if !(1..=MAX_LANES).contains(&lanes) {
            return Err(Drop::ControlLength);
        }
        let index = from.u32()?;
        from.bytes(4 * (usize::from(lanes) - 1))?;
        if index == 0 {
            return Err(Drop::UnknownIndex);
        }
        let key = has_key.then_some(key);
        Ok(Self { version, capabilities, session, echo, sender, receiver, key, cookie, index })
    }
}
