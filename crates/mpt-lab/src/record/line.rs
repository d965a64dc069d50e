//! A record as the line of JSON that stays.

use serde::Serialize;

use super::figures::figures;
use super::{ALONE, Measured, Record, against, megabits};

use crate::cell::{Cell, Direction, ideal};
use crate::machine;
use crate::results::{CellRecord, LinkRecord, SystemRecord};
use crate::traffic::series::SAMPLE;

/// What `mpt-lab run --json` prints for a cell: the line, and the figures of the first system where they
/// are found without looking for them.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The figures of the first system that ran.
    #[serde(flatten)]
    pub headline: Headline,
    /// Everything.
    #[serde(flatten)]
    pub cell: CellRecord,
}

/// The figures of the first system that ran, as medians.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Headline {
    /// The experiment's question.
    pub question: String,
    /// Goodput over all links; absent for pings.
    pub tunnel_mbps: Option<f64>,
    /// Of what the other links could add to the best one, the share that was added.
    pub gain: Option<f64>,
    /// Goodput ÷ that of the best link alone.
    pub over_best_alone: Option<f64>,
    /// Goodput over each link alone.
    pub links_mbps: Vec<Option<f64>>,
    /// Rate of each link in outer IP bytes, in the direction of the traffic.
    pub links_rate_mbps: Vec<Option<f64>>,
    /// Σ rate × (1 − loss) × payload share of the system's own framing.
    pub ideal_mbps: Option<f64>,
    /// The most that these weights allow: min(C/w) · Σw with the C that add up to the ideal.
    pub bound_mbps: Option<f64>,
    /// Goodput ÷ ideal.
    pub efficiency: Option<f64>,
    /// Goodput ÷ Σ link rate.
    #[serde(rename = "yield")]
    pub yields: Option<f64>,
    /// TCP segments sent again.
    pub retransmits: Option<u64>,
    /// Seconds until the first second at 95 % of the settled rate.
    pub startup_seconds: Option<f64>,
    /// Rate in each sample of the run whose goodput is the median.
    pub samples_mbps: Vec<f64>,
    /// The version of the daemons.
    pub version: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors of the machine.
    pub processors: usize,
}

impl Line {
    /// The line of a record that was measured by the run of that name.
    pub fn new(record: &Record, run: &str) -> Self {
        Self::of(record.to_cell_record(run), &record.question)
    }

    /// The line of a cell of an experiment that asks this question.
    pub fn of(cell: CellRecord, question: &str) -> Self {
        let mut ran = cell.systems.iter().filter(|system| !system.figures.is_empty());
        let main = ran.next().map(|main| main.system.clone()).unwrap_or_default();
        let figure = |name: &str| cell.figure(&main, name);
        let headline = Headline {
            question: question.to_owned(),
            tunnel_mbps: figure("goodput_mbps"),
            gain: figure("gain"),
            over_best_alone: figure("over_best_alone"),
            links_mbps: cell
                .links
                .iter()
                .map(|link| Some(link.alone.as_ref()?.figures.get("goodput_mbps")?.median))
                .collect(),
            links_rate_mbps: cell.links.iter().map(|link| link.rate_mbps).collect(),
            ideal_mbps: figure("ideal_mbps"),
            bound_mbps: figure("bound_mbps"),
            efficiency: figure("efficiency"),
            yields: figure("yield"),
            retransmits: figure("retransmits").map(|count| count.round() as u64),
            startup_seconds: figure("startup_seconds"),
            samples_mbps: cell.system(&main).map_or(Vec::new(), |main| main.samples_mbps.clone()),
            version: env!("CARGO_PKG_VERSION").into(),
            kernel: machine::kernel(),
            processors: machine::processors(),
        };
        Self { headline, cell }
    }
}

pub(super) fn cell_record(record: &Record, run: &str) -> CellRecord {
    let cell = &record.cell;
    let reasons = record.reasons();
    let links = links(record);
    CellRecord {
        run: run.to_owned(),
        experiment: record.experiment.clone(),
        title: record.title.clone(),
        number: cell.number,
        count: record.count,
        cell: cell.place.clone(),
        repetition: record.repetition,
        parts: Vec::new(),
        quick: record.quick,
        scale: cell.scale,
        scale_reason: cell.scale_reason.clone(),
        seconds: cell.traffic.seconds,
        omit: cell.traffic.omit,
        seed: cell.topology.seed,
        systems: record
            .systems
            .iter()
            .map(|system| {
                let mut written = system_record(system, cell.scale);
                written.figures.extend(against::figures(system, &record.alone, cell.scale));
                written
            })
            .collect(),
        links,
        published: cell.published.clone(),
        host_limited: record.send_buffer.and_then(|bytes| cell.host_limit(bytes)),
        sample_seconds: SAMPLE.as_secs_f64(),
        doubtful: !reasons.is_empty(),
        reasons,
    }
}

fn links(record: &Record) -> Vec<LinkRecord> {
    let cell = &record.cell;
    let rates = ideal::rates(cell);
    let links = cell.topology.links.iter().zip(rates).enumerate();
    let link = |(index, (link, rate)): (usize, (&crate::topology::LinkSpec, Option<f64>))| {
        let profile = match cell.traffic.direction {
            Direction::Backward => &link.backward,
            Direction::Forward => &link.forward,
        };
        LinkRecord {
            name: link.name.clone(),
            rate_mbps: rate.map(|rate| megabits(rate * cell.scale)),
            delay_ms: profile.delay.as_secs_f64() * 1e3 / cell.scale,
            rtt_ms: (link.forward.delay + link.backward.delay).as_secs_f64() * 1e3 / cell.scale,
            jitter_ms: profile.jitter.as_secs_f64() * 1e3 / cell.scale,
            loss: profile.loss.long_run(),
            version: link.version.into(),
            alone: record.alone.get(index).map(|alone| system_record(alone, cell.scale)),
        }
    };
    links.map(link).collect()
}

fn system_record(measured: &Measured, scale: f64) -> SystemRecord {
    let name = if measured.system.is_empty() { ALONE } else { &measured.system };
    let value = |run| serde_json::to_value(run).unwrap_or_default();
    SystemRecord {
        system: name.to_owned(),
        key: measured.key.clone(),
        skipped: measured.skipped.clone(),
        failed: measured.failed,
        shared: measured.shared.clone(),
        figures: figures(measured, scale),
        samples_mbps: measured.typical().map_or(Vec::new(), |run| run.flow.samples_mbps.clone()),
        // What was shared is in the cell that it was measured for.
        runs: match measured.shared {
            Some(_) => Vec::new(),
            None => measured.runs.iter().map(value).collect(),
        },
    }
}

impl Cell {
    /// Its name in messages: that of the experiment, and where it is in it.
    pub fn name_in(&self, experiment: &str) -> String {
        let place = self.place();
        if place.is_empty() { experiment.to_owned() } else { format!("{experiment} ({place})") }
    }

    /// Its place in words, such as `delay 20, window 100`; empty if the experiment has one cell.
    pub fn place(&self) -> String {
        let words = self.place.iter().map(|at| format!("{} {}", at.axis, at.label));
        words.collect::<Vec<_>>().join(", ")
    }
}
