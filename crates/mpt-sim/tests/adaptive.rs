//! Paths chosen by earliest arrival: what is measured of them, and what a flow gets.

use std::net::IpAddr;
use std::time::Duration;

use crate::links::{
    at, believed, bulk, bytes, carried, clear, of_each, pair, plan, sender, stream, stream_between,
    wire,
};
use mpt_proto::{Drop, PathId, SchedulerConfig};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::pair::Pair;
use mpt_sim::world::{Direction, WireId};

/// Bulk BBR over links: Mbit/s that each of these spans of seconds carried.
fn bbr(wires: &[Profile], spans: &[(u64, u64)]) -> Vec<f64> {
    let mut pair = pair(wires);
    pair.world.add_bulk(pair.left, pair.right, sender().with_bbr());
    let ids = pair.wires.clone();
    spans.iter().map(|&(from, to)| carried(&mut pair, &ids, from, to)).collect()
}

/// Bulk TCP over links from the third second on: Mbit/s that the links carry together.
fn goodput(wires: &[Profile]) -> f64 {
    goodput_of(1, wires)
}

/// The same with another chance.
fn goodput_of(seed: u64, wires: &[Profile]) -> f64 {
    let mut pair = Pair::new(seed, &plan(wires)).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    bulk(&mut pair);
    let ids = pair.wires.clone();
    carried(&mut pair, &ids, 3, 7)
}

#[test]
fn nothing_typed_in_brings_close_to_the_sum() {
    for (wires, least) in [
        (&[wire(50, 10), wire(50, 10)][..], 0.96),
        (&[wire(100, 10), wire(10, 10)], 0.95),
        (&[wire(50, 10), wire(50, 20)], 0.95),
        (&[wire(50, 10), wire(50, 60)], 0.95),
        (&[wire(50, 10), wire(50, 160)], 0.95),
        (&[wire(10, 10), wire(100, 11)], 0.95),
        (&[wire(5, 5), wire(50, 30)], 0.95),
        (&[wire(300, 4), wire(30, 20)], 0.95),
    ] {
        let sum: u64 = wires.iter().filter_map(|wire| wire.rate).sum();
        let share = goodput(wires) * 1e6 / sum as f64;
        assert!(share >= least, "{share:.3} of {sum}");
    }
}

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A segment without data, from the left host to the right.
fn tcp(flags: u8, acknowledged: u32) -> Vec<u8> {
    let flow = Pair::flow(false, 7001);
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (flow.source, flow.destination) else {
        unreachable!("it is not over IPv6")
    };
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend(source.octets().into_iter().chain(destination.octets()));
    packet.extend([flow.port.to_be_bytes(), flow.port.to_be_bytes()].concat());
    packet.extend([0; 4].into_iter().chain(acknowledged.to_be_bytes()));
    packet.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet
}

#[test]
fn acknowledgements_are_thinned_only_where_a_round_trip_has_room_for_it() {
    let thinned = |half: u64| {
        let link = Profile { delay: Duration::from_micros(half), ..clear(0) };
        let mut pair = pair(&[link.clone(), link]);
        pair.world.run_until(at(500));
        pair.world.send_inner(pair.left, &tcp(SYN, 0));
        for number in 1..=200 {
            pair.world.run_for(Duration::from_micros(100));
            pair.world.send_inner(pair.left, &tcp(ACK, 3000 * number));
        }
        pair.connection(pair.left).stats().drops.count(Drop::AckObsolete)
    };
    assert_eq!(thinned(200), 0, "round trips of 0.4 ms");
    assert!(thinned(5000) > 100, "round trips of 10 ms");
}

