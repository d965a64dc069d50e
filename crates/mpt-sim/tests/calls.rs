//! What callers hear when a link falls silent. A telephone plays a packet 60 ms later than packets commonly arrive; what is not
//! there by then is not heard.

use std::time::Duration;

use crate::links::{at, links_of, of_each, plan};
use mpt_proto::RepairStats;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::packet::Flow;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::Pair;
use mpt_sim::world::{Direction, HostId, StreamId};

/// How much later than commonly a packet may come and still be played.
const PLAYOUT: Duration = Duration::from_millis(60);

const BOTH: &[Direction] = &[Direction::There, Direction::Back];

/// So many streams of 200 bytes every 20 ms, evenly spread over these 20 ms, from left to right until then in milliseconds.
pub(crate) fn add_calls(pair: &mut Pair, count: u16, end: u64) -> Vec<StreamId> {
    let ends = [pair.left, pair.right];
    (0..count)
        .map(|call| add_call(pair, ends, Pair::flow(false, 7001 + call), [call, count], end))
        .collect()
}

/// One of so many.
fn add_call(
    pair: &mut Pair,
    [from, to]: [HostId; 2],
    flow: Flow,
    [call, count]: [u16; 2],
    end: u64,
) -> StreamId {
    let interval = Duration::from_millis(20);
    let start = at(2000) + interval * u32::from(call) / u32::from(count);
    let source = Source::new(flow, 200, interval, start, at(end));
    pair.world.add_stream(from, to, source)
}

/// So many calls, both ways.
fn calls(seed: u64, wires: &[Profile], count: u16, end: u64) -> (Pair, Vec<StreamId>) {
    let mut pair = Pair::new(seed, &plan(wires)).expect("a valid plan");
    let (left, right) = (pair.left, pair.right);
    let mut streams = add_calls(&mut pair, count, end);
    for call in 0..count {
        let back = Pair::flow(false, 7001 + call).reversed();
        streams.push(add_call(&mut pair, [right, left], back, [call, count], end));
    }
    (pair, streams)
}

/// What became of calls when a link fell silent.
#[derive(Debug)]
struct Heard {
    /// Of each way of each call, how many packets came too late to be played.
    late: Vec<usize>,
    lost: u64,
    stats: RepairStats,
}

/// A link falls silent in the seventh second.
fn cut(seed: u64, wires: &[Profile], count: u16, dead: &[Direction], which: usize) -> Heard {
    let (mut pair, streams) = calls(seed, wires, count, 8000);
    pair.world.run_until(at(6000 + 7 * seed));
    dead.iter().for_each(|direction| pair.world.cut(pair.wires[which], *direction, true));
    pair.world.run_until(at(9000));
    let mut lost = 0;
    let late = streams.iter().map(|stream| {
        let (source, checker) = pair.world.stream(*stream);
        lost += checker.verdict().lost(source.sent());
        let mut took: Vec<_> = (0..source.sent()).filter_map(|n| checker.took(n)).collect();
        took.sort_unstable();
        let played = took[took.len() / 2] + PLAYOUT;
        took.iter().filter(|it| **it > played).count()
    });
    let late = late.collect();
    Heard { late, lost, stats: pair.connection(pair.left).repair_stats() }
}

/// A hole of 80 ms takes three packets of a call; one of them is heard as a click. Where both links lose packets at random, the same call
/// may miss another one.
#[test]
fn of_no_call_comes_more_than_one_packet_too_late_when_a_link_falls_silent() {
    let cells = ["40/15/0,40/10/0", "20/10/0,20/15/0", "40/15/0.005,40/10/0.005"].map(links_of);
    for (wires, which) in cells.iter().zip([1, 0, 1]) {
        for dead in [BOTH, &[Direction::There], &[Direction::Back]] {
            let heard = of_each([1, 2], |seed| cut(*seed, wires, 100, dead, which));
            for heard in heard {
                let is_lossy = wires[0].loss != Profile::default().loss;
                assert!(heard.lost == 0 || is_lossy, "{heard:?}");
                let most = if is_lossy { 2 } else { 1 };
                assert!(heard.late.iter().all(|late| *late <= most), "{dead:?} {heard:?}");
                let clicks = heard.late.iter().filter(|late| **late > 1).count();
                assert!(clicks <= 1, "{clicks} of 200: {dead:?} {heard:?}");
            }
        }
    }
}

/// The share that the tunnel sends beyond a hundred calls in ten seconds, and the share of their packets that is missing.
fn extra(wires: &[Profile]) -> (f64, f64) {
    let (mut pair, streams) = calls(1, wires, 100, 18_000);
    let beyond = |pair: &Pair| {
        let beyond = pair.connection(pair.left).beyond();
        (beyond.control + beyond.copies) as f64
    };
    pair.world.run_until(at(8000));
    let before = beyond(&pair);
    pair.world.run_until(at(18_000));
    let extra = (beyond(&pair) - before) / (100.0 * 50.0 * 10.0 * 252.0);
    pair.world.run_until(at(19_000));
    let [sent, lost] = streams.iter().fold([0, 0], |[sent, lost], stream| {
        let (source, checker) = pair.world.stream(*stream);
        [sent + source.sent(), lost + checker.verdict().lost(source.sent())]
    });
    (extra, lost as f64 / sent as f64)
}

#[test]
fn what_looks_after_calls_costs_little() {
    let cells = ["40/15/0,40/10/0", "40/15/0.02,40/10/0.02", "50/5/0,35/35/0/5"].map(links_of);
    let [clean, lossy, unsteady] = of_each(cells, |wires| extra(wires));
    assert!(clean.0 <= 0.03 && clean.1 == 0.0, "{clean:?}");
    assert!(lossy.0 <= 0.12 && lossy.1 <= 0.0003, "{lossy:?}");
    assert!(unsteady.0 <= 0.03 && unsteady.1 == 0.0, "{unsteady:?}");
}

/// Prints how many packets of a call come too late if a link falls silent.
#[test]
#[ignore = "prints a table"]
fn table() {
    let number = |name, other| std::env::var(name).map_or(other, |it| it.parse().unwrap());
    let count = number("CALLS", 100);
    let cells = std::env::var("LINKS").unwrap_or(
        "40/15/0,40/10/0;20/10/0,20/15/0;50/5/0,35/35/0/5;10/20/0,10/60/0;40/15/0.02,40/10/0.02"
            .into(),
    );
    for cell in cells.split(';') {
        let wires = links_of(cell);
        for dead in [BOTH, &[Direction::There], &[Direction::Back]] {
            for which in [0, 1] {
                let heard = of_each([1, 2, 3, 4], |seed| cut(*seed, &wires, count, dead, which));
                let late = heard.iter().flat_map(|heard| &heard.late);
                let of = |number: usize| late.clone().filter(|late| **late == number).count();
                let lost: u64 = heard.iter().map(|heard| heard.lost).sum();
                let leaves: Vec<_> = heard.iter().map(|heard| heard.stats.leaves).collect();
                let histogram: Vec<_> = (0..8).map(of).collect();
                println!("{cell} {dead:?} {which}: {histogram:?} lost {lost} leaves {leaves:?}");
            }
        }
    }
}
