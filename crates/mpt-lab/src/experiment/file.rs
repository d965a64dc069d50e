//! Experiment files: TOML, the links as in [`crate::topology`], everything else optional.
//!
//! ```toml
//! title = "Two uneven links"
//! question = "How much of both does one TCP flow get?"
//! seed = 1                      # every random choice of every link follows from it
//! repetitions = 1               # each in a fresh lab, with the next seed
//!
//! [[link]]
//! name = "fibre"
//! rate_mbps = 40
//! delay_ms = 5
//!
//! [[link]]
//! name = "lte"
//! rate_mbps = 20
//! delay_ms = 15
//!
//! [tunnel]
//! weights = [40, 20]            # one per link; all 1 if absent
//! profile = "classic"           # or "auto"
//! framing = "plain"             # or "extended", or "sealed"
//! reorder = { window = 4096, max_delay = 0.1, early_release = true, late = "deliver" }
//! keepalive = 0.5               # seconds
//! dead_time = 1.75              # seconds
//! inner = 4                     # IP version of the inner packets
//!
//! [traffic]
//! kind = "tcp"                  # "udp" with rate_mbps and size; "ping" with interval
//! seconds = 12
//! omit = 2                      # seconds of start-up that are measured apart
//! long_seconds = 60             # CUBIC over links of different delays goes on so long
//! congestion = "cubic"
//! flows = 1
//! buffer_mb = 64                # TCP sockets hold so much, whatever the machine has set
//! direction = "forward"         # left to right; or "backward"
//!
//! [outage]                      # one more TCP flow, during which links are silent black holes
//! systems = ["classic"]         # only of these; of all if absent
//! seconds = 20
//! cut = [{ link = "lte", at = 6, until = 12, direction = "both" }]
//!
//! [[axis]]                      # cells instead of one: see `axis.rs`
//! name = "delay"
//! title = "one-way delay of both links"
//! unit = "ms"
//! set = ["link.*.delay_ms"]
//! values = [0, 10, 20]
//! ```
//!
//! Beyond what the cells consist of, a file says what is measured and what reports show:
//!
//! - `systems`: of `classic` (MPT as `[tunnel]` says; the only one if absent), `mpt` (MPT with the same
//!   weights and keepalives, in extended framing with order by evidence), `adaptive` and `adaptive-extended` (MPT as it
//!   ships, with and without keys), `oracle`, `mptcp`, and external ones, each a `[[system]]` with a `name` and a `script`; `alone = false` does not measure each link alone.
//! - `links`: only so many of the links, from the first, with as many weights.
//! - `[[event]]`: `{ at = 3, link = "lte", change = "cut" }` happens to the measured traffic, in both
//!   directions unless it says `direction = "forward"` or `"backward"`; also `mend`,
//!   `carrier-down`, `carrier-up`, `roam`, and `rate` with the `share` that is left, or with `shares` of which one
//!   follows the other `every` so many seconds.
//! - `[published]`: what a publication printed, by system and figure, one value per cell, `nan` for none.
//! - `source`, `notes`, `columns`, `[[plot]]`, `[[target]]`: for reports, see [`crate::results`].
//!
//! Every error, of syntax or of meaning, is reported with line and caret.

use std::collections::BTreeMap;
use std::fs;
use std::mem;
use std::path::Path;

use serde::Deserialize;
use toml::{Spanned, Table};

use super::axis::{Axis, AxisForm};
use super::cell::{EventForm, OutageForm, cell};
use super::closest::{did_you_mean, meant, with_meant};
use super::mistake::{Mistake, Report};
use super::plan::Experiment;
use crate::cell::value;
use crate::cell::{Cell, Traffic, Tunnel};
use crate::record;
use crate::results::{ExperimentEntry, Plot, PlotKind, Published, Target};
use crate::system::{External, System};
use crate::topology::{Addressing, LinkSpec};

/// Most cells of an experiment: a bound for what a slip of the pen can ask for.
const MOST_CELLS: usize = 10_000;

