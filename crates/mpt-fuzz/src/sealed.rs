//! Datagrams of sealed framing at hosts that do not know who sends them.
//!
//! The first byte says what the others are:
//!
//! - a datagram as it is;
//! - damage of an authentic datagram, which has not arrived yet: at which byte of it, how much longer or shorter, and what
//!   its bytes are changed by;
//! - Noise's first message, in an initiation whose first code is right, as anybody can make it who knows the host's public
//!   key. The host computes, or is busy and asks for a cookie;
//! - Noise's second message, with a right code, to a host that waits for it;
//! - a cookie reply to the same host.
//!
//! In every case the datagram is dropped and counted once, and nothing else changes: not the session, no path, nothing that
//! was heard, nothing that is due; nothing is delivered, and nothing is answered but by a cookie reply. Because nothing
//! changes, one session serves many inputs.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use blake2::digest::consts::U16;
use blake2::digest::{Digest as _, KeyInit as _, Mac as _};
use blake2::{Blake2s256, Blake2sMac};
use mpt_proto::wire::extended::sealed::{COOKIE_REPLY_LEN, MAC_LEN};
use mpt_proto::wire::extended::{CONTROL_LEN, Flags, Header, Kind, NO_PATH};
use mpt_proto::{
    Cipher, Ciphers, ConnectionConfig, ConnectionId, ConnectionStats, Drop, Drops, Endpoint,
    EndpointConfig, FramingConfig, Held, HostKeys, Instant, KEY_LEN, Origin, PathConfig,
    PathStatus, PeerKeys, PeerKind, Pins, Prefix, PrivateKey, ReorderConfig, SchedulerConfig,
    Secret, Sink, SocketId,
};

use crate::input::Input;

/// The most bytes of a datagram.
const MOST: usize = 1500;

/// After so many handshakes a host is busy, and asks for cookies until it has rested.
const MOST_HANDSHAKES: u32 = 100;

thread_local! {
    static SCENE: RefCell<Scene> = RefCell::new(Scene::new());
}

/// Takes a datagram, see the module's documentation.
pub fn sealed(bytes: &[u8]) {
    SCENE.with_borrow_mut(|scene| {
        scene.run(&mut Input::new(bytes));
        if scene.handshakes > MOST_HANDSHAKES {
            *scene = Scene::new();
        }
    });
}

/// Two hosts, of which one is in a session with the other, and one that waits for it.
struct Scene {
    now: Instant,
    in_session: Endpoint,
    /// Has sent an initiation, from this index.
    waiting: (Endpoint, u32),
    /// Data for the host in the session.
    authentic: Vec<u8>,
    handshakes: u32,
}

impl Scene {
    fn new() -> Self {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let [mut left, mut right, mut waiting] = [(1, 1), (2, 2), (2, 3)]
            .map(|(number, start)| Endpoint::new(&host(number, start), now).expect("settings"));
        for _ in 0..8 {
            polled(&mut left, now).iter().for_each(|datagram| give(&mut right, now, 1, datagram));
            polled(&mut right, now).iter().for_each(|datagram| give(&mut left, now, 2, datagram));
        }
        assert!(left.connection(CONNECTION).has_session(), "both ends are there");
        while right.poll_event().is_some() {}
        let packet = packet();
        let transmit = left.handle_inner(now, &packet).expect("a path is up");
        let mut authentic = vec![0; transmit.size()];
        left.emit(now, &transmit, &mut authentic);
        let initiation = polled(&mut waiting, now).remove(0);
        let index = &initiation[CONTROL_LEN..CONTROL_LEN + 4];
        let index = u32::from_be_bytes(index.try_into().expect("four bytes"));
        Self { now, in_session: right, waiting: (waiting, index), authentic, handshakes: 0 }
    }

    fn run(&mut self, input: &mut Input<'_>) {
        let (waiting, index) = (&mut self.waiting.0, self.waiting.1);
        match input.index(5) {
            0 => {
                let datagram = input.rest();
                dropped(&mut self.in_session, self.now, datagram);
            }
            1 => {
                let (at, len, longer) = (input.word(), input.byte(), input.flag());
                let changes = input.rest();
                let mut datagram = self.authentic.clone();
                let at = usize::from(at) % datagram.len();
                datagram[at..].iter_mut().zip(changes).for_each(|(byte, change)| *byte ^= change);
                let size = datagram.len();
                let len = usize::from(len);
                datagram.resize(if longer { size + len } else { size.saturating_sub(len) }, 0);
                if datagram != self.authentic {
                    dropped(&mut self.in_session, self.now, &datagram);
                }
            }
            2 => {
                let message = [&input.long().to_be_bytes(), input.rest()].concat();
                let code = mac1(2, &message);
                let datagram =
                    control(Kind::HandshakeInitiation, 0, &[&message, &code, &[0; MAC_LEN]]);
                self.handshakes += 1;
                let before = self.in_session.drops().count(Drop::HandshakeLoad);
                if let [reply] = &dropped(&mut self.in_session, self.now, &datagram)[..] {
                    let after = self.in_session.drops().count(Drop::HandshakeLoad);
                    assert_eq!(after, before + 1, "an answer of a host that is not busy");
                    assert_eq!(reply.len(), CONTROL_LEN + COOKIE_REPLY_LEN);
                }
            }
            3 => {
                let message = input.rest();
                let datagram =
                    control(Kind::HandshakeResponse, index, &[message, &mac1(2, message)]);
                self.handshakes += 1;
                assert!(dropped(waiting, self.now, &datagram).is_empty(), "a response is answered");
                assert!(!waiting.connection(CONNECTION).has_session());
            }
            _ => {
                let datagram = control(Kind::CookieReply, index, &[input.rest()]);
                assert!(dropped(waiting, self.now, &datagram).is_empty(), "a cookie is answered");
            }
        }
    }
}

