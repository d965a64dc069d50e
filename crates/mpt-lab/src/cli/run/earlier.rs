//! What earlier runs have left in a folder of results, for one that continues them.

use std::path::Path;

use anyhow::{Result, bail};
use mpt_lab::experiment::repetition::{self, Measured};
use mpt_lab::experiment::{Experiment, Repetition};
use mpt_lab::lab::Backend;
use mpt_lab::results::{CELLS, CellRecord, Manifest, RUNS, Results};

/// The runs and repetitions that a run may continue.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    runs: Vec<Manifest>,
    lines: Vec<CellRecord>,
}

/// What a run is to measure.
#[derive(Debug)]
pub(super) struct Work {
    /// The repetitions, in order.
    pub(super) missing: Vec<Repetition>,
    /// The runs that measured the others.
    pub(super) continues: Vec<String>,
    /// So many of those that are missing were measured by other programs, or on another machine.
    others: usize,
    /// How many repetitions there are in all.
    all: usize,
}

impl Earlier {
    /// Those of a folder, which may be empty or missing, in this form.
    pub(super) fn read(folder: &Path, quick: bool) -> Result<Self> {
        if !folder.join(RUNS).exists() || !folder.join(CELLS).exists() {
            return Ok(Self::default());
        }
        let Results { mut runs, cells: lines, torn } = Results::read(folder)?;
        for torn in &torn {
            super::super::tell(&format!("omitted: {torn}"));
        }
        runs.retain(|run| run.quick == quick);
        Ok(Self { runs, lines })
    }

    /// The ceiling that the latest of them scaled cells by, so that the same ones are scaled again.
    pub(super) fn ceiling(&self, here: &Manifest, mixes: bool) -> Option<f64> {
        let mut usable = self.runs.iter().rev().filter(|run| mixes || run.has_programs_of(here));
        usable.find_map(|run| Some(run.selftest.as_ref()?.ceiling_mbps))
    }

    /// What is to be measured by a run of these programs; `mixes` if those of others count, too.
    ///
    /// # Errors
    ///
    /// All that is there is of other programs.
    pub(super) fn work(
        &self,
        experiments: &[Experiment],
        here: &Manifest,
        backend: Backend,
        mixes: bool,
    ) -> Result<Work> {
        let of = |wanted: &dyn Fn(&Manifest) -> bool| -> Measured {
            let is_wanted =
                |line: &&CellRecord| self.runs.iter().any(|run| run.id == line.run && wanted(run));
            repetition::measured(
                experiments,
                here.quick,
                backend,
                self.lines.iter().filter(is_wanted),
            )
        };
        let any = of(&|_| true);
        let own = if mixes { any.clone() } else { of(&|run| run.has_programs_of(here)) };
        let others = own.missing.len() - any.missing.len();
        if own.runs.is_empty() && others > 0 {
            let other = self.runs.iter().rev().find(|run| any.runs.contains(&run.id));
            bail!(
                "the results to continue are of other programs or another machine ({}; this is {}): \
                 `--mix-versions` counts them, too, and without `--continue` everything is measured again",
                other.map(Manifest::programs).unwrap_or_default(),
                here.programs()
            );
        }
        Ok(Work {
            missing: own.missing,
            continues: own.runs.into_iter().collect(),
            others,
            all: repetition::all(experiments).len(),
        })
    }

    /// The lines of an experiment by these runs, oldest first.
    pub(super) fn lines_of(&self, experiment: &Experiment, runs: &[String]) -> Vec<CellRecord> {
        let is_wanted = |line: &&CellRecord| {
            line.experiment == experiment.entry.name && runs.contains(&line.run)
        };
        self.lines.iter().filter(is_wanted).cloned().collect()
    }
}

impl Work {
    /// How much of it there is, in words.
    pub(super) fn in_words(&self) -> String {
        let Self { missing, others, all, .. } = self;
        let there = all - missing.len();
        let mut words = format!(
            "{there} of {all} repetitions of cells are in the folder, {} are measured now",
            missing.len()
        );
        if *others > 0 {
            words += &format!(
                " ({others} of them were measured by other programs or on another machine: `--mix-versions` counts them)"
            );
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use mpt_lab::experiment::library;
    use mpt_lab::results::SelfTest;

    use super::*;

    fn run(id: &str, lab: &str) -> Manifest {
        let selftest = Some(SelfTest { ceiling_mbps: 100.0, ..SelfTest::default() });
        Manifest { id: id.into(), lab_sha256: lab.into(), selftest, ..Manifest::default() }
    }

    /// What is missing is decided elsewhere; here it is a line that measures nothing, of an experiment with neither
    /// systems nor links alone.
    fn earlier(runs: Vec<Manifest>, numbers: &[(&str, u32)]) -> (Earlier, Vec<Experiment>) {
        let mut asked = library::find("two-equal").unwrap();
        asked[0].systems.clear();
        (asked[0].alone, asked[0].repetitions) = (false, 3);
        let line = |(run, repetition): &(&str, u32)| CellRecord {
            run: (*run).to_owned(),
            experiment: "two-equal".into(),
            repetition: *repetition,
            ..CellRecord::default()
        };
        let lines = numbers.iter().map(line).collect();
        (Earlier { runs, lines }, asked)
    }

    fn numbers(work: &Work) -> Vec<u32> {
        work.missing.iter().map(|it| it.number).collect()
    }

    #[test]
    fn what_other_programs_measured_counts_only_if_that_is_asked_for() {
        let runs = vec![run("one", "a"), run("two", "b")];
        let (earlier, asked) = earlier(runs, &[("one", 1), ("two", 2)]);
        let work = |mixes| {
            earlier
                .work(&asked, &run("now", "a"), Backend::default(), mixes)
                .expect("some is usable")
        };
        let own = work(false);
        assert_eq!(
            (numbers(&own), own.continues.as_slice()),
            (vec![2, 3], &["one".to_owned()][..])
        );
        assert_eq!(
            own.in_words(),
            "1 of 3 repetitions of cells are in the folder, 2 are measured now (1 of them were measured by \
             other programs or on another machine: `--mix-versions` counts them)"
        );
        let mixed = work(true);
        assert_eq!((numbers(&mixed), mixed.continues.len()), (vec![3], 2));
        let words = mixed.in_words();
        assert_eq!(words, "2 of 3 repetitions of cells are in the folder, 1 are measured now");
    }

    #[test]
    fn a_folder_of_other_programs_alone_is_refused() {
        let (earlier, asked) = earlier(vec![run("one", "aaaa")], &[("one", 1)]);
        let here = run("now", "bbbb");
        let error = earlier.work(&asked, &here, Backend::default(), false).unwrap_err().to_string();
        assert!(error.contains("mpt-lab aaaa") && error.contains("mpt-lab bbbb"), "{error}");
        assert!(error.contains("--mix-versions"), "{error}");
        assert_eq!(
            (earlier.ceiling(&here, false), earlier.ceiling(&here, true)),
            (None, Some(100.0))
        );
        let work = earlier.work(&asked, &here, Backend::default(), true).unwrap();
        assert_eq!(numbers(&work), [2, 3]);
    }

    #[test]
    fn an_empty_folder_is_a_beginning() {
        let place = tempfile::tempdir().unwrap();
        let (_, asked) = earlier(Vec::new(), &[]);
        let earlier = Earlier::read(&place.path().join("none"), false).unwrap();
        let work = earlier.work(&asked, &run("now", "a"), Backend::default(), false).unwrap();
        assert_eq!((numbers(&work), work.continues.len()), (vec![1, 2, 3], 0));
    }
}
