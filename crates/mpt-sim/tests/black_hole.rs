//! MTU black holes are detected, and nothing else is taken for one.

use std::time::Duration;

use mpt_proto::{Event, Instant, PathConfig, PathId};
use mpt_sim::loss::{GilbertElliott, Loss};
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{Direction, End, World};

/// UDP and IPv4 headers.
const OUTER: usize = 28;
/// With the GRE header and sequence number of these tunnels.
const GRE: usize = 8;
/// A datagram with an inner packet of 1280 bytes.
const FLOOR: usize = 1280 + GRE;

/// Random worlds of each kind.
const SEEDS: std::ops::Range<u64> = 0..5;
/// How long each lives, in seconds.
const LIFE: u64 = 80;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn wire() -> Profile {
    Profile { delay: Duration::from_millis(20), ..Profile::default() }
}

fn two(profile: &Profile) -> PairPlan {
    PairPlan::new(vec![PathPlan::symmetric(profile.clone()), PathPlan::symmetric(wire())])
}

/// Packets from left to right, this many per second from the first to the last.
fn stream(pair: &mut Pair, port: u16, len: usize, per_second: u32) {
    let interval = Duration::from_secs(1) / per_second;
    let source = Source::new(Pair::flow(false, port), len, interval, at(1), at(LIFE));
    pair.world.add_stream(pair.left, pair.right, source);
}

/// What was said to be narrow, of which host and path, how much it carries, and when.
fn narrow(pair: &Pair) -> Vec<(Instant, bool, u8, usize)> {
    let told = |&(when, host, event): &_| match event {
        Event::Narrow { path: PathId(path), carries, .. } => {
            Some((when, host == pair.left, path, carries))
        }
        Event::Path { .. }
        | Event::Proven { .. }
        | Event::Restart { .. }
        | Event::Session { .. }
        | Event::NoSession { .. }
        | Event::Stopped { .. }
        | Event::Resumed { .. }
        | Event::SessionEnd { .. } => None,
    };
    pair.world.events().iter().filter_map(told).collect()
}

/// Has the first path carry packets of at most `largest` bytes, in one direction.
fn narrow_down(pair: &mut Pair, direction: Direction, largest: usize) {
    let narrow = Profile { largest: Some(largest as u64), ..wire() };
    pair.world.set_profile(pair.wires[0], direction, narrow);
}

#[test]
fn a_black_hole_is_detected_within_seconds() {
    // A stream of one length, of several, and so little that it takes its time.
    for (lens, per_second, carries, most) in [
        (&[1400][..], 100, FLOOR, 7),
        (&[1400, 1350, 100], 100, 1350 + GRE, 7),
        (&[1400], 4, FLOOR, 14),
    ] {
        let mut pair = Pair::new(1, &two(&wire())).expect("a plan the core accepts");
        for (port, &len) in (1..).zip(lens) {
            stream(&mut pair, port, len, per_second);
        }
        pair.world.run_until(at(10));
        assert_eq!(narrow(&pair), []);
        narrow_down(&mut pair, Direction::There, 1350 + GRE + OUTER);
        pair.world.run_until(at(10 + most));
        let told = narrow(&pair);
        let [(when, true, 0, told)] = told[..] else { panic!("{lens:?}: {told:?}") };
        assert_eq!(told, carries, "{lens:?}");
        assert!(when > at(13), "not in haste: {when:?}");
    }
}

#[test]
fn a_black_hole_below_the_ipv6_minimum_is_detected_in_two_steps() {
    let mut pair = Pair::new(1, &two(&wire())).expect("a plan the core accepts");
    stream(&mut pair, 1, 1400, 50);
    // As after the first step: what fits a path that carries the least.
    stream(&mut pair, 2, 1280, 33);
    narrow_down(&mut pair, Direction::There, 1000);
    pair.world.run_until(at(9));
    let told: Vec<_> = narrow(&pair).into_iter().map(|(_, _, _, carries)| carries).collect();
    assert!(told.contains(&60), "as long as a keepalive: {told:?}");
    assert!(told.iter().all(|carries| [60, FLOOR].contains(carries)), "{told:?}");
}

#[test]
fn a_bulk_transfer_is_enough_to_detect_a_black_hole() {
    let mut pair = Pair::new(1, &two(&wire())).expect("a plan the core accepts");
    let flow = Pair::flow(false, 9);
    pair.world.add_bulk(pair.left, pair.right, Sender::new(flow, 1400, at(1), at(LIFE)));
    pair.world.run_until(at(5));
    narrow_down(&mut pair, Direction::There, 1400);
    pair.world.run_until(at(25));
    let told = narrow(&pair);
    assert!(matches!(told[..], [(_, true, 0, FLOOR), ..]), "{told:?}");
}

/// Runs worlds with all kinds of traffic, of which some is rare and none is lost for its length, and
/// asserts that no path is ever said to be narrow.
fn never_narrow(what: &str, world: impl Fn(u64) -> Pair) {
    never_narrow_up_to(1470, what, world);
}

