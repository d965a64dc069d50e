//! Which packet takes which path: tiers of priority and mapping by flows, in whole worlds.

use std::time::Duration;

use mpt_proto::{Instant, PathId, PathState, ReorderConfig, SchedulerConfig};
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{HostId, StreamId};

const LEN: usize = 100;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn path(delay_ms: u64) -> PathPlan {
    PathPlan::symmetric(Profile {
        rate: Some(1_000_000_000),
        delay: Duration::from_millis(delay_ms),
        ..Profile::default()
    })
}

/// A flow with its own port from left to right, a packet every millisecond.
fn stream(pair: &mut Pair, port: u16, start: u64, end: u64) -> StreamId {
    let (flow, interval) = (Pair::flow(port.is_multiple_of(2), port), Duration::from_millis(1));
    let source = Source::new(flow, LEN, interval, at(start), at(end));
    pair.world.add_stream(pair.left, pair.right, source)
}

/// How many packets each of the left host's paths has sent, keepalives apart.
fn sent(pair: &Pair) -> Vec<u64> {
    let connection = pair.connection(pair.left);
    connection.paths().map(|path| connection.path(path).stats.sent.packets).collect()
}

/// What was sent on each path while time passed up to `end`.
fn sent_until(pair: &mut Pair, end: u64) -> Vec<u64> {
    let before = sent(pair);
    pair.world.run_until(at(end));
    sent(pair).iter().zip(before).map(|(after, before)| after - before).collect()
}

fn states(pair: &Pair, host: HostId) -> Vec<PathState> {
    let connection = pair.connection(host);
    connection.paths().map(|path: PathId| connection.path(path).state).collect()
}

#[test]
fn a_standby_tier_carries_only_while_the_better_tier_is_down() {
    let plans = vec![path(5), path(5), path(20).with_priority(1), path(40).with_priority(200)];
    for scheduler in [SchedulerConfig::Weighted, SchedulerConfig::Flow] {
        let mut plan = PairPlan::new(plans.clone());
        plan.connection.scheduler = scheduler;
        let mut pair = Pair::new(2, &plan).expect("a plan the core accepts");
        let streams: Vec<_> =
            (0..12).map(|port| stream(&mut pair, 7000 + port, 1001, 26_001)).collect();

        let tiers = |sent: &[u64]| [sent[0] + sent[1], sent[2], sent[3]];
        let both = sent_until(&mut pair, 4000);
        assert_eq!(states(&pair, pair.left), [PathState::Up; 4], "who stands by is up");
        assert!(both[0] > 10_000 && both[1] > 10_000, "{both:?}");
        assert_eq!(tiers(&both), [36_000, 0, 0], "{scheduler:?}");

        pair.world.cut_both(pair.wires[0], true);
        sent_until(&mut pair, 7000);
        assert_eq!(sent_until(&mut pair, 8000), [0, 12_000, 0, 0], "one of the best is enough");
        pair.world.cut_both(pair.wires[1], true);
        sent_until(&mut pair, 11_000);
        assert_eq!(sent_until(&mut pair, 12_000), [0, 0, 12_000, 0], "{scheduler:?}");
        pair.world.cut_both(pair.wires[2], true);
        sent_until(&mut pair, 15_000);
        assert_eq!(sent_until(&mut pair, 16_000), [0, 0, 0, 12_000], "{scheduler:?}");

        // Back from the best to the last; each takes over from all that are worse.
        pair.world.cut_both(pair.wires[1], false);
        sent_until(&mut pair, 18_000);
        assert_eq!(sent_until(&mut pair, 19_000), [0, 12_000, 0, 0], "{scheduler:?}");
        pair.world.cut_both(pair.wires[2], false);
        pair.world.cut_both(pair.wires[0], false);
        sent_until(&mut pair, 21_000);
        let again = sent_until(&mut pair, 24_000);
        assert_eq!(tiers(&again), [36_000, 0, 0], "{scheduler:?}");
        if scheduler == SchedulerConfig::Flow {
            assert_eq!(again, both, "every flow is back where it was");
        }

        pair.world.run_until(at(27_000));
        for stream in streams {
            let (source, checker) = pair.world.stream(stream);
            let verdict = checker.verdict();
            // Three silent failures, each found after the dead time at the latest.
            assert!(verdict.lost(source.sent()) < 3 * 2500, "{verdict:?}");
            assert!(verdict.longest_gap < Duration::from_millis(2500), "{verdict:?}");
            assert_eq!((verdict.duplicates, verdict.invalid), (0, 0));
        }
    }
}

#[test]
fn flows_stay_in_order_over_paths_of_different_delay_without_a_reorder_buffer() {
    // Not a multiple of the paths, or taking turns would map flows as well.
    const FLOWS: u16 = 39;
    let out_of_order = |scheduler| {
        let mut plan = PairPlan::new(vec![path(5), path(55)]);
        plan.connection.scheduler = scheduler;
        plan.connection.reorder = ReorderConfig { window: 0, ..ReorderConfig::default() };
        let mut pair = Pair::new(3, &plan).expect("a plan the core accepts");
        let streams: Vec<_> =
            (0..FLOWS).map(|port| stream(&mut pair, 7000 + port, 1000, 2000)).collect();
        pair.world.run_until(at(4000));
        let shares = sent(&pair);
        assert!(shares.iter().all(|&packets| packets > 10_000), "both carry: {shares:?}");
        let verdicts = streams.iter().map(|&stream| *pair.world.stream(stream).1.verdict());
        let verdicts: Vec<_> = verdicts.collect();
        assert!(verdicts.iter().all(|verdict| verdict.lost(1000) == 0));
        verdicts.iter().filter(|verdict| !verdict.is_flawless(1000)).count()
    };
    assert_eq!(out_of_order(SchedulerConfig::Flow), 0);
    assert_eq!(
        out_of_order(SchedulerConfig::Weighted),
        usize::from(FLOWS),
        "packet by packet none is"
    );
}
