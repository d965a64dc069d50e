//! Two endpoints connected by wires under the control of a test: nothing moves unless the test
//! requests it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::{
    Change, ConnectionConfig, ConnectionId, Drop, Endpoint, EndpointConfig, Event, FramingConfig,
    Held, Instant, Origin, PathConfig, PathId, PathState, PathStatus, PeerKind, Pins, Prefix,
    ReorderConfig, SchedulerConfig, Secret, Sink, SocketId, TransmitKind,
};

pub(crate) const CONNECTION: ConnectionId = ConnectionId(0);

/// Keeps everything that was delivered.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) delivered: Vec<Vec<u8>>,
    held: Vec<Option<Vec<u8>>>,
}

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.push(packet.to_vec());
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.held.push(Some(packet.to_vec()));
        Some(Held(self.held.len() as u32 - 1))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let packet = self.held[held.0 as usize].take().expect("a held packet is taken once");
        self.delivered.push(packet);
        self.delivered.last().map_or(0, Vec::len)
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) path: PathId,
    pub(crate) bytes: Vec<u8>,
}

/// One host: 10.9.0.1 or .2 inside, 10.N.0.1 or .2 outside on path N.
pub(crate) struct Host {
    pub(crate) number: u8,
    pub(crate) endpoint: Endpoint,
    pub(crate) inbox: Inbox,
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) left: Host,
    pub(crate) right: Host,
}

/// What a host is made from; the other one's is its mirror image.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) weights: Vec<u16>,
    pub(crate) key: Option<u32>,
    pub(crate) checksum: bool,
    pub(crate) sequence: bool,
    pub(crate) reorder: ReorderConfig,
    pub(crate) keepalive: Option<Duration>,
    pub(crate) dead_time: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            weights: vec![1, 1],
            key: None,
            checksum: false,
            sequence: true,
            reorder: ReorderConfig::default(),
            keepalive: Some(Duration::from_millis(500)),
            dead_time: Some(Duration::from_millis(1750)),
        }
    }
}

pub(crate) fn inner_address(host: u8) -> IpAddr {
    IpAddr::from([10, 9, 0, host])
}

pub(crate) fn inner_address_v6(host: u8) -> IpAddr {
    IpAddr::from([0xfd00, 9, 0, 0, 0, 0, 0, u16::from(host)])
}

pub(crate) fn outer_address(host: u8, path: u8) -> SocketAddr {
    SocketAddr::from(([10, path, 0, host], 4754))
}

/// The settings of one host, as the core takes them.
pub(crate) fn config(settings: &Settings, own: u8) -> EndpointConfig {
    let peer = 3 - own;
    let path = |(path, &weight): (usize, &u16)| PathConfig {
        socket: SocketId(path as u16),
        remote: outer_address(peer, path as u8),
        weight,
        weight_from_peer: false,
        rate: None,
        price: 0,
        priority: 0,
        pins: Pins::default(),
        refuses: 0,
        failover: None,
        keepalive: settings.keepalive,
        dead_time: settings.dead_time,
        status: PathStatus::Available,
    };
    EndpointConfig {
        addresses: [inner_address(own), inner_address_v6(own)].map(Prefix::host).to_vec(),
        connections: vec![ConnectionConfig {
            peer_kind: PeerKind::Mpt,
            framing: FramingConfig::Plain,
            peer: vec![inner_address(peer), inner_address_v6(peer)],
            networks: Vec::new(),
            selector: None,
            key: settings.key,
            checksum: settings.checksum,
            sequence: settings.sequence,
            scheduler: SchedulerConfig::Weighted,
            peer_keys: None,
            thin_acks: true,
            classes: Vec::new(),
            equalise: true,
            compete: true,
            breaker: true,
            repair: true,
            reorder: settings.reorder,
            paths: settings.weights.iter().enumerate().map(path).collect(),
        }],
        secret: Secret::default(),
        keys: None,
    }
}

impl Host {
    pub(crate) fn new(settings: &Settings, number: u8, now: Instant) -> Self {
        let endpoint = Endpoint::new(&config(settings, number), now).expect("good settings");
        Self { number, endpoint, inbox: Inbox::default() }
    }

    /// Offers an inner packet to the peer.
    pub(crate) fn send(&mut self, now: Instant, packet: &[u8]) -> Option<Sent> {
        let transmit = self.endpoint.handle_inner(now, packet)?;
        let mut bytes = vec![0; transmit.size()];
        self.endpoint.emit(now, &transmit, &mut bytes);
        Some(Sent { path: transmit.path, bytes })
    }

