use super::*;

const A: PathId = PathId(0);
const B: PathId = PathId(1);

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A peer whose clock shows `offset` when ours shows 0.
struct Peer {
    delays: Delays,
    offset: u32,
}

impl Peer {
    fn new(offset: u32) -> Self {
        Self { delays: Delays::default(), offset }
    }

    /// A datagram that the peer sent at `sent` of our clock arrives after `delay`, all in microseconds.
    fn arrive(&mut self, path: PathId, sent: u64, delay: u64) {
        let stamp = self.offset.wrapping_add(sent as u32);
        self.delays.on_arrival(at(sent + delay), path, stamp);
    }

    fn get(&self, path: PathId) -> OneWayDelay {
        self.delays.get(path).unwrap()
    }
}

impl Delays {
    /// How many microseconds longer one path takes than another.
    fn skew(&self, path: PathId, than: PathId) -> Option<i32> {
        Some(self.get(path)?.mean.wrapping_sub(self.get(than)?.mean))
    }
}

#[test]
fn the_skew_is_exact_with_any_clocks() {
    for offset in [0, 5, 1 << 31, u32::MAX - 400_000] {
        let mut peer = Peer::new(offset);
        for n in 0..1000 {
            peer.arrive(A, n * 1000, 20_000);
            peer.arrive(B, n * 1000, 65_000);
        }
        assert_eq!(peer.delays.skew(B, A), Some(45_000), "{offset}");
        assert_eq!(peer.delays.skew(A, B), Some(-45_000));
        assert_eq!(peer.get(A).jitter, Duration::ZERO);
        assert_eq!(peer.delays.relative(A), Some(Duration::ZERO));
        assert_eq!(peer.delays.relative(B), Some(ms(45)));
        assert_eq!(peer.delays.apart(0b11), Some(ms(45)));
        assert_eq!(peer.delays.apart(0b10), Some(Duration::ZERO), "there is no other");
    }
}

#[test]
fn timestamps_wrap() {
    let mut peer = Peer::new(0);
    let begin = (1 << 32) - 50_000;
    for n in 0..100 {
        peer.arrive(A, begin + n * 1000, 20_000);
    }
    assert_eq!((peer.get(A).min, peer.get(A).mean, peer.get(A).deviation), (0, 0, Duration::ZERO));
}

#[test]
fn mean_and_deviation_follow_and_one_burst_does_not_count_more() {
    let mut peer = Peer::new(7);
    // 2 ms of jitter, half of the datagrams each: a mean of 1 ms above the least, and a deviation of 1 ms.
    for n in 0..2000 {
        peer.arrive(A, n * 1000, 20_000 + n % 2 * 2000);
    }
    let OneWayDelay { min, mean, deviation, jitter, .. } = peer.get(A);
    assert_eq!(min, 0);
    assert!((950..1050).contains(&mean), "{mean}");
    assert!((950..1050).contains(&deviation.as_micros()), "{deviation:?}");
    assert!((1900..=2000).contains(&jitter.as_micros()), "{jitter:?}");
    // A thousand at once, 30 ms later than others, count as one interval.
    for _ in 0..1000 {
        peer.arrive(A, 2_000_000, 51_000);
    }
    peer.arrive(A, 2_026_100, 30_000);
    let moved = peer.get(A).mean - mean;
    assert!((3000..8000).contains(&moved), "{moved}");
}

#[test]
fn the_minimum_rises_when_the_path_gets_slower() {
    let mut peer = Peer::new(0);
    let slower = |n: u64| if n < 100 { 20_000 } else { 50_000 };
    for n in 0..251 {
        peer.arrive(A, n * 100_000, slower(n));
        let expected = if n < 200 - 50 { 0 } else { 30_000 };
        let min = peer.get(A).min;
        assert!(min == expected || (150..=200).contains(&n), "{n}: {min}");
    }
    // After a pause longer than the window only what is measured then counts.
    peer.arrive(A, 60_000_000, 70_000);
    assert_eq!(peer.get(A).min, 50_000);
}

