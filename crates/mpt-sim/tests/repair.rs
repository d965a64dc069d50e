//! What paths lose is sent again: what a flow gets of them, and what that costs.

use std::time::Duration;

use crate::links::{
    self, at, begins, bulk, clear, links_of, lossy, of_each, plan, sender_by, stream,
    stream_between, wire,
};
use mpt_proto::{Drop, RepairStats};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::traffic::bulk::Sender;
use mpt_sim::world::Direction;
use mpt_sim::world::pair::Pair;

/// Those of `congested`, and others with other rates, delays, jitter and loss.
const LINKS: [&str; 9] = [
    "20/25/0.02/10,15/30/0.02/12.5",
    "50/10/0.02,50/10/0.02",
    "40/15/0.005/2.5,25/22/0.005/4",
    "50/15/0.01/5,30/25/0.01/5",
    "20/25/0.05/10,15/30/0.05/12.5",
    "20/25/0.005/10,15/30/0.005/12.5",
    "20/25/0.02/20,15/30/0.02/20",
    "10/40/0.02/5,10/60/0.02/5",
    "50/10/0/10,50/10/0/10",
];

/// The milliseconds of a transfer that count: from the third second to the twelfth, or from the eleventh to the sixtieth.
const EARLY: [u64; 2] = [2000, 12_000];
const LATE: [u64; 2] = [10_000, 60_000];

fn pair_of(seed: u64, wires: &[Profile], repair: bool) -> Pair {
    let mut plan = plan(wires);
    plan.connection.repair = repair;
    // Here paths are not to be stopped, however much they lose.
    plan.connection.breaker = false;
    let mut pair = Pair::new(seed, &plan).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    pair
}

fn repaired(pair: &Pair) -> RepairStats {
    pair.connection(pair.left).repair_stats()
}

/// Mbit/s of inner packets that a transfer delivers from the third second to the twelfth.
fn transfer(seed: u64, wires: &[Profile], repair: bool) -> f64 {
    let mut pair = pair_of(seed, wires, repair);
    let transfer = bulk(&mut pair);
    let mut delivered = |until| {
        pair.world.run_until(at(until));
        pair.world.bulk(transfer).1.stats().bytes
    };
    let before = delivered(3000);
    (delivered(12_000) - before) as f64 * 8.0 / 9e6
}

/// The share of the ideal that a transfer gets: the sum of the links less loss and headers.
fn share_of_ideal(wires: &[Profile], loss: f64) -> f64 {
    let sum: u64 = wires.iter().filter_map(|wire| wire.rate).sum();
    let ideal = sum as f64 / 1e6 * (1.0 - loss) * 1380.0 / 1432.0;
    let wires: Vec<_> = wires.iter().cloned().map(|wire| lossy(wire, loss)).collect();
    let mut got = [1, 2, 3, 4, 5].map(|seed| transfer(seed, &wires, true));
    got.sort_by(f64::total_cmp);
    got[2] / ideal
}

#[test]
fn a_transfer_fills_links_that_lose_up_to_one_in_twenty() {
    of_each([0.01, 0.02, 0.03, 0.04, 0.05], |loss| {
        let share = share_of_ideal(&[wire(100, 10), wire(10, 10)], *loss);
        assert!(share >= 0.9, "{loss}: {share:.3}");
    });
}

/// What a stream of so many kbit/s loses in ten seconds, of how many packets, and which share of bytes was sent again.
fn stream_over(seed: u64, wires: &[Profile], kbps: u64, repair: bool) -> (u64, u64, f64) {
    let mut pair = pair_of(seed, wires, repair);
    let stream = stream_between(&mut pair, kbps, 7001, [1000, 11_000]);
    pair.world.run_until(at(12_000));
    let (source, checker) = pair.world.stream(stream);
    assert_eq!(checker.verdict().duplicates, 0);
    let RepairStats { repaired, moved, .. } = repaired(&pair);
    let again = (repaired.bytes + moved.bytes) as f64 / (source.sent() * 1452) as f64;
    (checker.verdict().lost(source.sent()), source.sent(), again)
}

#[test]
fn what_links_lose_at_random_arrives_for_twice_the_loss_and_little_more() {
    for loss in [0.005, 0.01, 0.02] {
        let wires = [wire(50, 10), wire(50, 25)].map(|wire| lossy(wire, loss));
        let (missing, sent, again) = stream_over(1, &wires, 30_000, true);
        assert!(missing * 3000 <= sent, "{loss}: {missing} of {sent}");
        assert!(again <= 2.0 * loss + 0.03, "{loss}: {again}");
        let (missing, ..) = stream_over(1, &wires, 30_000, false);
        assert!(missing as f64 >= 0.7 * loss * sent as f64, "{loss}: {missing} without repair");
    }
}

