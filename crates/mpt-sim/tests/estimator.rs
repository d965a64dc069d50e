//! What the estimator of a path's rate makes of links, one case after the other, while more is sent than they carry.

mod links;

use links::{at, believed, bytes, clear, pair, plan, stream, stream_between, wire};
use mpt_sim::link::DropReason;
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::world::pair::Pair;
use mpt_sim::world::{Direction, WireId};

/// How often a link is looked at, in milliseconds.
const STEP: u64 = 5;

/// A link and the path over it at one moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Milliseconds since the world began.
    at: u64,
    /// What the link can carry, and what is believed that it can, in Mbit/s.
    real: f64,
    believed: f64,
    /// Milliseconds that wait at the link.
    queue: f64,
    /// Bytes that it has carried, and datagrams that it has dropped for lack of room.
    carried: u64,
    dropped: u64,
}

fn see(pair: &Pair, wire: WireId, path: usize) -> Seen {
    let now = pair.world.now();
    let link = pair.world.link(wire, Direction::There);
    let rate = link.profile().rate.unwrap_or(u64::MAX) as f64;
    Seen {
        at: now.since(at(0)).as_millis() as u64,
        real: rate / 1e6,
        believed: believed(pair, path + 1).get(path).map_or(0.0, |path| path.0),
        queue: link.backlog(now) as f64 * 8e3 / rate,
        carried: bytes(pair, &[wire]),
        dropped: link.stats().drops(DropReason::Queue).packets,
    }
}

/// Looks at the first link until a time in milliseconds, changing the links now and then.
fn watch(pair: &mut Pair, to: u64, change: impl Fn(&mut Pair, u64)) -> Vec<Seen> {
    let mut seen = Vec::new();
    let from = pair.world.now().since(at(0)).as_millis() as u64;
    for now in (from..to).step_by(STEP as usize) {
        change(pair, now);
        pair.world.run_until(at(now + STEP));
        seen.push(see(pair, pair.wires[0], 0));
    }
    seen
}

fn nothing(_: &mut Pair, _: u64) {}

/// Changes the first link from left to right.
fn set(pair: &mut Pair, profile: Profile) {
    pair.world.set_profile(pair.wires[0], Direction::There, profile);
}

fn between(seen: &[Seen], from: u64, to: u64) -> impl DoubleEndedIterator<Item = &Seen> {
    seen.iter().filter(move |seen| (from..to).contains(&seen.at))
}

/// Mbit/s that the link carried between two times in milliseconds.
fn carried(seen: &[Seen], from: u64, to: u64) -> f64 {
    let mut part = between(seen, from, to);
    let first = part.next().expect("a moment in this time");
    let last = part.next_back().expect("another one");
    (last.carried - first.carried) as f64 * 8e-3 / (last.at - first.at) as f64
}

/// How long in milliseconds the estimate was off by more than a share.
fn wrong_for(seen: &[Seen], share: f64) -> u64 {
    let is_wrong = |seen: &&Seen| (seen.believed - seen.real).abs() > share * seen.real;
    seen.iter().filter(is_wrong).count() as u64 * STEP
}

fn greatest_queue(seen: &[Seen], from: u64, to: u64) -> f64 {
    between(seen, from, to).map(|seen| seen.queue).fold(0.0, f64::max)
}

fn least_estimate(seen: &[Seen], from: u64, to: u64) -> f64 {
    between(seen, from, to).map(|seen| seen.believed / seen.real).fold(1.0, f64::min)
}

/// A link with a queue of half a second.
fn deep(mbps: u64, delay: u64) -> Profile {
    Profile { queue: Some(mbps * 62_500), ..wire(mbps, delay) }
}

