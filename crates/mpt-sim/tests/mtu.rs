//! What a path carries is found out by probes in a session, and a path that narrows is repaired within moments.

use std::time::Duration;

use mpt_proto::{Event, FramingConfig, Instant, PathId, ReorderConfig, SchedulerConfig};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{Direction, HostId};

/// UDP and IPv4 headers.
const OUTER: usize = 28;
/// The header of a data packet.
const HEADER: usize = 24;
/// A datagram with an inner packet of 1280 bytes.
const BASE: usize = 1280 + HEADER;
/// What an interface with an MTU of 1500 bytes allows.
const LOCAL: usize = 1500 - OUTER;
/// The round trip of the first path.
const ROUND_TRIP: Duration = Duration::from_millis(60);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn wire(loss: f64) -> Profile {
    Profile { delay: ROUND_TRIP / 2, loss: Loss::Random(loss), ..Profile::default() }
}

fn pair(seed: u64, loss: f64) -> Pair {
    pair_by(SchedulerConfig::default(), seed, loss)
}

fn pair_by(scheduler: SchedulerConfig, seed: u64, loss: f64) -> Pair {
    let mut plan = PairPlan::new(vec![PathPlan::symmetric(wire(loss)); 2]);
    plan.connection.scheduler = scheduler;
    plan.connection.framing = FramingConfig::Extended;
    plan.connection.reorder = ReorderConfig::by_evidence();
    let mut pair = Pair::new(seed, &plan).expect("a plan the core accepts");
    for host in [pair.left, pair.right] {
        for path in [0, 1] {
            pair.world.set_local_len(host, Pair::CONNECTION, PathId(path), LOCAL);
        }
    }
    pair
}

/// What was found out about the first path by a host, when, and whether it was less than before.
fn found(pair: &Pair, by: HostId) -> Vec<(Instant, usize, bool)> {
    let events = pair.world.events().iter();
    let found = events.filter_map(|&(when, host, event)| {
        let Event::Proven { path: PathId(0), carries, narrower, .. } = event else { return None };
        (host == by).then_some((when, carries, narrower))
    });
    found.collect()
}

/// Packets of some length, from left to right.
fn stream(pair: &mut Pair, port: u16, len: usize, per_second: u32) {
    let interval = Duration::from_secs(1) / per_second;
    let source = Source::new(Pair::flow(false, port), len, interval, at(1000), at(20_000));
    pair.world.add_stream(pair.left, pair.right, source);
}

/// Has the first path carry packets of at most `largest` bytes, in one direction.
fn narrow_down(pair: &mut Pair, direction: Direction, largest: usize) {
    let narrow = Profile { largest: Some(largest as u64), ..wire(0.0) };
    pair.world.set_profile(pair.wires[0], direction, narrow);
}

#[test]
fn both_ends_find_what_the_interface_allows_one_round_trip_into_the_session() {
    let mut pair = pair(1, 0.0);
    pair.world.run_until(at(1000));
    for host in [pair.left, pair.right] {
        let found = found(&pair, host);
        let [(when, LOCAL, false)] = found[..] else { panic!("{found:?}") };
        assert!(when < at(350), "{when:?}");
    }
}

#[test]
fn a_narrow_path_is_found_to_be_so_in_its_direction() {
    let mut pair = pair(1, 0.0);
    narrow_down(&mut pair, Direction::Back, 1400);
    pair.world.run_until(at(5000));
    let [left, right] = [pair.left, pair.right].map(|host| found(&pair, host));
    assert_eq!(left.last().map(|(_, carries, _)| *carries), Some(LOCAL));
    assert_eq!(right[0].1, BASE);
    let carries = right[right.len() - 1].1 + OUTER;
    assert!(carries <= 1400 && carries > 1400 - 16, "{right:?}");
}

/// Others are busy on both hosts, which get a processor for a moment every 10 to 50 ms.
fn run_busy(pair: &mut Pair, end: Instant) {
    for stall in [40, 15, 50, 10, 25].map(Duration::from_millis).into_iter().cycle() {
        let resumed = pair.world.now() + stall;
        if resumed > end {
            break;
        }
        for host in [pair.left, pair.right] {
            pair.world.pause(host, resumed);
        }
        pair.world.run_until(resumed);
    }
}

