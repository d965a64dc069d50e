//! One end of a tunnel: inner destination to connection, datagram to connection and path.
//!
//! The caller brings the time, the packets and a [`Sink`] for what comes out, and asks what is to
//! be sent and when to come back: see the crate's documentation for the order of calls.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::config::{
    ConfigError, ConnectionConfig, EndpointConfig, MAX_PATHS, MAX_WEIGHT, MAX_WINDOW, PathConfig,
    Prefix, SocketId,
};
use crate::connection::Connection;
use crate::event::{Event, Events};
use crate::path::{PathId, PathStatus};
use crate::receive::Arrival;
use crate::sink::Sink;
use crate::stats::{Drop, Drops};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::wire::gre::{self, Header};
use crate::wire::{inner, keepalive};

/// The number of a connection within its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u16);

impl ConnectionId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The socket it arrived at.
    pub socket: SocketId,
    /// The address and port of its sender; IPv4 addresses never in their mapped form.
    pub remote: SocketAddr,
    /// The type of service or traffic class with which it arrived.
    pub tos: u8,
}

/// A datagram to send on a path.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// The path to send it on.
    pub path: PathId,
    /// The type of service or traffic class to send it with.
    pub tos: u8,
    header: Header,
    payload: &'a [u8],
}

impl Transmit<'_> {
    /// The length of the datagram.
    pub const fn size(&self) -> usize {
        self.header.size() + self.payload.len()
    }

    /// Writes the datagram in place; the payload is copied once, here.
    ///
    /// # Panics
    ///
    /// If `datagram` is not [`Transmit::size`] bytes long.
    pub fn emit(&self, datagram: &mut [u8]) {
        datagram[self.header.size()..].copy_from_slice(self.payload);
        self.header.emit(datagram);
    }
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Endpoint {
    connections: Vec<Connection>,
    /// The paths by which a remote address can reach a socket. Usually one.
    candidates: HashMap<(SocketId, IpAddr), Vec<Candidate>>,
    /// The connection of each peer's tunnel address.
    peers: HashMap<IpAddr, ConnectionId>,
    /// The networks behind the peers, longest prefix first.
    networks: Vec<(Prefix, ConnectionId)>,
    events: Events,
    drops: Drops,
    /// The last keepalive that was polled.
    control: [u8; keepalive::LEN],
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    port: u16,
    key: Option<u32>,
    connection: ConnectionId,
    path: PathId,
}

