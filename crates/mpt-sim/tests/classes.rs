//! What is done about loss depends on what a flow needs.

use std::time::Duration;

use crate::calls::add_calls;
use crate::links::{at, bytes, plan, stream_between, wire};
use mpt_proto::{
    ClassConfig, ClassStats, Drop, FramingConfig, PortRanges, RepairMode, RepairStats, Selector,
    Why,
};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::StreamId;
use mpt_sim::world::pair::Pair;

/// A call: 100 packets of 160 bytes per second.
fn call(pair: &mut Pair, port: u16) -> StreamId {
    let (start, end) = (at(2000), at(32_000));
    let source = Source::new(Pair::flow(false, port), 160, Duration::from_millis(10), start, end);
    pair.world.add_stream(pair.left, pair.right, source)
}

/// Two links, both so long and so lossy.
fn pair(delay: u64, loss: f64, classes: &[ClassConfig]) -> Pair {
    let lossy = || Profile { loss: Loss::Random(loss), ..wire(50, delay) };
    let mut plan = plan(&[lossy(), lossy()]);
    plan.connection.classes = classes.to_vec();
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    pair
}

/// A class of everything.
fn class(deadline: Option<u64>, repair: RepairMode) -> ClassConfig {
    ClassConfig {
        name: "all".into(),
        selector: Selector::default(),
        dscp: 0,
        networks: Vec::new(),
        deadline: deadline.map(Duration::from_millis),
        repair,
    }
}

/// How many packets of a call are missing, or took more than this in milliseconds, of how many; and what was counted of its
/// class.
fn missing(pair: &mut Pair, port: u16, name: &str) -> (u64, u64, ClassStats) {
    let call = call(pair, port);
    pair.world.run_until(at(33_000));
    let (source, checker) = pair.world.stream(call);
    assert_eq!(checker.verdict().duplicates, 0);
    let mut stats = pair.connection(pair.left).class_stats();
    let stats = stats.find(|(class, _)| *class == name).map(|(_, stats)| stats);
    (checker.verdict().lost(source.sent()), source.sent(), stats.unwrap_or_default())
}

#[test]
fn a_call_over_long_links_takes_two_of_them_once_they_lose() {
    let mut pair = pair(60, 0.02, &[]);
    let (missing, sent, stats) = missing(&mut pair, 7001, "realtime");
    // It is known to be a call after two seconds; both links lose one packet in 2500.
    assert!(missing * 500 <= sent, "{missing} of {sent}, {stats:?}");
    assert!(stats.duplicated * 10 > sent * 8, "{stats:?} of {sent}");
    let flows = pair.connection(pair.left).flows(at(33_000), Duration::from_secs(5), 8);
    assert_eq!((flows[0].class.as_str(), flows[0].why), ("realtime", Why::Steady));
    // What is late is as bad as what is lost: nothing waits for a repair but what both links have lost.
    let order = pair.connection(pair.right).stats().reorder;
    let waited: u64 = order.hold_times.counts()[6..].iter().sum();
    assert!(waited * 20 <= sent, "{waited} of {sent} waited for more than 50 ms");
}

#[test]
fn a_call_over_short_links_is_repaired_and_costs_little() {
    let mut pair = pair(10, 0.02, &[]);
    let (missing, sent, stats) = missing(&mut pair, 7001, "realtime");
    assert!(missing * 500 <= sent, "{missing} of {sent}");
    assert!(stats.duplicated == 0 && stats.repaired > 30, "{stats:?}");
}

#[test]
fn clean_links_carry_each_packet_of_a_call_once() {
    let mut pair = pair(60, 0.0, &[]);
    let (missing, _, stats) = missing(&mut pair, 7001, "realtime");
    assert_eq!((missing, stats.duplicated), (0, 0));
}

