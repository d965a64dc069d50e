//! What a tunnel gets of a link that somebody else uses, too, and what it leaves.
//!
//! The table of all lengths of the queue takes minutes:
//!
//! ```console
//! $ cargo test --release -p mpt-sim --test suite beside:: -- --ignored --nocapture
//! ```

use std::net::{IpAddr, Ipv4Addr};

use crate::links::{at, clear, plan};
use mpt_proto::{PathId, PathStanding, RateStage};
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::world::pair::{Pair, PairPlan};
use mpt_sim::world::{BulkId, Direction, End, HostId, TrunkId, WireId, World};

/// 40 Mbit/s, 40 ms of round trip: 200 kB.
const RATE: u64 = 40_000_000;
const BDP: u64 = 200_000;

/// Lengths of the queue: half, one and five of these, and a second.
const QUEUES: [(&str, u64); 4] =
    [("half", BDP / 2), ("one", BDP), ("five", 5 * BDP), ("second", 25 * BDP)];

/// Who else is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rival {
    Tunnel,
    Plain,
}

/// Two at one link.
struct Two {
    world: World,
    trunk: TrunkId,
    left: HostId,
    bulks: [BulkId; 2],
    /// What the rival sends goes by this one.
    other_wire: WireId,
}

fn sender(port: u16, from: u64, to: u64) -> Sender {
    Sender::new(Pair::flow(false, port), 1380, at(from), at(to))
}

/// A tunnel with a transfer from the second second on, and a rival from and until these times in milliseconds.
fn two(plan: &PairPlan, queue: u64, rival: Rival, times: [u64; 2], seed: u64) -> Two {
    two_of(
        plan,
        queue,
        rival,
        [sender(5001, 1000, 1_000_000), sender(5002, times[0], times[1])],
        seed,
    )
}

/// The same with these two transfers.
fn two_of(plan: &PairPlan, queue: u64, rival: Rival, [own, other]: [Sender; 2], seed: u64) -> Two {
    let pair = Pair::new(seed, plan).expect("a plan the core accepts");
    let (left, wire, mut world) = (pair.left, pair.wires[0], pair.world);
    let shared = Profile { rate: Some(RATE), queue: Some(queue), ..Profile::default() };
    let own = world.add_bulk(pair.left, pair.right, own);
    let (mut world, other, other_wire) = match rival {
        Rival::Plain => {
            let end =
                |host, last| End { host, address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)) };
            let ends = (end(pair.left, 1), end(pair.right, 2));
            let wire = world.add_wire(ends.0, ends.1, clear(20), clear(20));
            let other = world.add_plain_bulk(wire, other);
            (world, other, wire)
        }
        Rival::Tunnel => {
            let mut pair = Pair::beside(world, plan).expect("a plan the core accepts");
            let other = pair.world.add_bulk(pair.left, pair.right, other);
            (pair.world, other, pair.wires[0])
        }
    };
    let trunk = world.add_trunk(&[wire, other_wire], Direction::There, shared);
    Two { world, trunk, left, bulks: [own, other], other_wire }
}

impl Two {
    /// What the tunnel says of its path.
    fn standing(&self) -> PathStanding {
        let endpoint = self.world.endpoint(self.left).expect("it runs");
        let standing = endpoint.connection(Pair::CONNECTION).standing(self.world.now(), PathId(0));
        standing.expect("it is paced")
    }

    fn bytes(&self) -> [f64; 2] {
        self.bulks.map(|bulk| self.world.bulk(bulk).1.stats().bytes as f64)
    }

    /// Mbit/s of both from one second to another.
    fn goodput(&mut self, from: u64, to: u64) -> [f64; 2] {
        self.world.run_until(at(from * 1000));
        let before = self.bytes();
        self.world.run_until(at(to * 1000));
        let after = self.bytes();
        [0, 1].map(|it| (after[it] - before[it]) * 8.0 / 1e6 / (to - from) as f64)
    }

    /// How many milliseconds stand in the queue.
    fn stands(&self) -> f64 {
        self.world.trunk_backlog(self.trunk) as f64 * 8e3 / RATE as f64
    }

    /// The same on average from one second to another.
    fn mean_queue(&mut self, from: u64, to: u64) -> f64 {
        let looks = (from * 1000..to * 1000).step_by(10);
        let count = looks.clone().count() as f64;
        let sum: f64 = looks
            .map(|millis| {
                self.world.run_until(at(millis));
                self.stands()
            })
            .sum();
        sum / count
    }

