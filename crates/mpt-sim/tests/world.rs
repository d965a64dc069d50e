//! Whole worlds: the real core on two hosts, wires between them, things going wrong.

use std::time::Duration;

use mpt_proto::{DownCause, Event, Instant, Origin, PathId, PathState, PathStatus, SocketId};
use mpt_sim::link::DropReason;
use mpt_sim::loss::Loss;
use mpt_sim::nat::Nat;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::traffic::stream::{Source, Verdict};
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};
use mpt_sim::world::{Direction, HostConfig, StreamId};

const LEN: usize = 1200;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn wire(mbps: u64, delay_ms: u64) -> Profile {
    Profile {
        rate: Some(mbps * 1_000_000),
        delay: Duration::from_millis(delay_ms),
        ..Profile::default()
    }
}

fn path(mbps: u64, delay_ms: u64) -> PathPlan {
    PathPlan::symmetric(wire(mbps, delay_ms)).with_weight(mbps as u16)
}

fn pair(paths: Vec<PathPlan>) -> Pair {
    Pair::new(1, &PairPlan::new(paths)).expect("a plan the core accepts")
}

/// A stream from left to right of `mbps` inner Mbit/s, from `start` to `end` milliseconds.
fn stream(pair: &mut Pair, ipv6: bool, mbps: u64, start: u64, end: u64) -> StreamId {
    let interval = Source::interval_for(LEN, mbps * 1_000_000);
    let source = Source::new(Pair::flow(ipv6, 7000), LEN, interval, at(start), at(end));
    pair.world.add_stream(pair.left, pair.right, source)
}

fn verdict(pair: &Pair, stream: StreamId) -> (u64, Verdict) {
    let (source, checker) = pair.world.stream(stream);
    (source.sent(), *checker.verdict())
}

/// When a path of the left host became `state`, at or after `from` milliseconds.
fn became(pair: &Pair, path: u8, state: PathState, from: u64) -> Option<Instant> {
    pair.world.events().iter().find_map(|&(when, host, event)| match event {
        Event::Path { path: PathId(number), to, .. }
            if (host, number, to) == (pair.left, path, state) && when >= at(from) =>
        {
            Some(when)
        }
        Event::Narrow { .. }
        | Event::Proven { .. }
        | Event::Path { .. }
        | Event::Restart { .. }
        | Event::Session { .. }
        | Event::NoSession { .. }
        | Event::Stopped { .. }
        | Event::Resumed { .. }
        | Event::SessionEnd { .. } => None,
    })
}

/// Nothing a core sent or got is unaccounted for.
fn assert_balanced(pair: &Pair) {
    for host in [pair.left, pair.right] {
        let Some(endpoint) = pair.world.endpoint(host) else { continue };
        let stats = endpoint.connection(Pair::CONNECTION).stats();
        assert_eq!(
            stats.reorder.held,
            pair.world.held(host) as u64,
            "the core knows what it holds"
        );
    }
    for &wire in &pair.wires {
        for direction in Direction::BOTH {
            assert!(pair.world.link(wire, direction).stats().is_balanced());
        }
    }
}

#[test]
fn two_paths_carry_a_stream_in_order_and_in_proportion_to_their_weights() {
    for ipv6 in [false, true] {
        let mut pair = pair(vec![path(40, 5), path(20, 9)]);
        let stream = stream(&mut pair, ipv6, 50, 1000, 4000);
        pair.world.run_until(at(5000));
        let (sent, verdict) = verdict(&pair, stream);
        assert!(sent > 15_000, "{sent}");
        assert!(verdict.is_flawless(sent), "{sent} sent, {verdict:?}");
        // The queue stays empty: the slower path's delay and a packet's time, no more.
        assert!(verdict.greatest_delay < Duration::from_millis(11), "{verdict:?}");
        let left = pair.connection(pair.left);
        let share = left.path(PathId(0)).stats.sent.packets as f64 / sent as f64;
        assert!((share - 2.0 / 3.0).abs() < 0.001, "{share}");
        assert_balanced(&pair);
    }
}

#[test]
fn inner_and_outer_ip_versions_are_independent() {
    for (inner, outer) in [(false, false), (false, true), (true, false), (true, true)] {
        let plan = if outer { path(40, 5).over_ipv6() } else { path(40, 5) };
        let mut pair = pair(vec![plan.clone(), plan]);
        let stream = stream(&mut pair, inner, 20, 1000, 2000);
        pair.world.run_until(at(3000));
        let (sent, verdict) = verdict(&pair, stream);
        assert!(sent > 2000 && verdict.is_flawless(sent), "{inner} in {outer}: {verdict:?}");
    }
}

