use super::sent::DRAINS;
use super::*;

/// Feedback after so many datagrams of 1000 bytes, one each 160 us from the fifth on.
fn block(highest: u32, first: u32) -> Block {
    Block {
        highest,
        received: highest + 1,
        received_bytes: u64::from(highest + 1) * 1000,
        first_arrived: 10_000 + first * 160,
        highest_arrived: 10_000 + highest * 160,
        bytes_after_first: (highest - first) * 1000,
        ..Block::default()
    }
}

fn train(from: u32, count: u32, bytes: u64) -> Train {
    Train::new(Instant::ZERO, from, count, bytes, Duration::from_millis(50))
}

fn about(number: u16, spread: Option<f64>) -> About {
    About { number, header: 28, spread }
}

fn point(highest: u32) -> Point {
    let payload = u64::from(highest + 1) * 1000;
    Point { highest, packets: highest + 1, payload, ..Point::default() }
}

#[test]
fn a_train_shows_the_rate_at_which_it_arrives_in_one_feedback_or_several() {
    let new = || train(5, 16, 16_000);
    assert!(!new().is_in(&block(4, 4)) && new().is_in(&block(5, 5)));
    let rate = new().on_block(&block(20, 5), Some(&point(4)), 28).flatten().unwrap();
    assert!((rate / 6_425_000.0 - 1.0).abs() < 0.001, "1028 bytes each 160 us: {rate}");
    let mut train = new();
    assert_eq!(train.on_block(&block(11, 5), Some(&point(4)), 28), None, "not all of it");
    let rate = train.on_block(&block(20, 12), Some(&point(11)), 28).flatten().unwrap();
    assert!((rate / 6_425_000.0 - 1.0).abs() < 0.001, "{rate}");
}

#[test]
fn what_arrives_behind_a_train_does_not_make_it_seem_slower() {
    for highest in [20, 25] {
        let mut trains = Trains { shown: Some(7e6), ..Trains::default() };
        trains.on_sent(Instant::ZERO, train(5, 16, 16_000));
        // The rest came 10 ms after it.
        let late = if highest == 25 { 10_000 } else { 0 };
        let told = block(highest, 5);
        let told = Block { highest_arrived: told.highest_arrived + late, ..told };
        trains.on_block(Instant::ZERO, &told, 0, Some(&point(4)), about(1, None));
        let shown = trains.shown.unwrap();
        assert_eq!(shown < 6.9e6, highest == 20, "{shown}");
        assert!(trains.next(Instant::ZERO, false).is_some(), "it is told about");
    }
}

#[test]
fn what_had_arrived_long_before_a_train_does_not_make_it_seem_faster() {
    let mut trains = Trains::default();
    trains.on_sent(Instant::ZERO, train(6, 8, 8000));
    // Three path statuses had arrived before it, and nothing was reported since.
    let told = block(13, 6);
    trains.on_block(Instant::ZERO, &told, 0, Some(&point(2)), about(1, None));
    assert!((trains.known().unwrap() / 6_425_000.0 - 1.0).abs() < 0.001, "{:?}", trains.known());
}

#[test]
fn data_that_is_reported_with_a_train_does_not_make_it_seem_slow() {
    let mut trains = Trains::default();
    trains.on_sent(Instant::ZERO, train(10, 8, 8000));
    // Five datagrams had come 30 ms before the train.
    let told = block(17, 5);
    let told = Block { first_arrived: told.first_arrived.wrapping_sub(30_000), ..told };
    trains.on_block(Instant::ZERO, &told, 0, Some(&point(4)), about(1, None));
    assert_eq!(trains.shown, None);
    trains.on_sent(Instant::ZERO, train(18, 16, 16_000));
    trains.on_block(Instant::ZERO, &block(33, 18), 0, Some(&point(17)), about(2, None));
    assert!(trains.known().is_some_and(|rate| (rate / 6_425_000.0 - 1.0).abs() < 0.001));
}

