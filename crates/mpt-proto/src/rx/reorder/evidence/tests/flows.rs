//! Two paths of different delay, two flows of which one loses packets.

use super::*;
use crate::config::EVIDENCE_WINDOW;
use crate::rx::reorder::classic::ClassicOrder;

const DELAYS: [Duration; 2] = [ms(10), ms(35)];
const SKEW: Duration = ms(25);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Both orders.
trait Order {
    fn deadline(&self) -> Option<Instant>;
    fn on_timeout(&mut self, now: Instant, sink: &mut Trace);
    fn insert(&mut self, now: Instant, arrived: Arrived, sink: &mut Trace);
}

impl Order for EvidenceOrder {
    fn deadline(&self) -> Option<Instant> {
        self.deadline()
    }

    fn on_timeout(&mut self, now: Instant, sink: &mut Trace) {
        self.on_timeout(now, sink);
    }

    fn insert(&mut self, now: Instant, arrived: Arrived, sink: &mut Trace) {
        let packet = arrived.seq.value().to_be_bytes();
        self.insert(now, arrived, &packet, sink).expect("it is the first of its number");
    }
}

impl Order for ClassicOrder {
    fn deadline(&self) -> Option<Instant> {
        self.deadline()
    }

    fn on_timeout(&mut self, now: Instant, sink: &mut Trace) {
        self.on_timeout(now, sink);
    }

    fn insert(&mut self, now: Instant, Arrived { path, seq, .. }: Arrived, sink: &mut Trace) {
        let packet = seq.value().to_be_bytes();
        self.insert(now, path, seq, &packet, sink).expect("it is the first of its number");
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug)]
struct Fate {
    path: usize,
    of_b: bool,
    waited: Duration,
}

/// What is sent.
#[derive(Clone, Copy)]
struct Plan {
    /// So many of a thousand packets of A are lost.
    losses: u64,
    /// Added to the delay, at random from nothing to this.
    jitter: Duration,
    /// B uses the faster path alone, and not both.
    b_keeps_to_one: bool,
}

const PLAN: Plan = Plan { losses: 50, jitter: Duration::ZERO, b_keeps_to_one: false };

/// Packets of flows A and B over both paths for ten seconds, 2000 per second at random. Returns what became of those
/// that were not lost.
fn run(order: &mut impl Order, plan: Plan) -> Vec<Fate> {
    const COUNT: u32 = 20_000;
    let Plan { losses, jitter, b_keeps_to_one } = plan;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let mut arrivals = Vec::new();
    let mut last = [None, None];
    for seq in (0..COUNT).map(Seq::new) {
        let of_b = below(2) == 0;
        let path = if of_b && b_keeps_to_one { 0 } else { below(2) as usize };
        let after = last[usize::from(of_b)].replace(seq).map_or(After::First, After::Seq);
        if of_b || below(1000) >= losses {
            let sent = Instant::ZERO + Duration::from_micros(500) * seq.value();
            let jitter = Duration::from_nanos(below(jitter.as_nanos() as u64 + 1));
            let arrived = Arrived { path: PathId(path as u8), seq, after, in_turn: true };
            arrivals.push((sent + DELAYS[path] + jitter, arrived, of_b));
        }
    }
    arrivals.sort_by_key(|arrival| arrival.0);
    let mut sink = Trace::default();
    for (now, arrived, _) in &arrivals {
        while let Some(at) = order.deadline().filter(|at| at <= now) {
            sink.now = at;
            order.on_timeout(at, &mut sink);
        }
        sink.now = *now;
        order.insert(*now, *arrived, &mut sink);
    }
    while let Some(at) = order.deadline() {
        sink.now = at;
        order.on_timeout(at, &mut sink);
    }
    assert_eq!(sink.delivered.len(), arrivals.len());
    let mut at = vec![None; COUNT as usize];
    sink.delivered.iter().for_each(|(seq, delivered)| at[*seq as usize] = Some(*delivered));
    let fate = |(came, arrived, of_b): (Instant, Arrived, bool)| Fate {
        path: arrived.path.index(),
        of_b,
        waited: at[arrived.seq.value() as usize].expect("all were delivered").since(came),
    };
    arrivals.into_iter().map(fate).collect()
}

fn by_evidence(plan: Plan, deviation: Duration) -> (Vec<Fate>, ReorderStats) {
    let mut bench = Bench::default();
    for path in 0..2_u8 {
        let wait = DELAYS[1] - DELAYS[usize::from(path)] + deviation * 4;
        bench.order.set_wait(PathId(path), wait, deviation);
    }
    (run(&mut bench.order, plan), bench.order.stats())
}

