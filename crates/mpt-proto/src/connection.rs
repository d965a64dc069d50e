//! One peer: a transmit half and a receive half, run in turn.
//!
//! Everything either half does is in its own file. Here is only what joins them: the notes of the
//! receive half are carried to the transmit half, and the operator's wishes to both.

use std::net::IpAddr;

use crate::config::{ConnectionConfig, ReorderConfig};
use crate::endpoint::ConnectionId;
use crate::event::{Event, Events};
use crate::path::{PathId, PathState, PathStatus};
use crate::receive::{Arrival, Note, ReceiveHalf};
use crate::sequence::Seq;
use crate::sink::{Held, Sink};
use crate::stats::{ConnectionStats, PathStats};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::transmit::TransmitHalf;
use crate::wire::gre::{Datagram, Header, Protocol};
use crate::wire::keepalive;

/// The association with one peer.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    tx: TransmitHalf,
    rx: ReceiveHalf,
    paths: usize,
}

/// What one path is and has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// What it is.
    pub state: PathState,
    /// Its share of packets.
    pub weight: u16,
    /// When it was last heard.
    pub last_heard: Option<Instant>,
    /// What it has carried.
    pub stats: PathStats,
}

impl Connection {
    /// `addresses` are this end's and the peer's tunnel address for keepalives; `local` are all of
    /// this end's.
    pub(crate) fn new(
        id: ConnectionId,
        config: &ConnectionConfig,
        addresses: (IpAddr, IpAddr),
        local: &[IpAddr],
        now: Instant,
        events: &mut Events,
    ) -> Self {
        let mut connection = Self {
            id,
            tx: TransmitHalf::new(config, addresses, now),
            rx: ReceiveHalf::new(config, local),
            paths: config.paths.len(),
        };
        connection.rx.tell(&mut Nowhere);
        connection.carry_notes(now, events);
        connection
    }

    /// Its paths.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.paths).map(|index| PathId(index as u8))
    }

    /// What a path is and has done.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path(&self, path: PathId) -> PathView {
        let mut stats = PathStats::default();
        self.tx.add_stats(path, &mut stats);
        self.rx.add_stats(path, &mut stats);
        PathView {
            state: self.rx.state(path),
            weight: self.tx.weight(path),
            last_heard: self.rx.last_heard(path),
            stats,
        }
    }

    /// What the connection has carried.
    pub fn stats(&self) -> ConnectionStats {
        let mut drops = *self.tx.drops();
        drops += *self.rx.drops();
        ConnectionStats {
            sent: self.tx.sent(),
            delivered: self.rx.delivered(),
            reorder: self.rx.reorder().stats(),
            drops,
        }
    }

    /// The settings of its reorder buffer.
    pub fn reorder_config(&self) -> &ReorderConfig {
        self.rx.reorder().config()
    }

    /// The sequence number expected next, once one has been received.
    pub fn expected(&self) -> Option<Seq> {
        self.rx.reorder().next()
    }

    /// How many bytes of GRE header stand before each inner packet it sends.
    pub fn header_len(&self) -> usize {
        self.tx.header_len()
    }

    pub(crate) fn transmit(&mut self, protocol: Protocol, len: usize) -> Option<(PathId, Header)> {
        self.tx.transmit(protocol, len)
    }

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &Datagram<'_>,
        sink: &mut impl Sink,
        events: &mut Events,
    ) {
        self.rx.receive(now, arrival, datagram, sink);
        self.carry_notes(now, events);
    }

    pub(crate) fn poll_keepalive(
        &mut self,
        now: Instant,
    ) -> Option<(PathId, Header, [u8; keepalive::LEN])> {
        self.tx.poll_keepalive(now)
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.rx.deadline(), self.tx.deadline())
    }

    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        sink: &mut impl Sink,
        events: &mut Events,
    ) {
        self.rx.handle_timeout(now, sink);
        self.carry_notes(now, events);
    }

    pub(crate) fn set_status(
        &mut self,
        path: PathId,
        status: PathStatus,
        now: Instant,
        sink: &mut impl Sink,
        events: &mut Events,
    ) {
        self.tx.set_status(path, status, now);
        self.rx.set_status(path, status, sink);
        self.carry_notes(now, events);
    }

    pub(crate) fn set_fits(
        &mut self,
        path: PathId,
        fits: bool,
        now: Instant,
        sink: &mut impl Sink,
        events: &mut Events,
    ) {
        self.rx.set_fits(path, fits, sink);
        self.carry_notes(now, events);
    }

    fn carry_notes(&mut self, now: Instant, events: &mut Events) {
        let connection = self.id;
        while let Some(note) = self.rx.poll_note() {
            self.tx.on_note(note, now);
            match note {
                Note::Hearing { .. } => {}
                Note::State { path, from, to } => {
                    events.push(Event::Path { connection, path, from, to });
                }
                Note::Restart { expected, found } => {
                    events.push(Event::Restart { connection, expected, found });
                }
            }
        }
    }
}

/// The sink of a connection that has not received anything.
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
