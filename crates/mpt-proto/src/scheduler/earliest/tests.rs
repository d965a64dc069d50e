use super::*;

const LEN: usize = 1000;

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn earliest(paths: &[(u64, u64)]) -> Earliest {
    let mut earliest = Earliest::default();
    earliest.set_paths((0..paths.len() as u8).map(PathId));
    for (index, &(rate, millis)) in (0..).zip(paths) {
        earliest.set_path(PathId(index), Some(rate), Duration::from_millis(millis), Duration::ZERO);
    }
    earliest
}

/// Where the packets of a sender go that never stops, in `millis`, and when each arrives.
fn saturate(earliest: &mut Earliest, millis: u64) -> Vec<(u8, Instant)> {
    let mut sent = Vec::new();
    for now in (0..millis * 1000).step_by(100).map(at) {
        while let Some(Choice::Path(path)) = earliest.select(now, LEN, Duration::ZERO) {
            let lane = earliest.lanes.iter().find(|lane| lane.path == path).expect("a path");
            sent.push((path.0, lane.arrival(now, LEN)));
            earliest.commit(now, path, LEN);
        }
        for path in (0..earliest.lanes.len() as u8).map(PathId) {
            while earliest.committed(path) > 0 && earliest.may_send(now, path) {
                earliest.on_sent(now, path, LEN);
            }
        }
    }
    sent
}

#[test]
fn busy_paths_get_what_they_can_carry_and_packets_arrive_in_order() {
    // 8 Mbit/s and, 40 ms slower, 2 Mbit/s.
    let mut earliest = earliest(&[(1_000_000, 0), (250_000, 40)]);
    let sent = saturate(&mut earliest, 2000);
    let slow = sent.iter().filter(|(path, _)| *path == 1).count() as f64;
    let share = slow / sent.len() as f64;
    assert!((0.19..0.21).contains(&share), "{share}");
    assert!((2450..2600).contains(&sent.len()), "{}", sent.len());
    let worst = sent.windows(2).map(|pair| pair[0].1.since(pair[1].1)).max();
    assert!(worst <= Some(Duration::from_millis(5)), "{worst:?}");
}

#[test]
fn paths_too_fast_to_be_paced_get_their_shares_and_hold_nothing_back() {
    // 8 and 16 Gbit/s, and as much is offered.
    let mut earliest = earliest(&[(1_000_000_000, 0), (2_000_000_000, 0)]);
    let mut sent = [0; 2];
    for now in (0..20_000).step_by(100).map(at) {
        for _ in 0..300 {
            let choice = earliest.select(now, LEN, Duration::ZERO);
            let Some(Choice::Path(path)) = choice else { panic!("{choice:?} at {now:?}") };
            earliest.commit_chosen(now, path, LEN);
            assert!(earliest.may_send(now, path), "{now:?}");
            earliest.on_sent(now, path, LEN);
            sent[path.index()] += 1;
        }
    }
    assert_eq!(sent.iter().sum::<u32>(), 60_000);
    let share = f64::from(sent[0]) / 60_000.0;
    assert!((0.3..0.37).contains(&share), "{share}");
    // One that is slower still holds back what it cannot carry.
    let mut slow = self::earliest(&[(100_000_000, 0), (50_000_000, 0)]);
    let taken = (0..500).take_while(|_| {
        let Some(Choice::Path(path)) = slow.select(at(0), LEN, Duration::ZERO) else {
            return false;
        };
        slow.commit_chosen(at(0), path, LEN);
        true
    });
    assert!(taken.count() < 400);
}

#[test]
fn where_the_peer_holds_packets_the_slow_path_joins_so_much_earlier() {
    for (equal, least, most) in [(0, 38, 44), (20, 18, 24), (40, 0, 3)] {
        let mut earliest = earliest(&[(1_000_000, 0), (250_000, 40)]);
        let equal = Duration::from_millis(equal);
        let first = (0..60).position(|_| {
            let choice = earliest.select_equalised(at(0), equal);
            let Some(Choice::Path(path)) = choice else { return false };
            earliest.commit(at(0), path, LEN);
            path.0 == 1
        });
        assert!(first.is_some_and(|first| (least..most).contains(&first)), "{equal:?}: {first:?}");
    }
}

#[test]
fn a_path_of_a_low_rate_that_has_no_room_does_not_keep_out_one_that_has() {
    // A packet takes 4 ms on the first path, and 0.1 ms on the second.
    let mut earliest = earliest(&[(250_000, 0), (10_000_000, 180)]);
    let equal = Duration::from_millis(70);
    let (mut sent, mut idle) = (0, 0);
    for now in (0..2_000_000).step_by(100).map(at) {
        while let Some(Choice::Path(path)) = earliest.select_equalised(now, equal) {
            earliest.commit(now, path, LEN);
            sent += u32::from(path.0 == 1);
        }
        idle += u32::from(earliest.committed(PathId(1)) == 0);
        for path in [PathId(0), PathId(1)] {
            while earliest.committed(path) > 0 && earliest.may_send(now, path) {
                earliest.on_sent(now, path, LEN);
            }
        }
    }
    assert!(sent > 19_800 && idle == 0, "{sent} of 20000, idle {idle} times");
}

