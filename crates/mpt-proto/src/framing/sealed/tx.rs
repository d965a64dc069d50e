//! Sealing, at the transmit half of a connection: the keys of the epoch in use, and of the one before.

use super::cipher::{KeyBytes, SealingKey};
use crate::framing::extended::identity::Identity;
use crate::framing::extended::session::Peer;
use crate::keys::ciphers::Cipher;
use crate::stats::Drop;
use crate::wire::extended::Header;

/// An epoch begins: what the transmit half needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealing {
    /// The index under which the peer receives in it.
    pub(crate) index: u32,
    pub(crate) key: KeyBytes,
    pub(crate) cipher: Cipher,
    /// The session that begins with it; `None` if the one before continues.
    pub(crate) begins: Option<(Peer, Identity)>,
}

/// The keys that datagrams of a connection are sealed with.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    current: Option<(u32, SealingKey)>,
    /// What was numbered before the present epoch leaves under this one.
    previous: Option<(u32, SealingKey)>,
}

impl Keys {
    /// An epoch begins.
    pub(crate) fn begin(&mut self, sealing: &Sealing) {
        self.previous = self.current.replace((sealing.index, sealing.key.key()));
    }

    /// Nothing is sealed any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Nothing that was numbered under the epoch before is left to be sent.
    pub(crate) fn rest(&mut self) {
        self.previous = None;
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.current.iter().chain(&self.previous).map(|(_, key)| key.memory()).sum()
    }

    /// Whether an index is that of the epoch before.
    pub(crate) fn was_index(&self, index: u32) -> bool {
        self.previous.as_ref().is_some_and(|(before, _)| *before == index)
    }

    /// Seals a datagram in place.
    ///
    /// # Errors
    ///
    /// As [`SealingKey::seal`]; also if its epoch is not used any more. Then the datagram is filled with zeros.
    #[inline]
    pub(crate) fn seal(&mut self, header: &Header, datagram: &mut [u8]) -> Result<(), Drop> {
        for (index, key) in self.current.iter_mut().chain(&mut self.previous) {
            if *index == header.key {
                return key.seal(header, datagram);
            }
        }
        datagram.fill(0);
        Err(Drop::SealExpired)
    }
}
