//! Which repetitions of which cells are measured, in which order, and which of them a folder of results has.
//!
//! One repetition of every cell of an experiment comes before the second one of any, so that a run that is
//! interrupted has covered the table.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Experiment;
use super::step::{Subject, steps};
use crate::cell::Cell;
use crate::lab::Backend;
use crate::results::{CellRecord, Coordinate};

/// One measurement of a cell with all its systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// The experiment, by its place in the list.
    pub experiment: usize,
    /// The cell, by its place in the experiment.
    pub cell: usize,
    /// Which one of the cell it is, counted from 1.
    pub number: u32,
}

impl Repetition {
    /// What it is of.
    ///
    /// # Panics
    ///
    /// It is of other experiments than these.
    pub fn of(self, experiments: &[Experiment]) -> (&Experiment, &Cell) {
        let experiment = &experiments[self.experiment];
        (experiment, &experiment.cells[self.cell])
    }
}

/// All of these experiments, in the order in which they are measured.
pub fn all(experiments: &[Experiment]) -> Vec<Repetition> {
    let mut all = Vec::new();
    for (experiment, of) in experiments.iter().enumerate() {
        for number in 1..=of.repetitions {
            all.extend((0..of.cells.len()).map(|cell| Repetition { experiment, cell, number }));
        }
    }
    all
}

/// What a folder has of experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The repetitions that it has not, in the order in which they are measured.
    pub missing: Vec<Repetition>,
    /// The runs that measured the others.
    pub runs: BTreeSet<String>,
}

/// What these lines, oldest first, have of experiments in this form.
///
/// A repetition is there if its latest line has all its systems and links, each as it would be measured now,
/// and none of them failed.
pub fn measured<'a>(
    experiments: &[Experiment],
    quick: bool,
    backend: Backend,
    lines: impl Iterator<Item = &'a CellRecord>,
) -> Measured {
    let mut latest = BTreeMap::new();
    for line in lines.filter(|line| line.quick == quick) {
        latest.insert((line.experiment.as_str(), place(&line.cell), line.repetition), line);
    }
    let mut measured = Measured::default();
    for repetition in all(experiments) {
        let (experiment, cell) = repetition.of(experiments);
        let key = (experiment.entry.name.as_str(), place(&cell.place), repetition.number);
        match latest.get(&key) {
            Some(line) if answers(line, experiment, cell, quick, backend) => {
                measured.runs.insert(line.run.clone());
            }
            _ => measured.missing.push(repetition),
        }
    }
    measured
}

fn place(coordinates: &[Coordinate]) -> Vec<(&str, &str)> {
    coordinates.iter().map(|at| (at.axis.as_str(), at.label.as_str())).collect()
}

