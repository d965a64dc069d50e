use std::time::Duration;

use super::store::Store;
use super::*;
use crate::hash::mix;

const LEN: usize = 1400;

struct Bench {
    queues: FlowQueues,
    store: Store,
}

impl Bench {
    fn new() -> Self {
        Self { queues: FlowQueues::default(), store: Store::default() }
    }

    fn push(&mut self, at: u64, flow: u64, len: usize) {
        self.push_as(at, flow, len, false);
    }

    fn push_as(&mut self, at: u64, flow: u64, len: usize, is_tcp: bool) {
        let place = self.store.take(len);
        self.store.fill(place, |bytes| {
            bytes.fill(flow as u8);
            false
        });
        let packet = Packet { place, len, tos: 0, volume: Volume::Usual, is_tcp };
        self.queues.push(Instant::ZERO + Duration::from_millis(at), flow, packet);
    }

    /// The flow of the packet that leaves next, unless it is dropped.
    fn pop(&mut self, at: u64) -> Option<u8> {
        loop {
            match self.queues.pop(Instant::ZERO + Duration::from_millis(at))? {
                Verdict::Send(waiting) => {
                    let flow = self.store.get(waiting.place).0[0];
                    self.store.give_back(waiting.place);
                    return Some(flow);
                }
                Verdict::Congested(waiting) | Verdict::Overload(waiting) => {
                    self.store.give_back(waiting.place)
                }
            }
        }
    }
}

#[test]
fn flows_take_turns_by_bytes() {
    let mut bench = Bench::new();
    (0..20).for_each(|_| bench.push(0, 1, LEN));
    (0..40).for_each(|_| bench.push(0, 2, LEN / 2));
    let order: Vec<u8> = std::iter::from_fn(|| bench.pop(0)).take(30).collect();
    let long = order.iter().filter(|&&flow| flow == 1).count();
    assert!((9..=11).contains(&long), "{order:?}");
    assert!(!bench.queues.is_empty());
}

#[test]
fn a_rest_forgets_flows_that_have_had_their_turn() {
    let mut bench = Bench::new();
    bench.push(0, 1, LEN);
    assert_eq!(bench.pop(0), Some(1));
    bench.queues.rest();
    assert_eq!((bench.queues.memory(), bench.pop(0)), (0, None));
    bench.push(0, 1, LEN);
    assert_eq!((bench.pop(0), bench.pop(0)), (Some(1), None));
}

#[test]
fn a_flow_that_has_nothing_waiting_goes_first() {
    let mut bench = Bench::new();
    (0..50).for_each(|_| bench.push(0, 1, LEN));
    (0..5).for_each(|_| assert_eq!(bench.pop(0), Some(1)));
    bench.push(0, 2, 100);
    let next: Vec<u8> = (0..3).filter_map(|_| bench.pop(0)).collect();
    assert!(next.contains(&2), "within the turn of another: {next:?}");
}

#[test]
fn the_longest_queue_loses_what_does_not_fit() {
    let mut bench = Bench::new();
    (0..3).for_each(|_| bench.push(0, 2, LEN));
    for _ in 0..400 {
        bench.push(0, 1, LEN);
        while let Some(waiting) = bench.queues.overflow(Instant::ZERO) {
            assert_eq!(bench.store.get(waiting.place).0[0], 1);
            bench.store.give_back(waiting.place);
        }
    }
    assert!(bench.queues.bytes <= LEAST);
    let left: Vec<u8> = std::iter::from_fn(|| bench.pop(0)).collect();
    assert_eq!(left.iter().filter(|&&flow| flow == 2).count(), 3);
    assert!(bench.queues.is_empty() && bench.queues.next().is_none());
}

#[test]
fn codel_drops_from_the_flow_whose_queue_stands() {
    let mut bench = Bench::new();
    let mut sent = [0; 3];
    for millis in 0..2000 {
        // Flow 1 wants twice what leaves, flow 2 a twentieth.
        (0..2).for_each(|_| bench.push(millis, 1, LEN));
        if millis % 20 == 0 {
            bench.push(millis, 2, LEN);
        }
        if let Some(flow) = bench.pop(millis) {
            sent[usize::from(flow)] += 1;
        }
    }
    assert!((99..=100).contains(&sent[2]), "{sent:?}");
}

#[test]
fn buffers_are_used_again() {
    let mut bench = Bench::new();
    for round in 0..100 {
        (0..10).for_each(|_| bench.push(round, 1, LEN));
        while bench.pop(round).is_some() {}
    }
    assert!(bench.store.memory() < 10 * 2 * LEN + 4096, "{}", bench.store.memory());
}

