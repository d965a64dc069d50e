//! Many clients of one server, which knows them by their keys.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mpt_proto::{
    AcceptConfig, AcceptId, Change, Cipher, Ciphers, ClientConfig, ClientId, ClientRequest,
    ConnectionConfig, ConnectionId, Drop, Endpoint, EndpointConfig, FramingConfig, Held, HostKeys,
    Instant, InvitationSecret, KnownBy, MismatchKind, Origin, PathConfig, PathId, PathState,
    PathStatus, PeerKeys, PeerKind, Pins, Prefix, PrivateKey, PublicKey, ReorderConfig,
    SchedulerConfig, Secret, Sink, SocketId, TransmitKind,
};

const SERVER: u8 = 1;

/// 2027-01-15, when the core's clocks are at zero.
const CLOCK_ZERO: Duration = Duration::from_secs(1_800_000_000);

fn private(host: u8) -> PrivateKey {
    PrivateKey::new([host; 32])
}

fn public(host: u8) -> PublicKey {
    private(host).public()
}

fn inner(host: u8) -> [u8; 4] {
    [10, 9, 0, host]
}

fn outer(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4754))
}

/// Inner packets that have arrived.
#[derive(Default)]
struct Inbox(Vec<Vec<u8>>);

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8]) {
        self.0.push(packet.to_vec());
    }

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        0
    }
}

/// A connection to a host, without paths.
fn connection(peer: u8, invitation: Option<u8>) -> ConnectionConfig {
    let invitation = invitation.map(|byte| InvitationSecret::new([byte; 32]));
    ConnectionConfig {
        peer_kind: PeerKind::Mpt,
        framing: FramingConfig::Sealed,
        peer: vec![inner(peer).into()],
        networks: Vec::new(),
        selector: None,
        key: None,
        checksum: false,
        sequence: true,
        scheduler: SchedulerConfig::Weighted,
        peer_keys: Some(PeerKeys { public: public(peer), preshared: None, invitation }),
        thin_acks: true,
        equalise: true,
        compete: true,
        breaker: true,
        repair: true,
        classes: Vec::new(),
        reorder: ReorderConfig::default(),
        paths: Vec::new(),
    }
}

fn path(remote: SocketAddr) -> PathConfig {
    PathConfig {
        socket: SocketId(0),
        remote,
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
    }
}

fn end(host: u8, start: u8, now: Instant, connections: Vec<ConnectionConfig>) -> Endpoint {
    let keys = HostKeys::new(
        private(host),
        Ciphers::fastest(Cipher::ChaCha20Poly1305),
        [host ^ start; 32],
        CLOCK_ZERO,
    );
    let config = EndpointConfig {
        addresses: vec![Prefix::new(inner(host).into(), 24).expect("a prefix")],
        connections,
        secret: Secret::new([host ^ start; 16]),
        keys: Some(keys),
    };
    Endpoint::new(&config, now).expect("good settings")
}

fn client(host: u8, invitation: Option<u8>, now: Instant) -> Endpoint {
    let paths = vec![path(outer(SERVER))];
    end(host, 0, now, vec![ConnectionConfig { paths, ..connection(SERVER, invitation) }])
}

fn template() -> AcceptConfig {
    AcceptConfig {
        id: AcceptId(3),
        sockets: vec![SocketId(0)],
        peers: Vec::new(),
        sources: Vec::new(),
        key: None,
        by_keepalive: false,
        by_hello: false,
        max_connections: 100,
        max_paths: 2,
        interval: Duration::from_secs(1),
        burst: 1,
    }
}

fn known(host: u8) -> ClientConfig {
    let known_by = KnownBy::Key(public(host));
    ClientConfig { id: ClientId(host.into()), accept: AcceptId(3), known_by }
}

fn invited(host: u8, secret: u8, expires: Duration) -> ClientConfig {
    let hash = InvitationSecret::new([secret; 32]).hash();
    let known_by = KnownBy::Invitation { hash, expires: CLOCK_ZERO + expires };
    ClientConfig { id: ClientId(host.into()), accept: AcceptId(3), known_by }
}

/// A server and its clients, of which each has a number.
struct World {
    now: Instant,
    server: Endpoint,
    clients: Vec<(u8, Endpoint)>,
    requests: Vec<ClientRequest>,
    arrived: Inbox,
    /// What a stranger sends two thousand times per second.
    flood: Option<Vec<u8>>,
    /// The initiations of each client that the server got.
    initiations: Vec<(u8, Vec<u8>)>,
}

