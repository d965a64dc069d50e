//! Sessions of extended framing: how they begin, survive and begin again, in worlds that lose, reorder and
//! translate.

use std::net::IpAddr;
use std::time::Duration;

use mpt_proto::{
    Drop, Event, FramingConfig, Instant, Origin, PathId, PathState, ReorderConfig, SchedulerConfig,
    SocketId,
};
use mpt_sim::loss::Loss;
use mpt_sim::nat::Nat;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::{Source, Verdict};
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{Direction, StreamId};

const SESSIONS: [FramingConfig; 3] =
    [FramingConfig::Extended, FramingConfig::Auto, FramingConfig::Sealed];

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn wire(delay: u64) -> Profile {
    Profile { rate: Some(50_000_000), delay: Duration::from_millis(delay), ..Profile::default() }
}

/// Two wires of 10 and 30 ms, and packets in order by evidence.
fn plan(framing: FramingConfig) -> PairPlan {
    let mut plan =
        PairPlan::new(vec![PathPlan::symmetric(wire(10)), PathPlan::symmetric(wire(30))]);
    plan.connection.framing = framing;
    plan.connection.reorder = ReorderConfig::by_evidence();
    plan
}

/// The same, where the right host is a server that knows no address of its peer.
fn server_plan(framing: FramingConfig) -> PairPlan {
    PairPlan { server_learns: true, ..plan(framing) }
}

fn pair(plan: &PairPlan) -> Pair {
    Pair::new(1, plan).expect("a plan the core accepts")
}

fn all_up(pair: &Pair) -> bool {
    let up = |host| {
        let connection = pair.connection(host);
        let states: Vec<PathState> =
            connection.paths().map(|path| connection.path(path).state).collect();
        states == [PathState::Up; 2]
    };
    up(pair.left) && up(pair.right)
}

fn in_session(pair: &Pair) -> bool {
    [pair.left, pair.right].iter().all(|&host| pair.connection(host).has_session())
}

/// Streams both ways of 10 Mbit/s each, between two times in milliseconds.
fn streams(pair: &mut Pair, start: u64, end: u64) -> [StreamId; 2] {
    let interval = Source::interval_for(1200, 10_000_000);
    // Each pair of streams has ports of its own.
    let there = Pair::flow(false, 7000 + start as u16);
    let back = mpt_sim::traffic::packet::Flow {
        source: there.destination,
        destination: there.source,
        port: there.port,
    };
    let source = |flow| Source::new(flow, 1200, interval, at(start), at(end));
    [
        pair.world.add_stream(pair.left, pair.right, source(there)),
        pair.world.add_stream(pair.right, pair.left, source(back)),
    ]
}

fn verdict(pair: &Pair, stream: StreamId) -> (u64, Verdict) {
    let (source, checker) = pair.world.stream(stream);
    (source.sent(), *checker.verdict())
}

/// How many sessions began at a host.
fn sessions(pair: &Pair, wanted: mpt_sim::world::HostId) -> usize {
    let began = |event: &&(Instant, _, Event)| {
        event.1 == wanted && matches!(event.2, Event::Session { .. })
    };
    pair.world.events().iter().filter(began).count()
}

#[test]
fn both_ends_agree_within_two_round_trips() {
    for framing in SESSIONS {
        let mut pair = pair(&plan(framing));
        pair.world.run_until(at(60));
        assert!(in_session(&pair), "{framing:?}");
        pair.world.run_until(at(150));
        assert!(all_up(&pair), "{framing:?}");
        assert_eq!((sessions(&pair, pair.left), sessions(&pair, pair.right)), (1, 1));
    }
}

#[test]
fn a_server_learns_the_paths_of_its_client() {
    for framing in SESSIONS {
        let mut pair = pair(&server_plan(framing));
        pair.world.run_until(at(700));
        assert!(in_session(&pair) && all_up(&pair), "{framing:?}");
    }
}

