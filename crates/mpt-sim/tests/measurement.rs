//! The core's measurements on simulated links equal the links' settings, separately for each
//! direction.

use std::time::Duration;

use mpt_proto::{Instant, PathId, PathView, Reordering};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::packet::Flow;
use mpt_sim::traffic::stream::Source;
use mpt_sim::world::HostId;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};

const LEN: usize = 1000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn delay(ms: u64) -> Profile {
    Profile { delay: Duration::from_millis(ms), ..Profile::default() }
}

fn plan(there: Profile, back: Profile) -> PathPlan {
    PathPlan { there, back, ..PathPlan::symmetric(Profile::default()) }
}

fn pair(paths: Vec<PathPlan>) -> Pair {
    Pair::new(1, &PairPlan::new(paths)).expect("a plan the core accepts")
}

/// A packet each millisecond, in each direction, from `start` to `end` milliseconds.
fn talk(pair: &mut Pair, start: u64, end: u64) {
    let there = Pair::flow(false, 7000);
    let back = Flow { source: there.destination, destination: there.source, port: 7001 };
    let source = |flow| Source::new(flow, LEN, Duration::from_millis(1), at(start), at(end));
    pair.world.add_stream(pair.left, pair.right, source(there));
    pair.world.add_stream(pair.right, pair.left, source(back));
}

fn path(pair: &Pair, host: HostId, path: u8) -> PathView {
    pair.connection(host).path(PathId(path))
}

/// The datagrams with inner packets that did not come from one host to the other on a path, of those that
/// were sent.
fn truly_lost(pair: &Pair, from: HostId, to: HostId, number: u8) -> (u64, u64) {
    let sent = path(pair, from, number).stats.sent.packets;
    (sent - path(pair, to, number).stats.received.packets, sent)
}

fn shares(reordering: &Reordering) -> Vec<(i32, f64)> {
    let share = |(&places, &packets)| (places, packets as f64 / reordering.packets as f64);
    reordering.density.iter().map(share).filter(|(_, share)| *share > 0.01).collect()
}

#[test]
fn round_trips_are_the_delays_of_both_directions() {
    let mut pair = pair(vec![plan(delay(12), delay(30)), plan(delay(5), delay(0))]);
    talk(&mut pair, 1000, 20_000);
    pair.world.run_until(at(20_000));
    for host in [pair.left, pair.right] {
        for (number, ms) in [(0, 42), (1, 5)] {
            let quality = path(&pair, host, number).quality;
            let round_trip = quality.round_trip.expect("many keepalives came");
            for told in [round_trip.min, round_trip.latest, round_trip.smoothed] {
                let error = told.abs_diff(Duration::from_millis(ms));
                assert!(error <= Duration::from_micros(2), "{round_trip:?}");
            }
            assert!(round_trip.variation <= Duration::from_micros(2), "{round_trip:?}");
            let jitter = quality.jitter.expect("many keepalives came");
            assert!(jitter <= Duration::from_micros(2), "{jitter:?}");
            assert_eq!((quality.lost, quality.loss_recent), (Some(0), Some(0.0)));
        }
    }
}

#[test]
fn jitter_is_that_of_its_direction() {
    let jittery = Profile { jitter: Duration::from_millis(2), ..delay(20) };
    let mut pair = pair(vec![plan(jittery, delay(20))]);
    // The mean absolute difference of two normally distributed delays is 2 / sqrt(pi) of their
    // standard deviation; the last 16 or so count, so it is looked at often.
    let (mut sum, mut looks) = (Duration::ZERO, 0);
    for second in 5..305 {
        pair.world.run_until(at(second * 1000));
        sum += path(&pair, pair.right, 0).quality.jitter.expect("many keepalives came");
        looks += 1;
        let back = path(&pair, pair.left, 0).quality.jitter.expect("many keepalives came");
        assert!(back <= Duration::from_micros(2), "{back:?}");
    }
    let mean = (sum / looks).as_secs_f64();
    let expected = 0.002 * std::f64::consts::FRAC_2_SQRT_PI;
    assert!((mean / expected - 1.0).abs() < 0.15, "{mean} instead of {expected}");
}

#[test]
fn losses_are_counted_one_by_one_in_their_direction() {
    let lossy = |share, ms| Profile { loss: Loss::Random(share), ..delay(ms) };
    let mut pair =
        pair(vec![plan(lossy(0.02, 10), lossy(0.1, 10)), plan(delay(25), lossy(0.005, 25))]);
    talk(&mut pair, 1000, 60_000);
    // Long enough for a keepalive with the final counts on each path: keepalives are lost as well.
    pair.world.run_until(at(65_000));
    let (left, right) = (pair.left, pair.right);
    for (from, to, number) in
        [(left, right, 0), (left, right, 1), (right, left, 0), (right, left, 1)]
    {
        let (lost, sent) = truly_lost(&pair, from, to, number);
        assert!(sent > 29_000, "{sent}");
        assert_eq!(path(&pair, to, number).quality.lost, Some(lost), "path {number}");
    }
    assert_eq!(truly_lost(&pair, left, right, 1).0, 0);
    assert!(truly_lost(&pair, right, left, 1).0 > 50);
    // By its numbers the connection misses as many as its paths.
    for (from, to) in [(left, right), (right, left)] {
        let lost: u64 = [0, 1].map(|number| truly_lost(&pair, from, to, number).0).iter().sum();
        let reordering = pair.connection(to).reordering();
        assert_eq!(reordering.lost + reordering.missing, lost);
        assert!(reordering.lost > lost / 2, "{reordering:?}");
    }
}

