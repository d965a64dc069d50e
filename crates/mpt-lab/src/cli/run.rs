//! `mpt-lab run`: the answers to experiments' questions.

mod earlier;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail, ensure};
use mpt_lab::cell::Cell;
use mpt_lab::experiment::library;
use mpt_lab::experiment::runner::{Bench, is_interruption};
use mpt_lab::experiment::{Experiment, Repetition, meant, setup};
use mpt_lab::lab::Backend;
use mpt_lab::output::Terminal;
use mpt_lab::output::live::{Detail, Live};
use mpt_lab::output::{report, summary};
use mpt_lab::record::{Line, Record};
use mpt_lab::results::{CellRecord, ExperimentEntry, Folder, Manifest, SelfTest, merge};
use mpt_lab::selftest::{self, Form};
use mpt_lab::stop::Stop;
use mpt_lab::system::System;
use mpt_lab::{daemon, digest, privilege};

use self::earlier::{Earlier, Work};
use super::print;

/// Runs experiments: in every cell each link alone, then each system over all of them.
///
/// Each cell of an experiment is measured once before any is measured again. A repetition is in the folder as soon
/// as it is complete, so a run that is interrupted can be continued: the same command with `--continue` measures
/// what the folder does not have yet.
///
/// Exit code 0: they ran, with any result; doubtful results are marked with the reason. 2:
/// something could not run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mpt-lab run two-equal --quick                     a first impression, within a minute\n\
\x20 mpt-lab run mine.toml --out results               a file, to be reported\n\
\x20 mpt-lab run scoreboard --system adaptive --at transport=cubic --out results\n\
\x20 mpt-lab run scoreboard --out results --continue   after an interruption, or again and again\n\
\x20 mpt-lab run drift --out results --repetitions 1   today; tomorrow `--repetitions 5 --continue`"
)]
pub(crate) struct Arguments {
    /// Files, or names of built-in experiments (`mpt-lab list`), or `all`.
    #[arg(required = true)]
    experiments: Vec<String>,
    /// The short form: the first, middle and last value of each axis, or the one of `--at`, three
    /// seconds, one repetition.
    #[arg(long)]
    quick: bool,
    /// Print one JSON object per cell with all repetitions instead of tables.
    #[arg(long)]
    json: bool,
    /// Append the results to this folder, for `mpt-lab report`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure only what the folder of `--out` does not have yet: a cell that is there with fewer repetitions gets
    /// the others, and one that was measured with other settings, or failed, is measured again. Results of another
    /// build of the programs, another kernel or another processor do not count.
    #[arg(long = "continue", requires = "out")]
    continues: bool,
    /// With `--continue`: results of other builds and machines count, too. The report says which cells have them.
    #[arg(long, requires = "continues")]
    mix_versions: bool,
    /// How often each cell is measured, instead of the file's number; with `--continue`, what is there included.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,
    /// Measure only these systems, by name, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    system: Vec<String>,
    /// Measure only cells with this axis value, such as `delay=10`; may be given once for each
    /// axis.
    #[arg(long, value_name = "AXIS=LABEL")]
    at: Vec<String>,
    /// Capture all packets of the links and the tunnel to this folder, one pcapng file per
    /// measurement.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Trace the sending daemon of each measurement to this folder, one file per measurement. In `traces` within
    /// the folder of results, `mpt-lab report` draws them.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// The implementation of the links.
    #[arg(long, default_value = "emulator")]
    backend: Backend,
    /// The random seed, instead of the file's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The highest sum of link rates that this machine emulates, in Mbit/s, instead of measuring it.
    #[arg(long, value_name = "MBPS")]
    ceiling: Option<f64>,
    /// The daemon to run; default MPT_BIN, or the one in this program's folder.
    #[arg(long, value_name = "PATH")]
    mpt: Option<PathBuf>,
}

/// Sums of link rates up to this, in bit/s, need no measurement of the machine's capacity.
const HARMLESS: f64 = 220e6;