#[test]
fn a_flow_that_heeds_nothing_loses_its_last_packets_when_too_much_waits() {
    let mut bench = Bench::new();
    let times = Times::default();
    bench.queues.set_limits(times, Limits { tcp: 0, all: 0 });
    let most = LEAST / LEN;
    // It always has as much waiting as may, for two seconds.
    let mut next = 0;
    let mut lost = Vec::new();
    for millis in 0..2000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        while bench.queues.len() <= most {
            bench.push(millis, 1, LEN);
            next += 1;
        }
        while let Some(waiting) = bench.queues.overflow(now) {
            lost.push(waiting.waited(now));
            bench.store.give_back(waiting.place);
        }
        bench.pop(millis);
    }
    let half = lost.len() / 2;
    assert!(next > 2000 && half > 100, "{next}, {half}");
    assert!(lost[..half].iter().any(|waited| !waited.is_zero()), "at first it is the first");
    let most = Duration::from_millis(1);
    assert!(lost[half..].iter().all(|waited| *waited <= most), "{:?}", &lost[half..][..10]);
    // The one that came last is still to be filled in by the caller that pushed it.
    let last =
        bench.queues.flows.iter().find_map(|flow| flow.packets.back()).map(|waiting| waiting.since);
    assert_eq!(last, Some(Instant::ZERO + Duration::from_millis(1999)));
}

#[test]
fn flows_that_are_not_tcp_may_have_more_waiting_than_those_that_are() {
    let mut bench = Bench::new();
    bench.queues.set_limits(Times::default(), Limits { tcp: LEAST, all: 3 * LEAST });
    let fill = |bench: &mut Bench, flow: u8, is_tcp: bool| {
        for _ in 0..4 * LEAST / LEN {
            bench.push_as(0, flow.into(), LEN, is_tcp);
            while let Some(dropped) = bench.queues.overflow(Instant::ZERO) {
                assert_eq!(
                    bench.store.get(dropped.place).0[0],
                    flow,
                    "of the one that is too long"
                );
                bench.store.give_back(dropped.place);
            }
        }
        bench.queues.bytes()
    };
    let tcp = fill(&mut bench, 1, true);
    assert!(tcp <= LEAST && tcp > LEAST - LEN, "{tcp} of TCP wait");
    let all = fill(&mut bench, 2, false);
    assert!(all <= 3 * LEAST && all > 3 * LEAST - LEN, "{all} wait");
    // Both are counted down, and are as they were.
    while bench.pop(0).is_some() {}
    assert_eq!((bench.queues.bytes, bench.queues.tcp_bytes), (0, 0));
    assert_eq!(fill(&mut bench, 2, true), tcp);
}

/// With one queue for each of 256 hashes, a thin flow would share that of one of sixteen transfers 6 times in 100.
#[test]
fn a_thin_flow_waits_for_none_of_sixteen_transfers() {
    let transfers: Vec<u64> = (0..16).map(|transfer| mix(1 << 32 | transfer)).collect();
    for thin in 0..500 {
        let mut bench = Bench::new();
        (0..20).for_each(|_| transfers.iter().for_each(|hash| bench.push_as(0, *hash, LEN, true)));
        (0..40).for_each(|_| _ = bench.pop(0));
        bench.push(0, mix(thin), 100);
        let next = (0..2).filter_map(|_| bench.pop(0));
        assert!(next.into_iter().any(|flow| flow == mix(thin) as u8), "{thin}");
    }
}

#[test]
fn however_many_flows_wait_each_keeps_its_order() {
    let mut bench = Bench::new();
    let packet = |place| Packet { place, len: LEN, tos: 0, volume: Volume::Usual, is_tcp: false };
    let mut last = [0; 600];
    for round in 1..400_u64 {
        // About 250 of them have something waiting, not always the same ones.
        for flow in (0..600).filter(|flow| (flow * 7 + round) % 97 == 0) {
            let place = bench.store.take(LEN);
            let bytes = (flow << 32 | round).to_be_bytes();
            bench.store.fill(place, |to| {
                to[..8].copy_from_slice(&bytes);
                false
            });
            bench.queues.push(Instant::ZERO, mix(flow), packet(place));
        }
        while bench.queues.len() > 250 {
            let Some(Verdict::Send(waiting)) = bench.queues.pop(Instant::ZERO) else { panic!() };
            let bytes = bench.store.get(waiting.place).0[..8].try_into().unwrap();
            let (flow, round) =
                ((u64::from_be_bytes(bytes) >> 32) as usize, u64::from_be_bytes(bytes) as u32);
            assert!(last[flow] < round, "{flow}: {round} after {}", last[flow]);
            last[flow] = round;
            bench.store.give_back(waiting.place);
        }
    }
    assert!(last.iter().filter(|round| **round > 0).count() > 500);
}

#[test]
fn what_is_not_tcp_is_told_before_it_loses_all_that_overflows() {
    // A window that doubles fills the queue in less than an interval.
    for (is_tcp, expected) in [(false, 1), (true, 0)] {
        let mut bench = Bench::new();
        let limits = Limits { tcp: 4 * LEAST, all: 4 * LEAST };
        bench.queues.set_limits(Times::default(), limits);
        let (mut told, mut most) = (0, 0);
        for millis in 0..90 {
            let packets = if most < 3 * LEAST { 16 } else { 1 };
            (0..packets).for_each(|_| bench.push_as(millis, 1, LEN, is_tcp));
            let now = Instant::ZERO + Duration::from_millis(millis);
            let verdict = bench.queues.pop(now).unwrap();
            if matches!(verdict, Verdict::Congested(_)) {
                assert!(bench.queues.bytes() > 2 * LEAST - LEN, "{} wait", bench.queues.bytes());
                told += 1;
            }
            most = most.max(bench.queues.bytes());
        }
        assert!(most > 3 * LEAST && told == expected, "{told} of {most}");
    }
}