#[test]
fn packets_arrive_once_and_in_order_by_two_paths_of_different_delay() {
    for framing in SESSIONS {
        let mut pair = pair(&server_plan(framing));
        let streams = streams(&mut pair, 1000, 3000);
        pair.world.run_until(at(4000));
        for stream in streams {
            let (sent, verdict) = verdict(&pair, stream);
            assert!(sent > 2000 && verdict.is_flawless(sent), "{framing:?}: {sent}, {verdict:?}");
        }
        let right = pair.connection(pair.right);
        let share = |path| right.path(path).stats.received.packets;
        assert!(right.paths().all(|path| share(path) > 900), "both paths carry");
    }
}

#[test]
fn a_session_begins_although_every_third_datagram_is_lost() {
    for seed in 0..20 {
        let mut plan = server_plan(FramingConfig::Extended);
        for path in &mut plan.paths {
            for profile in [&mut path.there, &mut path.back] {
                profile.loss = Loss::Random(0.33);
                profile.duplicate = 0.1;
                profile.jitter = Duration::from_millis(8);
            }
        }
        let mut pair = Pair::new(seed, &plan).expect("a good plan");
        pair.world.run_until(at(30_000));
        assert!(in_session(&pair), "seed {seed}");
    }
}

/// Of 200 Mbit/s one second and a half is more than either order remembers.
#[test]
fn an_outage_of_more_packets_than_are_remembered_ends() {
    for (framing, evidence) in SESSIONS.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let mut plan = plan(framing);
        if !evidence {
            plan.connection.reorder = ReorderConfig::default();
        }
        for path in &mut plan.paths {
            path.there.rate = None;
        }
        let mut pair = pair(&plan);
        let interval = Source::interval_for(500, 200_000_000);
        let source = Source::new(Pair::flow(false, 7001), 500, interval, at(1000), at(4000));
        let stream = pair.world.add_stream(pair.left, pair.right, source);
        pair.world.run_until(at(1200));
        pair.wires.clone().iter().for_each(|wire| pair.world.cut(*wire, Direction::There, true));
        pair.world.run_until(at(2700));
        pair.wires.clone().iter().for_each(|wire| pair.world.cut(*wire, Direction::There, false));
        pair.world.run_until(at(5000));
        let (sent, verdict) = verdict(&pair, stream);
        let (before, after) = (0.2, 1.3);
        let most = sent as f64 * (before + after) / 3.0;
        assert!(verdict.received as f64 > 0.9 * most, "{framing:?} {evidence} {sent} {verdict:?}");
    }
}

#[test]
fn a_restarted_host_has_a_new_session_within_a_second() {
    for (framing, client) in [
        (FramingConfig::Extended, false),
        (FramingConfig::Extended, true),
        (FramingConfig::Auto, true),
    ] {
        let mut pair = pair(&server_plan(framing));
        let before = streams(&mut pair, 1000, 1900);
        pair.world.run_until(at(2000));
        let host = if client { pair.left } else { pair.right };
        pair.world.restart(host);
        let after = streams(&mut pair, 3000, 5000);
        pair.world.run_until(at(3000));
        assert!(in_session(&pair), "{framing:?}, client {client}");
        pair.world.run_until(at(6000));
        for stream in before.into_iter().chain(after) {
            let (sent, verdict) = verdict(&pair, stream);
            assert!(verdict.is_flawless(sent), "{framing:?}, client {client}: {sent}, {verdict:?}");
        }
        assert!(all_up(&pair), "{framing:?}, client {client}");
    }
}

