//! Settings, as bytes choose them.
//!
//! Both hosts begin with one connection that they agree on. What is changed later is changed at one of
//! them only, so they may come to disagree about everything.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::wire::flow::Flow;
use mpt_proto::wire::gre::{Header, Protocol};
use mpt_proto::{
    ConnectionConfig, ConnectionId, EndpointConfig, FramingConfig, Late, Origin, PathConfig,
    PathStatus, PeerKind, Pins, PortRanges, Prefix, ReorderConfig, SchedulerConfig, Secret,
    Selector, Seq, SocketId,
};

use super::packet;
use crate::input::Input;

/// How many connections a host can have at one time.
pub(super) const CONNECTIONS: usize = 4;

/// The numbers that paths can have: neighbours, and the last.
pub(super) const PATHS: [u8; 6] = [0, 1, 2, 3, 4, 63];

/// A pair of outer addresses. Its number is that of the socket at both ends.
pub(super) const LANES: usize = 6;

#[derive(Clone)]
pub(super) struct Settings {
    key: Option<u32>,
    checksum: bool,
    pub(super) sequence: bool,
    reorder: ReorderConfig,
    weights: Vec<u16>,
    framing: FramingConfig,
    /// Whether the second host learns its paths.
    learns: bool,
    keepalive: Option<Duration>,
    dead_time: Option<Duration>,
    /// What the sink can keep.
    pub(super) room: usize,
}

impl Settings {
    pub(super) fn read(input: &mut Input<'_>) -> Self {
        let flags = input.byte();
        let flag = |bit: u8| flags >> bit & 1 != 0;
        let mut settings = Self {
            key: flag(0).then_some(7),
            checksum: flag(1),
            sequence: !flag(2),
            reorder: ReorderConfig {
                evidence: false,
                early_release: !flag(3),
                late: if flag(4) { Late::Drop } else { Late::Deliver },
                window: window(input),
                max_delay: max_delay(input),
            },
            keepalive: (!flag(5)).then(|| time(input)),
            dead_time: (!flag(6)).then(|| time(input) * 7 / 2),
            room: if flag(7) { input.index(8) } else { 1 << 14 },
            weights: Vec::new(),
            framing: FramingConfig::Plain,
            learns: false,
        };
        let choice = input.byte();
        settings.weights = (0..=choice % 4).map(|_| weight(input)).collect();
        settings.framing = match choice >> 4 & 0x3 {
            0 => FramingConfig::Plain,
            1 => FramingConfig::Auto,
            _ => FramingConfig::Extended,
        };
        settings.learns = choice >> 4 & 0x3 == 3;
        settings.reorder.evidence = choice & 0x40 != 0 && settings.has_sessions();
        settings
    }

    /// Whether there can be sessions.
    pub(super) fn has_sessions(&self) -> bool {
        self.framing != FramingConfig::Plain
    }

    /// What a path is like that a host learns; `None` if it learns none.
    pub(super) fn learned_path(&self, own: usize) -> Option<PathConfig> {
        let learns = own == 1 && self.learns;
        learns.then(|| self.plain_path(own, ConnectionId(0), 0))
    }

    /// Whether a datagram always belongs to the connection that it was sent on. Without keys it may
    /// be taken for another one's if its own does not exist.
    pub(super) fn tells_connections_apart(&self) -> bool {
        self.key.is_some()
    }

