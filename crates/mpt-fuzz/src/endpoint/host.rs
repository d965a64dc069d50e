//! One endpoint, its sides run in turn or as if by two threads, under the eyes of its accounts.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mpt_proto::wire::extended::Header;
use mpt_proto::{
    Change, ConnectionId, Deadline, Drop, Endpoint, Event, Instant, Message, Origin, PathConfig,
    PathId, PathRequest, PathState, ReceiveSide, SocketId, Traffic, Transmit, TransmitKind,
    TransmitSide,
};

use super::accounts::Accounts;
use super::inbox::Inbox;
use super::plan::Plan;
use super::sequences::Sequences;
use super::settings::{CONNECTIONS, PATHS, Settings};

pub(super) struct Host {
    number: usize,
    tx: TransmitSide,
    rx: ReceiveSide,
    pub(super) inbox: Inbox,
    accounts: Accounts,
    /// The administrative status, as given to the transmit side.
    pub(super) plan: Plan,
    /// Whether updates between the sides are delayed.
    apart: bool,
    /// Pending changes for the receive side.
    changes: VecDeque<Change>,
    /// Pending updates for the transmit side.
    messages: VecDeque<(ConnectionId, Message)>,
    /// The numbers in what it sends.
    sequences: Sequences,
    /// What a path is like that it learns.
    template: Option<PathConfig>,
    /// By origin, how many bytes have come from there that it has not sent there.
    credits: HashMap<(SocketId, SocketAddr), usize>,
    /// How often it was started again.
    starts: u8,
}

/// A datagram that a host sends.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) connection: ConnectionId,
    pub(super) lane: u8,
    pub(super) remote: SocketAddr,
    pub(super) tos: u8,
    pub(super) bytes: Vec<u8>,
}

impl Host {
    pub(super) fn new(settings: &Settings, number: usize, starts: u8, now: Instant) -> Self {
        let config = settings.config(number, starts);
        let (tx, rx) = Endpoint::new(&config, now).expect("good settings").split();
        let mut host = Self {
            number,
            tx,
            rx,
            inbox: Inbox::new(settings, number),
            accounts: Accounts::default(),
            plan: Plan::default(),
            apart: false,
            changes: VecDeque::new(),
            messages: VecDeque::new(),
            sequences: Sequences::default(),
            template: settings.learned_path(number),
            credits: HashMap::new(),
            starts,
        };
        for (id, config) in (0..).map(ConnectionId).zip(config.connections) {
            host.inbox.expect(id, &config);
            host.plan.add_connection(id, Arc::new(config));
        }
        host
    }

    /// Discards all state, like a restart. Untrusted datagrams are still in flight to it.
    pub(super) fn restart(&mut self, settings: &Settings, now: Instant) {
        let fresh = Self::new(settings, self.number, self.starts.wrapping_add(1), now);
        let old = std::mem::replace(self, fresh);
        self.inbox.remember(&old.inbox);
    }

    /// Processes an inner packet from the interface.
    pub(super) fn offer(&mut self, now: Instant, packet: &[u8]) -> Option<Sent> {
        self.accounts.offered += 1;
        let expected = self.plan.route(packet);
        let dropped = expected.map(|id| self.no_path(id));
        let Some(transmit) = self.tx.handle_inner(now, packet) else {
            let dropped = dropped.map(|before| before + 1);
            assert_eq!(expected.map(|id| self.no_path(id)), dropped, "only a path can be missing");
            return None;
        };
        let (id, path) = (transmit.connection, transmit.path);
        let sent = self.emit(now, &transmit);
        assert_eq!(Some(id), expected, "the connection that a plain search finds");
        assert!(self.plan.carries(id, path), "{id:?} {path:?} was taken away");
        if !self.apart {
            let state = self.rx.connection(id).state(path);
            assert_eq!(state, PathState::Up, "only paths that are up carry packets");
        }
        Some(sent)
    }

