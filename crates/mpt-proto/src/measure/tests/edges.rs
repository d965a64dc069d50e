//! Beginnings, restarts, forgeries, and what is remembered of what.

use super::super::bits;
use super::super::stream::Arrival;
use super::*;

#[test]
fn packets_in_order_take_no_memory() {
    let in_order = stream(0..100_000);
    assert_eq!(in_order.memory(), 0);
    let report = in_order.report();
    assert_eq!((report.packets, report.ratio()), (100_000, Some(0.0)));
    assert_eq!(
        (report.density.get(&0), &report.buffer_occupancy[..]),
        (Some(&100_000), &[100_000][..])
    );
    // Gaps and nothing else: a short memory, and the set of numbers.
    let gaps = stream((0..100_000).map(|n| n * 2));
    assert!(gaps.memory() <= 4096, "{}", gaps.memory());
    assert_eq!(gaps.report().reordered, 0);
    let mut every_pair_swapped = stream((0..100_000).map(|n| n ^ 1));
    assert!(every_pair_swapped.memory() <= 64 * 1024, "{}", every_pair_swapped.memory());
    every_pair_swapped.restart();
    assert_eq!(every_pair_swapped.report().density.values().sum::<u64>(), 100_000);
}

#[test]
fn nothing_arrived_is_nothing() {
    let report = Stream::default().report();
    assert_eq!(report, Reordering::default());
    assert_eq!((report.ratio(), report.extent_mean(), report.late_mean()), (None, None, None));
}

#[test]
fn a_number_is_lost_when_one_in_reach_no_longer_misses_it() {
    let reach = Reordering::REACH;
    let mut stream = stream((0..10).chain(11..reach + 10));
    assert_eq!((stream.report().lost, stream.report().missing), (0, 1));
    assert_eq!(stream.clone().on_arrival(at(0), Seq::new(10)), Arrival::First);
    stream.on_arrival(at(0), Seq::new(reach + 10));
    assert_eq!((stream.report().lost, stream.report().missing), (1, 0));
    assert_eq!(stream.on_arrival(at(0), Seq::new(10)), Arrival::Stray);
    // A long run forgets it all the same.
    for n in 11..100_000 {
        stream.on_arrival(at(0), Seq::new(reach + n));
    }
    assert_eq!((stream.report().lost, stream.report().missing), (1, 0));
}

#[test]
fn numbers_before_the_first_are_waited_for_only_at_a_senders_beginning() {
    let report = stream([2, 0, 1, 3]).report();
    assert_eq!((report.packets, report.reordered, report.missing), (4, 2, 0));
    let report = stream([1000, 998, 999, 1001]).report();
    assert_eq!((report.packets, report.reordered, report.duplicates), (2, 0, 0));
}

#[test]
fn a_restart_keeps_the_sums() {
    let mut stream = stream([0, 1, 4, 2, 5, 5]);
    stream.restart();
    for n in [0, 1, 2, 4, 3] {
        stream.on_arrival(at(0), Seq::new(n));
    }
    let report = stream.report();
    assert_eq!((report.packets, report.reordered, report.duplicates), (10, 2, 1));
    assert_eq!((report.lost, report.missing), (1, 0));
    assert_eq!(report.density.values().sum::<u64>(), 10);
    assert_eq!(report.density[&0], 6, "{report:?}");
}

#[test]
fn an_unannounced_restart_is_accepted_after_a_while() {
    let mut stream = stream(0..100_000);
    let arrivals: Vec<_> = (0..40).map(|n| stream.on_arrival(at(0), Seq::new(n))).collect();
    assert_eq!(arrivals[..31], [Arrival::Stray; 31]);
    assert_eq!(arrivals[31], Arrival::Restart);
    assert_eq!(arrivals[32..], [Arrival::First; 8]);
    // One that begins within reach brings what seem to be copies.
    let mut stream = super::stream(0..5000);
    let arrivals: Vec<_> = (0..1030).map(|n| stream.on_arrival(at(0), Seq::new(n))).collect();
    assert_eq!(arrivals[1022..1025], [Arrival::Duplicate, Arrival::Restart, Arrival::First]);
}

#[test]
fn forged_jumps_are_strays_and_change_nothing() {
    let mut forged = stream(0..1000);
    let genuine = forged.report();
    for n in 0..10_000_u32 {
        let far = 100_000 + (n.wrapping_mul(0x9e37_79b9) >> 1);
        assert_eq!(forged.on_arrival(at(0), Seq::new(far)), Arrival::Stray, "{far}");
    }
    assert_eq!(forged.report(), genuine);
    // As far as it goes without being one, again and again, with a late one each time.
    let mut order = Order::default();
    for n in 0..5000_u32 {
        order.on_arrival(at(0), Seq::new(n.wrapping_mul(bits::LEN - 1)));
        order.on_arrival(at(0), Seq::new(n.wrapping_mul(bits::LEN - 1)).minus(3));
    }
    let report = order.report();
    assert_eq!((report.packets, report.reordered), (10_000, 5000));
    assert!(order.memory() < 64 * 1024, "{}", order.memory());
}

#[test]
fn over_a_path_that_was_idle_the_numbers_may_go_half_around() {
    let report = order(8, [5, 6, 6 + (1 << 31), 7 + (1 << 31), 100, 101]).report();
    assert_eq!((report.packets, report.reordered), (6, 0));
}

#[test]
fn packets_later_than_the_history_get_its_maximum_lateness() {
    // A run per packet; 64 are remembered before the last as long as none was reordered.
    let report = order(8, (0..1000).map(|n| n * 2).chain([1])).report();
    assert_eq!((report.reordered, report.extent_max), (1, 65));
    assert_eq!(report.n_reordering.len(), Reordering::MAX_N);
    assert_eq!(report.density.into_iter().collect::<Vec<_>>(), [(0, 1000)]);
}

#[test]
fn a_packet_that_is_displaced_too_far_displaces_no_other() {
    // 0 is late by four places, of which three count; every second number is lost.
    let report = order(3, [2, 4, 6, 8, 1].into_iter().chain((5..50).map(|n| n * 2))).report();
    let far: u64 = report.density.iter().filter(|(places, _)| **places != 0).map(|(_, n)| n).sum();
    assert!(far <= 4, "{report:?}");
}