#[test]
fn a_stream_that_fills_links_loses_nothing_to_them() {
    let wires = [wire(20, 10), wire(10, 20)].map(|wire| lossy(wire, 0.02));
    let (missing, sent, again) = stream_over(1, &wires, 26_000, true);
    assert!(missing * 1000 <= sent, "{missing} of {sent}");
    assert!(again <= 0.07, "{again}");
}

#[test]
fn a_flow_that_sends_little_loses_next_to_nothing() {
    let (mut missing, mut sent) = (0, 0);
    for seed in 0..10 {
        let wires = [wire(50, 10), wire(50, 20)].map(|wire| lossy(wire, 0.01));
        let (few, of, _) = stream_over(seed, &wires, 1000, true);
        (missing, sent) = (missing + few, sent + of);
    }
    assert!(sent > 8000 && missing <= 3, "{missing} of {sent}");
}

#[test]
fn one_path_repairs_itself() {
    let (missing, sent, again) = stream_over(1, &[lossy(wire(50, 10), 0.01)], 20_000, true);
    assert!(missing * 2000 <= sent, "{missing} of {sent}");
    assert!(again <= 0.05, "{again}");
}

#[test]
fn where_delays_vary_most_losses_are_repaired_before_they_are_certain() {
    let mut pair = pair_of(1, &links_of("50/20/0.01/8,50/25/0.01/4"), true);
    let stream = stream_between(&mut pair, 40_000, 7001, [1000, 11_000]);
    pair.world.run_until(at(12_000));
    let RepairStats { lost, early, needless, .. } = repaired(&pair);
    let (source, checker) = pair.world.stream(stream);
    assert_eq!(checker.verdict().duplicates, 0);
    assert!(early - needless > lost / 2, "{early} of {lost} early, {needless} needless");
    assert!(needless < lost / 2, "{needless} needless, {lost} lost");
    let missing = checker.verdict().lost(source.sent());
    assert!(missing * 3000 <= source.sent(), "{missing} missing");
}

#[test]
fn clean_links_cost_next_to_nothing() {
    let (missing, _, again) = stream_over(1, &[wire(50, 10), wire(20, 30)], 30_000, true);
    assert!(missing == 0 && again < 0.001, "{missing} missing, {again}");
}

#[test]
fn what_the_own_queue_drops_is_not_sent_again() {
    let mut pair = pair_of(1, &[wire(20, 10), wire(10, 20)], true);
    stream(&mut pair, 60);
    pair.world.run_until(at(8000));
    let drops = pair.connection(pair.left).stats().drops;
    let own = drops.count(Drop::QueueDelay) + drops.count(Drop::QueueFull);
    let RepairStats { lost, repaired, .. } = repaired(&pair);
    let repaired = repaired.tried;
    assert!(own > 1000 && repaired <= lost && lost < 600, "{own} dropped, {lost} lost, {repaired}");
}

#[test]
fn more_is_lost_than_may_be_repaired_and_the_rest_arrives() {
    let wires = [clear(10), clear(10)].map(|wire| lossy(wire, 0.3));
    let (missing, sent, again) = stream_over(1, &wires, 10_000, true);
    // Of 12 MB, with what is saved up before the first loss.
    assert!(again <= 0.15 + 0.08, "{again}");
    let share = missing as f64 / sent as f64;
    assert!((0.1..0.3).contains(&share), "{share}");
}

/// The port of tables and traces.
fn port() -> u16 {
    std::env::var("PORT").map_or(5001, |port| port.parse().expect("a port"))
}

/// A transfer to that port.
fn sender_of(bbr: bool) -> Sender {
    let sender = sender_by(port());
    let has_hystart = std::env::var("HYSTART").is_ok();
    if bbr {
        sender.with_bbr()
    } else if has_hystart {
        sender.with_hystart()
    } else {
        sender
    }
}

/// Those links; if they keep the order nothing overtakes there.
fn ordered(links: &str, keep_order: bool) -> Vec<Profile> {
    links_of(links).into_iter().map(|wire| Profile { keep_order, ..wire }).collect()
}

