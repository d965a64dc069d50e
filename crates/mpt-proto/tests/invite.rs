//! Peers that nobody configured, which ask with a hello.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mpt_proto::{
    AcceptConfig, AcceptId, Change, ConnectRequest, ConnectionConfig, ConnectionId, Drop, Endpoint,
    EndpointConfig, FramingConfig, Held, Instant, Origin, PathConfig, PathId, PathState,
    PathStatus, PeerKind, Pins, Prefix, ReorderConfig, SchedulerConfig, Secret, Sink, SocketId,
    TransmitKind,
};

const CLIENT: [u8; 4] = [10, 9, 0, 7];
const SERVER: [u8; 4] = [10, 9, 0, 1];

/// Where the client is seen, and the server.
fn client_at(port: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 7], port))
}

fn server_at() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 4754))
}

/// Nothing is sent but messages.
struct Nothing;

impl Sink for Nothing {
    fn deliver(&mut self, _: &[u8]) {
        panic!("no packet was sent");
    }

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        0
    }
}

fn connection(peer: [u8; 4], framing: FramingConfig, remote: SocketAddr) -> ConnectionConfig {
    let path = PathConfig {
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
    };
    ConnectionConfig {
        peer_kind: PeerKind::Mpt,
        framing,
        peer: vec![peer.into()],
        networks: Vec::new(),
        selector: None,
        key: Some(5),
        checksum: false,
        sequence: true,
        scheduler: SchedulerConfig::Weighted,
        peer_keys: None,
        thin_acks: true,
        classes: Vec::new(),
        equalise: true,
        compete: true,
        breaker: true,
        repair: true,
        reorder: ReorderConfig::default(),
        paths: vec![path],
    }
}

fn end(address: [u8; 4], connections: Vec<ConnectionConfig>) -> Endpoint {
    let addresses = vec![Prefix::new(address.into(), 24).expect("a prefix")];
    let secret = Secret::new([address[3]; 16]);
    let config = EndpointConfig { addresses, connections, secret, keys: None };
    Endpoint::new(&config, Instant::ZERO).expect("good settings")
}

fn template(framing: FramingConfig) -> AcceptConfig {
    AcceptConfig {
        id: AcceptId(1),
        sockets: vec![SocketId(0)],
        peers: vec![Prefix::new([10, 9, 0, 0].into(), 24).expect("a prefix")],
        sources: Vec::new(),
        key: Some(5),
        by_keepalive: framing != FramingConfig::Extended,
        by_hello: framing != FramingConfig::Plain,
        max_connections: 2,
        max_paths: 2,
        interval: Duration::from_secs(1),
        burst: 4,
    }
}

struct Test {
    now: Instant,
    client: Endpoint,
    server: Endpoint,
    requests: Vec<ConnectRequest>,
    /// What the hosts of a template make of a connect request.
    framing: FramingConfig,
}

impl Test {
    fn new(client: FramingConfig, server: FramingConfig) -> Self {
        let mut test = Self {
            now: Instant::ZERO,
            client: end(CLIENT, vec![connection(SERVER, client, server_at())]),
            server: end(SERVER, Vec::new()),
            requests: Vec::new(),
            framing: server,
        };
        test.server.set_accepts(&[template(server)]);
        test
    }

    /// Exchanges everything for so long, as the owner of the server makes what is asked for.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(10);
            for datagram in sent(&mut self.client, self.now) {
                arrive(&mut self.server, self.now, client_at(4754), datagram);
            }
            while let Some(request) = self.server.poll_connect_request() {
                let config = connection(CLIENT, self.framing, request.remote);
                let (connection, accepted_by) = (ConnectionId(0), Some(request.accept));
                let change =
                    Change::AddConnection { connection, config: Arc::new(config), accepted_by };
                self.server.change(self.now, &change, &mut Nothing);
                self.requests.push(request);
            }
            for datagram in sent(&mut self.server, self.now) {
                arrive(&mut self.client, self.now, server_at(), datagram);
            }
            self.client.handle_timeout(self.now, &mut Nothing);
            self.server.handle_timeout(self.now, &mut Nothing);
        }
    }

    /// Whether both hosts are in a session, on a path that is up.
    fn in_session(&self) -> bool {
        [&self.client, &self.server].into_iter().all(|end| {
            end.connections().any(|(_, connection)| {
                connection.has_session() && connection.path(PathId(0)).state == PathState::Up
            })
        })
    }
}

