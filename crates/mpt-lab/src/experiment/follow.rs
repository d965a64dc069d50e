//! One step of a run in real time: what happens to links at its moment, readings meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use mpt_sim::profile::Profile;

use super::load::Load;
use super::meter::Meter;
use super::trace::Trace;
use super::watch::{CutEvent, Tick, Watch};
use crate::cell::{Change, Cut, Direction, Event};
use crate::emulator::{self, Wire};
use crate::lab::Lab;
use crate::stop::Stop;

/// Between two readings. A reading costs each link's thread one answer, so it is not taken often.
const TICK: Duration = Duration::from_millis(250);

/// Between two readings where it matters when a link was left and used again.
const FINE_TICK: Duration = Duration::from_millis(20);

/// Something that is done to a link at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Action {
    at: Duration,
    link: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Blackout { direction: emulator::Direction, cut: bool },
    Carrier(bool),
    Rate(f64),
    Roam,
}

/// Monitors traffic for `length` from this moment, and applies the events of links in the meantime.
/// Returns what the sender offered to each link over time.
///
/// Unless it returns an error, all links are as they were before when this returns.
pub(super) fn follow(
    lab: &Lab,
    load: &Load,
    direction: Direction,
    length: Duration,
    actions: &[Action],
    stop: &Stop,
    watch: &mut dyn Watch,
) -> Result<Trace> {
    let origin = Instant::now();
    let mut todo = actions.iter().copied().peekable();
    let mut cut = vec![false; lab.links().len()];
    let mut meter = Meter::default();
    let mut trace = Trace::default();
    let tick = if actions.is_empty() { TICK } else { FINE_TICK };
    let mut next_tick = Duration::ZERO;
    let mut next_shown = Duration::ZERO;
    loop {
        stop.check()?;
        let elapsed = origin.elapsed();
        while let Some(action) = todo.next_if(|action| action.at <= elapsed) {
            if let Some(is_cut) = apply(lab, action) {
                cut[action.link] = is_cut;
                let link = lab.link(action.link).name().into();
                watch.on_cut(&CutEvent { link, cut: is_cut, elapsed });
            }
        }
        if elapsed >= length || load.is_over() {
            restore(lab, actions);
            return Ok(trace);
        }
        if elapsed >= next_tick {
            if !actions.is_empty() {
                let offered = lab.links().iter().map(|wire| offered(wire, direction)).collect();
                trace.add(elapsed, offered);
            }
            next_tick = elapsed + tick;
        }
        if elapsed >= next_shown {
            let mut counters = vec![load.received()];
            counters.extend(lab.links().iter().map(|wire| delivered(wire, direction)));
            let mut rates = meter.read(elapsed, counters);
            let links = rates.split_off(1);
            watch.on_tick(&Tick { elapsed, goodput: rates[0], links, cut: cut.clone() });
            next_shown = elapsed + TICK;
        }
        let next_action = todo.peek().map_or(length, |action| action.at);
        let next = next_tick.min(next_action).min(length);
        thread::sleep(next.saturating_sub(origin.elapsed()));
    }
}

/// Applies it; returns whether the link is now cut, if that has changed.
fn apply(lab: &Lab, Action { link, what, .. }: Action) -> Option<bool> {
    let wire = lab.link(link);
    match what {
        What::Blackout { direction, cut } => {
            wire.set_blackout(direction, cut);
            Some(cut)
        }
        What::Carrier(present) => {
            wire.set_carrier(present);
            Some(!present)
        }
        What::Rate(share) => {
            let spec = &lab.topology().links[link];
            for (direction, profile) in [
                (emulator::Direction::Forward, &spec.forward),
                (emulator::Direction::Backward, &spec.backward),
            ] {
                let rate = profile.rate.map(|rate| (rate as f64 * share) as u64);
                wire.set_profile(direction, Profile { rate, ..profile.clone() });
            }
            None
        }
        What::Roam => {
            wire.rebind();
            None
        }
    }
}

/// Undoes what may have been left undone.
fn restore(lab: &Lab, actions: &[Action]) {
    for &Action { at, link, what } in actions {
        let back = match what {
            What::Blackout { direction, .. } => What::Blackout { direction, cut: false },
            What::Carrier(_) => What::Carrier(true),
            What::Rate(_) => What::Rate(1.0),
            What::Roam => continue,
        };
        apply(lab, Action { at, link, what: back });
    }
}

/// Outer IP bytes that a link has been given in a direction since it was started.
fn offered(wire: &Wire, direction: Direction) -> u64 {
    let report = wire.report();
    match direction {
        Direction::Backward => report.backward.stats.offered.bytes,
        Direction::Forward => report.forward.stats.offered.bytes,
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
pub(super) fn of_cuts(cuts: &[Cut]) -> Vec<Action> {
    let ends = |cut: &Cut| {
        let action = |at: f64, is_cut| Action {
            at: Duration::from_secs_f64(at),
            link: cut.link,
            what: What::Blackout { direction: cut.direction, cut: is_cut },
        };
        [action(cut.until, false), action(cut.at, true)]
    };
    let mut actions: Vec<_> = cuts.iter().flat_map(ends).collect();
    actions
        .sort_by_key(|action| (action.at, matches!(action.what, What::Blackout { cut: true, .. })));
    actions
}

/// The actions of every event, in the order of time.
pub(super) fn of_events(events: &[Event]) -> Vec<Action> {
    let both = emulator::Direction::Both;
    let action = |event: &Event| Action {
        at: Duration::from_secs_f64(event.at),
        link: event.link,
        what: match event.change {
            Change::CarrierDown => What::Carrier(false),
            Change::CarrierUp => What::Carrier(true),
            Change::Cut(direction) => What::Blackout { direction, cut: true },
            Change::Mend => What::Blackout { direction: both, cut: false },
            Change::Rate(share) => What::Rate(share),
            Change::Roam => What::Roam,
        },
    };
    events.iter().map(action).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_cut(action: &Action) -> bool {
        matches!(action.what, What::Blackout { cut: true, .. })
    }

    #[test]
    fn cuts_happen_in_the_order_of_time_and_a_link_that_is_cut_again_stays_cut() {
        let cut = |link, at, until| Cut { link, at, until, direction: emulator::Direction::Both };
        let actions = of_cuts(&[cut(1, 4.0, 6.0), cut(0, 1.0, 4.0), cut(0, 4.0, 5.0)]);
        let told: Vec<_> = actions
            .iter()
            .map(|action| (action.at.as_secs(), action.link, is_cut(action)))
            .collect();
        let expected =
            [(1, 0, true), (4, 0, false), (4, 1, true), (4, 0, true), (5, 0, false), (6, 1, false)];
        assert_eq!(told, expected);
    }

    #[test]
    fn an_event_cuts_the_direction_it_names_and_restores_both() {
        use emulator::Direction::{Backward, Both};
        let event = |at, change| Event { at, link: 0, change };
        let actions = of_events(&[event(1.0, Change::Cut(Backward)), event(2.0, Change::Mend)]);
        let whats: Vec<_> = actions.iter().map(|action| action.what).collect();
        let blackout = |direction, cut| What::Blackout { direction, cut };
        assert_eq!(whats, [blackout(Backward, true), blackout(Both, false)]);
    }
}
