//! Validated settings, with their units in their types.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::connection::ConnectionId;
use crate::origin::{Candidate, Origins};
use crate::path::{PathId, PathStatus};
use crate::peer_kind::PeerKind;
use crate::scheduler::Pins;
use crate::selector::Selector;
use crate::transmit_side::own_address;

/// The most paths of one connection.
pub const MAX_PATHS: usize = 64;

/// The largest reorder window, in packets.
pub const MAX_WINDOW: u32 = 10_000;

/// The largest weight of a path.
pub const MAX_WEIGHT: u16 = 10_000;

/// The socket a datagram came by, as its owner numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u16);

/// A range of IP addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// The range of addresses whose first `bits` bits are those of `address`; `None` if an address
    /// of that version has fewer bits.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        if u32::from(bits) > width(address) {
            return None;
        }
        Some(Self { address, bits })
    }

    /// The range that holds only `address`.
    pub fn host(address: IpAddr) -> Self {
        Self { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// The address it was made from; bits that are not fixed may be set.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The same range, with no other bits set in its address than the fixed ones.
    pub fn masked(self) -> Self {
        let free = width(self.address) - u32::from(self.bits);
        let fixed = u128::MAX.checked_shl(free).unwrap_or(0) & value(self.address);
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4((fixed as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(fixed.into()),
        };
        Self { address, ..self }
    }

    /// How many bits are fixed.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether `address` is inside; never true across IP versions.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && {
            let differing = (value(self.address) ^ value(address)).leading_zeros();
            differing >= 128 - width(address) + u32::from(self.bits)
        }
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn value(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

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
    /// How many packets ahead of the expected one are held, 0 to [`MAX_WINDOW`]; 0 delivers
    /// everything as it comes.
    pub window: u32,
    /// How long a packet is held at the most.
    pub max_delay: Duration,
    /// Give a number up as soon as every live path has delivered a higher one.
    pub early_release: bool,
    /// What happens to packets that come after that.
    pub late: Late,
}

impl Default for ReorderConfig {
    fn default() -> Self {
        Self {
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
    /// By the paths' weights: the sending vector of draft-lencse-tsvwg-mpt.
    #[default]
    Weighted,
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
    /// Its tier: of the paths that are up those of the least number carry, the others stand by.
    pub priority: u8,
    /// The ports whose packets take this path while it is up, standing by or not; with
    /// [`SchedulerConfig::Flow`] only.
    pub pins: Pins,
    /// The keepalive interval; `None` sends none.
    pub keepalive: Option<Duration>,
    /// The silence after which the path is down; `None` takes it for up from the start, for ever.
    pub dead_time: Option<Duration>,
    /// Whether it is to be used.
    pub status: PathStatus,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// What the peer is.
    pub peer_kind: PeerKind,
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
    /// How received packets are put in order.
    pub reorder: ReorderConfig,
    /// Its paths, 1 to [`MAX_PATHS`].
    pub paths: Vec<PathConfig>,
}

/// One end of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointConfig {
    /// This end's tunnel addresses, each with the network it is in. To a peer this end is the one
    /// in whose network the peer's address is, or else the first of the same IP version.
    pub addresses: Vec<Prefix>,
    /// Its connections.
    pub connections: Vec<ConnectionConfig>,
}

impl EndpointConfig {
    /// Says what contradicts itself or exceeds a limit, if anything does.
    ///
    /// # Errors
    ///
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut origins = Origins::default();
        for (connection, config) in self.connections.iter().enumerate() {
            config.check(connection)?;
            let reachable = |peer: &IpAddr| own_address(&self.addresses, *peer).is_some();
            if !config.peer.iter().any(reachable) {
                return Err(ConfigError::NoTunnelAddress { connection });
            }
            let same_packets = |other: &ConnectionConfig| {
                other.selector == config.selector
                    && other.peer.iter().any(|peer| config.peer.contains(peer))
            };
            if self.connections[..connection].iter().any(same_packets) {
                return Err(ConfigError::SamePeer { connection });
            }
            for (path, settings) in config.paths.iter().enumerate() {
                let candidate = Candidate {
                    port: settings.remote.port(),
                    key: config.key,
                    exact: false,
                    connection: ConnectionId(connection as u16),
                    path: PathId(path as u8),
                };
                if !origins.add(settings.socket, settings.remote.ip(), candidate) {
                    return Err(ConfigError::SamePath { connection, path });
                }
            }
        }
        Ok(())
    }
}

impl ConnectionConfig {
    fn check(&self, connection: usize) -> Result<(), ConfigError> {
        if self.paths.is_empty() {
            return Err(ConfigError::NoPath { connection });
        }
        if self.paths.len() > MAX_PATHS {
            return Err(ConfigError::TooManyPaths { connection });
        }
        if self.reorder.window > MAX_WINDOW {
            return Err(ConfigError::Window { connection });
        }
        let zero = |path: &PathConfig| {
            [path.keepalive, path.dead_time].iter().flatten().any(Duration::is_zero)
        };
        if let Some(path) = self.paths.iter().position(zero) {
            return Err(ConfigError::ZeroTime { connection, path });
        }
        match self.paths.iter().position(|path| !(1..=MAX_WEIGHT).contains(&path.weight)) {
            Some(path) => Err(ConfigError::Weight { connection, path }),
            None => self.peer_kind.check(self, connection),
        }
    }
}

/// Why settings cannot be used. Numbers count from 0 in the order of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The connection has no path.
    NoPath {
        /// Which connection.
        connection: usize,
    },
    /// The connection has more than [`MAX_PATHS`].
    TooManyPaths {
        /// Which connection.
        connection: usize,
    },
    /// A path's weight is outside 1 to [`MAX_WEIGHT`].
    Weight {
        /// Which connection.
        connection: usize,
        /// Which of its paths.
        path: usize,
    },
    /// The reorder window is above [`MAX_WINDOW`].
    Window {
        /// Which connection.
        connection: usize,
    },
    /// A path's keepalive interval or dead time is zero, which would never end; leave it out.
    ZeroTime {
        /// Which connection.
        connection: usize,
        /// Which of its paths.
        path: usize,
    },
    /// The peer is of a kind that would not understand it.
    PeerKind {
        /// Which connection.
        connection: usize,
        /// What it would not understand.
        fault: &'static str,
    },
    /// This end and the peer have no tunnel address of the same IP version.
    NoTunnelAddress {
        /// Which connection.
        connection: usize,
    },
    /// Two connections claim the same peer tunnel address.
    SamePeer {
        /// The later of the two.
        connection: usize,
    },
    /// Two paths could not be told apart on reception: same socket, remote address, port and key.
    SamePath {
        /// The connection of the later of the two.
        connection: usize,
        /// The later of the two.
        path: usize,
    },
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoPath { connection } => write!(formatter, "connection {connection} has no path"),
            Self::TooManyPaths { connection } => {
                write!(formatter, "connection {connection} has more than {MAX_PATHS} paths")
            }
            Self::Weight { connection, path } => write!(
                formatter,
                "the weight of path {path} of connection {connection} is not 1 to {MAX_WEIGHT}"
            ),
            Self::Window { connection } => write!(
                formatter,
                "the reorder window of connection {connection} is above {MAX_WINDOW}"
            ),
            Self::ZeroTime { connection, path } => write!(
                formatter,
                "a time of path {path} of connection {connection} is zero; leave it out instead"
            ),
            Self::PeerKind { connection, fault } => write!(
                formatter,
                "connection {connection} has what its kind of peer does not understand: {fault}"
            ),
            Self::NoTunnelAddress { connection } => write!(
                formatter,
                "connection {connection} has no tunnel address of the peer's IP version"
            ),
            Self::SamePeer { connection } => {
                write!(formatter, "connection {connection} repeats another one's peer address")
            }
            Self::SamePath { connection, path } => write!(
                formatter,
                "path {path} of connection {connection} cannot be told from another one"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_what_shares_their_bits_and_nothing_of_the_other_version() {
        let prefix = |text: &str, len| Prefix::new(text.parse().unwrap(), len).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(prefix("10.1.0.0", 16).contains(address("10.1.255.255")));
        assert!(!prefix("10.1.0.0", 16).contains(address("10.2.0.0")));
        assert!(prefix("0.0.0.0", 0).contains(address("255.1.2.3")));
        assert!(!prefix("0.0.0.0", 0).contains(address("::1")));
        assert!(!prefix("::", 0).contains(address("10.0.0.1")));
        assert!(prefix("fd00::", 8).contains(address("fdff::1")));
        assert!(!prefix("fd00::", 8).contains(address("fe00::1")));
        assert!(Prefix::host(address("fd00::1")).contains(address("fd00::1")));
        assert!(!Prefix::host(address("fd00::1")).contains(address("fd00::2")));
        assert_eq!(Prefix::new(address("10.0.0.0"), 33), None);
    }
}