#[test]
fn the_recent_share_is_what_is_lost_and_follows_it() {
    let lossy = Profile { loss: Loss::Random(0.1), ..delay(10) };
    let mut pair = pair(vec![plan(lossy, delay(10))]);
    talk(&mut pair, 1000, 60_000);
    let share = |pair: &Pair| path(pair, pair.right, 0).quality.loss_recent.expect("data was sent");
    pair.world.run_until(at(30_000));
    // Some 10,000 of the last ten seconds: a standard deviation of 0.003.
    assert!((share(&pair) - 0.1).abs() < 0.012, "{}", share(&pair));
    assert_eq!(path(&pair, pair.left, 0).quality.loss_recent, Some(0.0));
    let wire = pair.wires[0];
    pair.world.set_profile(wire, mpt_sim::world::Direction::There, delay(10));
    pair.world.run_until(at(45_000));
    assert!(share(&pair) == 0.0, "{}", share(&pair));
}

#[test]
fn two_paths_of_different_delay_reorder_exactly_so() {
    let mut pair = pair(vec![plan(delay(5), delay(5)), plan(delay(15), delay(5))]);
    talk(&mut pair, 1000, 11_000);
    pair.world.run_until(at(12_000));
    let reordering = pair.connection(pair.right).reordering();
    // Of the packets, 1 ms apart, each second one takes 10 ms longer. Of the others those sent 1, 3, 5,
    // 7 and 9 ms after it come first, the first of them 9 ms before; between these come the four of its
    // own path that were sent before it.
    assert_eq!(reordering.packets, 10_000);
    let late = reordering.reordered;
    assert!((4995..=5000).contains(&late), "{late}");
    assert!(reordering.ratio().is_some_and(|ratio| (ratio - 0.5).abs() < 0.001));
    assert_eq!(reordering.extent_max, 9);
    assert!(reordering.extent_mean().is_some_and(|mean| mean > 8.98), "{reordering:?}");
    assert_eq!(reordering.late_max, Duration::from_millis(9));
    assert!(reordering.late_mean().is_some_and(|mean| mean.as_secs_f64() > 0.008_98));
    // Directly before each comes one of the fast path, and before that one of its own; save the first,
    // and the last ones, when the fast path has nothing more to bring.
    assert_eq!(reordering.n_reordering[1..], [1, 1, 1, 1]);
    assert!((late - 5..=late).contains(&reordering.n_reordering[0]), "{reordering:?}");
    let shares = shares(&reordering);
    assert!(
        matches!(shares[..], [(-5, early), (5, late)] if early > 0.49 && late > 0.49),
        "{shares:?}"
    );
    assert_eq!(reordering.buffer_occupancy.iter().sum::<u64>(), 10_000);
    // When one of the slow path has come the next one of it is missing still.
    assert_eq!(reordering.buffer_occupancy.len(), 6, "{:?}", reordering.buffer_occupancy);
    // Each path keeps its order, and so does the way back.
    for number in [0, 1] {
        let reordering = pair.connection(pair.right).path_reordering(PathId(number));
        assert_eq!((reordering.packets, reordering.reordered), (5000, 0));
        assert_eq!(reordering.density.into_iter().collect::<Vec<_>>(), [(0, 5000)]);
    }
    let back = pair.connection(pair.left).reordering();
    assert_eq!((back.packets, back.reordered), (10_000, 0));
}

#[test]
fn a_path_that_reorders_and_copies_is_measured_too() {
    let wild = Profile {
        jitter: Duration::from_millis(5),
        duplicate: 0.02,
        loss: Loss::Random(0.01),
        ..delay(30)
    };
    let mut pair = pair(vec![plan(wild, delay(30)), plan(delay(30), delay(30))]);
    talk(&mut pair, 1000, 31_000);
    pair.world.run_until(at(34_000));
    let right = pair.connection(pair.right);
    let [first, second] = [0, 1].map(|number| right.path_reordering(PathId(number)));
    assert!(first.ratio().is_some_and(|ratio| ratio > 0.3), "{first:?}");
    assert!(first.late_max < Duration::from_millis(50), "{first:?}");
    assert!((200..400).contains(&first.duplicates), "{}", first.duplicates);
    assert_eq!((second.reordered, second.duplicates), (0, 0));
    // Copies do not make up for what was lost.
    let came = path(&pair, pair.right, 0).stats.received.packets;
    assert_eq!(came, first.packets + first.duplicates);
    let sent = path(&pair, pair.left, 0).stats.sent.packets;
    assert_eq!(path(&pair, pair.right, 0).quality.lost, Some(sent - first.packets));
    let reordering = right.reordering();
    assert_eq!(reordering.packets, first.packets + second.packets);
    assert_eq!(reordering.lost + reordering.missing, sent - first.packets);
}

#[test]
fn a_restart_at_either_end_leaves_the_sums_and_disturbs_nothing() {
    let mut pair = pair(vec![plan(delay(10), delay(10)), plan(delay(10), delay(10))]);
    talk(&mut pair, 1000, 10_000);
    pair.world.run_until(at(5000));
    pair.world.stop(pair.left);
    pair.world.run_until(at(5100));
    pair.world.start(pair.left);
    pair.world.run_until(at(12_000));
    let right = pair.connection(pair.right).reordering();
    // The first 64 numbers would wait for those before them.
    assert_eq!((right.reordered, right.duplicates), (0, 0), "{right:?}");
    assert!(right.packets > 8500, "{right:?}");
    for number in [0, 1] {
        let quality = path(&pair, pair.right, number).quality;
        assert!(quality.lost.is_some_and(|lost| lost < 15), "{quality:?}");
        let round_trip = path(&pair, pair.left, number).quality.round_trip;
        assert!(round_trip.is_some_and(|trip| trip.min == Duration::from_millis(20)));
    }
}
