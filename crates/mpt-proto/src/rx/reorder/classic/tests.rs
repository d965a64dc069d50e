mod forged;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::Late;
use crate::sink::Held;

/// Delivers to a list, holds copies.
#[derive(Default)]
struct Trace {
    delivered: Vec<u32>,
    held: Vec<Option<u32>>,
    full: bool,
}

impl Sink for Trace {
    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.push(u32::from_be_bytes(packet.try_into().unwrap()));
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.held.push(Some(u32::from_be_bytes(packet.try_into().unwrap())));
        (!self.full).then_some(Held(self.held.len() as u32 - 1))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let packet = self.held[held.0 as usize].take().expect("a held packet is taken once");
        self.delivered.push(packet);
        4
    }
}

/// A buffer under test, with two live paths and a clock.
struct Bench {
    buffer: ClassicOrder,
    sink: Trace,
    now: Instant,
}

const MAX_DELAY: Duration = Duration::from_millis(300);

impl Bench {
    fn new(config: ReorderConfig) -> Self {
        let mut buffer = ClassicOrder::new(config, None, ReorderStats::default());
        [0, 1].map(PathId).into_iter().for_each(|path| buffer.forget_path(path));
        let mut sink = Trace::default();
        buffer.set_live(0b11, &mut sink);
        Self { buffer, sink, now: Instant::ZERO }
    }

    fn default() -> Self {
        Self::new(config())
    }

    fn receive(&mut self, path: u8, seq: u32) -> Result<Accepted, Drop> {
        let packet = seq.to_be_bytes();
        self.buffer.insert(self.now, PathId(path), Seq::new(seq), &packet, &mut self.sink)
    }

    /// Receives numbers that must all be accepted, and returns what they caused to be delivered.
    fn accept(&mut self, path: u8, seqs: impl IntoIterator<Item = u32>) -> Vec<u32> {
        for seq in seqs {
            assert_eq!(self.receive(path, seq), Ok(Accepted::Fits), "{seq}");
        }
        std::mem::take(&mut self.sink.delivered)
    }

    fn wait(&mut self, time: Duration) -> Vec<u32> {
        self.now += time;
        self.buffer.on_timeout(self.now, &mut self.sink);
        std::mem::take(&mut self.sink.delivered)
    }
}

fn config() -> ReorderConfig {
    ReorderConfig { window: 100, max_delay: MAX_DELAY, ..ReorderConfig::default() }
}

fn without_early_release() -> ReorderConfig {
    ReorderConfig { early_release: false, ..config() }
}

#[test]
fn what_comes_in_order_is_never_held() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(0, 0..50), (0..50).collect::<Vec<_>>());
    assert!(bench.sink.held.is_empty());
    assert_eq!(bench.buffer.deadline(), None);
    assert_eq!(bench.buffer.stats().in_order, 50);
}

#[test]
fn early_packets_wait_for_the_gap_to_fill() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(0, [0, 2, 3]), [0]);
    assert_eq!(bench.buffer.stats().held, 2);
    assert_eq!(bench.accept(1, [1]), [1, 2, 3]);
    assert_eq!(bench.buffer.stats().held, 0);
    assert_eq!(bench.buffer.stats().held_max, 2);
}

#[test]
fn the_first_packets_are_put_in_order_too() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(1, [1]), []);
    assert_eq!(bench.accept(0, [0]), [0, 1]);

    let mut bench = Bench::default();
    assert_eq!(bench.accept(1, [OVERTAKEN]), [OVERTAKEN], "a stream that has run for a while");
}

#[test]
fn order_holds_across_the_wrap() {
    let mut bench = Bench::default();
    let last = u32::MAX;
    assert_eq!(bench.accept(0, [last - 1, 1, 0]), [last - 1]);
    assert_eq!(bench.accept(1, [last]), [last, 0, 1]);
    assert_eq!(bench.receive(0, last), Err(Drop::Duplicate));
    assert_eq!(bench.accept(0, [2, 3]), [2, 3]);
}

#[test]
fn a_gap_is_lost_once_every_live_path_has_delivered_a_higher_number() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(0, [0, 2]), [0]);
    assert_eq!(bench.accept(1, [3]), [2, 3], "nobody can still bring 1");
    assert_eq!(bench.buffer.stats().lost_early_release, 1);

    assert_eq!(bench.accept(0, [6, 8]), []);
    assert_eq!(bench.accept(1, [5]), [5, 6], "4 is lost, but path 1 may still bring 7");
    assert_eq!(bench.accept(1, [9]), [8, 9], "now 7 is lost too");
}

#[test]
fn a_dead_path_is_not_waited_for() {
    let mut bench = Bench::default();
    bench.accept(1, [0]);
    assert_eq!(bench.accept(0, [2, 3]), []);
    bench.buffer.set_live(0b01, &mut bench.sink);
    assert_eq!(bench.sink.delivered, [2, 3]);
}

