//! What was measured in a cell, with everything it came from.
//!
//! A [`Record`] holds the [`Run`] of every system in one repetition, as it happened. [`Record::to_cell_record`]
//! converts it into the stored result: a [`CellRecord`] with the figures for comparison, in the units of the
//! experiment's file. [`merge`](crate::results::merge()) takes the medians over the repetitions. Rates are in Mbit/s (10⁶ bit/s),
//! times in seconds or, where the name says so, milliseconds.

mod against;
mod figures;
mod flow;
mod line;
mod settling;

use std::sync::Arc;

use serde::Serialize;

use crate::cell::Cell;
use crate::emulator;
use crate::results::{CellRecord, Figure};
pub use figures::FIGURES;
pub use flow::{
    BesideRecord, CallsRecord, FlowRecord, MEGABYTES, RivalRecord, StreamRecord, megabits,
    milliseconds,
};
pub use line::{Headline, Line};
pub use settling::Settling;

/// The name in records of a link measured alone, by whatever traffic.
pub const ALONE: &str = "alone";

/// One repetition of one cell.
#[derive(Clone, Debug)]
pub struct Record {
    /// The experiment's name.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Its question.
    pub question: String,
    /// Of how many cells it is one.
    pub count: usize,
    /// Which repetition of the cell it is, counted from 1.
    pub repetition: u32,
    /// Whether only the short form was measured.
    pub quick: bool,
    /// What was measured.
    pub cell: Cell,
    /// Each link alone, in the order of the topology; empty if none was measured.
    pub alone: Vec<Measured>,
    /// Each system, in the order of the experiment.
    pub systems: Vec<Measured>,
    /// The largest send buffer of a TCP socket of the sending host, in bytes; absent if no lab was needed, or if the
    /// kernel does not say.
    pub send_buffer: Option<u64>,
    /// What should have worked and did not.
    pub failures: Vec<String>,
}

/// One system, or one link alone.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The system's name.
    pub system: String,
    /// See [`SystemRecord::key`](crate::results::SystemRecord::key).
    pub key: String,
    /// Why it did not run, if it did not.
    pub skipped: Option<String>,
    /// Whether that was a failure.
    pub failed: bool,
    /// Where the same measurement had been made before, if it had: the experiment, and the cell if it has several.
    pub shared: Option<String>,
    /// What was to be expected by the model, as the clock would see it, and between which values chance
    /// alone may bring a single run.
    pub predicted_mbps: Option<Figure>,
    /// What was measured; nothing if it did not run.
    pub runs: Arc<[Run]>,
}

/// One measurement of one system.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// The seed of its lab.
    pub seed: u64,
    /// The traffic.
    pub flow: FlowRecord,
    /// Largest inner packet in bytes; absent without a tunnel.
    pub inner_mtu: Option<u32>,
    /// What could be reached at best.
    pub ideal_mbps: Option<f64>,
    /// What the weights allow at best.
    pub bound_mbps: Option<f64>,
    /// Goodput ÷ ideal.
    pub efficiency: Option<f64>,
    /// Goodput of the later part of a long run ÷ ideal.
    pub long_efficiency: Option<f64>,
    /// Goodput ÷ Σ link rate.
    #[serde(rename = "yield")]
    pub yields: Option<f64>,
    /// What each path of the sending side carried.
    pub paths: Vec<PathRecord>,
    /// The daemons, sending side first.
    pub daemons: Vec<DaemonRecord>,
    /// What it cost.
    pub processor: Processor,
    /// What became of every event.
    pub events: Vec<EventRecord>,
    /// The flow during the outage, if there was one.
    pub outage: Option<OutageRecord>,
    /// What the emulator did meanwhile.
    pub emulator: Vec<emulator::Report>,
    /// Why the run is doubtful; empty if it is not.
    pub reasons: Vec<String>,
}

/// Processor time of a measurement, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Processor {
    /// How long it was.
    pub elapsed: f64,
    /// The processor time of the lab (traffic and emulator) and the daemons.
    pub total: f64,
    /// What of it the emulator's threads worked; in it is what the kernel does with a packet that a link
    /// hands over, up to the socket.
    pub emulator: f64,
    /// The daemon and the traffic's thread of the left host.
    pub left: f64,
    /// Those of the right host.
    pub right: f64,
    /// What the applications received, in gigabit.
    pub gigabits: f64,
}

