//! Any number of connect requests of any peers: what is accepted stays within the template's bounds.

use super::*;
use crate::prefix::Prefix;
use crate::wire::gre::{self, Header, Protocol};
use crate::wire::keepalive::{Activation, LEN, Report};

const SERVER: [u8; 4] = [10, 9, 0, 1];
const ACCEPT: AcceptId = AcceptId(7);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn prefix(address: [u8; 4], bits: u8) -> Prefix {
    Prefix::new(address.into(), bits).unwrap()
}

/// A template without a limit of the rate.
fn template() -> AcceptConfig {
    AcceptConfig {
        id: ACCEPT,
        sockets: vec![SocketId(3)],
        peers: vec![prefix([10, 9, 0, 0], 16)],
        sources: vec![prefix([203, 0, 113, 0], 24), prefix([198, 18, 0, 0], 15)],
        key: Some(5),
        by_keepalive: true,
        by_hello: true,
        max_connections: 3,
        max_paths: 2,
        interval: Duration::ZERO,
        burst: 1,
    }
}

fn accepting(config: AcceptConfig) -> Accepting {
    let mut accepting = Accepting::default();
    accepting.set(&[config]);
    accepting
}

/// A keepalive and what it says.
#[derive(Clone, Copy)]
struct Visit {
    socket: u16,
    from: ([u8; 4], u16),
    key: Option<u32>,
    peer: [u8; 4],
    own: [u8; 4],
    off: bool,
}

const VISIT: Visit = Visit {
    socket: 3,
    from: ([203, 0, 113, 7], 4754),
    key: Some(5),
    peer: [10, 9, 0, 7],
    own: SERVER,
    off: false,
};

impl Visit {
    /// Of a client by its number, from its own address.
    fn of(client: u16) -> Self {
        let [high, low] = client.to_be_bytes();
        Self { from: ([198, 18, high, low], 4754), peer: [10, 9, 1 + high, low], ..VISIT }
    }

    fn port(self, port: u16) -> Self {
        Self { from: (self.from.0, port), ..self }
    }

    fn pay(self, now: Instant, accepting: &mut Accepting, paths: usize) -> Result<bool, Drop> {
        let keepalive = Keepalive {
            report: Report { deaf: true, off: self.off },
            arrivals: None,
            activation: Activation::default(),
            weight: None,
            path: None,
            lost: None,
            sender: self.peer.into(),
            receiver: self.own.into(),
            trailer: None,
        };
        let mut message = [0; LEN];
        self.bring(now, accepting, keepalive.emit(&mut message), paths)
    }

    fn bring(
        self,
        now: Instant,
        accepting: &mut Accepting,
        payload: &[u8],
        paths: usize,
    ) -> Result<bool, Drop> {
        let header =
            Header { protocol: Protocol::Ipv4, checksum: false, key: self.key, sequence: None };
        let mut datagram = vec![0; header.size() + payload.len()];
        datagram[header.size()..].copy_from_slice(payload);
        header.emit(&mut datagram);
        let origin = Origin { socket: SocketId(self.socket), remote: self.from.into(), tos: 0 };
        let parsed = gre::parse(&datagram).unwrap();
        accepting.on_datagram(now, origin, &parsed, &[SERVER.into()], |_| paths)
    }

    /// What the owner does then.
    fn open(self, accepting: &mut Accepting, id: u16) {
        accepting.add(ConnectionId(id), &[self.peer.into()], Some(ACCEPT));
        accepting.claimed(SocketId(self.socket), self.from.into());
    }
}

#[test]
fn a_matching_request_is_reported_once_until_there_is_a_path() {
    let mut accepting = accepting(template());
    assert_eq!(VISIT.pay(at(0), &mut accepting, 0), Ok(true));
    let request = ConnectRequest {
        accept: ACCEPT,
        socket: SocketId(3),
        remote: VISIT.from.into(),
        peer: VISIT.peer.into(),
        refused: None,
    };
    assert_eq!(accepting.poll_connect_request(), Some(request));
    assert_eq!(VISIT.pay(at(500), &mut accepting, 0), Ok(true));
    assert_eq!(accepting.poll_connect_request(), None, "it waits to be answered");
    assert_eq!(VISIT.pay(at(2000), &mut accepting, 0), Ok(true));
    assert_eq!(accepting.poll_connect_request(), Some(request), "nobody has answered");
    VISIT.open(&mut accepting, 0);
    assert_eq!(VISIT.pay(at(2001), &mut accepting, 1), Ok(true));
    assert_eq!(accepting.poll_connect_request(), Some(request), "its path is gone");
}