impl Endpoint {
    /// Makes an endpoint whose paths begin to probe at `now`.
    ///
    /// # Errors
    ///
    /// If the settings contradict each other or exceed a limit.
    pub fn new(config: &EndpointConfig, now: Instant) -> Result<Self, ConfigError> {
        let mut endpoint = Self {
            connections: Vec::new(),
            candidates: HashMap::new(),
            peers: HashMap::new(),
            networks: Vec::new(),
            events: Events::default(),
            drops: Drops::default(),
            control: [0; keepalive::LEN],
        };
        for connection in &config.connections {
            endpoint.add_connection(connection, &config.addresses, now)?;
        }
        endpoint.networks.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.bits()));
        Ok(endpoint)
    }

    fn add_connection(
        &mut self,
        config: &ConnectionConfig,
        local: &[Prefix],
        now: Instant,
    ) -> Result<(), ConfigError> {
        let number = self.connections.len();
        let id = ConnectionId(number as u16);
        check(config, number)?;
        let addresses =
            config.peer.iter().find_map(|peer| Some((own_address(local, *peer)?, *peer)));
        let addresses = addresses.ok_or(ConfigError::NoTunnelAddress { connection: number })?;
        for peer in &config.peer {
            if self.peers.insert(*peer, id).is_some() {
                return Err(ConfigError::SamePeer { connection: number });
            }
        }
        self.networks.extend(config.networks.iter().map(|network| (*network, id)));
        for (index, path) in config.paths.iter().enumerate() {
            let remote = path.remote.ip();
            let candidates = self.candidates.entry((path.socket, remote)).or_default();
            let (port, key) = (path.remote.port(), config.key);
            if candidates.iter().any(|other| other.port == port && other.key == key) {
                return Err(ConfigError::SamePath { connection: number, path: index });
            }
            let path = PathId(index as u8);
            candidates.push(Candidate { port, key, connection: id, path });
        }
        let events = &mut self.events;
        let local: Vec<IpAddr> = local.iter().map(Prefix::address).collect();
        self.connections.push(Connection::new(id, config, addresses, &local, now, events));
        Ok(())
    }

    /// Takes an inner packet from the tunnel interface, and decides where it goes. `None` if it was
    /// dropped; then it is counted.
    pub fn handle_inner<'a>(&mut self, packet: &'a [u8]) -> Option<Transmit<'a>> {
        let Some(inner) = inner::parse(packet) else {
            self.drops.add(Drop::InnerMalformed);
            return None;
        };
        let Some(id) = self.route(inner.destination) else {
            self.drops.add(Drop::NoRoute);
            return None;
        };
        let connection = &mut self.connections[id.index()];
        let (path, header) = connection.transmit(inner.protocol, inner.len)?;
        let payload = &packet[..inner.len];
        Some(Transmit { connection: id, path, tos: inner.tos, header, payload })
    }

    /// Takes a datagram from the network. Inner packets whose turn it is go to `sink`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        origin: Origin,
        datagram: &[u8],
        sink: &mut impl Sink,
    ) {
        match gre::parse(datagram) {
            Err(reason) => self.drops.add(reason),
            Ok(parsed) => match self.candidate(origin, parsed.header.key) {
                Err(reason) => self.drops.add(reason),
                Ok(Candidate { connection, path, .. }) => {
                    let connection = &mut self.connections[connection.index()];
                    let events = &mut self.events;
                    let arrival = Arrival { path, tos: origin.tos, len: datagram.len() };
                    connection.receive(now, arrival, &parsed, sink, events);
                }
            },
        }
    }

    /// Does what is due at `now`; held packets whose time is over go to `sink`.
    pub fn handle_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        for connection in &mut self.connections {
            connection.handle_timeout(now, sink, &mut self.events);
        }
    }

    /// The next datagram that the endpoint itself has to send. To be asked until `None`, after
    /// every other call that changes it.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let (index, (path, header, message)) = self
            .connections
            .iter_mut()
            .enumerate()
            .find_map(|(index, connection)| Some((index, connection.poll_keepalive(now)?)))?;
        self.control = message;
        let connection = ConnectionId(index as u16);
        Some(Transmit { connection, path, tos: 0, header, payload: &self.control })
    }

    /// When to call [`Endpoint::handle_timeout`] and [`Endpoint::poll_transmit`] next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.connections.iter().map(Connection::deadline).fold(None, Deadline::earlier)
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Switches a path off or makes it available again.
    ///
    /// # Panics
    ///
    /// If there is no such connection or path.
    pub fn set_path_status(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        status: PathStatus,
        sink: &mut impl Sink,
    ) {
        let connection = &mut self.connections[connection.index()];
        connection.set_status(path, status, now, sink, &mut self.events);
    }

    /// Says whether a path can carry inner packets of 1280 bytes, the least an IPv6 link may offer.
    ///
    /// # Panics
    ///
    /// If there is no such connection or path.
    pub fn set_path_fits(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        fits: bool,
        sink: &mut impl Sink,
    ) {
        let connection = &mut self.connections[connection.index()];
        connection.set_fits(path, fits, now, sink, &mut self.events);
    }

    /// Switches all paths off, so that the peers learn from the keepalives still to be polled that
    /// this end is going away.
    pub fn close(&mut self, now: Instant, sink: &mut impl Sink) {
        for connection in &mut self.connections {
            for path in connection.paths() {
                connection.set_status(path, PathStatus::Off, now, sink, &mut self.events);
            }
        }
    }

    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        (0..).map(ConnectionId).zip(&self.connections)
    }

    /// One connection.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn connection(&self, id: ConnectionId) -> &Connection {
        &self.connections[id.index()]
    }

    /// What was dropped before a connection was known.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    fn route(&self, destination: IpAddr) -> Option<ConnectionId> {
        let network = || self.networks.iter().find(|(network, _)| network.contains(destination));
        self.peers.get(&destination).copied().or_else(|| Some(network()?.1))
    }

    /// The path a datagram came by. The remote port only chooses between several: RFC 8086 lets a
    /// sender vary it, and the original MPT does not look at it.
    fn candidate(&self, origin: Origin, key: Option<u32>) -> Result<Candidate, Drop> {
        let candidates = self.candidates.get(&(origin.socket, origin.remote.ip()));
        let candidates = candidates.ok_or(Drop::UnknownSource)?;
        let mut fitting = candidates.iter().filter(|candidate| candidate.key == key);
        let first = fitting.next().ok_or(Drop::GreKey)?;
        let Some(second) = fitting.next() else {
            return Ok(*first);
        };
        [first, second]
            .into_iter()
            .chain(fitting)
            .find(|candidate| candidate.port == origin.remote.port())
            .copied()
            .ok_or(Drop::UnknownSource)
    }
}

/// The address by which a peer knows this end.
fn own_address(local: &[Prefix], peer: IpAddr) -> Option<IpAddr> {
    let same_version = || local.iter().filter(|own| own.address().is_ipv4() == peer.is_ipv4());
    let own = same_version().find(|own| own.contains(peer)).or_else(|| same_version().next())?;
    Some(own.address())
}

fn check(config: &ConnectionConfig, connection: usize) -> Result<(), ConfigError> {
    if config.paths.is_empty() {
        return Err(ConfigError::NoPath { connection });
    }
    if config.paths.len() > MAX_PATHS {
        return Err(ConfigError::TooManyPaths { connection });
    }
    if config.reorder.window > MAX_WINDOW {
        return Err(ConfigError::Window { connection });
    }
    let zero = |path: &PathConfig| {
        [path.keepalive, path.dead_time].iter().flatten().any(Duration::is_zero)
    };
    if let Some(path) = config.paths.iter().position(zero) {
        return Err(ConfigError::ZeroTime { connection, path });
    }
    match config.paths.iter().position(|path| !(1..=MAX_WEIGHT).contains(&path.weight)) {
        Some(path) => Err(ConfigError::Weight { connection, path }),
        None => Ok(()),
    }
}
