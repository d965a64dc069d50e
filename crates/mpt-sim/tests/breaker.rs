//! A path that goes on to lose much although next to nothing is sent on it is stopped, and probed.

use std::time::Duration;

use crate::links::{at, carried, plan, stream_between, wire};
use mpt_proto::{Event, Finding, PathId, PathStanding, RateStage};
use mpt_sim::loss::Loss;
use mpt_sim::profile::Profile;
use mpt_sim::world::Direction;
use mpt_sim::world::pair::{Pair, PairPlan};

fn lossy(loss: f64) -> Profile {
    Profile { loss: Loss::Random(loss), ..wire(20, 10) }
}

/// A pair whose first link loses a share from the fifth second on, and a stream of so many Mbit/s.
fn pair(seed: u64, plan: &PairPlan, loss: f64, mbps: u64) -> Pair {
    let mut pair = Pair::new(seed, plan).expect("a plan the core accepts");
    pair.world.run_until(at(1000));
    stream_between(&mut pair, mbps * 1000, 7001, [1000, 1_000_000]);
    pair.world.run_until(at(5000));
    pair.world.set_profile(pair.wires[0], Direction::There, lossy(loss));
    pair
}

fn standing(pair: &Pair) -> PathStanding {
    let standing = pair.connection(pair.left).standing(pair.world.now(), PathId(0));
    standing.expect("it is paced")
}

/// Runs until the path is stopped; `None` if it is not within so many seconds, or the second at which it is.
fn stopped(pair: &mut Pair, within: u64) -> Option<u64> {
    (6..within).find(|second| {
        pair.world.run_until(at(second * 1000));
        standing(pair).stage == RateStage::Stopped
    })
}

#[test]
fn a_path_that_goes_on_to_lose_is_stopped_and_used_again_when_probes_arrive() {
    let mut pair = pair(1, &plan(&[wire(20, 10), wire(20, 10)]), 0.3, 30);
    let wires = pair.wires.clone();
    let at_second = stopped(&mut pair, 80).expect("it is stopped");
    // It has to slow down to its floor first, and be there for ten seconds.
    assert!((17..40).contains(&at_second), "{at_second} s");
    let found = standing(&pair).found.last().copied().expect("it is told");
    assert!(matches!(found.what, Finding::Stopped { loss } if loss > 0.2), "{found:?}");
    let mbps = carried(&mut pair, &wires[..1], at_second + 1, at_second + 20);
    assert!(mbps < 0.03, "{mbps} Mbit/s of probes");
    let other = carried(&mut pair, &wires[1..], at_second + 20, at_second + 22);
    assert!(other > 18.0, "{other} by the other one");
    // It still loses: it is not used after half a minute.
    pair.world.run_until(at((at_second + 45) * 1000));
    assert_eq!(standing(&pair).stage, RateStage::Stopped);
    pair.world.set_profile(wires[0], Direction::There, wire(20, 10));
    let until = standing(&pair).stopped_until.expect("it is stopped");
    pair.world.run_until(until + Duration::from_secs(150));
    assert!(standing(&pair).stopped_until.is_none(), "{:?}", standing(&pair));
    let now = pair.world.now().since(at(0)).as_secs() + 1;
    let both = carried(&mut pair, &wires, now, now + 3);
    assert!(both > 29.0, "{both} by both");
    let own = pair.world.events().iter().filter(|(_, host, _)| *host == pair.left);
    let told = own.filter_map(|(_, _, event)| {
        if let Event::Stopped { path: PathId(0), lost_percent, .. } = event {
            return Some(Some(*lost_percent));
        }
        matches!(event, Event::Resumed { path: PathId(0), .. }).then_some(None)
    });
    let told: Vec<Option<u8>> = told.collect();
    assert!(matches!(told[..], [Some(20..=60), None]), "{told:?}");
}

#[test]
fn without_the_breaker_it_goes_on() {
    let mut plan = plan(&[wire(20, 10), wire(20, 10)]);
    plan.connection.breaker = false;
    let mut pair = pair(1, &plan, 0.3, 30);
    assert_eq!(stopped(&mut pair, 60), None);
    let wires = pair.wires.clone();
    let mbps = carried(&mut pair, &wires[..1], 60, 62);
    assert!(mbps > 3.0, "{mbps}");
}

#[test]
fn the_only_path_is_sent_next_to_nothing() {
    let mut pair = pair(1, &plan(&[wire(20, 10)]), 0.5, 10);
    let wires = pair.wires.clone();
    let at_second = stopped(&mut pair, 60).expect("it is stopped");
    let mbps = carried(&mut pair, &wires, at_second + 1, at_second + 10);
    assert!(mbps > 0.01 && mbps < 0.2, "{mbps}");
}

#[test]
fn loss_that_is_not_too_much_stops_nothing() {
    let mut pair = pair(1, &plan(&[wire(20, 10), wire(20, 10)]), 0.12, 30);
    assert_eq!(stopped(&mut pair, 60), None);
}

#[test]
fn a_second_in_which_little_is_lost_by_chance_does_not_save_it() {
    for seed in 2..6 {
        let mut pair = pair(seed, &plan(&[wire(20, 10), wire(20, 10)]), 0.3, 30);
        let at_second = stopped(&mut pair, 60);
        assert!(at_second.is_some_and(|second| second < 40), "seed {seed}: {at_second:?}");
    }
}
