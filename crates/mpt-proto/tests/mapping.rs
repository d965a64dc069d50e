//! Which path of a connection an inner packet takes: tiers and pins, seen from outside.

mod pair;

use mpt_proto::{
    Endpoint, EndpointConfig, Instant, PathId, PathStatus, Pins, PortRanges, SchedulerConfig,
    TransmitSide,
};
use pair::{CONNECTION, Inbox, Settings, config};

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
fn packet(source: u16, destination: u16) -> Vec<u8> {
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64)
        .udp(source, destination)
        .write(&mut packet, &[0; 20])
        .expect("a vector takes everything");
    packet
}

/// The paths that packets of many flows take, or of one if that is what it comes to.
fn taken(endpoint: &mut Endpoint, destination: u16) -> Vec<u8> {
    let take = |source| endpoint.handle_inner(&packet(source, destination)).map(|sent| sent.path.0);
    let mut paths: Vec<_> = (1000..1064).filter_map(take).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[test]
fn the_best_tier_carries_and_the_others_say_that_they_stand_by() {
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
