//! What a sender says of why its packets went where they went.

use std::time::Duration;

use crate::links::{links_of, plan};
use mpt_proto::{
    Finding, FramingConfig, Instant, PathId, PathStanding, RateStage, ReorderConfig,
    SchedulerConfig,
};
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::Direction;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};

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

fn new(wires: &[Profile]) -> Pair {
    let mut plan = PairPlan::new(wires.iter().cloned().map(PathPlan::symmetric).collect());
    plan.connection.framing = FramingConfig::Extended;
    plan.connection.scheduler = SchedulerConfig::Earliest;
    plan.connection.reorder = ReorderConfig::by_evidence();
    Pair::new(1, &plan).expect("a plan the core accepts")
}

fn pair(wires: &[Profile]) -> Pair {
    let mut pair = new(wires);
    pair.world.run_until(at(1000));
    pair
}

fn bulk(pair: &mut Pair) {
    let sender = Sender::new(Pair::flow(false, 5001), 1380, at(1000), at(1_000_000));
    pair.world.add_bulk(pair.left, pair.right, sender);
}

/// A stream of so many bits per second that yields to nothing.
fn stream(pair: &mut Pair, bits: u64) {
    let interval = Source::interval_for(1400, bits);
    let source = Source::new(Pair::flow(false, 7001), 1400, interval, at(1000), at(1_000_000));
    pair.world.add_stream(pair.left, pair.right, source);
}

/// What the sender says of a path.
fn standing(pair: &Pair, path: u8) -> PathStanding {
    let standing = pair.connection(pair.left).standing(pair.world.now(), PathId(path));
    standing.expect("paths are chosen by earliest arrival")
}

/// The share of samples in which a path was kept busy, between two standings.
fn busy(before: &PathStanding, after: &PathStanding) -> f64 {
    let busy = after.busy_samples.wrapping_sub(before.busy_samples);
    f64::from(busy) / f64::from(after.samples.wrapping_sub(before.samples).max(1))
}

#[test]
fn paths_of_a_new_session_are_measured_before_there_is_traffic() {
    let mut pair = new(&[wire(10, 10), wire(10, 20)]);
    pair.world.run_until(at(200));
    assert_eq!([0, 1].map(|path| standing(&pair, path).stage), [RateStage::Trains; 2]);
    pair.world.run_until(at(3000));
    assert_eq!([0, 1].map(|path| standing(&pair, path).stage), [RateStage::Open; 2]);
}

/// Trains that are overtaken in part, and single beacons that take long by chance.
#[test]
fn no_path_whose_delay_varies_seems_full_before_there_is_traffic() {
    let wires = links_of("40/17.5/0/4,100/25/0.01/12.5");
    for seed in 1..=40 {
        let mut pair = Pair::new(seed, &plan(&wires)).expect("a plan the core accepts");
        pair.world.run_until(at(1800));
        for path in 0..2 {
            assert_ne!(standing(&pair, path).stage, RateStage::Servo, "path {path}, seed {seed}");
        }
    }
}

/// Half of 300 ms is worth it where the path beside a satellite carries less, and not if nobody knows that.
#[test]
fn what_a_path_carries_whose_delay_varies_is_mostly_known_before_there_is_traffic() {
    let wires = links_of("50/300/0,20/35/0/10");
    let knows = |seed: &u64| {
        let mut pair = Pair::new(*seed, &plan(&wires)).expect("a plan the core accepts");
        pair.world.run_until(at(3000));
        let queue = pair.connection(pair.left).queue_standing().expect("it is paced");
        queue.equal_delay > Duration::from_millis(100)
    };
    let known = (1..=40).filter(knows).count();
    assert!(known >= 34, "in {known} of 40 sessions");
}

#[test]
fn full_paths_are_told_from_paths_with_too_little_to_carry() {
    let mut light = pair(&[wire(10, 10), wire(10, 20)]);
    stream(&mut light, 1_000_000);
    light.world.run_until(at(6000));
    let path = standing(&light, 0);
    assert_eq!((path.stage, path.pace, path.queue_target), (RateStage::Open, None, None));
    assert_eq!(light.connection(light.left).queue_standing(), Some(Default::default()));
    assert!(path.found.is_empty(), "{:?}", path.found);

    let mut full = pair(&[wire(10, 10), wire(10, 20)]);
    bulk(&mut full);
    full.world.run_until(at(4000));
    let before = [0, 1].map(|path| standing(&full, path));
    full.world.run_until(at(8000));
    for (path, before) in before.iter().enumerate() {
        let path = standing(&full, path as u8);
        assert!(matches!(path.stage, RateStage::Servo | RateStage::Draining), "{path:?}");
        assert!(busy(before, &path) > 0.3, "{} of {path:?}", busy(before, &path));
        let target = path.queue_target.expect("it is paced");
        assert!(target >= Duration::from_millis(2) && target < Duration::from_millis(15));
        let rate = path.rate.expect("it was measured") as f64 * 8.0 / 10e6;
        assert!((0.9..1.1).contains(&rate), "{rate}");
    }
    assert!(busy(&standing(&light, 0), &standing(&light, 0)) < f64::EPSILON);
    let skew = [0, 1].map(|path| standing(&full, path).skew.expect("feedback came"));
    assert_eq!(skew[0], Duration::ZERO);
    assert!(
        skew[1] >= Duration::from_millis(5) && skew[1] <= Duration::from_millis(15),
        "{skew:?}"
    );
    let waited = (8000..9000).any(|ms| {
        full.world.run_until(at(ms));
        let queue = full.connection(full.left).queue_standing().expect("it is paced");
        assert!(queue.committed > 0 && (queue.waiting == 0) == (queue.waiting_bytes == 0));
        queue.waiting > 0
    });
    assert!(waited, "in none of 1000 looks");
}

#[test]
fn a_path_that_takes_too_long_is_said_to() {
    let mut pair = pair(&[wire(10, 10), wire(10, 400)]);
    bulk(&mut pair);
    pair.world.run_until(at(5000));
    assert!(!standing(&pair, 0).too_slow);
    assert!(standing(&pair, 1).too_slow && standing(&pair, 1).usable, "{:?}", standing(&pair, 1));
}

#[test]
fn a_rate_that_falls_and_a_queue_that_empties_are_found_and_told() {
    let mut pair = pair(&[wire(10, 10)]);
    stream(&mut pair, 15_000_000);
    // Longer than the time after which less is sent in any case.
    pair.world.run_until(at(36_000));
    let found =
        |pair: &Pair| standing(pair, 0).found.iter().map(|found| found.what).collect::<Vec<_>>();
    let early = found(&pair);
    assert!(early.iter().any(|what| matches!(what, Finding::Full { .. })), "{early:?}");
    assert!(early.iter().any(|what| matches!(what, Finding::Drained { .. })), "{early:?}");

    let id = pair.wires[0];
    pair.world.set_profile(id, Direction::There, wire(4, 10));
    pair.world.run_until(at(38_000));
    let halved = found(&pair).into_iter().any(|what| {
        let (Finding::Rate { from, to } | Finding::Cut { from, to, .. }) = what else {
            return false;
        };
        to < from && (350_000..620_000).contains(&to)
    });
    assert!(halved, "{:?}", found(&pair));
}

#[test]
fn nothing_is_said_where_weights_decide() {
    let mut plan = PairPlan::new(vec![PathPlan::symmetric(wire(10, 10))]);
    plan.connection.framing = FramingConfig::Plain;
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    assert_eq!(pair.connection(pair.left).standing(at(1000), PathId(0)), None);
    assert_eq!(pair.connection(pair.left).queue_standing(), None);
}
