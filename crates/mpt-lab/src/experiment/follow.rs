//! One step of a run in real time: cuts at their moments, readings several times per second.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::load::Load;
use super::meter::Meter;
use super::plan::{Cut, Direction};
use super::stop::Stop;
use super::watch::{CutEvent, Tick, Watch};
use crate::emulator::{self, Wire};
use crate::lab::Lab;

/// Between two readings. A reading costs each link's thread one answer, so it is not taken often.
const TICK: Duration = Duration::from_millis(250);

/// A link to be cut or restored at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Action {
    at: Duration,
    link: usize,
    direction: emulator::Direction,
    cut: bool,
}

/// Watches over traffic for `length` from this moment, cutting and restoring links meanwhile.
///
/// When this returns no link is cut, unless it returns an error.
pub(super) fn follow(
    lab: &Lab,
    load: &Load,
    direction: Direction,
    length: Duration,
    cuts: &[Cut],
    stop: &Stop,
    watch: &mut dyn Watch,
) -> Result<()> {
    let origin = Instant::now();
    let mut actions = timetable(cuts).into_iter().peekable();
    let mut cut = vec![false; lab.links().len()];
    let mut meter = Meter::default();
    let mut next_tick = Duration::ZERO;
    loop {
        stop.check()?;
        let elapsed = origin.elapsed();
        while let Some(action) = actions.next_if(|action| action.at <= elapsed) {
            let wire = lab.link(action.link);
            wire.set_blackout(action.direction, action.cut);
            cut[action.link] = action.cut;
            watch.on_cut(&CutEvent { link: wire.name().into(), cut: action.cut, elapsed });
        }
        if elapsed >= length {
            return Ok(());
        }
        if elapsed >= next_tick {
            let mut counters = vec![load.received()];
            counters.extend(lab.links().iter().map(|wire| delivered(wire, direction)));
            let mut rates = meter.read(elapsed, counters);
            let links = rates.split_off(1);
            watch.on_tick(&Tick { elapsed, goodput: rates[0], links, cut: cut.clone() });
            next_tick = elapsed + TICK;
        }
        let next_action = actions.peek().map_or(length, |action| action.at);
        let next = next_tick.min(next_action).min(length);
        thread::sleep(next.saturating_sub(origin.elapsed()));
    }
}

/// Outer IP bytes a link has delivered in a direction since it was started.
fn delivered(wire: &Wire, direction: Direction) -> u64 {
    let report = wire.report();
    match direction {
        Direction::Backward => report.backward.stats.delivered.bytes,
        Direction::Forward => report.forward.stats.delivered.bytes,
    }
}

/// Both ends of every cut, in the order of time; a link restored and cut at one moment ends up cut.
fn timetable(cuts: &[Cut]) -> Vec<Action> {
    let ends = |cut: &Cut| {
        let action = |at: f64, is_cut| Action {
            at: Duration::from_secs_f64(at),
            link: cut.link,
            direction: cut.direction,
            cut: is_cut,
        };
        [action(cut.at, true), action(cut.until, false)]
    };
    let mut actions: Vec<_> = cuts.iter().flat_map(ends).collect();
    actions.sort_by_key(|action| (action.at, action.cut));
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_happen_in_the_order_of_time_and_a_link_that_is_cut_again_stays_cut() {
        let cut = |link, at, until| Cut { link, at, until, direction: emulator::Direction::Both };
        let actions = timetable(&[cut(1, 4.0, 6.0), cut(0, 1.0, 4.0), cut(0, 4.0, 5.0)]);
        let told: Vec<_> =
            actions.iter().map(|action| (action.at.as_secs(), action.link, action.cut)).collect();
        let expected =
            [(1, 0, true), (4, 0, false), (4, 1, true), (4, 0, true), (5, 0, false), (6, 1, false)];
        assert_eq!(told, expected);
    }
}
