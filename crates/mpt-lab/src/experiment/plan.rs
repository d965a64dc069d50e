//! What an experiment consists of: plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value;
use crate::emulator;
use crate::results::{Coordinate, ExperimentEntry, Published};
use crate::system::System;
use crate::topology::{IpVersion, Topology};
use crate::traffic::tcp;

/// A question, and all the cells that answer it.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What reports say about it: title, question, axes, systems, plots and targets.
    pub entry: ExperimentEntry,
    /// How often each cell is measured, 1 to 100; each time in a fresh lab, with the next seed.
    pub repetitions: u32,
    /// What is measured beside each other, in the order of the tables.
    pub systems: Vec<System>,
    /// Whether each link is measured alone, without any tunnel.
    pub alone: bool,
    /// The cells, in the order of the axes, the last axis fastest; at least one.
    pub cells: Vec<Cell>,
}

/// One point of an experiment, ready to be measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Which it is, counted from 1 in the order of the whole experiment.
    pub number: usize,
    /// Where it is on every axis.
    pub place: Vec<Coordinate>,
    /// Hosts, links and the seed.
    pub topology: Topology,
    /// The tunnel over the links.
    pub tunnel: Tunnel,
    /// What is sent through it.
    pub traffic: Traffic,
    /// What happens to the links meanwhile, in the order of time.
    pub events: Vec<Event>,
    /// What breaks, in a flow of its own after the measured one.
    pub outage: Option<Outage>,
    /// By how much rates were divided and times multiplied; 1 = as in the file.
    pub scale: f64,
    /// Why, for people; empty if they were not.
    pub scale_reason: String,
    /// What the publication printed for this cell.
    pub published: Vec<Published>,
}

/// How both daemons are configured. Field by field as in the configuration file of `mpt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tunnel {
    /// One weight per link, 1 to 10000; after reading a file, as many as there are links.
    pub weights: Vec<u32>,
    /// The profile.
    pub profile: Profile,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Receive-side ordering.
    pub reorder: Reorder,
    /// Seconds between keepalives, 0 = off.
    #[serde(deserialize_with = "value::seconds")]
    pub keepalive: f64,
    /// Seconds of silence after which a path is down, 0 = never.
    #[serde(deserialize_with = "value::seconds")]
    pub dead_time: f64,
    /// IP version of the inner packets.
    pub inner: IpVersion,
    /// Inner MTU in bytes; what fits the smallest path if absent.
    #[serde(deserialize_with = "value::mtu")]
    pub mtu: Option<u32>,
    /// GRE key.
    pub key: Option<u32>,
    /// Whether datagrams carry a GRE checksum.
    pub checksum: bool,
    /// Whether datagrams carry a GRE sequence number.
    pub sequence: bool,
}

impl Default for Tunnel {
    /// The daemon's own defaults.
    fn default() -> Self {
        Self {
            weights: Vec::new(),
            profile: Profile::Auto,
            scheduler: Scheduler::Weighted,
            reorder: Reorder::default(),
            keepalive: 0.5,
            dead_time: 1.75,
            inner: IpVersion::V4,
            mtu: None,
            key: None,
            checksum: false,
            sequence: true,
        }
    }
}

/// A named set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The daemon's default.
    Auto,
    /// What the original MPT does.
    Classic,
}

/// The policy that chooses a path per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// In proportion to the weights.
    Weighted,
}

/// Receive-side ordering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reorder {
    /// Most packets held, 0 to 10000; 0 = none.
    #[serde(deserialize_with = "value::window")]
    pub window: u32,
    /// Longest hold time in seconds.
    #[serde(deserialize_with = "value::seconds")]
    pub max_delay: f64,
    /// Whether a gap is given up once every live path has delivered a higher number.
    pub early_release: bool,
    /// What becomes of a packet whose place was given up.
    pub late: Late,
}

impl Default for Reorder {
    fn default() -> Self {
        Self { window: 4096, max_delay: 0.1, early_release: true, late: Late::Deliver }
    }
}

/// What becomes of a packet whose place in the order was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Late {
    /// It is delivered, late.
    Deliver,
    /// It is dropped, as the original MPT does.
    Drop,
}

/// What is sent through the tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Traffic {
    /// What it is.
    pub kind: Kind,
    /// Length of the run in seconds, up to 600.
    #[serde(deserialize_with = "value::run_seconds")]
    pub seconds: f64,
    /// Seconds at its start that goodput leaves out.
    #[serde(deserialize_with = "value::seconds")]
    pub omit: f64,
    /// Which way it flows.
    pub direction: Direction,
    /// TCP: congestion control by the kernel's name; QUIC: `cubic`, `bbr` or `newreno`.
    pub congestion: String,
    /// TCP and QUIC: flows at once, 1 to 16.
    #[serde(deserialize_with = "value::flows")]
    pub flows: u32,
    /// FTP: size of the file in MB (10⁶ bytes).
    #[serde(deserialize_with = "value::file_size")]
    pub file_mb: u64,
    /// UDP: payload rate in Mbit/s.
    #[serde(deserialize_with = "value::positive")]
    pub rate_mbps: f64,
    /// UDP: payload of a packet in bytes.
    #[serde(deserialize_with = "value::payload")]
    pub size: usize,
    /// Ping: seconds between two requests.
    #[serde(deserialize_with = "value::positive")]
    pub interval: f64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            kind: Kind::Tcp,
            seconds: 12.0,
            omit: 2.0,
            direction: Direction::Forward,
            congestion: tcp::CUBIC.into(),
            flows: 1,
            file_mb: 1000,
            rate_mbps: 10.0,
            size: 1200,
            interval: 0.05,
        }
    }
}

impl Traffic {
    /// Length of the run.
    pub fn length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The start-up that goodput leaves out.
    pub fn omitted(&self) -> Duration {
        Duration::from_secs_f64(self.omit)
    }
}

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file downloaded from an FTP server on the sending host.
    Ftp,
    /// A voice and a video-like stream beside TCP flows.
    Media,
    /// Requests and replies, nothing else.
    Ping,
    /// QUIC flows that want all the room there is.
    Quic,
    /// Flows that want all the room there is.
    Tcp,
    /// Numbered packets at a fixed rate.
    Udp,
}

/// A direction between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Right to left.
    Backward,
    /// Left to right.
    Forward,
}

/// One more TCP flow through the tunnel, during which links are cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Length of the flow in seconds.
    pub seconds: f64,
    /// What is cut, and when.
    pub cuts: Vec<Cut>,
}

/// A link that loses everything for a while, silently.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// Which link, counted from 0.
    pub link: usize,
    /// Seconds after the start of the flow at which it is cut.
    pub at: f64,
    /// Seconds after the start of the flow at which it is restored.
    pub until: f64,
    /// What of it is cut.
    pub direction: emulator::Direction,
}

/// Something that happens to a link while the traffic of a cell runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Seconds after the start of the traffic.
    pub at: f64,
    /// Which link, counted from 0.
    pub link: usize,
    /// What happens to it.
    pub change: Change,
}

/// What may happen to a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Both hosts see their interface lose its carrier; nothing passes.
    CarrierDown,
    /// The carrier returns.
    CarrierUp,
    /// The link swallows everything without a word.
    Cut,
    /// It carries packets again.
    Mend,
    /// Both directions have this share of the rate they have in the file.
    Rate(f64),
    /// The translator in front of the left host forgets its mappings, as if the host had moved to a new
    /// address.
    Roam,
}
