mod beyond;
mod flows;
mod invariants;
mod margins;
mod oracle;
mod silent;

use std::time::Duration;

use super::*;

/// Delivers to a list, with the time; holds copies.
#[derive(Default)]
struct Trace {
    now: Instant,
    delivered: Vec<(u32, Instant)>,
    held: Vec<Option<u32>>,
    full: bool,
}

impl Sink for Trace {
    fn deliver(&mut self, packet: &[u8]) {
        let seq = u32::from_be_bytes(packet.try_into().unwrap());
        self.delivered.push((seq, self.now));
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.held.push(Some(u32::from_be_bytes(packet.try_into().unwrap())));
        (!self.full).then_some(Held(self.held.len() as u32 - 1))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let seq = self.held[held.0 as usize].take().expect("a held packet is taken once");
        self.delivered.push((seq, self.now));
        4
    }
}

/// An order under test, with live paths and a clock.
struct Bench {
    order: EvidenceOrder,
    sink: Trace,
    now: Instant,
}

const WINDOW: u32 = 4096;

impl Bench {
    fn new(paths: u8, window: u32) -> Self {
        let config = ReorderConfig { evidence: true, window, ..ReorderConfig::default() };
        let mut order = EvidenceOrder::new(config, Seq::FIRST, ReorderStats::default());
        (0..paths).for_each(|path| order.forget_path(PathId(path)));
        order.paths.iter_mut().for_each(PathEvidence::set_steady);
        let mut sink = Trace::default();
        order.set_live(Instant::ZERO, (1 << paths) - 1, &mut sink);
        Self { order, sink, now: Instant::ZERO }
    }

    /// Two paths.
    fn default() -> Self {
        Self::new(2, WINDOW)
    }

    /// The numbers begin elsewhere.
    fn at(mut self, start: u32) -> Self {
        self.order.next = Seq::new(start);
        self.order.end = self.order.next;
        self
    }

    fn receive(&mut self, path: u8, seq: u32, after: After) -> Result<Accepted, Drop> {
        self.receive_sent(true, path, seq, after)
    }

    /// Receives what was sent in turn, or out of it.
    fn receive_sent(
        &mut self,
        in_turn: bool,
        path: u8,
        seq: u32,
        after: After,
    ) -> Result<Accepted, Drop> {
        self.sink.now = self.now;
        let arrived = Arrived { path: PathId(path), seq: Seq::new(seq), after, in_turn };
        self.order.insert(self.now, arrived, &seq.to_be_bytes(), &mut self.sink)
    }

    fn delivered(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.sink.delivered).into_iter().map(|(seq, _)| seq).collect()
    }

    /// Receives a number that must be accepted, and returns what it caused to be delivered.
    fn accept(&mut self, path: u8, seq: u32, after: After) -> Vec<u32> {
        assert!(self.receive(path, seq, after).is_ok(), "{seq}");
        self.delivered()
    }

    /// Receives numbers whose predecessors are unknown.
    fn accept_all(&mut self, path: u8, seqs: impl IntoIterator<Item = u32>) -> Vec<u32> {
        seqs.into_iter().flat_map(|seq| self.accept(path, seq, After::Unknown)).collect()
    }

    fn cover(&mut self, path: u8, seq: u32) -> Vec<u32> {
        self.sink.now = self.now;
        self.order.covered(self.now, PathId(path), Seq::new(seq), &mut self.sink);
        self.delivered()
    }

    fn wait(&mut self, time: Duration) -> Vec<u32> {
        self.run_to(self.now + time);
        self.delivered()
    }

    /// Does all that is due until then, each at its time.
    fn run_to(&mut self, then: Instant) {
        while let Some(at) = self.order.deadline().filter(|&at| at <= then) {
            self.now = self.now.max(at);
            self.sink.now = self.now;
            self.order.on_timeout(self.now, &mut self.sink);
            let after = self.order.deadline();
            assert!(after.is_none_or(|after| after > self.now), "{after:?} at {:?}", self.now);
        }
        self.now = then;
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn after(seq: u32) -> After {
    After::Seq(Seq::new(seq))
}

#[test]
fn what_comes_in_order_is_never_held() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept_all(0, 0..50), (0..50).collect::<Vec<_>>());
    assert!(bench.sink.held.is_empty());
    assert_eq!(bench.order.deadline(), None);
    assert_eq!(bench.order.stats().in_order, 50);
}