/// The Mbit/s of inner packets that the links carry, less what they lose and headers.
fn ideal_of(wires: &[Profile]) -> f64 {
    let mbps = |wire: &Profile| {
        let Loss::Random(loss) = wire.loss else { unreachable!("made by `lossy`") };
        wire.rate.unwrap_or_default() as f64 / 1e6 * (1.0 - loss)
    };
    wires.iter().map(mbps).sum::<f64>() * 1380.0 / 1432.0
}

/// What a transfer gets of the ideal in these milliseconds, how long its round trip was at the end, and how often it slowed down.
fn reached(seed: u64, wires: &[Profile], bbr: bool, times: [u64; 2]) -> (f64, u128, u64) {
    reached_by(sender_of(bbr), seed, wires, times)
}

fn reached_by(
    sender: Sender,
    seed: u64,
    wires: &[Profile],
    [from, to]: [u64; 2],
) -> (f64, u128, u64) {
    let mut pair = Pair::new(seed, &plan(wires)).expect("a plan the core accepts");
    let start = begins(seed, wires);
    pair.world.run_until(at(start));
    let transfer = pair.world.add_bulk(pair.left, pair.right, sender);
    let mut delivered = |until| {
        pair.world.run_until(at(start + until));
        pair.world.bulk(transfer).1.stats().bytes
    };
    let before = delivered(from);
    let mbps = (delivered(to) - before) as f64 * 8e-3 / (to - from) as f64;
    let sender = pair.world.bulk(transfer).0;
    let trip = sender.round_trip().unwrap_or_default().as_millis();
    (mbps / ideal_of(wires), trip, sender.stats().congestion_events)
}

/// HyStart sees the luck of the first round trips, and then what comes in order. Some of the starts had 0.05, 0.71, and 0.06 of the ideal.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn slow_start_goes_on_where_delays_vary() {
    for (links, least) in [
        ("200/50/0/10/320,200/50/0/10/320", 0.8),
        ("40/17/0/4,100/25/0/12.5", 0.85),
        ("200/100/0/20/320,200/100/0/20/320", 0.7),
    ] {
        let wires = links_of(links);
        let by_hystart = || sender_by(port()).with_hystart();
        let shares = of_each([1, 2, 3, 4, 5, 6, 7, 8], |seed| {
            reached_by(by_hystart(), *seed, &wires, EARLY).0
        });
        assert!(shares.iter().all(|share| *share >= least), "{links}: {shares:?}");
    }
}

/// Of 17,000 datagrams per second thousands overtake one that is late by 0.1 s more than most. Where no more than 2048 were
/// remembered both paths were stuck at half of what they carry.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_fast_path_whose_delay_varies_much_is_filled() {
    let wires = links_of("200/200/0/40/320,200/200/0/40/320");
    let by_hystart = sender_by(port()).with_hystart();
    let (share, ..) = reached_by(by_hystart, 1, &wires, [20_000, 35_000]);
    assert!(share >= 0.7, "{share:.2}");
}

/// One packet in thousands is 80 ms late, and others that follow it arrive before it: with a window of 4096 it was half.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without --release")]
fn a_packet_that_thousands_overtake_is_not_taken_for_lost() {
    let wires = links_of("200/100/0/20/320,200/100/0/20/320");
    let shares = of_each([1, 2], |seed| reached(*seed, &wires, false, EARLY).0);
    assert!(shares.iter().all(|share| *share >= 0.75), "{shares:?}");
}

/// Where delays vary a loss is known late, and much is held meanwhile. One start differs much from another one.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_transfer_fills_links_of_varying_delay_that_lose_packets() {
    for (links, least) in [
        ("40/17.5/0/4,100/25/0.01/12.5", 0.7),
        ("30/20/0.01/5,60/30/0/8", 0.8),
        ("20/25/0.02/10,15/30/0.02/12.5", 0.75),
        ("20/25/0.05/10,15/30/0.05/12.5", 0.6),
        ("20/25/0.02/20,15/30/0.02/20", 0.4),
        // Of a link alone it has to be found out as well how its delay varies.
        ("50/20/0.02/5", 0.8),
        ("50/20/0/5", 0.95),
    ] {
        let wires = links_of(links);
        let mean = (1..=8).map(|seed| reached(seed, &wires, false, EARLY).0).sum::<f64>() / 8.0;
        assert!(mean >= least, "{links}: {mean:.3}");
    }
}

