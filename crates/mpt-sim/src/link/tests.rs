//! The link as a whole: what holds for every profile, and whether chance keeps its promises.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::loss::{GilbertElliott, Loss};

/// A time in virtual milliseconds.
fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A packet distinguishable from all others.
fn numbered(number: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len.max(4)];
    packet[..4].copy_from_slice(&number.to_be_bytes());
    packet
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[..4].try_into().unwrap())
}

/// Sends `count` packets of `len` bytes, one every `gap`, and takes them as they fall due.
fn deliver(link: &mut Link, count: u32, len: usize, gap: Duration) -> Vec<(Instant, Vec<u8>)> {
    let mut now = Instant::ZERO;
    for i in 0..count {
        link.send(now, numbered(i, len));
        now += gap;
    }
    std::iter::from_fn(|| link.receive(Instant::from_nanos(u64::MAX))).collect()
}

fn perfect() -> Profile {
    Profile::default()
}

// --- what holds for every profile ---

fn any_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (0.0..=1.0).prop_map(Loss::Random),
        (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0)
            .prop_map(|(p, r, h, k)| Loss::GilbertElliott(GilbertElliott { p, r, h, k })),
    ]
}

prop_compose! {
    fn any_profile()(
        rate in prop::option::of(1_000_u64..200_000_000),
        queue in prop::option::of(0_u64..100_000),
        delay in 0_u64..50_000_000,
        jitter in prop_oneof![Just(0), 0_u64..20_000_000],
        (keep_order, policed) in (any::<bool>(), any::<bool>()),
        loss in any_loss(),
        (duplicate, corrupt, reorder) in (0.0..=0.5, 0.0..=0.5, 0.0..=0.5),
        largest in prop::option::of(0_u64..3000),
        blackouts in prop::collection::vec((0_u64..100_000_000, 1_u64..50_000_000), 0..3),
    ) -> Profile {
        Profile {
            rate,
            queue: rate.and(queue),
            policed: policed && rate.is_some(),
            delay: Duration::from_nanos(delay),
            jitter: Duration::from_nanos(jitter),
            keep_order,
            loss,
            duplicate,
            corrupt,
            reorder: if keep_order { 0.0 } else { reorder },
            largest,
            blackouts: blackouts
                .into_iter()
                .map(|(at, len)| (Duration::from_nanos(at), Duration::from_nanos(at + len)))
                .collect(),
        }
    }
}

/// Something that is done to a link.
#[derive(Clone, Debug)]
enum Action {
    Send(usize),
    Wait(Duration),
    Receive,
    Cut(bool),
    Change(Box<Profile>),
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => (0_usize..3000).prop_map(Action::Send),
        8 => (0_u64..20_000_000).prop_map(|ns| Action::Wait(Duration::from_nanos(ns))),
        5 => Just(Action::Receive),
        1 => any::<bool>().prop_map(Action::Cut),
        1 => any_profile().prop_map(|profile| Action::Change(Box::new(profile))),
    ]
}

/// Everything observable about a run.
type Trace = Vec<(Instant, Option<Fate>, Option<(Instant, Vec<u8>)>)>;

/// Plays `actions`, checking after each that the sum balances and nothing comes early.
fn play(link: &mut Link, actions: &[Action]) -> Trace {
    let mut now = Instant::ZERO;
    let mut trace = Vec::new();
    for (i, action) in actions.iter().enumerate() {
        match action {
            Action::Send(len) => {
                trace.push((now, Some(link.send(now, numbered(i as u32, *len))), None));
            }
            Action::Wait(time) => now += *time,
            Action::Receive => {
                while let Some((due, packet)) = link.receive(now) {
                    assert!(due <= now, "received before its due time");
                    trace.push((now, None, Some((due, packet))));
                }
                assert!(link.next_due().is_none_or(|due| due > now), "left behind what was due");
            }
            Action::Cut(cut) => link.set_blackout(*cut),
            Action::Change(profile) => link.set_profile(now, (**profile).clone()),
        }
        assert!(link.stats().is_balanced(), "{:?}", link.stats());
    }
    trace
}