#[test]
fn a_missing_packet_delays_its_own_flow_alone() {
    let mut bench = Bench::default();
    bench.accept_all(0, 0..2);
    // 2 is missing; 3 and 5 are of its flow, 4 of another one, 6 begins a third, 7 follows 4.
    assert_eq!(bench.accept(0, 3, after(2)), []);
    assert_eq!(bench.accept(0, 4, after(1)), [4]);
    assert_eq!(bench.accept(0, 5, after(3)), []);
    assert_eq!(bench.accept(0, 6, After::First), [6]);
    assert_eq!(bench.accept(0, 7, after(4)), [7]);
    assert_eq!(bench.order.stats().held, 2);
    assert_eq!(bench.accept(1, 2, after(1)), [2, 3, 5]);
    assert_eq!(bench.order.next, Seq::new(8));
}

#[test]
fn duplicates_of_all_kinds_are_dropped() {
    let mut bench = Bench::default();
    bench.accept_all(0, 0..2);
    bench.accept(0, 3, after(2));
    bench.accept(0, 4, after(1));
    for (seq, what) in [(0, "in order"), (3, "held"), (4, "ahead of the missing one")] {
        assert_eq!(bench.receive(1, seq, after(1)), Err(Drop::Duplicate), "{what}");
    }
    assert_eq!(bench.accept(1, 2, after(1)), [2, 3]);
    for seq in 0..5 {
        assert_eq!(bench.receive(1, seq, After::First), Err(Drop::Duplicate), "{seq}");
    }
    assert_eq!(bench.order.next, Seq::new(5));
}

#[test]
fn followers_are_delivered_in_a_chain() {
    let mut bench = Bench::default();
    for (seq, predecessor) in [(4, 2), (2, 0), (3, 1), (6, 4)] {
        assert_eq!(bench.accept(0, seq, after(predecessor)), []);
    }
    assert_eq!(bench.accept(1, 0, After::First), [0, 2, 4, 6]);
    assert_eq!(bench.accept(1, 1, After::First), [1, 3]);
    assert_eq!(bench.order.stats().held, 0);
    assert_eq!(bench.order.next, Seq::new(5));
}

#[test]
fn a_predecessor_that_comes_ahead_of_missing_ones_releases_too() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(0, 9, after(5)), []);
    assert_eq!(bench.accept(1, 5, After::First), [5, 9], "0 to 4 are missing");
}

#[test]
fn an_unknown_or_far_predecessor_waits_for_all_before_it() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept(0, 1, After::Far), []);
    assert_eq!(bench.accept(0, 2, After::Unknown), []);
    assert_eq!(bench.accept(0, 3, After::First), [3]);
    assert_eq!(bench.accept(1, 0, After::First), [0, 1, 2]);
}

#[test]
fn a_gap_is_lost_once_every_live_path_has_passed_it() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept_all(0, [0, 2]), [0]);
    assert_eq!(bench.accept_all(1, [3]), [2, 3], "nobody can still bring 1");
    assert_eq!(bench.order.stats().lost_early_release, 1);

    assert_eq!(bench.accept_all(0, [6, 8]), []);
    assert_eq!(bench.accept_all(1, [5]), [5, 6], "4 is lost, but path 1 may still bring 7");
    assert_eq!(bench.accept_all(1, [9]), [8, 9], "now 7 is lost too");
}

#[test]
fn a_dead_path_is_not_waited_for() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept_all(0, [0, 2, 3]), [0]);
    bench.order.set_live(bench.now, 0b01, &mut bench.sink);
    assert_eq!(bench.delivered(), [2, 3]);
}

