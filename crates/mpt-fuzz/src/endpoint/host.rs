//! One endpoint with accounts of everything that goes in and comes out.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use mpt_proto::wire::inner;
use mpt_proto::{
    Change, ConnectionId, Endpoint, Event, Held, Instant, Late, Origin, PathId, PathState,
    PathStatus, Sink,
};

use super::packet;
use super::settings::Settings;

const CONNECTION: ConnectionId = ConnectionId(0);

pub(super) struct Host {
    number: usize,
    endpoint: Endpoint,
    inbox: Inbox,
    window: u32,
    offered: u64,
    received: u64,
}

impl Host {
    pub(super) fn new(settings: &Settings, number: usize, now: Instant) -> Self {
        let endpoint = Endpoint::new(&settings.config(number), now).expect("good settings");
        let inbox = Inbox::new(settings, number);
        let window = settings.reorder.window;
        Self { number, endpoint, inbox, window, offered: 0, received: 0 }
    }

    /// Forgets everything, as a host does that starts anew. What is not to be trusted is still on its way to it.
    pub(super) fn restart(&mut self, settings: &Settings, now: Instant) {
        let fresh = Self::new(settings, self.number, now);
        let old = std::mem::replace(self, fresh).inbox;
        self.inbox.distrusted = old.distrusted;
        self.inbox.order = self.inbox.order.filter(|_| old.order.is_some());
    }

    /// An inner packet from the interface; what becomes of it: path, type of service and datagram.
    pub(super) fn offer(&mut self, packet: &[u8]) -> Option<(PathId, u8, Vec<u8>)> {
        self.offered += 1;
        let transmit = self.endpoint.handle_inner(packet)?;
        let mut bytes = vec![0xee; transmit.size()];
        transmit.emit(&mut bytes);
        let (path, tos) = (transmit.path, transmit.tos);
        assert_eq!(self.state(path), PathState::Up, "only paths that are up carry packets");
        Some((path, tos, bytes))
    }

    pub(super) fn receive(&mut self, now: Instant, origin: Origin, datagram: &[u8]) {
        self.received += 1;
        self.endpoint.handle_datagram(now, origin, datagram, &mut self.inbox);
        self.read_events();
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now, &mut self.inbox);
        self.read_events();
    }

    /// The datagrams of its own that are due.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<(PathId, u8, Vec<u8>)> {
        let mut due = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let mut bytes = vec![0xee; transmit.size()];
            transmit.emit(&mut bytes);
            due.push((transmit.path, transmit.tos, bytes));
            assert!(due.len() <= MAX_DUE, "there is an end to what is due at one time");
        }
        due
    }

    pub(super) fn set_status(&mut self, now: Instant, path: PathId, status: PathStatus) {
        self.endpoint.set_path_status(now, CONNECTION, path, status, &mut self.inbox);
        self.read_events();
    }

    pub(super) fn set_fits(&mut self, now: Instant, path: PathId, fits: bool) {
        let change = Change::SetFits { connection: CONNECTION, path, fits };
        self.endpoint.change(now, &change, &mut self.inbox);
        self.read_events();
    }

    pub(super) fn close(&mut self, now: Instant) {
        self.endpoint.close(now, &mut self.inbox);
        self.read_events();
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.endpoint.poll_timeout().map(|deadline| deadline.at)
    }

    /// The sequence number expected next, 0 if nothing came yet.
    pub(super) fn expected(&self) -> u32 {
        self.endpoint.connection(CONNECTION).expected().map_or(0, |next| next.value())
    }

    /// From now on the packet of this number may come out more than once, or altered.
    pub(super) fn distrust(&mut self, number: u64) {
        self.inbox.distrusted.insert(number);
    }

    /// From now on packets may come out behind later ones, because the peer's numbers are not what they
    /// should be.
    pub(super) fn distrust_order(&mut self) {
        self.inbox.order = None;
    }

    /// Changes how many packets can be kept.
    pub(super) fn set_room(&mut self, room: u8) {
        self.inbox.room = usize::from(room);
    }

    /// Checks that everything is accounted for.
    pub(super) fn check(&self) {
        let connection = self.endpoint.connection(CONNECTION);
        let stats = connection.stats();
        let paths = connection.paths().map(|path| connection.path(path).stats);
        let (mut sent, mut keepalives) = (0, 0);
        for path in paths {
            sent += path.sent.packets;
            keepalives += path.keepalives_received;
        }
        assert_eq!(sent, stats.sent.packets, "paths and connection agree on what was sent");

        let reorder = stats.reorder;
        let delivered = reorder.in_order + reorder.reordered + reorder.late + reorder.unsequenced;
        assert_eq!(delivered, stats.delivered.packets);
        assert_eq!(delivered, self.inbox.delivered, "the sink got what was counted");
        assert_eq!(reorder.held, self.inbox.held.len() as u64, "and keeps what is held");
        assert!(reorder.held <= u64::from(self.window));

        let dropped = self.endpoint.drops().total() + stats.drops.total();
        let gone = stats.sent.packets + keepalives + delivered + reorder.held + dropped;
        assert_eq!(gone, self.offered + self.received, "host {}: the sums balance", self.number);
    }

    /// Checks that nothing that was due is left.
    pub(super) fn check_deadline(&self, now: Instant) {
        let Some(deadline) = self.endpoint.poll_timeout() else { return };
        assert!(deadline.at > now, "{deadline:?} is not done at {now:?}");
        let far = now + Duration::from_secs(3600);
        assert!(deadline.at < far, "{deadline:?} is too far from {now:?} to mean anything");
    }

    fn state(&self, path: PathId) -> PathState {
        self.endpoint.connection(CONNECTION).path(path).state
    }

    /// After each call: what came out is judged by what happened.
    fn read_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Restart { .. } => self.inbox.forget(),
                Event::Narrow { .. } | Event::Path { .. } => {}
            }
        }
        self.inbox.judge();
    }
}

