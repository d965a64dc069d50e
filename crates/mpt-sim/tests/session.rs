//! Sessions of extended framing: how they begin, survive and begin again, in worlds that lose, reorder and
//! translate.

use std::time::Duration;

use mpt_proto::{FramingConfig, Instant, PathState};
use mpt_sim::profile::Profile;
use mpt_sim::world::pair::{Pair, PairPlan, PathPlan};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Two wires of 10 and 30 ms.
fn plan(framing: FramingConfig) -> PairPlan {
    let wire = |delay| {
        PathPlan::symmetric(Profile { delay: Duration::from_millis(delay), ..Profile::default() })
    };
    let mut plan = PairPlan::new(vec![wire(10), wire(30)]);
    plan.connection.framing = framing;
    plan
}

/// The same, where the right host is a server that knows no address of its peer.
fn server_plan(framing: FramingConfig) -> PairPlan {
    let mut plan = plan(framing);
    plan.server_learns = true;
    plan
}

fn all_up(pair: &Pair) -> bool {
    let up = |host| {
        let connection = pair.connection(host);
        let states: Vec<PathState> =
            connection.paths().map(|path| connection.path(path).state).collect();
        states == [PathState::Up; 2]
    };
    up(pair.left) && up(pair.right)
}

fn in_session(pair: &Pair) -> bool {
    [pair.left, pair.right].iter().all(|&host| pair.connection(host).has_session())
}

#[test]
fn both_ends_agree_within_two_round_trips() {
    for framing in [FramingConfig::Extended, FramingConfig::Auto] {
        let mut pair = Pair::new(1, &plan(framing)).expect("a good plan");
        pair.world.run_until(at(60));
        assert!(in_session(&pair), "{framing:?}");
        pair.world.run_until(at(150));
        assert!(all_up(&pair), "{framing:?}");
    }
}

#[test]
fn a_server_learns_the_paths_of_its_client() {
    for framing in [FramingConfig::Extended, FramingConfig::Auto] {
        let mut pair = Pair::new(1, &server_plan(framing)).expect("a good plan");
        pair.world.run_until(at(700));
        assert!(in_session(&pair), "{framing:?}");
        assert!(all_up(&pair), "{framing:?}");
    }
}
