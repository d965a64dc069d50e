//! The transmit half of every connection, and which of them an inner packet is for.

use crate::connection::ConnectionId;
use crate::event::{Event, Events};
use crate::note::Note;
use crate::path::{PathId, PathStatus};
use crate::route::Routes;
use crate::stats::{Drop, Drops};
use crate::time::Instant;
use crate::timer::Deadline;
use crate::transmit::TransmitHalf;
use crate::wire::gre::Header;
use crate::wire::{inner, keepalive};

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
        self.emit_with(datagram, |place| place.copy_from_slice(self.payload));
    }

    /// The same, with the payload written by `emit_payload`: an inner packet that is finished on its
    /// way into the datagram.
    ///
    /// # Panics
    ///
    /// If `datagram` is shorter than the header.
    pub fn emit_with(&self, datagram: &mut [u8], emit_payload: impl FnOnce(&mut [u8])) {
        emit_payload(&mut datagram[self.header.size()..]);
        // Last, as its checksum covers the payload.
        self.header.emit(datagram);
    }
}

/// The side of an [`Endpoint`](crate::Endpoint) that sends.
///
/// It shares nothing with the [`ReceiveSide`](crate::ReceiveSide) and may live on another thread.
/// What it must know of that arrives as [`Note`]s.
#[derive(Debug)]
pub struct TransmitSide {
    connections: Vec<TransmitHalf>,
    routes: Routes,
    events: Events,
    drops: Drops,
    /// The last keepalive that was polled.
    control: [u8; keepalive::LEN],
}

impl TransmitSide {
    pub(crate) fn new(connections: Vec<TransmitHalf>, routes: Routes) -> Self {
        let (events, drops) = (Events::default(), Drops::default());
        Self { connections, routes, events, drops, control: [0; keepalive::LEN] }
    }

    /// Takes an inner packet from the tunnel interface, and decides where it goes. `None` if it was
    /// dropped; then it is counted.
    #[inline(always)]
    pub fn handle_inner<'a>(&mut self, packet: &'a [u8]) -> Option<Transmit<'a>> {
        let Some(inner) = inner::parse(packet) else {
            self.drops.add(Drop::InnerMalformed);
            return None;
        };
        let Some(id) = self.routes.find(inner.destination) else {
            self.drops.add(Drop::NoRoute);
            return None;
        };
        let connection = &mut self.connections[id.index()];
        let (path, header) = connection.transmit(inner.protocol, inner.len)?;
        let payload = &packet[..inner.len];
        Some(Transmit { connection: id, path, tos: inner.tos, header, payload })
    }

    /// Takes what [`ReceiveSide::poll_note`](crate::ReceiveSide::poll_note) gave out, in that order
    /// and sooner rather than later: until then packets go where they went before.
    ///
    /// # Panics
    ///
    /// If there is no such connection or path.
    pub fn handle_note(&mut self, now: Instant, connection: ConnectionId, note: Note) {
        if let Some((path, carries)) = self.connections[connection.index()].on_note(note, now) {
            self.events.push(Event::Narrow { connection, path, carries });
        }
    }

    /// What was found out about the paths, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
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

    /// When to call [`poll_transmit`](Self::poll_transmit) next, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.connections.iter().map(TransmitHalf::deadline).fold(None, Deadline::earlier)
    }

    /// Switches a path off or makes it available again. The receive side is to be told next: it
    /// decides from when on an available path is used.
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
    ) {
        self.connections[connection.index()].set_status(path, status, now);
    }

    /// Switches all paths off, so that the peers learn from the keepalives still to be polled that
    /// this end is going away.
    pub fn close(&mut self, now: Instant) {
        self.connections.iter_mut().for_each(|connection| connection.close(now));
    }

    /// The transmit half of a connection.
    ///
    /// # Panics
    ///
    /// If there is none of that number.
    pub fn connection(&self, id: ConnectionId) -> &TransmitHalf {
        &self.connections[id.index()]
    }

    /// What was dropped before a connection was known.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    pub(crate) fn connections(&self) -> &[TransmitHalf] {
        &self.connections
    }
}
