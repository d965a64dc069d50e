//! An endpoint whose sides have been moved apart: the same as the joined one where messages are carried
//! at once, and sound where they take their time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::pair::{CONNECTION, Host, Inbox, Pair, Sent, Settings, config, outer_address, packet};
use mpt_proto::{
    Change, ConnectionId, Endpoint, Event, Instant, Message, Origin, PathId, PathState, PathStatus,
    ReceiveSide, SocketId, Traffic, Transmit, TransmitSide,
};

const STEP: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

/// A host as two threads would run it, with the time that a message takes from one to the other.
struct Apart {
    number: u8,
    tx: TransmitSide,
    rx: ReceiveSide,
    inbox: Inbox,
    messages: VecDeque<(Instant, ConnectionId, Message)>,
    delay: Duration,
}

impl Apart {
    fn new(settings: &Settings, number: u8, now: Instant, delay: Duration) -> Self {
        let endpoint = Endpoint::new(&config(settings, number), now).expect("good settings");
        let (tx, rx) = endpoint.split();
        Self { number, tx, rx, inbox: Inbox::default(), messages: VecDeque::new(), delay }
    }

    /// Takes the messages of the one side and gives the other those that have arrived.
    fn carry_messages(&mut self, now: Instant) {
        while let Some((connection, update)) = self.rx.poll_message() {
            self.messages.push_back((now + self.delay, connection, update));
        }
        while let Some((due, connection, update)) = self.messages.front().cloned()
            && due <= now
        {
            self.messages.pop_front();
            self.tx.handle_message(now, connection, update);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.rx.handle_timeout(now, &mut self.inbox);
        self.carry_messages(now);
    }

    fn send(&mut self, now: Instant, packet: &[u8]) -> Option<Sent> {
        let transmit = self.tx.handle_inner(now, packet)?;
        Some(self.emit(now, &transmit))
    }

    fn keepalives(&mut self, now: Instant) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.tx.poll_transmit(now) {
            sent.push(self.emit(now, &transmit));
        }
        sent
    }

    fn receive(&mut self, now: Instant, sent: &Sent) {
        let remote = outer_address(3 - self.number, sent.path.0);
        let origin = Origin { socket: SocketId(u16::from(sent.path.0)), remote, tos: 0 };
        self.rx.arrivals(origin).handle_datagram(now, &mut sent.bytes.clone(), &mut self.inbox);
        self.carry_messages(now);
    }

    fn set_status(&mut self, now: Instant, path: u8, status: PathStatus) {
        let change = Change::SetStatus { connection: CONNECTION, path: PathId(path), status };
        self.tx.change(now, &change);
        self.rx.change(now, &change, &mut self.inbox);
        self.carry_messages(now);
    }

    fn emit(&mut self, now: Instant, transmit: &Transmit<'_>) -> Sent {
        let mut bytes = vec![0; transmit.size()];
        self.tx.emit(now, transmit, &mut bytes, |packet, place| place.copy_from_slice(packet));
        let &Transmit { connection, path, .. } = transmit;
        let sent = Traffic { packets: 1, bytes: bytes.len() as u64 };
        self.tx.on_sent(connection, path, transmit.kind(), sent, None);
        Sent { path, bytes }
    }

    /// Datagrams of the peer that were lost on all paths.
    fn lost(&self) -> u64 {
        let connection = self.rx.connection(CONNECTION);
        connection.paths().filter_map(|path| connection.quality(path).lost).sum()
    }

    fn state(&self, path: u8) -> PathState {
        self.rx.connection(CONNECTION).state(PathId(path))
    }
}

/// Two such hosts.
struct ApartPair {
    now: Instant,
    left: Apart,
    right: Apart,
}

impl ApartPair {
    fn new(delay: Duration) -> Self {
        let (now, settings) = (Instant::ZERO + 1000 * SECOND, Settings::default());
        let host = |number| Apart::new(&settings, number, now, delay);
        Self { now, left: host(1), right: host(2) }
    }

    /// Lets time pass, with a packet each way in every step; paths for which `passes` is false lose
    /// what is sent on them. Returns the paths that the packets of the left host took.
    fn run(&mut self, time: Duration, passes: impl Fn(PathId) -> bool) -> Vec<Option<PathId>> {
        let (end, mut took) = (self.now + time, Vec::new());
        while self.now < end {
            self.now += STEP;
            let Self { now, left, right } = self;
            for host in [&mut *left, &mut *right] {
                host.handle_timeout(*now);
            }
            let mut from_left = left.keepalives(*now);
            let mut from_right = right.keepalives(*now);
            let data = left.send(*now, &packet(1, 0));
            took.push(data.as_ref().map(|sent| sent.path));
            from_left.extend(data);
            from_right.extend(right.send(*now, &packet(2, 0)));
            from_left.iter().filter(|s| passes(s.path)).for_each(|s| right.receive(*now, s));
            from_right.iter().filter(|s| passes(s.path)).for_each(|s| left.receive(*now, s));
        }
        took
    }