fn sent(end: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    while let Some(transmit) = end.poll_transmit(now) {
        let mut datagram = vec![0; transmit.size()];
        end.emit(now, &transmit, &mut datagram);
        sent.push(datagram);
    }
    sent
}

fn arrive(end: &mut Endpoint, now: Instant, remote: SocketAddr, mut datagram: Vec<u8>) {
    let origin = Origin { socket: SocketId(0), remote, tos: 0 };
    end.handle_datagram(now, origin, &mut datagram, &mut Nothing);
}

#[test]
fn a_hello_is_enough_where_the_template_permits_sessions() {
    use FramingConfig::{Auto, Extended, Plain};
    for (client, server) in [(Extended, Auto), (Extended, Extended), (Auto, Auto), (Auto, Extended)]
    {
        let mut test = Test::new(client, server);
        test.run(Duration::from_millis(1500));
        assert!(test.in_session(), "{client:?} to {server:?}");
        assert_eq!(test.requests.len(), 1, "{client:?} to {server:?}");
        test.run(Duration::from_secs(5));
        assert!(test.in_session(), "{client:?} to {server:?} for long");
    }
    let mut test = Test::new(Extended, Plain);
    test.run(Duration::from_secs(5));
    assert!(test.requests.is_empty(), "the template permits no session");
    assert!(test.server.drops().count(Drop::HelloUnknown) > 0);
    let mut test = Test::new(Plain, Extended);
    test.run(Duration::from_secs(5));
    assert!(test.requests.is_empty(), "the template wants one");
}

#[test]
fn a_restarted_server_accepts_again() {
    let mut test = Test::new(FramingConfig::Extended, FramingConfig::Extended);
    test.run(Duration::from_secs(2));
    let config = EndpointConfig {
        addresses: vec![Prefix::new(SERVER.into(), 24).expect("a prefix")],
        connections: Vec::new(),
        secret: Secret::new([99; 16]),
        keys: None,
    };
    test.server = Endpoint::new(&config, test.now).expect("good settings");
    test.server.set_accepts(&[template(FramingConfig::Extended)]);
    test.run(Duration::from_secs(4));
    assert!(test.in_session());
    assert_eq!(test.requests.len(), 2);
}

/// What the client sends first, and what the server answers to it from each of these ports.
fn greet(test: &mut Test, ports: impl Iterator<Item = u16>) -> Vec<Vec<u8>> {
    let hello = sent(&mut test.client, test.now).remove(0);
    let mut answers = Vec::new();
    for port in ports {
        arrive(&mut test.server, test.now, client_at(port), hello.clone());
        while let Some(transmit) = test.server.poll_transmit(test.now) {
            assert_eq!(transmit.kind(), TransmitKind::Reply);
            assert!(transmit.size() <= hello.len(), "no more than came");
            let mut datagram = vec![0; transmit.size()];
            test.server.emit(test.now, &transmit, &mut datagram);
            answers.push(datagram);
        }
    }
    answers
}

#[test]
fn hellos_alone_make_nothing_and_a_confirm_is_valid_from_its_origin_only() {
    let mut test = Test::new(FramingConfig::Extended, FramingConfig::Extended);
    let answers = greet(&mut test, 1000..3000);
    assert_eq!(answers.len(), 2000, "each is answered");
    assert!(test.server.poll_connect_request().is_none(), "and forgotten");
    arrive(&mut test.client, test.now, server_at(), answers[5].clone());
    let confirm = sent(&mut test.client, test.now).remove(0);
    for port in [1004, 4754] {
        arrive(&mut test.server, test.now, client_at(port), confirm.clone());
        assert!(test.server.poll_connect_request().is_none());
    }
    assert_eq!(test.server.drops().count(Drop::HelloCookie), 2);
    for _ in 0..3 {
        arrive(&mut test.server, test.now, client_at(1005), confirm.clone());
    }
    let request = test.server.poll_connect_request().expect("he has proved to be there");
    assert_eq!((request.remote, request.refused), (client_at(1005), None));
    assert!(test.server.poll_connect_request().is_none(), "the same request again");
    let late = test.now + Duration::from_secs(33);
    arrive(&mut test.server, late, client_at(1005), confirm);
    assert!(test.server.poll_connect_request().is_none(), "a cookie lasts for 16 to 32 s");
}