/// Runs the command.
///
/// # Errors
///
/// A file is no experiment, the machine lacks something, or a daemon does not start or stay.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut experiments = chosen(arguments)?;
    check_backend(arguments, &experiments)?;
    let mut systems = experiments.iter().flat_map(|experiment| &experiment.systems);
    let binary = match systems.any(System::has_daemons) {
        true => daemon::find(arguments.mpt.as_deref())?,
        false => PathBuf::new(),
    };
    privilege::enter()?;
    let stop = Stop::on_signals().context("cannot wait for signals")?;
    let folder = arguments.out.as_deref().map(Folder::create).transpose()?;

    let here = here(arguments, &binary)?;
    let earlier = match &arguments.out {
        Some(folder) if arguments.continues => Earlier::read(folder, arguments.quick)?,
        _ => Earlier::default(),
    };
    let ceiling = arguments.ceiling.or_else(|| earlier.ceiling(&here, arguments.mix_versions));
    if let Some(mbps) = ceiling {
        scale(&mut experiments, mbps);
    }
    let work = |experiments: &[Experiment]| {
        earlier.work(experiments, &here, arguments.backend, arguments.mix_versions)
    };
    let is_done = ceiling.is_some() && work(&experiments)?.missing.is_empty();
    let selftest = match is_done {
        true => None,
        false => look_at_machine(arguments, ceiling, &experiments, &stop)?,
    };
    if let (None, Some(SelfTest { ceiling_mbps, .. })) = (ceiling, &selftest) {
        scale(&mut experiments, *ceiling_mbps);
    }
    let work = work(&experiments)?;
    if arguments.continues {
        super::tell(&work.in_words());
    }
    let manifest = Manifest {
        selftest,
        experiments: experiments.iter().map(entry).collect(),
        continues: work.continues.clone(),
        ..here
    };
    if let Some(folder) = &folder {
        folder.add_run(&manifest)?;
    }
    let run = Run { arguments, experiments: &experiments, earlier, work, manifest, folder };
    run.measure(&binary, &stop)
}

/// Puts cells into slow motion that this machine cannot emulate at full speed.
fn scale(experiments: &mut [Experiment], ceiling_mbps: f64) {
    for experiment in experiments {
        let scaled = |cell: Cell| cell.scaled_to(ceiling_mbps * 1e6);
        experiment.cells = std::mem::take(&mut experiment.cells).into_iter().map(scaled).collect();
    }
}

/// Everything that a run consists of.
struct Run<'a> {
    arguments: &'a Arguments,
    experiments: &'a [Experiment],
    earlier: Earlier,
    work: Work,
    manifest: Manifest,
    folder: Option<Folder>,
}

/// An experiment's results, those of earlier runs first.
struct Cells {
    lines: Vec<CellRecord>,
    /// The first record of this run.
    first: Option<Record>,
}

