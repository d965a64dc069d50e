//! The run that answers experiments, step by step.
//!
//! A step measures one system in one cell, or one link alone. Each repetition of a cell has its own
//! lab, in which all its steps run one after the other. A [`Bench`] holds the shared state of
//! cells: the daemon's binary, the observer, the progress of the run, and, in a quick run, earlier
//! results: in a repetition, a step with the same links, settings and traffic is not measured twice.
//!
//! Here is which steps are measured, in which labs; how one is measured is in `runner/measurement.rs`.

mod measurement;
mod names;
mod progress;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::plan::Experiment;
use super::prediction::predicted;
use super::repetition::{self, Repetition};
use super::step::{Step, Subject, steps};
use super::watch::Watch;
use crate::cell::Cell;
use crate::cell::host::largest_of;
use crate::lab::leftovers::Inventory;
use crate::lab::{Backend, Lab};
use crate::record::{Measured, Record, Run};
use crate::results::Figure;
use crate::stop::{Interrupted, Stop};
use crate::system::{Unavailable, sides};
use crate::topology::Topology;
use names::title;
use progress::{Progress, lengths};

/// What all cells of a run share.
pub struct Bench<'a> {
    binary: &'a Path,
    stop: &'a Stop,
    watch: &'a mut dyn Watch,
    quick: bool,
    /// The name of the experiment that is under way.
    experiment: String,
    backend: Backend,
    /// Where captures go, if packets are to be kept.
    captures: Option<PathBuf>,
    /// Where traces of daemons go, if they are to be kept.
    traces: Option<PathBuf>,
    /// What was measured, by repetition and [`Step::key`], and where; kept only if the run is quick.
    known: BTreeMap<(u32, String), Known>,
    progress: Progress,
}

/// What was measured before, and where.
struct Known {
    place: String,
    runs: Arc<[Run]>,
    predicted_mbps: Option<Figure>,
}

impl<'a> Bench<'a> {
    /// A bench for these experiments, which are to be measured in the order of [`repetition::all`].
    pub fn new(
        binary: &'a Path,
        stop: &'a Stop,
        watch: &'a mut dyn Watch,
        quick: bool,
        experiments: &[Experiment],
    ) -> Self {
        Self {
            binary,
            stop,
            watch,
            quick,
            experiment: String::new(),
            backend: Backend::default(),
            captures: None,
            traces: None,
            known: BTreeMap::new(),
            progress: Progress::through(lengths(experiments, &repetition::all(experiments), quick)),
        }
    }

    /// Only these repetitions are to be measured, in this order.
    pub fn expect(&mut self, experiments: &[Experiment], repetitions: &[Repetition]) {
        self.progress.expect(lengths(experiments, repetitions, self.quick));
    }

    /// Makes links of something else than the emulator.
    pub fn set_backend(&mut self, backend: Backend) {
        self.backend = backend;
    }

    /// Keeps the packets of every step in a folder, which is there.
    pub fn capture_to(&mut self, folder: PathBuf) {
        self.captures = Some(folder);
    }

    /// Keeps what the sending daemon of every step traced in a folder, which is there.
    pub fn trace_to(&mut self, folder: PathBuf) {
        self.traces = Some(folder);
    }

    /// Measures a cell once; repetitions are counted from 1.
    ///
    /// Needs the rights of [`crate::privilege`]. It takes about the sum of the traffic's lengths, and
    /// whatever it makes is gone when it returns.
    ///
    /// # Errors
    ///
    /// What could not be set up, with the remedy where one is known; [`Interrupted`] if `stop` was set.
    pub fn measure(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        repetition: u32,
    ) -> Result<Record> {
        self.experiment.clone_from(&experiment.entry.name);
        let planned = steps(experiment, cell, self.quick);
        let place = match cell.place() {
            at if at.is_empty() => experiment.entry.name.clone(),
            at => format!("{} ({at})", experiment.entry.name),
        };
        let begin = |(number, step): (usize, &Step)| {
            // Two equal links are measured once, also within a cell.
            let twice = planned[..number].iter().any(|before| before.key == step.key);
            self.begin(step, repetition, (self.quick && twice).then_some(&place))
        };
        let mut measured: Vec<_> = planned.iter().enumerate().map(begin).collect();
        let mut failures = Vec::new();
        let outcome =
            self.steps(experiment, cell, repetition, &planned, &mut measured, &mut failures);
        if outcome.is_err() {
            // Ctrl-C reaches the daemons too; that they are gone is then not what went wrong.
            self.stop.check()?;
        }
        let mut record = Record {
            experiment: experiment.entry.name.clone(),
            title: experiment.entry.title.clone(),
            question: experiment.entry.question.clone(),
            count: experiment.cells.len(),
            repetition,
            quick: self.quick,
            cell: cell.clone(),
            alone: Vec::new(),
            systems: Vec::new(),
            send_buffer: outcome?,
            failures,
        };
        for (step, mut measured) in planned.into_iter().zip(measured) {
            let key = (repetition, step.key.clone());
            if !measured.runs.is_empty() {
                measured.predicted_mbps = predicted(cell, &step, &measured.runs);
                if self.quick {
                    let known = Known {
                        place: place.clone(),
                        runs: Arc::clone(&measured.runs),
                        predicted_mbps: measured.predicted_mbps,
                    };
                    self.known.insert(key.clone(), known);
                }
            }
            if let (Some(known), true) = (self.known.get(&key), measured.shared.is_some()) {
                measured.runs = Arc::clone(&known.runs);
                measured.predicted_mbps = known.predicted_mbps;
            }
            match step.subject {
                Subject::Alone(_) => record.alone.push(measured),
                Subject::System(_) => record.systems.push(measured),
            }
        }
        Ok(record)
    }

