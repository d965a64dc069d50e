//! Datagrams on their way to the network: one open send batch for each path.

use std::net::SocketAddr;

use mpt_io::udp::{EgressRate, MAX_SUPER, SendBatch, Sent};
use mpt_proto::{ConnectionId, Instant, PathId, SocketId, Traffic, Transmit};

use super::sockets::{NO_SOCKET, Sockets};

/// The sending side of one path.
pub(super) struct PathSender {
    /// Which of the tunnel's sockets it uses.
    pub(super) socket: SocketId,
    send_batch: SendBatch,
    /// Whether it is among those to be flushed.
    waits: bool,
    /// A datagram was too big since the last query.
    refuses: bool,
    /// What the kernel took since the last [`Outgoing::flush`].
    taken: Traffic,
    /// Datagrams that it did not, since the same time.
    refused: u64,
    /// Datagrams that could not be sent, by reason.
    pub(super) full: u64,
    /// See [`Sent::too_big`].
    pub(super) too_big: u64,
    /// See [`Sent::failed`].
    pub(super) failed: u64,
}

impl PathSender {
    pub(super) fn new(socket: SocketId, send_batch: SendBatch) -> Self {
        Self {
            socket,
            send_batch,
            waits: false,
            refuses: false,
            taken: Traffic::default(),
            refused: 0,
            full: 0,
            too_big: 0,
            failed: 0,
        }
    }

    /// Whether it is the way by this socket to that address.
    pub(super) fn leads_to(&self, socket: SocketId, remote: SocketAddr) -> bool {
        self.socket == socket && self.send_batch.remote() == remote
    }

    /// This path sender, with the counters of the one whose place it takes.
    fn after(self, earlier: &Self) -> Self {
        let Self { full, too_big, failed, .. } = *earlier;
        Self { full, too_big, failed, ..self }
    }
}

const _: () = assert!(mpt_proto::MAX_RUN <= MAX_SUPER, "a run leaves as one super-datagram");

/// So many datagrams in a row of one path are worth to be delivered before those of others.
const ROW: usize = 16;

/// The path senders whose send batch is not empty, each once.
#[derive(Default)]
struct Waiting {
    /// In the order in which they were given something.
    paths: Vec<(ConnectionId, PathId)>,
    /// How many datagrams they have.
    staged: usize,
    /// Whether the first one was given a row before another one was given anything.
    begins_with_row: bool,
}

impl Waiting {
    /// A path sender is given its first datagram.
    #[cold]
    fn begin(&mut self, connection: ConnectionId, path: PathId) {
        if self.paths.len() == 1 {
            self.begins_with_row = self.staged >= ROW;
        }
        self.paths.push((connection, path));
    }

    /// Takes them in the order in which they are to be flushed.
    ///
    /// The receiver delivers nothing before the packet that was staged first. If that stands alone, its path comes last:
    /// then the receiver delivers everything in one piece. Otherwise it would deliver that packet alone, before the other
    /// paths' arrive. If it begins a row, that comes first, and is delivered while the others are on their way.
    fn take(&mut self) -> impl Iterator<Item = (ConnectionId, PathId)> + use<'_> {
        self.staged = 0;
        if !std::mem::take(&mut self.begins_with_row) {
            self.paths.reverse();
        }
        self.paths.drain(..)
    }
}

/// The sending side of a tunnel.
#[derive(Default)]
pub(super) struct Outgoing {
    /// By connection, then by path.
    path_senders: Vec<Vec<Option<PathSender>>>,
    /// How fast datagrams leave, by socket.
    egress_rates: Vec<EgressRate>,
    waiting: Waiting,
    /// Whether any path sender refuses.
    refuses: bool,
}

impl Outgoing {
    /// A path sender for a path; if it has one, that has been [flushed](Self::flush).
    pub(super) fn put(&mut self, connection: ConnectionId, path: PathId, path_sender: PathSender) {
        let place = usize::from(connection.0);
        if self.path_senders.len() <= place {
            self.path_senders.resize_with(place + 1, Vec::new);
        }
        let (path_senders, place) = (&mut self.path_senders[place], usize::from(path.0));
        if path_senders.len() <= place {
            path_senders.resize_with(place + 1, || None);
        }
        let socket = usize::from(path_sender.socket.0);
        if path_sender.socket != NO_SOCKET && self.egress_rates.len() <= socket {
            self.egress_rates.resize_with(socket + 1, EgressRate::new);
        }
        let before = path_senders[place].take();
        path_senders[place] = Some(match before {
            Some(before) => path_sender.after(&before),
            None => path_sender,
        });
    }