#[test]
fn small_datagrams_before_a_pause_are_no_part_of_a_burst() {
    // Ten of 140 bytes, then after a pause some of 1400 bytes, one each 160 us.
    let told = |count: u32| Block {
        highest: 9 + count,
        received: 10 + count,
        received_bytes: 1400 + u64::from(count) * 1400,
        first_arrived: 50_000,
        highest_arrived: 50_000 + (count - 1) * 160,
        bytes_after_first: (count - 1) * 1400,
        ..Block::default()
    };
    assert_eq!(dispersion(&told(5), Some(&Point::default()), 28), None, "too few");
    let rate = dispersion(&told(16), Some(&Point::default()), 28).unwrap();
    assert!((rate / (1428.0 / 160e-6) - 1.0).abs() < 0.002, "{rate}");
}

#[test]
fn few_datagrams_and_those_read_at_once_show_nothing() {
    let mut it = train(5, 16, 16_000);
    let at_once = Block { highest_arrived: 10_900, ..block(20, 5) };
    assert_eq!(it.on_block(&at_once, Some(&point(4)), 28), Some(None));
    let mut lost = train(5, 16, 16_000);
    let few = Block { received: 9, ..block(20, 5) };
    assert_eq!(lost.on_block(&few, Some(&point(4)), 28), Some(None));
    assert_eq!(dispersion(&block(9, 5), Some(&point(4)), 28), None);
    assert!(dispersion(&block(20, 5), Some(&point(4)), 28).is_some());
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    assert!(lost.is_lost(at(350)) && !lost.is_lost(at(349)));
}

#[test]
fn where_delays_vary_a_train_shows_by_its_mean_delay_what_the_path_carries() {
    let mut trains = Trains::default();
    assert_eq!(trains.next(Instant::ZERO, true), Some(32), "fewer show too little");
    trains.on_sent(Instant::ZERO, train(5, 32, 32_000));
    let later = Instant::ZERO + Duration::from_millis(400);
    assert_eq!(trains.next(later, true), None, "the first one may still be on its way");
    assert_eq!(trains.next(later + DRAINS, true), Some(32));
    assert!(trains.next(later, false).is_some(), "where delays do not vary they are short");
    let mut trains = Trains::default();
    Alone::add(&mut trains.alone, 40_000, 64);
    trains.on_sent(Instant::ZERO, train(5, 32, 32_000));
    // They leave 500 us apart, and one is lost.
    let told = Block { delay_min: 30_000, delay_mean: 17_750, ..block(35, 5) };
    trains.on_block(Instant::ZERO, &told, 31, Some(&point(4)), about(1, Some(1000.0)));
    let share = trains.known().unwrap() / 2_056_000.0;
    assert!((0.9..1.1).contains(&share), "1028 bytes each 500 us: {share}");
    assert_eq!(
        trains.limit(true),
        trains.known(),
        "a standard deviation of 250 us is little beside 7750"
    );
    assert_eq!(trains.burst(), None, "it is of means");
}

#[test]
fn where_delays_vary_a_train_is_as_long_as_its_path_is_known_to_stand() {
    let next = |mbps: f64| {
        let shown = Some(mbps * 1e6 / 8.0);
        let trains = Trains { shown, is_exact: true, is_of_means: true, ..Trains::default() };
        trains.next(Instant::ZERO, true)
    };
    assert_eq!([200.0, 20.0, 2.0].map(next), [Some(MOST), Some(50), None], "30 ms");
}

#[test]
fn after_a_train_that_shows_no_more_than_the_least_the_next_one_is_as_long_as_is_likely() {
    let mut trains = Trains::default();
    Alone::add(&mut trains.alone, 40_000, 24);
    trains.on_sent(Instant::ZERO, train(5, 32, 32_000));
    // They take 6 ms longer than single ones, which may be 4 ms by chance.
    let told = Block { delay_min: 30_000, delay_mean: 16_000, ..block(36, 5) };
    trains.on_block(Instant::ZERO, &told, 32, Some(&point(4)), about(1, Some(15_000.0)));
    let least = trains.known().unwrap() * LONGEST_TRAIN / 1500.0;
    assert!((30.0..33.0).contains(&least) && trains.limit(true).is_none(), "{least}");
    assert_eq!(trains.next(Instant::ZERO, true), Some(54));
}

