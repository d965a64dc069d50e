//! One datagram, as every framing sees it: an inner packet to send, or what arrived.

use std::num::{NonZeroU16, NonZeroU32};

use crate::id::{ConnectionId, PathId};
use crate::sequence::Seq;
use crate::wire::extended::{Flags, Header};
use crate::wire::gre::Protocol;
use crate::wire::inner::Inner;
use crate::wire::keepalive::Keepalive;
use crate::wire::short::Short;

/// An inner packet to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'p> {
    /// The packet without what follows its IP length.
    pub(crate) packet: &'p [u8],
    /// Its IP header.
    pub(crate) inner: &'p Inner,
    /// What it is if it is short, as far as that was looked for.
    short: Option<Short>,
}

impl<'p> Item<'p> {
    /// A packet of which only the IP header was read.
    #[inline(always)]
    pub(crate) fn new(packet: &'p [u8], inner: &'p Inner) -> Self {
        Self { packet, inner, short: None }
    }

    /// The same, and what it is if it is short, which is asked for more than once.
    #[inline(always)]
    pub(crate) fn parsed(packet: &'p [u8], inner: &'p Inner) -> Self {
        Self { packet, inner, short: Some(Short::of(packet, inner)) }
    }

    /// What it is if it is short.
    #[inline(always)]
    pub(crate) fn short(&self) -> Short {
        self.short.unwrap_or_else(|| Short::of(self.packet, self.inner))
    }
}

/// A datagram whose header was read and that belongs to a path. It refers to no memory: its bytes can be
/// decrypted in place before, and shared after.
#[derive(Debug)]
#[must_use]
pub struct Opened {
    pub(crate) connection: ConnectionId,
    pub(crate) path: PathId,
    /// Its place in the order, if it has one.
    pub(crate) sequence: Option<Seq>,
    /// The rest of its header.
    pub(crate) framed: Framed,
    /// Where the payload begins.
    pub(crate) start: usize,
    /// How many bytes of no meaning are behind the payload.
    pub(crate) trailer: usize,
}

/// What a header says besides connection, path and order, by its framing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framed {
    Plain(Protocol),
    Extended(Header),
}

impl Opened {
    /// One of a session, with `trailer` bytes behind its payload.
    #[inline(always)]
    pub(crate) fn extended(
        connection: ConnectionId,
        path: PathId,
        header: Header,
        trailer: usize,
    ) -> Self {
        let (sequence, start) = (header.sequence, header.size());
        Self { connection, path, sequence, framed: Framed::Extended(header), start, trailer }
    }

    /// Whether the inner packet has a partial checksum: that of its TCP or UDP header is only the sum of the
    /// pseudo-header, and the receiver completes it.
    pub fn is_partial(&self) -> bool {
        matches!(&self.framed, Framed::Extended(header) if header.flags.contains(Flags::PARTIAL))
    }
}

/// What a datagram carries, validated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// The packet at the start of the payload.
    Inner(Inner),
    /// A keepalive of the peer.
    Keepalive(Keepalive),
    /// A path status of the peer as the keepalive whose place it takes, the time in microseconds that packets with
    /// flag E are to take, and how often it sends one, in milliseconds.
    Status(Keepalive, Option<NonZeroU32>, Option<NonZeroU16>),
    /// Padding of some length, by which the peer finds out what the path carries.
    Probe,
    /// Another message of extended framing. It is read where it is used, so that this stays small: every packet
    /// has one.
    Message,
}