    /// A datagram with the way that it goes.
    fn emit(&mut self, now: Instant, transmit: &Transmit<'_>) -> Sent {
        let mut bytes = vec![0xee; transmit.size()];
        self.tx.emit(now, transmit, &mut bytes, |packet, place| place.copy_from_slice(packet));
        self.sequences.on_sent(transmit.connection, &bytes);
        let &Transmit { connection, path, .. } = transmit;
        let sent = Traffic { packets: 1, bytes: bytes.len() as u64 };
        self.tx.on_sent(connection, path, transmit.kind(), sent, None);
        if transmit.kind() != TransmitKind::Reply {
            return self.plan.sent(transmit, bytes);
        }
        let (socket, remote, _) = self.tx.destination();
        let credit = self.credits.entry((socket, remote)).or_default();
        *credit = credit.checked_sub(bytes.len()).expect("no more is sent back than came");
        Sent { connection, lane: socket.0 as u8, remote, tos: transmit.tos, bytes }
    }

    /// The header of the last packet that it sent in a session.
    pub(super) fn last_header(&self) -> Option<Header> {
        self.sequences.last()
    }

    /// The interface of a path allows datagrams of a length.
    pub(super) fn set_local_len(&mut self, now: Instant, id: ConnectionId, path: u8, len: usize) {
        self.tx.set_local_len(now, id, PathId(path), len);
    }

    fn no_path(&self, id: ConnectionId) -> u64 {
        self.tx.connection(id).stats().drops.count(Drop::NoPath)
    }

    pub(super) fn receive(&mut self, now: Instant, origin: Origin, datagram: &[u8]) {
        self.accounts.received += 1;
        *self.credits.entry((origin.socket, origin.remote)).or_default() += datagram.len();
        let before = Accounts::taken(&self.rx);
        self.rx.arrivals(origin).handle_datagram(now, &mut datagram.to_vec(), &mut self.inbox);
        self.accounts.on_received(Accounts::taken(&self.rx) - before, datagram);
        self.collect(now);
        while let Some(request) = self.rx.poll_path_request() {
            self.learn(now, request);
        }
    }

    /// An origin has proved to be the peer's.
    fn learn(&mut self, now: Instant, request: PathRequest) {
        let PathRequest { connection, socket, remote, moved } = request;
        let Some(template) = &self.template else { return };
        let template = PathConfig { socket, remote, ..template.clone() };
        let wanted = |path: &PathId| self.plan.path(connection, *path);
        let mut paths = PATHS.into_iter().map(PathId);
        let is_there = |path: PathId| {
            wanted(&path).is_some_and(|path| (path.socket, path.remote) == (socket, remote))
        };
        if !self.plan.has(connection) || paths.clone().any(is_there) {
            return;
        }
        if let Some((path, config)) = moved.and_then(|path| Some((path, wanted(&path)?))) {
            let config = PathConfig { socket, remote, ..config.clone() };
            self.change(now, Change::SetPath { connection, path, config });
        } else if let Some(path) = paths.find(|path| wanted(path).is_none()) {
            self.change(now, Change::AddPath { connection, path, config: template });
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.observe();
        self.rx.handle_timeout(now, &mut self.inbox);
        self.collect(now);
        self.observe();
    }

    /// Its own datagrams that are due.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<Sent> {
        let mut due = Vec::new();
        self.observe();
        while let Some(transmit) = self.tx.poll_transmit(now) {
            due.push(self.emit(now, &transmit));
            assert!(
                due.len() <= MAX_DUE + self.accounts.offered as usize,
                "there is an end to what is due at one time"
            );
        }
        self.observe();
        due
    }

    /// Applies a change. Returns whether packets in flight may be delivered again, because the
    /// history of their connection was discarded.
    pub(super) fn change(&mut self, now: Instant, change: Change) -> bool {
        self.observe();
        if matches!(change, Change::AddPath { .. } | Change::RemovePath { .. }) {
            self.sequences.on_path_change();
        }
        if matches!(change, Change::AddConnection { .. } | Change::RemoveConnection { .. }) {
            self.sequences.on_connection_change();
        }
        self.plan.apply(&change);
        self.tx.change(now, &change);
        self.observe();
        self.changes.push_back(change);
        let count = if self.apart { 0 } else { usize::MAX };
        self.carry_changes(now, count)
    }

