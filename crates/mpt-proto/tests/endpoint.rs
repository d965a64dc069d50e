//! The endpoint from outside: bring-up, striping, failure of paths, and sums that balance.

use std::net::Ipv6Addr;
use std::time::Duration;

use crate::pair::{
    CONNECTION, Host, Inbox, Pair, Sent, Settings, config, outer_address, packet, packet_v6,
};
use mpt_proto::{
    Change, ConfigError, DownCause, Drop, Endpoint, Event, Instant, Origin, PathId, PathState,
    PathStatus, Prefix, ReorderConfig, SocketId, Timer,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn paths_come_up_within_one_exchange_and_emit_events() {
    let mut pair = Pair::up(&Settings::default());
    let up = |path| Event::Path {
        connection: CONNECTION,
        path: PathId(path),
        from: PathState::Probing,
        to: PathState::Up,
    };
    assert_eq!(pair.left.events(), [up(0), up(1)]);
    assert_eq!(pair.right.events(), [up(0), up(1)]);
    let sent = pair.left.endpoint.connection(CONNECTION).path(PathId(0)).stats.keepalives_sent;
    assert!(sent <= 3, "to probe, to answer, to confirm; not {sent}");
}

#[test]
fn packets_of_both_versions_are_striped_and_arrive_unchanged() {
    for (key, checksum, sequence) in
        [(None, false, true), (Some(7), true, true), (Some(0), false, false), (None, true, false)]
    {
        let mut pair = Pair::up(&Settings { key, checksum, sequence, ..Settings::default() });
        let packets = [packet(1, 0), packet_v6(1), packet(1, 1), packet_v6(1)];
        let sent: Vec<_> =
            packets.iter().map(|inner| pair.left.send(pair.now, inner).unwrap()).collect();
        let paths: Vec<_> = sent.iter().map(|sent| sent.path.0).collect();
        assert_eq!(paths, [0, 1, 0, 1]);
        sent.iter().for_each(|sent| pair.right.receive(pair.now, sent));
        assert_eq!(pair.right.inbox.delivered, packets);
    }
}

#[test]
fn a_checksum_is_the_senders_choice() {
    let settings = |checksum| Settings { checksum, ..Settings::default() };
    let mut pair = Pair::new(&settings(false));
    pair.left = Host::new(&settings(true), 1, pair.now);
    pair.exchange(|_, _| true);
    let (there, back) = (
        pair.left.send(pair.now, &packet(1, 0)).unwrap(),
        pair.right.send(pair.now, &packet(2, 0)).unwrap(),
    );
    assert_eq!((there.bytes[0] >> 7, back.bytes[0] >> 7), (1, 0), "C is set one way only");
    pair.right.receive(pair.now, &there);
    pair.left.receive(pair.now, &back);
    assert_eq!(pair.right.inbox.delivered, [packet(1, 0)]);
    assert_eq!(pair.left.inbox.delivered, [packet(2, 0)]);
}

#[test]
fn weights_decide_the_shares() {
    let mut pair = Pair::up(&Settings { weights: vec![1, 2, 3], ..Settings::default() });
    let paths: Vec<_> =
        (0..6).map(|n| pair.left.send(pair.now, &packet(1, n)).unwrap().path.0).collect();
    assert_eq!(paths, [2, 1, 2, 0, 1, 2]);
}

#[test]
fn padding_behind_an_inner_packet_is_cut() {
    let mut pair = Pair::up(&Settings::default());
    let mut sent = pair.left.send(pair.now, &packet(1, 0)).unwrap();
    sent.bytes.extend_from_slice(&[0; 18]);
    pair.right.receive(pair.now, &sent);
    assert_eq!(pair.right.inbox.delivered, [packet(1, 0)]);
}

#[test]
fn a_path_cut_in_any_direction_is_unused_by_both_and_recovers() {
    for (left_to_right, right_to_left) in [(false, false), (false, true), (true, false)] {
        let mut pair = Pair::up(&Settings::default());
        let cut = |from: u8, path: PathId| {
            path.0 != 1 || if from == 1 { left_to_right } else { right_to_left }
        };
        pair.wait(3 * SECOND, cut);
        for host in [&pair.left, &pair.right] {
            assert_eq!(host.state(0), PathState::Up);
            assert!(matches!(host.state(1), PathState::Down(_)), "{:?}", host.state(1));
        }
        let all_on_path_0 =
            (0..10).all(|n| pair.left.send(pair.now, &packet(1, n)).unwrap().path.0 == 0);
        assert!(all_on_path_0);
        pair.wait(SECOND, |_, _| true);
        assert_eq!((pair.left.state(1), pair.right.state(1)), (PathState::Up, PathState::Up));
    }
}

#[test]
fn the_cause_of_a_cut_shows_its_direction() {
    let mut pair = Pair::up(&Settings::default());
    pair.wait(3 * SECOND, |from, path| path.0 != 1 || from == 2);
    assert_eq!(pair.left.state(1), PathState::Down(DownCause::PeerDeaf));
    assert_eq!(pair.right.state(1), PathState::Down(DownCause::Silent));
}

#[test]
fn data_counts_as_a_sign_of_life() {
    let mut pair = Pair::up(&Settings::default());
    for number in 0..100 {
        pair.now += Duration::from_millis(100);
        for _ in 0..2 {
            let sent = pair.left.send(pair.now, &packet(1, number)).unwrap();
            pair.right.receive(pair.now, &sent);
        }
        pair.right.endpoint.handle_timeout(pair.now, &mut pair.right.inbox);
    }
    assert_eq!(pair.right.state(0), PathState::Up, "ten seconds without a keepalive");
}

#[test]
fn a_path_switched_off_is_left_by_the_peer_at_once() {
    let mut pair = Pair::up(&Settings::default());
    let Host { endpoint, inbox, .. } = &mut pair.left;
    endpoint.set_path_status(pair.now, CONNECTION, PathId(0), PathStatus::Off, inbox);
    pair.exchange(|_, _| true);
    assert_eq!(pair.left.state(0), PathState::Off);
    assert_eq!(pair.right.state(0), PathState::Down(DownCause::PeerOff));
    assert!((0..4).all(|n| pair.right.send(pair.now, &packet(2, n)).unwrap().path.0 == 1));
    pair.wait(10 * SECOND, |_, _| true);
    assert_eq!(pair.right.state(0), PathState::Down(DownCause::PeerOff), "it stays off");
    let Host { endpoint, inbox, .. } = &mut pair.left;
    endpoint.set_path_status(pair.now, CONNECTION, PathId(0), PathStatus::Available, inbox);
    pair.exchange(|_, _| true);
    assert_eq!((pair.left.state(0), pair.right.state(0)), (PathState::Up, PathState::Up));
}

#[test]
fn closing_notifies_the_peer() {
    let mut pair = Pair::up(&Settings::default());
    pair.left.endpoint.close(pair.now, &mut pair.left.inbox);
    pair.exchange(|_, _| true);
    for path in 0..2 {
        assert_eq!(pair.right.state(path), PathState::Down(DownCause::PeerStopped));
    }
}

#[test]
fn a_restart_of_either_side_loses_nothing_sent_after_it() {
    for packets_before in [3, 40, 5000] {
        let mut pair = Pair::up(&Settings::default());
        for number in 0..packets_before {
            let sent = pair.left.send(pair.now, &packet(1, number)).unwrap();
            pair.right.receive(pair.now, &sent);
        }
        pair.right.numbers();
        pair.left = Host::new(&Settings::default(), 1, pair.now);
        pair.exchange(|_, _| true);
        for number in 0..50 {
            let sent = pair.left.send(pair.now, &packet(1, number)).unwrap();
            pair.right.receive(pair.now, &sent);
        }
        assert_eq!(pair.right.numbers(), (0..50).collect::<Vec<_>>(), "sender restarted");

        pair.right = Host::new(&Settings::default(), 2, pair.now);
        pair.exchange(|_, _| true);
        for number in 50..100 {
            let sent = pair.left.send(pair.now, &packet(1, number)).unwrap();
            pair.right.receive(pair.now, &sent);
        }
        assert_eq!(pair.right.numbers(), (50..100).collect::<Vec<_>>(), "receiver restarted");
    }
}

#[test]
fn without_keepalives_and_dead_time_a_path_is_up_and_silent() {
    let settings = Settings { keepalive: None, dead_time: None, ..Settings::default() };
    let mut pair = Pair::new(&settings);
    assert_eq!(pair.left.state(0), PathState::Up);
    pair.wait(10 * SECOND, |_, _| panic!("a keepalive was sent"));
    assert_eq!(pair.left.state(0), PathState::Up);
    assert_eq!(pair.left.endpoint.poll_timeout(), None);
}

#[test]
fn a_path_too_small_for_ipv6_is_not_used() {
    let mut pair = Pair::up(&Settings::default());
    let Host { endpoint, inbox, .. } = &mut pair.left;
    let change = Change::SetFits { connection: CONNECTION, path: PathId(0), fits: false };
    endpoint.change(pair.now, &change, inbox);
    assert_eq!(pair.left.state(0), PathState::UnusableMtu);
    assert!((0..4).all(|n| pair.left.send(pair.now, &packet(1, n)).unwrap().path.0 == 1));
}

#[test]
fn the_next_deadline_says_what_it_is_for() {
    let mut pair = Pair::up(&Settings::default());
    let deadline = pair.left.endpoint.poll_timeout().unwrap();
    assert_eq!((deadline.timer, deadline.at), (Timer::Keepalive, pair.now + SECOND / 2));

    let reorder = ReorderConfig { early_release: false, ..ReorderConfig::default() };
    let settings = Settings { keepalive: None, reorder, ..Settings::default() };
    let mut deaf = Pair::new(&settings);
    assert_eq!(deaf.left.endpoint.poll_timeout(), None);
    let sent: Vec<_> = (0..3).map(|n| pair.left.send(pair.now, &packet(1, n)).unwrap()).collect();
    deaf.right.receive(deaf.now, &sent[0]);
    let deadline = deaf.right.endpoint.poll_timeout().unwrap();
    assert_eq!((deadline.timer, deadline.at), (Timer::DeadTime, deaf.now + SECOND * 7 / 4));
    deaf.right.receive(deaf.now, &sent[2]);
    let deadline = deaf.right.endpoint.poll_timeout().unwrap();
    assert_eq!((deadline.timer, deadline.at), (Timer::MaxDelay, deaf.now + SECOND / 10));
}

#[test]
fn connections_on_one_socket_are_distinguished_by_address_key_and_port() {
    let mut config = config(&Settings::default(), 2);
    let base = config.connections[0].clone();
    let connection = |key, peer: u8, port| {
        let mut connection = base.clone();
        connection.key = key;
        connection.peer = vec![[10, 9, 0, peer].into()];
        connection.paths.truncate(1);
        connection.paths[0].remote.set_port(port);
        connection
    };
    config.connections =
        vec![connection(None, 1, 4754), connection(Some(5), 3, 4754), connection(Some(5), 4, 9999)];
    let mut endpoint = Endpoint::new(&config, Instant::ZERO).unwrap();
    let mut inbox = Inbox::default();
    let mut receive = |key: Option<u32>, peer: u8, port| {
        let mut inner = packet(1, 0);
        inner[15] = peer;
        let mut left = Host::new(
            &Settings {
                key,
                sequence: false,
                keepalive: None,
                dead_time: None,
                ..Settings::default()
            },
            1,
            Instant::ZERO,
        );
        let sent = left.send(Instant::ZERO, &inner).unwrap();
        let mut remote = outer_address(1, 0);
        remote.set_port(port);
        let origin = Origin { socket: SocketId(0), remote, tos: 0 };
        let before = inbox.delivered.len();
        endpoint.handle_datagram(Instant::ZERO, origin, &mut sent.bytes.clone(), &mut inbox);
        inbox.delivered.len() > before
    };
    assert!(receive(None, 1, 4754));
    assert!(receive(None, 1, 50_000), "the only one without a key: the port does not matter");
    assert!(receive(Some(5), 3, 4754));
    assert!(receive(Some(5), 4, 9999));
    assert!(!receive(Some(5), 3, 9999), "that is the other connection's port, so its source");
    assert!(!receive(Some(5), 3, 1), "between two the port decides");
    assert!(!receive(Some(6), 3, 4754));
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let good = config(&Settings::default(), 1);
    let refused = |change: &dyn Fn(&mut mpt_proto::ConnectionConfig)| {
        let mut config = good.clone();
        change(&mut config.connections[0]);
        Endpoint::new(&config, Instant::ZERO).err()
    };
    assert_eq!(refused(&|_| {}), None);
    let no_path = refused(&|connection| connection.paths.clear());
    assert_eq!(no_path, Some(ConfigError::NoPath { connection: 0 }));
    let too_many = refused(&|connection| {
        let path = connection.paths[0].clone();
        connection.paths = vec![path; 65];
    });
    assert_eq!(too_many, Some(ConfigError::TooManyPaths { connection: 0 }));
    for weight in [0, 10_001] {
        let refused = refused(&|connection| connection.paths[1].weight = weight);
        assert_eq!(refused, Some(ConfigError::Weight { connection: 0, path: 1 }));
    }
    let window = refused(&|connection| connection.reorder.window = 10_001);
    assert_eq!(window, Some(ConfigError::Window { connection: 0, most: 10_000 }));
    let same_path = refused(&|connection| connection.paths[1] = connection.paths[0].clone());
    assert_eq!(same_path, Some(ConfigError::SamePath { connection: 0, path: 1 }));
    let mut twice = good.clone();
    twice.connections.push(twice.connections[0].clone());
    let twice = Endpoint::new(&twice, Instant::ZERO).err();
    assert_eq!(twice, Some(ConfigError::SamePeer { connection: 1 }));
    let mut no_address = good.clone();
    no_address.addresses.clear();
    let no_address = Endpoint::new(&no_address, Instant::ZERO).err();
    assert_eq!(no_address, Some(ConfigError::NoTunnelAddress { connection: 0 }));
}

#[test]
fn packets_without_a_route_are_counted() {
    let mut pair = Pair::up(&Settings::default());
    let mut stranger = packet(1, 0);
    stranger[19] = 77;
    assert!(pair.left.send(pair.now, &stranger).is_none());
    assert!(pair.left.send(pair.now, &[0x45, 0, 0]).is_none());
    assert!(pair.left.send(pair.now, &[]).is_none());
    assert_eq!(pair.left.dropped(Drop::NoRoute), 1);
    assert_eq!(pair.left.dropped(Drop::InnerMalformed), 2);
}

#[test]
fn multicast_and_broadcast_that_nothing_leads_to_have_a_drop_of_their_own() {
    let (destinations, last) = ([[224, 0, 0, 251], [239, 1, 2, 3], [255; 4]], [10, 9, 0, 255]);
    let mut settings = config(&Settings::default(), 1);
    settings.addresses = vec![Prefix::new("10.9.0.1".parse().unwrap(), 24).unwrap()];
    let mut endpoint = Endpoint::new(&settings, Instant::ZERO).unwrap();
    let mut send = |destination: [u8; 4]| {
        let mut packet = packet(1, 0);
        packet[16..20].copy_from_slice(&destination);
        assert!(endpoint.handle_inner(Instant::ZERO, &packet).is_none(), "{destination:?}");
        (endpoint.drops().count(Drop::Multicast), endpoint.drops().count(Drop::NoRoute))
    };
    for (count, destination) in (1..).zip(destinations) {
        assert_eq!(send(destination), (count, 0), "{destination:?}");
    }
    assert_eq!(send(last), (4, 0), "to all hosts of the tunnel's network");
    assert_eq!(send([10, 9, 0, 254]), (4, 1));

    let mut group = packet_v6(1);
    group[24..40].copy_from_slice(&"ff02::16".parse::<Ipv6Addr>().unwrap().octets());
    assert!(endpoint.handle_inner(Instant::ZERO, &group).is_none());
    assert_eq!(endpoint.drops().count(Drop::Multicast), 5);
}

#[test]
fn a_network_that_contains_multicast_carries_it() {
    let mut settings = config(&Settings::default(), 1);
    settings.connections[0].networks.push(Prefix::new("224.0.0.0".parse().unwrap(), 4).unwrap());
    let mut endpoint = Endpoint::new(&settings, Instant::ZERO).unwrap();
    let mut group = packet(1, 0);
    group[16..20].copy_from_slice(&[224, 0, 0, 251]);
    assert!(endpoint.handle_inner(Instant::ZERO, &group).is_none());
    assert_eq!(endpoint.drops().count(Drop::Multicast), 0, "it has a way, but no path is up");
}

#[test]
fn the_type_of_service_is_copied_out_and_congestion_marks_are_carried_in() {
    let mut pair = Pair::up(&Settings::default());
    let mut inner = packet(1, 0);
    inner[1] = 0xb8 | 0b10;
    let transmit = pair.left.endpoint.handle_inner(pair.now, &inner).unwrap();
    assert_eq!(transmit.tos, 0xba);
    let mut bytes = vec![0; transmit.size()];
    pair.left.endpoint.emit(pair.now, &transmit, &mut bytes);
    let origin = |tos| Origin { socket: SocketId(0), remote: outer_address(1, 0), tos };
    let Host { endpoint, inbox, .. } = &mut pair.right;
    endpoint.handle_datagram(pair.now, origin(0b11), &mut bytes.clone(), inbox);
    assert_eq!(inbox.delivered[0][1], 0xb8 | 0b11, "the DSCP stays, the mark is carried");

    let not_ect = pair.left.send(pair.now, &packet(1, 1)).unwrap();
    let Host { endpoint, inbox, .. } = &mut pair.right;
    let remote = outer_address(1, not_ect.path.0);
    let origin = Origin { socket: SocketId(u16::from(not_ect.path.0)), remote, tos: 0b11 };
    endpoint.handle_datagram(pair.now, origin, &mut not_ect.bytes.clone(), inbox);
    assert_eq!(inbox.delivered.len(), 1);
    assert_eq!(pair.right.dropped(Drop::EcnIllegal), 1);
}

#[test]
fn keepalives_report_what_arrived() {
    let mut pair = Pair::up(&Settings::default());
    let interval = Duration::from_millis(500);
    pair.now += interval;
    let sent = [0, 1].map(|_| pair.left.send(pair.now, &packet(1, 0)).expect("a path"));
    let mut large = sent[0].clone();
    // Bytes behind the inner packet are cut off, but they did arrive.
    large.bytes.resize(1200, 0);
    pair.right.receive(pair.now, &large);
    pair.right.receive(pair.now, &sent[1]);
    let told = |keepalive: &Sent| [keepalive.bytes[6], keepalive.bytes[7]];
    let keepalives = pair.right.keepalives(pair.now);
    assert_eq!(keepalives.iter().map(told).collect::<Vec<_>>(), [[4, 0xb0], [0, 60]]);
    assert!(keepalives.iter().all(|keepalive| keepalive.bytes[8] > 0), "it has heard some");
}

#[test]
fn a_path_that_carries_only_keepalives_is_a_black_hole() {
    let mut pair = Pair::up(&Settings::default());
    let mut large = packet(1, 0);
    large.resize(1400, 0);
    large[2..4].copy_from_slice(&1400_u16.to_be_bytes());
    pair.left.events();
    for round in 0..40 {
        for _ in 0..20 {
            let sent = pair.left.send(pair.now, &large).expect("a path");
            if sent.path == PathId(1) {
                pair.right.receive(pair.now, &sent);
            }
        }
        pair.wait(Duration::from_millis(500), |_, _| true);
        let events = pair.left.events();
        if let [event] = events[..] {
            let expected =
                Event::Narrow { connection: CONNECTION, path: PathId(0), carries: 1280 + 8 };
            assert_eq!(event, expected);
            assert!((6..15).contains(&round), "{round}");
            return;
        }
        assert_eq!(events, []);
    }
    panic!("it was never told");
}

/// A path is not narrow because the peer does not want what comes over it.
#[test]
fn refused_inner_packets_are_not_taken_for_swallowed() {
    for len in [1400_u16, 600, 200] {
        let mut pair = Pair::up(&Settings::default());
        let mut foreign = packet(1, 0);
        foreign.resize(usize::from(len), 0);
        foreign[2..4].copy_from_slice(&len.to_be_bytes());
        foreign[15] = 77; // the last byte of an IPv4 source address
        pair.left.events();
        for _ in 0..40 {
            for _ in 0..20 {
                let sent = pair.left.send(pair.now, &foreign).expect("a path is up");
                pair.right.receive(pair.now, &sent);
            }
            pair.wait(Duration::from_millis(500), |_, _| true);
        }
        assert_eq!(pair.left.events(), []);
        assert_eq!(pair.right.dropped(Drop::InnerSource), 800);
    }
}
