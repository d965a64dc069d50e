//! The short form of an experiment: does it work, and does it look right?
//!
//! It keeps the first, the middle and the last point of every axis, measures three seconds after one
//! of start-up, once, and only MPT classic and MPTCP. It claims no transients and no distributions.

use super::axis::thinned;
use super::plan::Experiment;
use crate::cell::{Cell, Kind};
use crate::results::Axis;
use crate::system::System;

/// Length of the traffic, and what of it goodput leaves out, in seconds.
const SECONDS: f64 = 4.0;
const OMIT: f64 = 1.0;
/// Size of a file in MB, and how long it may take at most, in seconds.
const FILE_MB: u64 = 20;
const FILE_SECONDS: f64 = 20.0;

impl Experiment {
    /// The short form: MPT classic and MPTCP, if MPT classic is one of the systems.
    #[must_use]
    pub fn quick(self) -> Self {
        self.quick_but_for(&[])
    }

    /// The same, with all points of the axes of these names: a reader who asks for one of them gets it.
    #[must_use]
    pub fn quick_but_for(self, whole: &[&str]) -> Self {
        let mut quick = self.shortened_but_for(whole);
        // Systems without MPT classic are an explicit selection.
        if quick.systems.contains(&System::Classic) {
            quick.systems.retain(|system| system.is_quick());
        }
        quick
    }

    /// The short form with all systems, and with all points of the axes of these names.
    #[must_use]
    pub fn shortened_but_for(mut self, whole: &[&str]) -> Self {
        let points = |axis: &Axis| match axis.labels.len() {
            count if whole.contains(&axis.name.as_str()) => (count, (0..count).collect()),
            count => (count, thinned(count)),
        };
        let kept: Vec<_> = self.entry.axes.iter().map(points).collect();
        self.cells.retain(|cell| is_kept(cell, &kept));
        self.cells.iter_mut().for_each(shorten);
        self.repetitions = 1;
        self
    }
}

/// Whether a cell lies at a point that is kept on every axis.
fn is_kept(cell: &Cell, axes: &[(usize, Vec<usize>)]) -> bool {
    let mut rest = cell.number - 1;
    axes.iter().rev().all(|(count, kept)| {
        let point = rest % count;
        rest /= count;
        kept.contains(&point)
    })
}

fn shorten(cell: &mut Cell) {
    let traffic = &mut cell.traffic;
    traffic.long_seconds = None;
    traffic.file_mb = traffic.file_mb.min(FILE_MB);
    if traffic.kind == Kind::Ftp {
        traffic.seconds = traffic.seconds.min(FILE_SECONDS);
    }
    // What happens to links takes its time.
    let is_short = cell.events.is_empty() && traffic.kind != Kind::Ftp;
    if is_short && traffic.seconds > SECONDS {
        traffic.seconds = SECONDS;
        traffic.omit = OMIT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_and_the_middle_of_every_axis_are_kept_for_three_seconds() {
        let text = "title = 't'\nrepetitions = 5\nsystems = ['classic', 'mpt', 'mptcp']\n\
            [[link]]\nname = 'a'\n\
            [[axis]]\nname = 'delay'\nset = ['link.a.delay_ms']\nvalues = [0, 1, 2, 3, 4]\n\
            [[axis]]\nname = 'seed'\nset = ['seed']\nvalues = [7, 8]\n";
        let quick = Experiment::parse("x", text).unwrap().quick();
        let places: Vec<_> = quick.cells.iter().map(Cell::place).collect();
        assert_eq!(
            places,
            [
                "delay 0, seed 7",
                "delay 0, seed 8",
                "delay 2, seed 7",
                "delay 2, seed 8",
                "delay 4, seed 7",
                "delay 4, seed 8"
            ]
        );
        assert_eq!(quick.cells[2].number, 5, "of the whole experiment");
        assert!(quick.cells.iter().all(|cell| cell.traffic.seconds == 4.0));
        assert_eq!(quick.repetitions, 1);
        let names: Vec<_> = quick.systems.iter().map(|system| system.name()).collect();
        assert_eq!(names, ["classic", "mptcp"]);
    }

    #[test]
    fn an_axis_that_is_asked_for_keeps_every_point() {
        let text = "title = 't'\n[[link]]\nname = 'a'\n\
            [[axis]]\nname = 'delay'\nset = ['link.a.delay_ms']\nvalues = [0, 1, 2, 3, 4]\n\
            [[axis]]\nname = 'seed'\nset = ['seed']\nvalues = [5, 6, 7, 8, 9]\n";
        let experiment = || Experiment::parse("x", text).unwrap();
        let count = |axes: &[&str]| experiment().quick_but_for(axes).cells.len();
        assert_eq!((count(&[]), count(&["delay"]), count(&["delay", "seed"])), (9, 15, 25));
        let delay = experiment().quick_but_for(&["delay"]);
        assert_eq!(delay.cells[3].place(), "delay 1, seed 5", "the second, which is thinned out");
        assert!(delay.cells.iter().all(|cell| cell.traffic.seconds == 4.0));
    }
}