#[test]
fn what_paths_carry_is_known_before_they_are_needed() {
    let mut pair = pair(&[wire(50, 10), wire(20, 40)]);
    bulk(&mut pair);
    let ids = pair.wires.clone();
    // The first path is not full yet: the second has carried trains only.
    pair.world.run_until(at(1080));
    let trains = pair.world.link(ids[1], Direction::There).stats().delivered.packets;
    pair.world.run_until(at(1400));
    let (rate, ..) = believed(&pair, 2)[1];
    assert!(trains >= 8 + 16 + 32, "{trains}");
    assert!((10.0..22.0).contains(&rate), "{rate} Mbit/s of 20");
    // That costs next to nothing.
    pair.world.run_until(at(5000));
    let resent = pair.connection(pair.left).path(PathId(1)).stats.resent;
    assert!(resent <= 56, "{resent} copies");
}

#[test]
fn what_paths_are_like_is_known_before_there_is_traffic() {
    for jitter in [0, 5] {
        let jitter = Duration::from_millis(jitter);
        let wires = [wire(5, 5), wire(50, 30)].map(|wire| Profile { jitter, ..wire });
        let mut pair = pair(&wires);
        let ids = pair.wires.clone();
        let sent = bytes(&pair, &ids);
        // Where delays vary trains are of 32 to 64.
        let most = if jitter.is_zero() { 200_000 } else { 350_000 };
        assert!(sent < most, "{sent} bytes");
        let early = pair.connection(pair.left).queue_standing().expect("it is paced").equal_delay;
        // The link of 50 Mbit/s takes 25 ms longer, and where delays vary packets wait for each other.
        let [least, most] = if jitter.is_zero() { [24, 30] } else { [32, 70] };
        let [least, most] = [least, most].map(Duration::from_millis);
        assert!(early >= least && early <= most, "{early:?}");
        // That is all.
        pair.world.run_until(at(5000));
        let later = bytes(&pair, &ids) - sent;
        assert!(later < 8000, "{later} bytes in four seconds");
    }
}

/// Trains show less than a path carries where its delay varies. It counts as one that adds something.
#[test]
fn a_path_of_which_little_is_known_is_worth_an_early_delay() {
    let jittery = |rate, delay, jitter| Profile {
        jitter: Duration::from_micros(jitter),
        ..wire(rate, delay)
    };
    let wires = [jittery(228, 170, 13_800), jittery(45, 23, 4700)];
    let found = of_each(std::array::from_fn::<u64, 24, _>(|it| it as u64), |seed| {
        let mut pair = Pair::new(*seed, &plan(&wires)).expect("a plan the core accepts");
        pair.world.run_until(at(4000));
        pair.connection(pair.left).queue_standing().expect("it is paced").equal_delay
    });
    assert!(found.iter().all(|delay| *delay >= Duration::from_millis(60)), "{found:?}");
}

#[test]
fn a_stream_that_fills_nothing_is_not_delayed_for_paths_that_it_does_not_need() {
    let mut pair = pair(&[wire(5, 5), wire(50, 30)]);
    let stream = stream_between(&mut pair, 3000, 7001, [1000, 6000]);
    pair.world.run_until(at(6000));
    let verdict = *pair.world.stream(stream).1.verdict();
    assert!(verdict.greatest_delay < Duration::from_millis(15), "{verdict:?}");
}

#[test]
fn jitter_is_not_taken_for_a_queue() {
    for millis in [3, 10] {
        let jitter = Duration::from_millis(millis);
        let wires = [10, 10].map(|delay| Profile { jitter, ..wire(50, delay) });
        // A packet that seems lost at the beginning costs a transfer seconds: it is a matter of chance whether there is one.
        let mut mbps = [1, 2, 3, 4, 5].map(|seed| goodput_of(seed, &wires));
        mbps.sort_by(f64::total_cmp);
        assert!(mbps[2] >= 0.85 * 100.0, "{millis} ms: {mbps:?}");
    }
}

#[test]
fn a_path_that_is_much_slower_does_not_harm_the_fast_one() {
    for delay in [60, 160, 400] {
        let mbps = goodput(&[wire(50, 10), wire(50, delay)]);
        assert!(mbps >= 0.97 * 50.0, "{delay} ms: {mbps}");
    }
}

