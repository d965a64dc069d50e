//! What a configuration file says, in plain values that have been checked.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use mpt_control::PathStatus;
pub(crate) use mpt_proto::PeerKind;

use super::{Accept, Commands, Match, Offloads, Pins, Policies, Prefix, Remote};

/// A whole configuration file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The control socket.
    pub(crate) control: Control,
    /// The process.
    pub(crate) daemon: Daemon,
    /// The page of metrics.
    pub(crate) metrics: Metrics,
    /// The tunnels, at least one, with distinct names.
    pub(crate) tunnels: Vec<Tunnel>,
}

/// The control socket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Control {
    /// Where it listens; an absolute path that fits into a Unix socket address.
    pub(crate) socket: PathBuf,
}

impl Default for Control {
    fn default() -> Self {
        Self { socket: mpt_control::DEFAULT_SOCKET.into() }
    }
}

/// The process that runs the tunnels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Daemon {
    /// The user as whom it goes on after a start as root, with the rights that the tunnels need and
    /// no others; `None` = it stays who it is.
    pub(crate) user: Option<String>,
}

/// The page of metrics for Prometheus.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    /// Where it is served, a loopback address with a port other than 0; `None` = nowhere.
    pub(crate) listen: Option<SocketAddr>,
}

/// One tunnel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tunnel {
    /// Its name and that of its TUN device; fits an interface name.
    pub(crate) name: String,
    /// Its own addresses with the length of their subnet, at least one; none occurs twice in the
    /// whole file.
    pub(crate) addresses: Vec<Prefix>,
    /// The largest inner packet.
    pub(crate) mtu: Mtu,
    /// Whether the maximum segment size that forwarded TCP announces is lowered to what fits the
    /// tunnel (RFC 4459 section 3.2).
    pub(crate) clamp_mss: bool,
    /// Which of the kernel's batching it may use.
    pub(crate) offloads: Offloads,
    /// Whether inner checksums are left out across the tunnel. No file can say so: both ends must
    /// have agreed, which plain framing has no way to do.
    pub(crate) checksum_partial: bool,
    /// The threads that carry its packets.
    pub(crate) threads: Threads,
    /// Its connections, at least one unless there is a template.
    pub(crate) connections: Vec<Connection>,
    /// The templates by which further connections are made when a peer asks to connect.
    pub(crate) accepts: Vec<Accept>,
}

/// How many threads carry the packets of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One for both directions.
    #[default]
    One,
    /// One for each direction.
    Two,
}

impl Threads {
    /// The environment variable that says it for all tunnels of a daemon.
    pub(crate) const VARIABLE: &str = "MPT_THREADS";

    /// All numbers there are.
    pub(crate) const NUMBERS: RangeInclusive<u8> = 1..=2;

    /// So many threads, if that is possible.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }

    /// How many threads.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// The largest inner packet of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mtu {
    /// As large as the smallest usable path allows.
    Auto,
    /// That many bytes: at least 576, at least 1280 where IPv6 is carried, at most
    /// [`Mtu::MAX`].
    Fixed(u16),
}

impl Mtu {
    /// Every IPv4 host accepts a packet of that many bytes (RFC 791 section 3.1).
    pub(crate) const MIN: u16 = 576;

    /// Every IPv6 link carries a packet of that many bytes (RFC 8200 section 5).
    pub(crate) const MIN_IPV6: u16 = 1280;

    /// What is left of the largest IPv4 packet, 65535 bytes, after 20 of IP header, 8 of UDP and 16
    /// of GRE with checksum, key and sequence number.
    pub(crate) const MAX: u16 = 65535 - 20 - 8 - 16;
}

