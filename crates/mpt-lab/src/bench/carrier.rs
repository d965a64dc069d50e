//! What carries the traffic, and what it is carried over.

use mpt_io::ethtool;
use serde::{Serialize, Serializer};

/// What carries traffic from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The daemon, over as many paths of equal weight.
    Mpt {
        /// 1 to 64.
        paths: usize,
        /// Whether the daemon may hand super-packets to the kernel and take them from it.
        offloads: bool,
    },
    /// The kernel's Multipath TCP (RFC 8684) over two pairs.
    Mptcp,
    /// Nothing: TCP, UDP and ping over one pair.
    Raw,
    /// The kernel's VXLAN tunnel (RFC 7348) over one pair.
    Vxlan,
}

impl Carrier {
    /// The daemon over one path: what most ratios are about.
    pub const MPT1: Self = Self::Mpt { paths: 1, offloads: true };
    /// The daemon over two paths.
    pub const MPT2: Self = Self::Mpt { paths: 2, offloads: true };
    /// The daemon over four paths.
    pub const MPT4: Self = Self::Mpt { paths: 4, offloads: true };
    /// The daemon over twelve paths.
    pub const MPT12: Self = Self::Mpt { paths: 12, offloads: true };
    /// The daemon over one path, packet by packet.
    pub const MPT1_PLAIN: Self = Self::Mpt { paths: 1, offloads: false };

    /// All that are measured, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Raw,
        Self::Mptcp,
        Self::Vxlan,
        Self::MPT1,
        Self::MPT2,
        Self::MPT4,
        Self::MPT12,
        Self::MPT1_PLAIN,
    ];

    /// A name for programs, such as `mpt-2`.
    pub fn id(self) -> String {
        match self {
            Self::Mpt { paths, offloads: true } => format!("mpt-{paths}"),
            Self::Mpt { paths, offloads: false } => format!("mpt-{paths}-no-offloads"),
            Self::Mptcp => "mptcp".into(),
            Self::Raw => "raw".into(),
            Self::Vxlan => "vxlan".into(),
        }
    }

    /// A name for people.
    pub fn title(self) -> String {
        match self {
            Self::Mpt { paths: 1, offloads: true } => "MPT, 1 path".into(),
            Self::Mpt { paths, offloads: true } => format!("MPT, {paths} paths"),
            Self::Mpt { paths: 1, offloads: false } => "MPT, 1 path, no offloads".into(),
            Self::Mpt { paths, offloads: false } => format!("MPT, {paths} paths, no offloads"),
            Self::Mptcp => "kernel MPTCP, 2 paths".into(),
            Self::Raw => "no tunnel".into(),
            Self::Vxlan => "kernel VXLAN".into(),
        }
    }

    /// How many pairs of interfaces it uses.
    pub fn links(self) -> usize {
        match self {
            Self::Mpt { paths, .. } => paths,
            Self::Mptcp => 2,
            Self::Raw | Self::Vxlan => 1,
        }
    }

    /// Whether it carries packets other than TCP's and round-trip times are of interest.
    pub(super) fn pings(self) -> bool {
        matches!(self, Self::Raw | Self::Vxlan | Self::MPT1 | Self::MPT2)
    }

    /// Whether the rate of UDP packets is of interest.
    pub(super) fn udp(self) -> bool {
        matches!(self, Self::Raw | Self::MPT1 | Self::MPT2)
    }
}

impl Serialize for Carrier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.id())
    }
}

/// How a pair of interfaces treats super-packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// As the kernel makes it: a super-packet of 64 KiB crosses in one piece.
    PassThrough,
    /// As between two network cards without segmentation in hardware: the sending kernel cuts
    /// every super-packet into packets of the MTU, the receiving one merges what it can (GRO).
    WireLike,
}

impl Wire {
    /// Both kinds, in the order of the report.
    pub const ALL: [Self; 2] = [Self::PassThrough, Self::WireLike];

    /// A name for programs: `pass` or `wire`.
    pub fn id(self) -> &'static str {
        match self {
            Self::PassThrough => "pass",
            Self::WireLike => "wire",
        }
    }

    /// A name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::PassThrough => "pass-through",
            Self::WireLike => "wire-like",
        }
    }

    /// Makes an interface of the calling thread's namespace such an end of a wire. The kernel is
    /// asked afterwards whether it is one.
    pub(super) fn apply(self, interface: &str) -> Result<(), ethtool::Error> {
        match self {
            Self::PassThrough => Ok(()),
            Self::WireLike => {
                for feature in ethtool::features(interface)? {
                    let Some(wanted) = wire_like(&feature.name) else { continue };
                    if feature.active != wanted {
                        // Reads the feature back and fails if it did not change.
                        ethtool::set_feature(interface, &feature.name, wanted)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// What a feature must be at the end of a wire; `None` where that does not matter.
///
/// The first group is what `ethtool -K … tso off` switches, the last two what it calls `gso` and
/// `gro`.
fn wire_like(feature: &str) -> Option<bool> {
    match feature {
        "tx-tcp-segmentation"
        | "tx-tcp-ecn-segmentation"
        | "tx-tcp-mangleid-segmentation"
        | "tx-tcp6-segmentation"
        | "tx-udp-segmentation" => Some(false),
        "tx-generic-segmentation" | "rx-gro" => Some(true),
        _ => None,
    }
}

impl Serialize for Wire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_carriers_share_a_name() {
        let ids: BTreeSet<_> = Carrier::ALL.map(Carrier::id).into();
        let titles: BTreeSet<_> = Carrier::ALL.map(Carrier::title).into();
        assert_eq!((ids.len(), titles.len()), (Carrier::ALL.len(), Carrier::ALL.len()));
    }
}