impl World {
    fn new(known: &[ClientConfig], clients: &[(u8, Option<u8>)]) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        let mut server = end(SERVER, 0, now, Vec::new());
        server.set_accepts(&[template()]);
        server.add_clients(known);
        let client = |&(host, invitation)| (host, client(host, invitation, now));
        Self {
            now,
            server,
            clients: clients.iter().map(client).collect(),
            requests: Vec::new(),
            arrived: Inbox::default(),
            flood: None,
            initiations: Vec::new(),
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += Duration::from_millis(10);
            for _ in 0..20 {
                let Some(datagram) = self.flood.clone() else { break };
                self.arrives_at_server(outer(200), datagram);
            }
            for at in 0..self.clients.len() {
                let host = self.clients[at].0;
                for datagram in sent(&mut self.clients[at].1, self.now) {
                    if is_initiation(&datagram) {
                        self.initiations.push((host, datagram.clone()));
                    }
                    self.arrives_at_server(outer(host), datagram);
                }
            }
            self.accept();
            for (remote, datagram) in sent_to(&mut self.server, self.now) {
                let to = self.clients.iter_mut().find(|(host, _)| outer(*host) == remote);
                let Some((_, client)) = to else { continue };
                arrive(client, self.now, outer(SERVER), datagram, &mut self.arrived);
            }
            self.server.handle_timeout(self.now, &mut self.arrived);
            for (_, client) in &mut self.clients {
                client.handle_timeout(self.now, &mut self.arrived);
            }
        }
    }

    fn arrives_at_server(&mut self, from: SocketAddr, datagram: Vec<u8>) {
        arrive(&mut self.server, self.now, from, datagram, &mut self.arrived);
    }

    /// Does what the owner of the server does: makes the connections that clients ask for.
    fn accept(&mut self) {
        while let Some(request) = self.server.poll_client_request() {
            let host = request.client.0 as u8;
            let mut config = connection(host, None);
            config.peer_keys =
                Some(PeerKeys { public: request.key, preshared: None, invitation: None });
            let connection = ConnectionId(host.into());
            let accepted_by = Some(request.accept);
            let config = Arc::new(config);
            let change = Change::AddConnection { connection, config, accepted_by };
            self.server.change(self.now, &change, &mut self.arrived);
            let change =
                Change::AddPath { connection, path: PathId(0), config: path(request.remote) };
            self.server.change(self.now, &change, &mut self.arrived);
            self.requests.push(request);
        }
    }

    fn end_connection(&mut self, host: u8) {
        let change = Change::RemoveConnection { connection: ConnectionId(host.into()) };
        self.server.change(self.now, &change, &mut self.arrived);
    }

    /// The clients that are in a session with the server, as both of them see it.
    fn in_session(&self) -> BTreeSet<u8> {
        let is_up = |end: &Endpoint, id| {
            let mut connections = end.connections().filter(|(other, _)| *other == id);
            connections.any(|(_, connection)| {
                connection.has_session() && connection.path(PathId(0)).state == PathState::Up
            })
        };
        let clients = self.clients.iter().filter(|(host, client)| {
            is_up(client, ConnectionId(0)) && is_up(&self.server, ConnectionId((*host).into()))
        });
        clients.map(|(host, _)| *host).collect()
    }

    /// Has a client send a packet, with the source address of some host, to the server.
    fn send(&mut self, host: u8, source: u8) {
        let packet = packet(source, SERVER);
        let (_, client) = self.clients.iter_mut().find(|(other, _)| *other == host).expect("it");
        let transmit = client.handle_inner(self.now, &packet).expect("there is a path");
        let mut datagram = vec![0; transmit.size()];
        client.emit(self.now, &transmit, &mut datagram);
        self.arrives_at_server(outer(host), datagram);
    }

    fn dropped(&self, reason: Drop) -> u64 {
        let connections = self.server.connections();
        let of_connections: u64 =
            connections.map(|(_, connection)| connection.stats().drops.count(reason)).sum();
        of_connections + self.server.drops().count(reason)
    }
}

fn packet(from: u8, to: u8) -> Vec<u8> {
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv4(inner(from), inner(to), 64)
        .udp(1, 2)
        .write(&mut packet, b"hello")
        .expect("a vector takes everything");
    packet
}

fn is_initiation(datagram: &[u8]) -> bool {
    use mpt_proto::wire::extended::{Header, Kind};
    Header::parse(datagram).is_ok_and(|header| header.kind == Kind::HandshakeInitiation)
}

fn sent(end: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    sent_to(end, now).into_iter().map(|(_, datagram)| datagram).collect()
}

