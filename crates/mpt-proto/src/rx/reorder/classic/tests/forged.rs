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
