//! What the bytes between two peers look like, and what must be inferred because they do not say it.
//!
//! A framing has two halves. [`Tx`] stamps what is sent: it allocates sequence numbers and writes headers.
//! What it decided about one datagram is a [`Stamp`], so that the bytes can be written later and once more
//! for a retransmission. [`Rx`] reads what arrives: an [`Opened`] datagram names connection and path, its [`Body`]
//! is validated. Nothing is believed before that. Extended framing (section 8 of
//! `docs/protocol.md`) becomes a further variant of each enum.

pub(crate) mod datagram;
pub(crate) mod plain;

use std::net::IpAddr;

use datagram::{Body, Item, Opened};

use crate::stats::Drop;
use crate::wire::gre::Protocol;

/// The sending half of a connection's framing.
#[derive(Debug)]
pub(crate) enum Tx {
    Plain(plain::tx::Tx),
}

/// What the framing decided about one datagram: all of its header that is not known from the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    Plain(plain::tx::Stamp),
}

/// The receiving half of a connection's framing.
#[derive(Debug)]
pub(crate) enum Rx {
    Plain(plain::rx::Rx),
}

impl Rx {
    /// Validates a payload.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    #[inline(always)]
    pub(crate) fn read(&self, opened: &Opened, payload: &[u8]) -> Result<Body, Drop> {
        match self {
            Self::Plain(plain) => plain.read(opened.protocol, payload),
        }
    }

    /// Whether the peer is told at once of what changes on a path.
    pub(crate) fn announces(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.announces(),
        }
    }

    /// The peer's tunnel addresses.
    pub(crate) fn peer(&self) -> &[IpAddr] {
        match self {
            Self::Plain(plain) => plain.peer(),
        }
    }
}

impl Tx {
    /// How many bytes of header stand before each inner packet.
    pub(crate) fn overhead(&self) -> usize {
        match self {
            Self::Plain(plain) => plain.overhead(),
        }
    }

    /// Whether the peer is told at once of what changes on a path.
    pub(crate) fn announces(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.announces(),
        }
    }

    /// Allocates what the next datagram with an inner packet is numbered by.
    #[inline(always)]
    pub(crate) fn stamp(&mut self, item: &Item<'_>) -> Stamp {
        match self {
            Self::Plain(plain) => Stamp::Plain(plain.stamp(item.inner.protocol)),
        }
    }

    /// The stamp of a datagram that is sent again: it keeps its place in the order. `None` if the receiver
    /// may no longer recognise the number as a copy.
    pub(crate) fn restamp(&self, stamp: &Stamp) -> Option<Stamp> {
        match (self, stamp) {
            (Self::Plain(plain), Stamp::Plain(stamp)) => plain.restamp(*stamp).map(Stamp::Plain),
        }
    }

    /// The stamp of a control message, which has no place in the order.
    pub(crate) fn stamp_control(&self, protocol: Protocol) -> Stamp {
        match self {
            Self::Plain(plain) => Stamp::Plain(plain.stamp_control(protocol)),
        }
    }
}

impl Stamp {
    /// How many bytes of header stand before the payload.
    #[inline(always)]
    pub(crate) const fn overhead(&self) -> usize {
        match self {
            Self::Plain(stamp) => stamp.overhead(),
        }
    }

    /// Writes a datagram: `fill` writes the payload, then the header goes before it.
    ///
    /// # Panics
    ///
    /// If `datagram` is shorter than the header.
    #[inline(always)]
    pub(crate) fn emit(&self, datagram: &mut [u8], fill: impl FnOnce(&mut [u8])) {
        match self {
            Self::Plain(stamp) => stamp.emit(datagram, fill),
        }
    }
}
