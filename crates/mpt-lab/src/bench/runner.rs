//! The run: over each kind of wire all subjects stand at once, and are measured in turn, again and again.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::measure::Measure;
use super::options::Options;
use super::processors::Processors;
use super::ratio::{self, UDP_SIZES};
use super::ready::{Lacking, Ready};
use super::record::{Record, Skipped};
use super::samples::{Key, Quantity, Samples};
use super::subject::{Subject, Wire};
use super::turns::turns;
use crate::processor;
use crate::stop::Stop;

/// How long the machine is watched at the beginning of each repetition, while nothing is done.
const WATCH: Duration = Duration::from_millis(200);

/// Measures everything and says what it is doing.
///
/// What this machine lacks is left out, and named in the record.
///
/// # Errors
///
/// Something went wrong: a daemon that ends, a stream over which nothing comes, a link that carries
/// nothing; or the run was ended from outside.
pub fn run(
    options: &Options,
    binary: &Path,
    stop: &Stop,
    say: &mut dyn FnMut(&str),
) -> Result<Record> {
    let measure = Measure { options, processors: Processors::divided()?, stop };
    let steps = options.repetitions * options.combinations().count();
    let mut run = Run {
        options,
        measure,
        samples: Samples::default(),
        skipped: Vec::new(),
        background: Vec::new(),
        step: 0,
        steps,
        say,
    };
    for &wire in &options.wires {
        let stands = run.bring_up(wire, binary)?;
        for repetition in 0..options.repetitions {
            run.repetition(&stands, repetition)?;
        }
    }
    Record::new(options, &run.samples, run.skipped, &run.background)
}

struct Run<'a> {
    options: &'a Options,
    measure: Measure<'a>,
    samples: Samples,
    skipped: Vec<Skipped>,
    background: Vec<f64>,
    /// Subjects that were measured so far, over a wire in a repetition, and how many there will be.
    step: usize,
    steps: usize,
    say: &'a mut dyn FnMut(&str),
}

/// A subject that stands.
struct Stand {
    subject: Subject,
    ready: Ready,
}

impl Stand {
    fn key(&self, quantity: Quantity) -> Key {
        Key { wire: self.ready.wire, subject: self.subject, quantity }
    }

    fn has_rounds(&self) -> bool {
        self.ready.wire.is_limitless() && ratio::has_rounds(self.subject)
    }

    fn title(&self) -> String {
        title(self.ready.wire, self.subject)
    }
}

fn title(wire: Wire, subject: Subject) -> String {
    format!("{}, {}", wire.title(), subject.title())
}

impl Run<'_> {
    /// Brings up all subjects that are measured over a wire, but those that this machine lacks.
    fn bring_up(&mut self, wire: Wire, binary: &Path) -> Result<Vec<Stand>> {
        let mut stands = Vec::new();
        for &subject in self.options.subjects.iter().filter(|&&subject| wire.measures(subject)) {
            self.measure.stop.check()?;
            match Ready::bring_up(subject, wire, binary) {
                Ok(ready) => stands.push(Stand { subject, ready }),
                Err(error) if error.is::<Lacking>() => {
                    let why = format!("{error:#}");
                    (self.say)(&format!("{}: SKIPPED, {why}", title(wire, subject)));
                    self.skipped.push(Skipped { wire, subject, why });
                    self.steps -= self.options.repetitions;
                }
                Err(error) => return Err(error.context(title(wire, subject))),
            }
        }
        Ok(stands)
    }

    /// Measures all that stand: in several short rounds what differs by little, and then everything.
    fn repetition(&mut self, stands: &[Stand], repetition: usize) -> Result<()> {
        self.measure.stop.check()?;
        self.background.push(processor::background(WATCH)?);
        let in_rounds: Vec<&Stand> = stands.iter().filter(|stand| stand.has_rounds()).collect();
        for round in 0..self.options.rounds {
            let round = repetition * self.options.rounds + round;
            for turn in turns(in_rounds.len(), round) {
                let stand = in_rounds[turn];
                let found = self.measure.round(&stand.ready).with_context(|| stand.title())?;
                self.keep(stand, round, found);
            }
        }
        for turn in turns(stands.len(), repetition) {
            self.all(&stands[turn], repetition)?;
        }
        Ok(())
    }

    fn keep(
        &mut self,
        stand: &Stand,
        time: usize,
        found: impl IntoIterator<Item = (Quantity, f64)>,
    ) {
        for (quantity, value) in found {
            self.samples.push(time, stand.key(quantity), value);
        }
    }

    /// Measures everything of a subject, with all processors for both hosts.
    fn all(&mut self, stand: &Stand, repetition: usize) -> Result<()> {
        let Stand { subject, ready } = stand;
        let [one, many] = self.options.flows;
        if subject.pings() {
            let found = self.measure.pings(ready).with_context(|| stand.title())?;
            self.keep(stand, repetition, found);
        }
        let flows = if ready.wire.is_limitless() { &[one, many][..] } else { &[one] };
        for &flows in flows {
            let found = self.measure.tcp(ready, flows).with_context(|| stand.title())?;
            self.keep(stand, repetition, found);
        }
        if subject.udp() && ready.wire.is_limitless() && self.options.udp_halvings > 0 {
            for size in UDP_SIZES {
                let rate = self.measure.udp(ready, size).with_context(|| stand.title())?;
                self.keep(stand, repetition, [(Quantity::UdpRate(size), rate / 1e3)]);
            }
        }
        if let Some(bytes) = ready.resident_bytes()? {
            let mebibytes = bytes as f64 / f64::from(1 << 20);
            self.keep(stand, repetition, [(Quantity::Memory, mebibytes)]);
        }
        self.step += 1;
        let goodput = self.samples.figure(stand.key(Quantity::Goodput(one)));
        let goodput = goodput.map_or(0.0, |figure| figure.middle());
        let (step, steps) = (self.step, self.steps);
        (self.say)(&format!("[{step}/{steps}] {}: {goodput:.2} Gbit/s", stand.title()));
        Ok(())
    }
}
