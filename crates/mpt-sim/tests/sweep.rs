//! Links that nobody chose: where do transfers get less than by the best link alone, or little of what the others add?
//!
//! Each case is drawn from its number: two to four links, CUBIC or BBR, one flow or several. The table takes minutes:
//!
//! ```console
//! $ CASES=0-99 cargo test --release -p mpt-sim --test suite sweep::table -- --ignored --nocapture
//! $ CASES=17,38 SEEDS=3 cargo test --release -p mpt-sim --test suite sweep::table -- --ignored --nocapture
//! $ CASES=17 STEP=200 cargo test --release -p mpt-sim --test suite sweep::trace -- --ignored --nocapture
//! $ CASES=10000-10039 cargo test --release -p mpt-sim --test suite sweep::table -- --ignored --nocapture
//! ```
//!
//! Cases from 10000 on are of radio links: their delays vary, and most of them lose.

use std::sync::Mutex;
use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::links::{at, begins, line_of_step, of_each, plan, sender_by};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::world::pair::{Pair, PathPlan};

/// A packet and all headers around it, over the packet.
const HEADERS: f64 = 1432.0 / 1380.0;

/// Cases from this number on are of radio links.
const RADIO: u64 = 10_000;

/// Links together carry no more Mbit/s, so that a case takes seconds.
const MOST: f64 = 400.0;

/// The seconds of a transfer that count: soon after its start, and when all is known.
const WINDOWS: [[u64; 2]; 2] = [[2, 12], [10, 30]];

/// What is tried.
#[derive(Clone, Debug)]
struct Case {
    number: u64,
    links: Vec<PathPlan>,
    bbr: bool,
    flows: u16,
}

/// Evenly distributed as a logarithm.
fn log_uniform(rng: &mut impl Rng, from: f64, to: f64) -> f64 {
    from * (to / from).powf(rng.random::<f64>())
}

/// One direction of a link: bits per second, bytes in its queue, delay and its standard deviation, and the share that is lost.
fn profile(rate: f64, queue: f64, [delay, jitter]: [Duration; 2], loss: f64) -> Profile {
    let loss = if loss > 0.0 { Loss::Random(loss) } else { Loss::None };
    let (rate, queue) = (Some(rate as u64), Some(queue as u64));
    Profile { rate, queue, delay, jitter, loss, ..Profile::default() }
}

fn link(rng: &mut impl Rng) -> PathPlan {
    let rate = log_uniform(rng, 1e6, 300e6).round();
    let delay = log_uniform(rng, 0.002, 0.3);
    let jitter = if rng.random_bool(0.3) { rng.random_range(0.0..delay / 3.0) } else { 0.0 };
    let loss = if rng.random_bool(0.2) { rng.random_range(0.0..0.02) } else { 0.0 };
    let deep = rng.random_bool(0.15);
    let depth = if deep { 1.0 } else { log_uniform(rng, 0.3, 4.0) * 2.0 * delay };
    let share = if rng.random_bool(0.2) { log_uniform(rng, 0.1, 1.0) } else { 1.0 };
    let direction = |rate: f64| {
        profile(
            rate,
            (rate / 8.0 * depth).max(15_000.0),
            [delay, jitter].map(Duration::from_secs_f64),
            loss,
        )
    };
    PathPlan { back: direction((rate * share).max(1e6)), ..PathPlan::symmetric(direction(rate)) }
}

/// A link such as those of mobile networks and of satellites in low orbits.
fn radio(rng: &mut impl Rng) -> PathPlan {
    let rate = log_uniform(rng, 5e6, 150e6).round();
    let delay = log_uniform(rng, 0.01, 0.06);
    let jitter = delay * rng.random_range(0.0..0.5);
    let loss = if rng.random_bool(0.7) { log_uniform(rng, 0.001, 0.03) } else { 0.0 };
    let depth = log_uniform(rng, 0.05, 0.3);
    let queue = (rate / 8.0 * depth).max(64_000.0);
    PathPlan::symmetric(profile(rate, queue, [delay, jitter].map(Duration::from_secs_f64), loss))
}

impl Case {
    fn of(number: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(number);
        let count = [2, 2, 2, 3, 3, 4][rng.random_range(0..6)];
        let is_radio = number >= RADIO;
        let links = loop {
            let mut link = || if is_radio { radio(&mut rng) } else { link(&mut rng) };
            let links: Vec<PathPlan> = (0..count).map(|_| link()).collect();
            if links.iter().map(rate).sum::<f64>() <= MOST {
                break links;
            }
        };
        let bbr = rng.random_bool(0.5);
        let flows = [1, 1, 1, 4, 16][rng.random_range(0..5)];
        Self { number, links, bbr, flows }
    }