/// A path says at most one thing for each reason it can have to do so.
const MAX_DUE: usize = 64;

/// Keeps accounts of what was delivered.
struct Inbox {
    /// This host's number.
    own: usize,
    delivered: u64,
    held: HashMap<u32, Vec<u8>>,
    next_held: u32,
    room: usize,
    /// Numbers of packets that came out and are not judged yet.
    fresh: Vec<u64>,
    /// Numbers of packets that came out; `None` where the order has no history.
    seen: Option<HashSet<u64>>,
    /// The highest number that came out, where none may come out behind it.
    order: Option<u64>,
    distrusted: HashSet<u64>,
}

impl Inbox {
    fn new(settings: &Settings, own: usize) -> Self {
        let ordered = settings.sequence && settings.reorder.window > 0;
        let no_late = ordered && settings.reorder.late == Late::Drop;
        Self {
            own,
            delivered: 0,
            held: HashMap::new(),
            next_held: 0,
            room: settings.room,
            fresh: Vec::new(),
            seen: ordered.then(HashSet::new),
            order: no_late.then_some(0),
            distrusted: HashSet::new(),
        }
    }

    /// The peer's numbers were found to have started anew, which begins a new history. Some of what just
    /// came out belongs to the old one.
    fn forget(&mut self) {
        self.seen.iter_mut().for_each(HashSet::clear);
        self.seen.iter_mut().for_each(|seen| seen.extend(self.fresh.iter()));
        self.fresh.clear();
        self.order = None;
    }

    fn judge(&mut self) {
        for number in self.fresh.drain(..) {
            if self.distrusted.contains(&number) {
                continue;
            }
            if let Some(seen) = &mut self.seen {
                assert!(seen.insert(number), "packet {number} came out twice");
            }
            if let Some(highest) = &mut self.order {
                assert!(number >= *highest, "packet {number} came out behind {highest}");
                *highest = number;
            }
        }
    }

    fn take(&mut self, packet: &[u8]) {
        self.delivered += 1;
        let inner = inner::parse(packet).expect("only whole packets are delivered");
        assert_eq!(inner.len, packet.len(), "and nothing behind them");
        let peer = packet::address(1 - self.own, inner.source.is_ipv6());
        assert_eq!(inner.source, peer, "only the peer's");
        self.fresh.extend(packet::number(packet));
    }
}

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8]) {
        self.take(packet);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        if self.held.len() >= self.room {
            return None;
        }
        let number = self.next_held;
        self.next_held += 1;
        self.held.insert(number, packet.to_vec());
        Some(Held(number))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let packet = self.held.remove(&held.0).expect("what is held is given back once");
        self.take(&packet);
        packet.len()
    }
}