#[test]
fn a_slow_path_waits_until_the_fast_one_has_as_much_backlog() {
    let mut earliest = earliest(&[(1_000_000, 0), (250_000, 40)]);
    let mut chosen = Vec::new();
    for _ in 0..40 {
        let Some(Choice::Path(path)) = earliest.select(at(0), LEN, Duration::ZERO) else { break };
        earliest.commit(at(0), path, LEN);
        chosen.push(path.0);
    }
    let first = chosen.iter().position(|&path| path == 1);
    assert!((38..44).contains(&first.unwrap_or(chosen.len())), "{chosen:?}");
}

#[test]
fn no_more_is_committed_than_the_difference_of_delays() {
    let mut earliest = earliest(&[(1_000_000, 0), (250_000, 40)]);
    let mut count = 0;
    let until = loop {
        match earliest.select(at(0), LEN, Duration::ZERO) {
            Some(Choice::Path(path)) => earliest.commit(at(0), path, LEN),
            Some(Choice::Wait(until)) => break until,
            None => panic!("no path"),
        }
        count += 1;
    };
    assert!((42..50).contains(&count), "{count}");
    assert!(until > at(0) && until <= at(4000), "{until:?}");
}

#[test]
fn a_path_beyond_the_most_skew_and_one_without_a_rate() {
    let mut far = earliest(&[(1_000_000, 0), (1_000_000, 400)]);
    assert!(saturate(&mut far, 100).iter().all(|(path, _)| *path == 0));
    let mut open = Earliest::default();
    open.set_paths([PathId(3)].into_iter());
    assert_eq!(open.select(at(0), LEN, Duration::ZERO), Some(Choice::Path(PathId(3))));
    assert_eq!((open.rate(), Earliest::default().select(at(0), LEN, Duration::ZERO)), (None, None));
}

#[test]
fn after_a_stall_little_is_made_up_for() {
    let mut earliest = earliest(&[(1_000_000, 0)]);
    for _ in 0..20 {
        earliest.commit(at(0), PathId(0), LEN);
    }
    earliest.on_sent(at(0), PathId(0), LEN);
    // Stalled for a second: the burst after it is that of 4 ms.
    earliest.on_sent(at(1_000_000), PathId(0), LEN);
    let mut burst = 0;
    while earliest.may_send(at(1_000_000), PathId(0)) && earliest.committed(PathId(0)) > 0 {
        earliest.on_sent(at(1_000_000), PathId(0), LEN);
        burst += 1;
    }
    assert!((2..=5).contains(&burst), "{burst}");
}

#[test]
fn a_path_that_others_leave_nothing_to_send_is_known_to_idle() {
    let mut earliest = earliest(&[(1_000_000, 0), (1_000_000, 0)]);
    let mut send = |micros| {
        earliest.commit(at(micros), PathId(0), LEN);
        earliest.on_sent(at(micros), PathId(0), LEN)
    };
    assert!(send(0), "the first one");
    assert_eq!([1000, 2000, 5000].map(&mut send), [false; 3]);
    assert!(send(12_000), "nothing was sent for six milliseconds");
}

#[test]
fn a_path_with_a_price_is_taken_by_what_has_waited_for_it() {
    let mut earliest = Earliest::default();
    earliest.set_paths([0, 1].map(PathId).into_iter());
    earliest.set_path(PathId(0), Some(1_000_000), Duration::from_millis(5), Duration::ZERO);
    earliest.set_path(PathId(1), Some(1_000_000), Duration::ZERO, Duration::from_millis(50));
    let waited = Duration::from_millis;
    assert_eq!(earliest.select(at(0), LEN, waited(0)), Some(Choice::Path(PathId(0))));
    earliest.commit(at(0), PathId(0), 100_000);
    // It leaves in 100 ms, and 2 ms before that more is taken.
    assert_eq!(earliest.select(at(0), LEN, waited(0)), Some(Choice::Wait(at(50_000))));
    assert_eq!(earliest.select(at(0), LEN, waited(49)), Some(Choice::Wait(at(1000))));
    assert_eq!(earliest.select(at(0), LEN, waited(50)), Some(Choice::Path(PathId(1))));
    // Where all have a price, the cheapest is free.
    earliest.set_paths(std::iter::once(PathId(1)));
    assert_eq!(earliest.select(at(0), LEN, waited(0)), Some(Choice::Path(PathId(1))));
}

#[test]
fn the_lowest_delay_of_those_that_have_room_takes_all() {
    let mut earliest = Earliest::new(Rule::LowestRtt);
    earliest.set_paths([0, 1].map(PathId).into_iter());
    earliest.set_path(PathId(0), Some(1_000_000), Duration::ZERO, Duration::ZERO);
    earliest.set_path(PathId(1), Some(100_000_000), Duration::from_millis(1), Duration::ZERO);
    let select = |earliest: &Earliest| earliest.select(at(0), LEN, Duration::ZERO);
    assert_eq!(select(&earliest), Some(Choice::Path(PathId(0))), "though it takes longer");
    earliest.commit(at(0), PathId(0), 3000);
    assert_eq!(select(&earliest), Some(Choice::Path(PathId(1))));
    earliest.commit(at(0), PathId(1), 1_000_000);
    assert_eq!(select(&earliest), Some(Choice::Wait(at(1000))));
}

