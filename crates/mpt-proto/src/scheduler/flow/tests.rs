use super::*;
use crate::config::SchedulerConfig;
use crate::path::metrics::PathMetrics;
use crate::ports::PortRanges;
use crate::scheduler::{Paths, Scheduler};
use crate::time::Instant;
use crate::wire::inner;
use etherparse::PacketBuilder;
use proptest::prelude::*;

/// Paths of which nothing is known.
struct Unmeasured;

impl Paths for Unmeasured {
    fn metrics(&self, _: PathId) -> PathMetrics {
        PathMetrics::default()
    }
}

/// A path of a test: number, weight, priority, pins.
type Plan = (u8, u16, u8, Pins);

fn plain(path: u8, weight: u16) -> Plan {
    (path, weight, 0, Pins::default())
}

fn pins(udp_dst: &[u16]) -> Pins {
    let udp_dst = PortRanges::new(udp_dst.iter().map(|&port| port..=port)).unwrap();
    Pins { udp_dst, ..Pins::default() }
}

fn set(scheduler: &mut Scheduler, plans: &[Plan]) {
    scheduler.set_paths(plans.iter().map(|(path, weight, priority, pins)| Share {
        path: PathId(*path),
        weight: *weight,
        tier: (false, *priority),
        pins,
    }));
}

fn scheduler(plans: &[Plan]) -> Scheduler {
    let mut scheduler = Scheduler::new(SchedulerConfig::Flow);
    set(&mut scheduler, plans);
    scheduler
}

/// A packet of the flow of this number, to its own port.
fn packet(flow: u16, filler: usize) -> Vec<u8> {
    packet_to(flow, 10_000 + flow, filler)
}

fn packet_to(flow: u16, port: u16, filler: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64);
    builder.udp(20_000 + flow % 7, port).write(&mut packet, &vec![0; filler]).unwrap();
    packet
}

fn choose(scheduler: &mut Scheduler, packet: &[u8]) -> Option<u8> {
    let inner = inner::parse(packet).expect("an IP packet");
    let item = Item::new(packet, &inner);
    scheduler.select(Instant::ZERO, &item, &Unmeasured).map(|path| path.0)
}

const FLOWS: u16 = 5000;

/// The paths of many flows.
fn mapping(scheduler: &mut Scheduler) -> Vec<u8> {
    (0..FLOWS).map(|flow| choose(scheduler, &packet(flow, 9)).unwrap()).collect()
}

fn share(mapping: &[u8], path: u8) -> f64 {
    mapping.iter().filter(|&&chosen| chosen == path).count() as f64 / mapping.len() as f64
}

#[test]
fn every_packet_of_a_flow_takes_one_path() {
    let mut scheduler = scheduler(&[plain(0, 1), plain(1, 1), plain(2, 1)]);
    let first = mapping(&mut scheduler);
    for (flow, path) in (0..FLOWS).zip(&first) {
        assert_eq!(choose(&mut scheduler, &packet(flow, usize::from(flow % 1400))), Some(*path));
    }
}

#[test]
fn another_host_or_run_maps_the_same_and_in_whatever_order_paths_came() {
    let [a, b, c] = [plain(3, 10), plain(9, 30), plain(60, 20)];
    let expected = mapping(&mut scheduler(&[a.clone(), b.clone(), c.clone()]));
    let mut other = scheduler(std::slice::from_ref(&c));
    for plans in [vec![a.clone(), c.clone()], vec![b.clone()], vec![c, b, a]] {
        set(&mut other, &plans);
        mapping(&mut other);
    }
    assert_eq!(mapping(&mut other), expected);
}

#[test]
fn only_the_flows_of_a_path_that_goes_move_and_they_return_with_it() {
    let all = [plain(0, 40), plain(1, 20), plain(2, 20), plain(5, 10)];
    let mut scheduler = scheduler(&all);
    let before = mapping(&mut scheduler);
    for gone in all.iter().map(|plan| plan.0) {
        let rest: Vec<_> = all.iter().filter(|plan| plan.0 != gone).cloned().collect();
        set(&mut scheduler, &rest);
        let during = mapping(&mut scheduler);
        assert!(!during.contains(&gone));
        let moved = before.iter().zip(&during).filter(|(one, other)| one != other);
        assert!(moved.clone().count() > 100, "path {gone} had flows");
        assert!(moved.clone().all(|(one, _)| *one == gone), "only those of path {gone} moved");
        // They are shared by all that remain, not dumped on one of them.
        for (other, weight, ..) in &rest {
            let got = moved.clone().filter(|(_, now)| *now == other).count() as f64;
            let weights: u16 = rest.iter().map(|plan| plan.1).sum();
            let fair = f64::from(*weight) / f64::from(weights);
            let got = got / moved.clone().count() as f64;
            assert!((got / fair - 1.0).abs() < 0.25, "{gone} to {other}: {got} {fair}");
        }
        set(&mut scheduler, &all);
        assert_eq!(mapping(&mut scheduler), before, "path {gone} is back");
    }
}

