//! Paths chosen by earliest arrival: what is measured of them, and what a flow gets.

mod links;

use std::time::Duration;

use links::{at, believed, bulk, carried, pair, sender, stream, wire};
use mpt_proto::Drop;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::Direction;
use mpt_sim::world::pair::Pair;

/// Bulk BBR over links: Mbit/s that each of these spans of seconds carried.
fn bbr(wires: &[Profile], spans: &[(u64, u64)]) -> Vec<f64> {
    let mut pair = pair(wires);
    pair.world.add_bulk(pair.left, pair.right, sender().with_bbr());
    let ids = pair.wires.clone();
    spans.iter().map(|&(from, to)| carried(&mut pair, &ids, from, to)).collect()
}

/// Bulk TCP over links from the third second on: Mbit/s that the links carry together.
fn goodput(wires: &[Profile]) -> f64 {
    let mut pair = pair(wires);
    bulk(&mut pair);
    let ids = pair.wires.clone();
    carried(&mut pair, &ids, 3, 7)
}

#[test]
fn nothing_typed_in_brings_close_to_the_sum() {
    for (wires, least) in [
        (&[wire(50, 10), wire(50, 10)][..], 0.96),
        (&[wire(100, 10), wire(10, 10)], 0.96),
        (&[wire(50, 10), wire(50, 20)], 0.95),
        (&[wire(300, 4), wire(30, 20)], 0.95),
    ] {
        let sum: u64 = wires.iter().filter_map(|wire| wire.rate).sum();
        let share = goodput(wires) * 1e6 / sum as f64;
        assert!(share >= least, "{share:.3} of {sum}");
    }
}

#[test]
fn jitter_is_not_taken_for_a_queue() {
    for millis in [3, 10] {
        let jitter = Duration::from_millis(millis);
        let wires = [10, 10].map(|delay| Profile { jitter, ..wire(50, delay) });
        let mbps = goodput(&wires);
        assert!(mbps >= 0.85 * 100.0, "{millis} ms: {mbps}");
    }
}

#[test]
fn a_path_that_is_much_slower_does_not_harm_the_fast_one() {
    for delay in [60, 160, 400] {
        let mbps = goodput(&[wire(50, 10), wire(50, delay)]);
        assert!(mbps >= 0.97 * 50.0, "{delay} ms: {mbps}");
    }
}

#[test]
fn a_flow_that_sends_little_does_not_wait_for_one_that_sends_much() {
    for wires in [[wire(50, 10), wire(50, 60)], [wire(20, 10), wire(50, 20)]] {
        let mut pair = pair(&wires);
        bulk(&mut pair);
        let interval = Duration::from_millis(20);
        let call = Source::new(Pair::flow(false, 7002), 200, interval, at(4000), at(14_000));
        let call = pair.world.add_stream(pair.left, pair.right, call);
        pair.world.run_until(at(15_000));
        let verdict = *pair.world.stream(call).1.verdict();
        assert_eq!(verdict.received, 500, "{verdict:?}");
        let packet = Duration::from_secs_f64(1500.0 * 8.0 / wires[0].rate.unwrap_or(1) as f64);
        let most = wires[0].delay + Duration::from_millis(5) + 2 * packet;
        assert!(verdict.greatest_delay <= most, "{verdict:?} more than {most:?}");
        // Nor do those that it overtakes count as lost.
        let order = pair.connection(pair.right).stats().reorder;
        assert_eq!(
            (order.late, order.lost_early_release + order.lost_max_delay),
            (0, 0),
            "{order:?}"
        );
    }
}

#[test]
fn bbr_gets_slower_paths_too_after_it_has_measured_its_round_trip_again() {
    let got = bbr(&[wire(20, 10), wire(20, 35)], &[(3, 11), (15, 20)]);
    assert!(got[0] > 0.95 * 20.0 && got[1] > 0.93 * 40.0, "{got:?}");
}

#[test]
fn bbr_is_not_delayed_for_a_path_that_is_not_worth_it() {
    let got = bbr(&[wire(20, 10), wire(1, 60)], &[(3, 11), (15, 20)]);
    assert!(got.iter().all(|&got| got > 0.95 * 20.0), "{got:?}");
}

#[test]
fn rates_are_measured_as_they_are() {
    let wires = [wire(50, 10), wire(12, 30)];
    let mut pair = pair(&wires);
    stream(&mut pair, 100);
    for second in 3..10 {
        pair.world.run_until(at(second * 1000));
        let believed = believed(&pair, 2);
        for (&(rate, _, queue), real) in believed.iter().zip([50.0, 12.0]) {
            assert!((0.9 * real..1.1 * real).contains(&rate), "{second} s: {believed:?}");
            assert!(queue < 15.0, "{second} s: {believed:?}");
        }
    }
}