/// Why a file is no experiment.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read at all.
    #[error(
        "there is no built-in experiment {path}{meant} (`mpt-lab list` shows all), and no file of that name can be read"
    )]
    Read {
        /// The file's name.
        path: String,
        /// The built-in one that was meant, in words; empty if none is like it.
        meant: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// It has an error; the message includes line and caret.
    #[error("{0}")]
    Meaning(Report),
}

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first mistake in it.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| FileError::Read {
            path: name.clone(),
            meant: String::new(),
            source,
        })?;
        Self::parse(&name, &text)
    }

    /// Reads the text of a file called `name`.
    ///
    /// # Errors
    ///
    /// The first mistake in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        read(name, text).map_err(|mistake| FileError::Meaning(mistake.report(name, text)))
    }
}

/// An experiment as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    title: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default = "once", deserialize_with = "value::repetitions")]
    repetitions: u32,
    #[serde(default)]
    systems: Vec<Spanned<String>>,
    #[serde(default)]
    system: Vec<External>,
    #[serde(default = "yes")]
    alone: bool,
    #[serde(default)]
    axis: Vec<Spanned<AxisForm>>,
    #[serde(default)]
    published: BTreeMap<String, BTreeMap<String, Spanned<Vec<f64>>>>,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    plot: Vec<Spanned<Plot>>,
    #[serde(default)]
    target: Vec<Spanned<Target>>,
    #[serde(default = "one")]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) addressing: Addressing,
    pub(super) links: Option<Spanned<usize>>,
    #[serde(default = "absent")]
    pub(super) link: Spanned<Vec<LinkSpec>>,
    #[serde(default = "absent")]
    pub(super) tunnel: Spanned<Tunnel>,
    #[serde(default = "absent")]
    pub(super) traffic: Spanned<Traffic>,
    #[serde(default)]
    pub(super) event: Vec<Spanned<EventForm>>,
    pub(super) outage: Option<OutageForm>,
}

fn one() -> u64 {
    1
}

fn once() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// The default of a missing table; an error in it points at the file's beginning.
fn absent<T: Default>() -> Spanned<T> {
    Spanned::new(0..0, T::default())
}

/// The experiment of a file called `name`.
fn read(name: &str, text: &str) -> Result<Experiment, Mistake> {
    let mut form: Form = toml::from_str(text).map_err(|error| Mistake::of(&error))?;
    let axes = axes(mem::take(&mut form.axis))?;
    let systems = systems(mem::take(&mut form.systems), mem::take(&mut form.system))?;
    let published = mem::take(&mut form.published);
    let plots = plots(mem::take(&mut form.plot), &axes, &systems)?;
    let targets = targets(mem::take(&mut form.target), &axes, &systems)?;
    let columns = mem::take(&mut form.columns);
    for column in &columns {
        check_figure(column).map_err(|message| Mistake::new(0..0, message))?;
    }
    let name = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let entry = ExperimentEntry {
        command: format!("mpt-lab run {name}"),
        name,
        title: mem::take(&mut form.title),
        question: mem::take(&mut form.question),
        source: mem::take(&mut form.source),
        notes: mem::take(&mut form.notes),
        axes: axes.iter().map(|axis| axis.entry.clone()).collect(),
        systems: systems.iter().map(System::entry).collect(),
        columns,
        plots,
        targets,
        text: text.to_owned(),
        setup: Vec::new(),
    };
    let (repetitions, alone) = (form.repetitions, form.alone);
    let mut cells = if axes.is_empty() {
        vec![cell(form, 1, Vec::new())?]
    } else {
        // An error that exists with and without the axes is reported at its place.
        let without = cell(form, 1, Vec::new()).err();
        cells(text, &axes).map_err(|with| match without {
            Some(without) if with.message.ends_with(&without.message) => without,
            _ => with,
        })?
    };
    let of_outages = cells.iter().filter_map(|cell| cell.outage.as_ref());
    for name in of_outages.flat_map(|outage| &outage.systems) {
        check_system(name, &systems).map_err(|message| Mistake::new(0..0, message))?;
    }
    publish(published, &mut cells)?;
    Ok(Experiment { entry, repetitions, systems, alone, cells })
}

