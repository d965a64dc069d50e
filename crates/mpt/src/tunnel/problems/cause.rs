//! The causes that are known, and their codes.

use std::net::{IpAddr, SocketAddr};

use mpt_io::udp::Unreachable;
use mpt_proto::{ConnectionId, Drop, MismatchKind, PathId};

use super::same_host;

/// Why something does not work.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// Something arrives that does not fit.
    Arrived(MismatchKind),
    /// ICMP says that the peer cannot be reached.
    Icmp(Reported),
    /// The peer is heard and says that it does not hear us.
    Deaf,
    /// Nothing arrives.
    Silent,
}

/// What an ICMP message says, and who does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported {
    pub(super) kind: Unreachable,
    pub(super) reporter: Option<IpAddr>,
}

impl Reported {
    /// The same, where it is known that the peer is there and listens: then the message that nothing listens comes from a
    /// firewall, which rejects by it unless it is told another.
    pub(super) fn by_firewall(self) -> Self {
        match self.kind {
            Unreachable::Port => Self { kind: Unreachable::Prohibited, ..self },
            Unreachable::Prohibited | Unreachable::Host => self,
        }
    }
}

/// Where something was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) connection: Option<ConnectionId>,
    pub(super) path: Option<PathId>,
    /// The other end.
    pub(super) remote: SocketAddr,
}

impl Place {
    /// Whether it is the same. The port of a stranger does not matter.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.connection, self.path) == (other.connection, other.path)
            && (self.path.is_some() || same_host(self.remote, other.remote))
    }
}

impl Cause {
    /// Whether it is the same, wherever it comes from.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Arrived(one), Self::Arrived(other)) => one == other,
            (Self::Icmp(one), Self::Icmp(other)) => one.kind == other.kind,
            (Self::Deaf, Self::Deaf) | (Self::Silent, Self::Silent) => true,
            _ => false,
        }
    }

    /// The name for programs; see `docs/status.md`.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Arrived(kind) => match kind {
                MismatchKind::Key { .. } => "key",
                MismatchKind::Addresses { .. } => "addresses",
                MismatchKind::Framing { .. } => "framing",
                MismatchKind::Handshake(Drop::HandshakeMac | Drop::HandshakeUnknown) => {
                    "public_key"
                }
                MismatchKind::Handshake(Drop::HandshakeForged) => "preshared_key",
                MismatchKind::Handshake(Drop::HandshakeInvitation) => "invitation",
                MismatchKind::Handshake(Drop::HandshakeReplay) => "clock",
                MismatchKind::Handshake(_) => "handshake",
                MismatchKind::Version { .. } => "version",
                MismatchKind::PeerKind => "peer_kind",
                MismatchKind::Foreign(_) => "foreign",
                MismatchKind::Source => "unknown_source",
                MismatchKind::Unconfirmed => "not_heard",
                MismatchKind::Template { .. } => "template",
            },
            Self::Icmp(Reported { kind, .. }) => match kind {
                Unreachable::Port => "nothing_listens",
                Unreachable::Prohibited => "rejected",
                Unreachable::Host => "unreachable",
            },
            Self::Deaf => "not_heard",
            Self::Silent => "silent",
        }
    }
}