fn sent_to(end: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Vec::new();
    while let Some(transmit) = end.poll_transmit(now) {
        let mut datagram = vec![0; transmit.size()];
        end.emit(now, &transmit, &mut datagram);
        let is_reply = transmit.kind() == TransmitKind::Reply;
        // The connections of the server are numbered after its clients.
        let peer = outer(transmit.connection.0 as u8);
        sent.push((if is_reply { end.destination().1 } else { peer }, datagram));
    }
    sent
}

fn arrive(
    end: &mut Endpoint,
    now: Instant,
    remote: SocketAddr,
    mut datagram: Vec<u8>,
    inbox: &mut Inbox,
) {
    let origin = Origin { socket: SocketId(0), remote, tos: 0 };
    end.handle_datagram(now, origin, &mut datagram, inbox);
}

const A_WHILE: Duration = Duration::from_secs(2);
const A_DAY: Duration = Duration::from_secs(86_400);

#[test]
fn known_clients_are_connected_and_nobody_else_is() {
    let clients = [(7, None), (8, None), (9, None)];
    let mut world = World::new(&[known(7), known(8)], &clients);
    world.run(A_WHILE);
    assert_eq!(world.in_session(), [7, 8].into());
    assert_eq!(world.requests.len(), 2, "each asked once");
    assert!(world.dropped(Drop::HandshakeUnknown) > 0);
    let stranger = world.clients.iter().find(|(host, _)| *host == 9).expect("it is there");
    assert!(!stranger.1.connection(ConnectionId(0)).has_session());
}

#[test]
fn the_first_initiation_is_the_one_that_is_answered() {
    let mut world = World::new(&[known(7)], &[(7, None)]);
    world.run(Duration::from_millis(50));
    assert_eq!(world.in_session(), [7].into());
    assert_eq!(world.initiations.len(), 1);
}

#[test]
fn a_client_has_its_own_addresses_and_no_others() {
    let mut world = World::new(&[known(7), known(8)], &[(7, None), (8, None)]);
    world.run(A_WHILE);
    for (source, arrives) in [(7, true), (8, false), (SERVER, false), (200, false)] {
        let (before, dropped) = (world.arrived.0.len(), world.dropped(Drop::InnerSource));
        world.send(7, source);
        let all = (world.arrived.0.len() - before, world.dropped(Drop::InnerSource) - dropped);
        assert_eq!(all, if arrives { (1, 0) } else { (0, 1) }, "{source}");
    }
    // What is for a client goes to it, and to nobody where there is none.
    for (to, leads) in [(7, Some(7)), (8, Some(8)), (9, None)] {
        let packet = packet(SERVER, to);
        let sent = world.server.handle_inner(world.now, &packet);
        let sent = sent.map(|transmit| transmit.connection);
        assert_eq!(sent, leads.map(ConnectionId));
    }
}

#[test]
fn nothing_is_kept_of_strangers() {
    let mut world = World::new(&[known(7)], &[(9, None), (9, Some(3))]);
    world.run(Duration::from_secs(20));
    assert!(world.initiations.len() > 8);
    assert_eq!((world.requests.len(), world.server.connections().count()), (0, 0));
    assert!(sent(&mut world.server, world.now).is_empty(), "and nothing is answered");
}

#[test]
fn a_client_comes_back_and_its_old_initiations_do_not() {
    let mut world = World::new(&[known(7)], &[(7, None)]);
    world.run(A_WHILE);
    world.end_connection(7);
    let replays = world.dropped(Drop::HandshakeReplay);
    let (_, initiation) = world.initiations[0].clone();
    world.arrives_at_server(outer(66), initiation);
    assert_eq!(world.dropped(Drop::HandshakeReplay), replays + 1);
    assert!(world.server.poll_client_request().is_none(), "of what has been answered before");
    world.run(Duration::from_secs(12));
    assert_eq!(world.in_session(), [7].into(), "by a new handshake");
    assert_eq!(world.requests.len(), 2);
}

/// What was noticed, each once.
fn noticed(world: &mut World) -> Vec<(SocketAddr, Option<ConnectionId>, MismatchKind)> {
    let mut noticed = Vec::new();
    while let Some(mismatch) = world.server.poll_mismatch() {
        let it = (mismatch.remote, mismatch.connection, mismatch.kind);
        if !noticed.contains(&it) {
            noticed.push(it);
        }
    }
    noticed
}

