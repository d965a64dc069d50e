//! What is got of two links whose delays vary so that packets overtake each other, or of which one is much slower, and
//! what is believed of these links meanwhile.

mod links;

use std::time::Duration;

use links::{at, believed, bulk, bytes, plan, stream, wire};
use mpt_sim::profile::Profile;
use mpt_sim::world::pair::Pair;

/// How often the estimates are looked at, in milliseconds.
const STEP: u64 = 20;

/// What the links have shown from the third second of a load to the twelfth.
#[derive(Debug)]
struct Shown {
    /// The share of the links' rates that they carried.
    used: f64,
    /// The least share of its rate that each link was believed to carry.
    least: Vec<f64>,
}

/// A link of so many Mbit/s with a delay in milliseconds, and its standard deviation in microseconds.
fn jittery(mbps: u64, delay: u64, micros: u64) -> Profile {
    Profile { jitter: Duration::from_micros(micros), ..wire(mbps, delay) }
}

/// What is sent over the links.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// A transfer by CUBIC.
    Bulk,
    /// A tenth more than they carry, which yields to nothing.
    Stream,
}

fn show(seed: u64, load: Load, wires: &[Profile]) -> Shown {
    let mut pair = Pair::new(seed, &plan(wires)).expect("a plan the core accepts");
    let real: Vec<f64> = wires.iter().map(|wire| wire.rate.unwrap_or(0) as f64 / 1e6).collect();
    let sum: f64 = real.iter().sum();
    pair.world.run_until(at(1000));
    match load {
        Load::Bulk => drop(bulk(&mut pair)),
        Load::Stream => drop(stream(&mut pair, (1.1 * sum) as u64)),
    }
    pair.world.run_until(at(4000));
    let ids = pair.wires.clone();
    let before = bytes(&pair, &ids);
    let mut least = vec![f64::INFINITY; wires.len()];
    for now in (4000..13_000).step_by(STEP as usize) {
        pair.world.run_until(at(now + STEP));
        for ((least, (rate, ..)), real) in least.iter_mut().zip(believed(&pair, 2)).zip(&real) {
            *least = least.min(rate / real);
        }
    }
    let mbps = (bytes(&pair, &ids) - before) as f64 * 8e-6 / 9.0;
    Shown { used: mbps / sum, least }
}

/// Both links are used by nine tenths, and no estimate is ever below this share of the link's rate.
fn assert_used(load: Load, wires: &[Profile], least: f64) {
    for seed in 1..=3 {
        let shown = show(seed, load, wires);
        assert!(shown.used >= 0.9, "{load:?}, seed {seed}: {shown:?}");
        assert!(
            shown.least.iter().all(|&share| share >= least),
            "{load:?}, seed {seed}: {shown:?}"
        );
    }
}

#[test]
fn a_little_jitter_is_not_taken_for_a_lower_rate() {
    assert_used(Load::Bulk, &[jittery(20, 10, 2500), jittery(20, 10, 2500)], 0.7);
    assert_used(Load::Bulk, &[jittery(50, 10, 2500), jittery(50, 10, 2500)], 0.7);
}

#[test]
fn much_jitter_is_not_taken_for_a_queue() {
    let wires = [jittery(20, 10, 10_000), jittery(20, 10, 10_000)];
    assert_used(Load::Bulk, &wires, 0.7);
    assert_used(Load::Stream, &wires, 0.7);
}

#[test]
fn links_whose_delays_vary_by_unlike_amounts_are_both_used() {
    assert_used(Load::Stream, &[jittery(16, 17, 4000), jittery(40, 25, 12_500)], 0.4);
}

#[test]
fn a_link_that_is_much_slower_is_used_too() {
    for load in [Load::Bulk, Load::Stream] {
        assert_used(load, &[wire(50, 10), wire(5, 10)], 0.7);
    }
    assert_used(Load::Bulk, &[wire(100, 10), wire(10, 10)], 0.7);
}
