//! What a run was, and what it set out to answer: all that a report needs beside the cells.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::machine;

/// One run of the lab: one line of JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Names the run: the time it began and the process, such as `20261121T003135Z-4711`.
    pub id: String,
    /// When it began, in UTC, as RFC 3339 writes it.
    pub started: String,
    /// The command that made it.
    pub command: String,
    /// The commit the lab was built from; empty if not known.
    pub commit: String,
    /// The version of the lab and the daemon.
    pub version: String,
    /// The SHA-256 of this program's file.
    pub lab_sha256: String,
    /// The SHA-256 of the daemon's file; empty if no system has daemons.
    pub daemon_sha256: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub cpu: String,
    /// How many processors there are.
    pub processors: usize,
    /// True if only the short form was run.
    pub quick: bool,
    /// The runs whose repetitions count as its own: see [`merge`](super::merge()).
    pub continues: Vec<String>,
    /// What emulated the links: `emulator` or `netem`.
    pub backend: String,
    /// What the emulator is worth on this machine; absent if it was not tested.
    pub selftest: Option<SelfTest>,
    /// The experiments, in the order they were run.
    pub experiments: Vec<ExperimentEntry>,
}

impl Manifest {
    /// That of a run which begins at `now` on this machine, in the process of that number.
    pub fn of_this_machine(now: SystemTime, process: u32) -> Self {
        let started = humantime::format_rfc3339_seconds(now).to_string();
        let compact: String = started.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        Self {
            id: format!("{compact}-{process}"),
            started,
            commit: env!("MPT_COMMIT").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kernel: machine::kernel(),
            cpu: machine::cpu(),
            processors: machine::processors(),
            ..Self::default()
        }
    }

    /// Whether both runs were made by the same builds of the programs, on the same kernel and processors. A run
    /// without daemons goes with any daemon.
    pub fn has_programs_of(&self, other: &Self) -> bool {
        let daemons = [&self.daemon_sha256, &other.daemon_sha256];
        let same_daemon = daemons[0] == daemons[1] || daemons.iter().any(|it| it.is_empty());
        let place = |it: &Self| (it.kernel.clone(), it.cpu.clone(), it.processors);
        same_daemon && self.lab_sha256 == other.lab_sha256 && place(self) == place(other)
    }

    /// What measured, in words: versions of the programs, and the machine.
    pub fn programs(&self) -> String {
        let mut words = vec![format!("version {}", self.version)];
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                words.push(format!("{name} {}", value.get(..12).unwrap_or(value)));
            }
        };
        add("commit", &self.commit);
        add("mpt-lab", &self.lab_sha256);
        add("mpt", &self.daemon_sha256);
        words.push(format!("kernel {}", self.kernel));
        words.push(format!("{} of {}", self.processors, self.cpu));
        words.join(", ")
    }
}

/// What the emulator is worth on this machine, measured without any tunnel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfTest {
    /// The highest sum of link rates, in Mbit/s, that it carries on time.
    pub ceiling_mbps: f64,
    /// Each property that was set and measured.
    pub checks: Vec<Check>,
}

/// A property of a link that was set and measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at, such as `delay 10 ms, median`.
    pub name: String,
    /// What was set.
    pub set: f64,
    /// What was measured.
    pub got: f64,
    /// The largest difference that is accepted, in `unit`.
    pub tolerance: f64,
    /// The unit of the three.
    pub unit: String,
    /// Whether it is accepted.
    pub passed: bool,
}

/// An experiment, as a report presents it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentEntry {
    /// Its name: the file without extension.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it is to answer.
    pub question: String,
    /// The publication it repeats, empty if none.
    pub source: String,
    /// Notes: differences from the publication, and their likely cause.
    pub notes: Vec<String>,
    /// The command that runs it again.
    pub command: String,
    /// Its axes; cells are in their order, the last axis fastest.
    pub axes: Vec<Axis>,
    /// Its systems, in the order of the tables.
    pub systems: Vec<SystemEntry>,
    /// The figures of its tables, by name; `goodput_mbps` if empty.
    pub columns: Vec<String>,
    /// The plots.
    pub plots: Vec<Plot>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The file itself, which is the experiment for a reader who wants to repeat it.
    pub text: String,
    /// What its cells were made of in this run: links, tunnel and traffic.
    pub setup: Vec<Fact>,
}

/// Something that was set, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fact {
    /// What it is, such as `link fibre` or `weights`.
    pub name: String,
    /// Its values, in the order of the cells; several if the cells differ in it.
    pub values: Vec<String>,
}