#[test]
fn copies_go_by_all_that_have_room_and_no_price() {
    let mut earliest = Earliest::new(Rule::Redundant);
    earliest.set_paths([0, 1, 2, 3].map(PathId).into_iter());
    for (index, price) in [(0, 0), (1, 0), (2, 0), (3, 50)] {
        let price = Duration::from_millis(price);
        earliest.set_path(PathId(index), Some(1_000_000), Duration::ZERO, price);
    }
    earliest.commit(at(0), PathId(1), 5000);
    assert_eq!(earliest.copied_to(at(0), PathId(0)).collect::<Vec<_>>(), [PathId(2)]);
    assert_eq!(earliest.rate(), Some(1_000_000), "all carry the same");
}

#[test]
fn a_flow_stays_on_a_path_without_a_limit_unless_it_gains_something() {
    let mut earliest = Earliest::default();
    earliest.set_paths((0..2).map(PathId));
    let set = |earliest: &mut Earliest, index, micros, burst| {
        let delay = Duration::from_micros(micros);
        earliest.set_path(PathId(index), None, delay, Duration::ZERO);
        earliest.set_burst(PathId(index), burst, None);
    };
    let select = |earliest: &Earliest| earliest.select(at(0), LEN, Duration::ZERO);
    set(&mut earliest, 0, 0, None);
    set(&mut earliest, 1, 500, None);
    assert_eq!(select(&earliest), Some(Choice::Path(PathId(0))));
    earliest.commit_chosen(at(0), PathId(0), LEN);
    set(&mut earliest, 0, 900, None);
    set(&mut earliest, 1, 0, None);
    assert_eq!(select(&earliest), Some(Choice::Path(PathId(0))), "noise");
    // The other one is ten times as fast.
    set(&mut earliest, 0, 0, Some(1_250_000));
    set(&mut earliest, 1, 900, Some(12_500_000));
    assert_eq!(select(&earliest), Some(Choice::Path(PathId(1))));
    // But much slower.
    set(&mut earliest, 1, 20_000, Some(12_500_000));
    assert_eq!(select(&earliest), Some(Choice::Path(PathId(0))));
}

#[test]
fn a_path_that_loses_is_as_slow_as_its_repairs_make_it() {
    let mut earliest = Earliest::default();
    earliest.set_paths((0..2).map(PathId));
    earliest.set_path(PathId(1), None, Duration::from_millis(4), Duration::ZERO);
    for (risk, best) in [(2, 0), (8, 1)] {
        earliest.set_risk(PathId(0), Duration::from_millis(risk));
        let choice = earliest.select(at(0), LEN, Duration::ZERO);
        assert_eq!(choice, Some(Choice::Path(PathId(best))), "{risk} ms");
        assert_eq!(earliest.select_ahead(at(0), LEN), Some(PathId(best)), "{risk} ms");
    }
}

#[test]
fn what_trains_have_shown_of_a_path_bounds_what_is_sent_on_it_before_it_is_full() {
    let mut earliest = Earliest::default();
    earliest.set_paths((0..2).map(PathId));
    // A queue of 20 ms stands before the fast one. The other one carries a tenth.
    for (index, micros, rate) in [(0, 20_000, 12_500_000), (1, 0, 1_250_000)] {
        earliest.set_path(PathId(index), None, Duration::from_micros(micros), Duration::ZERO);
        earliest.set_burst(PathId(index), Some(rate), Some(rate));
    }
    let mut taken = [0; 2];
    for _ in 0..200 {
        let choice = earliest.select(at(0), 1250, Duration::ZERO);
        let Some(Choice::Path(path)) = choice else { panic!("{choice:?}") };
        earliest.commit_chosen(at(0), path, 1250);
        earliest.on_sent(at(0), path, 1250);
        taken[path.index()] += 1;
    }
    assert!((30..=60).contains(&taken[1]), "{taken:?}");
}

#[test]
fn a_path_without_a_limit_carries_what_one_that_begins_again_has_no_room_for() {
    // 20 Mbit/s of what it carries, and one that takes 100 ms longer and would take a burst in 4 ms.
    let mut earliest = earliest(&[(2_500_000, 0), (1, 100)]);
    earliest.set_path(PathId(1), None, Duration::from_millis(100), Duration::ZERO);
    earliest.set_burst(PathId(1), Some(3_750_000), None);
    for sent in 0..400 {
        let choice = earliest.select(at(0), LEN, Duration::ZERO);
        let Some(Choice::Path(path)) = choice else { panic!("{choice:?} after {sent}") };
        earliest.commit_chosen(at(0), path, LEN);
    }
    // Until a packet arrives by the one as late as by the other, which carried nothing so far.
    assert_eq!(earliest.committed(PathId(0)), 260 * LEN);
}