/// Copies that were on their way when a session began were once taken for packets of the new session.
#[test]
fn what_a_restarted_host_sent_before_is_not_delivered_again() {
    for (seed, client) in (0..10).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut plan = server_plan(FramingConfig::Extended);
        plan.paths[1] = PathPlan::symmetric(Profile {
            duplicate: 0.5,
            jitter: Duration::from_millis(40),
            keep_order: false,
            ..wire(60)
        });
        let mut pair = Pair::new(seed, &plan).expect("a good plan");
        let streams = streams(&mut pair, 1000, 4000);
        pair.world.run_until(at(2000 + 37 * seed));
        pair.world.restart(if client { pair.left } else { pair.right });
        pair.world.run_until(at(5000));
        for stream in streams {
            let (sent, verdict) = verdict(&pair, stream);
            assert!(verdict.received > sent / 2, "seed {seed}, client {client}: {verdict:?}");
            assert_eq!(verdict.duplicates, 0, "seed {seed}, client {client}: {verdict:?}");
        }
    }
}

/// Packets that were sent out of turn were once held until others came.
#[test]
fn nothing_is_held_for_ever_where_the_only_path_fails() {
    for seed in 0..10 {
        let mut plan = server_plan(FramingConfig::Extended);
        plan.paths.truncate(1);
        plan.paths[0].there = Profile { loss: Loss::Random(0.05), ..wire(10) };
        plan.connection.scheduler = SchedulerConfig::Earliest;
        let mut pair = Pair::new(seed, &plan).expect("a good plan");
        streams(&mut pair, 300, 2500);
        pair.world.run_until(at(432 + 11 * seed));
        pair.world.cut(pair.wires[0], Direction::There, true);
        pair.world.run_until(at(4500));
        assert_eq!(pair.world.held(pair.right), 0, "seed {seed}");
    }
}

/// The most paths that a connection can have.
#[test]
fn sixty_four_paths_of_different_delay_carry_one_session() {
    for (scheduler, mbps) in [(SchedulerConfig::Weighted, 1), (SchedulerConfig::Earliest, 50)] {
        let mut plan = server_plan(FramingConfig::Extended);
        let wire = |number: u64| Profile { rate: Some(mbps * 1_000_000), ..wire(5 + number) };
        plan.paths = (0..64).map(|number| PathPlan::symmetric(wire(number))).collect();
        plan.connection.scheduler = scheduler;
        let mut pair = Pair::new(1, &plan).expect("a good plan");
        pair.world.run_until(at(1500));
        for host in [pair.left, pair.right] {
            let connection = pair.connection(host);
            let up = |path: &PathId| connection.path(*path).state == PathState::Up;
            assert_eq!(connection.paths().filter(up).count(), 64, "{scheduler:?}");
        }
        let streams = streams(&mut pair, 2000, 4000);
        pair.world.run_until(at(6000));
        for stream in streams {
            let (sent, verdict) = verdict(&pair, stream);
            assert!(sent > 2000 && verdict.is_flawless(sent), "{scheduler:?}: {sent}, {verdict:?}");
        }
        if scheduler == SchedulerConfig::Weighted {
            let carried = |path: PathId| pair.connection(pair.left).path(path).stats.sent.packets;
            assert!(pair.connection(pair.left).paths().map(carried).min() > Some(20));
        }
    }
}

#[test]
fn a_peer_that_knows_only_plain_framing_is_sent_plain_framing() {
    let mut pair =
        pair(&PairPlan { right_framing: Some(FramingConfig::Plain), ..plan(FramingConfig::Auto) });
    let streams = streams(&mut pair, 1000, 20_000);
    pair.world.run_until(at(30_000));
    assert!(!in_session(&pair));
    for stream in streams {
        let (sent, verdict) = verdict(&pair, stream);
        assert!(verdict.is_flawless(sent), "{sent}, {verdict:?}");
    }
    let dropped = pair.world.endpoint(pair.right).expect("it runs").drops();
    assert_eq!(dropped.count(Drop::UnknownSource), 0);
    assert_eq!(dropped.count(Drop::HelloUnknown), 12, "six hellos on each of two paths");
}