/// What one path carried during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathRecord {
    /// The path's name, which is its link's.
    pub name: String,
    /// Its weight.
    pub weight: u64,
    /// Its state at the end.
    pub state: String,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Datagrams that the other side received.
    pub received_packets: u64,
    /// Its part of all datagrams sent, 0 to 1.
    pub share: f64,
}

/// What a daemon says of itself after a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct DaemonRecord {
    /// The host it ran on.
    pub host: String,
    /// Processor time it took during the measurement, in seconds.
    pub processor_seconds: f64,
    /// Its resident memory in bytes.
    pub resident_bytes: u64,
    /// Everything its status says, as counted since its start.
    pub status: mpt_control::Status,
}

impl DaemonRecord {
    /// Bytes of copies and of the tunnel's own messages, over those of all packets that were sent for the first time,
    /// headers included; `None` if it counts neither, or sent nothing.
    pub fn extra_share(&self) -> Option<f64> {
        let connections = self.status.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
        let (mut extra, mut first) = (0, 0);
        for connection in connections {
            let repair = connection.repair.as_ref()?;
            extra += repair.copy_bytes + repair.control_bytes;
            first += repair.header_bytes + connection.counters.transmitted.bytes;
        }
        (first > 0).then(|| extra as f64 / first as f64)
    }
}

/// What a link was used for around an event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventRecord {
    /// The link's name.
    pub link: String,
    /// What happened, in short.
    pub change: String,
    /// When, in seconds.
    pub at: f64,
    /// What the sender offered the link before, in Mbit/s of outer IP.
    pub before_mbps: f64,
    /// After something bad: seconds until the sender had left the link alone; absent if it never did.
    pub leave_seconds: Option<f64>,
    /// After something good: seconds until the sender used the link again at half of its former rate;
    /// absent if it never did.
    pub return_seconds: Option<f64>,
    /// After a change of rate: how the flow followed; absent if the next change came at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
}

/// A flow during which links were cut.
#[derive(Clone, Debug, Serialize)]
pub struct OutageRecord {
    /// The flow.
    pub flow: FlowRecord,
    /// Around each cut, in the order of the file.
    pub cuts: Vec<CutRecord>,
}

/// The flow around one cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CutRecord {
    /// The link's name.
    pub link: String,
    /// When it was cut, in seconds.
    pub at: f64,
    /// When it was restored, in seconds.
    pub until: f64,
    /// Goodput before, start-up left out.
    pub before_mbps: f64,
    /// Goodput while the link was cut.
    pub during_mbps: f64,
    /// Goodput from the restoration to the end.
    pub after_mbps: f64,
    /// The longest silence from the cut to the end.
    pub longest_gap_ms: f64,
    /// Seconds from the restoration to the first second at 95 % of the goodput before; absent if
    /// it did not come to that.
    pub back_seconds: Option<f64>,
}

impl Record {
    /// The first system that ran: what a single figure is about.
    pub fn main(&self) -> Option<&Measured> {
        self.systems.iter().find(|system| !system.runs.is_empty())
    }

    /// Everything that makes a figure doubtful, with the run it was in.
    pub fn reasons(&self) -> Vec<String> {
        let named = |measured: &Measured| {
            if let Some(place) = &measured.shared {
                let doubtful = measured.runs.iter().any(|run| !run.reasons.is_empty());
                let told =
                    format!("{}: doubtful in {place}, where it was measured", measured.system);
                return doubtful.then_some(told).into_iter().collect();
            }
            let (name, many) = (measured.system.clone(), measured.runs.len() > 1);
            let runs = measured.runs.iter().enumerate();
            let told = runs.flat_map(move |(index, run)| {
                let (name, number) = (name.clone(), index + 1);
                run.reasons.iter().map(move |reason| match many {
                    true => format!("{name}, run {number}: {reason}"),
                    false => format!("{name}: {reason}"),
                })
            });
            told.collect::<Vec<_>>()
        };
        self.alone.iter().chain(&self.systems).flat_map(named).collect()
    }

    /// What stays of it on disk, as measured by the run of that name.
    pub fn to_cell_record(&self, run: &str) -> CellRecord {
        line::cell_record(self, run)
    }
}

impl Measured {
    /// The run whose goodput is the median, or the lower of the two around it.
    pub fn typical(&self) -> Option<&Run> {
        let mut sorted: Vec<_> = self.runs.iter().collect();
        let goodput = |run: &Run| run.flow.goodput_mbps.unwrap_or(0.0);
        sorted.sort_by(|a, b| goodput(a).total_cmp(&goodput(b)));
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }
}