#[test]
fn a_flow_that_sends_little_does_not_wait_for_one_that_sends_much() {
    for wires in [[wire(50, 10), wire(50, 60)], [wire(20, 10), wire(50, 20)]] {
        let mut pair = pair(&wires);
        bulk(&mut pair);
        let interval = Duration::from_millis(20);
        let call = Source::new(Pair::flow(false, 7002), 200, interval, at(4000), at(14_000));
        let call = pair.world.add_stream(pair.left, pair.right, call);
        pair.world.run_until(at(15_000));
        let verdict = *pair.world.stream(call).1.verdict();
        assert_eq!(verdict.received, 500, "{verdict:?}");
        let packet = Duration::from_secs_f64(1500.0 * 8.0 / wires[0].rate.unwrap_or(1) as f64);
        let most = wires[0].delay + Duration::from_millis(5) + 2 * packet;
        assert!(verdict.greatest_delay <= most, "{verdict:?} more than {most:?}");
        // Nor do those that it overtakes count as lost.
        let order = pair.connection(pair.right).stats().reorder;
        let lost =
            |wire: &WireId| pair.world.link(*wire, Direction::There).stats().dropped().packets;
        let lost: u64 = pair.wires.iter().map(lost).sum();
        assert_eq!(order.late, 0, "{order:?}");
        assert!(order.lost_early_release + order.lost_max_delay <= lost, "{order:?} of {lost}");
    }
}

#[test]
fn bbr_gets_slower_paths_too_after_it_has_measured_its_round_trip_again() {
    let got = bbr(&[wire(20, 10), wire(20, 35)], &[(3, 11), (15, 20)]);
    assert!(got[0] > 0.95 * 20.0 && got[1] > 0.93 * 40.0, "{got:?}");
}

#[test]
fn bbr_is_not_delayed_for_a_path_that_is_not_worth_it() {
    // In each of them BBR may stop for 0.2 s once, to measure its round trip.
    let got = bbr(&[wire(20, 10), wire(1, 60)], &[(3, 11), (12, 20)]);
    assert!(got.iter().all(|&got| got > 0.95 * 20.0), "{got:?}");
}

/// A host that has no time for its packets delays them all by as much, now and then.
#[test]
fn a_host_that_stands_still_is_not_taken_for_full_paths() {
    for (mbps, stall) in [(1, 20), (8, 20), (8, 60), (40, 40)] {
        let mut pair = pair(&[clear(1), clear(1)]);
        stream(&mut pair, mbps);
        for round in 0..10 {
            pair.world.run_until(at(2000 + round * 500));
            for delay in [1 + stall, 1] {
                for wire in pair.wires.clone() {
                    let stalled = Profile { keep_order: true, ..clear(delay) };
                    pair.world.set_profile(wire, Direction::There, stalled);
                }
                pair.world.run_until(pair.world.now() + Duration::from_millis(stall));
            }
        }
        let drops = pair.connection(pair.left).stats().drops;
        let own = drops.count(Drop::QueueDelay) + drops.count(Drop::QueueFull);
        assert_eq!(own, 0, "{mbps} Mbit/s, {stall} ms: {drops:?}");
    }
}

#[test]
fn rates_are_measured_as_they_are() {
    let wires = [wire(50, 10), wire(12, 30)];
    let mut pair = pair(&wires);
    stream(&mut pair, 100);
    for second in 3..10 {
        pair.world.run_until(at(second * 1000));
        let believed = believed(&pair, 2);
        for (&(rate, _, queue), real) in believed.iter().zip([50.0, 12.0]) {
            assert!((0.9 * real..1.1 * real).contains(&rate), "{second} s: {believed:?}");
            assert!(queue < 15.0, "{second} s: {believed:?}");
        }
    }
}

