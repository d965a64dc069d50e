//! Datagrams on their way to the network: one open train for each path.

use std::net::SocketAddr;

use mpt_io::udp::{Drain, Sent, Train};
use mpt_proto::{ConnectionId, Instant, PathId, SocketId, Transmit};

use super::sockets::Sockets;
use super::step::NO_SOCKET;

/// The sending side of one path.
pub(super) struct Lane {
    /// Which of the tunnel's sockets it uses.
    pub(super) socket: SocketId,
    train: Train,
    /// Whether it is among those to be flushed.
    waits: bool,
    /// A datagram was too big since somebody asked.
    refuses: bool,
    /// Datagrams that could not be sent, by reason.
    pub(super) full: u64,
    /// See [`Sent::too_big`].
    pub(super) too_big: u64,
    /// See [`Sent::failed`].
    pub(super) failed: u64,
}

impl Lane {
    pub(super) fn new(socket: SocketId, train: Train) -> Self {
        Self { socket, train, waits: false, refuses: false, full: 0, too_big: 0, failed: 0 }
    }

    /// Whether it is the way by this socket to that address.
    pub(super) fn leads_to(&self, socket: SocketId, remote: SocketAddr) -> bool {
        self.socket == socket && self.train.remote() == remote
    }

    /// This lane, with the counters of the one whose place it takes.
    fn after(self, earlier: &Self) -> Self {
        let Self { full, too_big, failed, .. } = *earlier;
        Self { full, too_big, failed, ..self }
    }
}

/// The sending side of a tunnel.
#[derive(Default)]
pub(super) struct Outgoing {
    /// By connection, then by path.
    lanes: Vec<Vec<Option<Lane>>>,
    /// How fast datagrams leave, by socket.
    drains: Vec<Drain>,
    /// The lanes whose train is not empty, each once.
    waiting: Vec<(ConnectionId, PathId)>,
    /// Whether any lane refuses.
    refuses: bool,
}

impl Outgoing {
    /// A lane for a path; if it has one, that has been [flushed](Self::flush).
    pub(super) fn put(&mut self, connection: ConnectionId, path: PathId, lane: Lane) {
        let place = usize::from(connection.0);
        if self.lanes.len() <= place {
            self.lanes.resize_with(place + 1, Vec::new);
        }
        let (lanes, place) = (&mut self.lanes[place], usize::from(path.0));
        if lanes.len() <= place {
            lanes.resize_with(place + 1, || None);
        }
        let socket = usize::from(lane.socket.0);
        if lane.socket != NO_SOCKET && self.drains.len() <= socket {
            self.drains.resize_with(socket + 1, Drain::new);
        }
        let before = lanes[place].take();
        lanes[place] = Some(match before {
            Some(before) => lane.after(&before),
            None => lane,
        });
    }

    /// Removes the lane of a path, which has been flushed.
    pub(super) fn remove(&mut self, connection: ConnectionId, path: PathId) {
        if let Some(lanes) = self.lanes.get_mut(usize::from(connection.0))
            && let Some(lane) = lanes.get_mut(usize::from(path.0))
        {
            *lane = None;
        }
    }

    /// Removes the lanes of a connection, which have been flushed.
    pub(super) fn remove_all(&mut self, connection: ConnectionId) {
        if let Some(lanes) = self.lanes.get_mut(usize::from(connection.0)) {
            *lanes = Vec::new();
        }
    }

    /// How fast datagrams of a lane's socket leave.
    pub(super) fn drain(&self, lane: &Lane) -> Option<&Drain> {
        self.drains.get(usize::from(lane.socket.0))
    }

    /// A socket is another one: what was known of its number is out of date.
    pub(super) fn forget_drain(&mut self, socket: SocketId) {
        if let Some(drain) = self.drains.get_mut(usize::from(socket.0)) {
            *drain = Drain::new();
        }
    }

    /// The lane of a path, if it has one.
    pub(super) fn lane(&self, connection: ConnectionId, path: PathId) -> Option<&Lane> {
        self.lanes.get(usize::from(connection.0))?.get(usize::from(path.0))?.as_ref()
    }

    /// Bytes of memory that the lanes of a connection take.
    pub(super) fn memory(&self, connection: ConnectionId) -> usize {
        let Some(lanes) = self.lanes.get(usize::from(connection.0)) else { return 0 };
        let trains = lanes.iter().flatten().map(|lane| lane.train.memory());
        lanes.capacity() * size_of::<Option<Lane>>() + trains.sum::<usize>()
    }

    fn lane_mut(&mut self, connection: ConnectionId, path: PathId) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(connection.0))?.get_mut(usize::from(path.0))?.as_mut()
    }

    /// Writes a datagram behind the others of its path. A train that is full leaves first. `now` is
    /// when the wake-up began.
    pub(super) fn stage(&mut self, now: Instant, transmit: &Transmit<'_>, sockets: &Sockets) {
        self.stage_with(now, transmit, sockets, |place| transmit.emit(place));
    }

    /// The same, with the datagram written by `emit`.
    pub(super) fn stage_with(
        &mut self,
        now: Instant,
        transmit: &Transmit<'_>,
        sockets: &Sockets,
        emit: impl FnOnce(&mut [u8]),
    ) {
        let (connection, path) = (transmit.connection, transmit.path);
        let lanes = &mut self.lanes[usize::from(connection.0)];
        // Lanes go after their paths.
        let Some(lane) = &mut lanes[usize::from(path.0)] else { return };
        if lane.train.is_full() {
            lane.send(now, sockets, &mut self.drains);
        }
        if !lane.waits {
            lane.waits = true;
            self.waiting.push((connection, path));
        }
        lane.train.set_tos(transmit.tos);
        match lane.train.reserve(transmit.size()) {
            Some(place) => {
                emit(place);
                lane.train.commit();
            }
            None => lane.on_too_big(1),
        }
        self.refuses |= lane.refuses;
    }

    /// Sends every train that is not empty.
    pub(super) fn flush(&mut self, now: Instant, sockets: &Sockets) {
        for (connection, path) in self.waiting.drain(..) {
            let lanes = &mut self.lanes[usize::from(connection.0)];
            if let Some(lane) = &mut lanes[usize::from(path.0)] {
                lane.waits = false;
                lane.send(now, sockets, &mut self.drains);
                self.refuses |= lane.refuses;
            }
        }
    }

    /// Whether any path has refused a datagram for its size since it was last asked.
    pub(super) fn any_too_big(&self) -> bool {
        self.refuses
    }

    /// Nobody has to ask the paths any more.
    pub(super) fn all_asked(&mut self) {
        self.refuses = false;
    }

    /// Whether a path has refused a datagram for its size; it is then forgotten.
    pub(super) fn take_too_big(&mut self, connection: ConnectionId, path: PathId) -> bool {
        self.lane_mut(connection, path).is_some_and(|lane| std::mem::take(&mut lane.refuses))
    }
}

impl Lane {
    fn send(&mut self, now: Instant, sockets: &Sockets, drains: &mut [Drain]) {
        let (socket, drain) = (&sockets[self.socket], &mut drains[usize::from(self.socket.0)]);
        let sent = socket.send_watched(&mut self.train, drain, now.since(Instant::ZERO));
        let Sent { full, too_big, failed, .. } = sent;
        self.full += full as u64;
        self.on_too_big(too_big as u64);
        self.failed += failed as u64;
    }

    fn on_too_big(&mut self, datagrams: u64) {
        self.too_big += datagrams;
        self.refuses |= datagrams > 0;
    }
}