    fn all_up(&self) -> bool {
        [&self.left, &self.right]
            .iter()
            .all(|host| (0..2).all(|path| host.state(path) == PathState::Up))
    }
}

#[test]
fn updates_passed_at_once_equal_the_joined_endpoint() {
    let settings = Settings::default();
    let mut joined = Pair::new(&settings);
    let mut apart = ApartPair::new(Duration::ZERO);
    assert_eq!(joined.now, apart.now);
    let mut events = (Vec::new(), Vec::new());
    for step in 0..200_u32 {
        let now = joined.now + STEP;
        (joined.now, apart.now) = (now, now);
        // Path 1 dies and comes back; path 0 is switched off and on.
        let passes = |sent: &&Sent| sent.path.0 == 0 || !(40..100).contains(&step);
        if let 120 | 150 = step {
            let status = if step == 120 { PathStatus::Off } else { PathStatus::Available };
            let Host { endpoint, inbox, .. } = &mut joined.left;
            endpoint.set_path_status(now, CONNECTION, PathId(0), status, inbox);
            apart.left.set_status(now, 0, status);
        }
        if step == 190 {
            joined.left.endpoint.close(now, &mut joined.left.inbox);
            apart.left.tx.close(now);
            apart.left.rx.close(now, &mut apart.left.inbox);
            apart.left.carry_messages(now);
        }
        let mut crossing: [Vec<Sent>; 2] = [Vec::new(), Vec::new()];
        let hosts = [(&mut joined.left, &mut apart.left), (&mut joined.right, &mut apart.right)];
        for ((one, other), crossing) in hosts.into_iter().zip(&mut crossing) {
            one.endpoint.handle_timeout(now, &mut one.inbox);
            other.handle_timeout(now);
            let inner = packet(one.number, step);
            let mut sent = one.keepalives(now);
            sent.extend(one.send(now, &inner));
            let mut expected = other.keepalives(now);
            expected.extend(other.send(now, &inner));
            let bytes = |sent: &[Sent]| -> Vec<_> {
                sent.iter().map(|sent| (sent.path, sent.bytes.clone())).collect()
            };
            assert_eq!(bytes(&sent), bytes(&expected), "step {step}");
            crossing.extend(sent);
        }
        for sent in crossing[0].iter().filter(passes) {
            joined.right.receive(now, sent);
            apart.right.receive(now, sent);
        }
        for sent in crossing[1].iter().filter(passes) {
            joined.left.receive(now, sent);
            apart.left.receive(now, sent);
        }
        events.0.extend(joined.left.events());
        events.1.extend(std::iter::from_fn(|| apart.left.rx.poll_event()));
    }
    assert_eq!(events.0, events.1);
    assert!(events.0.len() > 8, "something happened: {:?}", events.0);
    for (one, other) in [(&joined.left, &apart.left), (&joined.right, &apart.right)] {
        assert_eq!(one.inbox.delivered, other.inbox.delivered);
        let stats = one.endpoint.connection(CONNECTION).stats();
        let (sent, received) =
            (other.tx.connection(CONNECTION).stats(), other.rx.connection(CONNECTION).stats());
        assert_eq!((stats.sent, stats.delivered), (sent.sent, received.delivered));
        assert_eq!(stats.reorder, received.reorder);
        assert_eq!(stats.drops.total(), sent.drops.total() + received.drops.total());
    }
}

#[test]
fn with_delayed_updates_paths_come_up_and_failed_ones_are_unused() {
    for delay in [Duration::ZERO, STEP, 4 * STEP, SECOND] {
        let mut pair = ApartPair::new(delay);
        pair.run(3 * delay + SECOND, |_| true);
        assert!(pair.all_up(), "{delay:?}");
        let both = pair.run(SECOND, |_| true);
        for path in [0, 1] {
            assert!(both.contains(&Some(PathId(path))), "{delay:?}: {both:?}");
        }

        // The dead time is 1.75 s.
        pair.run(2 * SECOND + delay, |path| path.0 == 0);
        let delivered = pair.right.inbox.delivered.len();
        let alone = pair.run(SECOND, |path| path.0 == 0);
        assert!(alone.iter().all(|path| *path == Some(PathId(0))), "{delay:?}: {alone:?}");
        let arrived = pair.right.inbox.delivered.len() - delivered;
        assert!(arrived >= alone.len() - 1, "{delay:?}: {arrived} of {}", alone.len());

        pair.run(3 * delay + SECOND, |_| true);
        assert!(pair.all_up(), "{delay:?}");
        assert!(pair.run(SECOND, |_| true).contains(&Some(PathId(1))), "{delay:?}");
    }
}

