//! What has a few named values.

use mpt_proto::PeerKind;

use super::written::words;

/// A named set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Adaptive in extended framing, classic in plain framing.
    Auto,
    /// Paths by measured rates and delays, packets put in order by evidence; that needs extended framing.
    Adaptive,
    /// Weights, a reorder window and a maximum delay.
    Classic,
}

words! { Profile: "auto" = Auto, "adaptive" = Adaptive, "classic" = Classic }

/// The policy that chooses a path per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    /// Every packet by itself, by measured rates and delays: where it arrives first.
    Earliest,
    /// Every packet by itself, by measured rates and delays: the lowest delay that has room.
    LowestRtt,
    /// Every packet on all paths that have room by their measured rates.
    Redundant,
    /// Every packet by itself, by the paths' weights.
    Weighted,
    /// All packets of a flow on one path, flows by the paths' weights.
    Flow,
}

words! {
    Scheduler: "weighted" = Weighted, "flow" = Flow, "earliest" = Earliest, "lowest-rtt" = LowestRtt,
    "redundant" = Redundant
}

impl Scheduler {
    /// What is used in this profile and framing unless configured. [`Self::Earliest`] goes by weights where there turns
    /// out to be no session.
    pub(crate) fn default_for(profile: Profile, framing: Framing) -> Self {
        match (profile, framing) {
            (Profile::Classic, _) | (_, Framing::Plain) => Self::Weighted,
            (Profile::Auto | Profile::Adaptive, _) => Self::Earliest,
        }
    }
}

/// What the datagrams between two peers look like (section 10 of `docs/protocol.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Extended with a peer that supports it, plain with any other.
    Auto,
    /// GRE and keepalives.
    Plain,
    /// Extended, and nothing else.
    Extended,
    /// Sealed, and nothing else.
    Sealed,
}

words! { Framing: "auto" = Auto, "plain" = Plain, "extended" = Extended, "sealed" = Sealed }

impl Framing {
    /// What is used with a peer of this kind unless configured.
    pub(crate) fn default_for(peer_kind: PeerKind) -> Self {
        match peer_kind {
            PeerKind::Mpt => Self::Auto,
            PeerKind::Original | PeerKind::Gre => Self::Plain,
        }
    }
}

/// What is done about the loss of packets of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// They are sent again, or take two paths at once where a repair would come too late.
    Auto,
    /// Nothing.
    None,
    /// They are sent again.
    Retransmit,
    /// Each takes two paths at once.
    Duplicate,
    /// Parity covers its packets where packets are lost.
    Parity,
}

words! {
    Repair: "auto" = Auto, "none" = None, "retransmit" = Retransmit, "duplicate" = Duplicate, "parity" = Parity
}