#[test]
fn a_rate_that_changes_is_found_while_it_is_needed() {
    let mut pair = pair(&[wire(50, 10), wire(50, 10)]);
    stream(&mut pair, 120);
    let changing = pair.wires[1];
    pair.world.run_until(at(4000));
    for (when, mbps) in [(4000, 20), (8000, 40), (12_000, 10), (16_000, 50)] {
        pair.world.set_profile(changing, Direction::There, wire(mbps, 10));
        pair.world.run_until(at(when + 2000));
        let rate = believed(&pair, 2)[1].0;
        let real = mbps as f64;
        assert!((0.88 * real..1.12 * real).contains(&rate), "{mbps} Mbit/s: {rate}");
        let carried = carried(&mut pair, &[changing], when / 1000 + 2, when / 1000 + 4);
        assert!(carried >= 0.9 * real, "{mbps} Mbit/s: {carried}");
    }
}

#[test]
fn a_longer_route_is_not_taken_for_a_queue() {
    let mut pair = pair(&[wire(50, 10), wire(20, 10)]);
    stream(&mut pair, 100);
    let (first, wires) = (pair.wires[0], pair.wires.clone());
    pair.world.run_until(at(4000));
    pair.world.set_profile(first, Direction::There, wire(50, 40));
    let mbps = carried(&mut pair, &wires, 6, 20);
    assert!(mbps >= 0.95 * 70.0, "{mbps}, {:?}", believed(&pair, 2));
}

#[test]
fn a_path_is_not_paced_before_it_is_full() {
    let mut pair = pair(&[wire(50, 10), wire(50, 30)]);
    stream(&mut pair, 20);
    let wires = pair.wires.clone();
    let mbps = carried(&mut pair, &wires[..1], 2, 6);
    assert!(mbps >= 20.0, "all on the fast path: {mbps}");
    assert!(believed(&pair, 2).iter().all(|&(_, pace, _)| pace == 0.0), "{:?}", believed(&pair, 2));
}

#[test]
fn what_waits_too_long_is_dropped_and_counted_and_nothing_else_is_lost() {
    let mut pair = pair(&[wire(20, 10), wire(10, 40)]);
    let stream = stream(&mut pair, 40);
    pair.world.run_until(at(6000));
    let (source, checker) = pair.world.stream(stream);
    let drops = pair.connection(pair.left).stats().drops;
    let own = drops.count(Drop::QueueDelay) + drops.count(Drop::QueueFull);
    let delivered = checker.verdict().received;
    let missing = source.sent() - delivered;
    assert!(own > 0, "{drops:?}");
    // The difference is on its way: what the paths carry in 400 ms, about 1100 packets, waits. Or it was lost while the rates were
    // not known yet.
    assert!(missing - own < 1400, "{missing} missing, {own} dropped, {delivered} delivered");
}

