//! Which path of a connection an inner packet takes: tiers and pins, seen from outside.

use std::ops::Range;
use std::time::Duration;

use crate::pair::{CONNECTION, Host, Inbox, Pair, Sent, Settings, config, packet};
use mpt_proto::wire::gre;
use mpt_proto::wire::keepalive::{Activation, Keepalive};
use mpt_proto::{
    Change, Endpoint, EndpointConfig, Instant, PathId, PathStatus, Pins, PortRanges, ReorderConfig,
    SchedulerConfig, TransmitSide,
};

/// Paths of these priorities that are up for ever.
fn settings(priorities: &[u8], scheduler: SchedulerConfig) -> EndpointConfig {
    let (keepalive, dead_time) = (None, None);
    let weights = vec![1; priorities.len()];
    let mut config = config(&Settings { weights, keepalive, dead_time, ..Settings::default() }, 1);
    let connection = &mut config.connections[0];
    connection.scheduler = scheduler;
    for (path, priority) in connection.paths.iter_mut().zip(priorities) {
        path.priority = *priority;
    }
    config
}

fn endpoint(config: &EndpointConfig) -> Endpoint {
    Endpoint::new(config, Instant::ZERO).expect("good settings")
}

fn set(endpoint: &mut Endpoint, path: u8, status: PathStatus) {
    let (path, mut inbox) = (PathId(path), Inbox::default());
    endpoint.set_path_status(Instant::ZERO, CONNECTION, path, status, &mut inbox);
}

/// A UDP packet to the peer.
fn udp_packet(source: u16, destination: u16) -> Vec<u8> {
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64)
        .udp(source, destination)
        .write(&mut packet, &[0; 20])
        .expect("a vector takes everything");
    packet
}