#[test]
fn without_early_release_a_gap_is_waited_for() {
    let mut bench = Bench::new(without_early_release());
    bench.accept(0, [0, 2]);
    assert_eq!(bench.accept(1, [3]), []);
    assert_eq!(bench.wait(MAX_DELAY - Duration::from_nanos(1)), []);
    assert_eq!(bench.wait(Duration::from_nanos(1)), [2, 3]);
    assert_eq!(bench.buffer.stats().lost_max_delay, 1);
}

#[test]
fn the_maximum_delay_ends_each_gap_alone() {
    let mut bench = Bench::new(without_early_release());
    bench.accept(0, [0, 2]);
    assert_eq!(bench.wait(Duration::from_millis(200)), []);
    bench.accept(0, [4]);
    assert_eq!(bench.wait(Duration::from_millis(100)), [2], "4 has been held for 100 ms only");
    assert_eq!(bench.wait(Duration::from_millis(199)), []);
    assert_eq!(bench.wait(Duration::from_millis(1)), [4]);
}

#[test]
fn the_longest_held_packet_counts_wherever_it_stands() {
    let mut bench = Bench::new(without_early_release());
    bench.accept(0, [0, 9]);
    bench.wait(Duration::from_millis(100));
    bench.accept(1, [3, 5, 12]);
    assert_eq!(
        bench.wait(Duration::from_millis(200)),
        [3, 5, 9],
        "9 came first and takes all along"
    );
    assert_eq!(bench.wait(Duration::from_millis(100)), [12]);
}

#[test]
fn a_packet_beyond_the_window_pushes_only_the_oldest_gaps_out() {
    let mut bench = Bench::new(ReorderConfig { window: 10, ..without_early_release() });
    bench.accept(0, [0, 2, 4, 6]);
    assert_eq!(bench.accept(0, [12]), [2], "numbers 3 to 12 fit");
    assert_eq!(bench.buffer.stats().lost_window, 1);
    assert_eq!(bench.accept(1, [3, 5]), [3, 4, 5, 6]);
}

#[test]
fn late_packets_are_delivered_or_dropped_as_configured() {
    for (late, outcome) in [(Late::Deliver, Ok(Accepted::Fits)), (Late::Drop, Err(Drop::Late))] {
        let mut bench = Bench::new(ReorderConfig { late, ..config() });
        bench.accept(0, [0, 2]);
        bench.accept(1, [3]);
        assert_eq!(bench.receive(1, 1), outcome);
        assert_eq!(bench.sink.delivered.contains(&1), late == Late::Deliver);
        let again = if late == Late::Deliver { Drop::Duplicate } else { Drop::Late };
        assert_eq!(bench.receive(1, 1), Err(again));
    }
}

#[test]
fn duplicates_are_dropped_and_flush_nothing() {
    let mut bench = Bench::default();
    bench.accept(0, 0..10);
    assert_eq!(bench.receive(1, 3), Err(Drop::Duplicate), "small numbers are no restart");
    bench.accept(0, [11]);
    assert_eq!(bench.receive(1, 11), Err(Drop::Duplicate));
    assert_eq!(bench.sink.delivered, []);
    assert_eq!(bench.buffer.stats().held, 1);
}

#[test]
fn one_far_number_has_no_effect() {
    for far in [1 << 20, 1 << 31, u32::MAX - 20_000] {
        let mut bench = Bench::default();
        bench.accept(0, 0..10);
        assert_eq!(bench.receive(0, far), Err(Drop::Stray));
        assert_eq!(bench.accept(0, 10..20), (10..20).collect::<Vec<_>>());
    }
}

#[test]
fn far_numbers_between_genuine_ones_never_indicate_a_restart() {
    let mut bench = Bench::default();
    for seq in 0..100 {
        assert_eq!(bench.accept(0, [seq]), [seq]);
        assert_eq!(bench.receive(0, 1_000_000 + seq), Err(Drop::Stray));
    }
}

#[test]
fn after_any_forgery_genuine_packets_are_delivered_again() {
    for late in [Late::Deliver, Late::Drop] {
        for forged in [150, 5_000, 16_000] {
            let mut bench = Bench::new(ReorderConfig { late, ..config() });
            bench.accept(0, 0..10);
            let _ = bench.receive(0, forged);
            bench.wait(MAX_DELAY);
            let genuine = 10..10 + restart_detector::BEHIND + 20;
            for seq in genuine.clone() {
                let _ = bench.receive((seq % 2) as u8, seq);
            }
            let end = &bench.sink.delivered[bench.sink.delivered.len() - 20..];
            assert_eq!(
                end,
                genuine.clone().skip(restart_detector::BEHIND as usize).collect::<Vec<_>>()
            );
            if late == Late::Deliver {
                assert_eq!(bench.sink.delivered.len(), genuine.len(), "nothing was lost");
            }
        }
    }
}