proptest! {
    #[test]
    fn the_sum_balances_and_the_same_seed_gives_the_same_run(
        profile in any_profile(),
        seed: u64,
        actions in prop::collection::vec(any_action(), 0..200),
    ) {
        let mut link = Link::new(profile.clone(), seed);
        let mut twin = Link::new(profile, seed);
        prop_assert_eq!(play(&mut link, &actions), play(&mut twin, &actions));
        prop_assert_eq!(link.stats(), twin.stats());
        // Drained, nothing is left on the way.
        while link.receive(Instant::from_nanos(u64::MAX)).is_some() {}
        prop_assert_eq!(link.stats().in_flight, Count::default());
        prop_assert!(link.stats().is_balanced());
    }

    #[test]
    fn a_packet_that_was_queued_arrives_at_the_time_it_was_promised(
        mut profile in any_profile(),
        seed: u64,
        lens in prop::collection::vec(4_usize..3000, 1..100),
    ) {
        profile.duplicate = 0.0;
        profile.corrupt = 0.0;
        let mut link = Link::new(profile, seed);
        let mut promised = Vec::new();
        for (i, len) in lens.into_iter().enumerate() {
            let now = Instant::from_nanos(1 + i as u64 * 100_000);
            match link.send(now, numbered(i as u32, len)) {
                Fate::Queued { due } => {
                    prop_assert!(due >= now);
                    promised.push((due, i as u32));
                }
                Fate::Dropped(reason) => prop_assert!(link.stats().drops(reason).packets > 0),
            }
        }
        promised.sort();
        for (due, i) in promised {
            prop_assert_eq!(link.receive(Instant::from_nanos(due.as_nanos() - 1)), None);
            let (at, packet) = link.receive(due).unwrap();
            prop_assert_eq!((at, number(&packet)), (due, i));
        }
    }

    #[test]
    fn over_no_window_is_the_rate_exceeded_nor_the_queue(
        rate in 10_000_u64..1_000_000_000,
        queue in 0_u64..100_000,
        sends in prop::collection::vec((1_usize..2000, 0_u64..2_000_000), 1..120),
    ) {
        let profile = Profile { rate: Some(rate), queue: Some(queue), ..perfect() };
        let mut link = Link::new(profile, 0);
        let mut now = Instant::ZERO;
        let mut left = Vec::new(); // when, and how many bits
        for (len, gap) in sends {
            if let Fate::Queued { due } = link.send(now, vec![0; len]) {
                left.push((due.as_nanos(), len as u128 * 8));
                // It waits behind at most a queue of bytes, unless it alone is all there is.
                let bytes = u128::from(queue).max(len as u128);
                let wait = u128::from(due.as_nanos() - now.as_nanos());
                prop_assert!(wait * u128::from(rate) <= bytes * 8 * 1_000_000_000);
            }
            now += Duration::from_nanos(gap);
        }
        for first in 0..left.len() {
            let mut bits = 0;
            for last in first + 1..left.len() {
                bits += left[last].1;
                // Times are cut to whole nanoseconds, so a window may seem one too short.
                let window = u128::from(left[last].0 - left[first].0) + 1;
                prop_assert!(bits * 1_000_000_000 <= window * u128::from(rate));
            }
        }
    }

    #[test]
    fn with_keep_order_nothing_overtakes_even_when_the_profile_changes(
        first in any_profile(),
        second in any_profile(),
        seed: u64,
        gaps in prop::collection::vec(0_u64..3_000_000, 2..150),
    ) {
        let ordered = |profile| Profile { keep_order: true, reorder: 0.0, corrupt: 0.0, ..profile };
        let mut link = Link::new(ordered(first), seed);
        let mut now = Instant::ZERO;
        let half = gaps.len() / 2;
        for (i, gap) in gaps.into_iter().enumerate() {
            if i == half {
                link.set_profile(now, ordered(second.clone()));
            }
            link.send(now, numbered(i as u32, 500));
            now += Duration::from_nanos(gap);
        }
        let mut last = 0;
        while let Some((_, packet)) = link.receive(Instant::from_nanos(u64::MAX)) {
            prop_assert!(number(&packet) >= last);
            last = number(&packet);
        }
    }
}

// --- the stations one by one ---

#[test]
fn only_packets_that_are_too_long_are_dropped() {
    let mut link = Link::new(Profile { largest: Some(1400), ..perfect() }, 1);
    let fates = [1400, 1401, 20].map(|len| link.send(ms(0), numbered(0, len)));
    let due = ms(0);
    let too_long = Fate::Dropped(DropReason::TooLong);
    assert_eq!(fates, [Fate::Queued { due }, too_long, Fate::Queued { due }]);
    assert_eq!(link.stats().drops(DropReason::TooLong), Count { packets: 1, bytes: 1401 });
}

#[test]
fn a_perfect_wire_delivers_at_once_and_in_order() {
    let mut link = Link::new(perfect(), 0);
    assert_eq!(link.send(ms(3), numbered(1, 100)), Fate::Queued { due: ms(3) });
    link.send(ms(3), numbered(2, 100));
    assert_eq!(link.next_due(), Some(ms(3)));
    assert_eq!(link.receive(ms(2)), None);
    assert_eq!(link.receive(ms(3)), Some((ms(3), numbered(1, 100))));
    assert_eq!(link.receive(ms(3)), Some((ms(3), numbered(2, 100))));
    assert_eq!(link.next_due(), None);
}

