//! What carries the traffic, and what it is carried over.

use anyhow::{Result, ensure};
use mpt_io::ethtool;
use mpt_io::netlink::{Netlink, TokenBucket};
use serde::{Serialize, Serializer};

use super::ready::lacking;
use crate::cell::{Framing, Scheduler};

/// What carries traffic from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The daemon, over as many paths of equal weight.
    Mpt {
        /// 1 to 64.
        paths: usize,
        /// What differs from the default.
        mode: Mode,
    },
    /// The kernel's Multipath TCP (RFC 8684) over two pairs.
    Mptcp,
    /// Nothing: TCP, UDP and ping over one pair.
    Raw,
    /// The kernel's VXLAN tunnel (RFC 7348) over one pair.
    Vxlan,
    /// The kernel's WireGuard over one pair.
    Wireguard,
    /// The program wireguard-go over one pair, as it comes.
    WireguardGo,
}

/// What differs from a daemon with nothing special in its configuration or environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sessions, with paths chosen by earliest arrival.
    Adaptive,
    /// Nothing.
    Default,
    /// Inner checksums are left out across the tunnel, by consent of both ends.
    ChecksumPartial,
    /// Sessions: longer headers, feedback, and order by evidence.
    Extended,
    /// No super-packets are handed to the kernel or taken from it.
    NoOffloads,
    /// Sessions, encrypted.
    Sealed,
    /// Two threads for each daemon, one for each direction.
    TwoThreads,
}

impl Mode {
    /// A name for programs, to be added to the subject's.
    fn id(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Adaptive => "-adaptive",
            Self::ChecksumPartial => "-checksum_partial",
            Self::Extended => "-extended",
            Self::NoOffloads => "-no-offloads",
            Self::Sealed => "-sealed",
            Self::TwoThreads => "-two-threads",
        }
    }

    /// A name for people, to be added to the subject's.
    fn title(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Adaptive => ", adaptive",
            Self::ChecksumPartial => ", no checksums",
            Self::Extended => ", extended framing",
            Self::NoOffloads => ", no offloads",
            Self::Sealed => ", sealed",
            Self::TwoThreads => ", two threads",
        }
    }

    /// The environment variables of the daemons.
    pub(super) fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Adaptive | Self::Default | Self::Extended | Self::Sealed => &[],
            Self::ChecksumPartial => &[("MPT_PARTIAL_CHECKSUMS", "on")],
            Self::NoOffloads => &[("MPT_OFFLOADS", "off")],
            Self::TwoThreads => &[("MPT_THREADS", "2")],
        }
    }
}

impl Mode {
    /// The framing of the daemons.
    pub(super) fn framing(self) -> Framing {
        match self {
            Self::ChecksumPartial | Self::Default | Self::NoOffloads | Self::TwoThreads => {
                Framing::Plain
            }
            Self::Adaptive | Self::Extended => Framing::Extended,
            Self::Sealed => Framing::Sealed,
        }
    }

    /// The scheduler of the daemons.
    pub(super) fn scheduler(self) -> Scheduler {
        match self {
            Self::Adaptive => Scheduler::Earliest,
            Self::ChecksumPartial
            | Self::Default
            | Self::Extended
            | Self::NoOffloads
            | Self::Sealed
            | Self::TwoThreads => Scheduler::Weighted,
        }
    }
}