    /// What is known of a step before it is measured; `twice` is where it will have been by then.
    fn begin(&self, step: &Step, repetition: u32, twice: Option<&String>) -> Measured {
        let known = self.known.get(&(repetition, step.key.clone())).map(|known| &known.place);
        Measured {
            system: step.name.clone(),
            key: step.digest(self.backend),
            skipped: step.unfit.clone(),
            failed: false,
            shared: known.or(twice).cloned(),
            predicted_mbps: None,
            runs: Arc::default(),
        }
    }

    /// Measures everything that is to be measured; returns the sending host's largest send buffer in bytes,
    /// if it was needed and is known.
    fn steps(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        repetition: u32,
        planned: &[Step],
        measured: &mut [Measured],
        failures: &mut Vec<String>,
    ) -> Result<Option<u64>> {
        let is_open = |measured: &Measured| measured.skipped.is_none() && measured.shared.is_none();
        if !measured.iter().any(is_open) {
            return Ok(None);
        }
        let seed = cell.topology.seed.wrapping_add(u64::from(repetition.saturating_sub(1)));
        let topology = Topology { seed, ..cell.topology.clone() };
        let backend = self.backend;
        let start = || -> Result<Lab> {
            let lab = Lab::start_on(&topology, backend)?;
            if let Some(megabytes) = cell.traffic.buffer_mb {
                lab.set_tcp_buffers(megabytes)?;
            }
            Ok(lab)
        };
        let mut lab = start()?;
        let mut is_fresh = true;
        for (step, measured) in planned.iter().zip(measured) {
            if !is_open(measured) {
                continue;
            }
            // A link or a translator to which something has happened is not what it was.
            if !is_fresh && !cell.events.is_empty() {
                lab = start()?;
            }
            is_fresh = false;
            let title = title(experiment, cell, step);
            let before = Inventory::of(&lab)?;
            let mut outcome = self.attempt(&lab, cell, step, &title);
            // What failed once on a machine that is shared may not fail again.
            if let Err(error) = &outcome
                && !error.is::<Unavailable>()
                && self.stop.check().is_ok()
            {
                self.watch.on_trouble(&format!("{title}, once more after: {error:#}"));
                lab = start()?;
                outcome = self.attempt(&lab, cell, step, &title);
            }
            // The next system gets hosts that are as the first one's were.
            if let Some(left) = Inventory::of(&lab)?.since(&before) {
                self.watch.on_trouble(&format!(
                    "{title}: left behind, so others get fresh hosts: {left}"
                ));
                lab = start()?;
                is_fresh = true;
            }
            match outcome {
                Ok(run) => measured.runs = [Run { seed, ..run }].into(),
                Err(error) => {
                    let (why, failed) = self.reason(error, step)?;
                    if failed {
                        failures.push(format!("{title}: {why}"));
                    }
                    measured.failed = failed;
                    measured.skipped = Some(why);
                }
            }
        }
        let (from, _) = sides(cell.traffic.direction);
        Ok(lab.host(from).run(send_buffer))
    }

    /// Why a step gives no figures, and whether that is a failure; all other steps run without it.
    fn reason(&mut self, error: anyhow::Error, step: &Step) -> Result<(String, bool)> {
        self.stop.check()?;
        // With the flow during an outage, if there is one.
        step.lengths().for_each(|length| self.progress.finish(length));
        self.watch.on_result(None);
        match error.downcast::<Unavailable>() {
            Ok(Unavailable(why)) => Ok((why, false)),
            Err(error) => Ok((format!("it failed: {error:#}"), true)),
        }
    }
}

/// The largest send buffer of a TCP socket in the host of the calling thread, in bytes.
fn send_buffer() -> Option<u64> {
    largest_of(&fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").ok()?)
}

/// Whether an error is an interruption of the run.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
}