#[test]
fn drift_moves_all_paths_alike() {
    let mut peer = Peer::new(0);
    for n in 0..6000_u64 {
        // Ten minutes; the peer's clock is slow by 50 ppm.
        let (sent, drift) = (n * 100_000, n * 5);
        for (path, delay) in [(A, 10_000), (B, 40_000)] {
            let stamp = (sent - drift) as u32;
            peer.delays.on_arrival(at(sent + delay), path, stamp);
        }
    }
    let skew = peer.delays.skew(B, A).unwrap();
    assert!(skew.abs_diff(30_000) <= 1, "{skew}");
    let a = peer.get(A);
    assert!((0..=600).contains(&(a.mean - a.min)), "{a:?}");
    assert!((29_900..30_000).contains(&a.mean), "{a:?}");
}

#[test]
fn a_jump_of_a_clock_begins_anew_on_all_paths() {
    for jump in [5_000_000, 3_000_000_000_u32] {
        let mut peer = Peer::new(0);
        let run = |peer: &mut Peer, seconds: std::ops::Range<u64>| {
            for n in seconds.start * 100..seconds.end * 100 {
                peer.arrive(A, n * 10_000, 20_000);
                peer.arrive(B, n * 10_000, 80_000);
            }
        };
        run(&mut peer, 0..2);
        peer.offset = jump;
        run(&mut peer, 2..3);
        assert_eq!(peer.delays.skew(B, A), Some(60_000), "{jump}");
        let a = peer.get(A);
        assert!(a.min.unsigned_abs() < JUMP && a.deviation.is_zero(), "{a:?}");
    }
}

#[test]
fn a_single_path_that_gets_slower_by_more_than_a_second_keeps_the_others() {
    let mut peer = Peer::new(0);
    for n in 0..400 {
        peer.arrive(A, n * 10_000, 20_000);
        // By 2 s, from the 200th on.
        peer.arrive(B, n * 10_000, 30_000 + n / 200 * 2_000_000);
    }
    assert_eq!(peer.delays.skew(B, A), Some(2_010_000));
    assert_eq!(peer.get(A).min, 0, "its window was not touched");
    assert_eq!(peer.get(B).min, 2_010_000);
}

#[test]
fn the_longest_delay_is_forgotten_after_a_second() {
    let mut peer = Peer::new(0);
    let at = |n: u64| n * 10_000;
    (0..100).for_each(|n| peer.arrive(A, at(n), 20_000 + if n == 50 { 30_000 } else { 0 }));
    assert_eq!(peer.get(A).max, 30_000);
    (100..200).for_each(|n| peer.arrive(A, at(n), 20_000));
    assert_eq!(peer.get(A).max, 0);
}

#[test]
fn an_idle_path_does_not_prevent_that_a_jump_is_seen() {
    let mut peer = Peer::new(0);
    peer.arrive(B, 0, 30_000);
    (0..100).for_each(|n| peer.arrive(A, 20_000_000 + n * 1000, 20_000));
    peer.offset = 9_000_000;
    (0..100).for_each(|n| peer.arrive(A, 21_000_000 + n * 1000, 20_000));
    assert_eq!(peer.get(A).mean, 0);
    assert_eq!(peer.delays.get(B), None, "of the clock before");
}

#[test]
fn the_wait_reaches_beyond_the_longest_delay_by_deviations_and_half_of_the_difference() {
    let mut peer = Peer::new(0);
    for n in 0..2000 {
        peer.arrive(A, n * 10_000, 20_000);
        peer.arrive(B, n * 10_000, 50_000 + n % 2 * 2000);
    }
    let slowest = peer.delays.slowest(0b11).unwrap();
    let near =
        |wait: Option<Duration>, micros: u128| wait.unwrap().as_micros().abs_diff(micros) < 400;
    assert!(near(peer.delays.wait(A, slowest), 32_000 + 4000 + 15_500));
    assert!(near(peer.delays.wait(B, slowest), 1000 + 4000 + 15_500));
    let alone = peer.delays.slowest(0b01).unwrap();
    assert_eq!(peer.delays.wait(A, alone), Some(Duration::ZERO));
    assert_eq!(
        peer.delays.wait(B, alone),
        Some(Duration::ZERO),
        "faster than the slowest by less than nothing"
    );
    peer.delays.forget_path(B);
    assert_eq!(peer.delays.slowest(0b10), None);
    assert_eq!(peer.delays.wait(B, alone), None);
}
