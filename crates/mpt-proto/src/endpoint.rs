//! One end of a tunnel: a transmit side and a receive side, run in turn or moved apart.
//!
//! The caller passes in the time, the packets and a [`Sink`] for delivered packets, and polls for
//! datagrams to send and for the next deadline: see the crate's documentation for the order of
//! calls. Each side is implemented in its own file. This file joins them: it passes the messages of
//! the receive side to the transmit side, and every [`Change`] to both.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::change::Change;
use crate::config::{ConfigError, EndpointConfig};
use crate::connection::Connection;
use crate::demux::accept::{AcceptConfig, ConnectRequest};
use crate::demux::address::Origin;
use crate::demux::candidate::PathRequest;
use crate::event::Event;
use crate::id::PathId;
use crate::id::SocketId;
use crate::id::{ClientId, ConnectionId};
use crate::keys::HostKeys;
use crate::mismatch::Mismatch;
use crate::path::PathStatus;
use crate::rx::clients::{ClientConfig, ClientRequest};
use crate::rx::side::ReceiveSide;
use crate::sink::{Held, Sink};
use crate::stats::{Drops, Traffic};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::tx::side::TransmitSide;
use crate::tx::transmit::{Taken, Transmit};

/// One end of a tunnel.
#[derive(Debug)]
pub struct Endpoint {
    tx: TransmitSide,
    rx: ReceiveSide,
}

impl Endpoint {
    /// Makes an endpoint whose paths begin to probe at `now`. Its connections are numbered from 0 in
    /// the order of the settings.
    ///
    /// # Errors
    ///
    /// If the settings contradict each other or exceed a limit.
    pub fn new(config: &EndpointConfig, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let tx = TransmitSide::new(config.addresses.clone(), config.secret);
        let mut endpoint = Self {
            tx,
            rx: ReceiveSide::new(&config.addresses, config.secret, config.keys.as_ref()),
        };
        for (connection, config) in (0..).map(ConnectionId).zip(&config.connections) {
            let config = Arc::new(config.clone());
            let change = Change::AddConnection { connection, config, accepted_by: None };
            endpoint.change(now, &change, &mut Nowhere);
        }
        Ok(endpoint)
    }

    /// Moves the sides apart. The caller passes the messages on from then on, and tells both what
    /// is wanted of a path.
    pub fn split(self) -> (TransmitSide, ReceiveSide) {
        (self.tx, self.rx)
    }