fn axes(forms: Vec<Spanned<AxisForm>>) -> Result<Vec<Axis>, Mistake> {
    let mut axes: Vec<Axis> = Vec::new();
    for form in forms {
        let axis = Axis::new(form)?;
        if axes.iter().any(|other| other.entry.name == axis.entry.name) {
            let message = format!("two axes are called `{}`", axis.entry.name);
            return Err(Mistake::new(axis.span, message));
        }
        axes.push(axis);
    }
    Ok(axes)
}

/// The systems by their names, external ones last.
fn systems(names: Vec<Spanned<String>>, external: Vec<External>) -> Result<Vec<System>, Mistake> {
    if names.is_empty() && external.is_empty() {
        return Ok(vec![System::Classic]);
    }
    if let Some(taken) = external.iter().find(|own| System::by_name(&own.name).is_some()) {
        let message = format!("`{}` is the name of another system: choose one", taken.name);
        return Err(Mistake::new(0..0, message));
    }
    let external: Vec<_> = external.into_iter().map(System::External).collect();
    let mut systems: Vec<System> = Vec::new();
    for name in names {
        let (span, name) = (name.span(), name.into_inner());
        let own = external.iter().find(|system| system.name() == name).cloned();
        let Some(system) = own.or_else(|| System::by_name(&name)) else {
            let known = external.iter().map(System::name);
            let known: Vec<_> = System::NAMES.into_iter().chain(known).collect();
            let meant = meant(&name, known.iter().copied());
            let message =
                format!("no system is called `{name}`: there are {}{meant}", known.join(", "));
            return Err(Mistake::new(span, message));
        };
        if systems.contains(&system) {
            return Err(Mistake::new(span, format!("`{name}` is there twice")));
        }
        systems.push(system);
    }
    // A system with a script is measured also if `systems` does not list it.
    let more: Vec<_> = external.into_iter().filter(|system| !systems.contains(system)).collect();
    systems.extend(more);
    Ok(systems)
}

/// Each cell is the file with one point of every axis written into it.
fn cells(text: &str, axes: &[Axis]) -> Result<Vec<Cell>, Mistake> {
    let count = axes.iter().map(Axis::len).product::<usize>();
    if count > MOST_CELLS {
        let span = axes.last().map_or(0..0, |axis| axis.span.clone());
        let message = format!("{count} cells, but at most {MOST_CELLS} are possible");
        return Err(Mistake::new(span, message));
    }
    let file: Table = toml::from_str(text).map_err(|error| Mistake::of(&error))?;
    (0..count).map(|index| cell_at(index, axes, file.clone())).collect()
}

/// Cell number `index`, counted from 0. A mistake in it points at the last axis and says where it is.
fn cell_at(index: usize, axes: &[Axis], mut file: Table) -> Result<Cell, Mistake> {
    let mut place = Vec::new();
    let mut rest = index;
    for axis in axes.iter().rev() {
        let point = rest % axis.len();
        rest /= axis.len();
        place.insert(0, axis.at(point).clone());
        axis.write(point, &mut file).map_err(|why| Mistake::new(axis.span.clone(), why))?;
    }
    let words: Vec<_> = place.iter().map(|at| format!("{} {}", at.axis, at.label)).collect();
    let span = axes.last().map_or(0..0, |axis| axis.span.clone());
    let wrong = |message: &str| {
        Mistake::new(span.clone(), format!("at {}: {}", words.join(", "), message.trim_end()))
    };
    let written = toml::to_string(&file).map_err(|error| wrong(&error.to_string()))?;
    let form: Form =
        toml::from_str(&written).map_err(|error| wrong(&with_meant(error.message())))?;
    cell(form, index + 1, place.clone()).map_err(|mistake| wrong(&mistake.message))
}