    /// What happens in a second.
    fn second(&mut self, second: u64) -> String {
        let [own, other] = self.goodput(second, second + 1);
        let standing = self.standing();
        let mbps = |rate: Option<u64>| rate.map_or(0.0, |rate| rate as f64 * 8.0 / 1e6);
        let stands = self.stands();
        let (rate, pace) = (mbps(standing.rate), mbps(standing.pace));
        let found = standing.found.last().map(|found| found.what);
        format!(
            "{second:3} {own:5.1} {other:5.1} stands {stands:6.1} ms, {:?} rate {rate:.1} pace {pace:.1} {found:?}",
            standing.stage
        )
    }
}

/// The path of all of them.
fn path() -> PairPlan {
    plan(&[clear(20)])
}

/// Jain's index of two.
fn jain([one, other]: [f64; 2]) -> f64 {
    (one + other).powi(2) / (2.0 * (one * one + other * other))
}

/// What both get in a minute, where the other one comes in this second, and both end their slow start before the queue is full.
fn minute_from(plan: &PairPlan, queue: u64, second: u64) -> [f64; 2] {
    let transfers = [sender(5001, 1000, 1_000_000), sender(5002, second * 1000, 1_000_000)];
    let transfers = transfers.map(Sender::with_hystart);
    two_of(plan, queue, Rival::Plain, transfers, 1).goodput(second, second + 60)
}

/// What both get in a minute.
fn minute(plan: &PairPlan, queue: u64, rival: Rival) -> [f64; 2] {
    two(plan, queue, rival, [1000, 1_000_000], 1).goodput(1, 61)
}

/// The first one's share of half of what both get.
fn fair_share(got: [f64; 2]) -> f64 {
    2.0 * got[0] / (got[0] + got[1])
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn two_tunnels_share_a_link() {
    for (name, queue) in QUEUES {
        let got = minute(&path(), queue, Rival::Tunnel);
        assert!(jain(got) >= 0.9, "{name}: {got:?}, Jain {}", jain(got));
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_tunnel_competes_with_a_flow_that_keeps_a_queue() {
    let mut yields = path();
    yields.connection.compete = false;
    // Without competing it starves the more the longer the queue can become.
    for ((name, queue), [off, on, most]) in QUEUES.into_iter().zip([
        [0.75, 0.75, 1.2],
        [0.65, 0.6, 1.2],
        [0.4, 0.5, 1.2],
        [0.11, 0.12, 1.2],
    ]) {
        let without = fair_share(minute(&yields, queue, Rival::Plain));
        let with = fair_share(minute(&path(), queue, Rival::Plain));
        println!("{name}: {without:.3} without competing, {with:.3} with it");
        assert!(without < off, "{name}: {without} without competing");
        assert!(with >= on && with <= most, "{name}: {with}");
    }
}

/// Such a flow lengthens a queue of a second for many seconds before anything is lost.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_tunnel_competes_with_a_flow_that_has_lost_nothing_yet() {
    for (second, least) in [(1, [0.85, 0.6, 0.4, 0.42]), (10, [0.7, 0.65, 0.6, 0.6])] {
        for ((name, queue), least) in QUEUES.into_iter().zip(least) {
            let share = fair_share(minute_from(&path(), queue, second));
            println!("from second {second} on, {name}: {share:.3}");
            assert!(share >= least && share <= 1.2, "{second}, {name}: {share} of a fair share");
        }
    }
}

/// Two tunnels take each other for no such flow.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn two_tunnels_keep_the_queue_short() {
    let mut two = two(&path(), 25 * BDP, Rival::Tunnel, [1000, 1_000_000], 1);
    for millis in (2000..30_000).step_by(10) {
        two.world.run_until(at(millis));
        assert_ne!(two.standing().stage, RateStage::Competing, "after {millis} ms");
    }
}

/// Nor does it take others for one that send in bursts, whatever stands there: a sixth to two fifths of what the link carries.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn steady_bursts_of_others_raise_no_queue() {
    for per_second in [60, 100, 140] {
        let [share, stands] = beside_pages([per_second, 8], 26, false);
        println!("{per_second} per second: {share:.2} of the rest, {stands:.1} ms stand");
        assert!(share > 0.9 && stands < 15.0, "{per_second}: {share} of the rest, {stands} ms");
    }
}