#[test]
fn what_is_configured_is_done() {
    let of = |class| missing(&mut pair(10, 0.05, &[class]), 7001, "all");
    let (gone, sent, stats) = of(class(None, RepairMode::None));
    assert!(gone * 40 > sent && stats.repaired == 0, "{gone} of {sent}, {stats:?}");
    assert_eq!(stats.given_up, stats.lost);
    let (gone, sent, stats) = of(class(None, RepairMode::Duplicate));
    assert!(
        gone * 1000 <= sent && stats.duplicated * 100 > sent * 99,
        "{gone} of {sent}, {stats:?}"
    );
    let (gone, sent, stats) = of(class(None, RepairMode::Retransmit));
    assert!(gone * 300 <= sent && stats.duplicated == 0, "{gone} of {sent}, {stats:?}");
    // No repair can come in 15 ms. What a path that is suspected for a moment has not delivered is sent again all the same.
    let (gone, sent, stats) = of(class(Some(15), RepairMode::Retransmit));
    assert!(gone * 40 > sent && stats.repaired * 50 <= gone, "{gone} of {sent}, {stats:?}");
}

/// How many bytes each link carried of a stream of a class that may not take the second, and what became of the stream.
fn restricted(kbps: u64, cut: bool) -> (Vec<u64>, u64, u64, u64) {
    let mut plan = plan(&[wire(20, 10), wire(20, 20)]);
    plan.connection.classes = vec![class(None, RepairMode::Auto)];
    plan.paths[1].refuses = 1;
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    let before: Vec<u64> = pair.wires.iter().map(|wire| bytes(&pair, &[*wire])).collect();
    if cut {
        pair.world.cut_both(pair.wires[0], true);
        pair.world.run_until(at(6000));
    }
    let stream = stream_between(&mut pair, kbps, 7001, [6000, 16_000]);
    pair.world.run_until(at(18_000));
    let carried = pair.wires.iter().zip(before).map(|(wire, it)| bytes(&pair, &[*wire]) - it);
    let carried = carried.collect();
    let (source, checker) = pair.world.stream(stream);
    let drops = pair.connection(pair.left).stats().drops;
    let refused = drops.count(Drop::ClassPath);
    (carried, source.sent(), checker.verdict().lost(source.sent()), refused)
}

#[test]
fn a_class_takes_only_the_paths_that_it_may() {
    let (carried, sent, lost, refused) = restricted(10_000, false);
    assert_eq!((lost, refused), (0, 0), "{carried:?} of {sent}");
    // Path statuses and what shows what a path carries are of no class.
    assert!(carried[0] > 12_000_000 && carried[1] < 400_000, "{carried:?}");
    // What its paths cannot carry waits, and is dropped by the queue, beside one that has nothing to do.
    let (carried, sent, lost, refused) = restricted(30_000, false);
    assert!(lost * 4 > sent && refused == 0, "{lost} of {sent}");
    assert!(carried[0] > 22_000_000 && carried[1] < 600_000, "{carried:?}");
}

#[test]
fn a_class_whose_paths_are_all_down_is_dropped_by_name() {
    let (carried, sent, lost, refused) = restricted(10_000, true);
    assert_eq!((lost, refused), (sent, sent), "{carried:?}");
}

#[test]
fn others_do_not_wait_for_a_class_whose_paths_are_full() {
    let mut plan = plan(&[wire(20, 10), wire(20, 20)]);
    let port = Selector { ports: PortRanges::new([7001..=7001]).unwrap(), ..Selector::default() };
    plan.connection.classes = vec![ClassConfig { selector: port, ..class(None, RepairMode::Auto) }];
    plan.paths[1].refuses = 1;
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    stream_between(&mut pair, 30_000, 7001, [2000, 16_000]);
    let other = stream_between(&mut pair, 12_000, 7002, [6000, 16_000]);
    pair.world.run_until(at(18_000));
    let (source, checker) = pair.world.stream(other);
    let lost = checker.verdict().lost(source.sent());
    assert!(lost * 100 <= source.sent(), "{lost} of {}", source.sent());
}

