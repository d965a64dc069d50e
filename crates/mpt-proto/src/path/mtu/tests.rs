//! A path that carries so much and no more, with a round trip of 40 ms.

use super::*;

const HEADER: usize = 24;
const BASE: usize = HEADER + 1280;
const LOCAL: usize = 1472;
const ROUND_TRIP: Duration = Duration::from_millis(40);

struct World {
    mtu: PathMtu,
    now: Instant,
    /// The longest that arrives; 0 if nothing does.
    carries: usize,
    number: u32,
    /// Answers on their way.
    answers: Vec<(Instant, u32)>,
    probes: Vec<usize>,
}

impl World {
    fn new(carries: usize) -> Self {
        let mut mtu = PathMtu::new(HEADER);
        mtu.set_local(Instant::ZERO, LOCAL);
        Self {
            mtu,
            now: Instant::ZERO,
            carries,
            number: 0,
            answers: Vec::new(),
            probes: Vec::new(),
        }
    }

    /// Runs for some milliseconds, and returns what was known to arrive whenever that changed.
    fn run(&mut self, millis: u32) -> Vec<(u64, usize)> {
        let mut found = Vec::new();
        for _ in 0..millis {
            let arrived: Vec<_> = self.answers.extract_if(.., |(at, _)| *at <= self.now).collect();
            let before = self.mtu.proven();
            for (_, number) in arrived {
                self.mtu.on_answer(self.now, number);
            }
            while self.mtu.deadline().is_some_and(|at| at <= self.now) {
                if let Some(len) = self.mtu.poll(self.now, Some(ROUND_TRIP)) {
                    self.number += 1;
                    self.mtu.on_sent(self.number, len);
                    self.probes.push(len);
                    if len <= self.carries {
                        self.answers.push((self.now + ROUND_TRIP, self.number));
                    }
                }
            }
            if self.mtu.proven() != before {
                let millis = self.now.since(Instant::ZERO).as_millis() as u64;
                found.push((millis, self.mtu.proven().expect("what has changed")));
            }
            self.now += Duration::from_millis(1);
        }
        found
    }
}

#[test]
fn what_the_interface_allows_is_found_in_one_round_trip() {
    let mut world = World::new(1500);
    assert_eq!(world.mtu.proven(), None);
    assert_eq!(world.run(1000), [(40, LOCAL)]);
    assert_eq!(world.probes, [LOCAL; 3], "no more is to be found");
    assert_eq!(world.mtu.deadline(), None);
}

#[test]
fn what_a_narrower_path_carries_is_found_from_below() {
    for carries in [BASE, BASE + 7, 1400, 1440, 1471] {
        let mut world = World::new(carries);
        let found = world.run(5000);
        assert_eq!(found[0].1, BASE, "the least is assumed once the longest is lost");
        assert!(found.is_sorted(), "{found:?}");
        let (at, last) = found[found.len() - 1];
        assert!(last <= carries && carries < last + 2 * STEP, "{carries}: {found:?}");
        assert!(at < 1500, "{carries}: {found:?}");
        assert!(world.probes.len() <= 24, "{:?}", world.probes);
    }
}

#[test]
fn a_path_that_becomes_wider_is_found_within_ten_minutes() {
    let mut world = World::new(1400);
    world.run(5000);
    world.probes.clear();
    assert_eq!(world.run(595_000), []);
    assert!(world.probes.len() < 40, "less and less often: {:?}", world.probes);
    // A length in between is searched for after ten minutes, the longest of all more often.
    world.carries = 1450;
    let found = world.run(1_300_000);
    assert!(found.last().expect("found").1 > 1450 - 2 * STEP, "{found:?}");
    world.carries = 1500;
    let found = world.run(1_300_000);
    assert_eq!(found.last().expect("found").1, LOCAL, "{found:?}");
}

#[test]
fn probes_that_were_lost_for_other_reasons_are_made_up_for_within_seconds() {
    let mut world = World::new(0);
    world.run(90);
    world.carries = 1500;
    let found = world.run(5000);
    assert_eq!(found.last().expect("found").1, LOCAL, "{found:?}");
}

/// On a busy host, or because a link stands still.
#[test]
fn probes_of_a_length_in_between_that_were_lost_are_made_up_for_as_soon() {
    let mut world = World::new(0);
    world.run(250);
    assert_eq!(world.probes[3..9], [1388, 1388, 1388, 1346, 1346, 1346]);
    world.carries = 1400;
    let found = world.run(5000);
    assert!(found.last().expect("found").1 > 1400 - 2 * STEP, "{found:?}");
}

#[test]
fn late_answers_count() {
    let mut world = World::new(0);
    world.run(90);
    assert_eq!(world.mtu.proven(), None);
    let number = world.number;
    world.run(40);
    assert_eq!(world.mtu.proven(), Some(BASE));
    world.mtu.on_answer(world.now, number);
    assert_eq!(world.mtu.proven(), Some(LOCAL));
}

#[test]
fn a_path_that_becomes_narrower_is_repaired_within_three_round_trips() {
    let mut world = World::new(1500);
    world.run(1000);
    world.carries = 1400;
    world.mtu.suspect(world.now);
    assert_eq!(world.run(200), [], "nothing long was sent");
    world.mtu.on_data(world.now, LOCAL);
    world.mtu.suspect(world.now);
    let found = world.run(5000);
    assert_eq!(found[0].1, BASE);
    assert!(found[0].0 <= 1200 + 3 * 40, "{found:?}");
    assert!(found.iter().all(|(_, len)| *len <= 1400), "{found:?}");
    assert!(found[found.len() - 1].1 > 1400 - 2 * STEP, "{found:?}");
}

#[test]
fn ordinary_loss_and_an_outage_say_nothing_of_lengths() {
    let mut world = World::new(1500);
    world.run(1000);
    world.probes.clear();
    for _ in 0..100 {
        world.mtu.on_data(world.now, LOCAL);
        world.mtu.suspect(world.now);
        assert_eq!(world.run(10), []);
    }
    assert!(world.probes.len() <= 12, "verified once a second: {:?}", world.probes);
    world.run(1000);
    world.carries = 0;
    world.mtu.suspect(world.now);
    assert_eq!(world.run(1000), [], "nothing arrives, so nothing is learned");
    assert_eq!(world.mtu.proven(), Some(LOCAL));
}

#[test]
fn the_interface_is_always_believed() {
    let mut world = World::new(1500);
    world.run(1000);
    world.mtu.set_local(world.now, 1400);
    assert_eq!(world.mtu.proven(), Some(1400));
    world.mtu.set_local(world.now, 1472);
    assert_eq!(world.mtu.proven(), Some(1400));
    assert_eq!(world.run(1000).last().expect("found").1, 1472);
    world.mtu.set_local(world.now, 900);
    assert_eq!(world.mtu.proven(), Some(BASE), "less is not for probes to say");
    world.mtu.restart(world.now);
    assert_eq!(world.mtu.proven(), None);
}
