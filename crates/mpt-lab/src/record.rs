//! What a run found, as data: one JSON object per experiment.
//!
//! The top of a [`Record`] holds the figures people compare, medians if the experiment was repeated;
//! each [`Repetition`] holds everything they were made from. Rates are in Mbit/s (10⁶ bit/s), times in
//! seconds or, where the name says so, milliseconds.

mod flow;
mod summary;

use serde::Serialize;

use crate::emulator;
use crate::experiment::plan::{Outage, Traffic, Tunnel};
use crate::traffic::spread::Spread;
pub use flow::{FlowRecord, megabits, milliseconds};

/// The answer to an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The experiment's title.
    pub title: String,
    /// The experiment's question.
    pub question: String,
    /// Goodput of the tunnel over all links; absent for pings.
    pub tunnel_mbps: Option<f64>,
    /// Goodput of plain TCP over each link alone.
    pub links_mbps: Vec<f64>,
    /// Rate of each link in outer IP bytes, in the direction of the traffic.
    pub links_rate_mbps: Vec<Option<f64>>,
    /// Σ rate × (1 − loss) × payload share of the tunnel's own framing.
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
    /// True if something happened that the links' profiles do not explain.
    pub doubtful: bool,
    /// What happened.
    pub reasons: Vec<String>,
    /// Spread of goodput over the repetitions, if there were several.
    pub tunnel_mbps_spread: Option<Spread>,
    /// Spread of efficiency over the repetitions, if there were several.
    pub efficiency_spread: Option<Spread>,
    /// Seconds per sample.
    pub sample_seconds: f64,
    /// Rate in each sample of the repetition whose goodput is the median.
    pub samples_mbps: Vec<f64>,
    /// The seed of the first repetition.
    pub seed: u64,
    /// By how much rates were divided and times multiplied to suit the machine.
    pub scale: f64,
    /// Names of the links.
    pub links: Vec<String>,
    /// The tunnel's settings.
    pub tunnel: Tunnel,
    /// The traffic's settings.
    pub traffic: Traffic,
    /// The outage's settings, if there was one.
    pub outage: Option<Outage>,
    /// The version of the daemons.
    pub version: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors of the machine.
    pub processors: usize,
    /// Every run.
    pub repetitions: Vec<Repetition>,
}

/// One run of the experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Repetition {
    /// The seed of its lab.
    pub seed: u64,
    /// Plain TCP over each link alone.
    pub links: Vec<FlowRecord>,
    /// The tunnel over all links.
    pub tunnel: FlowRecord,
    /// Largest inner packet in bytes.
    pub inner_mtu: u64,
    /// What could be reached at best.
    pub ideal_mbps: Option<f64>,
    /// What the weights allow at best.
    pub bound_mbps: Option<f64>,
    /// Goodput ÷ ideal.
    pub efficiency: Option<f64>,
    /// Goodput ÷ Σ link rate.
    #[serde(rename = "yield")]
    pub yields: Option<f64>,
    /// What each path of the sending side carried during the measurement of the tunnel.
    pub paths: Vec<PathRecord>,
    /// The daemons, sending side first.
    pub daemons: Vec<DaemonRecord>,
    /// The flow during the outage, if there was one.
    pub outage: Option<OutageRecord>,
    /// What the emulator did during the measurement of the tunnel.
    pub emulator: Vec<emulator::Report>,
    /// Why the run is to be doubted; empty if it is not.
    pub reasons: Vec<String>,
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