#[test]
fn why_a_handshake_is_refused_is_noticed_and_a_copy_of_it_is_no_reason() {
    let refused = |reason| MismatchKind::Handshake(reason);
    let mut world =
        World::new(&[known(7), invited(8, 50, A_DAY)], &[(7, None), (9, None), (10, Some(51))]);
    world.run(A_WHILE);
    let expected = [
        (outer(9), None, refused(Drop::HandshakeUnknown)),
        (outer(10), None, refused(Drop::HandshakeInvitation)),
    ];
    assert_eq!(noticed(&mut world), expected);

    world.clients.retain(|(host, _)| *host == 7);
    world.end_connection(7);
    world.run(Duration::from_secs(12));
    assert_eq!(world.in_session(), [7].into());
    assert_eq!(noticed(&mut world), [], "it came back");
    let own: Vec<_> = world.initiations.iter().filter(|(host, _)| *host == 7).cloned().collect();
    let [(_, first), .., (_, last)] = &own[..] else { panic!("two handshakes") };
    let replays = world.dropped(Drop::HandshakeReplay);
    world.arrives_at_server(outer(7), last.clone());
    assert_eq!(world.dropped(Drop::HandshakeReplay), replays + 1);
    assert_eq!(noticed(&mut world), [], "as the one that comes by another path");
    // The peer's clock has gone back.
    world.arrives_at_server(outer(7), first.clone());
    let expected = (outer(7), Some(ConnectionId(7)), refused(Drop::HandshakeReplay));
    assert_eq!(noticed(&mut world), [expected]);
}

#[test]
fn a_removed_client_is_a_stranger() {
    let mut world = World::new(&[known(7), known(8)], &[(7, None), (8, None)]);
    world.run(A_WHILE);
    world.server.remove_clients(&HashSet::from([ClientId(7)]));
    world.end_connection(7);
    world.run(Duration::from_secs(20));
    assert_eq!(world.in_session(), [8].into());
    assert_eq!(world.requests.len(), 2);
}

#[test]
fn an_invited_client_is_known_by_its_key_from_then_on() {
    let mut world = World::new(&[invited(7, 50, A_DAY)], &[(7, Some(50))]);
    world.run(A_WHILE);
    assert_eq!(world.in_session(), [7].into());
    let ClientRequest { key, invited, .. } = world.requests[0];
    assert_eq!((key, invited), (public(7), true));
    // Somebody else with the same secret comes too late, and is reported once.
    let late = client(8, Some(50), world.now);
    world.clients.push((8, late));
    world.run(Duration::from_secs(3));
    assert_eq!(world.in_session(), [7].into());
    assert!(world.dropped(Drop::HandshakeInvitation) > 1);
    assert_eq!(world.server.poll_refused_invitation(), Some(outer(8)));
    assert_eq!(world.server.poll_refused_invitation(), None);
    // The client itself may still bring it, and needs it no more.
    world.end_connection(7);
    world.clients.retain(|(host, _)| *host != 8);
    world.run(Duration::from_secs(12));
    assert_eq!(world.in_session(), [7].into());
    assert!(!world.requests[1].invited);
    world.end_connection(7);
    let again = client(7, None, world.now);
    world.clients = vec![(7, again)];
    world.run(A_WHILE);
    assert_eq!(world.in_session(), [7].into(), "without the secret");
}

#[test]
fn an_invitation_expires_by_the_wall_clock() {
    // The clocks began a second ago.
    for (expires, joins) in [(500, false), (1000, false), (1100, true)] {
        let expires = Duration::from_millis(expires);
        let mut world = World::new(&[invited(7, 50, expires)], &[(7, Some(50))]);
        world.run(Duration::from_millis(300));
        assert_eq!(world.in_session().contains(&7), joins, "{expires:?}");
        assert_eq!(world.dropped(Drop::HandshakeInvitation) > 0, !joins);
    }
}

#[test]
fn an_invitation_with_the_wrong_secret_is_refused() {
    let mut world = World::new(&[invited(7, 50, A_DAY)], &[(7, Some(51))]);
    world.run(A_WHILE);
    assert!(world.in_session().is_empty() && world.requests.is_empty());
    assert!(world.dropped(Drop::HandshakeInvitation) > 0);
    // And the right one is still good.
    let right = client(8, Some(50), world.now);
    world.clients = vec![(8, right)];
    world.run(A_WHILE);
    assert_eq!(world.requests[0].key, public(8));
}

