//! The run that answers experiments, step by step.
//!
//! A step measures one system in one cell, or one link alone. Each repetition of a cell has its own
//! lab, in which all its steps run one after the other. A [`Bench`] holds the shared state of
//! cells: the daemon's binary, the observer, the progress of the run, and, in a quick run, earlier
//! results: in a repetition, a step with the same links, settings and traffic is not measured twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::beside::Stream;
use super::follow::{Action, follow, of_cuts, of_events};
use super::load::{Load, Route};
use super::outcome::{add_settling, cost, doubts, rate_against};
use super::plan::Experiment;
use super::repetition::{self, Repetition};
use super::rival;
use super::step::{Step as Planned, Subject, steps};
use super::watch::{Step, Watch};
use crate::capture::Capture;
use crate::cell::configuration::TUNNEL;
use crate::cell::host::largest_of;
use crate::cell::ideal::{self, Ideal};
use crate::cell::{Cell, Cut, Event, Kind, Outage, Scheduler, Traffic};
use crate::daemon::Tracer;
use crate::lab::leftovers::Inventory;
use crate::lab::{Backend, Lab};
use crate::model::{self, Prediction};
use crate::processor;
use crate::record::{CutRecord, EventRecord, FlowRecord, Measured, OutageRecord, Record, Run};
use crate::results::Figure;
use crate::stop::{Interrupted, Stop};
use crate::system::{Running, System, Unavailable, sides};
use crate::topology::Topology;
use crate::traffic::tcp::Transport;

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
    /// What was measured, by repetition and [`Planned::key`], and where; kept only if the run is quick.
    known: BTreeMap<(u32, String), Known>,
    /// The durations of the remaining steps, the next one last.
    ahead: Vec<Duration>,
    done: usize,
    began: Instant,
    /// Time spent so far on traffic; all else is set-up.
    traffic: Duration,
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
        let mut bench = Self {
            binary,
            stop,
            watch,
            quick,
            experiment: String::new(),
            backend: Backend::default(),
            captures: None,
            traces: None,
            known: BTreeMap::new(),
            ahead: Vec::new(),
            done: 0,
            began: Instant::now(),
            traffic: Duration::ZERO,
        };
        bench.expect(experiments, &repetition::all(experiments));
        bench
    }

    /// Only these repetitions are to be measured, in this order.
    pub fn expect(&mut self, experiments: &[Experiment], repetitions: &[Repetition]) {
        self.ahead = lengths(experiments, repetitions, self.quick);
        self.ahead.reverse();
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
        let begin = |(number, step): (usize, &Planned)| {
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
    fn begin(&self, step: &Planned, repetition: u32, twice: Option<&String>) -> Measured {
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
        planned: &[Planned],
        measured: &mut [Measured],
        failures: &mut Vec<String>,
    ) -> Result<Option<u64>> {
        let is_open = |measured: &Measured| measured.skipped.is_none() && measured.shared.is_none();
        if !measured.iter().any(is_open) {
            return Ok(None);
        }
        let seed = cell.topology.seed.wrapping_add(u64::from(repetition.saturating_sub(1)));
        let topology = Topology { seed, ..cell.topology.clone() };
        let mut lab = Lab::start_on(&topology, self.backend)?;
        let mut is_fresh = true;
        for (step, measured) in planned.iter().zip(measured) {
            if !is_open(measured) {
                continue;
            }
            // A link or a translator to which something has happened is not what it was.
            if !is_fresh && !cell.events.is_empty() {
                lab = Lab::start_on(&topology, self.backend)?;
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
                lab = Lab::start_on(&topology, self.backend)?;
                outcome = self.attempt(&lab, cell, step, &title);
            }
            // The next system gets hosts that are as the first one's were.
            if let Some(left) = Inventory::of(&lab)?.since(&before) {
                self.watch.on_trouble(&format!(
                    "{title}: left behind, so others get fresh hosts: {left}"
                ));
                lab = Lab::start_on(&topology, self.backend)?;
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

    fn attempt(&mut self, lab: &Lab, cell: &Cell, step: &Planned, title: &str) -> Result<Run> {
        match &step.subject {
            Subject::Alone(link) => self.alone(lab, cell, *link, title, &step.traffic),
            Subject::System(system) => self.system(lab, cell, system, title),
        }
    }

    /// Why a step gives no figures, and whether that is a failure; all other steps run without it.
    fn reason(&mut self, error: anyhow::Error, step: &Planned) -> Result<(String, bool)> {
        self.stop.check()?;
        // With the flow during an outage, if there is one.
        for _ in step.lengths().skip(1) {
            self.ahead.pop();
            self.done += 1;
        }
        self.finish_step(step.lengths().sum(), None);
        match error.downcast::<Unavailable>() {
            Ok(Unavailable(why)) => Ok((why, false)),
            Err(error) => Ok((format!("it failed: {error:#}"), true)),
        }
    }

    /// The traffic over one link, without anything between.
    fn alone(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        link: usize,
        title: &str,
        traffic: &Traffic,
    ) -> Result<Run> {
        let (from, to) = sides(traffic.direction);
        let route = Route {
            from: lab.host(from),
            to: lab.host(to),
            address: lab.host(to).address(link),
            device: Some(lab.link(link).name()),
            transport: Transport::Tcp,
            sender: lab.host(from).address(link),
            receivers: vec![lab.host(to).address(link)],
            mptcp: None,
        };
        let mut run = Run::default();
        let (flow, _) = self.step(lab, cell, title, &route, traffic, None, &[], &mut run)?;
        rate_against(&mut run, &flow, Ideal::alone(cell, link));
        run.reasons.extend(doubts(&flow, &[]));
        run.flow = flow;
        Ok(run)
    }

    /// The cell's traffic over a system that uses all links.
    fn system(&mut self, lab: &Lab, cell: &Cell, system: &System, title: &str) -> Result<Run> {
        let running = Running::start(system, lab, cell, self.binary, self.stop)?;
        let (from, to) = sides(cell.traffic.direction);
        let route = Route {
            from: lab.host(from),
            to: lab.host(to),
            address: running.address(to, cell),
            device: None,
            transport: running.transport(),
            sender: running.address(from, cell),
            receivers: running.receivers(lab.host(to), cell),
            mptcp: running.mptcp(),
        };
        let mut run = Run::default();
        let before = running.snapshot()?;
        let links_before = lab.reports();
        let daemons_before = running.processor()?;
        let actions = of_events(&cell.events);
        let tracer = match &self.traces {
            Some(folder) => {
                let name = file_name(lab, &self.experiment, title);
                running.trace(self.binary, &folder.join(format!("{name}.jsonl")))?
            }
            None => None,
        };
        let (flow, events) =
            self.step(lab, cell, title, &route, &cell.traffic, Some(&running), &actions, &mut run)?;
        if let Some(Err(error)) = tracer.map(Tracer::finish) {
            run.reasons.push(format!("the trace is not whole: {error:#}"));
        }
        let daemons_after = running.processor()?;
        (run.paths, run.daemons) = running.since(&before)?;
        run.events = events;
        if let (Some(before), Some(after)) = (daemons_before, daemons_after) {
            let spent = |side: usize| after[side].saturating_sub(before[side]).as_secs_f64();
            run.processor.left += spent(0);
            run.processor.right += spent(1);
            run.processor.total += spent(0) + spent(1);
        }
        if let Some(outage) = cell.outage.as_ref().filter(|outage| outage.is_of(system)) {
            let (record, reasons) = self.outage(lab, cell, outage, &route, title)?;
            run.outage = Some(record);
            run.reasons.extend(reasons);
        }
        run.inner_mtu = running.inner_mtu();
        if let Some(framing) = running.framing() {
            add_settling(&mut run.events, &flow, cell, framing);
        }
        let ideal = running.framing().and_then(|framing| Ideal::of(cell, framing));
        rate_against(&mut run, &flow, ideal);
        run.flow = flow;
        run.reasons.extend(running.remarks());
        run.reasons.extend(running.unused(&run.emulator, &links_before, cell.traffic.direction));
        running.terminate()?;
        run.reasons.extend(doubts(&run.flow, &run.paths));
        Ok(run)
    }

    /// TCP over a system while links fail.
    fn outage(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        outage: &Outage,
        route: &Route<'_>,
        title: &str,
    ) -> Result<(OutageRecord, Vec<String>)> {
        let traffic = outage.traffic(&cell.traffic);
        let title = format!("{title}, while links fail");
        let actions = of_cuts(&outage.cuts);
        let mut run = Run::default();
        let (flow, _) = self.step(lab, cell, &title, route, &traffic, None, &actions, &mut run)?;
        let cut = |cut: &Cut| {
            let name = lab.link(cut.link).name();
            Some(CutRecord::of_series(flow.series.as_ref()?, traffic.omitted(), cut, name))
        };
        run.reasons.extend(doubts(&flow, &[]));
        let cuts = outage.cuts.iter().filter_map(cut).collect();
        Ok((OutageRecord { cuts, flow }, run.reasons))
    }

    /// Runs and monitors traffic; returns the results of it and of every event of the cell.
    #[expect(clippy::too_many_arguments, reason = "everything that a measurement depends on")]
    fn step(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        title: &str,
        route: &Route<'_>,
        traffic: &Traffic,
        running: Option<&Running>,
        actions: &[Action],
        run: &mut Run,
    ) -> Result<(FlowRecord, Vec<EventRecord>)> {
        self.stop.check()?;
        self.watch.on_step(&Step {
            title: title.to_owned(),
            number: self.done + 1,
            count: self.done + self.ahead.len().max(1),
            length: traffic.length(),
            remaining: self.remaining(),
            links: lab.links().iter().map(|wire| wire.name().to_owned()).collect(),
            rates: ideal::rates(cell),
        });
        lab.links().iter().for_each(|wire| wire.restart_record());
        let costs = [processor::own()?, processor::emulator()?];
        let began = Instant::now();
        let name = &self.experiment;
        let capture = self.captures.as_ref().map(|folder| capture(folder, lab, name, title));
        let capture = capture.transpose()?;
        let load = Load::start(route, traffic).with_context(|| title.to_owned())?;
        let beside = Stream::start(route, traffic).with_context(|| title.to_owned())?;
        let rival = rival::Flow::start(lab, cell, running, traffic);
        let rival = rival.with_context(|| title.to_owned())?;
        let direction = traffic.direction;
        let trace =
            follow(lab, &load, direction, traffic.length(), actions, self.stop, self.watch)?;
        run.emulator = lab.reports();
        let reasons = run.emulator.iter().flat_map(|report| &report.reasons);
        run.reasons.extend(reasons.cloned());
        let mut flow = load.finish(traffic.omitted())?;
        if traffic.long_seconds.is_some() {
            flow = flow.of_long_run(traffic.omitted(), traffic.measured());
        }
        let goodput = flow.goodput_mbps;
        flow.rival = rival.and_then(|rival| rival.finish(traffic.omitted(), goodput));
        if let Some(beside) = beside {
            let base = ideal::least_delay(cell);
            flow.beside = Some(beside.finish(traffic.omitted(), base, cell)?);
        }
        if let Some(capture) = capture {
            let summary = capture.finish()?;
            if summary.dropped() > 0 {
                run.reasons.push(format!("{} packets are not in the capture", summary.dropped()));
            }
        }
        let (from, _) = sides(direction);
        run.processor = cost(costs, began.elapsed(), &flow, from == crate::topology::Side::Left)?;
        self.finish_step(traffic.length(), flow.goodput_mbps);
        let events: &[Event] = if actions.is_empty() { &[] } else { &cell.events };
        let name = |link: usize| lab.link(link).name().to_owned();
        Ok((flow, trace.records(events, name)))
    }

    fn finish_step(&mut self, length: Duration, goodput_mbps: Option<f64>) {
        self.ahead.pop();
        self.done += 1;
        self.traffic += length;
        self.watch.on_result(goodput_mbps);
    }

    /// How long the rest will take, if setting up takes as long as before.
    fn remaining(&self) -> Duration {
        let traffic: Duration = self.ahead.iter().sum();
        let steps = u32::try_from(self.done.max(1)).unwrap_or(u32::MAX);
        let rest = u32::try_from(self.ahead.len()).unwrap_or(u32::MAX);
        let set_up = self.began.elapsed().saturating_sub(self.traffic) / steps;
        traffic + set_up * if self.done == 0 { 0 } else { rest }
    }
}

impl Experiment {
    /// How long it takes, set-up not counted.
    pub fn length(&self, quick: bool) -> Duration {
        let this = slice::from_ref(self);
        lengths(this, &repetition::all(this), quick).iter().sum()
    }
}

/// How long each flow takes, those left out that will be known by then.
fn lengths(experiments: &[Experiment], repetitions: &[Repetition], quick: bool) -> Vec<Duration> {
    let mut seen = BTreeSet::new();
    let mut lengths = Vec::new();
    for repetition in repetitions {
        let (experiment, cell) = repetition.of(experiments);
        for step in steps(experiment, cell, quick) {
            let is_new = seen.insert((repetition.number, step.key.clone())) || !quick;
            if is_new && step.unfit.is_none() {
                lengths.extend(step.lengths());
            }
        }
    }
    lengths
}

/// What the model expects of a system, as the clock would see it; `None` where it has no opinion.
fn predicted(cell: &Cell, step: &Planned, runs: &[Run]) -> Option<Figure> {
    let Subject::System(system) = &step.subject else { return None };
    let inner_mtu = runs.iter().find_map(|run| run.inner_mtu)?;
    let prediction = cell.predict(system, Some(inner_mtu))?;
    let median = prediction.goodput_mbps?;
    let [min, max] = prediction.goodput_range_mbps.unwrap_or([median; 2]);
    Some(Figure { median, min, max, count: 1 })
}

impl Cell {
    /// The model's prediction for a tunnel with this inner MTU, or with the one that fits the
    /// links. `None` if the system is no tunnel, if it measures the links, or if there are events,
    /// neither of which the model supports.
    pub fn predict(&self, system: &System, inner_mtu: Option<u32>) -> Option<Prediction> {
        let tunnel = system.tunnel(self)?;
        let inner_mtu = inner_mtu.unwrap_or_else(|| ideal::inner_mtu(&self.topology, &tunnel));
        // The model shares packets by weights.
        let known = self.events.is_empty() && tunnel.scheduler == Scheduler::Weighted;
        let traffic = Traffic { long_seconds: None, ..self.traffic.clone() };
        known.then(|| model::predict(&self.topology, &tunnel, &traffic, inner_mtu))
    }
}

/// Captures everything that passes from here on, in a file named after the step.
fn capture(folder: &Path, lab: &Lab, experiment: &str, title: &str) -> Result<Capture> {
    let file = folder.join(format!("{}.pcapng", file_name(lab, experiment, title)));
    let tuns: &[&str] = if lab.left().run(has_tunnel) { &[TUNNEL] } else { &[] };
    Capture::start(lab, &file, tuns)
}

/// What a file about a step is called, without its suffix.
fn file_name(lab: &Lab, experiment: &str, title: &str) -> String {
    let title = title.strip_prefix(experiment).unwrap_or(title);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    let words: Vec<_> = title.split(|c| !plain(c)).filter(|word| !word.is_empty()).collect();
    // Repetitions differ in their seed.
    let (name, seed) = (words.join("-"), lab.topology().seed);
    format!("{experiment}.{name}.seed-{seed}")
}

/// The largest send buffer of a TCP socket in the host of the calling thread, in bytes.
fn send_buffer() -> Option<u64> {
    largest_of(&fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").ok()?)
}

/// Whether the host of the calling thread has the interface of a tunnel.
fn has_tunnel() -> bool {
    Path::new("/proc/thread-self/net/dev_snmp6").join(TUNNEL).exists()
}

/// What a step is called while it runs.
fn title(experiment: &Experiment, cell: &Cell, step: &Planned) -> String {
    let subject = match &step.subject {
        Subject::Alone(link) => format!("link {} alone", cell.topology.links[*link].name),
        Subject::System(System::Classic) if experiment.systems.len() == 1 => {
            match cell.topology.links.len() {
                1 => "tunnel".into(),
                count => format!("tunnel over {count} links"),
            }
        }
        Subject::System(system) => system.name().to_owned(),
    };
    let place = cell.place();
    if place.is_empty() {
        return match &step.subject {
            Subject::System(system) if experiment.systems.len() > 1 => system.settings(cell),
            Subject::Alone(_) | Subject::System(_) => subject,
        };
    }
    format!("{} ({place}): {subject}", experiment.entry.name)
}

impl Outage {
    /// Whether a system has it.
    pub(super) fn is_of(&self, system: &System) -> bool {
        self.systems.is_empty() || self.systems.iter().any(|name| name == system.name())
    }

    /// The concurrent flow.
    pub(super) fn traffic(&self, traffic: &Traffic) -> Traffic {
        Traffic {
            kind: Kind::Tcp,
            seconds: self.seconds,
            long_seconds: None,
            beside: None,
            rival: None,
            ..traffic.clone()
        }
    }
}

/// Whether an error is an interruption of the run.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::library;

    #[test]
    fn a_flow_during_an_outage_is_counted_beside_the_others() {
        let demo = library::find("demo").expect("it is built in");
        let lengths = lengths(&demo, &repetition::all(&demo), false);
        // Two links alone, two systems, and one of them while a link fails.
        assert_eq!(lengths.len(), 5);
        assert_eq!(lengths.iter().sum::<Duration>(), demo[0].length(false));
    }
}
