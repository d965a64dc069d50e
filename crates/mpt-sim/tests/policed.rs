//! Links that drop what they cannot carry at once, so that no delay tells what they carry.
//!
//! ```console
//! $ cargo test --release -p mpt-sim --test suite policed:: -- --ignored --nocapture
//! ```

use std::time::Duration;

use crate::links::{at, believed, lossy, of_each, plan, sender, stream_between, wire};
use mpt_sim::profile::Profile;
use mpt_sim::world::pair::Pair;
use mpt_sim::world::{Direction, WireId};

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Cubic,
    Bbr,
    Stream,
}

/// A policer of so many Mbit/s with a bucket of so many bytes.
fn policer(mbps: u64, bucket: u64) -> Profile {
    Profile { queue: Some(bucket), policed: true, ..wire(mbps, 10) }
}

/// A link of so many Mbit/s whose queue holds so many bytes, with so much jitter.
fn shallow(mbps: u64, queue: u64, jitter: Duration) -> Profile {
    Profile { queue: Some(queue), jitter, ..wire(mbps, 10) }
}

/// What became of a load in seconds 5 to 15.
#[derive(Debug)]
struct Outcome {
    /// What the links carried of what they could, and what the first one dropped of what it was given.
    carried: f64,
    lost: f64,
    /// The goodput of a transfer over the same, zero of a stream.
    goodput: f64,
    /// Mbit/s.
    believed: f64,
}

fn outcome(wires: &[Profile], load: Load) -> Outcome {
    outcome_of(1, wires, load)
}

fn outcome_of(seed: u64, wires: &[Profile], load: Load) -> Outcome {
    let mut pair = Pair::new(seed, &plan(wires)).expect("a plan the core accepts");
    let sum = wires.iter().filter_map(|wire| wire.rate).sum::<u64>() as f64 / 1e6;
    let bulk = match load {
        Load::Cubic => Some(pair.world.add_bulk(pair.left, pair.right, sender())),
        Load::Bbr => Some(pair.world.add_bulk(pair.left, pair.right, sender().with_bbr())),
        Load::Stream => {
            stream_between(&mut pair, (1200.0 * sum) as u64, 7001, [1000, 1_000_000]);
            None
        }
    };
    let counts = |pair: &Pair| {
        let stats = |wire: &WireId| pair.world.link(*wire, Direction::There).stats();
        let all: u64 = pair.wires.iter().map(|wire| stats(wire).delivered.bytes).sum();
        let first = stats(&pair.wires[0]);
        let goodput = bulk.map_or(0, |bulk| pair.world.bulk(bulk).1.stats().bytes);
        [all, first.offered.packets, first.dropped().packets, goodput].map(|it| it as f64)
    };
    pair.world.run_until(at(5000));
    let before = counts(&pair);
    pair.world.run_until(at(15_000));
    let after = counts(&pair);
    let [bytes, offered, dropped, goodput] = std::array::from_fn(|it| after[it] - before[it]);
    let share = |bytes: f64| bytes * 8.0 / 10e6 / sum;
    let believed = believed(&pair, 1)[0].0;
    Outcome { carried: share(bytes), lost: dropped / offered, goodput: share(goodput), believed }
}

const LOADS: [Load; 3] = [Load::Cubic, Load::Bbr, Load::Stream];

/// What exceeds the rate of a policer is lost without any delay: then a path is sent on by what it delivers, and others are not held up.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn what_a_policer_drops_is_not_sent() {
    for wires in [
        vec![policer(20, 20_000)],
        vec![policer(20, 200_000)],
        vec![policer(100, 20_000)],
        vec![policer(20, 20_000), wire(20, 20)],
        vec![policer(20, 20_000), policer(20, 20_000)],
    ] {
        for load in LOADS {
            let got = outcome(&wires, load);
            assert!(got.carried >= 0.9 && got.lost <= 0.04, "{wires:?} {load:?}: {got:?}");
        }
    }
}

/// The queue is as short as what the delay varies by.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_queue_that_is_too_short_to_be_seen_does_not_overflow_for_long() {
    let wires = [shallow(90, 23_000, Duration::from_micros(900)), wire(40, 20)];
    for load in LOADS {
        let got = of_each(std::array::from_fn::<u64, 11, _>(|it| it as u64 + 1), |seed| {
            outcome_of(*seed, &wires, load)
        });
        let median = |mut of: [f64; 11]| {
            of.sort_by(f64::total_cmp);
            of[5]
        };
        let carried = got.each_ref().map(|it| it.carried);
        // How often CUBIC leaves slow start early is a matter of chance.
        let least = if matches!(load, Load::Cubic) { 0.8 } else { 0.95 };
        let mean = carried.iter().sum::<f64>() / carried.len() as f64;
        assert!(mean >= least && carried.iter().all(|it| *it >= 0.5), "{load:?}: {got:?}");
        let lost = got.each_ref().map(|it| it.lost);
        assert!(median(lost) <= 0.04 && lost.iter().all(|it| *it <= 0.05), "{load:?}: {got:?}");
    }
}

/// To send less does not help.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_link_that_loses_at_random_is_not_taken_for_a_policer() {
    for loss in [0.05, 0.1] {
        let got = outcome(&[lossy(wire(50, 10), loss)], Load::Stream);
        assert!(got.carried >= 0.93 && got.believed >= 49.0, "{loss}: {got:?}");
    }
}

/// Prints a table.
#[test]
#[ignore = "prints a table, takes a minute"]
fn table() {
    let none = Duration::ZERO;
    for (name, wires) in [
        ("policer of 20, 20 kB", vec![policer(20, 20_000)]),
        ("policer of 20, 200 kB", vec![policer(20, 200_000)]),
        ("policer of 100, 20 kB", vec![policer(100, 20_000)]),
        ("policer of 20, 20 kB beside 20", vec![policer(20, 20_000), wire(20, 20)]),
        ("policer of 20, 20 kB beside 80", vec![policer(20, 20_000), wire(80, 20)]),
        ("two policers of 20", vec![policer(20, 20_000), policer(20, 20_000)]),
        ("50, 4 kB", vec![shallow(50, 4000, none)]),
        ("50, 20 kB", vec![shallow(50, 20_000, none)]),
        ("90, 23 kB, jitter", vec![shallow(90, 23_000, Duration::from_micros(900))]),
        ("the same beside 40", vec![shallow(90, 23_000, Duration::from_micros(900)), wire(40, 20)]),
        ("50 that loses 5 %", vec![lossy(wire(50, 10), 0.05)]),
        ("that beside 20", vec![lossy(wire(50, 10), 0.05), wire(20, 20)]),
        ("50 that loses 10 %", vec![lossy(wire(50, 10), 0.1)]),
    ] {
        for load in LOADS {
            let Outcome { carried, lost, goodput, believed } = outcome(&wires, load);
            println!(
                "{name:>32} {load:?}: {carried:.2} carried, {lost:.3} lost, {goodput:.2} goodput, {believed:.1} believed"
            );
        }
    }
}