    /// The same over some of the links.
    fn over(&self, links: &[PathPlan]) -> Self {
        Self { links: links.to_vec(), ..self.clone() }
    }

    /// Mbit/s of inner packets that the links can carry at the most.
    fn ideal(&self) -> f64 {
        self.links.iter().map(|link| rate(link) * (1.0 - loss(&link.there)) / HEADERS).sum()
    }

    fn start(&self, seed: u64) -> (Pair, u64, Vec<mpt_sim::world::BulkId>) {
        let there: Vec<Profile> = self.links.iter().map(|link| link.there.clone()).collect();
        let mut plan = plan(&there);
        plan.paths = self.links.clone();
        let mut pair = Pair::new(seed, &plan).expect("a plan the core accepts");
        let start = begins(seed, &there);
        pair.world.run_until(at(start));
        let flows = (0..self.flows).map(|flow| {
            let sender = sender_by(5001 + flow);
            let sender = if self.bbr { sender.with_bbr() } else { sender };
            pair.world.add_bulk(pair.left, pair.right, sender)
        });
        let flows = flows.collect();
        (pair, start, flows)
    }

    /// Mbit/s of inner packets that arrive in order, in each of the windows.
    fn goodput(&self, seed: u64) -> [f64; 2] {
        let (mut pair, start, flows) = self.start(seed);
        let mut times: Vec<u64> = WINDOWS.concat();
        times.sort_unstable();
        let mut seen = Vec::new();
        for time in times {
            pair.world.run_until(at(start + time * 1000));
            let bytes = flows.iter().map(|&flow| pair.world.bulk(flow).1.stats().bytes).sum();
            seen.push((time, bytes));
        }
        let bytes = |time| seen.iter().find(|it| it.0 == time).map_or(0, |it: &(u64, u64)| it.1);
        WINDOWS.map(|[from, to]| (bytes(to) - bytes(from)) as f64 * 8e-6 / (to - from) as f64)
    }

    /// The median goodput in each of the windows.
    fn median(&self, seeds: u64) -> [f64; 2] {
        let got: Vec<[f64; 2]> = (1..=seeds).map(|seed| self.goodput(seed)).collect();
        [0, 1].map(|window| {
            let mut got: Vec<f64> = got.iter().map(|got| got[window]).collect();
            got.sort_by(f64::total_cmp);
            got[got.len() / 2]
        })
    }

    /// The median goodput in each of the windows by the best link alone.
    fn best_alone(&self, seeds: u64) -> [f64; 2] {
        let most = self.links.iter().map(rate).fold(0.0, f64::max);
        let may_be_best = self.links.iter().filter(|link| rate(link) >= 0.4 * most);
        let alone = may_be_best.map(|link| self.over(std::slice::from_ref(link)).median(seeds));
        alone.fold([0.0; 2], |best, got| [best[0].max(got[0]), best[1].max(got[1])])
    }

    /// What the links and the flows are, in a line.
    fn name(&self) -> String {
        let links: Vec<String> = self.links.iter().map(described).collect();
        let control = if self.bbr { "BBR" } else { "CUBIC" };
        format!("#{} {control} x{} {}", self.number, self.flows, links.join(" + "))
    }
}

fn rate(link: &PathPlan) -> f64 {
    link.there.rate.unwrap_or_default() as f64 / 1e6
}

fn loss(profile: &Profile) -> f64 {
    if let Loss::Random(loss) = profile.loss { loss } else { 0.0 }
}

/// `50@10±2q80 1.0% back 5`: Mbit/s, delay, jitter and queue in milliseconds, loss, and Mbit/s of the way back.
fn described(link: &PathPlan) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let Profile { rate, queue, delay, jitter, .. } = link.there.clone();
    let (rate, back) = (rate.unwrap_or(1) as f64, link.back.rate.unwrap_or(1) as f64);
    let mut text = format!("{:.1}@{:.0}", rate / 1e6, ms(delay));
    if !jitter.is_zero() {
        text += &format!("±{:.1}", ms(jitter));
    }
    text += &format!("q{:.0}", queue.unwrap_or_default() as f64 * 8e3 / rate);
    if loss(&link.there) > 0.0 {
        text += &format!(" {:.1}%", loss(&link.there) * 100.0);
    }
    if back < rate {
        text += &format!(" back {:.1}", back / 1e6);
    }
    text
}

/// The numbers that a variable of the environment names, as `3,5,10-20`.
fn numbers(key: &str, default: &str) -> Vec<u64> {
    let text = std::env::var(key).unwrap_or_else(|_| default.to_owned());
    let number = |text: &str| -> u64 { text.parse().expect("a number") };
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        number(from)..=number(to)
    };
    text.split(',').flat_map(range).collect()
}

