//! The order against a definition of it: when each packet is to be delivered follows from all arrivals at once, with
//! no state. The paths keep their order here.

use proptest::prelude::*;

use super::*;

/// A packet as it is sent.
#[derive(Clone, Debug)]
struct Sent {
    path: u8,
    flow: usize,
    lost: bool,
    /// Whether its predecessor is not told.
    untold: bool,
    /// Whether a beacon follows on its path at once.
    beacon: bool,
    /// Microseconds after the one before.
    gap: u64,
}

/// Something arrives by a path: a packet, or a beacon that covers one.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    path: u8,
    number: usize,
    beacon: bool,
}

const FLOWS: usize = 4;
const DELAYS: [Duration; 3] = [ms(5), ms(17), ms(50)];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What arrives, in that order.
fn arrivals(sent: &[Sent]) -> Vec<Arrival> {
    let mut now = Instant::ZERO;
    let mut arrivals = Vec::new();
    for (number, packet) in sent.iter().enumerate() {
        now += Duration::from_micros(packet.gap);
        let path = packet.path;
        let arrival = Arrival { at: now + DELAYS[usize::from(path)], path, number, beacon: false };
        if !packet.lost {
            arrivals.push(arrival);
        }
        if packet.beacon {
            arrivals.push(Arrival { beacon: true, ..arrival });
        }
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

fn wait_of(path: u8) -> Duration {
    (DELAYS[2] - DELAYS[usize::from(path)]).max(ms(1))
}

/// The predecessor of each packet in its flow.
fn predecessors(sent: &[Sent]) -> Vec<Option<usize>> {
    let mut last = [None; FLOWS];
    sent.iter().enumerate().map(|(n, packet)| last[packet.flow].replace(n)).collect()
}

/// When each number is given up, if it has not come.
fn given_up(count: usize, arrivals: &[Arrival]) -> Vec<Instant> {
    let never = Instant::from_nanos(u64::MAX);
    let later = |number| move |a: &&Arrival| a.number > number || (a.beacon && a.number == number);
    (0..count)
        .map(|number| {
            let shows = || arrivals.iter().filter(later(number));
            let passed = (0..3_u8).map(|path| {
                shows().filter(|a| a.path == path).map(|a| a.at).min().unwrap_or(never)
            });
            let overdue = shows().map(|a| a.at + wait_of(a.path)).min().unwrap_or(never);
            passed.max().unwrap_or(never).min(overdue)
        })
        .collect()
}

/// When each packet that arrives is to be delivered.
fn expected(sent: &[Sent], arrivals: &[Arrival]) -> Vec<Option<Instant>> {
    let given_up = given_up(sent.len(), arrivals);
    let mut arrived: Vec<Option<Instant>> = vec![None; sent.len()];
    arrivals.iter().filter(|a| !a.beacon).for_each(|a| arrived[a.number] = Some(a.at));
    let mut delivered: Vec<Option<Instant>> = Vec::new();
    let mut resolved = Vec::new();
    let mut all_before = Instant::ZERO;
    for (number, predecessor) in predecessors(sent).into_iter().enumerate() {
        let follows = match predecessor {
            _ if sent[number].untold => all_before,
            Some(predecessor) => all_before.min(resolved[predecessor]),
            None => Instant::ZERO,
        };
        let given_up = given_up[number];
        let (at, is_resolved) = match arrived[number] {
            None => (None, given_up),
            Some(late) if late > given_up => (Some(late), given_up),
            Some(in_time) => (Some(in_time.max(follows)), in_time.max(follows)),
        };
        delivered.push(at);
        resolved.push(is_resolved);
        all_before = all_before.max(is_resolved);
    }
    delivered
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let lost = prop::bool::weighted(0.1);
    let (untold, beacon) = (prop::bool::weighted(0.05), prop::bool::weighted(0.05));
    let packet = (0..3_u8, 0..FLOWS, lost, untold, beacon, 0..3000_u64);
    let packet = packet.prop_map(|(path, flow, lost, untold, beacon, gap)| Sent {
        path,
        flow,
        lost,
        untold,
        beacon,
        gap,
    });
    prop::collection::vec(packet, 1..300)
}

proptest! {
    #[test]
    fn each_packet_is_delivered_when_the_definition_says(sent in sent(), wraps: bool) {
        let start = if wraps { u32::MAX - 100 } else { 0 };
        let mut bench = Bench::new(3, WINDOW).at(start);
        (0..3).for_each(|path| bench.order.set_wait(PathId(path), wait_of(path), Duration::ZERO));
        let seq = |number: usize| start.wrapping_add(number as u32);
        let (arrivals, predecessors) = (arrivals(&sent), predecessors(&sent));
        for arrival in &arrivals {
            bench.run_to(arrival.at);
            bench.sink.now = bench.now;
            let Arrival { path, number, beacon, .. } = *arrival;
            if beacon {
                bench.order.covered(bench.now, PathId(path), Seq::new(seq(number)), &mut bench.sink);
                continue;
            }
            let after = match predecessors[number] {
                _ if sent[number].untold => After::Far,
                Some(predecessor) => after(seq(predecessor)),
                None => After::First,
            };
            prop_assert_eq!(bench.receive(path, seq(number), after), Ok(Accepted::Fits));
        }
        bench.run_to(bench.now + ms(250));
        let mut delivered = vec![None; sent.len()];
        for (seq, at) in &bench.sink.delivered {
            let number = seq.wrapping_sub(start) as usize;
            prop_assert!(delivered[number].replace(*at).is_none(), "{number} twice");
        }
        prop_assert_eq!(delivered, expected(&sent, &arrivals));
        let stats = bench.order.stats();
        prop_assert_eq!(stats.held, 0);
    }
}
