//! One point of an experiment: links, a tunnel over them, traffic, and what happens meanwhile.
//!
//! [`configuration`](mod@configuration) is the configuration of both daemons, [`keys`] what they seal with, [`ideal`] the
//! best possible goodput.

pub mod configuration;
pub(crate) mod host;
pub mod ideal;
pub mod keys;
mod traffic;
mod tunnel;
pub(crate) mod value;

use serde::Serialize;

use crate::emulator;
use crate::results::{Coordinate, Published};
use crate::topology::Topology;
pub use traffic::{Beside, Direction, Kind, Rival, Traffic};
pub use tunnel::{Framing, Late, Profile, Reorder, Scheduler, Tunnel};

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
    /// The outage, in a separate flow after the measured one.
    pub outage: Option<Outage>,
    /// By how much rates were divided and times multiplied; 1 = as in the file.
    pub scale: f64,
    /// Why, for people; empty if they were not.
    pub scale_reason: String,
    /// What the publication printed for this cell.
    pub published: Vec<Published>,
}

/// One more TCP flow through the tunnel, during which links are cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// The systems that have it, by name; all if empty.
    pub systems: Vec<String>,
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
    /// The link silently drops everything that it is given in this direction.
    Cut(emulator::Direction),
    /// It carries packets again, in both directions.
    Mend,
    /// Both directions have this share of the rate they have in the file.
    Rate(f64),
    /// The translator in front of the left host forgets its mappings, as if the host had moved to a new
    /// address.
    Roam,
}
