//! Validated settings, with their units in their types.

mod check;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::class::ClassConfig;
use crate::id::SocketId;
use crate::keys::{HostKeys, PeerKeys};
use crate::path::PathStatus;
use crate::peer_kind::PeerKind;
use crate::pins::Pins;
use crate::prefix::Prefix;
use crate::secret::Secret;
use crate::selector::Selector;

pub use check::ConfigError;

/// The largest reorder window, in packets.
pub const MAX_WINDOW: u32 = 10_000;

/// How many packets ahead of the expected one the order by evidence holds, where it is left to it: 0.19 s at 2 Gbit/s. A packet that
/// arrives 60 ms later than most, as one of thousands does where delays vary by 15 ms, is then not taken for lost.
pub const EVIDENCE_WINDOW: u32 = 32_768;

/// The largest weight of a path.
pub const MAX_WEIGHT: u16 = 10_000;

/// What to do with a packet that arrives after it was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// Deliver it out of order; inner TCP then takes back its retransmission.
    #[default]
    Deliver,
    /// Drop it, as the original MPT does.
    Drop,
}

/// How received packets are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderConfig {
    /// Order by evidence instead of by the settings below: a packet waits for its predecessor in its flow alone, and
    /// for no longer than the measured delays of the paths explain. Needs extended framing, which tells both.
    pub evidence: bool,
    /// How many packets ahead of the expected one are held, 0 to [`MAX_WINDOW`], or to [`EVIDENCE_WINDOW`] by evidence; 0 delivers
    /// everything as it comes.
    pub window: u32,
    /// How long a packet is held at the most; in the order by evidence only until the delays of the paths are known.
    pub max_delay: Duration,
    /// Give a number up as soon as every live path has delivered a higher one. The order by evidence always does.
    pub early_release: bool,
    /// What happens to packets that come after that. The order by evidence delivers them.
    pub late: Late,
}

impl ReorderConfig {
    /// By evidence, as far as the peer's datagrams tell enough.
    pub fn by_evidence() -> Self {
        Self { evidence: true, window: EVIDENCE_WINDOW, ..Self::default() }
    }

    /// The largest window.
    pub(crate) fn max_window(&self) -> u32 {
        if self.evidence { EVIDENCE_WINDOW } else { MAX_WINDOW }
    }
}

impl Default for ReorderConfig {
    fn default() -> Self {
        Self {
            evidence: false,
            window: 4096,
            max_delay: Duration::from_millis(100),
            early_release: true,
            late: Late::Deliver,
        }
    }
}

/// The policy that picks a path for each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerConfig {
    /// By the packet's flow: all packets of one take the same path. Ports may be pinned to a path,
    /// what is not pinned is spread by the paths' weights.
    Flow,
    /// By which path it will arrive first, by measured rates and delays: no weights. In a session; in plain
    /// framing, which measures neither, by the weights.
    Earliest,
    /// The path with the lowest delay of those that have room by their measured rates; otherwise as `Earliest`.
    LowestRtt,
    /// Each packet on every path that has room by its measured rate; otherwise as `Earliest`. The peer drops the
    /// copies.
    Redundant,
    /// By the paths' weights: the sending vector of draft-lencse-tsvwg-mpt.
    #[default]
    Weighted,
}

/// What the bytes between two peers look like (section 10 of `docs/protocol.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FramingConfig {
    /// GRE and keepalives: what every peer understands.
    #[default]
    Plain,
    /// Extended framing with a peer that answers a hello, plain framing with any other. For peers of kind
    /// [`PeerKind::Mpt`] only.
    Auto,
    /// Extended framing and nothing else. For peers of kind [`PeerKind::Mpt`] only.
    Extended,
    /// Sealed framing and nothing else, which needs keys. For peers of kind [`PeerKind::Mpt`] only.
    Sealed,
}