#[test]
fn links_carry_outer_ip_bytes() {
    for (outer, ip_header) in [(path(40, 5), 20), (path(40, 5).over_ipv6(), 40)] {
        let mut pair = pair(vec![outer]);
        pair.world.run_until(at(1999));
        let before = pair.world.link(pair.wires[0], Direction::There).stats().offered;
        let packets = 10;
        let interval = Duration::from_micros(50);
        let source = Source::new(
            Pair::flow(false, 7),
            LEN,
            interval,
            at(1999),
            at(1999) + interval * packets,
        );
        pair.world.add_stream(pair.left, pair.right, source);
        // No keepalive falls into this moment.
        pair.world.run_until(at(1999) + interval * packets);
        let after = pair.world.link(pair.wires[0], Direction::There).stats().offered;
        assert_eq!(after.packets - before.packets, packets.into());
        let gre_with_sequence = 8;
        let each = (ip_header + 8 + gre_with_sequence + LEN) as u64;
        assert_eq!(after.bytes - before.bytes, u64::from(packets) * each);
    }
}

#[test]
fn a_cut_is_survived_after_the_dead_time_whatever_its_direction() {
    use Direction::{Back, There};
    for cut in [vec![There], vec![Back], vec![There, Back]] {
        let mut pair = pair(vec![path(40, 5), path(40, 5)]);
        let stream = stream(&mut pair, false, 20, 1000, 9000);
        pair.world.run_until(at(3000));
        for &direction in &cut {
            pair.world.cut(pair.wires[0], direction, true);
        }
        pair.world.run_until(at(6000));
        let what = format!("cut {cut:?}");
        let state = pair.path_state(pair.left, 0);
        assert!(matches!(state, PathState::Down(_)), "{what}: {state}");
        let expected = if cut == [There] { DownCause::PeerDeaf } else { DownCause::Silent };
        assert_eq!(state, PathState::Down(expected), "{what}");
        let down = became(&pair, 0, state, 3000).unwrap() - at(3000);
        // The dead time, counted from the last thing heard before the cut, which with keepalives
        // alone is up to half a second old; and half a second more until the peer reports that it
        // does not hear us, if it had not done so at once.
        assert!(down <= Duration::from_millis(1750 + 10), "{what}: {down:?}");
        assert!(down >= Duration::from_millis(1250), "{what}: {down:?}");

        for &direction in &cut {
            pair.world.cut(pair.wires[0], direction, false);
        }
        pair.world.run_until(at(10_000));
        assert_eq!(pair.path_state(pair.left, 0), PathState::Up, "{what}");
        let up = became(&pair, 0, PathState::Up, 6000).unwrap() - at(6000);
        assert!(up <= Duration::from_millis(1100), "{what}: {up:?}");

        let (sent, verdict) = verdict(&pair, stream);
        // Only what was sent on a wire cut in this direction, while the path counted as up.
        let cut_there = pair.world.link(pair.wires[0], There).stats().drops(DropReason::Blackout);
        assert!(verdict.lost(sent) <= cut_there.packets, "{what}: {verdict:?}");
        if !cut.contains(&There) {
            assert_eq!(verdict.lost(sent), 0, "{what}");
        }
        assert_eq!((verdict.duplicates, verdict.out_of_order), (0, 0), "{what}");
        assert_balanced(&pair);
    }
}

#[test]
fn while_all_paths_are_down_packets_are_counted_drops_and_then_flow_again() {
    let mut pair = pair(vec![path(40, 5)]);
    let stream = stream(&mut pair, false, 10, 1000, 9000);
    pair.world.run_until(at(3000));
    pair.world.cut_both(pair.wires[0], true);
    pair.world.run_until(at(6000));
    pair.world.cut_both(pair.wires[0], false);
    pair.world.run_until(at(10_000));
    let (sent, verdict) = verdict(&pair, stream);
    let no_path = pair.connection(pair.left).stats().drops.count(mpt_proto::Drop::NoPath);
    let blackout = pair.world.link(pair.wires[0], Direction::There).stats();
    let blackout = blackout.drops(DropReason::Blackout).packets;
    assert!(no_path > 1000, "{no_path}");
    assert!(verdict.lost(sent) >= no_path && verdict.lost(sent) <= no_path + blackout);
    assert!(verdict.longest_gap < Duration::from_millis(4200), "{verdict:?}");
    assert!(verdict.last.unwrap() > at(8990));
}

