//! A datagram to send, before its bytes are written.

use crate::framing::Stamp;
use crate::id::{ConnectionId, PathId};
use crate::queue;
use crate::tx::repair::Again;
use crate::tx::retransmit::Place;

/// A datagram to send on a path. Its bytes are written by
/// [`TransmitSide::emit`](crate::TransmitSide::emit).
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// The path to send it on.
    pub path: PathId,
    /// The type of service or traffic class to send it with.
    pub tos: u8,
    pub(super) stamp: Stamp,
    pub(super) payload: Payload<'a>,
}

/// What becomes of an inner packet that was taken.
#[derive(Clone, Copy, Debug)]
pub enum Taken<'a> {
    /// It is sent at once.
    Sent(Transmit<'a>),
    /// It waits, because the paths are full: [`TransmitSide::keep`](crate::TransmitSide::keep) is to be called next.
    Waits(Waiting<'a>),
}

/// A packet that has to wait, before its bytes are kept.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    pub(super) packet: &'a [u8],
    pub(super) place: queue::store::Place,
    pub(super) may_be_partial: bool,
}

impl Waiting<'_> {
    /// As [`Transmit::may_be_partial`].
    pub const fn may_be_partial(&self) -> bool {
        self.may_be_partial
    }
}

/// What a datagram carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload<'a> {
    /// An inner packet.
    Inner { packet: &'a [u8], keep: Keep },
    /// The control message of this length that the transmit side made last.
    Control { len: usize },
    /// The same, to an origin.
    Reply { len: usize },
    /// An inner packet that waited; it may be a copy of one that was sent before.
    Waited { place: queue::store::Place, len: usize, keep: Keep, is_copy: bool },
    /// A copy that is sent again.
    Kept { place: Place, len: usize },
}

/// Whether a copy of an inner packet is kept, so that it can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// None is.
    Not,
    /// For a moment, in case its path is lost.
    Briefly,
    /// Until the peer's feedback tells what became of it.
    UntilTold(Option<Again>),
}

/// Why a datagram is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitKind {
    /// It carries a control message of the endpoint itself.
    Control,
    /// It carries an inner packet.
    Inner,
    /// It carries a control message to an origin that may have no path:
    /// [`TransmitSide::destination`](crate::TransmitSide::destination) says where. Connection and path mean
    /// nothing.
    Reply,
    /// It carries an inner packet that is sent on another path too, or was before.
    Retransmission,
}

impl Transmit<'_> {
    /// The length of the datagram, in bytes.
    #[inline(always)]
    pub const fn size(&self) -> usize {
        let payload = match self.payload {
            Payload::Inner { packet, .. } => packet.len(),
            Payload::Control { len }
            | Payload::Reply { len }
            | Payload::Waited { len, .. }
            | Payload::Kept { len, .. } => len,
        };
        self.stamp.overhead() + payload
    }

    /// Whether the peer accepts the inner packet with a partial checksum: that of its TCP or UDP header is only the
    /// sum of the pseudo-header. See [`TransmitSide::emit_either`](crate::TransmitSide::emit_either).
    #[inline(always)]
    pub const fn may_be_partial(&self) -> bool {
        self.stamp.may_be_partial()
    }

    /// Why it is sent.
    pub const fn kind(&self) -> TransmitKind {
        match self.payload {
            Payload::Inner { .. } | Payload::Waited { is_copy: false, .. } => TransmitKind::Inner,
            // Parity.
            Payload::Waited { .. } if self.stamp.sequence().is_none() => TransmitKind::Control,
            Payload::Waited { .. } | Payload::Kept { .. } => TransmitKind::Retransmission,
            Payload::Control { .. } => TransmitKind::Control,
            Payload::Reply { .. } => TransmitKind::Reply,
        }
    }
}