#[test]
fn rate_and_delay_add_up_and_an_overlong_queue_drops() {
    let profile = Profile {
        rate: Some(8_000_000), // a byte per microsecond
        queue: Some(2500),
        delay: Duration::from_millis(10),
        ..perfect()
    };
    let mut link = Link::new(profile, 0);
    assert_eq!(link.send(ms(0), vec![0; 1000]), Fate::Queued { due: ms(11) });
    assert_eq!(link.send(ms(0), vec![0; 1000]), Fate::Queued { due: ms(12) });
    assert_eq!(link.send(ms(0), vec![0; 1000]), Fate::Dropped(DropReason::Queue));
    assert_eq!(link.backlog(ms(0)), 2000);
    assert_eq!(link.send(ms(1), vec![0; 1500]), Fate::Queued { due: ms(13) + us(500) });
    assert_eq!(link.stats().drops(DropReason::Queue), Count { packets: 1, bytes: 1000 });
}

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn an_idle_transmitter_takes_a_packet_longer_than_the_queue() {
    let profile = Profile { rate: Some(8_000_000), queue: Some(0), ..perfect() };
    let mut link = Link::new(profile, 0);
    assert_eq!(link.send(ms(0), vec![0; 1000]), Fate::Queued { due: ms(1) });
    assert_eq!(link.send(ms(0), vec![0; 1000]), Fate::Dropped(DropReason::Queue));
    assert_eq!(link.send(ms(1), vec![0; 1000]), Fate::Queued { due: ms(2) });
}

#[test]
fn black_outs_swallow_what_enters_in_their_windows_or_while_the_wire_is_cut() {
    let window = (Duration::from_secs(1), Duration::from_secs(2));
    let profile = Profile { blackouts: vec![window], delay: us(500), ..perfect() };
    let mut link = Link::new(profile, 0).with_origin(ms(1000));
    let lost = Fate::Dropped(DropReason::Blackout);
    assert_ne!(link.send(ms(500), vec![0]), lost);
    assert_ne!(link.send(ms(1999), vec![0]), lost);
    assert_eq!(link.send(ms(2000), vec![0]), lost);
    assert_eq!(link.send(ms(2999), vec![0]), lost);
    assert_ne!(link.send(ms(3000), vec![0]), lost);
    // What entered before a cut arrives in spite of it.
    link.set_blackout(true);
    assert_eq!(link.send(ms(3000), vec![0]), lost);
    assert_eq!(std::iter::from_fn(|| link.receive(ms(4000))).count(), 3);
    link.set_blackout(false);
    assert_ne!(link.send(ms(5000), vec![0]), lost);
    assert_eq!(link.stats().drops(DropReason::Blackout).packets, 3);
}

#[test]
fn packets_in_flight_keep_their_due_times_when_the_profile_changes() {
    let mut link = Link::new(Profile { delay: Duration::from_millis(50), ..perfect() }, 0);
    link.send(ms(0), numbered(1, 10));
    link.set_profile(ms(10), Profile { delay: Duration::from_millis(5), ..perfect() });
    link.send(ms(10), numbered(2, 10));
    assert_eq!(link.receive(ms(15)).map(|(due, p)| (due, number(&p))), Some((ms(15), 2)));
    assert_eq!(link.receive(ms(50)).map(|(due, p)| (due, number(&p))), Some((ms(50), 1)));
}

#[test]
fn corruption_inverts_exactly_one_bit() {
    let mut link = Link::new(Profile { corrupt: 1.0, ..perfect() }, 7);
    let sent = vec![0x55; 40];
    let mut places = HashSet::new();
    for _ in 0..2000 {
        link.send(ms(0), sent.clone());
        let (_, packet) = link.receive(ms(0)).unwrap();
        let changed: Vec<_> = (0..40).filter(|&i| packet[i] != sent[i]).collect();
        assert_eq!(changed.len(), 1);
        let bits = packet[changed[0]] ^ sent[changed[0]];
        assert_eq!(bits.count_ones(), 1);
        places.insert((changed[0], bits));
    }
    // 2000 throws at 320 bits leave 0.6 of them out on average.
    assert!(places.len() > 310, "only {} of 320 bits were ever hit", places.len());
    assert_eq!(link.send(ms(0), Vec::new()), Fate::Queued { due: ms(0) });
}