#[test]
fn an_announced_restart_is_accepted_at_once() {
    for before in [5, 100, 50_000] {
        let mut bench = Bench::default();
        bench.accept(0, 700..700 + before);
        bench.buffer.on_restart_announced();
        let expected = Seq::new(700 + before);
        assert_eq!(bench.receive(0, 0), Ok(Accepted::Restart { expected }));
        assert_eq!(bench.accept(0, 1..5), [0, 1, 2, 3, 4]);
        assert_eq!(bench.buffer.stats().restarts, 1);
    }
}

#[test]
fn a_restart_is_accepted_late_without_an_announcement() {
    let mut bench = Bench::default();
    bench.accept(0, 100_000..100_010);
    assert_eq!(bench.receive(0, 0), Err(Drop::Stray));
    assert_eq!(bench.receive(1, 1), Err(Drop::Stray));
    assert_eq!(bench.receive(1, 1), Err(Drop::Stray), "the same number twice proves nothing");
    let expected = Seq::new(100_010);
    assert_eq!(bench.receive(0, 2), Ok(Accepted::Restart { expected }));
    assert_eq!(bench.accept(0, 3..6), [2, 3, 4, 5]);

    let mut bench = Bench::default();
    bench.accept(0, 0..500);
    let mut duplicate = |path, seq| bench.receive(path, seq) == Err(Drop::Duplicate);
    assert!((0..200).all(|seq| duplicate(0, seq)), "one path alone may just have stood still");
    let lost = (200..400).take_while(|&seq| duplicate((seq % 2) as u8, seq)).count();
    assert!(lost < 2, "{lost}");
}

#[test]
fn an_outage_longer_than_the_window_costs_nothing_more() {
    let mut bench = Bench::default();
    bench.accept(0, 0..10);
    assert_eq!(bench.accept(0, [5_000]), []);
    assert_eq!(bench.accept(1, [5_001]), [5_000, 5_001]);
}

#[test]
fn held_packets_are_delivered_before_a_restart() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(0, [40_000, 40_002]), [40_000]);
    bench.buffer.on_restart_announced();
    assert!(matches!(bench.receive(0, 0), Ok(Accepted::Restart { .. })));
    assert_eq!(bench.sink.delivered, [40_002, 0]);
}

#[test]
fn with_window_zero_packets_are_delivered_as_they_arrive() {
    let mut bench = Bench::new(ReorderConfig { window: 0, ..config() });
    assert_eq!(bench.accept(0, [5, 3, 9, 3]), [5, 3, 9, 3]);
}

#[test]
fn a_full_store_gives_up_what_could_only_be_waited_for() {
    let mut bench = Bench::default();
    bench.accept(0, [0]);
    bench.sink.full = true;
    assert_eq!(bench.accept(0, [2]), [2]);
    assert_eq!(bench.accept(1, [1, 3]), [1, 3], "late, and in order again");
}

proptest! {
    /// Random paths, losses, duplicates and waits: nothing twice, nothing invented, in order unless
    /// late, never held too long, and the sums balance.
    #[test]
    fn invariants(
        start in any::<u32>(),
        window in 1..300_u32,
        early_release in any::<bool>(),
        late in prop_oneof![Just(Late::Deliver), Just(Late::Drop)],
        arrivals in prop::collection::vec((0..400_u32, 0..2_u8, 0..20_u64), 1..600),
    ) {
        let config = ReorderConfig {
            window,
            early_release,
            late,
            max_delay: MAX_DELAY,
            evidence: false,
        };
        let mut bench = Bench::new(config);
        let mut drops = 0;
        let mut restarted = false;
        for (round, (offset, path, wait)) in arrivals.iter().enumerate() {
            // The front moves on by one each time; arrivals stand around it.
            let seq = start.wrapping_add(round as u32 + offset);
            match bench.receive(*path, seq) {
                Ok(Accepted::Fits) => {}
                Ok(Accepted::Restart { .. } | Accepted::Return) => restarted = true,
                Err(_) => drops += 1,
            }
            bench.now += Duration::from_millis(*wait);
            let now = bench.now;
            bench.buffer.on_timeout(now, &mut bench.sink);
            if let Some(deadline) = bench.buffer.deadline() {
                prop_assert!(deadline > now && deadline <= now + MAX_DELAY);
            }
        }
        let stats = bench.buffer.stats();
        let delivered = stats.in_order + stats.reordered + stats.late;
        prop_assert_eq!(delivered, bench.sink.delivered.len() as u64);
        prop_assert_eq!(delivered + stats.held + drops, arrivals.len() as u64);
        prop_assert!(stats.held < u64::from(window));
        if !restarted {
            let mut seen = std::collections::HashSet::new();
            prop_assert!(bench.sink.delivered.iter().all(|seq| seen.insert(*seq)), "twice");
            if late == Late::Drop {
                let in_order = bench.sink.delivered.windows(2)
                    .all(|pair| Seq::new(pair[1]).offset_from(Seq::new(pair[0])) > 0);
                prop_assert!(in_order);
            }
        }
        bench.wait(MAX_DELAY);
        prop_assert_eq!(bench.buffer.stats().held, 0, "nothing is held for ever");
    }
}