impl Run<'_> {
    /// Measures what is missing and says what was found. A cell that fails does not end the others.
    fn measure(&self, binary: &Path, stop: &Stop) -> Result<ExitCode> {
        let Self { arguments, experiments, work, .. } = self;
        let progress = io::stderr();
        let mut live = Live::new(&progress, Terminal::of(&progress), Detail::Steps);
        let mut bench = Bench::new(binary, stop, &mut live, arguments.quick, experiments);
        bench.expect(experiments, &work.missing);
        bench.set_backend(arguments.backend);
        if let Some(folder) = &arguments.capture {
            create(folder)?;
            bench.capture_to(folder.clone());
        }
        if let Some(folder) = &arguments.trace {
            create(folder)?;
            bench.trace_to(folder.clone());
        }
        let mut failures = Vec::new();
        for (number, experiment) in experiments.iter().enumerate() {
            let lines = self.earlier.lines_of(experiment, &work.continues);
            let mut cells = Cells { lines, first: None };
            let missing = work.missing.iter().filter(|it| it.experiment == number);
            let missing: Vec<Repetition> = missing.copied().collect();
            for cell in (0..experiment.cells.len()).filter(|cell| is_complete(*cell, &missing)) {
                self.print_json(experiment, cell, &cells)?;
            }
            for (at, repetition) in missing.iter().enumerate() {
                let failed = self.measure_once(&mut bench, experiment, *repetition, &mut cells)?;
                failures.extend(failed);
                if is_complete(repetition.cell, &missing[at + 1..]) {
                    self.print_json(experiment, repetition.cell, &cells)?;
                }
            }
            self.print_text(experiment, &cells)?;
        }
        if failures.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        bail!("not everything could be measured:\n{}", failures.join("\n"))
    }

    /// Measures a repetition; returns what failed in it.
    fn measure_once(
        &self,
        bench: &mut Bench<'_>,
        experiment: &Experiment,
        repetition: Repetition,
        cells: &mut Cells,
    ) -> Result<Vec<String>> {
        let cell = &experiment.cells[repetition.cell];
        let record = match bench.measure(experiment, cell, repetition.number) {
            Ok(record) => record,
            Err(error) if is_interruption(&error) => {
                if let Some(folder) = &self.folder {
                    let folder = folder.path().display();
                    super::tell(&format!(
                        "interrupted: `--continue` measures what {folder} does not have yet"
                    ));
                }
                return Err(error);
            }
            Err(error) => {
                return Ok(vec![format!("{}: {error:#}", cell.name_in(&experiment.entry.name))]);
            }
        };
        let mut line = record.to_cell_record(&self.manifest.id);
        if let Some(folder) = &self.folder {
            folder.add_cell(&line)?;
        }
        if !self.arguments.json {
            // Only that prints them.
            let alone = line.links.iter_mut().filter_map(|link| link.alone.as_mut());
            alone.chain(&mut line.systems).for_each(|system| system.runs.clear());
        }
        let failures = record.failures.clone();
        cells.lines.push(line);
        cells.first.get_or_insert(record);
        Ok(failures)
    }

    /// A cell with all its repetitions; `None` if it has none.
    fn merged(&self, experiment: &Experiment, cell: usize, cells: &Cells) -> Option<CellRecord> {
        let place = &experiment.cells[cell].place;
        let lines: Vec<_> = cells.lines.iter().filter(|line| line.cell == *place).collect();
        merge(std::slice::from_ref(&self.manifest), &lines)
    }

    fn print_json(&self, experiment: &Experiment, cell: usize, cells: &Cells) -> Result<()> {
        if !self.arguments.json {
            return Ok(());
        }
        let Some(merged) = self.merged(experiment, cell, cells) else { return Ok(()) };
        let line = Line::of(merged, &experiment.entry.question);
        print(serde_json::to_string(&line).context("cannot write JSON")?)
    }

    fn print_text(&self, experiment: &Experiment, cells: &Cells) -> Result<()> {
        if self.arguments.json {
            return Ok(());
        }
        let all = 0..experiment.cells.len();
        let mut merged: Vec<_> =
            all.filter_map(|cell| self.merged(experiment, cell, cells)).collect();
        let terminal = Terminal::of(&io::stdout());
        match (&cells.first, merged.as_slice()) {
            (Some(first), [_]) if experiment.entry.axes.is_empty() => {
                let line = Line::of(merged.remove(0), &experiment.entry.question);
                print(report::text(first, &line, terminal))
            }
            _ => print(summary::text(&experiment.entry, &merged, terminal)),
        }
    }
}

