use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::{ConnectionConfig, PathConfig, ReorderConfig, SchedulerConfig};
use crate::id::SocketId;
use crate::peer_kind::PeerKind;
use crate::pins::Pins;
use crate::prefix::Prefix;
use crate::wire::keepalive;

const CONNECTIONS: u16 = 6;

/// Something that moves the deadline of some connection.
#[derive(Clone, Debug)]
enum Act {
    Add {
        connection: u16,
        paths: u8,
    },
    Remove {
        connection: u16,
    },
    AddPath {
        connection: u16,
        path: u8,
    },
    RemovePath {
        connection: u16,
        path: u8,
    },
    Set {
        connection: u16,
        path: u8,
        keepalive: u16,
        dead_time: u16,
    },
    Switch {
        connection: u16,
        path: u8,
        off: bool,
    },
    Present {
        connection: u16,
        path: u8,
        present: bool,
    },
    /// A keepalive and a packet of the peer come.
    Hear {
        connection: u16,
        path: u8,
        number: u32,
    },
    Pass {
        ms: u16,
    },
}

fn any_act() -> impl Strategy<Value = Act> {
    let (connection, path) = (0..CONNECTIONS, 0..4_u8);
    let both = (connection.clone(), path);
    let times = (100..900_u16, 100..900_u16);
    prop_oneof![
        (connection.clone(), 1..4_u8)
            .prop_map(|(connection, paths)| Act::Add { connection, paths }),
        connection.prop_map(|connection| Act::Remove { connection }),
        both.clone().prop_map(|(connection, path)| Act::AddPath { connection, path }),
        both.clone().prop_map(|(connection, path)| Act::RemovePath { connection, path }),
        (both.clone(), times).prop_map(|((connection, path), (keepalive, dead_time))| Act::Set {
            connection,
            path,
            keepalive,
            dead_time
        }),
        (both.clone(), any::<bool>()).prop_map(|((connection, path), off)| Act::Switch {
            connection,
            path,
            off
        }),
        (both.clone(), any::<bool>()).prop_map(|((connection, path), present)| Act::Present {
            connection,
            path,
            present
        }),
        (both, 0..9_u32).prop_map(|((connection, path), number)| Act::Hear {
            connection,
            path,
            number
        }),
        (0..400_u16).prop_map(|ms| Act::Pass { ms }),
    ]
}

fn peer(connection: u16) -> IpAddr {
    IpAddr::from([10, 9, 1, connection as u8 + 1])
}

fn own() -> IpAddr {
    IpAddr::from([10, 9, 0, 1])
}

fn path_config(connection: u16, path: u8, [keepalive, dead_time]: [u16; 2]) -> PathConfig {
    let time = |ms: u16| Some(Duration::from_millis(ms.into()));
    PathConfig {
        socket: SocketId(path.into()),
        remote: SocketAddr::from(([10, path, 1, connection as u8 + 1], 4754)),
        weight: 1,
        weight_from_peer: false,
        rate: None,
        price: 0,
        priority: 0,
        pins: Pins::default(),
        refuses: 0,
        failover: None,
        keepalive: time(keepalive),
        dead_time: time(dead_time),
        status: PathStatus::Available,
    }
}

fn connection_config(connection: u16, paths: u8) -> ConnectionConfig {
    ConnectionConfig {
        peer_kind: PeerKind::Mpt,
        framing: crate::config::FramingConfig::Plain,
        peer: vec![peer(connection)],
        networks: Vec::new(),
        selector: None,
        key: None,
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
        paths: (0..paths).map(|path| path_config(connection, path, [500, 800])).collect(),
    }
}