#[test]
fn a_datagram_outside_every_template_is_no_connection_request() {
    let mut accepting = accepting(template());
    let strangers = [
        Visit { socket: 4, ..VISIT },
        Visit { from: ([192, 0, 2, 1], 4754), ..VISIT },
        Visit { key: None, ..VISIT },
        Visit { key: Some(6), ..VISIT },
        Visit { peer: [10, 8, 0, 7], ..VISIT },
        Visit { peer: SERVER, ..VISIT },
        Visit { own: [10, 9, 0, 2], ..VISIT },
        Visit { off: true, ..VISIT },
    ];
    for (number, stranger) in strangers.into_iter().enumerate() {
        assert_eq!(stranger.pay(at(0), &mut accepting, 0), Ok(false), "{number}");
    }
    for payload in [&[][..], &[0x45; 40], &[0xa1; 39], &[0xa1; 57], &[0xa2; 56], &[0xff; 40]] {
        assert_eq!(VISIT.bring(at(0), &mut accepting, payload, 0), Ok(false), "{payload:x?}");
    }
    let mut anybody = template();
    (anybody.peers, anybody.sources) = (vec![prefix([0; 4], 0)], Vec::new());
    accepting.set(&[anybody]);
    for peer in [[0; 4], [127, 0, 0, 1], [224, 0, 0, 5], [255; 4]] {
        assert_eq!(Visit { peer, ..VISIT }.pay(at(0), &mut accepting, 0), Ok(false), "{peer:?}");
    }
    assert_eq!(accepting.poll_connect_request(), None);
    assert!(accepting.pending.is_empty());
}

#[test]
fn a_configured_peer_is_not_accepted_by_a_template() {
    let mut accepting = accepting(template());
    accepting.add(ConnectionId(4), &[VISIT.peer.into()], None);
    assert_eq!(VISIT.pay(at(0), &mut accepting, 0), Ok(false));
    accepting.remove(ConnectionId(4), &[VISIT.peer.into()], None);
    assert_eq!(VISIT.pay(at(0), &mut accepting, 0), Ok(true));
}

#[test]
fn one_origin_waits_for_one_answer_at_a_time() {
    let mut accepting = accepting(template());
    assert_eq!(VISIT.pay(at(0), &mut accepting, 0), Ok(true));
    let other = Visit { peer: [10, 9, 0, 8], ..VISIT };
    let refused =
        (0..100).all(|now| other.pay(at(now), &mut accepting, 0) == Err(Drop::AcceptRate));
    assert!(refused, "it may claim to be anybody, but not everybody");
    assert_eq!(other.port(9).pay(at(0), &mut accepting, 0), Ok(true), "another origin");
    // After an accepted or an expired request another may follow.
    VISIT.open(&mut accepting, 0);
    assert_eq!(other.pay(at(100), &mut accepting, 0), Ok(true));
    let third = Visit { peer: [10, 9, 0, 9], ..VISIT };
    assert_eq!(third.pay(at(2099), &mut accepting, 0), Err(Drop::AcceptRate));
    assert_eq!(third.pay(at(2100), &mut accepting, 0), Ok(true));
}

