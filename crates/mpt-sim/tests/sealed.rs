//! Sealed framing in worlds that lose, double, reorder, repeat and alter datagrams.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_proto::{
    Change, Drop, Event, FramingConfig, Instant, Origin, PathConfig, PathId, ReorderConfig,
    SchedulerConfig, SocketId,
};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{Direction, HostId, StreamId};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Two wires of 10 and 30 ms.
fn plan() -> PairPlan {
    let wire = |delay| Profile {
        rate: Some(50_000_000),
        delay: Duration::from_millis(delay),
        ..Profile::default()
    };
    let mut plan =
        PairPlan::new(vec![PathPlan::symmetric(wire(10)), PathPlan::symmetric(wire(30))]);
    plan.connection.framing = FramingConfig::Sealed;
    plan.connection.reorder = ReorderConfig::by_evidence();
    plan
}

/// The same, where every wire does this to datagrams.
fn harsh(change: impl Fn(&mut Profile)) -> PairPlan {
    let mut plan = plan();
    for path in &mut plan.paths {
        change(&mut path.there);
        change(&mut path.back);
    }
    plan
}

fn in_session(pair: &Pair) -> bool {
    [pair.left, pair.right].iter().all(|&host| pair.connection(host).has_session())
}

/// A stream from left to right of 4 Mbit/s, between two times in milliseconds.
fn stream(pair: &mut Pair, start: u64, end: u64) -> StreamId {
    let interval = Source::interval_for(1200, 4_000_000);
    let source = Source::new(Pair::flow(false, 7000), 1200, interval, at(start), at(end));
    pair.world.add_stream(pair.left, pair.right, source)
}

fn sessions(pair: &Pair, wanted: HostId) -> usize {
    let began = |event: &&(Instant, _, Event)| {
        event.1 == wanted && matches!(event.2, Event::Session { .. })
    };
    pair.world.events().iter().filter(began).count()
}

/// How often a host has dropped something for a reason.
fn dropped(pair: &Pair, host: HostId, reason: Drop) -> u64 {
    pair.world.endpoint(host).expect("the host runs").drops().count(reason)
        + pair.connection(host).stats().drops.count(reason)
}

/// How many epochs have begun at a host.
fn epochs(pair: &Pair, host: HostId) -> u64 {
    pair.connection(host).sealed().map_or(0, |status| status.epoch)
}

/// What a failure shows.
fn state(pair: &Pair) -> String {
    [pair.left, pair.right]
        .map(|host| {
            let connection = pair.connection(host);
            let paths: Vec<_> =
                connection.paths().map(|path| connection.path(path).state).collect();
            let mut drops = pair.world.endpoint(host).expect("the host runs").drops();
            drops += connection.stats().drops;
            let drops: Vec<_> = drops.iter().collect();
            format!("{:?} {paths:?} {drops:?}", connection.sealed())
        })
        .join("; ")
}

/// Whether what either host sends arrives at the other.
fn carries(pair: &mut Pair, start: u64) -> bool {
    let stream = stream(pair, start, start + 200);
    pair.world.run_until(at(start + 800));
    let (source, checker) = pair.world.stream(stream);
    checker.verdict().is_flawless(source.sent())
}

#[test]
fn a_session_begins_with_one_handshake_of_both_ends_and_carries_everything() {
    for preshared in [None, Some(7)] {
        let mut pair = Pair::new(1, &PairPlan { preshared, ..plan() }).expect("a good plan");
        pair.world.run_until(at(100));
        assert!(in_session(&pair));
        // Both begin; the one with the greater key has precedence.
        assert_eq!((sessions(&pair, pair.left), sessions(&pair, pair.right)), (1, 1));
        assert_eq!((epochs(&pair, pair.left), epochs(&pair, pair.right)), (1, 1));
        assert!(carries(&mut pair, 300));
    }
}