#[test]
fn a_step_of_the_rate_is_found_in_a_second_and_what_it_leaves_in_the_queue_is_soon_gone() {
    for (before, after, delay) in
        [(40, 20, 20), (20, 40, 20), (80, 20, 20), (50, 25, 5), (30, 15, 60), (20, 80, 10)]
    {
        let mut pair = pair(&[deep(before, delay)]);
        stream(&mut pair, 100);
        pair.world.run_until(at(8000));
        set(&mut pair, deep(after, delay));
        let seen = watch(&mut pair, 10_000, nothing);
        let what = format!("{before} to {after} Mbit/s at {delay} ms");
        assert!(wrong_for(&seen, 0.1) < 1000, "{what}: wrong for {} ms", wrong_for(&seen, 0.1));
        let settled = least_estimate(&seen, 9000, 10_000);
        assert!(settled >= 0.9, "{what}: {settled}");
        // Feedback tells of the step after a round trip and a half, and it takes another one to believe it.
        let round_trip = 2.0 * delay as f64;
        let ratio = before as f64 / after as f64;
        let most = (ratio - 1.0).max(0.0) * (1.5 * round_trip + 20.0) + 30.0;
        let greatest = greatest_queue(&seen, 8000, 10_000);
        assert!(greatest <= most, "{what}: {greatest} ms waited");
        // It leaves the link no faster than at its rate.
        let full = seen.iter().find(|seen| seen.queue == greatest).map_or(0, |seen| seen.at);
        let empty = seen.iter().rfind(|seen| seen.queue >= 20.0).map_or(0, |seen| seen.at);
        let most = 1.3 * greatest + 2.0 * round_trip;
        assert!((empty.saturating_sub(full) as f64) < most, "{what}: {full} to {empty}");
    }
}

#[test]
fn a_rate_that_swings_is_used_by_most() {
    let mut pair = pair(&[wire(80, 20)]);
    stream(&mut pair, 100);
    let swing = |pair: &mut Pair, now: u64| {
        if now.is_multiple_of(1500) {
            set(pair, wire(if (now / 1500).is_multiple_of(2) { 80 } else { 20 }, 20));
        }
    };
    let seen = watch(&mut pair, 10_500, swing);
    let mbps = carried(&seen, 4500, 10_500);
    assert!(mbps >= 0.85 * 50.0, "{mbps}");
}

#[test]
fn a_longer_route_is_not_taken_for_a_lower_rate() {
    for (mbps, more) in [(20, 30), (50, 30), (50, 12)] {
        let mut pair = pair(&[wire(mbps, 25)]);
        stream(&mut pair, 2 * mbps);
        pair.world.run_until(at(5000));
        let route = |pair: &mut Pair, now| match now {
            5000 => set(pair, wire(mbps, 25 + more)),
            9000 => set(pair, wire(mbps, 25)),
            _ => {}
        };
        let seen = watch(&mut pair, 12_000, route);
        let what = format!("{mbps} Mbit/s, {more} ms more");
        let least = least_estimate(&seen, 5000, 12_000);
        assert!(least >= 0.8, "{what}: {least}");
        assert!(wrong_for(&seen, 0.05) < 1000, "{what}: wrong for {} ms", wrong_for(&seen, 0.05));
        let carried = carried(&seen, 6000, 12_000);
        assert!(carried >= 0.97 * mbps as f64, "{what}: {carried}");
    }
}

#[test]
fn a_policer_is_not_sent_more_than_it_lets_through() {
    for (mbps, bucket) in [(20, 30_000), (40, 100_000), (20, 1_000_000)] {
        let policed = Profile { queue: Some(bucket), policed: true, ..wire(mbps, 20) };
        let mut pair = pair(&[policed]);
        stream(&mut pair, 2 * mbps);
        let seen = watch(&mut pair, 20_000, nothing);
        let what = format!("{mbps} Mbit/s, {bucket} bytes");
        let carried = carried(&seen, 5000, 20_000);
        assert!(carried >= 0.95 * mbps as f64, "{what}: {carried}");
        let settled: Vec<Seen> = between(&seen, 5000, 20_000).copied().collect();
        assert!(wrong_for(&settled, 0.05) < 1000, "{what}: {} ms", wrong_for(&settled, 0.05));
        // Some 30,000 datagrams; probes for more cost some.
        let dropped = settled[settled.len() - 1].dropped - settled[0].dropped;
        assert!(dropped < 600, "{what}: {dropped} dropped");
    }
}

#[test]
fn a_buffer_of_20_kilobytes_is_enough() {
    for mbps in [20, 50, 100] {
        let mut pair = pair(&[Profile { queue: Some(20_000), ..wire(mbps, 20) }]);
        stream(&mut pair, 2 * mbps);
        let seen = watch(&mut pair, 8000, nothing);
        let carried = carried(&seen, 3000, 8000);
        assert!(carried >= 0.96 * mbps as f64, "{mbps} Mbit/s: {carried}");
        let settled: Vec<Seen> = between(&seen, 3000, 8000).copied().collect();
        assert_eq!(wrong_for(&settled, 0.05), 0, "{mbps} Mbit/s");
        let dropped = settled[settled.len() - 1].dropped - settled[0].dropped;
        assert!(dropped < mbps * 5 * 90 / 100, "{mbps} Mbit/s: {dropped} dropped, 1 %");
    }
}