/// The flow ends in the 20th second; until then it has kept up to 200 ms.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_tunnel_that_is_alone_again_keeps_no_queue() {
    let mut two = two(&path(), 5 * BDP, Rival::Plain, [1000, 20_000], 1);
    two.world.run_until(at(19_000));
    assert_eq!(two.standing().stage, RateStage::Competing);
    two.world.run_until(at(50_000));
    let mut carried = two.goodput(50, 51)[0];
    let mean = two.mean_queue(51, 61);
    carried += two.goodput(61, 62)[0];
    assert!(mean < 15.0, "{mean} ms stand in the queue on average");
    assert_ne!(two.standing().stage, RateStage::Competing);
    assert!(carried / 2.0 > 0.9 * 40.0 * 1380.0 / 1432.0, "{carried}");
}

/// Prints what both got in a minute.
#[test]
#[ignore = "prints a table, takes minutes"]
fn table() {
    let only = std::env::var("ONLY").ok();
    for rival in [Rival::Tunnel, Rival::Plain] {
        for (name, queue) in QUEUES {
            if only.as_ref().is_some_and(|only| *only != format!("{rival:?}/{name}")) {
                continue;
            }
            if std::env::var("TRACE").is_ok() {
                let mut two = two(&path(), queue, rival, [1000, 1_000_000], 1);
                (1..61).for_each(|second| println!("{}", two.second(second)));
            }
            let got = minute(&path(), queue, rival);
            let (jain, share) = (jain(got), fair_share(got));
            println!("{rival:?} {name}: {got:.1?}, Jain {jain:.3}, {share:.2} of a fair share");
            if rival == Rival::Plain {
                for second in [1, 10] {
                    let got = minute_from(&path(), queue, second);
                    let share = fair_share(got);
                    println!("from {second} on, {name}: {got:.1?}, {share:.2} of a fair share");
                }
            }
        }
    }
}

/// A tunnel's share of what others leave of the link from second 5 until another one that load so many pages per second, each a transfer that
/// ends after so many milliseconds, and what stands in the queue on average, in milliseconds. A page of 8 ms is ten packets.
fn beside_pages([per_second, long]: [u64; 2], until: u64, bbr: bool) -> [f64; 2] {
    let own = sender(5001, 1000, 1_000_000);
    let own = if bbr { own.with_bbr() } else { own };
    let page = |nth: u64| {
        let from = 500 + nth * 1000 / per_second;
        sender(6000 + nth as u16, from, from + long)
    };
    let mut two = two_of(&path(), 25 * BDP, Rival::Plain, [own, page(0)], 1);
    let [own, first] = two.bulks;
    let later = (1..(until + 1) * per_second)
        .map(|nth| two.world.add_plain_bulk(two.other_wire, page(nth)));
    let pages: Vec<_> = std::iter::once(first).chain(later).collect();
    let mbytes = |two: &Two, bulks: &[BulkId]| {
        let bytes = bulks.iter().map(|bulk| two.world.bulk(*bulk).1.stats().bytes);
        bytes.sum::<u64>() as f64 / 1e6
    };
    two.world.run_until(at(5000));
    let before = [mbytes(&two, &[own]), mbytes(&two, &pages)];
    let stands = two.mean_queue(5, until);
    let carried = mbytes(&two, &[own]) - before[0];
    let left = (until - 5) as f64 * RATE as f64 / 8e6 * 1380.0 / 1432.0
        - (mbytes(&two, &pages) - before[1]);
    [carried / left, stands]
}

/// Prints these of some loads.
#[test]
#[ignore = "prints a table"]
fn pages() {
    const PAGES: [[u64; 2]; 8] =
        [[1, 170], [3, 170], [6, 170], [3, 130], [10, 130], [1, 250], [1, 300], [3, 300]];
    const BURSTS: [[u64; 2]; 4] = [[20, 8], [50, 8], [100, 8], [200, 8]];
    for bbr in [false, true] {
        for load in PAGES.into_iter().chain(BURSTS) {
            let [share, stands] = beside_pages(load, 35, bbr);
            println!("BBR {bbr}, {load:?}: {share:.2} of the rest, {stands:.1} ms stand");
        }
    }
}