    /// Carries changes to the receive side, at most `count`; returns what [`Self::change`] does.
    pub(super) fn carry_changes(&mut self, now: Instant, count: usize) -> bool {
        let mut forgotten = false;
        for _ in 0..count.min(self.changes.len()) {
            let Some(change) = self.changes.pop_front() else { break };
            forgotten |= self.inbox.on_change(&change);
            self.observe();
            self.rx.change(now, &change, &mut self.inbox);
            self.collect(now);
            self.observe();
            if let Change::RemoveConnection { connection } = change {
                self.inbox.forget_connection(connection);
            }
        }
        forgotten
    }

    /// Fetches messages of the receive side, and hands some over.
    pub(super) fn carry_messages(&mut self, now: Instant, fetched: usize, handed: usize) {
        for count in 0..fetched {
            let Some(update) = self.rx.poll_message() else { break };
            assert!(count < MAX_MESSAGES, "there is a limit to what waits");
            self.messages.push_back(update);
        }
        for _ in 0..handed {
            let Some((connection, update)) = self.messages.pop_front() else { break };
            self.tx.handle_message(now, connection, update);
        }
        self.read_events();
    }

    /// Delays updates between the sides, or ends the delay; returns the same as [`Self::change`].
    pub(super) fn set_apart(&mut self, now: Instant, apart: bool) -> bool {
        self.apart = apart;
        let count = if apart { 0 } else { usize::MAX };
        let forgotten = self.carry_changes(now, count);
        self.collect(now);
        forgotten
    }

    pub(super) fn close(&mut self, now: Instant) {
        self.tx.close(now);
        self.rx.close(now, &mut self.inbox);
        self.plan.close();
        self.collect(now);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines().map(|deadline| deadline.at).min()
    }

    fn deadlines(&self) -> impl Iterator<Item = Deadline> {
        self.tx.poll_timeout().into_iter().chain(self.rx.poll_timeout())
    }

    /// The sequence number expected next on a connection, 0 if nothing came yet.
    pub(super) fn expected(&self, connection: ConnectionId) -> u32 {
        let expected = self.rx.find(connection).and_then(|connection| connection.expected());
        expected.map_or(0, |next| next.value())
    }

    /// Checks that everything is accounted for.
    pub(super) fn check(&self) {
        self.accounts.check(&self.tx, &self.rx, &self.inbox);
    }

    /// Checks that nothing that was due is left.
    pub(super) fn check_deadline(&self, now: Instant) {
        for deadline in self.deadlines() {
            assert!(deadline.at > now, "{deadline:?} is not done at {now:?}");
            let far = now + Duration::from_secs(3600);
            assert!(deadline.at < far, "{deadline:?} is too far from {now:?} to mean anything");
        }
    }

    /// After each call of the receive side: what came of it.
    fn collect(&mut self, now: Instant) {
        if !self.apart {
            self.carry_messages(now, usize::MAX, usize::MAX);
        }
        self.read_events();
    }

    fn observe(&mut self) {
        self.accounts.observe(&self.tx, &self.rx);
    }

    fn read_events(&mut self) {
        while let Some(event) = self.rx.poll_event().or_else(|| self.tx.poll_event()) {
            match event {
                Event::Restart { connection, .. }
                | Event::Session { connection, .. }
                | Event::SessionEnd { connection } => self.inbox.forget(connection),
                Event::Narrow { .. }
                | Event::Proven { .. }
                | Event::NoSession { .. }
                | Event::Stopped { .. }
                | Event::Resumed { .. }
                | Event::Path { .. } => {}
            }
        }
        self.inbox.judge();
    }
}

/// For each path what [`Message::PER_PATH`] says, for each connection its session; and what goes to origins.
const MAX_MESSAGES: usize = CONNECTIONS * (PATHS.len() * Message::PER_PATH + 1) + 64;

/// A path says at most one thing for each reason it can have to do so. What was offered can be sent again.
const MAX_DUE: usize = 256;
