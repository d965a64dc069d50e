//! What holds for any arrivals: copies, forgeries, and paths that break their order.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

proptest! {
    /// Nothing twice, nothing invented, flows in order unless late, never held too long, and the sums balance.
    #[test]
    fn invariants(
        start in prop_oneof![Just(0), any::<u32>()],
        window in 1..300_u32,
        arrivals in prop::collection::vec(
            (
                (0..400_u32, 0..2_u8, 0..8_u32, 0..20_u64),
                prop::bool::weighted(0.02),
                prop::bool::weighted(0.8),
            ),
            1..600,
        ),
    ) {
        let mut bench = Bench::new(2, window).at(start);
        bench.order.set_wait(PathId(0), ms(30), ms(2));
        let (mut drops, mut sent) = (0, HashSet::new());
        for (round, ((offset, path, flow, wait), beacon, in_turn)) in arrivals.iter().enumerate() {
            // The front moves on by one each time; arrivals stand around it. Every eighth number, some missing, is of
            // the same flow.
            let seq = start.wrapping_add(round as u32 + offset);
            if *beacon {
                bench.sink.now = bench.now;
                bench.order.covered(bench.now, PathId(*path), Seq::new(seq), &mut bench.sink);
                continue;
            }
            let after = match flow {
                0 => After::First,
                1 => After::Far,
                _ => after(seq.wrapping_sub(8 * (flow - 1))),
            };
            sent.insert(seq);
            drops += u64::from(bench.receive_sent(*in_turn, *path, seq, after).is_err());
            if let Some(deadline) = bench.order.deadline() {
                prop_assert!(deadline > bench.now && deadline <= bench.now + ms(250));
            }
            bench.run_to(bench.now + ms(*wait));
        }
        let stats = bench.order.stats();
        let delivered = stats.in_order + stats.reordered + stats.late;
        prop_assert_eq!(delivered, bench.sink.delivered.len() as u64);
        let beacons = arrivals.iter().filter(|arrival| arrival.1).count() as u64;
        prop_assert_eq!(delivered + stats.held + drops + beacons, arrivals.len() as u64);
        prop_assert!(stats.held < u64::from(window));
        bench.wait(ms(250));
        prop_assert_eq!(bench.order.stats().held, 0, "nothing is held for ever");
    }

    /// The same sequence of numbers in any order, and some twice.
    #[test]
    fn every_packet_is_delivered_once(
        arrivals in prop::collection::vec((0..200_u32, 0..2_u8, 0..5_u32), 1..800),
        flows in 1..9_u32,
    ) {
        let mut bench = Bench::default();
        let mut sent = HashSet::new();
        for (seq, path, wait) in arrivals {
            let after = if seq < flows { After::First } else { after(seq - flows) };
            let outcome = bench.receive(path, seq, after);
            let first = sent.insert(seq);
            prop_assert_eq!(outcome, if first { Ok(Accepted::Fits) } else { Err(Drop::Duplicate) });
            bench.run_to(bench.now + ms(u64::from(wait)));
        }
        bench.run_to(bench.now + ms(250));
        let order: Vec<u32> = bench.sink.delivered.iter().map(|(seq, _)| *seq).collect();
        prop_assert_eq!(order.len(), sent.len());
        prop_assert_eq!(order.iter().copied().collect::<HashSet<_>>(), sent);
        // What comes out of its flow's order was late.
        let mut highest = vec![None; flows as usize];
        let mut overtaken = 0;
        for seq in order {
            let highest = &mut highest[(seq % flows) as usize];
            overtaken += u64::from(highest.is_some_and(|highest| highest > seq));
            *highest = (*highest).max(Some(seq));
        }
        prop_assert!(overtaken <= bench.order.stats().late);
    }
}

#[test]
fn what_is_sent_out_of_turn_says_nothing_of_its_path_and_is_not_held_for_ever() {
    let mut bench = Bench::default();
    bench.accept_all(0, [0]);
    for seq in [2, 3] {
        assert_eq!(bench.receive_sent(false, 1, seq, After::Unknown), Ok(Accepted::Fits));
        assert_eq!(bench.wait(ms(10)), [], "both paths may bring 1");
    }
    assert_eq!(bench.accept_all(0, [4]), [], "path 1 may bring it");
    bench.order.set_wait(PathId(0), ms(250), Duration::ZERO);
    assert_eq!(bench.wait(ms(230) - Duration::from_nanos(1)), []);
    assert_eq!(bench.wait(Duration::from_nanos(1)), [2, 3, 4]);

    // Those that follow are held no longer than the first one.
    assert_eq!(bench.receive_sent(false, 1, 7, After::Unknown), Ok(Accepted::Fits));
    assert_eq!(bench.wait(ms(100)), []);
    assert_eq!(bench.receive_sent(false, 1, 9, After::Unknown), Ok(Accepted::Fits));
    assert_eq!(bench.wait(ms(150)), [7]);
    assert_eq!(bench.wait(ms(100)), [9]);
    assert_eq!(bench.order.deadline(), None);
}

#[test]
fn what_is_missing_before_a_packet_out_of_turn_may_be_repaired_as_well() {
    let mut bench = Bench::default();
    bench.order.repairs.set_wait(Instant::ZERO, ms(400));
    bench.accept_all(0, [0]);
    assert_eq!(bench.receive_sent(false, 1, 2, After::Unknown), Ok(Accepted::Fits));
    assert_eq!(bench.wait(ms(400) - Duration::from_nanos(1)), []);
    assert_eq!(bench.wait(Duration::from_nanos(1)), [2]);
}

#[test]
fn what_fills_a_gap_is_timely_as_long_as_it_may_have_been_overtaken() {
    let mut bench = Bench::default();
    bench.accept_all(0, [0]);
    assert!(bench.order.is_timely(bench.now, Seq::new(1)));
    assert_eq!(bench.receive_sent(false, 1, 2, After::Unknown), Ok(Accepted::Fits));
    for (after, expected) in [(9, [true, true, true]), (10, [false, false, true])] {
        let now = bench.now + ms(after);
        assert_eq!([1, 2, 3].map(|seq| bench.order.is_timely(now, Seq::new(seq))), expected);
    }
}
