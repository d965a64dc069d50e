//! Plain framing, sending: a GRE header with the options of the connection.

use crate::config::ConnectionConfig;
use crate::peer_kind::PeerKind;
use crate::sequence::Seq;
use crate::wire::gre::{self, Header, Protocol};

/// A number further behind the next one than this, three quarters of what a receiver remembers, is not sent
/// again: beside what is sent meanwhile it would leave the receiver's memory and pass for a new number.
const REACH: u32 = 12_288;

/// What the headers of one connection are made of.
#[derive(Debug)]
pub(crate) struct Tx {
    key: Option<u32>,
    checksum: bool,
    /// The number of the next datagram, if datagrams are numbered.
    next: Option<Seq>,
    /// Whether the receiver drops copies.
    recognises_copies: bool,
    kind: PeerKind,
}

/// The header of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Header);

impl Tx {
    pub(crate) fn new(config: &ConnectionConfig) -> Self {
        Self {
            key: config.key,
            checksum: config.checksum,
            next: config.sequence.then_some(Seq::FIRST),
            recognises_copies: recognises_copies(config),
            kind: config.peer_kind,
        }
    }

    /// Whether the peer is told at once of what changes on a path.
    pub(crate) fn announces(&self) -> bool {
        self.kind.tells()
    }

    /// Takes over what can change at run time. Returns whether anything did.
    pub(crate) fn set(&mut self, config: &ConnectionConfig) -> bool {
        let before = std::mem::replace(&mut self.recognises_copies, recognises_copies(config));
        before != self.recognises_copies
    }

    /// Whether the peer may be sent the same datagram twice.
    pub(crate) fn recognises_copies(&self) -> bool {
        self.recognises_copies
    }

    pub(crate) fn overhead(&self) -> usize {
        gre::options_len(self.checksum, self.key.is_some(), self.next.is_some())
    }

    #[inline(always)]
    pub(crate) fn stamp(&mut self, protocol: Protocol) -> Stamp {
        let sequence = self.next;
        self.next = sequence.map(Seq::next);
        Stamp(Header { protocol, checksum: self.checksum, key: self.key, sequence })
    }

    pub(crate) fn restamp(&self, stamp: Stamp) -> Option<Stamp> {
        let behind = self.next?.value().wrapping_sub(stamp.0.sequence?.value());
        (self.recognises_copies && behind <= REACH).then_some(stamp)
    }

    pub(crate) fn stamp_control(&self, protocol: Protocol) -> Stamp {
        Stamp(Header { protocol, checksum: self.checksum, key: self.key, sequence: None })
    }
}

impl Stamp {
    #[inline(always)]
    pub(crate) const fn overhead(&self) -> usize {
        self.0.size()
    }

    #[inline(always)]
    pub(crate) fn emit(&self, datagram: &mut [u8], fill: impl FnOnce(&mut [u8])) {
        fill(&mut datagram[self.0.size()..]);
        // Last, as its checksum covers the payload.
        self.0.emit(datagram);
    }
}

#[cfg(test)]
impl Stamp {
    /// A stamp with this number and nothing else.
    pub(crate) fn numbered(sequence: u32) -> Self {
        let sequence = Some(Seq::new(sequence));
        Self(Header { protocol: Protocol::Ipv4, checksum: false, key: None, sequence })
    }

    pub(crate) fn number(&self) -> Option<u32> {
        self.0.sequence.map(Seq::value)
    }
}

/// Whether the peer drops the second of two datagrams with the same number. One end does not know
/// the other's window; both are taken to be configured alike. Other kinds of peers do not detect
/// duplicates, and the original MPT takes a number slightly behind for a restart.
fn recognises_copies(config: &ConnectionConfig) -> bool {
    config.peer_kind == PeerKind::Mpt && config.sequence && config.reorder.window > 0
}