#[test]
fn a_translator_that_gives_other_ports_costs_what_was_in_flight() {
    for framing in SESSIONS {
        let mut pair = pair(&server_plan(framing));
        let wires = pair.wires.clone();
        for (wire, last) in wires.iter().zip([71, 72]) {
            pair.world.set_nat(*wire, Some(Nat::new(IpAddr::from([203, 0, 113, last]))));
        }
        let streams = streams(&mut pair, 1000, 3000);
        pair.world.run_until(at(2000));
        assert!(all_up(&pair), "{framing:?}");
        for wire in wires {
            pair.world.nat_mut(wire).expect("a translator").rebind();
        }
        pair.world.run_until(at(4000));
        assert_eq!(sessions(&pair, pair.left), 1, "{framing:?}: the session goes on");
        // From left to right nothing is lost: the index tells whose datagrams they are.
        let (sent, there) = verdict(&pair, streams[0]);
        assert!(there.is_flawless(sent), "{framing:?}: {sent}, {there:?}");
        // From right to left what is sent until the new origins have answered: two round trips of 60 ms.
        let (sent, back) = verdict(&pair, streams[1]);
        let lost = sent - back.received;
        assert!(lost > 0 && lost < 10_000_000 / 8 / 1200 * 22 / 100, "{framing:?}: lost {lost}");
        assert!(all_up(&pair), "{framing:?}");
    }
}

#[test]
fn a_client_that_only_receives_is_found_again_within_two_round_trips_and_a_tenth_of_a_second() {
    const RATE: u64 = 10_000_000 / 8 / 1200;
    // Feedback keeps the other path's mapping alive, not this one's.
    let mut pair = pair(&server_plan(FramingConfig::Extended));
    let wire = pair.wires[1];
    pair.world.set_nat(wire, Some(Nat::new(IpAddr::from([203, 0, 113, 72]))));
    let there = Pair::flow(false, 7777);
    let flow = mpt_sim::traffic::packet::Flow {
        source: there.destination,
        destination: there.source,
        port: there.port,
    };
    let interval = Source::interval_for(1200, 10_000_000);
    let source = Source::new(flow, 1200, interval, at(1000), at(4000));
    let stream = pair.world.add_stream(pair.right, pair.left, source);
    for time in [2010, 2610, 3210] {
        pair.world.run_until(at(time));
        pair.world.nat_mut(wire).expect("a translator").rebind();
    }
    pair.world.run_until(at(5000));
    let (sent, verdict) = verdict(&pair, stream);
    let lost = sent - verdict.received;
    // Half of the packets go by the path, whose round trip is 60 ms.
    assert!(lost > 0 && lost <= 3 * RATE / 2 * 220 / 1000, "{lost} of {sent}");
    assert_eq!(sessions(&pair, pair.left), 1, "the session goes on");
}

#[test]
fn a_path_that_is_moved_by_nobody_stays_where_it_is() {
    // A host that guesses indices is told nothing that it did not know.
    let mut pair = pair(&server_plan(FramingConfig::Extended));
    pair.world.run_until(at(1000));
    let mut data = vec![0; 24];
    data[..4].copy_from_slice(&[0x30, 0, 0x88, 0xb5]);
    for index in 0..1000_u32 {
        data[4..8].copy_from_slice(&index.to_be_bytes());
        let remote = "198.51.100.9:4754".parse().expect("an address");
        let origin = Origin { socket: SocketId(0), remote, tos: 0 };
        pair.world.inject(pair.right, origin, &data);
    }
    pair.world.run_until(at(2000));
    let drops = pair.world.endpoint(pair.right).expect("it runs").drops();
    assert!(drops.count(Drop::UnknownIndex) >= 999, "{drops:?}");
    assert!(all_up(&pair));
}