/// An axis.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Axis {
    /// Its name, as in [`super::Coordinate::axis`].
    pub name: String,
    /// What it is, for people, such as `one-way delay of both links`.
    pub title: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// The labels of its points, in their order.
    pub labels: Vec<String>,
    /// Those of them that the run was to measure; all if empty.
    pub kept: Vec<String>,
}

/// A system under test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemEntry {
    /// Its name in records.
    pub name: String,
    /// Its name for people.
    pub title: String,
}

/// A plot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What it looks like.
    pub kind: PlotKind,
    /// What stands above it; made from the rest if empty.
    #[serde(default)]
    pub title: String,
    /// The axis along the bottom, by name. Not for [`PlotKind::Time`].
    #[serde(default)]
    pub x: String,
    /// The axis along the side of a grid, or of which every point is a separate line; by name.
    #[serde(default)]
    pub by: String,
    /// The figure that is drawn, by name.
    #[serde(default = "goodput")]
    pub figure: String,
    /// The systems that are drawn; all if empty.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Whether the bottom axis is logarithmic.
    #[serde(default)]
    pub log_x: bool,
}

fn goodput() -> String {
    "goodput_mbps".into()
}

/// What a plot looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Bars side by side, a group for each point of the axis.
    Bars,
    /// A field of coloured cells with their values: `x` by `by`.
    Grid,
    /// A line for each system, and for each point of `by`; published values as marks.
    #[default]
    Lines,
    /// Goodput per sample over time, a line for each system, for each cell.
    Time,
}

/// A target, for every cell that it applies to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// In words; made from the rest if empty.
    #[serde(default)]
    pub text: String,
    /// The system it is about.
    pub system: String,
    /// The figure it is about, by name.
    pub figure: String,
    /// How the figure, or its quotient by `of`, is to lie to `value`.
    pub bound: Bound,
    /// See `bound`.
    pub value: f64,
    /// So many round trips, without any queue, of the link of the cell where they are longest, are added to `value`;
    /// for a figure in milliseconds.
    #[serde(default)]
    pub round_trips: f64,
    /// What the figure is divided by first: another figure of the same system, `published`, `published/SYSTEM` for
    /// what was printed of another one, or `SYSTEM/FIGURE` with a system of the table; as it is if empty.
    #[serde(default)]
    pub of: String,
    /// The cells it is about, as `--at` names them: `profile=rtt_40,rtt_70 transport=cubic`. Reading a file adds them
    /// to `only`.
    #[serde(default, skip_serializing)]
    pub at: String,
    /// The cells it is about: for some axes, by name, the labels; all cells if empty.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// Which of the repetitions of a cell counts.
    #[serde(default)]
    pub of_runs: OfRuns,
    /// Which of these cells have to reach it.
    #[serde(default)]
    pub cells: Of,
    /// With [`Of::Each`]: the share of these cells that is enough, 0 to 1.
    #[serde(default = "every")]
    pub share: f64,
    /// True if a quick run says nothing about it.
    #[serde(default)]
    pub full: bool,
}

fn every() -> f64 {
    1.0
}

/// A relation between a figure and a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Not below it.
    #[default]
    AtLeast,
    /// Not above it.
    AtMost,
    /// Within this share of 1: |figure ÷ of − 1| ≤ value.
    Within,
}

/// Which of the cells of a target have to reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Each of them, or the share that is enough.
    #[default]
    Each,
    /// So many of them, however many there are.
    AtLeast(usize),
    /// Their median.
    Median,
}

/// Which of the repetitions of a cell counts for a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfRuns {
    /// Their median.
    #[default]
    Median,
    /// The one that is farthest from the bound, on the wrong side of it.
    Worst,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_or_machine_is_told_apart() {
        let run = Manifest {
            version: "1.2.0".into(),
            commit: "abc".into(),
            lab_sha256: "1111111111111111".into(),
            daemon_sha256: "2222222222222222".into(),
            kernel: "6.1".into(),
            cpu: "Z80".into(),
            processors: 2,
            ..Manifest::default()
        };
        assert!(run.has_programs_of(&Manifest { id: "later".into(), ..run.clone() }));
        let without_daemons = Manifest { daemon_sha256: String::new(), ..run.clone() };
        assert!(run.has_programs_of(&without_daemons));
        for other in [
            Manifest { lab_sha256: "3".into(), ..run.clone() },
            Manifest { daemon_sha256: "3".into(), ..run.clone() },
            Manifest { kernel: "6.2".into(), ..run.clone() },
            Manifest { processors: 3, ..run.clone() },
        ] {
            assert!(!run.has_programs_of(&other), "{other:?}");
        }
        assert_eq!(
            run.programs(),
            "version 1.2.0, commit abc, mpt-lab 111111111111, mpt 222222222222, kernel 6.1, 2 of Z80"
        );
    }
}
