//! Paths chosen by earliest arrival: what is measured of them, and what a flow gets.

use std::time::Duration;

use mpt_proto::{FramingConfig, Instant, Late, PathId, ReorderConfig, SchedulerConfig};
use mpt_sim::link::Link;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{BulkId, Direction, StreamId, WireId};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A link of so many Mbit/s with a delay in milliseconds, and a queue of 50 ms.
fn wire(mbps: u64, delay: u64) -> Profile {
    let rate = mbps * 1_000_000;
    Profile {
        rate: Some(rate),
        delay: Duration::from_millis(delay),
        queue: Some((rate / 8 / 20).max(64_000)),
        ..Profile::default()
    }
}

fn pair(wires: &[Profile]) -> Pair {
    let mut plan = PairPlan::new(wires.iter().cloned().map(PathPlan::symmetric).collect());
    plan.connection.framing = FramingConfig::Extended;
    plan.connection.scheduler = SchedulerConfig::Earliest;
    plan.connection.reorder =
        ReorderConfig { evidence: true, late: Late::Deliver, ..ReorderConfig::default() };
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    pair
}

fn bulk(pair: &mut Pair) -> BulkId {
    let sender = Sender::new(Pair::flow(false, 5001), 1380, at(1000), at(1_000_000));
    pair.world.add_bulk(pair.left, pair.right, sender)
}

/// A stream of so many Mbit/s that yields to nothing.
fn stream(pair: &mut Pair, mbps: u64) -> StreamId {
    let interval = Source::interval_for(1400, mbps * 1_000_000);
    let source = Source::new(Pair::flow(false, 7001), 1400, interval, at(1000), at(1_000_000));
    pair.world.add_stream(pair.left, pair.right, source)
}

/// Mbit/s that the links carried in these seconds together.
fn carried(pair: &mut Pair, wires: &[WireId], from: u64, to: u64) -> f64 {
    let bytes = |pair: &Pair| -> u64 {
        let link = |&wire| -> &Link { pair.world.link(wire, Direction::There) };
        wires.iter().map(|wire| link(wire).stats().delivered.bytes).sum()
    };
    pair.world.run_until(at(from * 1000));
    let before = bytes(pair);
    pair.world.run_until(at(to * 1000));
    (bytes(pair) - before) as f64 * 8.0 / 1e6 / (to - from) as f64
}

/// What is believed of each path: Mbit/s, pace, and milliseconds in queues.
fn believed(pair: &Pair, paths: usize) -> Vec<(f64, f64, f64)> {
    let connection = pair.connection(pair.left);
    let quality = |path| connection.transmit_quality(pair.world.now(), PathId(path as u8));
    (0..paths)
        .filter_map(quality)
        .map(|quality| {
            let mbps = |rate: Option<u64>| rate.map_or(0.0, |rate| rate as f64 * 8.0 / 1e6);
            (mbps(quality.capacity), mbps(quality.pace), quality.queue.as_secs_f64() * 1e3)
        })
        .collect()
}

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
