//! The commonest world: two hosts and some wires, one path over each.
//!
//! The left host has a separate outer address at each wire, like a host with several uplinks. So
//! does the right one, unless it is a server with a single address. Inner addresses are 10.9.0.1
//! and fd00:9::1 on the left, 10.9.0.2 and fd00:9::2 on the right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use mpt_proto::{
    Cipher, Ciphers, ConfigError, Connection, ConnectionConfig, ConnectionId, EndpointConfig,
    FramingConfig, HostKeys, KEY_LEN, PathConfig, PathId, PathState, PathStatus, PeerKeys,
    PeerKind, Pins, Prefix, PresharedKey, PrivateKey, ReorderConfig, SchedulerConfig, Secret,
    SocketId,
};

use super::{End, HostConfig, HostId, WireId, World};
use crate::profile::Profile;
use crate::traffic::packet::Flow;

/// The wall clock when virtual time is zero.
const CLOCK_ZERO: Duration = Duration::from_secs(1_800_000_000);

/// The port of both ends' tunnels (RFC 8086).
const PORT: u16 = 4754;

/// One wire and the path over it.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPlan {
    /// The wire from left to right.
    pub there: Profile,
    /// The wire from right to left.
    pub back: Profile,
    /// The weight of the path at both ends.
    pub weight: u16,
    /// The tier of the path at both ends.
    pub priority: u8,
    /// The price of the path at both ends, in milliseconds.
    pub price: u16,
    /// The classes that may not take the path, one bit each, at both ends.
    pub refuses: u32,
    /// How long it may be silently dead while nothing is sent on it, at the left end and the right one, in place of what both
    /// have in common.
    pub failover: [Option<Duration>; 2],
    /// Whether its outer addresses are IPv6.
    pub ipv6: bool,
}

impl PathPlan {
    /// A path of weight 1 in the best tier over IPv4, equal in both directions.
    pub fn symmetric(profile: Profile) -> Self {
        Self {
            there: profile.clone(),
            back: profile,
            weight: 1,
            priority: 0,
            price: 0,
            refuses: 0,
            failover: [None; 2],
            ipv6: false,
        }
    }

    /// The same path with another weight.
    #[must_use]
    pub fn with_weight(self, weight: u16) -> Self {
        Self { weight, ..self }
    }

    /// The same path in another tier.
    #[must_use]
    pub fn with_priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The same path over IPv6.
    #[must_use]
    pub fn over_ipv6(self) -> Self {
        Self { ipv6: true, ..self }
    }
}

/// What the two hosts are to be like.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// The wires and paths, in order.
    pub paths: Vec<PathPlan>,
    /// Whether the right host has the same outer address at all wires (of an IP version).
    pub one_server_address: bool,
    /// Whether the right host is configured with no path and learns those of the left one.
    pub server_learns: bool,
    /// The framing of the right host, if it is another one.
    pub right_framing: Option<FramingConfig>,
    /// The bytes of the pre-shared key, with sealed framing.
    pub preshared: Option<u8>,
    /// What both connections have in common; peers and paths are filled in.
    pub connection: ConnectionConfig,
    /// What both paths have in common; socket, remote address, weight and priority are filled in.
    pub path: PathConfig,
    /// What both hosts have in common; endpoint and sockets are filled in.
    pub host: HostConfig,
}

impl PairPlan {
    /// The product's defaults: sequence numbers, reordering, keepalive 0.5 s, dead time 1.75 s.
    pub fn new(paths: Vec<PathPlan>) -> Self {
        Self {
            paths,
            one_server_address: false,
            server_learns: false,
            right_framing: None,
            preshared: None,
            connection: ConnectionConfig {
                peer_kind: PeerKind::Mpt,
                framing: FramingConfig::Plain,
                peer: Vec::new(),
                networks: Vec::new(),
                selector: None,
                key: None,
                checksum: false,
                sequence: true,
                scheduler: SchedulerConfig::default(),
                peer_keys: None,
                thin_acks: true,
                classes: Vec::new(),
                equalise: true,
                compete: true,
                breaker: true,
                repair: true,
                reorder: ReorderConfig::default(),
                paths: Vec::new(),
            },
            path: PathConfig {
                socket: SocketId(0),
                remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT),
                weight: 1,
                weight_from_peer: false,
                rate: None,
                price: 0,
                priority: 0,
                pins: Pins::default(),
                refuses: 0,
                failover: None,
                keepalive: Some(Duration::from_millis(500)),
                dead_time: Some(Duration::from_millis(1750)),
                status: PathStatus::Available,
            },
            host: HostConfig::default(),
        }
    }
}

/// Two hosts, their wires, and the world around them.
#[derive(Debug)]
pub struct Pair {
    /// The world, to be run.
    pub world: World,
    /// The host with an address at each wire.
    pub left: HostId,
    /// Its peer.
    pub right: HostId,
    /// The wires; end `a` of each is on the left.
    pub wires: Vec<WireId>,
}

impl Pair {
    /// The one connection of each host.
    pub const CONNECTION: ConnectionId = ConnectionId(0);