/// So many calls of 200 bytes every 20 ms over two links of 60 ms that lose 2 %: the share of the packets that is missing, the bytes
/// that copies, parities and repairs took as a share of those that the calls took, and what became of the parities.
fn calls(seed: u64, count: u16, repair: RepairMode, sealed: bool) -> (f64, f64, RepairStats) {
    let lossy = || Profile { loss: Loss::Random(0.02), ..wire(50, 60) };
    let mut plan = plan(&[lossy(), lossy()]);
    plan.connection.classes = vec![class(Some(60), repair)];
    if sealed {
        plan.connection.framing = FramingConfig::Sealed;
    }
    let mut pair = Pair::new(seed, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    let streams = add_calls(&mut pair, count, 62_000);
    // By then it is known how much the links lose.
    pair.world.run_until(at(12_000));
    let of = |pair: &Pair| {
        let missing = streams.iter().map(|stream| {
            let (source, checker) = pair.world.stream(*stream);
            assert_eq!((checker.verdict().duplicates, checker.verdict().invalid), (0, 0));
            [source.sent(), checker.verdict().received]
        });
        let [sent, received] =
            missing.fold([0, 0], |[sent, received], [more, come]| [sent + more, received + come]);
        let stats = pair.connection(pair.left).repair_stats();
        let copies = [stats.repaired, stats.moved, stats.duplicated, stats.parity];
        let bytes: u64 = copies.iter().map(|copies| copies.bytes).sum();
        [sent, received, bytes]
    };
    let before = of(&pair);
    pair.world.run_until(at(63_000));
    let after = of(&pair);
    let [sent, received, bytes] = [0, 1, 2].map(|at| after[at] - before[at]);
    // What was on its way at the first look has arrived at the second, and nothing is at that.
    let in_flight = before[0] - before[1];
    let stats = pair.connection(pair.left).repair_stats();
    let wire_len = if sealed { 200 + 68 } else { 200 + 52 };
    let missing = (sent + in_flight).saturating_sub(received) as f64 / sent as f64;
    (missing, bytes as f64 / (sent * wire_len) as f64, stats)
}

#[test]
fn parity_brings_back_what_calls_lose_for_a_tenth_of_their_bytes() {
    for (sealed, seed) in [(false, 1), (false, 2), (true, 1)] {
        let (missing, extra, stats) = calls(seed, 100, RepairMode::Auto, sealed);
        let what = format!("seed {seed}: {missing} missing, {extra} beyond, {stats:?}");
        assert!(missing <= 0.0003, "{what}");
        assert!(extra <= 0.12, "{what}");
    }
    // Without a remedy, and sent again, which takes too long for calls but costs little.
    let (missing, extra, _) = calls(1, 100, RepairMode::None, false);
    // What was lost in the first seconds is among it.
    assert!((0.018..0.026).contains(&missing) && extra < 0.001, "{missing}, {extra}");
}

#[test]
fn what_takes_two_paths_out_of_suspicion_leaves_enough_for_repairs() {
    let lossy = |delay| Profile { loss: Loss::Random(0.02), ..wire(40, delay) };
    let mut pair = Pair::new(1, &plan(&[lossy(15), lossy(10)])).expect("a plan the core accepts");
    let streams = add_calls(&mut pair, 100, 32_000);
    // The path is left and back soon, and suspected from then on.
    pair.world.run_until(at(6000));
    pair.world.cut_both(pair.wires[1], true);
    pair.world.run_until(at(6500));
    pair.world.cut_both(pair.wires[1], false);
    pair.world.run_until(at(33_000));
    let stats = pair.connection(pair.left).repair_stats();
    let [sent, lost] = streams.iter().fold([0, 0], |[sent, lost], stream| {
        let (source, checker) = pair.world.stream(*stream);
        [sent + source.sent(), lost + checker.verdict().lost(source.sent())]
    });
    assert!(stats.leaves > 0 && stats.duplicated.refused > 0, "{stats:?}");
    assert_eq!(stats.repaired.refused, 0, "{stats:?}");
    assert!(lost * 3000 <= sent, "{lost} of {sent}, {stats:?}");
}
