use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::wire::extended::feedback::Block;

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// A recorder, and datagrams of 100 bytes that take 20 ms by two clocks.
struct Bench {
    recorder: Recorder,
    now: Instant,
}

const OFFSET: u32 = u32::MAX - 5_000;

impl Bench {
    fn new() -> Self {
        Self { recorder: Recorder::default(), now: at(1_000_000) }
    }

    fn receive(&mut self, sequence: u32) -> Recorded {
        self.now += Duration::from_micros(10);
        let sent = OFFSET.wrapping_add(self.now.micros()).wrapping_sub(20_000);
        let at = self.now;
        let datagram = Datagram { sequence, sent, at, len: 100, ce: false, is_sample: true };
        self.recorder.on_arrival(self.now, datagram)
    }

    /// Receives those that all come for the first time.
    fn receive_all(&mut self, sequences: impl IntoIterator<Item = u32>) {
        for sequence in sequences {
            assert!(self.receive(sequence).is_first(), "{sequence}");
        }
    }

    fn block(&mut self) -> Block {
        self.recorder.block(self.now, 7, false, false).expect("something arrived")
    }
}

fn ranges(block: &Block) -> Vec<(u16, u16)> {
    block.ranges.iter().map(|range| (range.missing, range.received)).collect()
}

#[test]
fn in_order_nothing_is_remembered() {
    for first in [0, 1000, u32::MAX - 300] {
        let mut bench = Bench::new();
        bench.receive_all((0..5000).map(|n| first.wrapping_add(n)));
        let block = bench.block();
        assert_eq!(
            (block.path, block.received, block.received_bytes, block.lost),
            (7, 5000, 500_000, 0)
        );
        assert_eq!(block.highest, first.wrapping_add(4999));
        assert_eq!(block.resolved, first.wrapping_add(5000));
        assert_eq!((block.ranges.len(), block.bitmap.len()), (0, 0));
        assert_eq!(bench.recorder.memory(), 0);
    }
}

#[test]
fn once_all_that_is_remembered_was_received_nothing_is() {
    for first in [0, 1000, u32::MAX - 300] {
        let mut bench = Bench::new();
        bench.receive_all((0..10).chain(11..100).map(|step: u32| first.wrapping_add(step)));
        assert!(bench.recorder.memory() > 0, "one is missing");
        let in_order = (100..3 * LEN).map(|step: u32| first.wrapping_add(step));
        bench.receive_all(in_order);
        assert_eq!(bench.recorder.memory(), 0, "from {first}");
        assert_eq!(bench.receive(first.wrapping_add(3 * LEN)), Recorded::InOrder);
        for back in [0, 1, 64, LEN - 1] {
            let again = first.wrapping_add(3 * LEN - back);
            assert_eq!(bench.receive(again), Recorded::Duplicate, "{back} back");
        }
        assert_eq!((bench.recorder.lost(), bench.recorder.received()), (1, u64::from(3 * LEN)));
        // What is missing later is known like the first one.
        bench.receive_all([first.wrapping_add(3 * LEN + 2)]);
        assert_eq!(bench.recorder.lost(), 2);
        assert_eq!(bench.receive(first.wrapping_add(3 * LEN + 1)), Recorded::Late);
        assert_eq!(bench.recorder.lost(), 1);
    }
}

#[test]
fn on_a_path_that_keeps_its_order_a_gap_is_a_loss() {
    let mut bench = Bench::new();
    bench.receive_all([u32::MAX - 1, 2, 3]);
    let block = bench.block();
    assert_eq!((block.lost, block.received, block.resolved), (3, 3, 4));
}

#[test]
fn late_datagrams_are_no_longer_lost_and_copies_are_duplicates() {
    let mut bench = Bench::new();
    bench.receive_all([u32::MAX, 0, 4]);
    for (sequence, what) in [
        (4, Recorded::Duplicate),
        (0, Recorded::Duplicate),
        (2, Recorded::Late),
        (2, Recorded::Duplicate),
        (u32::MAX, Recorded::Duplicate),
    ] {
        assert_eq!(bench.receive(sequence), what, "{sequence}");
    }
    let block = bench.block();
    assert_eq!((block.lost, block.received, block.late, block.duplicates), (2, 4, 1, 4));
    assert_eq!(block.received_bytes, 400);
}

