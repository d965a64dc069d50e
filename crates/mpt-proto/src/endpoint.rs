//! One end of a tunnel: a transmit side and a receive side, run in turn or moved apart.
//!
//! The caller brings the time, the packets and a [`Sink`] for what comes out, and asks what is to
//! be sent and when to come back: see the crate's documentation for the order of calls. Everything
//! either side does is in its own file. Here is how both are made from one configuration, and what
//! joins them: the notes of the receive side are carried to the transmit side, the operator's wishes
//! to both.

use std::net::IpAddr;
use std::time::Duration;

use crate::config::{
    ConfigError, ConnectionConfig, EndpointConfig, MAX_PATHS, MAX_WEIGHT, MAX_WINDOW, PathConfig,
    Prefix,
};
use crate::connection::{Connection, ConnectionId};
use crate::event::Event;
use crate::origin::{Candidate, Origin, Origins};
use crate::path::{PathId, PathStatus};
use crate::receive::ReceiveHalf;
use crate::receive_side::ReceiveSide;
use crate::route::Routes;
use crate::sink::Sink;
use crate::stats::Drops;
use crate::time::Instant;
use crate::timer::Deadline;
use crate::transmit::TransmitHalf;
use crate::transmit_side::{Transmit, TransmitSide};

/// One end of a tunnel.
#[derive(Debug)]
pub struct Endpoint {
    tx: TransmitSide,
    rx: ReceiveSide,
}

impl Endpoint {
    /// Makes an endpoint whose paths begin to probe at `now`.
    ///
    /// # Errors
    ///
    /// If the settings contradict each other or exceed a limit.
    pub fn new(config: &EndpointConfig, now: Instant) -> Result<Self, ConfigError> {
        let mut parts = Parts::default();
        for connection in &config.connections {
            parts.add_connection(connection, &config.addresses, now)?;
        }
        let tx = TransmitSide::new(parts.tx, parts.routes);
        let mut endpoint = Self { tx, rx: ReceiveSide::new(parts.rx, parts.origins) };
        endpoint.carry_notes(now);
        Ok(endpoint)
    }

    /// Moves the sides apart. Whoever has them carries the notes from then on, and tells both what
    /// is wanted of a path.
    pub fn split(self) -> (TransmitSide, ReceiveSide) {
        (self.tx, self.rx)
    }

    /// See [`TransmitSide::handle_inner`].
    pub fn handle_inner<'a>(&mut self, packet: &'a [u8]) -> Option<Transmit<'a>> {
        self.tx.handle_inner(packet)
    }

    /// Takes a datagram from the network. Inner packets whose turn it is go to `sink`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        origin: Origin,
        datagram: &[u8],
        sink: &mut impl Sink,
    ) {
        self.rx.arrivals(origin).handle_datagram(now, datagram, sink);
        self.carry_notes(now);
    }

    /// Does what is due at `now`; held packets whose time is over go to `sink`.
    pub fn handle_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        self.rx.handle_timeout(now, sink);
        self.carry_notes(now);
    }

    /// See [`TransmitSide::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        self.tx.poll_transmit(now)
    }

    /// When to call [`Endpoint::handle_timeout`] and [`Endpoint::poll_transmit`] next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        Deadline::earlier(self.rx.poll_timeout(), self.tx.poll_timeout())
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.rx.poll_event().or_else(|| self.tx.poll_event())
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
        self.tx.set_path_status(now, connection, path, status);
        self.rx.set_path_status(connection, path, status, sink);
        self.carry_notes(now);
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
        self.rx.set_path_fits(connection, path, fits, sink);
        self.carry_notes(now);
    }

    /// Switches all paths off, so that the peers learn from the keepalives still to be polled that
    /// this end is going away.
    pub fn close(&mut self, now: Instant, sink: &mut impl Sink) {
        self.tx.close(now);
        self.rx.close(sink);
        self.carry_notes(now);
    }

    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, Connection<'_>)> {
        let halves = self.tx.connections().iter().zip(self.rx.connections());
        (0..).map(ConnectionId).zip(halves.map(|(tx, rx)| Connection::new(tx, rx)))
    }

    /// One connection.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn connection(&self, id: ConnectionId) -> Connection<'_> {
        Connection::new(self.tx.connection(id), self.rx.connection(id))
    }

    /// What was dropped before a connection was known.
    pub fn drops(&self) -> Drops {
        let mut drops = *self.tx.drops();
        drops += *self.rx.drops();
        drops
    }

    fn carry_notes(&mut self, now: Instant) {
        while let Some((connection, note)) = self.rx.poll_note() {
            self.tx.handle_note(now, connection, note);
        }
    }
}

/// An endpoint in the making.
#[derive(Default)]
struct Parts {
    tx: Vec<TransmitHalf>,
    rx: Vec<ReceiveHalf>,
    routes: Routes,
    origins: Origins,
}

impl Parts {
    fn add_connection(
        &mut self,
        config: &ConnectionConfig,
        local: &[Prefix],
        now: Instant,
    ) -> Result<(), ConfigError> {
        let number = self.tx.len();
        let id = ConnectionId(number as u16);
        check(config, number)?;
        let addresses =
            config.peer.iter().find_map(|peer| Some((own_address(local, *peer)?, *peer)));
        let addresses = addresses.ok_or(ConfigError::NoTunnelAddress { connection: number })?;
        for peer in &config.peer {
            if !self.routes.add_peer(*peer, id) {
                return Err(ConfigError::SamePeer { connection: number });
            }
        }
        for network in &config.networks {
            self.routes.add_network(*network, id);
        }
        for (index, path) in config.paths.iter().enumerate() {
            let (port, key) = (path.remote.port(), config.key);
            let candidate = Candidate { port, key, connection: id, path: PathId(index as u8) };
            if !self.origins.add(path.socket, path.remote.ip(), candidate) {
                return Err(ConfigError::SamePath { connection: number, path: index });
            }
        }
        let local: Vec<IpAddr> = local.iter().map(Prefix::address).collect();
        self.tx.push(TransmitHalf::new(config, addresses, now));
        self.rx.push(ReceiveHalf::new(id, config, &local));
        Ok(())
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