/// BBR keeps twice its least round trip in flight, so what one packet of the first ones takes decides for ten seconds.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn bbr_fills_links_of_varying_delay_that_lose_packets() {
    for (links, lowest, least) in [
        ("40/17.5/0/4,100/25/0.01/12.5", 0.2, 0.75),
        ("20/25/0.02/10,15/30/0.02/12.5", 0.8, 0.9),
        ("50/10/0/10,50/10/0/10", 0.4, 0.8),
        ("50/20/0.02/5", 0.8, 0.9),
    ] {
        let wires = links_of(links);
        let shares: Vec<f64> = (1..=8).map(|seed| reached(seed, &wires, true, EARLY).0).collect();
        let mean = shares.iter().sum::<f64>() / 8.0;
        assert!(mean >= least, "{links}: {shares:?}");
        assert!(shares.iter().all(|share| *share >= lowest), "{links}: {shares:?}");
    }
}

/// As mobile links do: what is late holds up what follows, so the more is sent the longer it takes, and no queue is the cause.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn links_that_vary_and_keep_the_order_are_filled() {
    for (links, bbr, least) in [
        ("50/20/0/5", true, 0.8),
        ("50/20/0.02/5", false, 0.9),
        ("20/25/0/10", false, 0.9),
        ("50/20/0/5,30/30/0/8", true, 0.8),
        ("50/20/0/5,50/30/0/0", false, 0.9),
    ] {
        let wires = ordered(links, true);
        let shares = [1, 2, 3, 4, 5, 6].map(|seed| reached(seed, &wires, bbr, EARLY).0);
        let mean = shares.iter().sum::<f64>() / 6.0;
        assert!(mean >= least, "{links}: {shares:?}");
    }
}

/// The share of the ideal that a transfer gets of links whose delay begins to vary in its sixth second, twelve seconds later and for twenty.
fn of_links_that_begin_to_vary(links: &str, keep_order: bool, seed: u64, bbr: bool) -> f64 {
    let wires = ordered(links, keep_order);
    let steady = |wire: &Profile| Profile { jitter: Duration::ZERO, ..wire.clone() };
    let before: Vec<_> = wires.iter().map(steady).collect();
    let mut pair = Pair::new(seed, &plan(&before)).expect("a plan the core accepts");
    pair.world.run_until(at(begins(seed, &wires)));
    let transfer = pair.world.add_bulk(pair.left, pair.right, sender_of(bbr));
    pair.world.run_until(at(6000));
    for (wire, profile) in pair.wires.clone().into_iter().zip(&wires) {
        for direction in [Direction::There, Direction::Back] {
            pair.world.set_profile(wire, direction, profile.clone());
        }
    }
    let [from, to] = [18_000, 38_000].map(|until| {
        pair.world.run_until(at(until));
        pair.world.bulk(transfer).1.stats().bytes
    });
    (to - from) as f64 * 8e-6 / 20.0 / ideal_of(&wires)
}

/// What is sent to find out how a delay varies waits for the data of the transfer, and says nothing.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn a_delay_that_begins_to_vary_under_load_is_not_taken_for_a_queue() {
    for (links, keep_order, bbr, least) in [
        ("50/20/0/5", false, true, 0.88),
        ("50/20/0.02/5", false, false, 0.65),
        ("50/20/0/5,50/30/0/0", false, false, 0.95),
        ("50/20/0/5,30/30/0/8", false, true, 0.92),
        ("50/20/0/5", true, false, 0.9),
        ("20/25/0/10", true, true, 0.85),
        ("50/20/0/5,30/30/0/8", true, false, 0.85),
    ] {
        let share = |seed| of_links_that_begin_to_vary(links, keep_order, seed, bbr);
        let shares = [1, 2, 3, 4].map(share);
        let mean = shares.iter().sum::<f64>() / 4.0;
        assert!(mean >= least, "{links}, in order {keep_order}: {shares:?}");
    }
}

/// BBR, whose window is two of its least round trips, where that of the fastest path is a fraction of another one's. The fastest one
/// alone would be 0.5, 0.5 and 0.67.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn bbr_fills_a_path_of_a_much_longer_round_trip() {
    for (links, lowest, least) in [
        ("50/10/0,50/60/0", 0.9, 0.93),
        ("50/10/0,50/160/0", 0.9, 0.93),
        ("40/17.5/0,20/160/0.005/10", 0.63, 0.87),
        ("300/4/0,30/20/0.005/4", 0.9, 0.94),
    ] {
        let wires = links_of(links);
        let shares: Vec<f64> = (1..=8).map(|seed| reached(seed, &wires, true, EARLY).0).collect();
        let mean = shares.iter().sum::<f64>() / 8.0;
        assert!(mean >= least, "{links}: {shares:?}");
        assert!(shares.iter().all(|share| *share >= lowest), "{links}: {shares:?}");
    }
}

