//! What an idle session takes of memory, by what it says and by what the allocator gets back when it is removed.

use std::alloc::System;
use std::time::Duration;

use mpt_proto::{
    Change, ConnectionId, FramingConfig, Instant, ReceiveHalf, ReorderConfig, SchedulerConfig,
    TransmitHalf,
};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::packet::Flow;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What an idle session may take: there are ten thousand on a server.
const IDLE: usize = 16 << 10;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Two wires of 10 and 30 ms and a server that learns its client's paths, with the settings that are shipped.
fn plan(framing: FramingConfig, loss: Loss) -> PairPlan {
    let wire = |delay| {
        PathPlan::symmetric(Profile {
            rate: Some(50_000_000),
            delay: Duration::from_millis(delay),
            loss,
            ..Profile::default()
        })
    };
    let mut plan = PairPlan::new(vec![wire(10), wire(30)]);
    plan.server_learns = true;
    plan.connection.framing = framing;
    plan.connection.scheduler = SchedulerConfig::Earliest;
    plan.connection.reorder = ReorderConfig::by_evidence();
    plan
}

/// Streams both ways for 3 s.
fn send_streams(pair: &mut Pair, mbps: u64, start: u64) {
    let there = Pair::flow(false, 7000 + start as u16);
    let back = Flow { source: there.destination, destination: there.source, port: there.port };
    let interval = Source::interval_for(1200, mbps * 1_000_000);
    for (from, to, flow) in [(pair.left, pair.right, there), (pair.right, pair.left, back)] {
        let source = Source::new(flow, 1200, interval, at(start), at(start + 3000));
        pair.world.add_stream(from, to, source);
    }
}

fn memory(pair: &Pair) -> [usize; 2] {
    [pair.left, pair.right].map(|host| pair.connection(host).memory())
}

/// Bytes that the allocator gets back when the connection of the right host is removed.
fn given_back(pair: &mut Pair) -> usize {
    let region = Region::new(ALLOCATOR);
    let connection = ConnectionId(0);
    pair.world.change(pair.right, &Change::RemoveConnection { connection });
    let end = pair.world.now() + Duration::from_millis(5);
    pair.world.run_until(end);
    let change = region.change();
    change.bytes_deallocated.saturating_sub(change.bytes_allocated)
}

/// One test, because the allocator counts what all threads of the process take.
#[test]
fn an_idle_session_takes_at_most_16_kilobytes_before_and_after_bulk_with_gaps() {
    for framing in [FramingConfig::Extended, FramingConfig::Sealed] {
        // At 70 Mbit/s packets are displaced by up to a thousand others.
        for mbps in [20, 70] {
            let idle = idle_after_streams(framing, mbps);
            println!("{framing:?}, {mbps} Mbit/s: {idle:?}");
            for bytes in idle.before.iter().chain(&idle.after).chain(&idle.long_after) {
                assert!(*bytes <= IDLE, "{framing:?}, {mbps} Mbit/s: {idle:?}");
            }
            assert!(idle.between.iter().all(|bytes| *bytes > 4 * IDLE), "{framing:?} {idle:?}");
            // The halves themselves stay where they are, for the next connection.
            let halves = size_of::<TransmitHalf>() + size_of::<ReceiveHalf>();
            let (said, measured) = (idle.last, idle.given_back + halves);
            let differ = said.abs_diff(measured);
            assert!(differ <= said / 16, "{framing:?}: {said}, {measured}");
        }
    }
}

/// Bytes that the connections of both hosts say that they take.
#[derive(Debug)]
struct Idle {
    /// Before any packet was sent.
    before: [usize; 2],
    /// While packets are sent.
    between: [usize; 2],
    /// After two transfers.
    after: [usize; 2],
    /// At the most in the minutes after, in which keepalives were lost and keys replaced.
    long_after: [usize; 2],
    /// That of the right one at last, and what the allocator gets of it.
    last: usize,
    given_back: usize,
}

fn idle_after_streams(framing: FramingConfig, mbps: u64) -> Idle {
    let plan = plan(framing, Loss::Random(0.02));
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(10_000));
    assert!(pair.connection(pair.right).has_session());
    let before = memory(&pair);
    let mut between = before;
    for start in [11_000, 30_000] {
        send_streams(&mut pair, mbps, start);
        pair.world.run_until(at(start + 3000));
        between = memory(&pair);
        pair.world.run_until(at(start + 15_000));
    }
    let after = memory(&pair);
    let mut long_after = after;
    for second in 46..400 {
        pair.world.run_until(at(1000 * second));
        for (most, bytes) in long_after.iter_mut().zip(memory(&pair)) {
            *most = bytes.max(*most);
        }
    }
    let last = memory(&pair)[1];
    Idle { before, between, after, long_after, last, given_back: given_back(&mut pair) }
}