/// What is said of a case, and by what it is sorted.
fn judged(case: &Case, seeds: u64) -> (f64, String) {
    let got = case.median(seeds);
    let alone = if case.links.len() > 1 { case.best_alone(seeds) } else { got };
    let ideal = case.ideal();
    let [early, late] = [0, 1].map(|window| {
        let over = got[window] / alone[window];
        let gain = (got[window] - alone[window]) / (ideal - alone[window]).max(1e-6);
        (got[window] / ideal, over, gain)
    });
    let worst = early.1.min(late.1);
    let row = |(share, over, gain): (f64, f64, f64)| format!("{share:.2} {over:.2} {gain:5.2}");
    (worst, format!("{} | {} | {}", row(early), row(late), case.name()))
}

/// In each of these cases one mechanism was at fault. What it was, and the share of the ideal in seconds 10 to 30 before it was mended:
///
/// - 6: second copies of what was lost took the bytes of first ones, so that flows stood still (0.51);
/// - 9, 16, 48: BBR pauses to measure its least round trip, did not count as bulk any more, and found that of the fastest path
///   (0.13, 0.09, 0.55);
/// - 18: the path that carries most was a guess, and the early delay too short for it (0.64);
/// - 27: a path of a low rate that had no room kept another one waiting (0.68);
/// - 28: the equal delay grew as long as a small fast path was full, whatever the others lost by it (0.56);
/// - 16: acknowledgements filled a small path in the way back, so that all took as long as by the slow one (0.76);
/// - 113: what a path of 247 ms lost was not repaired, as that was believed to be too late (0.15);
/// - 119: where a transfer paused, the fastest path was taken for silent, or a copy that was overtaken was not delayed, and BBR found
///   its round trip without the equal delay (0.15);
/// - 135: the early delay of connections that had begun changed, and they took none any more (0.54);
/// - 152: of two slow paths the one that loses was taken as it is 4 ms faster, and BBR waited for a repair in each round trip (0.61);
/// - 1061: a path with a short queue was full with its own trains, before the best one, which is slow, had been shown any (0.36).
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn transfers_fill_links_that_were_drawn_by_lot() {
    let least = [
        (6, 0.9),
        (9, 0.85),
        (16, 0.9),
        (18, 0.85),
        (27, 0.85),
        (28, 0.7),
        (48, 0.9),
        (113, 0.65),
        (119, 0.9),
        (135, 0.9),
        (152, 0.75),
        (1061, 0.9),
    ];
    of_each(least, |&(number, least)| {
        let case = Case::of(number);
        let share = case.goodput(1)[1] / case.ideal();
        assert!(share >= least, "{}: {share:.3}", case.name());
    });
}

/// Prints for seconds 2 to 12 and 10 to 30 the share of the ideal, goodput over that of the best link alone, and the share of what the
/// other links add to that; the worst cases first.
#[test]
#[ignore = "prints a table, takes minutes"]
fn table() {
    let seeds = numbers("SEEDS", "1")[0];
    let cases = Mutex::new(numbers("CASES", "0-39").into_iter());
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = cases.lock().unwrap().next();
                    let Some(number) = next else { return };
                    let row = judged(&Case::of(number), seeds);
                    println!("{}", row.1);
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    println!("\n2-12 s: share, over, gain | 10-30 s: the same | case");
    rows.iter().for_each(|row| println!("{}", row.1));
}

/// Prints for each start of the cases the share of the ideal in seconds 2 to 12 and 10 to 30: what is well in one start may fail in another.
#[test]
#[ignore = "prints a table, takes minutes"]
fn starts() {
    for case in numbers("CASES", "0").into_iter().map(Case::of) {
        println!("{}", case.name());
        let seeds = numbers("SEEDS", "1-20");
        of_each([0, 1], |&half| {
            for &seed in seeds.iter().skip(half).step_by(2) {
                let [early, late] = case.goodput(seed).map(|got| got / case.ideal());
                println!("{seed:4} {early:.2} {late:.2}");
            }
        });
    }
}

/// Prints what happens in the first case step by step. `LINK` leaves one link.
#[test]
#[ignore = "prints a trace"]
fn trace() {
    let mut case = Case::of(numbers("CASES", "0")[0]);
    if std::env::var("LINK").is_ok() {
        case = case.over(&[case.links[numbers("LINK", "0")[0] as usize].clone()]);
    }
    let (seed, step) = (numbers("SEEDS", "1")[0], numbers("STEP", "500")[0]);
    let (mut pair, start, flows) = case.start(seed);
    println!("{} ideal {:.1}", case.name(), case.ideal());
    let mut before = 0;
    for time in 1..=numbers("SECONDS", "30")[0] * 1000 / step {
        pair.world.run_until(at(start + time * step));
        println!("{}", line_of_step(&pair, flows[0], case.links.len(), step, &mut before));
    }
}