    /// See [`TransmitSide::handle_inner`].
    ///
    /// A packet that has to wait is kept; [`poll_transmit`](Self::poll_transmit) gives it out.
    pub fn handle_inner<'a>(&mut self, now: Instant, packet: &'a [u8]) -> Option<Transmit<'a>> {
        let sent = self.tx.handle_inner(now, packet);
        if sent.is_some() {
            return sent;
        }
        match self.tx.take_offered(packet)? {
            Taken::Sent(transmit) => Some(transmit),
            Taken::Waits(waiting) => {
                self.tx.keep(&waiting, |packet, place| {
                    place.copy_from_slice(packet);
                    false
                });
                None
            }
        }
    }

    /// Writes a datagram in place as [`TransmitSide::emit`] does, and counts it as sent: for callers whose
    /// network takes everything.
    ///
    /// # Panics
    ///
    /// If `datagram` is not [`Transmit::size`] bytes long.
    pub fn emit(&mut self, now: Instant, transmit: &Transmit<'_>, datagram: &mut [u8]) {
        self.tx.emit(now, transmit, datagram, |packet, place| place.copy_from_slice(packet));
        let sent = Traffic { packets: 1, bytes: datagram.len() as u64 };
        self.tx.on_sent(transmit.connection, transmit.path, transmit.kind(), sent, None);
    }

    /// Takes a datagram from the network. Inner packets whose turn it is go to `sink`.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        origin: Origin,
        datagram: &mut [u8],
        sink: &mut impl Sink,
    ) {
        self.rx.arrivals(origin).handle_datagram(now, datagram, sink);
        self.carry_messages(now);
    }

    /// Takes datagrams that this host reads at once, each with its origin and how long it has waited. The transmit side
    /// learns what follows from them after the last one, as it does where it runs on another thread.
    pub fn handle_batch(
        &mut self,
        now: Instant,
        batch: impl IntoIterator<Item = (Origin, Duration, Vec<u8>)>,
        sink: &mut impl Sink,
    ) {
        for (origin, waited, mut datagram) in batch {
            let mut arrivals = self.rx.arrivals(origin).waited(now, waited);
            arrivals.handle_datagram(now, &mut datagram, sink);
        }
        self.carry_messages(now);
    }

    /// Does what is due at `now`; held packets whose time is over go to `sink`.
    pub fn handle_timeout(&mut self, now: Instant, sink: &mut impl Sink) {
        self.rx.handle_timeout(now, sink);
        self.carry_messages(now);
    }

    /// See [`TransmitSide::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'static>> {
        self.tx.poll_transmit(now)
    }

    /// See [`TransmitSide::set_local_len`].
    pub fn set_local_len(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        len: usize,
    ) {
        self.tx.set_local_len(now, connection, path, len);
    }

    /// See [`TransmitSide::destination`].
    pub fn destination(&self) -> (SocketId, SocketAddr, Option<IpAddr>) {
        self.tx.destination()
    }

    /// When to call [`Endpoint::handle_timeout`] and [`Endpoint::poll_transmit`] next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        Deadline::earlier(self.rx.poll_timeout(), self.tx.poll_timeout())
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.rx.poll_event().or_else(|| self.tx.poll_event())
    }

    /// See [`ReceiveSide::poll_connect_request`].
    pub fn poll_connect_request(&mut self) -> Option<ConnectRequest> {
        self.rx.poll_connect_request()
    }

    /// See [`ReceiveSide::poll_path_request`].
    pub fn poll_path_request(&mut self) -> Option<PathRequest> {
        self.rx.poll_path_request()
    }

    /// See [`ReceiveSide::poll_mismatch`].
    pub fn poll_mismatch(&mut self) -> Option<Mismatch> {
        self.rx.poll_mismatch()
    }

    /// See [`ReceiveSide::poll_client_request`].
    pub fn poll_client_request(&mut self) -> Option<ClientRequest> {
        self.rx.poll_client_request()
    }

    /// See [`ReceiveSide::poll_refused_invitation`].
    pub fn poll_refused_invitation(&mut self) -> Option<SocketAddr> {
        self.rx.poll_refused_invitation()
    }

    /// See [`ReceiveSide::set_keys`].
    pub fn set_keys(&mut self, keys: &HostKeys) {
        self.rx.set_keys(keys);
    }

    /// See [`ReceiveSide::add_clients`].
    pub fn add_clients(&mut self, clients: &[ClientConfig]) {
        self.rx.add_clients(clients);
    }

    /// See [`ReceiveSide::remove_clients`].
    pub fn remove_clients(&mut self, clients: &HashSet<ClientId>) {
        self.rx.remove_clients(clients);
    }

    /// See [`ReceiveSide::set_accepts`].
    pub fn set_accepts(&mut self, accepts: &[AcceptConfig]) {
        self.rx.set_accepts(accepts);
    }

    /// Changes something while it runs. What is held for a connection that ends goes to `sink`.
    pub fn change(&mut self, now: Instant, change: &Change, sink: &mut impl Sink) {
        self.tx.change(now, change);
        self.rx.change(now, change, sink);
        self.carry_messages(now);
    }

    /// Switches a path off or makes it available again: [`Change::SetStatus`].
    pub fn set_path_status(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        status: PathStatus,
        sink: &mut impl Sink,
    ) {
        self.change(now, &Change::SetStatus { connection, path, status }, sink);
    }

    /// Switches all paths off, so that the peers learn from the keepalives still to be polled that
    /// this end is going away.
    pub fn close(&mut self, now: Instant, sink: &mut impl Sink) {
        self.tx.close(now);
        self.rx.close(now, sink);
        self.carry_messages(now);
    }

    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, Connection<'_>)> {
        // A connection that is about to end has a transmit half only.
        let both = |(id, tx)| Some((id, Connection::new(tx, self.rx.find(id)?)));
        self.tx.connections().filter_map(both)
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

    fn carry_messages(&mut self, now: Instant) {
        while let Some((connection, message)) = self.rx.poll_message() {
            self.tx.handle_message(now, connection, message);
        }
    }
}

/// The sink of connections that have not received anything.
struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: &[u8]) {}

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        0
    }
}

#[cfg(test)]
mod tests;