#[test]
fn handshakes_that_are_lost_doubled_and_reordered_lead_to_one_session() {
    let seeds = std::env::var("SEEDS").map_or(150, |seeds| seeds.parse().expect("a number"));
    let plan = harsh(|profile| {
        profile.loss = Loss::Random(0.3);
        profile.duplicate = 0.3;
        profile.jitter = Duration::from_millis(60);
        profile.keep_order = false;
    });
    let kind = harsh(|_| {});
    for seed in 0..seeds {
        let mut pair = Pair::new(seed, &plan).expect("a good plan");
        pair.world.run_until(at(20_000));
        for &wire in &pair.wires.clone() {
            let profile = &kind.paths[0].there;
            for direction in Direction::BOTH {
                pair.world.set_profile(wire, direction, profile.clone());
            }
        }
        pair.world.run_until(at(32_000));
        assert!(in_session(&pair), "seed {seed}: {}", state(&pair));
        let began = (sessions(&pair, pair.left), sessions(&pair, pair.right));
        assert!(began.0 <= 2 && began.1 <= 2, "seed {seed}: {began:?}");
        assert!(carries(&mut pair, 33_000), "seed {seed}: {}", state(&pair));
    }
}

#[test]
fn epochs_follow_each_other_without_a_loss() {
    let mut pair = Pair::new(1, &plan()).expect("a good plan");
    let stream = stream(&mut pair, 1000, 500_000);
    pair.world.run_until(at(501_000));
    let (source, checker) = pair.world.stream(stream);
    assert!(checker.verdict().is_flawless(source.sent()), "{:?}", checker.verdict());
    assert_eq!((epochs(&pair, pair.left), epochs(&pair, pair.right)), (5, 5));
    assert_eq!(sessions(&pair, pair.right), 1, "the session continues");
    for host in [pair.left, pair.right] {
        assert_eq!(dropped(&pair, host, Drop::SealForged), 0);
        assert_eq!(dropped(&pair, host, Drop::SealExpired), 0);
    }
}

/// Copies leave under the keys of the epoch in which they leave, whenever their originals left.
#[test]
fn what_paths_lose_is_sent_again_across_epochs() {
    let mut plan = harsh(|wire| wire.loss = Loss::Random(0.02));
    plan.connection.scheduler = SchedulerConfig::Earliest;
    plan.connection.repair = true;
    let mut pair = Pair::new(1, &plan).expect("a good plan");
    let stream = stream(&mut pair, 1000, 260_000);
    pair.world.run_until(at(262_000));
    let (source, checker) = pair.world.stream(stream);
    let missing = checker.verdict().lost(source.sent());
    assert!(missing * 3000 <= source.sent(), "{missing} of {}", source.sent());
    assert_eq!(checker.verdict().duplicates, 0);
    assert!(epochs(&pair, pair.left) >= 3, "{}", state(&pair));
    let again = pair.connection(pair.left).repair_stats();
    assert!(again.repaired.tried * 100 > source.sent(), "{again:?}");
}

#[test]
fn a_host_that_restarts_has_a_new_session_within_a_second() {
    for left in [false, true] {
        let mut pair = Pair::new(1, &plan()).expect("a good plan");
        pair.world.run_until(at(2000));
        let host = if left { pair.left } else { pair.right };
        pair.world.restart(host);
        pair.world.run_until(at(3000));
        assert!(in_session(&pair));
        assert!(carries(&mut pair, 3000));
        // And no host is so astray that it begins another one.
        pair.world.run_until(at(60_000));
        assert!(sessions(&pair, pair.left) <= 2 && sessions(&pair, pair.right) <= 2);
    }
}

#[test]
fn altered_datagrams_are_dropped_and_counted() {
    let mut plan = harsh(|profile| profile.corrupt = 0.2);
    plan.host.udp_checksum = false;
    let mut pair = Pair::new(3, &plan).expect("a good plan");
    let stream = stream(&mut pair, 2000, 12_000);
    pair.world.run_until(at(13_000));
    assert!(dropped(&pair, pair.right, Drop::SealForged) > 200);
    let (source, checker) = pair.world.stream(stream);
    let verdict = checker.verdict();
    assert!(source.sent() > 4000 && pair.world.host_stats(pair.right).unclaimed == 0);
    assert!(verdict.duplicates == 0, "{verdict:?}");
}