#[test]
fn what_was_sent_before_the_first_one_is_not_late() {
    let mut bench = Bench::new();
    bench.receive_all([10, 8, 11]);
    assert_eq!(bench.receive(8), Recorded::Duplicate);
    let block = bench.block();
    assert_eq!((block.lost, block.received, block.late, block.resolved), (0, 3, 0, 12));
}

#[test]
fn within_the_margin_what_is_missing_may_come() {
    let mut bench = Bench::new();
    bench.recorder.set_margin(Duration::from_millis(5));
    bench.receive_all([0, 1, 4, 5, 7]);
    let block = bench.block();
    assert_eq!((block.lost, block.resolved), (0, 2));
    assert_eq!(ranges(&block), [(0, 1), (1, 2)], "7, then 5 and 4; 2 is not resolved");
    bench.receive_all([3]);
    assert_eq!(ranges(&bench.block()), [(0, 1), (1, 3)]);
    bench.receive_all([2]);
    assert_eq!(bench.block().resolved, 6);
    bench.now += Duration::from_millis(5);
    bench.receive_all([8]);
    let block = bench.block();
    assert_eq!((block.lost, block.resolved), (0, 6), "7 came after the first that was missing");
    bench.now += Duration::from_millis(5);
    bench.receive_all([9]);
    let block = bench.block();
    assert_eq!((block.lost, block.resolved), (1, 10));
}

#[test]
fn feedback_alone_sees_that_the_margin_is_over() {
    let mut bench = Bench::new();
    bench.recorder.set_margin(Duration::from_millis(5));
    bench.receive_all([0, 2]);
    bench.now += Duration::from_millis(5);
    assert_eq!(bench.block().lost, 1);
}

#[test]
fn what_leaves_the_window_is_lost() {
    let mut bench = Bench::new();
    bench.recorder.set_margin(Duration::from_secs(1));
    // So many packets may overtake one where delays vary by tens of milliseconds.
    bench.receive_all((0..1).chain(2..10_000));
    assert_eq!(bench.block().lost, 0);
    bench.receive_all(10_000..=LEN);
    assert_eq!(bench.block().lost, 0, "1 is the oldest");
    bench.receive_all([LEN + 1]);
    let block = bench.block();
    assert_eq!((block.lost, block.resolved), (1, LEN + 2));
    assert_eq!(bench.receive(1), Recorded::Stray, "out of reach");
    assert_eq!(bench.receive(2), Recorded::Duplicate);
}

#[test]
fn a_long_outage_is_counted_exactly() {
    for (margin, seconds) in [(0, 10), (5, 10), (5, 600)] {
        let mut bench = Bench::new();
        bench.recorder.set_margin(Duration::from_millis(margin));
        bench.receive_all([5, 6, 9]);
        bench.now += Duration::from_secs(seconds);
        let lost = 90_000 * seconds as u32;
        bench.receive_all([lost, lost + 1]);
        bench.now += Duration::from_millis(margin);
        bench.receive_all([lost + 2]);
        let block = bench.block();
        assert_eq!((block.received, block.lost), (6, lost - 5 - 3), "{margin} {seconds}");
        assert_eq!(block.resolved, lost + 3);
        assert_eq!(bench.receive(7), Recorded::Stray);
        assert_eq!(bench.receive(lost - 1), Recorded::Late);
    }
}

#[test]
fn forged_path_sequences_lose_nothing() {
    let mut bench = Bench::new();
    bench.receive_all(0..10);
    for forged in [1_000_000, 1 << 31, u32::MAX - 50_000] {
        assert_eq!(bench.receive(forged), Recorded::Stray);
    }
    bench.receive_all(10..20);
    assert_eq!(bench.block().lost, 0);
    // A path that begins anew is believed soon.
    let anew = 3_000_000_000_u32;
    let strays = (anew..).take_while(|n| bench.receive(*n) == Recorded::Stray).count() as u32;
    assert_eq!(strays, 3);
    bench.receive_all(anew + 4..anew + 100);
    let block = bench.block();
    assert_eq!((block.received, block.lost, block.resolved), (20 + 97, 0, anew + 100));
}

