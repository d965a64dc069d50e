//! Links that stand still for some milliseconds now and then, as those of an emulator or a modem on a busy host do.
//!
//! ```console
//! $ LINKS='50/0/0,50/0/0 10/1/0,100/5/0' STALL=8 TIMES=10 cargo test --release -p mpt-sim --test suite stalled::table -- --ignored --nocapture
//! ```

use std::time::Duration;

use mpt_proto::Instant;
use mpt_sim::profile::Profile;
use mpt_sim::world::pair::Pair;
use mpt_sim::world::{BulkId, Direction, WireId};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::links::{at, begins, line_of_step, links_of, of_each, plan, sender_by};

/// How long links stand still, at most, in milliseconds, and how often in a second.
#[derive(Clone, Copy, Debug)]
struct Stalls {
    longest: u64,
    times: u64,
    /// All at once, and not each by itself.
    together: bool,
}

/// Runs until then, with links that stand still at random until then.
fn run(
    pair: &mut Pair,
    wires: &[Profile],
    stalls: Stalls,
    rng: &mut Xoshiro256PlusPlus,
    to: Instant,
) {
    while pair.world.now() < to {
        let now = pair.world.now();
        let links = pair.wires.clone();
        let both = [Direction::There, Direction::Back];
        let each = links.iter().zip(wires).flat_map(|(wire, is)| both.map(|way| (*wire, is, way)));
        let common = Duration::from_micros(rng.random_range(0..=1000 * stalls.longest));
        let each: Vec<(WireId, &Profile, Direction)> = each.collect();
        for (wire, is, way) in &each {
            let own = Duration::from_micros(rng.random_range(0..=1000 * stalls.longest));
            let more = if stalls.together { common } else { own };
            let late = Profile { keep_order: true, delay: is.delay + more, ..(*is).clone() };
            pair.world.set_profile(*wire, *way, late);
        }
        // What is sent in this time is late by as much, and what follows must not overtake it.
        pair.world.run_until((now + Duration::from_micros(300)).min(to));
        for (wire, is, way) in &each {
            pair.world.set_profile(*wire, *way, Profile { keep_order: true, ..(*is).clone() });
        }
        let pause = Duration::from_micros(rng.random_range(0..=2_000_000 / stalls.times));
        pair.world.run_until((pair.world.now() + pause).min(to));
    }
}

fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A transfer over such links.
struct Transfer<'w> {
    pair: Pair,
    wires: &'w [Profile],
    stalls: Stalls,
    rng: Xoshiro256PlusPlus,
    bulk: BulkId,
    start: u64,
}

impl<'w> Transfer<'w> {
    fn new(seed: u64, wires: &'w [Profile], bbr: bool, stalls: Stalls) -> Self {
        let mut pair = Pair::new(seed, &plan(wires)).expect("a plan the core accepts");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let start = begins(seed, wires);
        run(&mut pair, wires, stalls, &mut rng, at(start));
        let sender = if bbr { sender_by(5001).with_bbr() } else { sender_by(5001) };
        let bulk = pair.world.add_bulk(pair.left, pair.right, sender);
        Self { pair, wires, stalls, rng, bulk, start }
    }

    /// The bytes that it has delivered so many milliseconds after its beginning.
    fn delivered(&mut self, after: u64) -> u64 {
        run(&mut self.pair, self.wires, self.stalls, &mut self.rng, at(self.start + after));
        self.pair.world.bulk(self.bulk).1.stats().bytes
    }
}

/// The share of the sum in seconds 2 to 12 and 12 to 30 of a transfer.
fn shares(seed: u64, wires: &[Profile], bbr: bool, stalls: Stalls) -> [f64; 2] {
    let sum = wires.iter().map(|wire| wire.rate.unwrap_or_default() as f64 / 1e6).sum::<f64>();
    let mut transfer = Transfer::new(seed, wires, bbr, stalls);
    [[2, 12], [12, 30]].map(|[from, to]| {
        let before = transfer.delivered(1000 * from);
        let bytes = transfer.delivered(1000 * to) - before;
        bytes as f64 * 8e-6 / (to - from) as f64 / (sum * 1380.0 / 1432.0)
    })
}

/// What was sent on a path before it counted as silent arrives after all, so it is used again at once, however often that happens.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn links_that_stand_still_now_and_then_are_used_as_much_as_others() {
    let stalls = Stalls { longest: 100, times: 1, together: false };
    for (links, bbr) in [
        ("10/0/0,100/0/0", false),
        ("10/0/0,100/0/0", true),
        ("40/20/0,20/30/0", false),
        ("50/10/0,50/20/0", true),
    ] {
        let wires = links_of(links);
        let late = of_each([1, 2, 3], |seed| shares(*seed, &wires, bbr, stalls)[1]);
        assert!(late.iter().all(|share| *share > 0.84), "{links}, BBR {bbr}: {late:.2?}");
    }
}