impl Subject {
    /// The daemon over one path: what most ratios are about.
    pub const MPT1: Self = Self::Mpt { paths: 1, mode: Mode::Default };
    /// The daemon over two paths.
    pub const MPT2: Self = Self::Mpt { paths: 2, mode: Mode::Default };
    /// The daemon over four paths.
    pub const MPT4: Self = Self::Mpt { paths: 4, mode: Mode::Default };
    /// The daemon over twelve paths.
    pub const MPT12: Self = Self::Mpt { paths: 12, mode: Mode::Default };
    /// The daemon over one path, in a session.
    pub const MPT1_EXTENDED: Self = Self::Mpt { paths: 1, mode: Mode::Extended };
    /// The daemon over two paths, in a session.
    pub const MPT2_EXTENDED: Self = Self::Mpt { paths: 2, mode: Mode::Extended };
    /// The daemon over one path, sealed.
    pub const MPT1_SEALED: Self = Self::Mpt { paths: 1, mode: Mode::Sealed };
    /// The daemon over two paths, sealed.
    pub const MPT2_SEALED: Self = Self::Mpt { paths: 2, mode: Mode::Sealed };
    /// The daemon over one path, adaptive.
    pub const MPT1_ADAPTIVE: Self = Self::Mpt { paths: 1, mode: Mode::Adaptive };
    /// The daemon over two paths, adaptive.
    pub const MPT2_ADAPTIVE: Self = Self::Mpt { paths: 2, mode: Mode::Adaptive };
    /// The daemon over one path, packet by packet.
    pub const MPT1_PLAIN: Self = Self::Mpt { paths: 1, mode: Mode::NoOffloads };
    /// The daemon over one path, without inner checksums.
    pub const MPT1_PARTIAL: Self = Self::Mpt { paths: 1, mode: Mode::ChecksumPartial };
    /// The daemon over one path, with two threads at each end.
    pub const MPT1_TWO_THREADS: Self = Self::Mpt { paths: 1, mode: Mode::TwoThreads };

    /// All that are measured, in the order of the report. What a ratio is taken of stands close together, because
    /// a round goes through them in this order.
    pub const ALL: [Self; 18] = [
        Self::Raw,
        Self::Mptcp,
        Self::Vxlan,
        Self::MPT1,
        Self::MPT1_EXTENDED,
        Self::MPT1_ADAPTIVE,
        Self::MPT1_SEALED,
        Self::WireguardGo,
        Self::Wireguard,
        Self::MPT2,
        Self::MPT2_EXTENDED,
        Self::MPT2_ADAPTIVE,
        Self::MPT2_SEALED,
        Self::MPT4,
        Self::MPT12,
        Self::MPT1_TWO_THREADS,
        Self::MPT1_PARTIAL,
        Self::MPT1_PLAIN,
    ];

    /// A name for programs, such as `mpt-2`.
    pub fn id(self) -> String {
        match self {
            Self::Mpt { paths, mode } => format!("mpt-{paths}{}", mode.id()),
            Self::Mptcp => "mptcp".into(),
            Self::Raw => "raw".into(),
            Self::Vxlan => "vxlan".into(),
            Self::Wireguard => "wireguard".into(),
            Self::WireguardGo => "wireguard-go".into(),
        }
    }

    /// The one of that name: its [`id`](Self::id), or for the daemon what differs and then the paths, such as `sealed-2`.
    pub fn by_name(name: &str) -> Option<Self> {
        let also = |subject: Self| match subject {
            Self::Mpt { paths, mode } => format!("{}-{paths}", mode.id().trim_start_matches('-')),
            Self::Mptcp | Self::Raw | Self::Vxlan | Self::Wireguard | Self::WireguardGo => {
                subject.id()
            }
        };
        Self::ALL.into_iter().find(|&subject| subject.id() == name || also(subject) == name)
    }

    /// A name for people.
    pub fn title(self) -> String {
        match self {
            Self::Mpt { paths: 1, mode } => format!("MPT, 1 path{}", mode.title()),
            Self::Mpt { paths, mode } => format!("MPT, {paths} paths{}", mode.title()),
            Self::Mptcp => "kernel MPTCP, 2 paths".into(),
            Self::Raw => "no tunnel".into(),
            Self::Vxlan => "kernel VXLAN".into(),
            Self::Wireguard => "kernel WireGuard".into(),
            Self::WireguardGo => "wireguard-go".into(),
        }
    }

    /// How many pairs of interfaces it uses.
    pub fn links(self) -> usize {
        match self {
            Self::Mpt { paths, .. } => paths,
            Self::Mptcp => 2,
            Self::Raw | Self::Vxlan | Self::Wireguard | Self::WireguardGo => 1,
        }
    }

    /// Whether it consists of programs, whose processor time is of interest.
    pub(super) fn has_programs(self) -> bool {
        match self {
            Self::Mpt { .. } | Self::WireguardGo => true,
            Self::Mptcp | Self::Raw | Self::Vxlan | Self::Wireguard => false,
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

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.id())
    }
}