#[test]
fn a_path_starts_with_all_that_it_carries_at_the_least() {
    let start = |is_of_means| Trains { shown: Some(1e6), is_of_means, ..Trains::default() }.start();
    assert_eq!([false, true].map(start), [5e5, 1e6], "bursts may be let pass");
}

#[test]
fn a_train_is_over_when_all_of_it_has_come_or_is_lost() {
    // The last one came before most others.
    let [received, received_bytes, bytes_after_first] = [12, 12_000, 6000];
    let part = Block {
        received,
        received_bytes: received_bytes.into(),
        bytes_after_first,
        ..block(20, 5)
    };
    let rest = Block { received: 19, received_bytes: 19_000, ..part };
    for (spread, resolved) in [(None, 0), (None, 21), (Some(1000.0), 0), (Some(1000.0), 21)] {
        let mut trains = Trains::default();
        Alone::add(&mut trains.alone, 40_000, 64);
        trains.on_sent(Instant::ZERO, train(5, 16, 16_000));
        trains.on_block(Instant::ZERO, &part, 7, Some(&point(4)), about(1, spread));
        assert!(trains.is_on_way(Instant::ZERO));
        let rest = Block { resolved, ..rest };
        trains.on_block(Instant::ZERO, &rest, 7, Some(&point(20)), about(2, spread));
        assert_eq!(trains.is_on_way(Instant::ZERO), resolved == 0, "two are missing");
    } // What it tells may have been overtaken, but not for long.
    let mut trains = Trains::default();
    Alone::add(&mut trains.alone, 40_000, 64);
    trains.on_sent(Instant::ZERO, train(5, 16, 16_000));
    let all = Block { received: 21, received_bytes: 21_000, resolved: 21, ..part };
    trains.on_block(Instant::ZERO, &all, 1, Some(&point(4)), about(1, Some(1000.0)));
    let next = |after| trains.next(Instant::ZERO + after, true).is_some();
    assert_eq!([OVERTAKEN - Duration::from_millis(1), OVERTAKEN].map(next), [false, true]);
}

#[test]
fn what_something_came_behind_shows_the_least_and_not_all() {
    // Something comes 10 ms after each train but the first one, or after that as well.
    for (first, known, next) in [(13, true, 16), (14, false, 8)] {
        let mut trains = Trains::default();
        trains.on_sent(Instant::ZERO, train(6, 8, 8000));
        let told = block(first, 6);
        let late = (first - 13) * 50_000;
        let told = Block { highest_arrived: told.highest_arrived + late, ..told };
        trains.on_block(Instant::ZERO, &told, 8, Some(&point(5)), about(1, None));
        assert_eq!(trains.known().is_some(), known, "{:?}", trains.shown);
        assert_eq!(trains.limit(false), None, "it is short, or the path may carry more");
        assert_eq!(trains.next(Instant::ZERO, false), Some(next));
        // It is as fast as was known, by chance a little faster.
        trains.on_sent(Instant::ZERO, train(20, 8, 8000));
        let told = block(28, 20);
        let told = Block { highest_arrived: told.highest_arrived - 30, ..told };
        trains.on_block(Instant::ZERO, &told, 9, Some(&point(19)), about(2, None));
        assert_eq!(trains.known().is_some(), known, "{:?}", trains.shown);
    }
}

#[test]
fn the_whole_of_a_train_counts_and_not_a_part_of_it() {
    let mut trains = Trains::default();
    Alone::add(&mut trains.alone, 40_000, 64);
    trains.on_sent(Instant::ZERO, train(5, 32, 32_000));
    // By chance the first half took no longer than single ones.
    for (number, highest, longer) in [(1, 20, 0), (2, 36, 8000)] {
        let told = Block { delay_min: 40_000 + longer, ..block(highest, highest - 15) };
        let before = point(highest - 16);
        trains.on_block(Instant::ZERO, &told, 16, Some(&before), about(number, Some(8000.0)));
    }
    let shown = trains.shown.unwrap() / 1028.0;
    assert!((2700.0..2900.0).contains(&shown), "16 in 4 ms and 1.7 ms of error: {shown}");
}