/// `LINKS` as for `repair::table`; they stand still for up to `STALL` milliseconds, `TIMES` in a second, with `TOGETHER=false` each by
/// itself. `STEP=500` traces one start of each in place of that.
#[test]
#[ignore = "prints a table, takes minutes"]
fn table() {
    let links = std::env::var("LINKS").unwrap_or_else(|_| "10/0/0,100/0/0".to_owned());
    let (longest, times) = (number("STALL", 100), number("TIMES", 1));
    let stalls = Stalls { longest, times, together: number("TOGETHER", false) };
    let (seeds, step) = (number("SEEDS", 4), number("STEP", 0_usize));
    let cases = links.split(' ').flat_map(|links| [(links, false), (links, true)]);
    for (what, bbr) in cases {
        let wires = links_of(what);
        if step > 0 {
            let (mut transfer, mut before) = (Transfer::new(1, &wires, bbr, stalls), 0);
            for after in (step..=12_000).step_by(step) {
                transfer.delivered(after as u64);
                let Transfer { pair, bulk, .. } = &transfer;
                println!("{}", line_of_step(pair, *bulk, wires.len(), step as u64, &mut before));
            }
            continue;
        }
        let got = of_each([1, 2], |first| {
            let seeds = (*first..=seeds).step_by(2);
            seeds.map(|seed| shares(seed, &wires, bbr, stalls)).collect::<Vec<_>>()
        });
        let line = got.iter().flatten().map(|[early, late]| format!("{early:.2},{late:.2}"));
        let line: Vec<String> = line.collect();
        println!("{what:>30} {} {}", if bbr { "BBR  " } else { "CUBIC" }, line.join(" "));
    }
}

/// The milliseconds until a transfer has delivered 4 MB, if a link stands still for `longest` at `when`, before the transfer begins.
fn to_4mb(wires: &[Profile], link: usize, [when, longest]: [u64; 2], bbr: bool) -> u64 {
    let mut pair = Pair::new(1, &plan(wires)).expect("a plan the core accepts");
    pair.world.run_until(at(when));
    let both = [Direction::There, Direction::Back];
    let is = Profile { keep_order: true, ..wires[link].clone() };
    let more = Duration::from_millis(longest);
    for way in both {
        let late = Profile { delay: is.delay + more, ..is.clone() };
        pair.world.set_profile(pair.wires[link], way, late);
    }
    pair.world.run_for(Duration::from_micros(300));
    for way in both {
        pair.world.set_profile(pair.wires[link], way, is.clone());
    }
    let start = begins(1, wires);
    pair.world.run_until(at(start));
    let sender = if bbr { sender_by(5001).with_bbr() } else { sender_by(5001) };
    let bulk = pair.world.add_bulk(pair.left, pair.right, sender);
    while pair.world.bulk(bulk).1.stats().bytes < 4_000_000 {
        pair.world.run_for(Duration::from_millis(1));
    }
    pair.world.now().since(at(start)).as_millis() as u64
}

/// Over links as these: how long 4 MB take if one stands still at 0, 15, 30 ... 285 milliseconds. The session begins at 20 to 50.
fn each_to_4mb(links: &str, link: usize, longest: u64, bbr: bool) -> Vec<u64> {
    let wires = links_of(links);
    (0..20).map(|step| to_4mb(&wires, link, [15 * step, longest], bbr)).collect()
}

/// A mobile link that was asleep is late with the first datagrams, and only with them. One time in twenty that is still taken for a delay
/// that varies.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_link_that_stood_still_as_the_session_began_is_used_as_any_other() {
    for (link, bbr) in [(0, false), (1, false), (0, true), (1, true)] {
        let took = each_to_4mb("40/10/0,100/15/0", link, 80, bbr);
        let late = took.iter().filter(|took| **took > 700).count();
        assert!(late <= 1, "{link}, BBR {bbr}: {took:?}");
    }
    let took = each_to_4mb("40/0/0,100/0/0", 1, 200, true);
    assert!(took.iter().all(|took| *took < 520), "{took:?}");
}

/// What trains have shown of a path counts before it was ever full: over 10 and 100 Mbit/s, 220 packets went by the slower one within
/// 12 ms when there was a queue before the faster one.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_transfer_that_fills_a_path_does_not_flood_the_next_one() {
    for (links, bbr, most) in [
        ("10/0/0,100/0/0", false, 350),
        ("10/0/0,100/0/0", true, 315),
        ("40/0/0,100/0/0", false, 250),
        ("40/0/0,100/0/0", true, 265),
    ] {
        let took = to_4mb(&links_of(links), 0, [300, 0], bbr);
        assert!(took < most, "{links}, BBR {bbr}: {took}");
    }
}

/// `LINKS`, of which each stands still once, for `STALL` milliseconds, before a transfer: how long 4 MB take.
#[test]
#[ignore = "prints a table"]
fn at_the_beginning() {
    let links = std::env::var("LINKS").unwrap_or_else(|_| "40/0/0,100/0/0".to_owned());
    for (what, bbr) in links.split(' ').flat_map(|links| [(links, false), (links, true)]) {
        for link in 0..what.split(',').count() {
            let took = each_to_4mb(what, link, number("STALL", 25), bbr);
            println!("{what} link {link} {} {took:?}", if bbr { "BBR" } else { "CUBIC" });
        }
    }
}