fn change(act: &Act) -> Option<Change> {
    Some(match *act {
        Act::Add { connection, paths } => {
            let config = Arc::new(connection_config(connection, paths));
            Change::AddConnection {
                connection: ConnectionId(connection),
                config,
                accepted_by: None,
            }
        }
        Act::Remove { connection } => {
            Change::RemoveConnection { connection: ConnectionId(connection) }
        }
        Act::AddPath { connection, path } => Change::AddPath {
            connection: ConnectionId(connection),
            path: PathId(path),
            config: path_config(connection, path, [300, 700]),
        },
        Act::RemovePath { connection, path } => {
            Change::RemovePath { connection: ConnectionId(connection), path: PathId(path) }
        }
        Act::Set { connection, path, keepalive, dead_time } => Change::SetPath {
            connection: ConnectionId(connection),
            path: PathId(path),
            config: path_config(connection, path, [keepalive, dead_time]),
        },
        Act::Switch { connection, path, off } => Change::SetStatus {
            connection: ConnectionId(connection),
            path: PathId(path),
            status: if off { PathStatus::Off } else { PathStatus::Available },
        },
        Act::Present { connection, path, present } => {
            let (connection, path) = (ConnectionId(connection), PathId(path));
            Change::SetPresent { connection, path, present, unnoticed: Duration::ZERO }
        }
        Act::Hear { .. } | Act::Pass { .. } => return None,
    })
}

/// A keepalive, and a packet with a sequence number, of the peer of a connection.
fn datagrams(connection: u16, path: u8, number: u32) -> [Vec<u8>; 2] {
    use crate::sequence::Seq;
    use crate::wire::gre::{Header, Protocol};
    use crate::wire::keepalive::{Activation, Keepalive, Report};
    let header = Header { protocol: Protocol::Ipv4, checksum: false, key: None, sequence: None };
    let keepalive = Keepalive {
        report: Report::default(),
        arrivals: None,
        activation: Activation::default(),
        weight: None,
        path: Some(path),
        lost: None,
        sender: peer(connection),
        receiver: own(),
        trailer: None,
    };
    let mut place = [0; keepalive::LEN];
    let whole = |header: Header, payload: &[u8]| {
        let mut bytes = vec![0; header.size()];
        bytes.extend_from_slice(payload);
        header.emit(&mut bytes);
        bytes
    };
    let mut packet = [0; 20];
    (packet[0], packet[3], packet[8]) = (0x45, 20, 64);
    packet[12..16].copy_from_slice(&[10, 9, 1, connection as u8 + 1]);
    packet[16..20].copy_from_slice(&[10, 9, 0, 1]);
    let numbered = Header { sequence: Some(Seq::new(number)), ..header };
    [whole(header, keepalive.emit(&mut place)), whole(numbered, &packet)]
}

/// The earliest deadline of all halves, asked one by one.
fn plain_scan(endpoint: &Endpoint) -> Option<Instant> {
    let ids = || (0..CONNECTIONS).map(ConnectionId);
    let rx = ids().filter_map(|id| endpoint.rx.find(id)?.deadline());
    let tx = ids().filter_map(|id| endpoint.tx.find(id)?.deadline());
    rx.chain(tx).map(|deadline| deadline.at).min()
}

/// Keeps nothing but numbers.
struct Numbers(u32);

impl Sink for Numbers {
    fn deliver(&mut self, _: &[u8]) {}

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        self.0 += 1;
        Some(Held(self.0))
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        20
    }
}

proptest! {
    #[test]
    fn the_next_deadline_is_the_earliest_of_all_connections(
        acts in prop::collection::vec(any_act(), 1..60),
    ) {
        let mut now = Instant::ZERO + Duration::from_secs(1000);
        let local = Prefix::new(own(), 16).expect("a prefix");
        let connections = (0..2).map(|connection| connection_config(connection, 2)).collect();
        let config = EndpointConfig { addresses: vec![local], connections, secret: crate::Secret::default(), keys: None };
        let mut endpoint = Endpoint::new(&config, now).expect("good settings");
        let mut sink = Numbers(0);
        for act in acts {
            if let Some(change) = change(&act) {
                endpoint.change(now, &change, &mut sink);
            }
            if let Act::Hear { connection, path, number } = act {
                let remote = path_config(connection, path, [1, 1]).remote;
                let origin = Origin { socket: SocketId(path.into()), remote, tos: 0 };
                for datagram in datagrams(connection, path, number) {
                    endpoint.handle_datagram(now, origin, &mut datagram.clone(), &mut sink);
                }
            }
            if let Act::Pass { ms } = act {
                now += Duration::from_millis(ms.into());
                endpoint.handle_timeout(now, &mut sink);
                while endpoint.poll_transmit(now).is_some() {}
                prop_assert!(endpoint.poll_timeout().is_none_or(|next| next.at > now));
            }
            prop_assert_eq!(endpoint.poll_timeout().map(|next| next.at), plain_scan(&endpoint));
        }
    }
}