#[test]
fn forged_hellos_leave_nothing_behind() {
    let mut pair = pair(&server_plan(FramingConfig::Extended));
    pair.world.run_until(at(1000));
    let memory = |pair: &Pair| pair.connection(pair.right).memory();
    let before = memory(&pair);
    for number in 0..100_000_u32 {
        let (origin, hello) = forged_hello(number, 1);
        pair.world.inject(pair.right, origin, &hello);
    }
    pair.world.run_until(at(1500));
    assert_eq!(memory(&pair), before);
    assert!(all_up(&pair) && in_session(&pair));
    assert_eq!(sessions(&pair, pair.right), 1);
    // Every one was answered, with fewer bytes: no wire leads to where they claim to come from.
    assert_eq!(pair.world.host_stats(pair.right).no_wire, 100_000);
}

/// A hello of some version from an address of its own, and with a session id of its own.
fn forged_hello(number: u32, version: u8) -> (Origin, Vec<u8>) {
    let [_, b, c, d] = number.to_be_bytes();
    let remote = std::net::SocketAddr::from(([198, b, c, d], 4754));
    let mut hello = vec![0; 20 + 328];
    hello[..4].copy_from_slice(&[0x20, 0, 0x88, 0xb5]);
    hello[8] = 0x10;
    hello[20] = version;
    hello[23] = 1;
    hello[28..32].copy_from_slice(&number.to_be_bytes());
    hello[44..60].copy_from_slice(&mapped([10, 9, 0, 1]));
    hello[60..76].copy_from_slice(&mapped([10, 9, 0, 2]));
    hello[92..96].copy_from_slice(&(number + 1).to_be_bytes());
    (Origin { socket: SocketId(0), remote, tos: 0 }, hello)
}

#[test]
fn a_hello_of_another_version_is_answered_with_ours_and_changes_nothing() {
    let mut pair = pair(&server_plan(FramingConfig::Extended));
    pair.world.run_until(at(1000));
    for version in [0, 2, 255] {
        let before = pair.world.host_stats(pair.right).no_wire;
        let (origin, hello) = forged_hello(version.into(), version);
        pair.world.inject(pair.right, origin, &hello);
        assert_eq!(pair.world.host_stats(pair.right).no_wire, before + 1, "it is answered");
    }
    pair.world.run_until(at(1500));
    assert!(all_up(&pair) && in_session(&pair));
    assert_eq!(sessions(&pair, pair.right), 1);
}

fn mapped(address: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
}

#[test]
fn both_ends_know_what_each_path_loses_and_how_long_it_takes() {
    let mut plan = server_plan(FramingConfig::Extended);
    plan.paths[0].there.loss = Loss::Random(0.02);
    plan.paths[1].back.loss = Loss::Random(0.05);
    let mut pair = pair(&plan);
    streams(&mut pair, 1000, 9000);
    pair.world.run_until(at(9500));
    let share = |lost: u64, received: u64| lost as f64 / (lost + received) as f64;
    let (left, right) = (pair.connection(pair.left), pair.connection(pair.right));
    for (path, there, back) in [(0, 0.02, 0.0), (1, 0.0, 0.05)] {
        let path = PathId(path);
        for (near, far, expected) in [(&left, &right, there), (&right, &left, back)] {
            let out = near.transmit_quality(pair.world.now(), path).expect("feedback came");
            let into = far.receive_quality(path).expect("datagrams came");
            let (out_share, in_share) =
                (share(out.lost, out.received), share(into.lost, into.received));
            assert!((in_share - expected).abs() < 0.01, "in: {in_share}, {expected}");
            assert!((out_share - in_share).abs() < 0.005, "out: {out_share}, in: {in_share}");
            // The paths take 10 and 30 ms; half of 10 Mbit/s goes by each.
            let longer = into.delay.as_micros().abs_diff(u128::from(path.0) * 20_000);
            assert!(longer < 1500, "{into:?}");
            let rate = out.rate.expect("a rate") as f64 * 8.0 / 1e6;
            assert!((4.0..9.0).contains(&rate), "{rate} Mbit/s");
        }
    }
}
