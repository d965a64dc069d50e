//! The estimate of a rate where links are not as it would like them, and where they change.
//!
//! What is reached over links that change is printed by
//!
//! ```console
//! $ cargo test --release -p mpt-sim --test suite estimator:: -- --ignored --nocapture
//! ```

use std::time::Duration;

use crate::links::{
    self, at, believed, bytes, carried, links_of, lossy, pair, plan, stream_between, wire,
};
use mpt_proto::{PathId, RateStage};
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::world::pair::{Pair, PairPlan};
use mpt_sim::world::{Direction, TrunkId, WireId};

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Cubic(u16),
    Bbr,
    Stream(u64),
}

fn offer(pair: &mut Pair, load: Load) {
    offer_from(pair, load, 1000);
}

/// The same from so many milliseconds on.
fn offer_from(pair: &mut Pair, load: Load, begin: u64) {
    let sender = |port| Sender::new(Pair::flow(false, port), 1380, at(begin), at(1_000_000));
    match load {
        Load::Cubic(flows) => {
            for flow in 0..flows {
                pair.world.add_bulk(pair.left, pair.right, sender(5001 + flow));
            }
        }
        Load::Bbr => {
            pair.world.add_bulk(pair.left, pair.right, sender(5001).with_bbr());
        }
        Load::Stream(kbps) => {
            stream_between(pair, kbps, 7001, [begin, 1_000_000]);
        }
    }
}

/// What happened after a link had changed.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    /// Its rate as believed after a second, as a share of what it is.
    believed: f64,
    /// What the links carried in the third and fourth second, as a share of the sum of their rates.
    carried: f64,
    /// The longest queue in front of it, and the longest from two round trips after that on, in milliseconds.
    queue: [f64; 2],
}

/// Mbit/s of the links that are there.
fn sum(wires: &[Profile]) -> f64 {
    wires.iter().filter_map(|wire| wire.rate).sum::<u64>() as f64 / 1e6
}

/// The first of some links goes from one rate to another at the 8th second.
fn change(load: Load, [from, to]: [u64; 2], others: &[Profile]) -> Change {
    let deep = |mbps: u64| Profile { queue: Some(10_000_000), ..wire(mbps, 10) };
    let wires: Vec<Profile> = std::iter::once(deep(from)).chain(others.iter().cloned()).collect();
    let mut pair = pair(&wires);
    offer(&mut pair, load);
    let (ids, changing) = (pair.wires.clone(), pair.wires[0]);
    pair.world.run_until(at(8000));
    pair.world.set_profile(changing, Direction::There, deep(to));
    let mut seen = Change::default();
    let (mut longest_at, mut queues) = (8000, Vec::new());
    for millis in (8000..10_000).step_by(2) {
        pair.world.run_until(at(millis));
        let queue = pair.world.link(changing, Direction::There).queueing(pair.world.now());
        let queue = queue.as_secs_f64() * 1e3;
        queues.push((millis, queue));
        if millis == 9000 {
            seen.believed = believed(&pair, 1)[0].0 / to as f64;
        }
        if queue > seen.queue[0] {
            (seen.queue[0], longest_at) = (queue, millis);
        }
    }
    // Two round trips as they are then.
    let later_at = longest_at + 2 * (20 + seen.queue[0] as u64);
    let later = queues.iter().filter(|(millis, _)| *millis >= later_at);
    seen.queue[1] = later.map(|(_, queue)| *queue).fold(0.0, f64::max);
    seen.carried = carried(&mut pair, &ids, 10, 12) / (to as f64 + sum(others));
    seen
}

/// The share of what is there that links carry if the first one swings between two rates.
fn swing(load: Load, [low, high]: [u64; 2], others: &[Profile]) -> f64 {
    let wires: Vec<Profile> =
        std::iter::once(wire(high, 10)).chain(others.iter().cloned()).collect();
    let mut pair = pair(&wires);
    offer(&mut pair, load);
    let ids = pair.wires.clone();
    pair.world.run_until(at(5000));
    let before = bytes(&pair, &ids);
    for half in 0..16 {
        let mbps = if half % 2 == 0 { low } else { high };
        pair.world.set_profile(ids[0], Direction::There, wire(mbps, 10));
        pair.world.run_until(at(5000 + (half + 1) * 1500));
    }
    let carried = (bytes(&pair, &ids) - before) as f64 * 8.0 / 1e6 / 24.0;
    carried / ((low + high) as f64 / 2.0 + sum(others))
}

const LOADS: [Load; 4] = [Load::Cubic(1), Load::Cubic(16), Load::Bbr, Load::Stream(200_000)];

