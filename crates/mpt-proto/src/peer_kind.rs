//! What speaks plain framing at the other end, and so what may be said to it and expected of it.
//!
//! | | [`Mpt`](PeerKind::Mpt) | [`Original`](PeerKind::Original) | [`Gre`](PeerKind::Gre) |
//! |---|---|---|---|
//! | inner packets | either IP version | one IP version | either IP version |
//! | key, checksum | as configured | never | as configured |
//! | sequence numbers | as configured | if the own window is above 0 | as configured |
//! | keepalives | with what is known of the path | bare, at a steady pace | none |
//! | a path is up | heard by both | heard | always |

/// The kind of a peer: what it understands beside inner packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerKind {
    /// An implementation of `docs/protocol.md`.
    #[default]
    Mpt,
    /// The original MPT (github.com/spyff/mpt): it reads of a keepalive only that it is one, and says
    /// no more with its own.
    Original,
    /// Any GRE-in-UDP endpoint (RFC 8086), without control messages.
    Gre,
}

impl PeerKind {
    /// The word for the kind in settings and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mpt => "mpt",
            Self::Original => "mpt-original",
            Self::Gre => "gre",
        }
    }

    /// Whether keepalives contain a status, and are sent whenever it changes.
    pub(crate) const fn tells(self) -> bool {
        matches!(self, Self::Mpt)
    }
}