#[test]
fn doubled_datagrams_are_dropped_as_replays() {
    let mut pair = Pair::new(4, &harsh(|profile| profile.duplicate = 0.5)).expect("a good plan");
    let stream = stream(&mut pair, 2000, 6000);
    pair.world.run_until(at(7000));
    let (source, checker) = pair.world.stream(stream);
    assert!(checker.verdict().is_flawless(source.sent()), "{}", state(&pair));
    assert!(dropped(&pair, pair.right, Drop::SealReplay) > 500, "{}", state(&pair));
    assert_eq!(dropped(&pair, pair.right, Drop::Duplicate), 0);
}

#[test]
fn after_both_paths_were_silent_the_session_is_still_there() {
    let mut pair = Pair::new(1, &plan()).expect("a good plan");
    pair.world.run_until(at(2000));
    for &wire in &pair.wires.clone() {
        pair.world.cut_both(wire, true);
    }
    pair.world.run_until(at(9000));
    for &wire in &pair.wires.clone() {
        pair.world.cut_both(wire, false);
    }
    pair.world.run_until(at(20_000));
    assert_eq!((sessions(&pair, pair.left), sessions(&pair, pair.right)), (1, 1));
    assert!(carries(&mut pair, 20_000));
}

#[test]
fn plain_and_extended_datagrams_change_nothing() {
    let mut pair = Pair::new(1, &plan()).expect("a good plan");
    pair.world.run_until(at(2000));
    let remote: SocketAddr = "10.0.1.1:4754".parse().expect("an address");
    let origin = Origin { socket: SocketId(0), remote, tos: 0 };
    let heard = |pair: &Pair| {
        let right = pair.world.endpoint(pair.right).expect("it runs");
        right.connection(Pair::CONNECTION).path(PathId(0)).last_heard
    };
    let before = heard(&pair);
    // A plain keepalive, and a hello.
    let mut keepalive = vec![0; 60];
    keepalive[2..5].copy_from_slice(&[0x08, 0x00, 0xa1]);
    let mut hello = vec![0; 348];
    hello[..4].copy_from_slice(&[0x20, 0x00, 0x88, 0xb5]);
    hello[8] = 0x10;
    hello[20] = 1;
    hello[23] = 1;
    hello[95] = 9;
    for datagram in [keepalive, hello] {
        pair.world.inject(pair.right, origin, &datagram);
    }
    assert_eq!(heard(&pair), before);
    assert_eq!(pair.world.host_stats(pair.right).no_wire, 0, "nothing was answered");
    assert_eq!(dropped(&pair, pair.right, Drop::Framing), 1, "{}", state(&pair));
    assert_eq!(dropped(&pair, pair.right, Drop::HelloUnknown), 1);
}

/// The other path becomes the better one every 6 ms, so each switch meets packets in flight on both.
#[test]
fn path_switches_lose_nothing_while_keys_change() {
    let switches = if cfg!(debug_assertions) { 1 << 15 } else { 1 << 16 };
    let plan = plan();
    let mut pair = Pair::new(1, &plan).expect("a good plan");
    let paths = plan.left().endpoint.connections.remove(0).paths;
    pair.world.run_until(at(1000));
    let end = 1000 + switches * 6;
    let stream = stream(&mut pair, 1000, end);
    for switch in 0..switches {
        for (number, path) in (0..).zip(&paths) {
            let priority = u8::from(switch % 2 != u64::from(number));
            let config = PathConfig { priority, ..path.clone() };
            let (connection, path) = (Pair::CONNECTION, PathId(number));
            pair.world.change(pair.left, &Change::SetPath { connection, path, config });
        }
        pair.world.run_until(at(1000 + (switch + 1) * 6));
    }
    pair.world.run_until(at(end + 1000));
    let (source, checker) = pair.world.stream(stream);
    assert!(checker.verdict().is_flawless(source.sent()), "{:?}", checker.verdict());
    let sent = |path| pair.connection(pair.left).path(PathId(path)).stats.sent.packets;
    assert!(sent(0).min(sent(1)) * 3 > source.sent(), "{} and {}", sent(0), sent(1));
    // One epoch at the start, and another one every two minutes.
    assert_eq!(epochs(&pair, pair.left), 1 + end / 120_000, "{}", state(&pair));
    for host in [pair.left, pair.right] {
        assert_eq!((dropped(&pair, host, Drop::SealForged), sessions(&pair, host)), (0, 1));
        assert_eq!(dropped(&pair, host, Drop::SealExpired), 0);
    }
}