#[test]
fn random_loss_does_not_lower_the_rate() {
    for loss in [0.01, 0.05] {
        let lossy = Profile { loss: Loss::Random(loss), ..wire(50, 20) };
        let mut pair = pair(&[lossy]);
        stream(&mut pair, 100);
        let seen = watch(&mut pair, 10_000, nothing);
        // What a link loses before its queue is not carried by it.
        let carried = carried(&seen, 3000, 10_000);
        assert!(carried >= 0.96 * 50.0, "{loss}: {carried}");
        let least = least_estimate(&seen, 3000, 10_000);
        assert!(least >= 0.85, "{loss}: {least}");
    }
}

#[test]
fn two_paths_over_one_queue_fill_it_and_no_more() {
    let mut pair = Pair::new(1, &plan(&[clear(5), clear(15)])).expect("a plan the core accepts");
    let wires = pair.wires.clone();
    let modem = Profile { queue: Some(1_000_000), ..wire(40, 10) };
    let trunk = pair.world.add_trunk(&wires, Direction::There, modem);
    pair.world.run_until(at(1000));
    stream(&mut pair, 80);
    pair.world.run_until(at(3000));
    let before = bytes(&pair, &wires);
    let mut greatest = 0.0_f64;
    for now in (3000..13_000).step_by(STEP as usize) {
        pair.world.run_until(at(now + STEP));
        greatest = greatest.max(pair.world.trunk_backlog(trunk) as f64 * 8e-3 / 40.0);
    }
    let mbps = (bytes(&pair, &wires) - before) as f64 * 8e-6 / 10.0;
    assert!((0.97 * 40.0..=40.1).contains(&mbps), "{mbps} Mbit/s");
    assert!(greatest < 20.0, "{greatest} ms waited");
}

#[test]
fn slow_links_are_filled_with_few_packets_waiting() {
    for (mbps, most) in [(1, 120.0), (2, 60.0)] {
        let mut pair = pair(&[wire(mbps, 30)]);
        stream(&mut pair, 2 * mbps);
        let seen = watch(&mut pair, 20_000, nothing);
        let carried = carried(&seen, 3000, 20_000);
        assert!(carried >= 0.97 * mbps as f64, "{mbps} Mbit/s: {carried}");
        let greatest = greatest_queue(&seen, 4000, 20_000);
        assert!(greatest < most, "{mbps} Mbit/s: {greatest} ms waited");
        assert!(wrong_for(&seen, 0.1) < 1000, "{mbps}: {} ms", wrong_for(&seen, 0.1));
    }
}

#[test]
fn twenty_times_the_rate_is_found_over_a_satellite_in_fifteen_seconds() {
    let mut pair = pair(&[wire(1, 300)]);
    stream(&mut pair, 40);
    pair.world.run_until(at(10_000));
    set(&mut pair, wire(20, 300));
    let seen = watch(&mut pair, 40_000, nothing);
    let found = seen.iter().find(|seen| seen.believed >= 0.9 * seen.real).map(|seen| seen.at);
    assert!(found.is_some_and(|at| at < 25_000), "{found:?}");
    let carried = carried(&seen, 28_000, 40_000);
    assert!(carried >= 0.95 * 20.0, "{carried}");
}

#[test]
fn a_deep_buffer_is_not_filled_after_the_start() {
    for (mbps, delay) in [(20, 20), (50, 5), (50, 50)] {
        let mut pair = pair(&[Profile { queue: Some(mbps * 125_000), ..wire(mbps, delay) }]);
        stream(&mut pair, 2 * mbps);
        let seen = watch(&mut pair, 8000, nothing);
        let greatest = greatest_queue(&seen, 3000, 8000);
        assert!(greatest < 30.0, "{mbps} Mbit/s, {delay} ms: {greatest} ms waited");
        let carried = carried(&seen, 3000, 8000);
        assert!(carried >= 0.98 * mbps as f64, "{mbps} Mbit/s, {delay} ms: {carried}");
    }
}

#[test]
fn a_path_that_was_not_full_is_found_when_it_is_needed() {
    let mut pair = pair(&[wire(50, 10), wire(50, 30)]);
    stream_between(&mut pair, 20_000, 7001, [1000, 8000]);
    stream_between(&mut pair, 85_000, 7002, [8000, 30_000]);
    pair.world.run_until(at(8000));
    let wires = pair.wires.clone();
    let mbps = links::carried(&mut pair, &wires, 9, 13);
    assert!(mbps >= 85.0, "{mbps}");
}