#[test]
fn a_path_switched_off_is_unused_at_once_with_any_updates_pending() {
    let mut pair = ApartPair::new(4 * STEP);
    // Off before its own side has heard of its coming up.
    while !pair.all_up() {
        pair.run(STEP, |_| true);
    }
    assert!(!pair.left.messages.is_empty(), "that path 0 is up is on its way");
    pair.left.set_status(pair.now, 0, PathStatus::Off);
    let took = pair.run(SECOND, |_| true);
    assert!(!took.contains(&Some(PathId(0))) && took.contains(&Some(PathId(1))), "{took:?}");
    assert_eq!(pair.left.state(0), PathState::Off);
    let told = |event| matches!(event, Event::Path { path: PathId(0), to: PathState::Down(_), .. });
    assert!(std::iter::from_fn(|| pair.right.rx.poll_event()).any(told), "the peer was told");

    pair.left.set_status(pair.now, 0, PathStatus::Available);
    pair.run(2 * SECOND, |_| true);
    assert!(pair.all_up());
    assert!(pair.run(SECOND, |_| true).contains(&Some(PathId(0))));
    pair.left.set_status(pair.now, 0, PathStatus::Off);
    assert!(!pair.run(STEP, |_| true).contains(&Some(PathId(0))), "used until this moment");
}

#[test]
fn datagrams_of_one_origin_are_distinguished_by_key() {
    use mpt_proto::Drop;
    let settings = Settings { key: Some(7), ..Settings::default() };
    let mut pair = Pair::up(&settings);
    let good: Vec<_> = (0..3).map(|n| pair.left.send(pair.now, &packet(1, n)).unwrap()).collect();
    let (_, mut rx) = std::mem::replace(
        &mut pair.right.endpoint,
        Endpoint::new(&config(&settings, 2), pair.now).unwrap(),
    )
    .split();
    let origin = |path: u8, host| Origin {
        socket: SocketId(u16::from(path)),
        remote: outer_address(host, path),
        tos: 0,
    };
    let mut foreign = good[0].bytes.clone();
    foreign[7] = 8;
    let mut broken = good[0].bytes.clone();
    broken[0] |= 0x40;
    let mut inbox = Inbox::default();
    // Packets 0 and 2 went by path 0.
    let mut arrivals = rx.arrivals(origin(0, 1));
    for datagram in [&good[0].bytes, &foreign, &broken, &foreign, &good[2].bytes] {
        arrivals.handle_datagram(pair.now, &mut datagram.clone(), &mut inbox);
    }
    drop(arrivals);
    rx.arrivals(origin(1, 1)).handle_datagram(pair.now, &mut good[1].bytes.clone(), &mut inbox);
    rx.arrivals(origin(0, 9)).handle_datagram(pair.now, &mut good[1].bytes.clone(), &mut inbox);
    rx.arrivals(origin(0, 9)).handle_datagram(pair.now, &mut broken.clone(), &mut inbox);
    assert_eq!(inbox.delivered, [packet(1, 0), packet(1, 1), packet(1, 2)]);
    let counts = [Drop::GreKey, Drop::GreFlags, Drop::UnknownSource].map(|d| rx.drops().count(d));
    assert_eq!(counts, [2, 2, 1]);
    assert_eq!(rx.drops().total(), 5);
}

/// The peer counts as lost what was sent and did not arrive. What the kernel refused was not sent.
#[test]
fn a_datagram_that_the_kernel_refused_is_not_lost_on_the_path() {
    for (sent, lost) in [(false, 0), (true, 10)] {
        let mut pair = ApartPair::new(Duration::ZERO);
        pair.run(10 * SECOND, |_| true);
        let before = pair.right.lost();
        for number in 0..10 {
            let inner = packet(1, number);
            let transmit = pair.left.tx.handle_inner(pair.now, &inner).expect("a path is up");
            if sent {
                pair.left.emit(pair.now, &transmit);
            }
        }
        pair.run(10 * SECOND, |_| true);
        assert_eq!(pair.right.lost() - before, lost, "sent: {sent}");
    }
}