    /// The keepalives that are due, and the retransmissions.
    pub(crate) fn keepalives(&mut self, now: Instant) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let mut bytes = vec![0; transmit.size()];
            self.endpoint.emit(now, &transmit, &mut bytes);
            // The answer to an origin goes back by the socket that it came from, of which each path has its own.
            let is_reply = transmit.kind() == TransmitKind::Reply;
            let socket = self.endpoint.destination().0;
            let path = if is_reply { PathId(socket.0 as u8) } else { transmit.path };
            sent.push(Sent { path, bytes });
        }
        sent
    }

    /// Receives a datagram from the peer's address on that path.
    pub(crate) fn receive(&mut self, now: Instant, sent: &Sent) {
        self.receive_from(now, sent, outer_address(3 - self.number, sent.path.0));
    }

    /// Receives a datagram from any address at the socket of that path.
    pub(crate) fn receive_from(&mut self, now: Instant, sent: &Sent, remote: SocketAddr) {
        let origin = Origin { socket: SocketId(u16::from(sent.path.0)), remote, tos: 0 };
        self.endpoint.handle_datagram(now, origin, &mut sent.bytes.clone(), &mut self.inbox);
    }

    /// Changes something while it runs.
    pub(crate) fn change(&mut self, now: Instant, change: &Change) {
        self.endpoint.change(now, change, &mut self.inbox);
    }

    pub(crate) fn state(&self, path: u8) -> PathState {
        self.endpoint.connection(CONNECTION).path(PathId(path)).state
    }

    /// How often a reason was counted, by the endpoint or the connection.
    pub(crate) fn dropped(&self, reason: Drop) -> u64 {
        let connection = self.endpoint.connection(CONNECTION).stats();
        self.endpoint.drops().count(reason) + connection.drops.count(reason)
    }

    /// How often anything was dropped, for whatever reason.
    pub(crate) fn dropped_in_all(&self) -> u64 {
        let connection = self.endpoint.connection(CONNECTION).stats();
        self.endpoint.drops().total() + connection.drops.total()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// The numbers of the [`packet`]s delivered since the last call.
    pub(crate) fn numbers(&mut self) -> Vec<u32> {
        let number =
            |packet: Vec<u8>| u32::from_be_bytes([packet[20], packet[21], packet[22], packet[23]]);
        self.inbox.delivered.drain(..).map(number).collect()
    }
}

impl Pair {
    /// Two hosts whose paths are still probing.
    pub(crate) fn new(settings: &Settings) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1000);
        Self { now, left: Host::new(settings, 1, now), right: Host::new(settings, 2, now) }
    }

    /// Two hosts whose paths are up.
    pub(crate) fn up(settings: &Settings) -> Self {
        let mut pair = Self::new(settings);
        pair.exchange(|_, _| true);
        for host in [&pair.left, &pair.right] {
            for path in 0..settings.weights.len() as u8 {
                assert_eq!(host.state(path), PathState::Up);
            }
        }
        pair
    }

    /// Two hosts in a session of extended framing.
    pub(crate) fn in_session(settings: &Settings) -> Self {
        Self::in_session_with(settings, |_| ())
    }

    /// The same, where `change` changes the connection of each.
    pub(crate) fn in_session_with(
        settings: &Settings,
        change: impl Fn(&mut ConnectionConfig),
    ) -> Self {
        let mut pair = Self::new(settings);
        for host in [&mut pair.left, &mut pair.right] {
            let mut config = config(settings, host.number);
            config.connections[0].framing = FramingConfig::Extended;
            change(&mut config.connections[0]);
            config.secret = Secret::new([host.number; 16]);
            host.endpoint = Endpoint::new(&config, pair.now).expect("good settings");
        }
        pair.wait(Duration::from_secs(1), |_, _| true);
        assert!(pair.left.endpoint.connection(CONNECTION).has_session());
        pair
    }

    /// Exchanges keepalives until none is due; `passes` says which of a host's get through.
    pub(crate) fn exchange(&mut self, mut passes: impl FnMut(u8, PathId) -> bool) {
        loop {
            let from_left = self.left.keepalives(self.now);
            let from_right = self.right.keepalives(self.now);
            if from_left.is_empty() && from_right.is_empty() {
                break;
            }
            for sent in from_left.iter().filter(|sent| passes(1, sent.path)) {
                self.right.receive(self.now, sent);
            }
            for sent in from_right.iter().filter(|sent| passes(2, sent.path)) {
                self.left.receive(self.now, sent);
            }
        }
    }

    /// Lets time pass in small steps, with keepalives as `passes` says.
    pub(crate) fn wait(&mut self, time: Duration, mut passes: impl FnMut(u8, PathId) -> bool) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(50);
            for host in [&mut self.left, &mut self.right] {
                host.endpoint.handle_timeout(self.now, &mut host.inbox);
            }
            self.exchange(&mut passes);
        }
    }
}

/// An inner IPv4 packet from one host to the other, with a number in its payload.
pub(crate) fn packet(from: u8, number: u32) -> Vec<u8> {
    let mut packet = vec![0; 28];
    packet[0] = 0x45;
    packet[3] = 28;
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&[10, 9, 0, from]);
    packet[16..20].copy_from_slice(&[10, 9, 0, 3 - from]);
    packet[20..24].copy_from_slice(&number.to_be_bytes());
    packet
}

/// An inner IPv6 packet from one host to the other.
pub(crate) fn packet_v6(from: u8) -> Vec<u8> {
    let mut packet = vec![0; 48];
    packet[0] = 0x60;
    packet[5] = 8;
    packet[6] = 59;
    packet[7] = 64;
    packet[8..12].copy_from_slice(&[0xfd, 0, 0, 9]);
    packet[23] = from;
    packet[24..28].copy_from_slice(&[0xfd, 0, 0, 9]);
    packet[39] = 3 - from;
    packet
}