/// Prints what happens over links given as `TRACE=50/10/2/5,20/40`: Mbit/s, delay and jitter in milliseconds, and how many of
/// a thousand packets are lost.
#[test]
fn trace() {
    let Ok(what) = std::env::var("TRACE") else { return };
    let wires: Vec<Profile> = what
        .split(',')
        .map(|link| {
            let mut part = link.split('/').map(|number| number.parse::<u64>().unwrap());
            let mut wire = wire(part.next().unwrap(), part.next().unwrap());
            wire.jitter = Duration::from_millis(part.next().unwrap_or(0));
            wire.loss = Loss::Random(part.next().unwrap_or(0) as f64 / 1000.0);
            wire
        })
        .collect();
    let sum: u64 = wires.iter().filter_map(|wire| wire.rate).sum();
    let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut pair = Pair::new(seed, &plan(&wires)).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    let ids = pair.wires.clone();
    let transfer = if std::env::var("STREAM").is_ok() {
        stream(&mut pair, sum / 500_000);
        None
    } else if std::env::var("BBR").is_ok() {
        Some(pair.world.add_bulk(pair.left, pair.right, sender().with_bbr()))
    } else {
        Some(bulk(&mut pair))
    };
    let step: u64 = std::env::var("STEP").map_or(100, |it| it.parse().unwrap());
    let end: u64 = std::env::var("END").map_or(13_000, |it| it.parse().unwrap());
    for tenth in 1000 / step..end / step {
        let before: Vec<u64> = ids
            .iter()
            .map(|&wire| pair.world.link(wire, Direction::There).stats().delivered.bytes)
            .collect();
        pair.world.run_until(at((tenth + 1) * step));
        let rates: Vec<String> = ids
            .iter()
            .zip(before)
            .map(|(&wire, before)| {
                let bytes =
                    pair.world.link(wire, Direction::There).stats().delivered.bytes - before;
                format!("{:.1}", bytes as f64 * 8e3 / 1e6 / step as f64)
            })
            .collect();
        let believed = believed(&pair, wires.len());
        let believed: Vec<String> =
            believed.iter().map(|(r, p, q)| format!("R {r:.1} P {p:.1} q {q:.1}")).collect();
        let standing = pair.connection(pair.left).queue_standing();
        let equal = standing.map_or(0.0, |it| it.equal_delay.as_secs_f64() * 1e3);
        let waits = standing.map_or(0, |it| it.waiting_bytes / 1000);
        let committed = (0..wires.len()).map(|path| {
            let standing =
                pair.connection(pair.left).standing(pair.world.now(), PathId(path as u8));
            standing.map_or(0, |it| it.committed_bytes / 1000)
        });
        let committed: Vec<u64> = committed.collect();
        let inside = transfer.map_or(String::new(), |it| {
            let sender = pair.world.bulk(it).0;
            let trip = sender.round_trip().map_or(0.0, |trip| trip.as_secs_f64() * 1e3);
            let events = sender.stats().congestion_events;
            format!("window {:.0} round trip {trip:.1} events {events}", sender.window())
        });
        let second = tenth as f64 * step as f64 / 1e3;
        let drops = pair.connection(pair.left).stats().drops;
        let dropped = [Drop::QueueDelay, Drop::QueueFull].map(|why| drops.count(why));
        println!(
            "{second:.2} {rates:?} {believed:?} equal {equal:.1} waits {waits} committed {committed:?} kB dropped {dropped:?} {inside}"
        );
    }
}

#[test]
fn what_is_committed_to_a_path_that_becomes_slow_goes_by_the_other() {
    let mut pair = pair(&[wire(50, 10), wire(50, 110)]);
    let stream = stream(&mut pair, 70);
    pair.world.run_until(at(4000));
    let wires = pair.wires.clone();
    pair.world.set_profile(wires[0], Direction::There, wire(5, 10));
    pair.world.run_until(at(6000));
    let verdict = pair.world.stream(stream).1.verdict();
    let order = pair.connection(pair.right).stats().reorder;
    // What was committed to it would take a second. The stream is more than both carry, so 400 ms of it wait before; and the 2 ms that
    // stood in its queue take 20 ms now.
    assert!(verdict.greatest_delay < Duration::from_millis(600), "{verdict:?}");
    // Some of these are repairs of what the queue of the link had no room for.
    assert!(order.late < 150, "{order:?}");
}

