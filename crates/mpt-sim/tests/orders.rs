//! One transfer over two links in plain and in extended framing: the order by evidence against the classic one.

use std::time::Duration;

use mpt_proto::{FramingConfig, Instant, ReorderConfig};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn path(mbps: u64, delay: u64, loss: f64) -> PathPlan {
    let profile = Profile {
        rate: Some(mbps * 1_000_000),
        delay: Duration::from_millis(delay),
        loss: Loss::Random(loss),
        ..Profile::default()
    };
    PathPlan::symmetric(profile).with_weight(mbps as u16)
}

/// The bytes that a transfer delivers in five seconds, after two for its start.
fn goodput(seed: u64, framing: FramingConfig, paths: &[PathPlan]) -> f64 {
    let mut plan = PairPlan::new(paths.to_vec());
    plan.connection.framing = framing;
    let evidence = framing != FramingConfig::Plain;
    plan.connection.reorder = ReorderConfig { evidence, ..ReorderConfig::default() };
    let mut pair = Pair::new(seed, &plan).expect("a good plan");
    let sender = Sender::new(Pair::flow(false, 5001), 1400, at(1000), at(8000));
    let bulk = pair.world.add_bulk(pair.left, pair.right, sender);
    pair.world.run_until(at(3000));
    let before = pair.world.bulk(bulk).1.stats().bytes;
    pair.world.run_until(at(8000));
    (pair.world.bulk(bulk).1.stats().bytes - before) as f64
}

/// How much is delivered, over what plain framing delivers. The longer header alone costs 1.1 %.
fn ratio(seeds: u64, paths: &[PathPlan]) -> f64 {
    let sum = |framing| (0..seeds).map(|seed| goodput(seed, framing, paths)).sum::<f64>();
    sum(FramingConfig::Extended) / sum(FramingConfig::Plain)
}

#[test]
fn links_of_unequal_delay_carry_as_much() {
    for slower in [10, 30, 60] {
        let ratio = ratio(1, &[path(20, 10, 0.0), path(10, slower, 0.0)]);
        assert!(ratio > 0.975, "{slower} ms: {ratio:.3}");
    }
}

/// What TCP delivers depends on which packets are lost, so this is a mean over several runs.
#[test]
fn a_link_that_loses_packets_carries_as_much() {
    let ratio = ratio(8, &[path(20, 10, 0.0), path(10, 30, 0.01)]);
    assert!(ratio > 0.9, "{ratio:.3}");
}

/// What a transfer with BBR delivers in three seconds where a tenth of its packets takes 50 ms longer.
fn with_bbr(equalise: bool) -> u64 {
    let mut plan = PairPlan::new(vec![path(100, 1, 0.0), path(10, 51, 0.0)]);
    plan.connection.framing = FramingConfig::Extended;
    plan.connection.equalise = equalise;
    let mut pair = Pair::new(1, &plan).expect("a good plan");
    let sender = Sender::new(Pair::flow(false, 5001), 1400, at(1000), at(4000)).with_bbr();
    let bulk = pair.world.add_bulk(pair.left, pair.right, sender);
    pair.world.run_until(at(4000));
    pair.world.bulk(bulk).1.stats().bytes
}

/// The first packets come by the fast path. If they came back early, BBR would take their round trip for that of all.
#[test]
fn a_transfer_begins_with_the_round_trip_that_it_will_have() {
    let [without, with] = [false, true].map(with_bbr);
    assert!(with * 2 > without * 3, "{with} bytes in place of {without}");
}