/// One connection: the association with one peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Connection {
    /// Its name, distinct within the whole file.
    pub(crate) name: String,
    /// What the peer is.
    pub(crate) peer_kind: PeerKind,
    /// How commands are exchanged with the peer; exactly if that is an original MPT.
    pub(crate) commands: Option<Commands>,
    /// The peer's tunnel addresses, at least one, at most one of each IP version, and none an own
    /// address; exactly one if the peer is an original MPT, and then `networks` are of its version too. Several connections of one tunnel may have the same, in the same order; then at most
    /// one of them has no `selector`. Otherwise none occurs twice in the whole file.
    pub(crate) peer: Vec<IpAddr>,
    /// Further inner prefixes behind the peer, common to all connections with the same `peer`. Those
    /// behind different peers do not overlap, except that one may be a default route: of length 0.
    pub(crate) networks: Vec<Prefix>,
    /// Which of the inner packets to the peer it carries; `None` = those that no other connection
    /// to the peer carries. Where several match, the first in the order of the file does.
    pub(crate) selector: Option<Match>,
    /// The local UDP port, not 0.
    pub(crate) local_port: u16,
    /// The peer's UDP port, not 0.
    pub(crate) remote_port: u16,
    /// How it treats its packets.
    pub(crate) policies: Policies,
    /// Its paths, 1 to [`Connection::MAX_PATHS`], with distinct names.
    pub(crate) paths: Vec<Path>,
}

impl Connection {
    /// The UDP port of GRE-in-UDP (RFC 8086).
    pub(crate) const DEFAULT_PORT: u16 = 4754;

    /// Most paths of one connection.
    pub(crate) const MAX_PATHS: usize = mpt_proto::MAX_PATHS;
}

/// A named set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The best that there is: classic.
    Auto,
    /// Weights, a reorder window and a maximum delay.
    Classic,
}

/// The policy that chooses a path per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    /// Every packet by itself, by the paths' weights.
    Weighted,
    /// All packets of a flow on one path, flows by the paths' weights.
    Flow,
}

/// One path of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// Its name, distinct within the connection.
    pub(crate) name: String,
    /// The network interface it is bound to, if any.
    pub(crate) interface: Option<String>,
    /// The local address, of the IP version of `remote`; `None` = the kernel chooses. The port is
    /// the connection's `local_port`.
    pub(crate) local: Option<IpAddr>,
    /// The peer on this path. The port is the connection's `remote_port`.
    pub(crate) remote: Remote,
    /// Its share of the packets relative to the other paths', 1 to [`Path::MAX_WEIGHT`].
    pub(crate) weight: u16,
    /// Whether the weight that the peer announces takes the place of `weight`: on paths that a template
    /// without a weight made, until a command sets one. No file can say so.
    pub(crate) weight_from_peer: bool,
    /// Its tier: of the paths that are up, those with the least number carry packets and the others
    /// stand by.
    pub(crate) priority: u8,
    /// Time between keepalives; zero = none are sent, as to any endpoint of RFC 8086.
    pub(crate) keepalive: Duration,
    /// Silence after which the path is down; zero = never, as with any endpoint of RFC 8086. Longer than `keepalive` where both are
    /// set.
    pub(crate) dead_time: Duration,
    /// What we want of the path at the start.
    pub(crate) status: PathStatus,
    /// The flows that take this path while it is up; none unless the scheduler is
    /// [`Scheduler::Flow`].
    pub(crate) pins: Pins,
}

impl Path {
    /// Largest weight.
    pub(crate) const MAX_WEIGHT: u16 = mpt_proto::MAX_WEIGHT;

    /// Time between keepalives unless configured, to a peer of this kind. The original counts in whole
    /// seconds; 5 s is what its samples have, and what a dead time must allow for.
    pub(crate) const fn default_keepalive(peer_kind: PeerKind) -> Duration {
        match peer_kind {
            PeerKind::Mpt => Duration::from_millis(500),
            PeerKind::Original => Duration::from_secs(5),
            PeerKind::Gre => Duration::ZERO,
        }
    }

    /// Silence after which a path is down unless configured: three keepalives and a half, so never
    /// where none are sent. 1.75 s with the usual keepalive.
    pub(crate) fn default_dead_time(keepalive: Duration) -> Duration {
        keepalive * 7 / 2
    }
}