/// The host drops a datagram and counts it, and nothing else changes. Returns what it answers.
fn dropped(host: &mut Endpoint, now: Instant, datagram: &[u8]) -> Vec<Vec<u8>> {
    let (before, count) = (observed(host), counted(host));
    give(host, now, 1, &datagram[..datagram.len().min(MOST)]);
    assert_eq!(counted(host), count + 1, "it is dropped, and counted once");
    let answers = polled(host, now);
    assert_eq!(observed(host), before, "nothing changes");
    assert!(host.poll_event().is_none(), "nothing has happened");
    assert!(answers.len() < 2 && answers.iter().all(|answer| answer.len() < datagram.len()));
    let is_cookie =
        |answer: &Vec<u8>| Header::parse(answer).map(|it| it.kind) == Ok(Kind::CookieReply);
    assert!(answers.iter().all(is_cookie), "answered: {answers:?}");
    answers
}

/// All that can be seen of a host, but for what it has dropped.
fn observed(host: &Endpoint) -> String {
    let connection = host.connection(CONNECTION);
    let paths: Vec<_> = connection.paths().map(|path| connection.path(path)).collect();
    let stats = ConnectionStats { drops: Drops::default(), ..connection.stats() };
    format!("{:?} {paths:?} {stats:?} {:?}", connection.sealed(), host.poll_timeout())
}

fn counted(host: &Endpoint) -> u64 {
    host.drops().total() + host.connection(CONNECTION).stats().drops.total()
}

/// A control message without a path.
fn control(kind: Kind, key: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut datagram = vec![0; CONTROL_LEN];
    let header = Header {
        key,
        sequence: None,
        kind,
        flags: Flags::NONE,
        path: NO_PATH,
        distance: 0,
        path_sequence: 0,
        sent: 0,
    };
    header.emit(&mut datagram);
    parts.iter().for_each(|part| datagram.extend(*part));
    datagram
}

/// The code that shows that the sender of a handshake message knows the public key of host `number` (section 9.2 of
/// `docs/protocol.md`).
fn mac1(number: u8, message: &[u8]) -> [u8; MAC_LEN] {
    let public = private(number).public();
    let key = Blake2s256::new().chain_update(b"MPT mac1").chain_update(public.bytes()).finalize();
    let mut mac = Blake2sMac::<U16>::new_from_slice(&key).expect("a key of 32 bytes");
    mac.update(&message[..message.len().min(64)]);
    mac.finalize().into_bytes().into()
}

const CONNECTION: ConnectionId = ConnectionId(0);

fn private(number: u8) -> PrivateKey {
    PrivateKey::new([number; KEY_LEN])
}

fn inner(number: u8) -> IpAddr {
    IpAddr::from([10, 9, 0, number])
}

fn outer(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 4754))
}

/// Host 1 or 2, which is the peer of the other one, over one path.
fn host(number: u8, start: u8) -> EndpointConfig {
    let peer = 3 - number;
    let path = PathConfig {
        socket: SocketId(0),
        remote: outer(peer),
        weight: 1,
        weight_from_peer: false,
        rate: None,
        price: 0,
        priority: 0,
        pins: Pins::default(),
        refuses: 0,
        failover: None,
        keepalive: Some(Duration::from_millis(500)),
        dead_time: Some(Duration::from_millis(1750)),
        status: PathStatus::Available,
    };
    let ciphers = Ciphers::fastest(Cipher::Aes256Gcm);
    EndpointConfig {
        addresses: vec![Prefix::host(inner(number))],
        connections: vec![ConnectionConfig {
            peer_kind: PeerKind::Mpt,
            framing: FramingConfig::Sealed,
            peer: vec![inner(peer)],
            networks: Vec::new(),
            selector: None,
            key: None,
            checksum: false,
            sequence: true,
            scheduler: SchedulerConfig::Earliest,
            peer_keys: Some(PeerKeys {
                public: private(peer).public(),
                preshared: None,
                invitation: None,
            }),
            thin_acks: true,
            equalise: true,
            compete: true,
            breaker: true,
            classes: Vec::new(),
            repair: true,
            reorder: ReorderConfig::default(),
            paths: vec![path],
        }],
        secret: Secret::new([start; 16]),
        keys: Some(HostKeys::new(private(number), ciphers, [start; KEY_LEN], Duration::ZERO)),
    }
}

fn packet() -> Vec<u8> {
    let mut packet = vec![0; 100];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17]);
    packet[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    packet
}

fn give(host: &mut Endpoint, now: Instant, from: u8, datagram: &[u8]) {
    let origin = Origin { socket: SocketId(0), remote: outer(from), tos: 0 };
    host.handle_datagram(now, origin, &mut datagram.to_vec(), &mut Nobody);
}

/// What a host has to send.
fn polled(host: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    while let Some(transmit) = host.poll_transmit(now) {
        let mut datagram = vec![0; transmit.size()];
        host.emit(now, &transmit, &mut datagram);
        datagrams.push(datagram);
    }
    datagrams
}

/// To whom nothing may be delivered.
struct Nobody;

impl Sink for Nobody {
    fn deliver(&mut self, packet: &[u8]) {
        panic!("delivered without being authentic: {packet:?}");
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        panic!("held without being authentic: {packet:?}");
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        panic!("nothing is held");
    }
}