#[test]
fn a_busy_host_does_not_take_a_path_for_narrower() {
    for seed in 1..=20 {
        let mut pair = pair(seed, 0.01);
        stream(&mut pair, 1, 1400, 500);
        run_busy(&mut pair, at(20_000));
        for host in [pair.left, pair.right] {
            let found = found(&pair, host);
            assert!(found.iter().all(|(.., narrower)| !narrower), "seed {seed}: {found:?}");
            assert_eq!(found.last().map(|(_, carries, _)| *carries), Some(LOCAL), "seed {seed}");
        }
    }
}

#[test]
fn a_path_that_narrows_under_load_is_repaired_within_three_round_trips() {
    // Long packets only, with short ones among them, and little of it.
    for (lens, per_second) in [(&[1400][..], 1000), (&[1400, 100, 100], 500), (&[1400], 50)] {
        let mut pair = pair(1, 0.0);
        for (port, &len) in (1..).zip(lens) {
            stream(&mut pair, port, len, per_second);
        }
        pair.world.run_until(at(5000));
        narrow_down(&mut pair, Direction::There, 1400);
        pair.world.run_until(at(8000));
        let found: Vec<_> =
            found(&pair, pair.left).into_iter().filter(|(when, ..)| *when > at(5000)).collect();
        let &(when, BASE, true) = &found[0] else { panic!("{lens:?}: {found:?}") };
        // The first evidence is feedback of a gap, a round trip after the first loss, or where nothing short is sent
        // that would show one, that feedback stays out for two more and 50 ms.
        let evidence = match lens {
            [_] => ROUND_TRIP * 5 / 2 + Duration::from_millis(60),
            _ => ROUND_TRIP + Duration::from_millis(30),
        };
        let took = when.since(at(5000));
        assert!(took <= evidence + 3 * ROUND_TRIP, "{lens:?}: {took:?}");
        let last = found[found.len() - 1].1 + OUTER;
        assert!(last <= 1400 && last > 1400 - 16, "{found:?}");
    }
}

/// Flows of which each takes one path: those of the narrow one are alone with what happens to it.
#[test]
fn flows_on_a_path_that_narrows_stand_still_for_less_than_half_a_second() {
    const PORTS: std::ops::Range<u16> = 1..9;
    let mut pair = pair_by(SchedulerConfig::Flow, 1, 0.0);
    PORTS.for_each(|port| stream(&mut pair, port, 1400, 100));
    pair.world.run_until(at(5000));
    let carried = |pair: &Pair| pair.connection(pair.left).path(PathId(0)).stats.sent.packets;
    let before = carried(&pair);
    assert!(before > 100, "some take the first path");
    narrow_down(&mut pair, Direction::There, 1400);
    let mut now = 5000;
    while !found(&pair, pair.left).iter().any(|(when, _, narrower)| *narrower && *when > at(5000)) {
        now += 5;
        assert!(
            now < 5500 - 30,
            "packets stand still until it is found, and half a round trip more"
        );
        pair.world.run_until(at(now));
    }
    // The tunnel's MTU follows, and so do the senders.
    let streams: Vec<_> = PORTS
        .map(|port| {
            let flow = Pair::flow(false, 100 + port);
            let interval = Duration::from_millis(10);
            let source = Source::new(flow, BASE - HEADER, interval, at(now), at(now + 1000));
            pair.world.add_stream(pair.left, pair.right, source)
        })
        .collect();
    let then = carried(&pair);
    pair.world.run_until(at(now + 2000));
    assert!(carried(&pair) > then + 100, "the path goes on");
    for stream in streams {
        let (source, checker) = pair.world.stream(stream);
        assert!(checker.verdict().is_flawless(source.sent()), "{:?}", checker.verdict());
    }
}

#[test]
fn loss_is_not_taken_for_a_narrow_path() {
    for seed in 0..10 {
        let mut pair = pair(seed, 0.05);
        stream(&mut pair, 1, 1400, 200);
        stream(&mut pair, 2, 100, 20);
        pair.world.run_until(at(20_000));
        for host in [pair.left, pair.right] {
            let found = found(&pair, host);
            assert!(found.iter().all(|(_, _, narrower)| !narrower), "seed {seed}: {found:?}");
            assert_eq!(found.last().expect("found").1, LOCAL, "seed {seed}: {found:?}");
        }
    }
}

#[test]
fn an_outage_is_not_taken_for_a_narrow_path() {
    let mut pair = pair(1, 0.0);
    stream(&mut pair, 1, 1400, 500);
    pair.world.run_until(at(3000));
    pair.world.cut_both(pair.wires[0], true);
    pair.world.run_until(at(8000));
    pair.world.cut_both(pair.wires[0], false);
    pair.world.run_until(at(12_000));
    for host in [pair.left, pair.right] {
        let found = found(&pair, host);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