    /// Removes the path sender of a path, which has been flushed.
    pub(super) fn remove(&mut self, connection: ConnectionId, path: PathId) {
        if let Some(path_senders) = self.path_senders.get_mut(usize::from(connection.0))
            && let Some(path_sender) = path_senders.get_mut(usize::from(path.0))
        {
            *path_sender = None;
        }
    }

    /// Removes the path senders of a connection, which have been flushed.
    pub(super) fn remove_all(&mut self, connection: ConnectionId) {
        if let Some(path_senders) = self.path_senders.get_mut(usize::from(connection.0)) {
            *path_senders = Vec::new();
        }
    }

    /// How fast datagrams of a path sender's socket leave.
    pub(super) fn egress_rate(&self, path_sender: &PathSender) -> Option<&EgressRate> {
        self.egress_rates.get(usize::from(path_sender.socket.0))
    }

    /// A socket is another one: what was known of its number is out of date.
    pub(super) fn forget_egress_rate(&mut self, socket: SocketId) {
        if let Some(egress_rate) = self.egress_rates.get_mut(usize::from(socket.0)) {
            *egress_rate = EgressRate::new();
        }
    }

    /// The path sender of a path, if it has one.
    pub(super) fn path_sender(
        &self,
        connection: ConnectionId,
        path: PathId,
    ) -> Option<&PathSender> {
        self.path_senders.get(usize::from(connection.0))?.get(usize::from(path.0))?.as_ref()
    }

    /// Bytes of memory that the path senders of a connection take.
    pub(super) fn memory(&self, connection: ConnectionId) -> usize {
        let Some(path_senders) = self.path_senders.get(usize::from(connection.0)) else { return 0 };
        let send_batches =
            path_senders.iter().flatten().map(|path_sender| path_sender.send_batch.memory());
        path_senders.capacity() * size_of::<Option<PathSender>>() + send_batches.sum::<usize>()
    }

    fn path_sender_mut(
        &mut self,
        connection: ConnectionId,
        path: PathId,
    ) -> Option<&mut PathSender> {
        self.path_senders.get_mut(usize::from(connection.0))?.get_mut(usize::from(path.0))?.as_mut()
    }

    /// Appends a datagram, written by `emit`, to the send batch of its path. A full batch is sent first.
    /// `now` is when the wake-up began.
    #[inline(always)]
    pub(super) fn stage(
        &mut self,
        now: Instant,
        transmit: &Transmit<'_>,
        sockets: &Sockets,
        emit: impl FnOnce(&mut [u8]),
    ) {
        let (connection, path) = (transmit.connection, transmit.path);
        let path_senders = &mut self.path_senders[usize::from(connection.0)];
        // A path can outlive its sender.
        let Some(path_sender) = &mut path_senders[usize::from(path.0)] else { return };
        if path_sender.send_batch.is_full() {
            path_sender.send(now, sockets, &mut self.egress_rates);
        }
        if !path_sender.waits {
            path_sender.waits = true;
            self.waiting.begin(connection, path);
        }
        self.waiting.staged += 1;
        path_sender.send_batch.set_tos(transmit.tos);
        match path_sender.send_batch.reserve(transmit.size()) {
            Some(place) => {
                emit(place);
                path_sender.send_batch.commit();
            }
            None => path_sender.on_too_big(1),
        }
        self.refuses |= path_sender.refuses;
    }

    /// Sends every send batch that is not empty, and tells `on_sent` of each path what the kernel took
    /// and how many datagrams it refused since the last flush, and the egress rate of its socket.
    pub(super) fn flush(
        &mut self,
        now: Instant,
        sockets: &Sockets,
        mut on_sent: impl FnMut(ConnectionId, PathId, Traffic, u64, Option<u64>),
    ) {
        for (connection, path) in self.waiting.take() {
            let path_senders = &mut self.path_senders[usize::from(connection.0)];
            if let Some(path_sender) = &mut path_senders[usize::from(path.0)] {
                path_sender.waits = false;
                path_sender.send(now, sockets, &mut self.egress_rates);
                self.refuses |= path_sender.refuses;
                let taken = std::mem::take(&mut path_sender.taken);
                let refused = std::mem::take(&mut path_sender.refused);
                let egress_rate = &self.egress_rates[usize::from(path_sender.socket.0)];
                on_sent(connection, path, taken, refused, egress_rate.rate());
            }
        }
    }