#[test]
fn impairments_have_independent_random_numbers() {
    let lossy = Profile { loss: Loss::Random(0.3), ..perfect() };
    let worse = Profile {
        duplicate: 0.5,
        corrupt: 0.5,
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(5),
        ..lossy.clone()
    };
    let fates = |profile| {
        let mut link = Link::new(profile, 11);
        (0..1000).map(|_| matches!(link.send(ms(0), vec![0; 9]), Fate::Dropped(_))).collect()
    };
    let (plain, disturbed): (Vec<bool>, Vec<bool>) = (fates(lossy), fates(worse));
    assert_eq!(plain, disturbed);
}

#[test]
fn different_seeds_give_different_runs() {
    let run = |seed| {
        let mut link = Link::new(Profile { loss: Loss::Random(0.5), ..perfect() }, seed);
        deliver(&mut link, 100, 100, us(10))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

// --- statistics, with fixed seeds; bounds are five standard deviations ---

#[test]
fn loss_duplication_and_reordering_happen_as_often_as_set() {
    let profile = Profile {
        loss: Loss::Random(0.05),
        duplicate: 0.02,
        reorder: 0.03,
        delay: Duration::from_millis(10),
        ..perfect()
    };
    let mut link = Link::new(profile, 3);
    let count = 100_000;
    deliver(&mut link, count, 100, us(100));
    let stats = *link.stats();
    let near = |what: &str, count: u64, of: u64, p: f64| {
        let bound = 5.0 * (p * (1.0 - p) / of as f64).sqrt();
        let share = count as f64 / of as f64;
        assert!((share - p).abs() < bound, "{what}: {share}, not {p} within {bound}");
    };
    let survivors = stats.offered.packets - stats.drops(DropReason::Loss).packets;
    near("loss", stats.drops(DropReason::Loss).packets, stats.offered.packets, 0.05);
    near("duplication", stats.duplicated.packets, survivors, 0.02);
    near("reordering", stats.reordered.packets, survivors + stats.duplicated.packets, 0.03);
}

#[test]
fn jitter_is_normal_around_the_delay() {
    let profile =
        Profile { delay: Duration::from_millis(20), jitter: Duration::from_millis(2), ..perfect() };
    let mut link = Link::new(profile, 5);
    let count = 50_000;
    let gap = us(100);
    let delays: Vec<f64> = deliver(&mut link, count, 100, gap)
        .into_iter()
        .map(|(due, packet)| (due - (Instant::ZERO + gap * number(&packet))).as_secs_f64() * 1e3)
        .collect();
    let n = delays.len() as f64;
    let mean = delays.iter().sum::<f64>() / n;
    let deviation = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!((mean - 20.0).abs() < 5.0 * 2.0 / n.sqrt(), "mean {mean}");
    assert!((deviation - 2.0).abs() < 5.0 * 2.0 / (2.0 * n).sqrt(), "deviation {deviation}");
    // 2.275 % of a normal distribution lie more than two deviations above its mean.
    let tail = delays.iter().filter(|&&d| d > 24.0).count() as f64 / n;
    assert!((tail - 0.02275).abs() < 5.0 * (0.02275 * 0.97725 / n).sqrt(), "tail {tail}");
}

#[test]
fn jitter_beyond_the_delay_never_makes_it_negative() {
    let profile =
        Profile { delay: Duration::from_millis(1), jitter: Duration::from_millis(10), ..perfect() };
    let mut link = Link::new(profile, 5);
    let late = Duration::from_secs(1);
    let mut at_once = 0;
    for i in 0..1000 {
        let now = Instant::ZERO + late * i;
        let Fate::Queued { due } = link.send(now, vec![0; 10]) else { panic!("lost") };
        assert!(due >= now);
        at_once += u32::from(due == now);
    }
    // The normal distribution is below -0.1 deviations for 46 % of all packets.
    assert!((380..540).contains(&at_once), "{at_once}");
}

#[test]
fn a_policer_delays_nothing_and_lets_through_what_its_bucket_allows() {
    let profile = Profile {
        rate: Some(8_000_000), // a byte per microsecond
        queue: Some(10_000),
        policed: true,
        delay: Duration::from_millis(5),
        ..perfect()
    };
    let mut link = Link::new(profile, 1);
    let mut passed = 0;
    for i in 0..2000 {
        let now = Instant::ZERO + us(500) * i;
        if let Fate::Queued { due } = link.send(now, vec![0; 1000]) {
            assert_eq!(due, now + Duration::from_millis(5));
            passed += 1;
        }
    }
    // A second at 1000 packets, and the bucket.
    assert!((1008..=1011).contains(&passed), "{passed}");
    let stats = link.stats();
    assert_eq!(stats.drops(DropReason::Queue).packets, 2000 - passed);
}