#[test]
fn a_beacon_counts_like_a_higher_number() {
    let mut bench = Bench::default();
    assert_eq!(bench.accept_all(0, [0, 2, 4]), [0]);
    assert_eq!(bench.cover(1, 0), [], "says nothing of 1");
    assert_eq!(bench.cover(1, 1), [2], "3 may still come");
    assert_eq!(bench.cover(1, 9), [4]);
    assert_eq!(bench.order.next, Seq::new(5), "path 0 may bring 5");
    // The last ones before a pause are lost.
    assert_eq!(bench.cover(0, 9), []);
    assert_eq!(bench.order.next, Seq::new(10));
    assert_eq!(bench.order.stats().lost_early_release, 7);
    assert_eq!(bench.accept(0, 7, After::First), [7], "late");
    assert_eq!(bench.order.stats().late, 1);
}

#[test]
fn a_beacon_of_a_session_without_data_has_no_effect() {
    let mut bench = Bench::default();
    assert_eq!(bench.cover(0, u32::MAX), []);
    assert_eq!(bench.cover(0, WINDOW), [], "forged");
    assert_eq!(bench.accept_all(0, 0..3), [0, 1, 2]);
}

#[test]
fn a_gap_is_given_up_after_the_wait_of_the_path_that_shows_it() {
    let mut bench = Bench::default();
    bench.order.set_wait(PathId(0), ms(40), Duration::ZERO);
    bench.order.set_wait(PathId(1), ms(3), Duration::ZERO);
    assert_eq!(bench.accept_all(0, [0, 2]), [0]);
    assert_eq!(bench.wait(ms(10)), []);
    assert_eq!(bench.accept_all(0, [4]), []);
    assert_eq!(bench.wait(ms(30) - Duration::from_nanos(1)), []);
    assert_eq!(bench.wait(Duration::from_nanos(1)), [2], "4 has been held for 30 ms only");
    assert_eq!(bench.order.stats().lost_max_delay, 1);
    assert_eq!(bench.wait(ms(10)), [4]);

    let mut bench = Bench::new(3, WINDOW);
    bench.order.set_wait(PathId(0), ms(40), Duration::ZERO);
    bench.order.set_wait(PathId(1), ms(3), Duration::ZERO);
    assert_eq!(bench.accept_all(0, [0, 5]), [0]);
    assert_eq!(bench.accept_all(1, [2]), []);
    assert_eq!(bench.wait(ms(3)), [2], "what was before it is not on its way");
    assert_eq!(bench.wait(ms(37)), [5]);
}

#[test]
fn waits_are_bounded() {
    for (wait, held) in [(Duration::ZERO, ms(1)), (ms(10_000), ms(250))] {
        let mut bench = Bench::default();
        bench.order.set_wait(PathId(0), wait, Duration::ZERO);
        bench.accept_all(0, [1]);
        assert_eq!(bench.order.deadline(), Some(bench.now + held));
    }
}

#[test]
fn a_follower_that_comes_after_the_wait_is_not_held() {
    let mut bench = Bench::default();
    bench.order.set_wait(PathId(0), ms(5), Duration::ZERO);
    bench.accept_all(0, [0]);
    assert_eq!(bench.accept(0, 2, After::First), [2]);
    assert_eq!(bench.order.deadline(), None, "nobody waits for 1");
    bench.now += ms(5);
    assert_eq!(bench.accept(1, 3, after(1)), [3]);
}

#[test]
fn what_a_path_brought_before_the_numbers_wrapped_says_nothing() {
    let mut bench = Bench::default();
    bench.accept_all(1, [5]);
    bench.accept_all(0, 0..5);
    assert_eq!(bench.order.next, Seq::new(6));
    // Path 1 was idle while the numbers went all around.
    let mut bench = bench.at(0);
    assert_eq!(bench.accept_all(0, [0, 2]), [0]);
}

#[test]
fn a_slot_that_is_used_again_has_no_follower() {
    let mut bench = Bench::new(2, 16);
    assert_eq!(bench.accept_all(0, [0]), [0]);
    assert_eq!(bench.accept(0, 3, after(1)), []);
    assert_eq!(bench.accept(1, 1, After::First), [1, 3]);
    assert_eq!(bench.accept_all(0, [2]), [2]);
    assert_eq!(bench.accept_all(0, 4..16), (4..16).collect::<Vec<_>>());
    // 17 has the slot of 1, and 19 is as far from it as 3 was from 1.
    assert_eq!(bench.accept(0, 19, after(18)), []);
    assert_eq!(bench.accept(1, 17, After::First), [17]);
    assert_eq!(bench.accept(1, 18, After::First), [18, 19]);
}