#[test]
fn a_client_may_have_its_handshake_wait_for_two_seconds() {
    let mut world = World::new(&[known(7)], &[(7, None)]);
    let initiation = sent(&mut world.clients[0].1, world.now + Duration::from_millis(1)).remove(0);
    for late in [false, true] {
        let mut world = World::new(&[known(7)], &[]);
        // A copy of it comes by another path.
        for remote in [outer(7), outer(77)] {
            world.arrives_at_server(remote, initiation.clone());
        }
        assert_eq!(world.dropped(Drop::HandshakeReplay), 0);
        world.now += Duration::from_millis(if late { 2001 } else { 1990 });
        world.accept();
        assert_eq!(world.requests.len(), 1);
        let answered: Vec<_> =
            sent_to(&mut world.server, world.now).into_iter().map(|(to, _)| to).collect();
        assert_eq!(answered, if late { vec![] } else { vec![outer(7), outer(77)] });
    }
}

/// An uplink may carry nothing back: because of the client's reverse path filter, for instance.
#[test]
fn each_copy_of_an_initiation_is_answered_where_it_came_from_until_the_client_uses_an_answer() {
    let mut world = World::new(&[known(7)], &[(7, None)]);
    let initiation = sent(&mut world.clients[0].1, world.now + Duration::from_millis(1)).remove(0);
    let from = |world: &mut World, host: u8| {
        world.arrives_at_server(outer(host), initiation.clone());
        world.accept();
        sent_to(&mut world.server, world.now)
    };
    let mut answers = Vec::new();
    for host in [7, 77, 78] {
        let [(to, answer)] = &from(&mut world, host)[..] else { panic!("one answer to {host}") };
        assert_eq!(*to, outer(host));
        answers.push(answer.clone());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "there is one epoch");
    assert_eq!(world.dropped(Drop::HandshakeReplay), 0);
    assert!(from(&mut world, 78).is_empty(), "once each");
    assert_eq!(world.dropped(Drop::HandshakeReplay), 1);
    let more: Vec<_> = (79..99).filter(|host| !from(&mut world, *host).is_empty()).collect();
    assert_eq!(more, [79, 80, 81, 82, 83], "eight at the most");

    // By the third path.
    let (now, client) = (world.now, &mut world.clients[0].1);
    arrive(client, now, outer(SERVER), answers.remove(2), &mut world.arrived);
    world.run(A_WHILE);
    assert_eq!(world.in_session(), [7].into());
    assert!(from(&mut world, 99).is_empty(), "it is a recorded one by now");
}

#[test]
fn under_load_a_client_gets_in_by_its_cookie_and_the_load_gets_nothing() {
    let mut world = World::new(&[known(7), known(8)], &[(8, None)]);
    world.run(A_WHILE);
    assert_eq!(world.in_session(), [8].into());
    // It knows the server's key, and what it sends is authentic, so each of it costs a handshake.
    let mut stranger = client(9, None, world.now);
    world.flood = sent(&mut stranger, world.now + Duration::from_millis(1)).pop();
    world.run(A_WHILE);
    let (load, unknown) =
        (world.dropped(Drop::HandshakeLoad), world.dropped(Drop::HandshakeUnknown));
    assert!(load + unknown >= 3900 && unknown <= 64 + 500 * 2 + 10, "{load} {unknown}");
    let late = client(7, None, world.now);
    world.clients.push((7, late));
    world.run(A_WHILE);
    assert_eq!(world.in_session(), [7, 8].into());
    let of_client = world.initiations.iter().filter(|(host, _)| *host == 7);
    let with_cookie = |datagram: &Vec<u8>| datagram[datagram.len() - 16..] != [0; 16];
    let cookies: Vec<bool> = of_client.map(|(_, datagram)| with_cookie(datagram)).collect();
    assert_eq!(cookies, [false, true], "the first one was answered by a cookie");
}

#[test]
fn with_another_key_sessions_go_on_and_others_begin_with_that() {
    let mut world = World::new(&[known(7), known(8)], &[(7, None)]);
    world.run(A_WHILE);
    let ciphers = Ciphers::fastest(Cipher::ChaCha20Poly1305);
    world.server.set_keys(&HostKeys::new(private(77), ciphers, [7; 32], CLOCK_ZERO));
    world.run(Duration::from_secs(20));
    assert_eq!(world.in_session(), [7].into(), "it goes on");
    // One knows the new key, the other one does not.
    let mut config = connection(SERVER, None);
    config.paths = vec![path(outer(SERVER))];
    if let Some(keys) = &mut config.peer_keys {
        keys.public = public(77);
    }
    let informed = end(8, 5, world.now, vec![config]);
    let before = world.dropped(Drop::HandshakeMac);
    let again = client(7, None, world.now);
    world.clients = vec![(7, again), (8, informed)];
    world.run(A_WHILE);
    assert!(world.in_session().contains(&8));
    assert!(!world.clients[0].1.connection(ConnectionId(0)).has_session());
    assert!(world.dropped(Drop::HandshakeMac) > before);
}