/// A flow over both paths has a round trip by the slower one, so that what that loses may come again much later than by the
/// faster one alone.
#[test]
fn what_a_much_slower_path_loses_comes_again_in_time() {
    let wires = links_of("40/17.5/0,20/160/0.005/10");
    let mut pair = Pair::new(1, &plan(&wires)).expect("a plan the core accepts");
    pair.world.run_until(at(2000));
    let transfer = pair.world.add_bulk(pair.left, pair.right, sender_by(5001));
    // The queue of the slow link overflows once in the beginning.
    pair.world.run_until(at(8000));
    let (before, slowed) = (repaired(&pair), pair.world.bulk(transfer).0.stats().congestion_events);
    pair.world.run_until(at(30_000));
    let after = repaired(&pair);
    let slowed = pair.world.bulk(transfer).0.stats().congestion_events - slowed;
    let [lost, late] = [after.lost - before.lost, after.too_late - before.too_late];
    assert!(lost > 60 && late <= 1, "{late} of {lost} too late; slowed down {slowed} times");
}

/// Prints what transfers get of links of varying delay that lose packets, as a share of the ideal: lowest, median and mean of several
/// starts; then the round trip at the end, and how often they slowed down. `LINKS='20/25/0.02/10,15/30/0.02/12.5 ...'` for others,
/// `PORT=443` for one of the web.
#[test]
#[ignore = "prints a table, takes minutes"]
fn table() {
    let links = std::env::var("LINKS").unwrap_or_else(|_| LINKS.join(" "));
    let seeds = std::env::var("SEEDS").map_or(5, |seeds| seeds.parse().unwrap());
    let bbr = std::env::var("BBR").is_ok();
    let times = if std::env::var("LONG").is_ok() { LATE } else { EARLY };
    let work = std::sync::Mutex::new(links.split(' '));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(what) = work.lock().unwrap().next() else { return };
                    let wires = links_of(what);
                    let got: Vec<_> =
                        (1..=seeds).map(|seed| reached(seed, &wires, bbr, times)).collect();
                    let mut shares: Vec<f64> = got.iter().map(|got| got.0).collect();
                    shares.sort_by(f64::total_cmp);
                    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
                    let trip = mean(got.iter().map(|got| got.1 as f64).collect());
                    let slowed = mean(got.iter().map(|got| got.2 as f64).collect());
                    println!(
                        "{what:>36} | {:.2} {:.2} {:.2} | {trip:.0} ms | {slowed:.1}",
                        shares[0],
                        shares[shares.len() / 2],
                        mean(shares.clone()),
                    );
                }
            });
        }
    });
}

/// Prints what happens to a transfer over links given as `TRACE=100/10/0.01,10/10/0.01/2.5`: Mbit/s, delay in milliseconds, share
/// that is lost, and standard deviation of the delay in milliseconds. `SEED` is one of the starts of the table. `BBR=1` has it go by
/// BBR, `OFF=1` is without repair. `START` is another time at which it begins, in milliseconds.
#[test]
fn trace() {
    let Ok(what) = std::env::var("TRACE") else { return };
    let wires = links_of(&what);
    let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
    let step = std::env::var("STEP").map_or(500, |step| step.parse().unwrap());
    let mut plan = plan(&wires);
    plan.connection.repair = std::env::var("OFF").is_err();
    let mut pair = Pair::new(seed, &plan).expect("a plan the core accepts");
    let start = std::env::var("START");
    let start = start.map_or(begins(seed, &wires), |start| start.parse().unwrap());
    pair.world.run_until(at(start));
    let sender = sender_of(std::env::var("BBR").is_ok());
    let transfer = pair.world.add_bulk(pair.left, pair.right, sender);
    let mut before = 0;
    let seconds: u64 = std::env::var("SECONDS").map_or(12, |seconds| seconds.parse().unwrap());
    for time in (1..=1000 * seconds / step).map(|number| start + number * step) {
        pair.world.run_until(at(time));
        println!("{}", links::line_of_step(&pair, transfer, wires.len(), step, &mut before));
    }
}