/// One path of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// The socket it sends and receives by. Paths may share one.
    pub socket: SocketId,
    /// The peer's address and port on this path.
    pub remote: SocketAddr,
    /// The share of packets it gets, 1 to [`MAX_WEIGHT`].
    pub weight: u16,
    /// Whether the weight that the peer announces for it takes the place of `weight`.
    pub weight_from_peer: bool,
    /// Its rate in bytes of IP packets per second, in place of the measured one; for
    /// [`SchedulerConfig::Earliest`].
    pub rate: Option<u64>,
    /// How many milliseconds a packet has to wait for the other paths before it takes this one, for the schedulers that
    /// measure; zero for a path like others.
    pub price: u16,
    /// Its priority: of the paths that are up, those with the lowest number carry packets, the
    /// others are on standby.
    pub priority: u8,
    /// The ports whose packets take this path while it is up, standing by or not; with
    /// [`SchedulerConfig::Flow`] only.
    pub pins: Pins,
    /// The classes that may not take it: bit *n* is the *n*th of [`ConnectionConfig::classes`], from 0. Their packets go by the
    /// paths that do not refuse them or not at all; for the schedulers that measure.
    pub refuses: u32,
    /// The keepalive interval; `None` sends none.
    pub keepalive: Option<Duration>,
    /// The silence after which the path is down; `None` takes it for up from the start, for ever.
    pub dead_time: Option<Duration>,
    /// In a session: how long it may be silently dead while nothing is sent on it. Then path statuses go at 2/7 of it in place of
    /// `keepalive`, and it takes the place of `dead_time`; both as slow as the peer's, if that is slower. `None`: those two
    /// hold. They also hold towards a peer that does not say how often it sends path statuses.
    pub failover: Option<Duration>,
    /// Its administrative status.
    pub status: PathStatus,
}

impl PathConfig {
    /// How often path statuses go where that is to be noticed in `failover`: the loss of two in a row is none of a path.
    pub const fn interval(failover: Duration) -> Duration {
        Duration::from_micros(failover.as_micros() as u64 * 2 / 7)
    }
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// What the peer is.
    pub peer_kind: PeerKind,
    /// What its datagrams look like.
    pub framing: FramingConfig,
    /// The keys of its peer, with [`FramingConfig::Sealed`].
    pub peer_keys: Option<PeerKeys>,
    /// The peer's tunnel addresses, at most one of each IP version; inner packets to them go by
    /// this connection, and only they and `networks` may be the source of what comes by it.
    pub peer: Vec<IpAddr>,
    /// Further inner addresses behind the peer.
    pub networks: Vec<Prefix>,
    /// Which of the inner packets that could go by this connection do; `None` is all.
    pub selector: Option<Selector>,
    /// The GRE key, if there is one.
    pub key: Option<u32>,
    /// Whether datagrams carry the GRE checksum. A received one is always verified.
    pub checksum: bool,
    /// Whether datagrams carry sequence numbers.
    pub sequence: bool,
    /// The policy that picks a path.
    pub scheduler: SchedulerConfig,
    /// With [`SchedulerConfig::Earliest`]: whether fewer acknowledgements of TCP connections in their first five seconds
    /// are sent, so that differing delays do not end their slow start.
    pub thin_acks: bool,
    /// With [`SchedulerConfig::Earliest`]: whether the peer holds packets of bulk flows that keep too little in flight for
    /// the slower paths, until they have taken as long as by these. With [`SchedulerConfig::Weighted`], in a session: whether
    /// it holds full segments of TCP for that long.
    pub equalise: bool,
    /// Where paths are measured: whether a path on which others keep a queue is sent on as one flow of CUBIC would be. Otherwise
    /// it yields to them.
    pub compete: bool,
    /// Where paths are measured: whether a path is stopped that goes on to lose more than a fifth although next to nothing is
    /// sent on it (RFC 8084, RFC 8085 section 3.1.10).
    pub breaker: bool,
    /// With [`SchedulerConfig::Earliest`] and [`SchedulerConfig::LowestRtt`]: whether packets that a path has lost are sent
    /// again, and those of the peer are waited for. The peer learns it at the beginning of a session.
    pub repair: bool,
    /// What packets need, where that is not as usual.
    pub classes: Vec<ClassConfig>,
    /// How received packets are put in order.
    pub reorder: ReorderConfig,
    /// Its paths, at most [`MAX_PATHS`](crate::MAX_PATHS); none if they are learned, which needs extended
    /// framing.
    pub paths: Vec<PathConfig>,
}

impl ConnectionConfig {
    /// Whether losses are repaired: not where each packet takes all paths anyway, or paths are not measured.
    pub(crate) fn repairs(&self) -> bool {
        let measures =
            matches!(self.scheduler, SchedulerConfig::Earliest | SchedulerConfig::LowestRtt);
        self.repair && measures
    }
}

/// One end of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointConfig {
    /// This end's tunnel addresses, each with the network it is in. To a peer this end is the one
    /// in whose network the peer's address is, or else the first of the same IP version.
    pub addresses: Vec<Prefix>,
    /// Its connections.
    pub connections: Vec<ConnectionConfig>,
    /// What session ids, indices, cookies and challenges are derived from: random, and new at each start.
    pub secret: Secret,
    /// What it needs for connections with [`FramingConfig::Sealed`].
    pub keys: Option<HostKeys>,
}