    /// What a host begins with, after so many starts.
    pub(super) fn config(&self, own: usize, starts: u8) -> EndpointConfig {
        let first = ConnectionId(0);
        let paths = self
            .weights
            .iter()
            .zip(0..)
            .map(|(&weight, lane)| PathConfig { weight, ..self.plain_path(own, first, lane) });
        let mut connection = self.plain_connection(own, first);
        if self.learned_path(own).is_none() {
            connection.paths = paths.collect();
        }
        let addresses = [false, true].map(|v6| packet::address(own, v6));
        EndpointConfig {
            addresses: addresses.map(Prefix::host).to_vec(),
            connections: vec![connection],
            keys: None,
            secret: Secret::new([own as u8 + 1, starts, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        }
    }

    /// Any connection to the peer, with one path.
    pub(super) fn connection(
        &self,
        own: usize,
        connection: ConnectionId,
        input: &mut Input<'_>,
    ) -> ConnectionConfig {
        let path = self.path(own, connection, input);
        let mut config =
            ConnectionConfig { paths: vec![path], ..self.plain_connection(own, connection) };
        vary_connection(&mut config, own, input);
        config
    }

    /// Any path of a connection.
    pub(super) fn path(
        &self,
        own: usize,
        connection: ConnectionId,
        input: &mut Input<'_>,
    ) -> PathConfig {
        let mut path = self.plain_path(own, connection, input.index(LANES) as u8);
        vary_path(&mut path, own, connection, input);
        path
    }

    fn plain_connection(&self, own: usize, connection: ConnectionId) -> ConnectionConfig {
        ConnectionConfig {
            peer_kind: PeerKind::Mpt,
            framing: self.framing,
            peer: [false, true].map(|v6| packet::address(1 - own, v6)).to_vec(),
            networks: Vec::new(),
            selector: None,
            key: self.key_of(connection),
            checksum: self.checksum,
            sequence: self.sequence,
            scheduler: SchedulerConfig::Weighted,
            peer_keys: None,
            thin_acks: true,
            classes: Vec::new(),
            equalise: true,
            compete: true,
            breaker: true,
            repair: true,
            reorder: self.reorder,
            paths: Vec::new(),
        }
    }

    fn plain_path(&self, own: usize, connection: ConnectionId, lane: u8) -> PathConfig {
        PathConfig {
            socket: SocketId(u16::from(lane)),
            remote: outer_address(1 - own, connection, lane),
            weight: 1,
            weight_from_peer: false,
            rate: None,
            price: 0,
            priority: 0,
            pins: Pins::default(),
            refuses: 0,
            failover: None,
            keepalive: self.keepalive,
            dead_time: self.dead_time,
            status: PathStatus::Available,
        }
    }

    fn key_of(&self, connection: ConnectionId) -> Option<u32> {
        self.key.map(|key| key + u32::from(connection.0))
    }

    /// Where a host's datagrams may come from: the address of one of its paths, with another port perhaps,
    /// or a stranger's.
    pub(super) fn origin(&self, from: usize, input: &mut Input<'_>) -> Origin {
        let choice = input.byte();
        let lane = input.index(self.weights.len()) as u8;
        let mut origin = usual_origin(from, ConnectionId(0), lane, input.byte());
        match choice {
            0..=7 => origin.remote = SocketAddr::from(([192, 0, 2, choice], 4754)),
            8..=15 => origin.socket = SocketId(u16::from(choice)),
            16..=63 => origin.remote.set_port(1000 + u16::from(choice)),
            _ => {}
        }
        origin
    }

    /// One of the lanes that are used from the beginning.
    pub(super) fn lane(&self, input: &mut Input<'_>) -> u8 {
        input.index(self.weights.len()) as u8
    }

    /// A datagram such as a host sends it on a connection.
    pub(super) fn datagram(
        &self,
        connection: ConnectionId,
        sequence: u32,
        packet: &[u8],
    ) -> Vec<u8> {
        let header = Header {
            protocol: if packet[0] >> 4 == 4 { Protocol::Ipv4 } else { Protocol::Ipv6 },
            checksum: self.checksum,
            key: self.key_of(connection),
            sequence: self.sequence.then_some(Seq::new(sequence)),
        };
        let mut datagram = vec![0; header.size()];
        datagram.extend_from_slice(packet);
        header.emit(&mut datagram);
        datagram
    }
}

/// What of a connection can change while it runs.
pub(super) fn vary_connection(config: &mut ConnectionConfig, own: usize, input: &mut Input<'_>) {
    let choice = input.byte();
    if choice & 0x01 != 0 {
        config.reorder.window = window(input);
    }
    if choice & 0x02 != 0 {
        config.reorder.max_delay = max_delay(input);
    }
    config.reorder.early_release ^= choice & 0x04 != 0;
    if choice & 0x08 != 0 {
        config.reorder.late =
            if config.reorder.late == Late::Drop { Late::Deliver } else { Late::Drop };
    }
    if choice & 0x10 != 0 {
        config.networks = networks(1 - own, input);
    }
    if choice & 0x20 != 0 {
        config.selector = selector(input);
    }
    if choice & 0x40 != 0 {
        config.scheduler =
            if input.flag() { SchedulerConfig::Flow } else { SchedulerConfig::Weighted };
    }
    config.reorder.evidence ^= choice & 0x80 != 0 && config.framing != FramingConfig::Plain;
}

/// What of a path can change while it runs: everything.
pub(super) fn vary_path(
    path: &mut PathConfig,
    own: usize,
    connection: ConnectionId,
    input: &mut Input<'_>,
) {
    let choice = input.byte();
    if choice & 0x01 != 0 {
        path.weight = weight(input);
    }
    if choice & 0x02 != 0 {
        path.priority = input.byte() % 3;
    }
    if choice & 0x04 != 0 {
        path.pins = Pins { udp_dst: ports(input), ..Pins::default() };
    }
    if choice & 0x08 != 0 {
        path.keepalive = input.flag().then(|| time(input));
    }
    if choice & 0x10 != 0 {
        path.dead_time = input.flag().then(|| time(input) * 2);
    }
    if choice & 0x20 != 0 {
        path.status = status(input);
    }
    if choice & 0x40 != 0 {
        let lane = input.index(LANES) as u8;
        path.socket = SocketId(u16::from(lane));
        path.remote = outer_address(1 - own, connection, lane);
    }
    if choice & 0x80 != 0 {
        path.weight_from_peer ^= true;
    }
}

pub(super) fn status(input: &mut Input<'_>) -> PathStatus {
    if input.flag() { PathStatus::Off } else { PathStatus::Available }
}

/// The source of a host's datagrams without a translator.
fn usual_origin(from: usize, connection: ConnectionId, lane: u8, tos: u8) -> Origin {
    let remote = outer_address(from, connection, lane);
    Origin { socket: SocketId(u16::from(lane)), remote, tos }
}

pub(super) fn outer_address(host: usize, connection: ConnectionId, lane: u8) -> SocketAddr {
    SocketAddr::from(([10, lane, 0, host as u8 + 1], 4754 + connection.0))
}

/// Ranges of addresses around those that packets are sent to.
fn networks(behind: usize, input: &mut Input<'_>) -> Vec<Prefix> {
    let [peer, peer_v6] = [false, true].map(|v6| packet::address(behind, v6));
    let site = packet::site(behind);
    let everything = IpAddr::from([0, 0, 0, 0]);
    let all = [(site, 24), (site, 16), (peer, 24), (everything, 0), (peer_v6, 16), (site, 32)];
    let choice = input.byte();
    let chosen = all.iter().enumerate().filter(|(place, _)| choice >> place & 1 != 0);
    chosen.filter_map(|(_, &(address, bits))| Prefix::new(address, bits)).collect()
}

fn selector(input: &mut Input<'_>) -> Option<Selector> {
    let protocols = [None, Some(Flow::UDP), Some(Flow::TCP)];
    let protocol = protocols[input.index(protocols.len())];
    input.flag().then(|| Selector { protocol, ports: ports(input) })
}

fn ports(input: &mut Input<'_>) -> PortRanges {
    let choice = input.byte();
    let chosen = packet::PORTS.iter().enumerate().filter(|(place, _)| choice >> place & 1 != 0);
    PortRanges::new(chosen.map(|(_, &port)| port..=port)).unwrap_or_default()
}

fn window(input: &mut Input<'_>) -> u32 {
    let windows = [0, 1, 4, 16, 64, 300, 4096, 10_000];
    windows[input.index(windows.len())]
}

fn max_delay(input: &mut Input<'_>) -> Duration {
    let delays = [0, 1, 10, 100, 1000];
    Duration::from_millis(delays[input.index(delays.len())])
}

fn time(input: &mut Input<'_>) -> Duration {
    let times = [100, 500, 1000];
    Duration::from_millis(times[input.index(times.len())])
}

fn weight(input: &mut Input<'_>) -> u16 {
    1 + u16::from(input.byte() % 4)
}