#[test]
#[ignore = "prints a table, takes minutes"]
fn table() {
    for others in [vec![], vec![wire(50, 10)]] {
        for load in LOADS {
            for rates in [[40, 20], [20, 40], [80, 20], [20, 80], [50, 5]] {
                let got = change(load, rates, &others);
                println!(
                    "{load:?} {rates:?} beside {}: believed {:.2}, carried {:.2}, queue {:.0} ms, later {:.0} ms",
                    sum(&others),
                    got.believed,
                    got.carried,
                    got.queue[0],
                    got.queue[1]
                );
            }
            println!(
                "{load:?} swings 20..80 beside {}: {:.2}",
                sum(&others),
                swing(load, [20, 80], &others)
            );
        }
    }
}

/// What a case shows, to be printed or asserted.
fn case(wires: &[Profile], load: Load, seconds: [u64; 2]) -> (f64, Vec<(f64, f64, f64)>, Pair) {
    let mut pair = pair(wires);
    offer(&mut pair, load);
    let ids = pair.wires.clone();
    let mbps = carried(&mut pair, &ids, seconds[0], seconds[1]);
    let believed = believed(&pair, wires.len());
    (mbps, believed, pair)
}

fn shallow(mbps: u64, delay: u64) -> Profile {
    Profile { queue: Some(20_000), ..wire(mbps, delay) }
}

/// Paths over one link of so many Mbit/s.
fn shared(plan: &PairPlan, mbps: u64, queue: u64) -> (Pair, TrunkId) {
    let mut pair = Pair::new(1, plan).expect("a plan the core accepts");
    let profile =
        Profile { rate: Some(mbps * 1_000_000), queue: Some(queue), ..Profile::default() };
    let wires = pair.wires.clone();
    let trunk = pair.world.add_trunk(&wires, Direction::There, profile);
    pair.world.run_until(at(1000));
    (pair, trunk)
}