#[test]
fn a_path_whose_weight_changes_is_one_end_of_every_move() {
    let mut scheduler = scheduler(&[plain(0, 10), plain(1, 10), plain(2, 10)]);
    let before = mapping(&mut scheduler);
    set(&mut scheduler, &[plain(0, 10), plain(1, 20), plain(2, 10)]);
    let after = mapping(&mut scheduler);
    assert!((share(&after, 1) - 0.5).abs() < 0.03, "{}", share(&after, 1));
    assert!(before.iter().zip(&after).all(|(one, other)| one == other || *other == 1));
    set(&mut scheduler, &[plain(0, 10), plain(1, 5), plain(2, 10)]);
    let less = mapping(&mut scheduler);
    assert!(before.iter().zip(&less).all(|(one, other)| one == other || *one == 1));
}

#[test]
fn shares_of_the_table_follow_the_weights() {
    for weights in [&[1, 1][..], &[40, 20], &[1, 2, 3], &[10; 12], &[100, 1], &[10_000; 64]] {
        let paths: Vec<_> = (0..).map(PathId).zip(weights.iter().copied()).collect();
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let mut counts = [0; MAX_PATHS];
        for bucket in 0..BUCKETS as u64 {
            counts[usize::from(winner(bucket, &paths).unwrap().0)] += 1;
        }
        for (path, weight) in paths {
            let expected = BUCKETS as f64 * f64::from(weight) / sum;
            let off = (f64::from(counts[usize::from(path.0)]) - expected).abs();
            assert!(off < 3.0 * expected.sqrt(), "{weights:?}, {path:?}: {off} of {expected}");
            assert!(off < 0.03 * BUCKETS as f64, "{weights:?}, {path:?}: {off} of {expected}");
        }
    }
}

#[test]
fn pinned_packets_take_their_path_while_it_is_usable() {
    let mut pinned = plain(1, 1);
    pinned.3 = pins(&[5060]);
    let all = [plain(0, 10_000), pinned.clone(), plain(2, 10_000)];
    let mut scheduler = scheduler(&all);
    let sip = |scheduler: &mut Scheduler| -> Vec<u8> {
        (0..50).map(|flow| choose(scheduler, &packet_to(flow, 5060, 9)).unwrap()).collect()
    };
    assert_eq!(sip(&mut scheduler), [1; 50]);
    let others = mapping(&mut scheduler);
    assert!(share(&others, 1) < 0.01, "not pinned, so by weight");

    set(&mut scheduler, &[all[0].clone(), all[2].clone()]);
    let failed_over = sip(&mut scheduler);
    assert!(failed_over.contains(&0) && failed_over.contains(&2), "by hash: {failed_over:?}");
    let moved = mapping(&mut scheduler).iter().zip(&others).filter(|(a, b)| a != b).count();
    assert!(moved < 50, "the flows that were not pinned stay");

    set(&mut scheduler, &all);
    assert_eq!(sip(&mut scheduler), [1; 50], "it is back");
}

#[test]
fn of_several_pins_the_least_path_wins_wherever_it_is_listed() {
    let plan = |path| (path, 1, 0, pins(&[5060]));
    let mut scheduler = scheduler(&[plan(7), plan(4), plain(0, 1), plan(5)]);
    assert_eq!(choose(&mut scheduler, &packet_to(0, 5060, 9)), Some(4));
    set(&mut scheduler, &[plan(7), plain(0, 1), plan(5)]);
    assert_eq!(choose(&mut scheduler, &packet_to(0, 5060, 9)), Some(5));
}

#[test]
fn a_standby_path_carries_only_pinned_packets() {
    let standby = (1, 1, 9, pins(&[5060]));
    let mut scheduler = scheduler(&[plain(0, 1), standby.clone()]);
    assert!(scheduler.is_standby(PathId(1)) && !scheduler.is_standby(PathId(0)));
    assert_eq!(choose(&mut scheduler, &packet_to(0, 5060, 9)), Some(1));
    assert_eq!(share(&mapping(&mut scheduler), 0), 1.0);
    set(&mut scheduler, &[standby]);
    assert!(!scheduler.is_standby(PathId(1)));
    assert_eq!(share(&mapping(&mut scheduler), 1), 1.0);
    set(&mut scheduler, &[]);
    assert_eq!(choose(&mut scheduler, &packet_to(0, 5060, 9)), None);
}

proptest! {
    #[test]
    fn each_of_the_four_lists_looks_at_its_own_port_and_protocol(
        list in 0..4_usize,
        port in 1..=u16::MAX,
        tcp: bool,
        source in 0..=u16::MAX,
        destination in 0..=u16::MAX,
        hit in 0..3_u8,
    ) {
        let (source, destination) = match hit {
            0 => (source, destination),
            1 => (port, destination),
            _ => (source, port),
        };
        let mut pins = Pins::default();
        let ports = PortRanges::new([port..=port]).unwrap();
        let expected = match list {
            0 => { pins.tcp_dst = ports; tcp && destination == port }
            1 => { pins.tcp_src = ports; tcp && source == port }
            2 => { pins.udp_dst = ports; !tcp && destination == port }
            _ => { pins.udp_src = ports; !tcp && source == port }
        };
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64);
        match tcp {
            true => builder.tcp(source, destination, 0, 0).write(&mut packet, &[]).unwrap(),
            false => builder.udp(source, destination).write(&mut packet, &[]).unwrap(),
        }
        // The pinned path is on standby, so it gets nothing by hash.
        let mut scheduler = scheduler(&[plain(0, 1), (3, 1, 1, pins)]);
        prop_assert_eq!(choose(&mut scheduler, &packet), Some(if expected { 3 } else { 0 }));
    }
}
