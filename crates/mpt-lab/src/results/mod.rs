//! What runs leave on disk, and what reports, plots and comparisons are made from.
//!
//! A folder of results holds two files of JSON lines that only grow: [`RUNS`], a [`Manifest`] for
//! each run of the lab, and [`CELLS`], a [`CellRecord`] for each repetition of each cell. Everything
//! a report says follows from these two. [`merge()`] makes one record of the repetitions of a cell; the same
//! cell measured again is a line more, and the last one counts.
//!
//! Rates are in Mbit/s (10⁶ bit/s). Where a cell was scaled ([`CellRecord::scale`]) its figures are
//! given in the units of its file, that is rates multiplied and times divided by the scale; only
//! `samples_mbps` of [`SystemRecord`] and `runs` tell what the clock and the counters saw.

mod folder;
mod manifest;
mod merge;
mod quantity;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use folder::{CELLS, Folder, RUNS, Results};
pub use manifest::{
    Axis, Bound, Check, ExperimentEntry, Fact, Manifest, Of, OfRuns, Plot, PlotKind, SelfTest,
    SystemEntry, Target,
};
pub use merge::merge;
pub use quantity::{Better, Quantity};

/// One repetition of one cell of an experiment: one line of JSON. Merged, all repetitions of the cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CellRecord {
    /// The run that measured it: [`Manifest::id`].
    pub run: String,
    /// The experiment's name: its file without extension.
    pub experiment: String,
    /// The experiment's title.
    pub title: String,
    /// Which cell it is, counted from 1 in the order of the axes, the last axis fastest.
    pub number: usize,
    /// Of how many in this run.
    pub count: usize,
    /// Where it is: one coordinate per axis, in the order of the axes.
    pub cell: Vec<Coordinate>,
    /// Which repetition it is, counted from 1; 0 in lines of earlier versions, which hold all of a cell.
    pub repetition: u32,
    /// The repetitions that it was merged from; empty in a line.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// True if only the short form was measured, which claims no transients and no distributions.
    pub quick: bool,
    /// Rates were divided and times multiplied by this; 1 = as in the file.
    pub scale: f64,
    /// Why it was scaled, for people; empty if it was not.
    pub scale_reason: String,
    /// Seconds of traffic, and how many of them goodput leaves out.
    pub seconds: f64,
    /// See `seconds`.
    pub omit: f64,
    /// The seed of all chance.
    pub seed: u64,
    /// Each link of the cell, in the order of the file.
    pub links: Vec<LinkRecord>,
    /// Each system that was measured, in the order of the experiment's table. A system that could not
    /// run here has no figures and says why in `skipped`.
    pub systems: Vec<SystemRecord>,
    /// What the paper printed for this cell.
    pub published: Vec<Published>,
    /// Seconds between two values of `samples_mbps`.
    pub sample_seconds: f64,
    /// Why the sending host limits the flows of this cell rather than the links, for people; absent if it does not.
    pub host_limited: Option<String>,
    /// True if something happened that the links' profiles do not explain.
    pub doubtful: bool,
    /// What happened.
    pub reasons: Vec<String>,
}

/// A repetition of a merged record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, as in [`CellRecord::repetition`].
    pub repetition: u32,
    /// The run that measured it.
    pub run: String,
}

/// A place on an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coordinate {
    /// The axis, by its name.
    pub axis: String,
    /// The value as people read it, without unit.
    pub label: String,
    /// The value, if it is a number.
    pub value: Option<f64>,
}

/// A link of a cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkRecord {
    /// Its name.
    pub name: String,
    /// Its rate in the direction of the traffic, as in the file; absent without a limit.
    pub rate_mbps: Option<f64>,
    /// Its delay in the direction of the traffic, as in the file.
    pub delay_ms: f64,
    /// Its round-trip time without any queue: its delay in both directions, as in the file.
    pub rtt_ms: f64,
    /// Standard deviation of its delay, as in the file.
    pub jitter_ms: f64,
    /// Share of packets it loses, as in the file.
    pub loss: f64,
    /// IP version of the outer packets.
    pub version: u8,
    /// Plain TCP over this link alone; absent if it was not measured.
    pub alone: Option<SystemRecord>,
}

/// One system's figures in one cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemRecord {
    /// Its name in the table of systems: `classic`, `mpt`, `mptcp`, `alone`, or that of an external one.
    pub system: String,
    /// Equal in records that measured the same: a digest of the links, the system's settings, the traffic, the
    /// seed of the first repetition and the backend. Empty in lines of earlier versions.
    pub key: String,
    /// Why it did not run, for people; absent if it did.
    pub skipped: Option<String>,
    /// True if it was skipped because it failed, and not because this machine cannot run it.
    pub failed: bool,
    /// Where the same measurement had been made before in this run, as `experiment (cell)`; the
    /// figures are those.
    pub shared: Option<String>,
    /// Everything that was measured or computed, by name: see the list in `docs/lab.md`.
    pub figures: BTreeMap<String, Figure>,
    /// Goodput per sample of the typical run, as the clock saw it.
    pub samples_mbps: Vec<f64>,
    /// What each repetition consisted of.
    pub runs: Vec<serde_json::Value>,
}

/// One measured quantity; its unit is the end of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The median over the repetitions.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Over how many repetitions.
    pub count: usize,
}

/// A figure as the paper printed it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The system it is beside: one of the table, or `link:NAME` for a link measured alone.
    pub system: String,
    /// The figure's name, such as `goodput_mbps`.
    pub figure: String,
    /// What was printed.
    pub value: f64,
}

impl CellRecord {
    /// The record of a system, by its name in the table, or `link:NAME`.
    pub fn system(&self, name: &str) -> Option<&SystemRecord> {
        if let Some(link) = name.strip_prefix("link:") {
            return self.links.iter().find(|record| record.name == link)?.alone.as_ref();
        }
        self.systems.iter().find(|record| record.system == name)
    }

    /// A figure's median, of a system as in [`system`](Self::system).
    pub fn figure(&self, system: &str, figure: &str) -> Option<f64> {
        Some(self.system(system)?.figures.get(figure)?.median)
    }

    /// What the paper printed for a figure of a system.
    pub fn published(&self, system: &str, figure: &str) -> Option<f64> {
        let mut all = self.published.iter();
        let found = all.find(|printed| printed.system == system && printed.figure == figure);
        found.map(|printed| printed.value)
    }

    /// The cell's place in words, such as `delay 20 ms, window 100` without units.
    pub fn place(&self) -> String {
        let words = self.cell.iter().map(|at| format!("{} {}", at.axis, at.label));
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Figure {
    /// Of these values, one per repetition; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let spread = crate::traffic::spread::Spread::of(values)?;
        let crate::traffic::spread::Spread { count, min, median, max, .. } = spread;
        Some(Self { median, min, max, count })
    }
}