    /// Whether any path has refused a datagram for its size since it was last asked.
    pub(super) fn any_too_big(&self) -> bool {
        self.refuses
    }

    /// The paths need not be queried any more.
    pub(super) fn all_asked(&mut self) {
        self.refuses = false;
    }

    /// Whether a path has refused a datagram for its size; it is then forgotten.
    pub(super) fn take_too_big(&mut self, connection: ConnectionId, path: PathId) -> bool {
        self.path_sender_mut(connection, path)
            .is_some_and(|path_sender| std::mem::take(&mut path_sender.refuses))
    }
}

impl PathSender {
    fn send(&mut self, now: Instant, sockets: &Sockets, egress_rates: &mut [EgressRate]) {
        let (socket, egress_rate) =
            (&sockets[self.socket], &mut egress_rates[usize::from(self.socket.0)]);
        let sent = socket.send_watched(&mut self.send_batch, egress_rate, now.since(Instant::ZERO));
        let Sent { datagrams, bytes, full, too_big, failed, .. } = sent;
        self.taken += Traffic { packets: datagrams as u64, bytes: bytes as u64 };
        self.full += full as u64;
        self.refused += (full + failed) as u64;
        self.on_too_big(too_big as u64);
        self.failed += failed as u64;
    }

    fn on_too_big(&mut self, datagrams: u64) {
        self.too_big += datagrams;
        self.refused += datagrams;
        self.refuses |= datagrams > 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mpt_io::poll::{Events, Interest, Poll};
    use mpt_io::udp::{Options, Receive, ReceiveOptions, Socket};

    use super::*;

    /// A path sender of socket 0 to this address, with a staged datagram.
    fn staged(remote: SocketAddr, payload: &[u8]) -> PathSender {
        let mut send_batch = SendBatch::new(remote, None);
        send_batch.reserve(payload.len()).unwrap().copy_from_slice(payload);
        send_batch.commit();
        PathSender::new(SocketId(0), send_batch)
    }

    #[test]
    fn the_path_of_the_first_packet_is_flushed_last() {
        let open = || Socket::open(&Options::new("127.0.0.1:0".parse().unwrap())).unwrap();
        let (from, to) = (open(), open());
        let mut sockets = Sockets::default();
        sockets.put(SocketId(0), Arc::new(from));
        let (mut outgoing, connection) = (Outgoing::default(), ConnectionId(0));
        for (path, payload) in [b"first", b"other"].into_iter().enumerate() {
            let path = PathId(path as u8);
            outgoing.put(connection, path, staged(to.local_addr(), payload));
            outgoing.waiting.begin(connection, path);
            outgoing.waiting.staged += 1;
        }

        let mut flushed = Vec::new();
        outgoing.flush(Instant::ZERO, &sockets, |_, path, taken, refused, _| {
            assert_eq!((taken.packets, refused), (1, 0));
            flushed.push(path);
        });

        assert_eq!(flushed, [PathId(1), PathId(0)]);
        let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
        poll.add(&to, 0, Interest::READABLE).unwrap();
        let mut receive = Receive::new(&ReceiveOptions::default());
        let mut arrived = Vec::new();
        while arrived.len() < 2 {
            poll.wait(&mut events, None).unwrap();
            to.receive(&mut receive).unwrap();
            arrived.extend(receive.datagrams().map(|datagram| datagram.payload.to_vec()));
        }
        assert_eq!(arrived, [b"other", b"first"]);
    }

    #[test]
    fn a_row_is_flushed_before_what_comes_after_it() {
        let mut waiting = Waiting::default();
        // Rows of the first path, and how many datagrams each further path has.
        for (row, others, expected) in
            [(1, ROW, [2, 1, 0]), (ROW - 1, 1, [2, 1, 0]), (ROW, 1, [0, 1, 2]), (1, 1, [2, 1, 0])]
        {
            for (path, datagrams) in [row, others, others].into_iter().enumerate() {
                waiting.begin(ConnectionId(0), PathId(path as u8));
                waiting.staged += datagrams;
            }
            let order: Vec<_> = waiting.take().map(|(_, path)| path.0).collect();
            assert_eq!(order, expected, "a row of {row}, then {others}");
        }
    }
}
