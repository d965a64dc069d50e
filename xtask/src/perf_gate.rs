//! `cargo xtask perf-gate`: instructions per packet, against stored figures.
//!
//! Time on a shared machine varies by more than what a change costs; the number of instructions
//! does not. So [`count`] runs parts of the data path under callgrind, [`figures`] are the accepted
//! counts, and [`verdict`] compares. It limits the work per packet, not the cost of memory, system
//! calls and wake-ups.
//!
//! Another compiler makes other code, another kind of processor takes another way through it. Where the
//! figures were taken under other [conditions](figures::Conditions), the comparison is shown and nothing
//! is refused.

mod count;
mod figures;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use crate::cargo::workspace;
use count::Program;
use figures::{Conditions, Figures};
use verdict::Verdict;

/// Where the figures are, below the workspace's root.
const FIGURES: &str = "crates/mpt-io/benches/instructions/figures.toml";

/// How many times the instructions of plain framing a case may take in extended framing.
const EXTENDED_OVER_PLAIN: f64 = 1.06;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these cases.
    cases: Vec<String>,

    /// Store what is measured instead of comparing with it.
    #[arg(long)]
    update: bool,

    /// Another file of stored figures than the repository's.
    #[arg(long, value_name = "FILE")]
    figures: Option<PathBuf>,
}

/// Measures, and compares or stores. Exit code 1 if something takes more instructions than stored, or extended framing
/// too many more than plain, or if cases and figures are not the same.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let workspace = workspace()?;
    let file = options.figures.clone();
    let file = file.unwrap_or_else(|| workspace.workspace_root.as_std_path().join(FIGURES));
    let stored = Figures::read(&file)?;
    let conditions = Conditions::here()?;

    let program = Program::build(workspace.target_directory.as_std_path().join("perf-gate"))?;
    let mut cases = program.cases()?;
    if let Some(unknown) = options.cases.iter().find(|name| !cases.contains(name)) {
        bail!("there is no case {unknown}; there are: {}", cases.join(", "));
    }
    let everything = options.cases.is_empty();
    if !everything {
        cases.retain(|name| options.cases.contains(name));
    }

    println!(
        "{:24} {:>9} {:>9} {:>9}   instructions per packet",
        "case", "stored", "measured", "change"
    );
    let mut measured = Figures::empty(stored.tolerance, conditions);
    let mut verdicts = Vec::new();
    program.count_all(&cases, |case, count| {
        let verdict = Verdict::of(stored.get(case), count, stored.tolerance);
        println!("{case:24} {}", verdict::row(stored.get(case), count, verdict));
        verdicts.push((case.to_owned(), verdict));
        measured.set(case.to_owned(), count);
    })?;

    if options.update {
        let updated = if everything { measured } else { stored.with(measured)? };
        updated.write(&file)?;
        println!("\nperf-gate: stored in {}", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    let vanished = stored.names().filter(|name| everything && measured.get(name).is_none());
    verdicts.extend(vanished.map(|name| (name.to_owned(), Verdict::Vanished)));
    Ok(judge(&verdicts, &stored, &measured, &program))
}

/// Says what the verdicts mean and what to do about them.
fn judge(
    verdicts: &[(String, Verdict)],
    stored: &Figures,
    measured: &Figures,
    program: &Program,
) -> ExitCode {
    let those = |wanted: Verdict| -> Vec<&str> {
        let found = verdicts.iter().filter(|(_, verdict)| *verdict == wanted);
        found.map(|(case, _)| case.as_str()).collect()
    };
    let update = "`cargo xtask perf-gate --update`";
    let tolerance = stored.tolerance;
    println!();

    let better = those(Verdict::Better);
    if !better.is_empty() {
        println!(
            "perf-gate: better by more than {tolerance} %: {}; keep it so with {update}",
            better.join(", ")
        );
    }
    let unlike: Vec<_> = [Verdict::Unknown, Verdict::Vanished].map(those).concat();
    if !unlike.is_empty() {
        eprintln!(
            "perf-gate: cases and stored figures differ: {}; store the present ones with {update}",
            unlike.join(", ")
        );
    }
    let mut is_over = false;
    for (case, plain) in
        measured.names().filter_map(|case| Some((case, case.strip_suffix("_extended")?)))
    {
        if let Some(ratio) = measured.ratio(case, plain) {
            let verdict = if ratio > EXTENDED_OVER_PLAIN { "WORSE" } else { "" };
            is_over |= ratio > EXTENDED_OVER_PLAIN;
            println!("{case} / {plain} = {ratio:.3}, at most {EXTENDED_OVER_PLAIN} {verdict}");
        }
    }
    let worse = those(Verdict::Worse);
    if !worse.is_empty() {
        eprintln!("perf-gate: worse by more than {tolerance} %: {}", worse.join(", "));
        // Cases go from the small to the whole, so the first is nearest to the cause.
        eprintln!(
            "perf-gate: callgrind_annotate {} shows the instructions by function",
            program.profile(worse[0]).display()
        );
        eprintln!(
            "perf-gate: fix it, or store the higher figure with {update} and justify it in the commit"
        );
    }

    if let Some(difference) = stored.conditions.difference(&measured.conditions) {
        println!(
            "perf-gate: nothing fails, because the figures were measured with {difference}; store new ones \
             from a commit that is known to be good, with {update}"
        );
        return ExitCode::SUCCESS;
    }
    if worse.is_empty() && unlike.is_empty() && !is_over {
        println!("perf-gate: {} cases, none worse by more than {tolerance} %", verdicts.len());
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
