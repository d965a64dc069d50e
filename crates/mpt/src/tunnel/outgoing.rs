//! Datagrams on their way to the network: one open train for each path.

use mpt_io::udp::{Drain, Sent, Socket, Train};
use mpt_proto::{ConnectionId, Instant, PathId, Transmit};

/// The sending side of one path.
pub(super) struct Lane {
    /// Which of the tunnel's sockets it uses.
    pub(super) socket: usize,
    train: Train,
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
    pub(super) fn new(socket: usize, train: Train) -> Self {
        Self { socket, train, refuses: false, full: 0, too_big: 0, failed: 0 }
    }
}

/// The sending side of a tunnel.
pub(super) struct Outgoing {
    /// By connection, then by path.
    lanes: Vec<Vec<Lane>>,
    /// How fast datagrams leave, by socket.
    drains: Vec<Drain>,
    /// The lanes whose train is not empty.
    waiting: Vec<(ConnectionId, PathId)>,
}

impl Outgoing {
    pub(super) fn new(lanes: Vec<Vec<Lane>>) -> Self {
        let waiting = Vec::with_capacity(lanes.iter().map(Vec::len).sum());
        let sockets = lanes.iter().flatten().map(|lane| lane.socket + 1).max().unwrap_or(0);
        let drains = (0..sockets).map(|_| Drain::new()).collect();
        Self { lanes, drains, waiting }
    }

    /// How fast datagrams of a lane's socket leave.
    pub(super) fn drain(&self, lane: &Lane) -> &Drain {
        &self.drains[lane.socket]
    }

    /// The lane of a path.
    pub(super) fn lane(&self, connection: ConnectionId, path: PathId) -> &Lane {
        &self.lanes[usize::from(connection.0)][usize::from(path.0)]
    }

    /// Writes a datagram behind the others of its path. A train that is full leaves first. `now` is
    /// when the wake-up began.
    pub(super) fn stage(&mut self, now: Instant, transmit: &Transmit<'_>, sockets: &[Socket]) {
        self.stage_with(now, transmit, sockets, |place| transmit.emit(place));
    }

    /// The same, with the datagram written by `emit`.
    pub(super) fn stage_with(
        &mut self,
        now: Instant,
        transmit: &Transmit<'_>,
        sockets: &[Socket],
        emit: impl FnOnce(&mut [u8]),
    ) {
        let (connection, path) = (transmit.connection, transmit.path);
        let lane = &mut self.lanes[usize::from(connection.0)][usize::from(path.0)];
        if lane.train.is_full() {
            lane.send(now, sockets, &mut self.drains);
        } else if lane.train.is_empty() && !self.waiting.contains(&(connection, path)) {
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
    }

    /// Sends every train that is not empty.
    pub(super) fn flush(&mut self, now: Instant, sockets: &[Socket]) {
        for (connection, path) in self.waiting.drain(..) {
            let lane = &mut self.lanes[usize::from(connection.0)][usize::from(path.0)];
            lane.send(now, sockets, &mut self.drains);
        }
    }

    /// Whether any path has refused a datagram for its size since it was last asked.
    pub(super) fn any_too_big(&self) -> bool {
        self.lanes.iter().flatten().any(|lane| lane.refuses)
    }

    /// Whether a path has done so; it is then forgotten.
    pub(super) fn take_too_big(&mut self, connection: ConnectionId, path: PathId) -> bool {
        let lane = &mut self.lanes[usize::from(connection.0)][usize::from(path.0)];
        std::mem::take(&mut lane.refuses)
    }
}

impl Lane {
    fn send(&mut self, now: Instant, sockets: &[Socket], drains: &mut [Drain]) {
        let (socket, drain) = (&sockets[self.socket], &mut drains[self.socket]);
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