#[test]
fn marks_and_times_are_reported_once() {
    let mut bench = Bench::new();
    let sent = |millis: u32| OFFSET.wrapping_add(millis * 1000);
    let mut receive = |millis: u64, sequence, sent, ce| {
        let now = at(millis * 1000);
        let datagram = Datagram { sequence, sent, at: now, len: 1000, ce, is_sample: true };
        bench.recorder.on_arrival(now, datagram);
    };
    receive(100, 1, sent(80), true);
    receive(110, 2, sent(90), false);
    receive(120, 4, sent(94), true);
    receive(130, 3, sent(92), false);
    let block = bench.recorder.block(at(140_000), 0, false, false).unwrap();
    assert_eq!((block.ce, block.highest_sent, block.highest_arrived), (2, sent(94), 120_000));
    assert_eq!((block.first_arrived, block.bytes_after_first), (100_000, 2000), "to the highest");
    assert_eq!(block.delay_min, 20_000_u32.wrapping_sub(OFFSET));
    // 0, 0, 6 and 18 ms above the least.
    assert_eq!(block.delay_mean, 6000);
    assert!((5000..7000).contains(&block.delay_deviation), "{}", block.delay_deviation);
    assert_eq!(bench.recorder.block(at(150_000), 0, false, false), None, "nothing arrived");
    let again = bench.recorder.block(at(150_000), 0, false, true).expect("what is known");
    assert_eq!((again.highest, again.received), (block.highest, block.received));
    bench.recorder.on_arrival(
        at(160_000),
        Datagram {
            sequence: 5,
            sent: sent(130),
            at: at(160_000),
            len: 1000,
            ce: false,
            is_sample: true,
        },
    );
    let block = bench.recorder.block(at(160_000), 0, false, false).unwrap();
    assert_eq!((block.first_arrived, block.bytes_after_first, block.ce), (160_000, 0, 2));
    assert_eq!((block.delay_min, block.delay_mean), (30_000_u32.wrapping_sub(OFFSET), 0));
}

#[test]
fn what_a_datagram_waits_at_this_host_is_not_its_delay() {
    let mut bench = Bench::new();
    bench.receive_all(0..10);
    let before = bench.block();
    // It came in time, and is looked at 15 ms later.
    let at = bench.now + Duration::from_millis(1);
    let sent = OFFSET.wrapping_add(at.micros()).wrapping_sub(20_000);
    let now = at + Duration::from_millis(15);
    let datagram = Datagram { sequence: 10, sent, at, len: 100, ce: false, is_sample: true };
    bench.recorder.on_arrival(now, datagram);
    let block = bench.recorder.block(now, 7, false, false).expect("it arrived");
    assert_eq!((block.delay_min, block.delay_mean), (before.delay_min, 0));
    assert_eq!(block.highest_arrived, at.micros());
    // That the path is not silent was seen when it was looked at.
    assert_eq!(bench.recorder.last_at(), Some(now));
}

#[test]
fn a_beacon_is_true_when_its_path_sequence_has_arrived() {
    let mut bench = Bench::new();
    assert!(!bench.recorder.has_reached(0));
    bench.receive_all([u32::MAX, 3]);
    for (sequence, reached) in [(u32::MAX, true), (2, true), (3, true), (4, false)] {
        assert_eq!(bench.recorder.has_reached(sequence), reached, "{sequence}");
    }
}

#[test]
fn a_bitmap_continues_where_ranges_end() {
    let mut bench = Bench::new();
    bench.recorder.set_margin(Duration::from_secs(10));
    bench.receive_all([0]);
    // Every other one of 200, then half of 1600 in a row.
    bench.receive_all((2..202).step_by(2));
    bench.receive_all(1000..1800);
    let block = bench.block();
    assert_eq!(block.ranges.len(), 32);
    assert_eq!(ranges(&block)[..3], [(0, 800), (799, 1), (1, 1)]);
    assert_eq!(block.resolved, 1);
    assert_eq!(block.bitmap.len(), 16);
    for (at, sequence) in (1..1 + 1024).enumerate() {
        let bit = block.bitmap[at / 64] >> (at % 64) & 1 != 0;
        let received = (1000..1800).contains(&sequence) || (sequence < 202 && sequence % 2 == 0);
        assert_eq!(bit, received, "{sequence}");
    }
}