#[test]
fn a_peer_pending_at_one_template_is_not_accepted_by_another() {
    let mut accepting = Accepting::default();
    let (first, mut second) = (template(), template());
    (second.id, second.sockets) = (AcceptId(8), vec![SocketId(4)]);
    accepting.set(&[first, second]);
    assert_eq!(VISIT.pay(at(0), &mut accepting, 0), Ok(true));
    let beside = Visit { socket: 4, ..VISIT };
    assert_eq!(beside.pay(at(0), &mut accepting, 0), Ok(false));
    assert_eq!(beside.pay(at(2000), &mut accepting, 0), Ok(true), "the first was not answered");
    assert_eq!(VISIT.pay(at(2000), &mut accepting, 0), Ok(false));
    let told: Vec<_> = std::iter::from_fn(|| accepting.poll_connect_request()).collect();
    assert_eq!(told.iter().map(|request| request.accept.0).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn connections_are_bounded_including_pending_ones() {
    let mut accepting = accepting(template());
    let mut visit = |client, now| Visit::of(client).pay(at(now), &mut accepting, 0);
    assert_eq!([visit(0, 0), visit(1, 0), visit(2, 0)], [Ok(true); 3]);
    assert_eq!(visit(3, 0), Err(Drop::AcceptFull));
    let second = Visit::of(2).port(9).pay(at(0), &mut accepting, 0);
    assert_eq!(second, Ok(true), "a second path of one who waits");
    (0..3).for_each(|client| Visit::of(client).open(&mut accepting, client));
    assert_eq!(Visit::of(3).pay(at(9000), &mut accepting, 0), Err(Drop::AcceptFull));
    accepting.remove(ConnectionId(1), &[Visit::of(1).peer.into()], Some(ACCEPT));
    assert_eq!(Visit::of(3).pay(at(9000), &mut accepting, 0), Ok(true));
    assert_eq!(Visit::of(1).pay(at(9000), &mut accepting, 0), Err(Drop::AcceptFull));
    assert_eq!(Visit::of(1).pay(at(11_000), &mut accepting, 0), Ok(true), "the other never came");
}

#[test]
fn paths_of_a_connection_are_bounded_including_pending_ones() {
    let mut accepting = accepting(template());
    Visit::of(0).open(&mut accepting, 0);
    let mut visit = |port, paths| Visit::of(0).port(port).pay(at(0), &mut accepting, paths);
    assert_eq!(visit(1, 1), Ok(true));
    assert_eq!(visit(2, 1), Err(Drop::AcceptFull), "one is there, and one waits");
    assert_eq!(visit(1, 1), Ok(true), "that is the one that waits");
}

#[test]
fn the_rate_is_bounded_and_survives_other_settings() {
    let mut slow = template();
    (slow.interval, slow.burst, slow.max_connections) = (Duration::from_millis(200), 5, 1000);
    let mut accepting = accepting(slow.clone());
    let admitted = |accepting: &mut Accepting, clients: std::ops::Range<u16>, now| {
        clients.filter(|&client| Visit::of(client).pay(at(now), accepting, 0) == Ok(true)).count()
    };
    assert_eq!(admitted(&mut accepting, 0..100, 1000), 5);
    slow.max_paths = 9;
    accepting.set(&[slow]);
    assert_eq!(admitted(&mut accepting, 100..200, 1000), 0);
    assert_eq!(admitted(&mut accepting, 200..300, 1400), 2);
    assert_eq!(Visit::of(400).pay(at(1400), &mut accepting, 0), Err(Drop::AcceptRate));
}

#[test]
fn refusals_are_logged_rarely_and_counted_always() {
    let mut accepting = accepting(AcceptConfig { max_connections: 1, ..template() });
    Visit::of(0).open(&mut accepting, 0);
    for now in 0..30_000 {
        assert_eq!(Visit::of(1).pay(at(now), &mut accepting, 0), Err(Drop::AcceptFull));
    }
    let told: Vec<_> = std::iter::from_fn(|| accepting.poll_connect_request()).collect();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|request| request.refused == Some(Drop::AcceptFull)));
}

#[test]
fn memory_for_a_flood_is_bounded() {
    let mut open = template();
    open.max_connections = u16::MAX;
    let mut accepting = accepting(open);
    let mut let_in = 0;
    for now in 0..20_000_u64 {
        let client = (now * 7919 % 60_000) as u16;
        let visit = Visit::of(client).port(now as u16);
        let_in += usize::from(visit.pay(at(now), &mut accepting, 0) == Ok(true));
        assert!(accepting.pending.len() <= MAX_PENDING && accepting.requests.len() <= MAX_PENDING);
    }
    assert!(let_in <= 11 * MAX_PENDING, "{let_in}: all that may wait in each two seconds");
    assert!(accepting.peers.is_empty() && accepting.templates[0].connections == 0);
    accepting.set(&[]);
    assert!(accepting.pending.is_empty() && accepting.poll_connect_request().is_none());
    assert_eq!(VISIT.pay(at(20_000), &mut accepting, 0), Ok(false));
}