    /// Builds the world. Both cores start at once.
    ///
    /// # Errors
    ///
    /// What the core finds wrong with the plan.
    pub fn new(seed: u64, plan: &PairPlan) -> Result<Self, ConfigError> {
        Self::beside(World::new(seed), plan)
    }

    /// Adds two hosts and their wires to a world that has others. Both cores start at once.
    ///
    /// # Errors
    ///
    /// What the core finds wrong with the plan.
    pub fn beside(mut world: World, plan: &PairPlan) -> Result<Self, ConfigError> {
        let left = world.add_host(plan.left())?;
        let right = world.add_host(plan.right())?;
        let mut wires = Vec::new();
        for (index, path) in plan.paths.iter().enumerate() {
            let a = End { host: left, address: plan.outer(Side::Left, index) };
            let b = End { host: right, address: plan.outer(Side::Right, index) };
            wires.push(world.add_wire(a, b, path.there.clone(), path.back.clone()));
        }
        Ok(Self { world, left, right, wires })
    }

    /// A flow from left to right, inside the tunnel.
    pub fn flow(ipv6: bool, port: u16) -> Flow {
        Flow { source: inner(Side::Left, ipv6), destination: inner(Side::Right, ipv6), port }
    }

    /// A running host's connection.
    ///
    /// # Panics
    ///
    /// If the host is stopped.
    pub fn connection(&self, host: HostId) -> Connection<'_> {
        let endpoint = self.world.endpoint(host).expect("the host runs");
        endpoint.connection(Self::CONNECTION)
    }

    /// The state of a path at a running host.
    ///
    /// # Panics
    ///
    /// If the host is stopped.
    pub fn path_state(&self, host: HostId, path: u8) -> PathState {
        self.connection(host).path(PathId(path)).state
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// The static key of this side.
    fn private_key(self) -> PrivateKey {
        PrivateKey::new([self.number(); KEY_LEN])
    }

    /// What it needs for sealed framing.
    fn keys(self) -> HostKeys {
        let ciphers = Ciphers::fastest(Cipher::Aes256Gcm);
        HostKeys::new(self.private_key(), ciphers, [self.number() + 100; KEY_LEN], CLOCK_ZERO)
    }

    /// The last number of this side's addresses.
    fn number(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
        }
    }
}

impl PairPlan {
    /// The settings of the left host.
    pub fn left(&self) -> HostConfig {
        self.host(Side::Left)
    }

    /// The settings of the right host.
    pub fn right(&self) -> HostConfig {
        self.host(Side::Right)
    }

    fn host(&self, side: Side) -> HostConfig {
        // Paths whose local addresses are the same share a socket.
        let mut sockets: Vec<SocketAddr> = Vec::new();
        let mut paths = Vec::new();
        for (index, plan) in self.paths.iter().enumerate() {
            let local = SocketAddr::new(self.outer(side, index), PORT);
            let known = sockets.iter().position(|&socket| socket == local);
            let place = known.unwrap_or(sockets.len());
            if known.is_none() {
                sockets.push(local);
            }
            paths.push(PathConfig {
                socket: SocketId(place as u16),
                remote: SocketAddr::new(self.outer(side.other(), index), PORT),
                weight: plan.weight,
                priority: plan.priority,
                price: plan.price,
                refuses: plan.refuses,
                failover: plan.failover[usize::from(side == Side::Right)].or(self.path.failover),
                ..self.path.clone()
            });
        }
        let learns = (self.server_learns && side == Side::Right).then(|| self.path.clone());
        if learns.is_some() {
            paths.clear();
        }
        let addresses = |side| [false, true].map(|ipv6| inner(side, ipv6)).to_vec();
        let mut connection =
            ConnectionConfig { peer: addresses(side.other()), paths, ..self.connection.clone() };
        if side == Side::Right {
            connection.framing = self.right_framing.unwrap_or(connection.framing);
        }
        let framing = connection.framing;
        if framing == FramingConfig::Sealed {
            let preshared = self.preshared.map(|byte| PresharedKey::new([byte; KEY_LEN]));
            let public = side.other().private_key().public();
            connection.peer_keys = Some(PeerKeys { public, preshared, invitation: None });
        }
        HostConfig {
            endpoint: EndpointConfig {
                addresses: addresses(side).into_iter().map(Prefix::host).collect(),
                connections: vec![connection],
                secret: Secret::default(),
                keys: (framing == FramingConfig::Sealed).then(|| side.keys()),
            },
            sockets,
            learns,
            ..self.host.clone()
        }
    }

    /// The outer address of a side at a wire.
    fn outer(&self, side: Side, index: usize) -> IpAddr {
        let shared = side == Side::Right && self.one_server_address;
        let net = if shared { 0 } else { index as u8 + 1 };
        if self.paths[index].ipv6 {
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, net.into(), 0, 0, 0, 0, side.number().into()))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 0, net, side.number()))
        }
    }
}

fn inner(side: Side, ipv6: bool) -> IpAddr {
    if ipv6 {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, side.number().into()))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, 9, 0, side.number()))
    }
}