/// The paths that packets of many flows take, or of one if that is what it comes to.
fn taken(endpoint: &mut Endpoint, destination: u16) -> Vec<u8> {
    let take = |source| {
        endpoint
            .handle_inner(Instant::ZERO, &udp_packet(source, destination))
            .map(|sent| sent.path.0)
    };
    let mut paths: Vec<_> = (1000..1064).filter_map(take).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[test]
fn the_best_tier_carries_and_the_others_announce_standby() {
    let standby = |tx: &TransmitSide| -> Vec<bool> {
        let connection = tx.connection(CONNECTION);
        connection.paths().map(|path| connection.standby(path)).collect()
    };
    for scheduler in [SchedulerConfig::Weighted, SchedulerConfig::Flow] {
        let settings = settings(&[3, 0, 3, 0], scheduler);
        let mut all = endpoint(&settings);
        assert_eq!(taken(&mut all, 9), [1, 3], "{scheduler:?}");
        assert_eq!(standby(&all.split().0), [true, false, true, false]);

        let mut best_off = endpoint(&settings);
        [1, 3].into_iter().for_each(|path| set(&mut best_off, path, PathStatus::Off));
        assert_eq!(taken(&mut best_off, 9), [0, 2], "{scheduler:?}");
        set(&mut best_off, 3, PathStatus::Available);
        assert_eq!(taken(&mut best_off, 9), [3], "{scheduler:?}");
        assert_eq!(standby(&best_off.split().0), [true, false, true, false], "off is not standby");
    }
}

/// The keepalives that an endpoint sends, with the numbers of their paths.
fn keepalives(endpoint: &mut Endpoint) -> Vec<(u8, Activation)> {
    let mut sent = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(Instant::ZERO) {
        let mut datagram = vec![0; transmit.size()];
        endpoint.emit(Instant::ZERO, &transmit, &mut datagram);
        let parsed = gre::parse(&datagram).expect("a datagram");
        let keepalive = Keepalive::parse(parsed.payload).expect("a keepalive");
        sent.push((transmit.path.0, keepalive.activation));
    }
    sent.sort_by_key(|(path, _)| *path);
    // The first of a path may be followed by another at once.
    sent.dedup();
    sent
}

#[test]
fn the_activation_of_a_standby_path_is_announced_on_every_path() {
    let mut settings = settings(&[0, 3, 3], SchedulerConfig::Weighted);
    for path in &mut settings.connections[0].paths {
        path.keepalive = Some(Duration::from_millis(500));
    }
    let mut endpoint = endpoint(&settings);
    let activation = |standby, calls| Activation { standby, calls };
    let first = [(0, activation(false, 0)), (1, activation(true, 0)), (2, activation(true, 0))];
    assert_eq!(keepalives(&mut endpoint), first);
    set(&mut endpoint, 0, PathStatus::Off);
    let called = [(0, activation(false, 1)), (1, activation(false, 1)), (2, activation(false, 1))];
    assert_eq!(keepalives(&mut endpoint), called);
    set(&mut endpoint, 0, PathStatus::Available);
    assert_eq!(keepalives(&mut endpoint)[0], (0, activation(false, 1)), "nobody is called up");
}

/// The slow path of two is on standby and is activated. While its first packet is in flight, others
/// arrive on the fast one, and are held for it; before that the slow one is not waited for.
#[test]
fn a_standby_path_is_not_waited_for_until_activated() {
    let settings = Settings {
        reorder: ReorderConfig { max_delay: Duration::from_secs(1), ..ReorderConfig::default() },
        ..Settings::default()
    };
    let mut pair = Pair::up(&settings);
    let prioritise = |pair: &mut Pair, priority| {
        let mut path = config(&settings, 1).connections.remove(0).paths.remove(1);
        path.priority = priority;
        let change = Change::SetPath { connection: CONNECTION, path: PathId(1), config: path };
        let Host { endpoint, inbox, .. } = &mut pair.left;
        endpoint.change(pair.now, &change, inbox);
        pair.left.keepalives(pair.now)
    };
    let of_path = |path, sent: &[Sent]| -> Vec<Sent> {
        sent.iter().filter(|sent| sent.path == PathId(path)).cloned().collect()
    };
    prioritise(&mut pair, 1);
    pair.wait(Duration::from_secs(1), |_, _| true);
    let send = |pair: &mut Pair, numbers: Range<u32>| -> Vec<Sent> {
        numbers
            .map(|number| pair.left.send(pair.now, &packet(1, number)).expect("a path"))
            .collect()
    };
    let receive = |pair: &mut Pair, all: &[Sent]| {
        let now = pair.now;
        all.iter().for_each(|sent| pair.right.receive(now, sent));
        pair.right.numbers()
    };
    let first = send(&mut pair, 0..3);
    assert_eq!(of_path(0, &first).len(), 3);
    receive(&mut pair, &first[..1]);
    assert_eq!(receive(&mut pair, &first[2..]), [2], "what is lost is not waited for");

    let call = prioritise(&mut pair, 0);
    assert_eq!(receive(&mut pair, &of_path(0, &call)), []);
    let mixed = send(&mut pair, 3..7);
    assert_eq!(of_path(1, &mixed).len(), 2, "both carry");
    let mut arrived = receive(&mut pair, &of_path(0, &mixed));
    arrived.extend(receive(&mut pair, &of_path(1, &call)));
    arrived.extend(receive(&mut pair, &of_path(1, &mixed)));
    assert_eq!(arrived, [3, 4, 5, 6]);
}

#[test]
fn pins_are_for_flow_mapping() {
    let pins = Pins { udp_dst: PortRanges::new([5060..=5061]).unwrap(), ..Pins::default() };
    for (scheduler, pinned) in
        [(SchedulerConfig::Flow, &[1][..]), (SchedulerConfig::Weighted, &[0, 1, 2])]
    {
        let mut settings = settings(&[0; 3], scheduler);
        settings.connections[0].paths[1].pins = pins.clone();
        let mut endpoint = endpoint(&settings);
        assert_eq!(taken(&mut endpoint, 5060), pinned);
        assert_eq!(taken(&mut endpoint, 5062), [0, 1, 2], "it has its share of the others");
        set(&mut endpoint, 1, PathStatus::Off);
        assert_eq!(taken(&mut endpoint, 5060), [0, 2], "{scheduler:?}");
        set(&mut endpoint, 1, PathStatus::Available);
        assert_eq!(taken(&mut endpoint, 5060), pinned);
    }
}