/// The same with another scheduler.
fn pair_by(scheduler: SchedulerConfig, wires: &[Profile], price: u16) -> Pair {
    let mut plan = plan(wires);
    plan.connection.scheduler = scheduler;
    plan.paths[1].price = price;
    let mut pair = Pair::new(1, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    pair
}

#[test]
fn the_lowest_delay_takes_what_it_can() {
    let wires = [wire(50, 10), wire(50, 30)];
    for (offered, first, second) in [(30, 30.0, 0.0), (80, 49.0, 31.0)] {
        let mut pair = pair_by(SchedulerConfig::LowestRtt, &wires, 0);
        stream(&mut pair, offered);
        let ids = pair.wires.clone();
        let mut second_world = |which: &[WireId], from| carried(&mut pair, which, from, from + 2);
        let on_first = second_world(&ids[..1], 4);
        let on_second = second_world(&ids[1..], 6);
        assert!(on_first >= first, "{offered}: {on_first} on the first");
        assert!(on_second >= second && on_second < second + 5.0, "{offered}: {on_second}");
    }
}

#[test]
fn each_packet_on_both_paths_outlives_a_path_without_a_gap() {
    let lossy = |delay| Profile { loss: Loss::Random(0.05), ..wire(50, delay) };
    let mut pair = pair_by(SchedulerConfig::Redundant, &[lossy(10), lossy(25)], 0);
    let before = stream_between(&mut pair, 10_000, 7001, [1000, 4800]);
    let stream = stream_between(&mut pair, 10_000, 7002, [4800, 1_000_000]);
    let wires = pair.wires.clone();
    pair.world.run_until(at(5000));
    let (source, checker) = pair.world.stream(before);
    let (sent, verdict) = (source.sent(), *checker.verdict());
    let missing = verdict.lost(sent) as f64 / sent as f64;
    assert!(missing < 0.006, "1 in 400 on both: {missing}");
    assert_eq!(verdict.duplicates, 0);
    pair.world.cut_both(wires[0], true);
    pair.world.run_until(at(5500));
    let verdict = *pair.world.stream(stream).1.verdict();
    // A packet that the other path loses is waited for; that one is dead is known after 1.75 s.
    assert!(verdict.longest_gap < Duration::from_millis(80), "{verdict:?}");
}

#[test]
fn a_slow_path_does_not_hold_up_copies() {
    let mut pair = pair_by(SchedulerConfig::Redundant, &[wire(50, 10), wire(2, 10)], 0);
    let stream = stream(&mut pair, 20);
    pair.world.run_until(at(6000));
    let (source, checker) = pair.world.stream(stream);
    let verdict = checker.verdict();
    assert!(verdict.lost(source.sent()) < 60, "{verdict:?} of {}", source.sent());
    assert!(verdict.greatest_delay < Duration::from_millis(150), "{verdict:?}");
}

#[test]
fn a_path_with_a_price_carries_what_the_others_cannot_in_time() {
    let wires = [wire(20, 10), wire(20, 10)];
    for (offered, price, least, most) in
        [(15, 50, 0.0, 0.5), (30, 50, 9.0, 13.0), (30, 200, 8.0, 13.0), (30, 0, 5.0, 20.0)]
    {
        let mut pair = pair_by(SchedulerConfig::Earliest, &wires, price);
        let stream = stream(&mut pair, offered);
        let ids = pair.wires.clone();
        let mbps = carried(&mut pair, &ids[1..], 6, 12);
        assert!((least..=most).contains(&mbps), "{offered} Mbit/s at {price} ms: {mbps}");
        let (source, checker) = pair.world.stream(stream);
        let missing = checker.verdict().lost(source.sent()) as f64 / source.sent() as f64;
        assert!(
            missing < 0.03,
            "{offered} Mbit/s at {price} ms: {missing} {:?}",
            pair.connection(pair.left).stats().drops
        );
    }
}

#[test]
fn a_transfer_that_yields_leaves_a_dear_path_alone_and_fills_a_cheap_one() {
    for (price, most, least) in [(50, 21.0, 17.0), (200, 3.0, 0.0)] {
        let mut pair = pair_by(SchedulerConfig::Earliest, &[wire(20, 10), wire(20, 10)], price);
        bulk(&mut pair);
        let ids = pair.wires.clone();
        let mbps = carried(&mut pair, &ids[1..], 4, 10);
        let free = carried(&mut pair, &ids[..1], 10, 12);
        assert!((least..=most).contains(&mbps), "{price} ms: {mbps}");
        assert!(free >= 18.0, "{price} ms: {free} on the free one");
    }
}