#[test]
fn a_rate_that_changes_is_found_while_it_is_needed() {
    let mut pair = pair(&[wire(50, 10), wire(50, 10)]);
    stream(&mut pair, 120);
    let changing = pair.wires[1];
    pair.world.run_until(at(4000));
    for (when, mbps) in [(4000, 20), (8000, 40), (12_000, 10), (16_000, 50)] {
        pair.world.set_profile(changing, Direction::There, wire(mbps, 10));
        pair.world.run_until(at(when + 2000));
        let rate = believed(&pair, 2)[1].0;
        let real = mbps as f64;
        assert!((0.88 * real..1.12 * real).contains(&rate), "{mbps} Mbit/s: {rate}");
        let carried = carried(&mut pair, &[changing], when / 1000 + 2, when / 1000 + 4);
        assert!(carried >= 0.9 * real, "{mbps} Mbit/s: {carried}");
    }
}

#[test]
fn a_longer_route_is_not_taken_for_a_queue() {
    let mut pair = pair(&[wire(50, 10), wire(20, 10)]);
    stream(&mut pair, 100);
    let (first, wires) = (pair.wires[0], pair.wires.clone());
    pair.world.run_until(at(4000));
    pair.world.set_profile(first, Direction::There, wire(50, 40));
    let mbps = carried(&mut pair, &wires, 6, 20);
    assert!(mbps >= 0.95 * 70.0, "{mbps}, {:?}", believed(&pair, 2));
}

#[test]
fn a_path_is_not_paced_before_it_is_full() {
    let mut pair = pair(&[wire(50, 10), wire(50, 30)]);
    stream(&mut pair, 20);
    let wires = pair.wires.clone();
    let mbps = carried(&mut pair, &wires[..1], 2, 6);
    assert!(mbps >= 20.0, "all on the fast path: {mbps}");
    assert!(believed(&pair, 2).iter().all(|&(_, pace, _)| pace == 0.0), "{:?}", believed(&pair, 2));
}

#[test]
fn what_waits_too_long_is_dropped_and_counted_and_nothing_else_is_lost() {
    let mut pair = pair(&[wire(20, 10), wire(10, 40)]);
    let stream = stream(&mut pair, 40);
    pair.world.run_until(at(6000));
    let (source, checker) = pair.world.stream(stream);
    let drops = pair.connection(pair.left).stats().drops;
    let own = drops.count(Drop::QueueDelay) + drops.count(Drop::QueueFull);
    let delivered = checker.verdict().received;
    let missing = source.sent() - delivered;
    assert!(own > 0, "{drops:?}");
    // The difference is on its way, or was lost while the rates were not known yet.
    assert!(missing - own < 600, "{missing} missing, {own} dropped, {delivered} delivered");
}

/// Prints what happens over links given as `TRACE=50/10/2,20/40`: Mbit/s, delay and jitter in milliseconds.
#[test]
fn trace() {
    let Ok(what) = std::env::var("TRACE") else { return };
    let wires: Vec<Profile> = what
        .split(',')
        .map(|link| {
            let mut part = link.split('/').map(|number| number.parse::<u64>().unwrap());
            let mut wire = wire(part.next().unwrap(), part.next().unwrap());
            wire.jitter = Duration::from_millis(part.next().unwrap_or(0));
            wire
        })
        .collect();
    let sum: u64 = wires.iter().filter_map(|wire| wire.rate).sum();
    let mut pair = pair(&wires);
    let ids = pair.wires.clone();
    if std::env::var("STREAM").is_ok() {
        stream(&mut pair, sum / 500_000);
    } else if std::env::var("BBR").is_ok() {
        pair.world.add_bulk(pair.left, pair.right, sender().with_bbr());
    } else {
        bulk(&mut pair);
    }
    for tenth in 10..130 {
        let before: Vec<u64> = ids
            .iter()
            .map(|&wire| pair.world.link(wire, Direction::There).stats().delivered.bytes)
            .collect();
        pair.world.run_until(at((tenth + 1) * 100));
        let rates: Vec<String> = ids
            .iter()
            .zip(before)
            .map(|(&wire, before)| {
                let bytes =
                    pair.world.link(wire, Direction::There).stats().delivered.bytes - before;
                format!("{:.1}", bytes as f64 * 80.0 / 1e6)
            })
            .collect();
        let believed = believed(&pair, wires.len());
        let believed: Vec<String> =
            believed.iter().map(|(r, p, q)| format!("R {r:.1} P {p:.1} q {q:.1}")).collect();
        println!("{:.1} {rates:?} {believed:?}", tenth as f64 / 10.0);
    }
}

#[test]
fn what_is_committed_to_a_path_that_becomes_slow_goes_by_the_other() {
    let mut pair = pair(&[wire(50, 10), wire(50, 110)]);
    let stream = stream(&mut pair, 70);
    pair.world.run_until(at(4000));
    let wires = pair.wires.clone();
    pair.world.set_profile(wires[0], Direction::There, wire(5, 10));
    pair.world.run_until(at(6000));
    let verdict = pair.world.stream(stream).1.verdict();
    let order = pair.connection(pair.right).stats().reorder;
    // What was committed to it would take a second.
    assert!(verdict.greatest_delay < Duration::from_millis(450), "{verdict:?}");
    assert!(order.late < 100, "{order:?}");
}
