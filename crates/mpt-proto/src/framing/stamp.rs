//! What the framing decided about one datagram, until its bytes are written.

use std::ops::Range;

use super::extended;
use super::extended::tx::WirePath;
use super::plain;
use crate::sequence::Seq;
use crate::time::Instant;
use crate::wire::extended::Flags;

/// What the framing decided about one datagram: all of its header that is not known from the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    Plain(plain::tx::Stamp),
    Extended(extended::tx::Stamp),
}

impl Stamp {
    /// How many bytes stand before the payload and behind it.
    #[inline(always)]
    pub(crate) const fn overhead(&self) -> usize {
        match self {
            Self::Plain(stamp) => stamp.overhead(),
            Self::Extended(stamp) => stamp.overhead(),
        }
    }

    /// Whether the datagram is to be [sealed](super::Tx::seal) when it has been written.
    #[inline(always)]
    pub(crate) const fn is_sealed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Extended(stamp) => stamp.is_sealed(),
        }
    }

    /// The place of the payload in a datagram of this length.
    #[inline(always)]
    pub(crate) fn payload(&self, len: usize) -> Range<usize> {
        match self {
            Self::Plain(stamp) => stamp.overhead()..len,
            Self::Extended(stamp) => stamp.payload(len),
        }
    }

    /// The packet [numbered](super::Tx::number) before leaves now on this path.
    pub(crate) fn leaving(self, now: Instant, path: &mut WirePath) -> Self {
        match self {
            Self::Extended(stamp) => Self::Extended(stamp.leaving(now, path)),
            Self::Plain(_) => self,
        }
    }

    /// The packet leaves before others with lower numbers that wait for the same path.
    pub(crate) fn out_of_turn(self) -> Self {
        match self {
            Self::Extended(stamp) => Self::Extended(stamp.with(Flags::OUT_OF_TURN)),
            Self::Plain(_) => self,
        }
    }

    /// Parity covers the packet.
    pub(crate) fn covered(self) -> Self {
        match self {
            Self::Extended(stamp) => Self::Extended(stamp.with(Flags::COVERED)),
            Self::Plain(_) => self,
        }
    }

    /// The distance to the packet before of its flow, if it is of a session.
    pub(crate) const fn distance(&self) -> u16 {
        match self {
            Self::Extended(stamp) => stamp.header().distance,
            Self::Plain(_) => 0,
        }
    }

    /// The peer holds the packet until it has taken as long as others of its flow by slower paths.
    pub(crate) fn equalised(self) -> Self {
        match self {
            Self::Extended(stamp) => Self::Extended(stamp.with(Flags::EQUALISE)),
            Self::Plain(_) => self,
        }
    }

    /// Its number in the session, if it has one.
    pub(crate) const fn sequence(&self) -> Option<Seq> {
        match self {
            Self::Extended(stamp) => stamp.sequence(),
            Self::Plain(_) => None,
        }
    }

    /// The path sequence that it has taken, if it is of a session.
    pub(crate) const fn path_sequence(&self) -> Option<u32> {
        match self {
            Self::Extended(stamp) => Some(stamp.path_sequence()),
            Self::Plain(_) => None,
        }
    }

    /// Whether it is of a session.
    pub(crate) const fn is_extended(&self) -> bool {
        matches!(self, Self::Extended(_))
    }

    /// Whether the inner packet may have a partial checksum.
    #[inline(always)]
    pub(crate) const fn may_be_partial(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Extended(stamp) => stamp.may_be_partial(),
        }
    }

    /// Writes a datagram with an inner packet, as [`emit`](Self::emit). `fill` says whether its checksum is
    /// partial; that is returned, and the header says so, too, if the framing can.
    #[inline(always)]
    pub(crate) fn emit_either(
        &self,
        datagram: &mut [u8],
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        match self {
            Self::Plain(stamp) => {
                let mut partial = false;
                stamp.emit(datagram, |place| partial = fill(place));
                partial
            }
            Self::Extended(stamp) => stamp.emit_either(datagram, fill),
        }
    }

    /// The checksum of the inner packet is complete.
    #[inline]
    pub(crate) fn complete(&mut self) {
        if let Self::Extended(stamp) = self {
            stamp.complete();
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
            Self::Extended(stamp) => stamp.emit(datagram, fill),
        }
    }
}