#[test]
fn a_path_switched_off_by_one_operator_is_unused_by_both_sides_at_once() {
    let mut pair = pair(vec![path(40, 5), path(40, 5)]);
    let stream = stream(&mut pair, false, 20, 1000, 4000);
    pair.world.run_until(at(2000));
    pair.world.set_path_status(pair.right, Pair::CONNECTION, PathId(0), PathStatus::Off);
    pair.world.run_until(at(2050));
    assert_eq!(pair.path_state(pair.right, 0), PathState::Off);
    assert_eq!(pair.path_state(pair.left, 0), PathState::Down(DownCause::PeerOff));
    pair.world.set_path_status(pair.right, Pair::CONNECTION, PathId(0), PathStatus::Available);
    pair.world.run_until(at(5000));
    assert_eq!(pair.path_state(pair.left, 0), PathState::Up);
    let (sent, verdict) = verdict(&pair, stream);
    assert!(verdict.is_flawless(sent), "{verdict:?}");
}

#[test]
fn either_side_may_restart_and_the_stream_continues() {
    for restarted in ["left", "right"] {
        let mut pair = pair(vec![path(40, 5), path(40, 5)]);
        let stream = stream(&mut pair, false, 20, 1000, 8000);
        pair.world.run_until(at(3000));
        let host = if restarted == "left" { pair.left } else { pair.right };
        pair.world.stop(host);
        pair.world.run_until(at(3200));
        assert!(pair.world.endpoint(host).is_none());
        pair.world.start(host);
        pair.world.run_until(at(9000));
        let (sent, verdict) = verdict(&pair, stream);
        assert!(verdict.last.unwrap() > at(7990), "{restarted}: {verdict:?}");
        assert!(verdict.longest_gap < Duration::from_millis(900), "{restarted}: {verdict:?}");
        assert_eq!(verdict.duplicates, 0, "{restarted}");
        assert!(verdict.lost(sent) > 0, "{restarted}: two tenths of a second are lost");
        assert!(pair.world.host_stats(host).stopped > 0, "{restarted}");
        assert_eq!(pair.world.host_stats(pair.right).unclaimed, 0, "{restarted}");
    }
}

#[test]
fn two_uplinks_reach_one_server_address() {
    let mut plan = PairPlan::new(vec![path(40, 5), path(40, 15)]);
    plan.one_server_address = true;
    let mut pair = Pair::new(1, &plan).unwrap();
    let there = stream(&mut pair, false, 20, 1000, 3000);
    let flow = Pair::flow(false, 7001).reversed();
    let source = Source::new(flow, LEN, Duration::from_micros(500), at(1000), at(3000));
    let back = pair.world.add_stream(pair.right, pair.left, source);
    pair.world.run_until(at(4000));
    for stream in [there, back] {
        let (sent, verdict) = verdict(&pair, stream);
        assert!(sent > 1000 && verdict.is_flawless(sent), "{verdict:?}");
    }
    for &wire in &pair.wires {
        for direction in Direction::BOTH {
            assert!(pair.world.link(wire, direction).stats().delivered.packets > 1000);
        }
    }
}

#[test]
fn datagrams_from_a_translated_address_are_from_an_unknown_source() {
    // Plain framing identifies its peer by the address; a datagram from another address is from an
    // unknown source.
    let mut pair = pair(vec![path(40, 5), path(40, 5)]);
    pair.world.set_nat(pair.wires[0], Some(Nat::new("198.51.100.1".parse().unwrap())));
    let stream = stream(&mut pair, false, 20, 1000, 3000);
    pair.world.run_until(at(4000));
    let (sent, verdict) = verdict(&pair, stream);
    assert!(verdict.is_flawless(sent), "the other path carries everything: {verdict:?}");
    assert_eq!(pair.path_state(pair.left, 0), PathState::Probing);
    let right = pair.world.endpoint(pair.right).unwrap();
    assert!(right.drops().count(mpt_proto::Drop::UnknownSource) > 0);
}

#[test]
fn a_nat_that_keeps_the_address_changes_only_the_port_and_may_rebind() {
    // The outside address is the one the peer expects; RFC 8086 lets the source port vary.
    let mut pair = pair(vec![path(40, 5)]);
    let nat = Nat::new("10.0.1.1".parse().unwrap());
    pair.world.set_nat(pair.wires[0], Some(nat));
    let stream = stream(&mut pair, false, 20, 1000, 4000);
    pair.world.run_until(at(2500));
    pair.world.nat_mut(pair.wires[0]).unwrap().rebind();
    pair.world.run_until(at(5000));
    let (sent, verdict) = verdict(&pair, stream);
    // The right host answers to the configured port, where no mapping is: the left hears nothing.
    assert!(pair.world.nat_drops(pair.wires[0]) > 0);
    assert_eq!(pair.path_state(pair.left, 0), PathState::Probing);
    assert_eq!((sent - verdict.lost(sent), verdict.received), (0, 0));
}