/// Whether a line has everything that a repetition of this cell would measure.
fn answers(
    line: &CellRecord,
    experiment: &Experiment,
    cell: &Cell,
    quick: bool,
    backend: Backend,
) -> bool {
    steps(experiment, cell, quick).iter().all(|step| {
        let name = match &step.subject {
            Subject::Alone(link) => format!("link:{}", cell.topology.links[*link].name),
            Subject::System(system) => system.name().to_owned(),
        };
        let found = line.system(&name);
        found.is_some_and(|record| !record.failed && record.key == step.digest(backend))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{LinkRecord, SystemRecord};

    /// Two cells, each measured twice.
    const TEXT: &str = "title = 't'\nrepetitions = 2\nsystems = ['mpt', 'mptcp']\n[[link]]\nname = 'a'\n\
        rate_mbps = 10\n[[axis]]\nname = 'delay'\nset = ['link.a.delay_ms']\nvalues = [1, 2]\n";

    fn experiments(text: &str) -> Vec<Experiment> {
        vec![Experiment::parse("x", text).unwrap_or_else(|error| panic!("{error}"))]
    }

    /// What measuring a repetition would leave in a folder.
    fn line(experiments: &[Experiment], at: Repetition, run: &str) -> CellRecord {
        let (experiment, cell) = at.of(experiments);
        let mut alone = Vec::new();
        let mut systems = Vec::new();
        for step in steps(experiment, cell, false) {
            let key = step.digest(Backend::default());
            let record = SystemRecord { system: step.name, key, ..SystemRecord::default() };
            match step.subject {
                Subject::Alone(_) => alone.push(record),
                Subject::System(_) => systems.push(record),
            }
        }
        let links = cell.topology.links.iter().zip(alone).map(|(link, alone)| LinkRecord {
            name: link.name.clone(),
            alone: Some(alone),
            ..LinkRecord::default()
        });
        CellRecord {
            run: run.into(),
            experiment: experiment.entry.name.clone(),
            cell: cell.place.clone(),
            repetition: at.number,
            links: links.collect(),
            systems,
            ..CellRecord::default()
        }
    }

    fn lines(experiments: &[Experiment]) -> Vec<CellRecord> {
        all(experiments).into_iter().map(|at| line(experiments, at, "one")).collect()
    }

    /// The missing ones, as cell and number.
    fn missing(experiments: &[Experiment], lines: &[CellRecord]) -> Vec<(usize, u32)> {
        let measured = measured(experiments, false, Backend::default(), lines.iter());
        measured.missing.iter().map(|it| (it.cell, it.number)).collect()
    }

    #[test]
    fn every_cell_is_measured_once_before_any_is_measured_twice() {
        let twice = [experiments(TEXT), experiments(TEXT)].concat();
        let order: Vec<_> =
            all(&twice).iter().map(|it| (it.experiment, it.number, it.cell)).collect();
        let of_one = [(1, 0), (1, 1), (2, 0), (2, 1)];
        let of = |experiment| of_one.map(|(number, cell)| (experiment, number, cell));
        assert_eq!(order, [of(0), of(1)].concat());
    }

    #[test]
    fn only_what_the_folder_has_not_is_missing() {
        let mut asked = experiments(TEXT);
        let lines = lines(&asked);
        assert_eq!(missing(&asked, &[]), [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(missing(&asked, &lines[..3]), [(1, 2)]);
        assert_eq!(missing(&asked, &lines), []);
        let all = measured(&asked, false, Backend::default(), lines.iter());
        assert_eq!(all.runs, ["one".to_owned()].into());
        asked[0].repetitions = 3;
        assert_eq!(missing(&asked, &lines), [(0, 3), (1, 3)], "more than before");
        asked[0].repetitions = 1;
        assert_eq!(missing(&asked, &lines), [], "fewer than before");
        asked[0].repetitions = 2;
        asked[0].systems.truncate(1);
        assert_eq!(missing(&asked, &lines), [], "fewer systems than before");
    }

    #[test]
    fn what_would_be_measured_otherwise_is_missing() {
        let lines = lines(&experiments(TEXT));
        let everything = [(0, 1), (1, 1), (0, 2), (1, 2)];
        for (change, to) in [
            ("rate_mbps = 10", "rate_mbps = 11"),
            ("'mpt', 'mptcp'", "'mpt', 'adaptive'"),
            ("title = 't'", "title = 't'\nseed = 9"),
            ("[[axis]]", "[traffic]\ncongestion = 'bbr'\n[[axis]]"),
        ] {
            let edited = experiments(&TEXT.replace(change, to));
            assert_eq!(missing(&edited, &lines), everything, "{to}");
        }
        // One more point of an axis, words and targets change nothing of the others.
        let more = experiments(&TEXT.replace("[1, 2]", "[1, 2, 3]").replace("'t'", "'new'"));
        assert_eq!(missing(&more, &lines), [(2, 1), (2, 2)]);
        let asked = experiments(TEXT);
        for (quick, backend) in [(true, Backend::default()), (false, Backend::Netem)] {
            assert_eq!(measured(&asked, quick, backend, lines.iter()).missing.len(), 4);
        }
        let mut scaled = experiments(TEXT);
        let cells = std::mem::take(&mut scaled[0].cells);
        scaled[0].cells = cells.into_iter().map(|cell| cell.scaled_to(1e6)).collect();
        assert_eq!(missing(&scaled, &lines), everything, "slow motion");
    }

    #[test]
    fn what_failed_is_missing_and_what_this_machine_cannot_run_is_not() {
        let asked = experiments(TEXT);
        let mut lines = lines(&asked);
        lines[0].systems[1].skipped = Some("no MPTCP".into());
        assert_eq!(missing(&asked, &lines), []);
        lines[0].systems[1].failed = true;
        assert_eq!(missing(&asked, &lines), [(0, 1)]);
        lines.push(line(&asked, all(&asked)[0], "two"));
        assert_eq!(missing(&asked, &lines), [], "it was measured again");
    }

    #[test]
    fn a_script_that_was_edited_is_another_system() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("tunnel.sh");
        std::fs::write(&script, "exec true").unwrap();
        let text = format!(
            "title = 't'\n[[system]]\nname = 'mine'\nscript = '{}'\n[[link]]\nname = 'a'\n",
            script.display()
        );
        let asked = experiments(&text);
        let lines = lines(&asked);
        assert_eq!(missing(&asked, &lines), []);
        std::fs::write(&script, "exec false").unwrap();
        assert_eq!(missing(&asked, &lines), [(0, 1)]);
    }
}