proptest! {
    /// Against sets, with any order, copies and losses within the window.
    #[test]
    fn counts_are_those_of_sets(
        first: u32,
        margin in 0..3_u64,
        steps in prop::collection::vec((0..12_u32, prop::bool::weighted(0.3), 0..2000_u64), 1..800),
    ) {
        let mut bench = Bench::new();
        bench.recorder.set_margin(Duration::from_millis(margin));
        let (mut received, mut highest, mut copies, mut begin) = (HashSet::new(), 0_u32, 0, None);
        for (step, back, wait) in steps {
            bench.now += Duration::from_micros(wait);
            let offset = if back { highest.saturating_sub(step * 5) } else { highest + step };
            let recorded = bench.receive(first.wrapping_add(offset));
            let is_first = received.insert(offset);
            begin.get_or_insert(offset);
            copies += u16::from(!is_first);
            prop_assert_eq!(recorded == Recorded::Duplicate, !is_first);
            highest = highest.max(offset);
        }
        // All that is still missing is lost once later ones have been here for long enough.
        for end in 1..3 {
            bench.now += Duration::from_millis(margin);
            bench.receive(first.wrapping_add(highest + end));
            received.insert(highest + end);
        }
        bench.now += Duration::from_millis(margin);
        let count = highest + 3;
        let lost = (begin.unwrap()..count).filter(|offset| !received.contains(offset)).count();
        let block = bench.block();
        prop_assert_eq!(block.received, received.len() as u32);
        prop_assert_eq!(block.lost, lost as u32);
        prop_assert_eq!(block.duplicates, copies);
        prop_assert_eq!(block.resolved, first.wrapping_add(count));
    }

    /// Ranges and bitmap say what was received from the resolved one on.
    #[test]
    fn ranges_are_what_was_received(
        first: u32,
        sequences in prop::collection::vec(1..700_u32, 1..300),
    ) {
        let mut bench = Bench::new();
        bench.recorder.set_margin(Duration::from_secs(100));
        bench.receive(first);
        let mut received = HashSet::from([0]);
        for offset in sequences {
            bench.receive(first.wrapping_add(offset));
            received.insert(offset);
        }
        let block = bench.block();
        let mut above = block.highest.wrapping_sub(first) + 1;
        prop_assert_eq!(Some(&(above - 1)), received.iter().max());
        for range in &*block.ranges {
            for _ in 0..range.missing {
                above -= 1;
                prop_assert!(!received.contains(&above));
            }
            for _ in 0..range.received {
                above -= 1;
                prop_assert!(received.contains(&above));
            }
        }
        let resolved = block.resolved.wrapping_sub(first);
        prop_assert!((0..resolved).all(|offset| received.contains(&offset)));
        prop_assert!(!received.contains(&resolved));
        if block.ranges.len() < 32 {
            prop_assert!((resolved..above).all(|offset| !received.contains(&offset)));
            prop_assert_eq!(block.bitmap.len(), 0);
        }
        for (at, offset) in (resolved..resolved + block.bitmap.len() as u32 * 64).enumerate() {
            let bit = block.bitmap[at / 64] >> (at % 64) & 1 != 0;
            prop_assert_eq!(bit, received.contains(&offset));
        }
    }
}

/// A path status before a train would make it seem slow.
#[test]
fn little_that_came_before_a_pause_is_not_counted_with_what_follows() {
    for (first, pause, counted) in [(100, 20, false), (100, 19, true), (2000, 20, true)] {
        let mut recorder = Recorder::default();
        let mut receive = |millis: u64, sequence, len| {
            let sent = OFFSET.wrapping_add(millis as u32 * 1000);
            let at = at(millis * 1000);
            recorder
                .on_arrival(at, Datagram { sequence, sent, at, len, ce: false, is_sample: true });
        };
        receive(100, 1, 100);
        receive(101, 2, first);
        receive(101 + pause, 3, 1000);
        receive(102 + pause, 4, 1000);
        let block = recorder.block(at(200_000), 0, false, false).unwrap();
        let bytes = if counted { first as u32 + 2000 } else { 1000 };
        let began = if counted { 100 } else { 101 + pause as u32 };
        assert_eq!((block.bytes_after_first, block.first_arrived), (bytes, began * 1000));
        assert_eq!(block.received, 4);
    }
}