/// The longest that packets of a flow and a path have waited.
fn longest(fates: &[Fate], of_b: bool, path: usize) -> Duration {
    let fates = fates.iter().filter(|fate| fate.of_b == of_b && fate.path == path);
    fates.map(|fate| fate.waited).max().expect("each flow uses each path")
}

#[test]
fn packets_of_another_flow_wait_for_no_longer_than_their_path_is_faster() {
    for losses in [10, 50] {
        let (fates, stats) = by_evidence(Plan { losses, ..PLAN }, Duration::ZERO);
        assert!(stats.lost_early_release + stats.lost_max_delay > 50, "{stats:?}");
        assert_eq!(stats.late, 0);
        assert!(longest(&fates, true, 0) <= SKEW);
        assert_eq!(longest(&fates, true, 1), Duration::ZERO, "the slower path");
        // Nor do those of the flow that loses packets.
        assert!(longest(&fates, false, 0) <= SKEW);
        assert_eq!(longest(&fates, false, 1), Duration::ZERO);
    }
}

/// The difference between the orders: packets that all take one path wait for nothing but their own flow, and in the
/// classic order for what another path may bring of another flow.
#[test]
fn packets_of_a_flow_on_one_path_do_not_wait_at_all() {
    let plan = Plan { b_keeps_to_one: true, ..PLAN };
    let longest = |fates: &[Fate]| {
        fates.iter().filter(|fate| fate.of_b).map(|fate| fate.waited).max().unwrap()
    };
    assert_eq!(longest(&by_evidence(plan, Duration::ZERO).0), Duration::ZERO);

    let config = ReorderConfig { window: WINDOW, ..ReorderConfig::default() };
    let mut order = ClassicOrder::new(config, None, ReorderStats::default());
    (0..2).for_each(|path| order.forget_path(PathId(path)));
    order.set_live(0b11, &mut Trace::default());
    assert!(longest(&run(&mut order, plan)) >= SKEW);
}

/// Uniform jitter of 8 ms, whose mean deviation is 2 ms, on paths that overtake packets by it: few come after they were given
/// up, and the other flow waits for as long as the paths' delays differ with the jitter.
#[test]
fn jitter_raises_the_margin_until_few_packets_are_late() {
    let jitter = ms(8);
    let (fates, stats) = by_evidence(Plan { losses: 20, jitter, ..PLAN }, ms(2));
    assert!(stats.late * 200 < fates.len() as u64, "{stats:?}");
    assert!(longest(&fates, true, 0) <= SKEW + jitter);
    assert!(longest(&fates, true, 1) <= jitter);
    assert!(longest(&fates, false, 0) <= SKEW + jitter * 2);
}

/// The slots grow while packets are held, some of which wait for others.
#[test]
fn what_is_held_stays_in_order_when_much_more_is_held() {
    let mut bench = Bench::new(2, EVIDENCE_WINDOW).at(u32::MAX - 1500);
    let number = |n: u32| (u32::MAX - 1500).wrapping_add(n);
    // Number 0 is missing. Of the others one in three follows the number before it, others wait for all.
    let after_of = |n: u32| if n.is_multiple_of(3) { after(number(n - 1)) } else { After::Unknown };
    for n in 1..5000 {
        assert_eq!(bench.accept(0, number(n), after_of(n)), [], "{n}");
    }
    assert_eq!(bench.order.stats().held, 4999);
    let all: Vec<u32> = (0..5000).map(number).collect();
    assert_eq!(bench.accept(1, number(0), After::First), all);
}

/// What waits for nothing may come so far ahead of all that waits that its number has no slot of its own.
#[test]
fn what_comes_far_ahead_takes_no_held_packet_along() {
    let mut bench = Bench::new(2, EVIDENCE_WINDOW);
    // Number 0 is missing, 1 waits for it, and 2 and 3 for all before them.
    assert_eq!(bench.accept(0, 1, after(0)), []);
    assert_eq!(bench.accept(0, 2, After::Unknown), []);
    assert_eq!(bench.accept(0, 3, After::Unknown), []);
    for slots in [1024, 2048, 4096, 8192] {
        assert_eq!(bench.accept(0, slots, After::First), [slots]);
        assert_eq!(bench.accept(0, slots + 2, After::First), [slots + 2], "it is not there yet");
    }
    assert_eq!(bench.accept(1, 0, After::First), [0, 1, 2, 3]);
}