/// Whether no repetition of a cell is missing.
fn is_complete(cell: usize, missing: &[Repetition]) -> bool {
    missing.iter().all(|it| it.cell != cell)
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The experiments as they are to be run.
fn chosen(arguments: &Arguments) -> Result<Vec<Experiment>> {
    if let Some(ceiling) = arguments.ceiling {
        ensure!(ceiling > 0.0 && ceiling.is_finite(), "--ceiling must be above 0");
    }
    let places = arguments.at.iter().map(|place| {
        place.split_once('=').with_context(|| format!("`--at {place}`: write AXIS=LABEL"))
    });
    let places = places.collect::<Result<Vec<_>>>()?;
    let mut chosen = Vec::new();
    for word in &arguments.experiments {
        for mut experiment in library::find(word)? {
            let axes: Vec<_> = places.iter().map(|(axis, _)| *axis).collect();
            choose_systems(arguments, &mut experiment, &axes)?;
            for &(axis, label) in &places {
                choose_cells(&mut experiment, axis, label)?;
            }
            if let Some(repetitions) = arguments.repetitions {
                experiment.repetitions = repetitions;
            }
            if let Some(seed) = arguments.seed {
                experiment.cells.iter_mut().for_each(|cell| cell.topology.seed = seed);
            }
            for axis in &mut experiment.entry.axes {
                let cells = &experiment.cells;
                let is_kept =
                    |label: &&String| cells.iter().any(|cell| is_at(cell, &axis.name, label));
                axis.kept = axis.labels.iter().filter(is_kept).cloned().collect();
            }
            let name = if word == library::EVERYTHING { &experiment.entry.name } else { word };
            experiment.entry.command = command(arguments, name);
            chosen.push(experiment);
        }
    }
    Ok(chosen)
}

/// Keeps the systems that were asked for, in the short form if that was, with all points of the axes of which one is
/// asked for.
fn choose_systems(arguments: &Arguments, experiment: &mut Experiment, axes: &[&str]) -> Result<()> {
    if arguments.system.is_empty() {
        if arguments.quick {
            let all = experiment.systems.clone();
            *experiment = experiment.clone().quick_but_for(axes);
            let left_out = all.iter().filter(|system| !experiment.systems.contains(system));
            let names: Vec<_> = left_out.map(System::name).collect();
            if !names.is_empty() {
                let (experiment, names) = (&experiment.entry.name, names.join(", "));
                super::tell(&format!(
                    "{experiment}: --quick omits {names}: name them by --system to measure them"
                ));
            }
        }
        return Ok(());
    }
    for name in &arguments.system {
        if experiment.systems.iter().any(|system| system.name() == name) {
            continue;
        }
        let known = System::by_name(name);
        // A file need not list what is told nothing by it.
        if let Some(system) = known.clone().filter(System::configures_itself) {
            experiment.entry.systems.push(system.entry());
            experiment.systems.push(system);
            continue;
        }
        let names: Vec<_> = experiment.systems.iter().map(System::name).collect();
        let (name_of, names) = (&experiment.entry.name, names.join(", "));
        let hint = match known {
            Some(_) => "; add it to `systems` of a file of your own".to_owned(),
            None => meant(name, experiment.systems.iter().map(System::name)),
        };
        bail!("no system is called `{name}` in {name_of}: there are {names}{hint}");
    }
    let is_wanted = |system: &System| arguments.system.iter().any(|name| name == system.name());
    experiment.systems.retain(is_wanted);
    if arguments.quick {
        *experiment = experiment.clone().shortened_but_for(axes);
    }
    Ok(())
}

/// Keeps the cells at a place of an axis.
fn choose_cells(experiment: &mut Experiment, axis: &str, label: &str) -> Result<()> {
    let name = &experiment.entry.name;
    let Some(known) = experiment.entry.axes.iter().find(|known| known.name == axis) else {
        let names: Vec<_> = experiment.entry.axes.iter().map(|axis| axis.name.as_str()).collect();
        if names.is_empty() {
            bail!("{name} has no axis, only one cell: leave out `--at {axis}={label}`");
        }
        let hint = meant(axis, names.iter().copied());
        bail!("{name} has no axis `{axis}`: there are {}{hint}", names.join(", "));
    };
    if !known.labels.iter().any(|known| known == label) {
        let hint = meant(label, known.labels.iter().map(String::as_str));
        bail!(
            "axis `{axis}` of {name} has no `{label}`: there are {}{hint}",
            known.labels.join(", ")
        );
    }
    experiment.cells.retain(|cell| is_at(cell, axis, label));
    ensure!(!experiment.cells.is_empty(), "{name}: no cell is left at {axis}={label}");
    Ok(())
}

fn is_at(cell: &Cell, axis: &str, label: &str) -> bool {
    cell.place.iter().any(|at| at.axis == axis && at.label == label)
}

/// The command that runs one of the experiments again.
fn command(arguments: &Arguments, word: &str) -> String {
    let mut words = vec!["mpt-lab run".to_owned(), word.to_owned()];
    words.extend(arguments.quick.then(|| "--quick".into()));
    words.extend(arguments.system.iter().map(|system| format!("--system {system}")));
    words.extend(arguments.at.iter().map(|place| format!("--at {place}")));
    words.extend(arguments.seed.map(|seed| format!("--seed {seed}")));
    words.extend(arguments.repetitions.map(|count| format!("--repetitions {count}")));
    if arguments.backend != Backend::default() {
        words.push(format!("--backend {}", arguments.backend.name()));
    }
    words.join(" ")
}

/// Whether every link can be made of the backend that was chosen.
fn check_backend(arguments: &Arguments, experiments: &[Experiment]) -> Result<()> {
    let mut cells = experiments.iter().flat_map(|experiment| &experiment.cells);
    Ok(cells.try_for_each(|cell| arguments.backend.check(&cell.topology))?)
}

/// The self-test as far as needed: complete for stored results, only the ceiling for fast cells,
/// none for others.
fn look_at_machine(
    arguments: &Arguments,
    ceiling: Option<f64>,
    experiments: &[Experiment],
    stop: &Stop,
) -> Result<Option<SelfTest>> {
    let form = if arguments.quick { Form::Quick } else { Form::Full };
    let mut say = |what: &str| super::tell(&format!("self-test of the emulator: {what}"));
    let mut known = ceiling.map(|ceiling_mbps| SelfTest { ceiling_mbps, checks: Vec::new() });
    if arguments.out.is_some() {
        let tested = selftest::run(stop, form, &mut say)?;
        let ceiling_mbps = known.as_ref().map_or(tested.ceiling_mbps, |known| known.ceiling_mbps);
        return Ok(Some(SelfTest { ceiling_mbps, ..tested }));
    }
    let mut cells = experiments.iter().flat_map(|experiment| &experiment.cells);
    if known.is_none() && cells.any(|cell| cell.is_greedy() && cell.link_rates() > HARMLESS) {
        say("the ceiling");
        let ceiling_mbps = selftest::ceiling(stop, form)?;
        known = Some(SelfTest { ceiling_mbps, checks: Vec::new() });
    }
    Ok(known)
}

/// What a report says of an experiment, with what its cells are made of in this run.
fn entry(experiment: &Experiment) -> ExperimentEntry {
    let setup = setup(&experiment.cells, &experiment.systems, experiment.repetitions);
    ExperimentEntry { setup, ..experiment.entry.clone() }
}

/// What measures, on what machine: a manifest without what was measured.
fn here(arguments: &Arguments, binary: &Path) -> Result<Manifest> {
    let command: Vec<_> = env::args().skip(1).collect();
    let mut here = Manifest {
        command: format!("mpt-lab {}", command.join(" ")),
        quick: arguments.quick,
        backend: arguments.backend.name().into(),
        ..Manifest::of_this_machine(SystemTime::now(), process::id())
    };
    if arguments.out.is_some() {
        let sha256 = |file: &Path| {
            let sha256 = digest::sha256_of_file(file);
            sha256.with_context(|| format!("cannot read {}", file.display()))
        };
        here.lab_sha256 = sha256(Path::new("/proc/self/exe"))?;
        if !binary.as_os_str().is_empty() {
            here.daemon_sha256 = sha256(binary)?;
        }
    }
    Ok(here)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn complaint(line: &str) -> String {
        let words = ["run"].into_iter().chain(line.split(' '));
        let Line { arguments } = Line::try_parse_from(words).expect("a line that can be read");
        chosen(&arguments).expect_err("it names something that is not there").to_string()
    }

    #[test]
    fn what_configures_itself_need_not_be_listed() {
        let line = "run two-equal --system adaptive-extended,classic";
        let Line { arguments } =
            Line::try_parse_from(line.split(' ')).expect("a line that can be read");
        let experiment = &chosen(&arguments).expect("both can be measured")[0];
        let names: Vec<_> = experiment.systems.iter().map(System::name).collect();
        assert_eq!(names, ["classic", "adaptive-extended"]);
        assert!(experiment.entry.systems.iter().any(|entry| entry.name == "adaptive-extended"));
    }

    #[test]
    fn what_was_meant_is_named_with_what_there_is() {
        for (line, words) in [
            (
                "drift --at raet=25",
                "has no axis `raet`: there are rate, transport; did you mean `rate`?",
            ),
            ("scoreboard --at transport=cubik", "did you mean `cubic`?"),
            ("scoreboard --at transport=99", "has no `99`: there are "),
            ("scoreboard --system adaptiv", "did you mean `adaptive`?"),
            ("two-equal --system mptcp", "; add it to `systems` of a file of your own"),
            (
                "two-equal --at delay=10",
                "two-equal has no axis, only one cell: leave out `--at delay=10`",
            ),
        ] {
            let complaint = complaint(line);
            assert!(complaint.contains(words), "{line}: {complaint}");
        }
    }
}