#[test]
fn corruption_without_udp_checksums_is_caught_by_gre_checksums() {
    let profile = Profile { corrupt: 0.05, ..wire(40, 5) };
    let run = |gre_checksum: bool| {
        let mut plan = PairPlan::new(vec![PathPlan::symmetric(profile.clone())]);
        plan.host = HostConfig { udp_checksum: false, ..HostConfig::default() };
        plan.connection.checksum = gre_checksum;
        let mut pair = Pair::new(1, &plan).unwrap();
        let stream = stream(&mut pair, false, 10, 1000, 4000);
        pair.world.run_until(at(5000));
        let altered = pair.world.host_stats(pair.right).unclaimed;
        let caught = pair.world.endpoint(pair.right).unwrap().drops();
        (altered, caught.count(mpt_proto::Drop::GreChecksum), verdict(&pair, stream))
    };
    let (altered, _, _) = run(false);
    assert!(altered > 50, "without any checksum they come through: {altered}");
    let (altered, caught, (sent, verdict)) = run(true);
    assert_eq!(altered, 0);
    assert!(caught > 50, "{caught}");
    assert!(verdict.lost(sent) >= caught - 5, "{verdict:?}");
    assert_eq!(verdict.duplicates, 0);
}

#[test]
fn garbage_from_anywhere_changes_nothing() {
    let mut pair = pair(vec![path(40, 5)]);
    let stream = stream(&mut pair, false, 10, 1000, 2000);
    let mut state = 1_u64;
    for ms in 1000..2000 {
        pair.world.run_until(at(ms));
        for address in ["10.0.1.1:4754", "203.0.113.77:1"] {
            let len = (state >> 40) % 64;
            let bytes = (0..len).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u8
            });
            // Nothing that looks like a numbered datagram of the peer's: that would be believed.
            let mut garbage: Vec<u8> = bytes.collect();
            if let Some(first) = garbage.first_mut() {
                *first |= 0x40;
            }
            let origin = Origin { socket: SocketId(0), remote: address.parse().unwrap(), tos: 0 };
            pair.world.inject(pair.right, origin, &garbage);
        }
    }
    pair.world.run_until(at(3000));
    let (sent, verdict) = verdict(&pair, stream);
    assert!(verdict.is_flawless(sent), "{verdict:?}");
    let drops = pair.world.endpoint(pair.right).unwrap().drops();
    assert_eq!(drops.total(), 2000);
}

#[test]
fn one_transfer_uses_two_unequal_links() {
    let goodput = |paths: Vec<PathPlan>| {
        let mut pair = pair(paths);
        let sender = Sender::new(Pair::flow(false, 5001), 1400, at(1000), at(11_000));
        let bulk = pair.world.add_bulk(pair.left, pair.right, sender);
        pair.world.run_until(at(3000));
        let before = pair.world.bulk(bulk).1.stats().bytes;
        pair.world.run_until(at(11_000));
        (pair.world.bulk(bulk).1.stats().bytes - before) as f64
    };
    let fast = goodput(vec![path(40, 10)]);
    let slow = goodput(vec![path(20, 10)]);
    let both = goodput(vec![path(40, 10), path(20, 10)]);
    assert!(both / (fast + slow) > 0.97, "{fast} + {slow} became {both}");
}

#[test]
fn the_same_seed_gives_the_same_world_and_another_seed_another() {
    let run = |seed| {
        let lossy = Profile {
            loss: Loss::Random(0.02),
            jitter: Duration::from_millis(2),
            duplicate: 0.01,
            corrupt: 0.01,
            ..wire(20, 10)
        };
        let plan = PairPlan::new(vec![PathPlan::symmetric(lossy.clone()), path(10, 20)]);
        let mut pair = Pair::new(seed, &plan).unwrap();
        let stream = stream(&mut pair, false, 10, 500, 3000);
        let sender = Sender::new(Pair::flow(true, 5001), 1400, at(500), at(3000));
        pair.world.add_bulk(pair.right, pair.left, sender);
        pair.world.run_until(at(1500));
        pair.world.cut(pair.wires[1], Direction::There, true);
        pair.world.restart(pair.right);
        pair.world.run_until(at(4000));
        let (sent, verdict) = verdict(&pair, stream);
        assert_eq!(verdict.invalid, 0);
        assert!(verdict.received > 0 && verdict.lost(sent) > 0);
        assert_balanced(&pair);
        (pair.world.digest(), pair.world.events().to_vec(), verdict)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}