/// The same with a longest packet of another length.
fn never_narrow_up_to(longest: usize, what: &str, world: impl Fn(u64) -> Pair) {
    for seed in SEEDS {
        let mut pair = world(seed);
        for (port, len, per_second) in [(1, 1400, [2, 7, 30]), (2, 60, [30, 7, 2])] {
            stream(&mut pair, port, len, per_second[seed as usize % 3]);
        }
        if seed % 2 == 0 {
            // Now and then something longer.
            stream(&mut pair, 3, longest, 2);
        }
        pair.world.run_until(at(LIFE));
        assert_eq!(narrow(&pair), [], "{what}, seed {seed}");
    }
}

fn never_narrow_over(what: &str, profile: Profile) {
    never_narrow(what, |seed| Pair::new(seed, &two(&profile)).expect("a plan the core accepts"));
}

#[test]
fn random_loss_is_not_taken_for_a_black_hole() {
    for loss in [0.05, 0.3, 0.4] {
        never_narrow_over("random loss", Profile { loss: Loss::Random(loss), ..wire() });
    }
}

#[test]
fn loss_bursts_are_not_taken_for_a_black_hole() {
    for (p, r) in [(0.02, 0.1), (0.1, 0.1), (0.005, 0.02)] {
        let bursts = GilbertElliott { p, r, h: 0.0, k: 1.0 };
        never_narrow_over("bursts", Profile { loss: Loss::GilbertElliott(bursts), ..wire() });
    }
}

#[test]
fn outages_are_not_taken_for_a_black_hole() {
    for (every, millis, dead_time) in
        [(5, 1000, Some(1750)), (4, 3500, None), (20, 9000, None), (2, 1000, Some(700))]
    {
        let window = |n: u64| (at(n * every), at(n * every) + Duration::from_millis(millis));
        let since = |at: Instant| at.since(Instant::ZERO);
        let windows = (1..LIFE / every).map(window).map(|(from, to)| (since(from), since(to)));
        let mut plan = two(&Profile { blackouts: windows.collect(), ..wire() });
        plan.path.dead_time = dead_time.map(Duration::from_millis);
        never_narrow("outages", |seed| Pair::new(seed, &plan).expect("a plan the core accepts"));
    }
}

#[test]
fn delay_and_reordering_are_not_taken_for_a_black_hole() {
    for (delay, jitter, reorder) in [(20, 15, 0.2), (900, 300, 0.1), (1200, 0, 0.0)] {
        let [delay, jitter] = [delay, jitter].map(Duration::from_millis);
        never_narrow_over("delay", Profile { delay, jitter, reorder, ..wire() });
    }
}

#[test]
fn a_full_queue_is_not_taken_for_a_black_hole() {
    // The busiest streams send 180 kbit/s over this path. All large packets are of one length: in a queue
    // that counts bytes and is never empty, packets a little shorter do take the place of longer ones
    // for ever, and to send shorter ones is then the right answer.
    let plan = two(&Profile { rate: Some(100_000), queue: Some(20_000), ..wire() });
    let world = |seed| Pair::new(seed, &plan).expect("a plan the core accepts");
    never_narrow_up_to(1400, "a slow link", world);
}

#[test]
fn different_keepalive_intervals_are_not_taken_for_a_black_hole() {
    for (left, right, loss) in
        [(10_000, 100, 0.3), (100, 10_000, 0.3), (3000, 500, 0.1), (100, 100, 0.3), (500, 0, 0.0)]
    {
        let lossy = Profile { loss: Loss::Random(loss), ..wire() };
        let plan = two(&lossy);
        never_narrow("intervals", |seed| uneven(seed, &plan, [left, right]));
    }
}

/// A pair whose hosts send keepalives at intervals of this many milliseconds; 0 is never.
fn uneven(seed: u64, plan: &PairPlan, millis: [u64; 2]) -> Pair {
    let with = |millis: u64| {
        let keepalive = (millis > 0).then(|| Duration::from_millis(millis));
        let path = PathConfig { keepalive, dead_time: None, ..plan.path.clone() };
        PairPlan { path, ..plan.clone() }
    };
    let [left, right] = [with(millis[0]).left(), with(millis[1]).right()];
    let ends: Vec<_> =
        left.sockets.iter().zip(&right.sockets).map(|(a, b)| (a.ip(), b.ip())).collect();
    let mut world = World::new(seed);
    let [left, right] =
        [left, right].map(|host| world.add_host(host).expect("settings the core accepts"));
    let mut wires = Vec::new();
    for (&(a, b), path) in ends.iter().zip(&plan.paths) {
        let (a, b) = (End { host: left, address: a }, End { host: right, address: b });
        wires.push(world.add_wire(a, b, path.there.clone(), path.back.clone()));
    }
    Pair { world, left, right, wires }
}
