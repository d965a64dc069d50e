use super::*;
use crate::queue::store::Store;

const LONGEST: Duration = Duration::from_millis(20);

/// Paths whose delays vary.
const WAYS: Ways = Ways { longest: LONGEST, vary: true, is_crowded: false };

/// Acknowledges a window in slow start, two segments at a time, of a round of this length. Returns how many
/// acknowledgements were passed on, and the least time between them.
fn round(acks: &mut AckThinner, at: &mut Instant, number: &mut u32, bytes: u32) -> Vec<Instant> {
    let count = bytes / 2920;
    let mut passed = Vec::new();
    let mut store = Store::default();
    for _ in 0..count {
        *at += Duration::from_millis(100) / count;
        *number = number.wrapping_add(2920);
        passed.extend(acks.poll(*at).map(|_| *at));
        match acks.on_segment(*at, 7, Segment::Ack(*number), WAYS).0 {
            Fate::Pass => passed.push(*at),
            Fate::Wait(until) => acks.hold(7, store.take(52), 52, 0, until),
        }
    }
    passed
}

#[test]
fn fewer_than_eight_in_a_round_of_slow_start() {
    let mut acks = AckThinner::default();
    let (mut at, mut number) = (Instant::ZERO, u32::MAX - 100_000);
    acks.on_segment(at, 7, Segment::Syn, WAYS);
    assert_eq!(acks.on_segment(at, 7, Segment::Ack(number), WAYS).0, Fate::Pass);
    let mut window = BEGIN;
    for doubled in 0..8 {
        let passed = round(&mut acks, &mut at, &mut number, window);
        if window > BEGIN {
            assert!((4..8).contains(&passed.len()), "{doubled}: {}", passed.len());
            let apart = passed.windows(2).map(|pair| pair[1].since(pair[0])).min();
            assert!(apart.is_some_and(|apart| apart >= APART), "{apart:?}");
        }
        window *= 2;
    }
}

#[test]
fn where_delays_do_not_vary_those_of_the_second_round_pass() {
    for (vary, passes) in [(false, true), (true, false)] {
        let mut acks = AckThinner::default();
        acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
        let mut passed = |number| {
            let ways = Ways { vary, ..WAYS };
            acks.on_segment(Instant::ZERO, 7, Segment::Ack(number), ways).0 == Fate::Pass
        };
        assert_eq!([0, BEGIN - 1].map(&mut passed), [true; 2], "{vary}");
        assert_eq!([BEGIN, LEAST - 1].map(&mut passed), [passes; 2], "{vary}");
        assert!(!passed(LEAST), "{vary}");
    }
}

#[test]
fn the_last_one_leaves_and_what_shows_trouble_ends_it() {
    let mut acks = AckThinner::default();
    let mut store = Store::default();
    let ms = |millis| Instant::ZERO + Duration::from_millis(millis);
    acks.on_segment(ms(0), 7, Segment::Syn, WAYS);
    acks.on_segment(ms(1), 7, Segment::Ack(0), WAYS);
    acks.on_segment(ms(10), 7, Segment::Ack(BEGIN), WAYS);
    let (fate, _) = acks.on_segment(ms(20), 7, Segment::Ack(BEGIN + 1), WAYS);
    assert_eq!(fate, Fate::Wait(ms(40)));
    acks.hold(7, store.take(52), 52, 0, ms(40));
    assert_eq!(acks.due(), Some(ms(40)));
    assert_eq!(acks.poll(ms(39)), None);
    assert!(acks.poll(ms(40)).is_some());
    assert_eq!((acks.poll(ms(40)), acks.due()), (None, None));
    let (_, obsolete) = acks.on_segment(ms(50), 7, Segment::Ack(BEGIN + 2), WAYS);
    assert_eq!(obsolete, None);
    acks.hold(7, store.take(52), 52, 0, ms(70));
    for number in [2, 1] {
        let again = acks.on_segment(ms(50), 7, Segment::Ack(BEGIN + number), WAYS);
        assert_eq!(again, (Fate::Pass, None), "a repeated one is counted by the sender");
    }
    let (fate, obsolete) = acks.on_segment(ms(51), 7, Segment::Report, WAYS);
    assert!(fate == Fate::Pass && obsolete.is_some());
    let (fate, _) = acks.on_segment(ms(52), 7, Segment::Ack(BEGIN + 3), WAYS);
    assert!(matches!(fate, Fate::Wait(_)), "one report may be a matter of order");
    for _ in 0..REPORTS {
        acks.on_segment(ms(53), 7, Segment::Report, WAYS);
    }
    let (fate, _) = acks.on_segment(ms(54), 7, Segment::Ack(BEGIN + 4), WAYS);
    assert_eq!(fate, Fate::Pass, "it has lost something");
}

#[test]
fn a_window_that_does_not_grow_is_acknowledged_all_the_time() {
    let mut acks = AckThinner::default();
    let mut store = Store::default();
    acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
    acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
    let mut passed_at = Instant::ZERO;
    // 2 MB per second: an eighth of what was acknowledged before is soon more than is in flight.
    for millis in 1..4000_u32 {
        let now = Instant::ZERO + Duration::from_millis(millis.into());
        if acks.poll(now).is_some() {
            passed_at = now;
        }
        match acks.on_segment(now, 7, Segment::Ack(2000 * millis), WAYS).0 {
            Fate::Pass => passed_at = now,
            Fate::Wait(until) => acks.hold(7, store.take(52), 52, 0, until),
        }
        assert!(now.since(passed_at) <= LONGEST + APART, "{millis} ms");
    }
}

#[test]
fn a_mark_ends_it() {
    let mut acks = AckThinner::default();
    acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
    acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
    acks.on_segment(Instant::ZERO, 7, Segment::Marked, WAYS);
    let (fate, _) = acks.on_segment(Instant::ZERO, 7, Segment::Ack(BEGIN + 1), WAYS);
    assert_eq!(fate, Fate::Pass);
}

#[test]
fn after_a_while_all_pass() {
    let mut acks = AckThinner::default();
    acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
    acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
    let later = Instant::ZERO + BEGINNING;
    for number in 0..10 {
        let segment = Segment::Ack(10 * BEGIN + number);
        assert_eq!(acks.on_segment(later, 7, segment, WAYS).0, Fate::Pass);
    }
    // Slow start takes longer where the round trip is 0.6 s.
    let longest = Duration::from_millis(150);
    let mut fate =
        |number| acks.on_segment(later, 7, Segment::Ack(number), Ways { longest, ..WAYS }).0;
    assert_eq!(fate(10 * BEGIN + 10), Fate::Pass);
    assert_eq!(fate(10 * BEGIN + 11), Fate::Wait(later + longest));
}

#[test]
fn they_wait_later_on_where_the_path_is_crowded_and_only_there() {
    let mut acks = AckThinner::default();
    let mut store = Store::default();
    acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
    acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
    let begin = Instant::ZERO + 2 * BEGINNING;
    let mut passed = [0, 0];
    for millis in 1..=400_u32 {
        let (now, is_crowded) = (begin + Duration::from_millis(millis.into()), millis > 200);
        let count = &mut passed[usize::from(is_crowded)];
        *count += i32::from(acks.poll(now).is_some());
        match acks.on_segment(now, 7, Segment::Ack(5000 * millis), Ways { is_crowded, ..WAYS }).0 {
            Fate::Pass => *count += 1,
            Fate::Wait(until) => acks.hold(7, store.take(52), 52, 0, until),
        }
    }
    assert_eq!(passed[0], 200, "all");
    assert!((9..=11).contains(&passed[1]), "{}: one each 20 ms", passed[1]);
}