#[test]
fn what_a_removed_path_brought_is_not_held_for_ever() {
    let mut bench = Bench::default();
    bench.order.set_wait(PathId(1), ms(50), Duration::ZERO);
    bench.accept_all(0, [0]);
    assert_eq!(bench.accept_all(1, [2]), []);
    bench.order.forget_path(PathId(1));
    bench.order.set_live(bench.now, 0b01, &mut bench.sink);
    assert_eq!(bench.wait(ms(49)), []);
    assert_eq!(bench.wait(ms(1)), [2]);
    // Nor does the past of its number count for another path.
    bench.order.set_live(bench.now, 0b11, &mut bench.sink);
    assert_eq!(bench.accept_all(0, [4]), []);
}

#[test]
fn numbers_out_of_reach_are_strays_and_nothing_else() {
    let mut bench = Bench::default();
    bench.accept_all(0, 0..10);
    for n in 0..100 {
        let reach = REACH as u32;
        assert_eq!(bench.receive(0, 10 + reach + n, After::First), Err(Drop::Stray));
        assert_eq!(bench.receive(0, 0_u32.wrapping_sub(reach + n), after(1)), Err(Drop::Stray));
        assert_eq!(bench.receive(0, u32::MAX - n, after(1)), Err(Drop::Duplicate), "never sent");
    }
    assert_eq!(bench.accept_all(0, 10..20), (10..20).collect::<Vec<_>>());
}

#[test]
fn order_holds_across_the_wrap() {
    let last = u32::MAX;
    let mut bench = Bench::default().at(last - 1);
    assert_eq!(bench.accept(0, last - 1, After::First), [last - 1]);
    assert_eq!(bench.accept(0, 1, after(last)), []);
    assert_eq!(bench.accept(0, 0, after(last - 1)), [0]);
    assert_eq!(bench.accept(1, last, after(last - 1)), [last, 1]);
    assert_eq!(bench.receive(0, last, After::First), Err(Drop::Duplicate));
    assert_eq!(bench.accept_all(0, [2, 3]), [2, 3]);
}

#[test]
fn a_packet_beyond_the_window_pushes_only_the_oldest_gaps_out() {
    let mut bench = Bench::new(2, 10);
    bench.accept_all(0, [0, 2, 4, 6]);
    assert_eq!(bench.accept_all(0, [12]), [2], "numbers 3 to 12 fit");
    assert_eq!(bench.order.stats().lost_window, 1);
    assert_eq!(bench.accept_all(1, [3, 5]), [3, 4, 5, 6]);
    assert_eq!(bench.accept_all(0, [16]), [], "numbers 7 to 16 fit");
    assert_eq!(bench.accept_all(0, [17]), []);
    assert_eq!(bench.order.stats().lost_window, 2);
    let reach = REACH as u32;
    assert_eq!(bench.accept_all(0, [reach + 5]), [12, 16, 17]);
    assert_eq!(bench.order.next, Seq::new(reach + 5 - 9));
    // 0, 2 to 6, 12, 16 and 17 came.
    assert_eq!(bench.order.stats().lost_window, u64::from(reach + 5 - 9 - 9));
}

#[test]
fn a_full_store_gives_up_what_could_only_be_waited_for() {
    let mut bench = Bench::default();
    bench.accept_all(0, [0]);
    bench.sink.full = true;
    assert_eq!(bench.accept(0, 2, after(1)), [2]);
    assert_eq!(bench.accept_all(1, [1, 3]), [1, 3], "late, and in order again");
}

#[test]
fn an_idle_connection_takes_little_memory() {
    let mut bench = Bench::new(4, WINDOW);
    bench.accept_all(0, 0..100_000);
    assert!(bench.order.memory() < 3000, "{}", bench.order.memory());
}