/// The mean and the longest queue of a link that wires share in ten seconds, in milliseconds.
fn queue(pair: &mut Pair, trunk: TrunkId, mbps: u64, from: u64) -> (f64, f64) {
    let (mut sum, mut most) = (0.0, 0.0_f64);
    for millis in (from * 1000..from * 1000 + 10_000).step_by(5) {
        pair.world.run_until(at(millis));
        let queue = pair.world.trunk_backlog(trunk) as f64 * 8.0 / (mbps * 1000) as f64;
        (sum, most) = (sum + queue, most.max(queue));
    }
    (sum / 2000.0, most)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn paths_over_one_link_fill_it_and_keep_its_queue_short() {
    for load in [Load::Cubic(1), Load::Cubic(8), Load::Bbr, Load::Stream(60_000)] {
        for (delays, mbps, limit, most_mean) in [
            (&[10, 10][..], 20, 200_000, 10.0),
            (&[10, 30], 20, 200_000, 10.0),
            (&[10, 10], 20, 2_000_000, 10.0),
            (&[10, 10, 15], 50, 500_000, 16.0),
        ] {
            // A start that goes wrong keeps the queue full.
            for begin in [1000, 1037, 1074] {
                let wires: Vec<Profile> = delays.iter().copied().map(links::clear).collect();
                let (mut pair, trunk) = shared(&plan(&wires), mbps, limit);
                offer_from(&mut pair, load, begin);
                let ids = pair.wires.clone();
                pair.world.run_until(at(10_000));
                let before = bytes(&pair, &ids);
                let (mean, most) = queue(&mut pair, trunk, mbps, 10);
                let carried = (bytes(&pair, &ids) - before) as f64 * 8.0 / 1e7 / mbps as f64;
                let case = format!(
                    "{load:?} {delays:?} {mbps} {limit} from {begin}: {carried:.2}, {mean:.1} ms, {most:.1} ms"
                );
                assert!(carried >= 0.93 && mean < most_mean && most < 50.0, "{case}");
            }
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_queue_of_20_kilobytes_is_filled_all_the_same() {
    for load in [Load::Cubic(1), Load::Bbr, Load::Stream(60_000)] {
        for (wires, least) in
            [(vec![shallow(50, 10)], 0.93), (vec![shallow(50, 10), wire(20, 10)], 0.84)]
        {
            let (mbps, believed, _) = case(&wires, load, [10, 20]);
            let rate = believed[0].0;
            assert!(mbps >= least * sum(&wires), "{load:?} {}: {mbps} {believed:?}", wires.len());
            assert!((45.0..55.0).contains(&rate), "{load:?} {}: {believed:?}", wires.len());
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn slow_links_are_filled_and_feedback_takes_little_of_them() {
    for (wires, load, least) in [
        (vec![wire(1, 10)], Load::Cubic(1), 0.93),
        (vec![wire(1, 10)], Load::Bbr, 0.93),
        (vec![wire(2, 10), wire(1, 30)], Load::Cubic(1), 0.8),
        (vec![wire(2, 10), wire(1, 30)], Load::Stream(6000), 0.93),
        (vec![wire(1, 10)], Load::Stream(3000), 0.93),
    ] {
        let (mbps, believed, pair) = case(&wires, load, [10, 20]);
        assert!(mbps >= least * sum(&wires), "{load:?} {}: {mbps} {believed:?}", wires.len());
        if let Load::Stream(_) = load {
            let back =
                |wire: &WireId| pair.world.link(*wire, Direction::Back).stats().delivered.bytes;
            let back = pair.wires.iter().map(back).sum::<u64>() as f64 * 8.0 / 20e6;
            assert!(back < 0.04 * sum(&wires), "{load:?}: {back} Mbit/s of feedback");
        }
    }
}

/// A pace that forgets how late a queue is seen swings around the rate there, and 3 % of it are lost in the troughs.
#[test]
fn a_pace_over_a_short_round_trip_does_not_swing() {
    for load in [Load::Cubic(1), Load::Stream(60_000)] {
        let wires = [wire(50, 5)];
        let mut pair = pair(&wires);
        offer(&mut pair, load);
        let ids = pair.wires.clone();
        pair.world.run_until(at(4000));
        let before = bytes(&pair, &ids);
        let mut queues = Vec::new();
        for millis in 4000..8000 {
            pair.world.run_until(at(millis));
            let link = pair.world.link(ids[0], Direction::There);
            queues.push(link.queueing(pair.world.now()).as_secs_f64() * 1e3);
        }
        let share = (bytes(&pair, &ids) - before) as f64 * 8.0 / 4e6 / 50.0;
        assert!(share >= 0.99, "{load:?}: {share:.3}");
        let empty = queues.iter().filter(|queue| **queue < 0.1).count() as f64 / 4000.0;
        assert!(empty < 0.02, "{load:?}: empty for {empty:.3} of the time");
    }
}

/// A route that becomes longer looks like a queue that does not fall. Neither a path that is full nor one that is not, alone or beside
/// another one, may be sent on by less for long.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_route_that_becomes_longer_is_learnt_and_the_rate_stays() {
    for by in [2, 5, 30] {
        for (wires, kbps, least) in [
            (vec![wire(20, 10)], 60_000, 0.9),
            (vec![wire(20, 10)], 18_000, 0.9),
            (vec![wire(20, 10)], 10_000, 0.9),
            (vec![wire(20, 10); 2], 60_000, 0.9),
            // The other one carries what it can, so this one need not carry all that it could.
            (vec![wire(20, 10); 2], 24_000, 0.6),
        ] {
            let mut pair = pair(&wires);
            // First the rates are found.
            stream_between(&mut pair, 60_000, 7001, [1000, 4000]);
            stream_between(&mut pair, kbps, 7002, [4000, 1_000_000]);
            pair.world.run_until(at(6000));
            let (ids, first) = (pair.wires.clone(), pair.wires[0]);
            pair.world.set_profile(first, Direction::There, wire(20, 10 + by));
            let mbps = carried(&mut pair, &ids, 7, 16);
            let (rate, _, queue) = believed(&pair, 1)[0];
            let stands = pair.world.link(first, Direction::There).queueing(pair.world.now());
            let off = queue - stands.as_secs_f64() * 1e3;
            let case = format!(
                "{by} ms longer, {} links, {kbps} kbit/s: {mbps:.1} carried, rate {rate:.1}, {off:.1} ms too much",
                wires.len()
            );
            // 2 ms look like the other path's queue, and are learnt with the next least delay, after 5 to 10 s.
            let share = if by == 2 && wires.len() == 2 { 0.94 } else { 0.95 };
            let offered = (0.99 * kbps as f64 / 1e3).min(share * sum(&wires));
            assert!(mbps >= offered && rate >= least * 20.0 && off < 1.5, "{case}");
        }
    }
}

/// While an application offers little the rate that is known is an old one.
#[test]
fn what_an_application_hides_is_found_when_it_is_needed() {
    let mut pair = pair(&[wire(10, 10), wire(10, 40)]);
    stream_between(&mut pair, 30_000, 7001, [1000, 4000]);
    pair.world.run_until(at(4000));
    let ids = pair.wires.clone();
    for id in &ids {
        pair.world.set_profile(*id, Direction::There, wire(40, 10));
    }
    stream_between(&mut pair, 8000, 7002, [4000, 12_000]);
    stream_between(&mut pair, 70_000, 7003, [12_000, 60_000]);
    let mbps = carried(&mut pair, &ids, 13, 15);
    assert!(mbps >= 0.97 * 70.0 * 1432.0 / 1400.0, "{mbps}, {:?}", believed(&pair, 2));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_long_round_trip_does_not_hide_for_long_that_a_link_has_become_fast() {
    let mut pair = Pair::new(1, &plan(&[wire(1, 300)])).expect("a plan the core accepts");
    pair.world.run_until(at(3000));
    stream_between(&mut pair, 60_000, 7001, [3000, 200_000]);
    pair.world.run_until(at(20_000));
    let id = pair.wires[0];
    pair.world.set_profile(id, Direction::There, wire(20, 300));
    let reached = (20_000..100_000).step_by(200).find(|millis| {
        pair.world.run_until(at(*millis));
        believed(&pair, 1)[0].0 >= 0.9 * 20.0
    });
    // 1.25 times as much every eight round trips would take 64 s.
    assert!(reached.is_some_and(|millis| millis <= 50_000), "{reached:?}");
}

/// Steps of a link alone, with what is reached of what one would like: the rate within a tenth after a second, the queue at most
/// what is sent too much until it can be known, and shorter two round trips later.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_rate_that_steps_is_found_within_a_second() {
    for load in [Load::Cubic(16), Load::Bbr, Load::Stream(200_000)] {
        for [from, to] in [[40, 20], [20, 40], [80, 20], [20, 80]] {
            let got = change(load, [from, to], &[]);
            let case = format!("{load:?} {from} to {to}: {got:?}");
            assert!((0.9..=1.1).contains(&got.believed), "{case}");
            assert!(got.carried >= 0.86, "{case}");
            let longer = (from as f64 / to as f64 - 1.0).max(0.0);
            assert!(got.queue[0] <= longer * 40.0 + 20.0, "{case}");
            // 20 ms would be better.
            assert!(got.queue[1] <= 105.0, "{case}");
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_link_that_swings_is_followed() {
    for (load, alone, beside) in
        [(Load::Cubic(1), 0.88, 0.88), (Load::Cubic(16), 0.9, 0.9), (Load::Bbr, 0.82, 0.85)]
    {
        let got = [swing(load, [20, 80], &[]), swing(load, [20, 80], &[wire(50, 10)])];
        assert!(got[0] >= alone && got[1] >= beside, "{load:?}: {got:?}");
    }
}

/// The same where delays vary, and the queue is told from means.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_route_that_becomes_longer_is_learnt_where_delays_vary() {
    for wires in ["40/17.5/0/4,100/25/0/12.5", "20/25/0/10,15/30/0/12.5"] {
        for by in [5, 20] {
            let wires = links_of(wires);
            let mut pair = pair(&wires);
            let kbps = 1.5e3 * sum(&wires);
            stream_between(&mut pair, kbps as u64, 7001, [1000, 1_000_000]);
            pair.world.run_until(at(6000));
            let (ids, first) = (pair.wires.clone(), pair.wires[0]);
            let delay = wires[0].delay + Duration::from_millis(by);
            let longer = Profile { delay, ..wires[0].clone() };
            pair.world.set_profile(first, Direction::There, longer);
            let share = carried(&mut pair, &ids, 7, 16) / sum(&wires);
            assert!(
                share >= 0.9,
                "{by} ms longer, {wires:?}: {share:.3}, {:?}",
                believed(&pair, 2)
            );
        }
    }
}

/// A longer route and a loss look like somebody who fills a queue, but where losses are usual they say nothing.
#[test]
fn a_longer_route_that_loses_at_random_has_no_rival() {
    for seed in 1..4 {
        let wires = [lossy(wire(20, 20), 0.03)];
        let mut pair = Pair::new(seed, &plan(&wires)).expect("a plan the core accepts");
        stream_between(&mut pair, 30_000, 7001, [1000, 1_000_000]);
        pair.world.run_until(at(6000));
        let first = pair.wires[0];
        pair.world.set_profile(first, Direction::There, lossy(wire(20, 35), 0.03));
        for millis in (6000..16_000).step_by(50) {
            pair.world.run_until(at(millis));
            let standing = pair.connection(pair.left).standing(pair.world.now(), PathId(0));
            let stage = standing.expect("it is paced").stage;
            assert_ne!(stage, RateStage::Competing, "seed {seed}, after {millis} ms");
        }
        assert!(believed(&pair, 1)[0].0 > 17.0, "seed {seed}: {:?}", believed(&pair, 1));
    }
}