/// How a pair of interfaces treats super-packets, and how fast it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// As the kernel makes it: a super-packet of 64 KiB crosses in one piece.
    PassThrough,
    /// Like that, but either end sends no faster than [`Wire::RATE`]: the kernel's token bucket
    /// filter holds back what comes faster, and cuts super-packets that are longer than its bucket.
    Shaped,
    /// As between two network cards without segmentation in hardware: the sending kernel cuts
    /// every super-packet into packets of the MTU, the receiving one merges what it can (GRO).
    WireLike,
}

impl Wire {
    /// All kinds, in the order of the report.
    pub const ALL: [Self; 3] = [Self::PassThrough, Self::WireLike, Self::Shaped];

    /// Bits per second of a shaped pair, each way, counted with the Ethernet header.
    pub const RATE: u64 = 1_000_000_000;
    /// Bytes of a shaped pair's bucket: what leaves at once after a pause. It is what home routers
    /// and providers use, and half the longest super-packet.
    const BURST: u32 = 32 << 10;
    /// Bytes that wait for a shaped pair: 50 ms at its rate.
    const QUEUE: u32 = (Self::RATE / 8 / 20) as u32;

    /// A name for programs: `pass`, `shaped` or `wire`.
    pub fn id(self) -> &'static str {
        match self {
            Self::PassThrough => "pass",
            Self::Shaped => "shaped",
            Self::WireLike => "wire",
        }
    }

    /// A name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::PassThrough => "pass-through",
            Self::Shaped => "shaped to 1 Gbit/s",
            Self::WireLike => "wire-like",
        }
    }

    /// Bits per second of a pair, each way; `None` if it is as fast as the machine.
    pub(super) fn rate(self) -> Option<u64> {
        (self == Self::Shaped).then_some(Self::RATE)
    }

    /// Whether it is measured what many do at once, and how many small packets pass: where the
    /// wire is the limit, that says nothing about the subject.
    pub(super) fn is_limitless(self) -> bool {
        self.rate().is_none()
    }

    /// Whether a subject is measured over it. Where the wire is what limits, one subject is as fast as
    /// another; what is left to see is whether the daemon fills the wires.
    pub(super) fn measures(self, subject: Subject) -> bool {
        self != Self::Shaped || matches!(subject, Subject::Raw | Subject::MPT1 | Subject::MPT2)
    }

    /// Makes an interface of the calling thread's namespace such an end of a wire. The kernel is
    /// asked afterwards whether it is one.
    pub(super) fn apply(self, netlink: &mut Netlink, interface: &str, index: u32) -> Result<()> {
        match self {
            Self::PassThrough => Ok(()),
            Self::Shaped => {
                let rate = Self::RATE / 8;
                let bucket = TokenBucket { rate, burst: Self::BURST, queue: Self::QUEUE };
                let added = netlink.add_token_bucket(index, bucket);
                added.map_err(|error| lacking("token bucket filter", error))?;
                let found = netlink.token_bucket(index)?;
                ensure!(found == Some(bucket), "`{interface}` has {found:?} instead of {bucket:?}");
                Ok(())
            }
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
    fn no_two_subjects_share_a_name() {
        let ids: BTreeSet<_> = Subject::ALL.map(Subject::id).into();
        let titles: BTreeSet<_> = Subject::ALL.map(Subject::title).into();
        assert_eq!((ids.len(), titles.len()), (Subject::ALL.len(), Subject::ALL.len()));
    }

    #[test]
    fn a_subject_is_found_by_either_of_its_names() {
        assert!(Subject::ALL.into_iter().all(|it| Subject::by_name(&it.id()) == Some(it)));
        assert_eq!(Subject::by_name("sealed-1"), Some(Subject::MPT1_SEALED));
        assert_eq!(Subject::by_name("sealed-2"), Some(Subject::MPT2_SEALED));
        assert_eq!(Subject::by_name("sealed-3"), None);
        assert_eq!(Subject::by_name("sealed"), None);
    }
}
