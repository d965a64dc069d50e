//! Paths that cost more than their settings say for a while, as those do whose volume is nearly used up.

use crate::links::{self, at, bulk, carried, plan, stream, wire};
use mpt_proto::{Change, PathId, SchedulerConfig, Surcharge};
use mpt_sim::world::pair::{Pair, PairPlan};

/// Two links of 20 Mbit/s.
fn two() -> PairPlan {
    plan(&[wire(20, 10), wire(20, 10)])
}

fn pair_by(scheduler: SchedulerConfig, surcharge: Surcharge) -> Pair {
    let mut plan = two();
    plan.connection.scheduler = scheduler;
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    set(&mut pair, surcharge);
    pair.world.run_until(at(1000));
    pair
}

/// The second path costs so much from now on.
fn set(pair: &mut Pair, surcharge: Surcharge) {
    let (connection, path) = (Pair::CONNECTION, PathId(1));
    pair.world.change(pair.left, &Change::SetSurcharge { connection, path, surcharge });
}

/// Mbit/s by the first and by the second path from one second to another.
fn by_path(pair: &mut Pair, from: u64, to: u64) -> [f64; 2] {
    let wires = pair.wires.clone();
    pair.world.run_until(at(from * 1000));
    let before = [0, 1].map(|path| links::bytes(pair, &wires[path..=path]));
    pair.world.run_until(at(to * 1000));
    let after = [0, 1].map(|path| links::bytes(pair, &wires[path..=path]));
    [0, 1].map(|path| (after[path] - before[path]) as f64 * 8.0 / 1e6 / (to - from) as f64)
}

const LAST: Surcharge = Surcharge { price: 0, last_resort: true };

#[test]
fn a_dear_path_carries_what_the_others_cannot_and_no_transfer_that_yields() {
    let dear = Surcharge { price: 1000, last_resort: false };
    let mut pair = pair_by(SchedulerConfig::Earliest, dear);
    bulk(&mut pair);
    let [free, mbps] = by_path(&mut pair, 4, 10);
    assert!(free >= 18.0 && mbps < 0.5, "{free} and {mbps}");
    set(&mut pair, Surcharge::default());
    let [free, mbps] = by_path(&mut pair, 14, 18);
    assert!(free >= 17.0 && mbps >= 17.0, "it costs nothing any more: {free} and {mbps}");

    let mut pair = pair_by(SchedulerConfig::Earliest, dear);
    stream(&mut pair, 15);
    let [free, mbps] = by_path(&mut pair, 4, 8);
    assert!(free >= 14.0 && mbps < 0.5, "{free} and {mbps}");

    let mut pair = pair_by(SchedulerConfig::Earliest, dear);
    stream(&mut pair, 30);
    let [free, mbps] = by_path(&mut pair, 6, 12);
    assert!(free >= 18.0 && mbps >= 8.0, "{free} and {mbps}");
}

#[test]
fn a_last_resort_carries_only_while_no_other_path_is_up() {
    for scheduler in
        [SchedulerConfig::Earliest, SchedulerConfig::Weighted, SchedulerConfig::LowestRtt]
    {
        let mut pair = pair_by(scheduler, LAST);
        stream(&mut pair, 15);
        let [other, last] = by_path(&mut pair, 2, 5);
        assert!(other >= 14.0 && last < 0.1, "{scheduler:?}: {other} and {last}");
        let wire = pair.wires[0];
        pair.world.cut_both(wire, true);
        let [other, last] = by_path(&mut pair, 8, 10);
        assert!(other < 0.1 && last >= 14.0, "{scheduler:?}, cut: {other} and {last}");
        pair.world.cut_both(wire, false);
        let [other, last] = by_path(&mut pair, 20, 22);
        assert!(other >= 14.0 && last < 0.2, "{scheduler:?}, again: {other} and {last}");
    }
}

#[test]
fn a_last_resort_stands_by_even_for_a_path_that_carries_too_little() {
    let mut pair = pair_by(SchedulerConfig::Earliest, LAST);
    stream(&mut pair, 30);
    let [other, last] = by_path(&mut pair, 4, 8);
    assert!(other >= 18.0 && last < 0.1, "{other} and {last}");
}

#[test]
fn other_settings_of_a_path_leave_its_surcharge_as_it_is() {
    let mut pair = pair_by(SchedulerConfig::Earliest, LAST);
    stream(&mut pair, 30);
    let (connection, path) = (Pair::CONNECTION, PathId(1));
    let config = two().left().endpoint.connections.remove(0).paths.remove(1);
    pair.world.change(pair.left, &Change::SetPath { connection, path, config });
    let wires = pair.wires.clone();
    let mbps = carried(&mut pair, &wires[1..], 3, 5);
    assert!(mbps < 0.1, "{mbps}");
}