/// Adds what was printed to the cells it was printed for.
fn publish(
    published: BTreeMap<String, BTreeMap<String, Spanned<Vec<f64>>>>,
    cells: &mut [Cell],
) -> Result<(), Mistake> {
    for (system, figures) in published {
        for (figure, values) in figures {
            let (span, given, count) = (values.span(), values.get_ref().len(), cells.len());
            check_figure(&figure).map_err(|message| Mistake::new(span.clone(), message))?;
            if given != count {
                let message =
                    format!("{given} values, but {count} cells: write `nan` for no value");
                return Err(Mistake::new(values.span(), message));
            }
            for (cell, value) in cells.iter_mut().zip(values.into_inner()) {
                if value.is_infinite() {
                    return Err(Mistake::new(span, "no publication prints infinity"));
                }
                if !value.is_nan() {
                    let (system, figure) = (system.clone(), figure.clone());
                    cell.published.push(Published { system, figure, value });
                }
            }
        }
    }
    Ok(())
}

fn plots(
    plots: Vec<Spanned<Plot>>,
    axes: &[Axis],
    systems: &[System],
) -> Result<Vec<Plot>, Mistake> {
    let check = |plot: Spanned<Plot>| {
        let span = plot.span();
        let plot = plot.into_inner();
        for name in [&plot.x, &plot.by] {
            if !name.is_empty() {
                axis(axes, name).map_err(|message| Mistake::new(span.clone(), message))?;
            }
        }
        let figure = check_figure(&plot.figure);
        let named = plot.systems.iter().try_for_each(|name| check_system(name, systems));
        figure.and(named).map_err(|message| Mistake::new(span.clone(), message))?;
        if plot.kind != PlotKind::Time && plot.x.is_empty() {
            return Err(Mistake::new(span, "a plot needs an axis as `x`"));
        }
        if plot.kind == PlotKind::Grid && plot.by.is_empty() {
            return Err(Mistake::new(span, "a grid needs an axis as `by`"));
        }
        Ok(plot)
    };
    plots.into_iter().map(check).collect()
}

fn targets(
    targets: Vec<Spanned<Target>>,
    axes: &[Axis],
    systems: &[System],
) -> Result<Vec<Target>, Mistake> {
    let check = |target: Spanned<Target>| {
        let span = target.span();
        let mut target = target.into_inner();
        let wrong = |message: String| Mistake::new(span.clone(), message);
        for place in mem::take(&mut target.at).split_whitespace() {
            let labels = place.split_once('=').ok_or_else(|| {
                wrong(format!("`{place}`: write AXIS=LABEL, or AXIS=LABEL,LABEL"))
            })?;
            let (axis, labels) = (labels.0.to_owned(), labels.1.split(',').map(str::to_owned));
            target.only.entry(axis).or_default().extend(labels);
        }
        let figure = check_figure(&target.figure);
        let named = check_system(&target.system, systems);
        figure.and(named).map_err(wrong)?;
        if !target.value.is_finite() || !(0.0..=1.0).contains(&target.share) {
            return Err(Mistake::new(span, "`value` must be a number, and `share` 0 to 1"));
        }
        for (name, labels) in &target.only {
            let axis = axis(axes, name).map_err(wrong)?;
            if let Some(label) = labels.iter().find(|label| !axis.entry.labels.contains(label)) {
                return Err(Mistake::new(span, format!("axis `{name}` has no point `{label}`")));
            }
        }
        Ok(target)
    };
    targets.into_iter().map(check).collect()
}

fn check_figure(name: &str) -> Result<(), String> {
    match record::FIGURES.contains(&name) {
        true => Ok(()),
        false => {
            let meant = did_you_mean(name, record::FIGURES.iter().copied());
            Err(format!("no figure is called `{name}`{meant}; docs/lab.md lists them"))
        }
    }
}

/// A system of the table, or `link:NAME`.
fn check_system(name: &str, systems: &[System]) -> Result<(), String> {
    if name.starts_with("link:") || systems.iter().any(|system| system.name() == name) {
        return Ok(());
    }
    let names: Vec<_> = systems.iter().map(System::name).collect();
    Err(format!("no system is called `{name}` here: there are {}", names.join(", ")))
}

fn axis<'a>(axes: &'a [Axis], name: &str) -> Result<&'a Axis, String> {
    let names = axes.iter().map(|axis| axis.entry.name.as_str());
    axes.iter()
        .find(|axis| axis.entry.name == name)
        .ok_or_else(|| format!("no axis is called `{name}`{}", did_you_mean(name, names)))
}

#[cfg(test)]
mod tests;
