//! What follows numbers that were forged, or of a sender that restarted.

use super::*;

impl Bench {
    /// Receives ten numbers in a row that nobody sent; what was delivered of them is of no concern.
    fn forge(&mut self, first: u32) {
        for n in 0..10 {
            let _ = self.receive(0, first.wrapping_add(n));
        }
        self.sink.delivered.clear();
    }
}

/// As seen before the change: each of the first two genuine packets after the forged ones was dropped, and of
/// a TCP that sends one at a time each costs a time-out, twice as long as the one before.
#[test]
fn after_forged_numbers_the_first_genuine_packet_is_taken() {
    for forged in [50_000, 1 << 20, 1 << 31, u32::MAX - 20_000] {
        let mut bench = Bench::default();
        assert_eq!(bench.accept(0, 700..900), (700..900).collect::<Vec<_>>());
        let mut genuine = 900;
        for attack in 0..5 {
            let first = forged.wrapping_add(attack * 200_000);
            bench.forge(first);
            assert_eq!(bench.receive(1, genuine), Ok(Accepted::Return), "{forged} {attack}");
            assert_eq!(bench.accept(0, [genuine + 1]), [genuine, genuine + 1]);
            genuine += 2;
        }
        assert_eq!(bench.buffer.stats().held, 0);
    }
}

#[test]
fn packets_lost_while_numbers_were_forged_are_given_up_as_in_any_outage() {
    let mut bench = Bench::default();
    bench.accept(0, 700..900);
    bench.forge(1_000_000);
    // 900 to 904 were lost; then some that overtook each other.
    assert_eq!(bench.receive(0, 905), Ok(Accepted::Return));
    let mut came = bench.accept(1, [907, 906]);
    came.extend(bench.wait(MAX_DELAY));
    assert_eq!(came, [905, 906, 907]);
    assert_eq!(bench.accept(0, [902]), [902], "late");
    // One that was overtaken is the first to come.
    bench.forge(2_000_000);
    assert_eq!(bench.receive(1, 904), Ok(Accepted::Return));
    assert_eq!(bench.accept(0, [908]), [904, 908]);
}

#[test]
fn the_last_packets_before_a_restart_take_nothing_from_those_after_it() {
    let mut bench = Bench::default();
    bench.accept(0, 100_000..100_010);
    bench.buffer.on_restart_announced();
    let mut came = Vec::new();
    for n in 0..20 {
        assert!(bench.receive(0, n).is_ok(), "{n}");
        assert!(bench.receive(1, 100_010 + n).is_ok(), "{n} of before, on a slower path");
        came.extend([n, 100_010 + n]);
    }
    assert_eq!(bench.sink.delivered, came);
}

#[test]
fn an_announced_restart_begins_anew_where_a_former_life_ended() {
    let mut bench = Bench::default();
    for (life, packets) in [300, 50_000, 100].into_iter().enumerate() {
        if life > 0 {
            bench.buffer.on_restart_announced();
            assert!(matches!(bench.receive(0, 0), Ok(Accepted::Restart { .. })), "{life}");
        }
        bench.accept(0, u32::from(life > 0)..packets);
    }
    assert_eq!(bench.buffer.stats().late, 0);
}

/// In a session whose late packets are dropped.
fn session(live: u64) -> Bench {
    let config = ReorderConfig { late: Late::Drop, ..config() };
    let mut bench = Bench::new(config);
    bench.buffer = ClassicOrder::new(config, Some(Seq::FIRST), ReorderStats::default());
    [0, 1].map(PathId).into_iter().for_each(|path| bench.buffer.forget_path(path));
    bench.buffer.set_live(live, &mut bench.sink);
    bench
}

#[test]
fn one_forged_number_in_a_session_costs_no_packet_though_late_ones_are_dropped() {
    // Beyond the window; within it, given up as the only path has passed the gap; and after the maximum delay.
    for (ahead, live) in [(16_383, 0b11), (90, 0b01), (90, 0b11)] {
        let mut bench = session(live);
        bench.accept(0, 0..100);
        assert!(bench.receive(0, 100 + ahead).is_ok());
        let _ = bench.wait(MAX_DELAY);
        for genuine in (100..100 + ahead).filter(|genuine| genuine % 64 != 3) {
            assert_eq!(bench.receive(0, genuine), Ok(Accepted::Fits), "{genuine} of {ahead}");
            assert_eq!(bench.receive(0, genuine), Err(Drop::Duplicate));
        }
        bench.sink.delivered.clear();
        assert_eq!(bench.accept(0, 101 + ahead..110 + ahead).len(), 9, "it goes on behind it");
    }
}

#[test]
fn late_packets_are_dropped_once_three_in_a_row_have_come_behind_them() {
    let mut bench = session(0b01);
    bench.accept(0, 0..10);
    assert!(bench.receive(0, 20).is_ok());
    assert_eq!(bench.receive(0, 10), Ok(Accepted::Fits), "after one");
    bench.accept(0, [21, 22]);
    assert_eq!(bench.receive(0, 11), Ok(Accepted::Fits), "two since");
    bench.accept(0, [23, 24, 25]);
    assert_eq!(bench.receive(0, 12), Err(Drop::Late));
}
