//! `mpt-lab report DIR`: what a folder of results says, as a page.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::report::{Report, Section, html, markdown};
use mpt_lab::results::Results;
use mpt_lab::trace::Trace;

use super::print;

/// Creates a report of a folder of results, or draws a trace: no experiment is run.
///
/// The report is one self-contained HTML file, and the same tables as
/// Markdown. Prints the files' names, then each target with its verdict and the figure that it got.
/// Traces in its folder `traces` become pages beside them. A file that `mpt trace` has written
/// becomes one page, with its rates, delays, queues and findings over time.
///
/// Exit code 0: they are written. 2: they could not be written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mpt-lab report results                            results/report.html\n\
\x20 mpt-lab report trace.jsonl                        trace.html, of `mpt trace`"
)]
pub(crate) struct Arguments {
    /// The folder, as created by `mpt-lab run --out`, or a trace, as written by `mpt trace`.
    folder: PathBuf,
    /// The HTML file to write; default: report.html in the folder, or beside the trace.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The Markdown file to write; default: report.md in the folder.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write every plot to this folder, each panel as an SVG file.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
///
/// The folder holds no results, or a file cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.folder.is_file() {
        draw_trace(&arguments.folder, arguments.html.as_deref(), arguments.plots.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = Results::read(&arguments.folder)?;
    for torn in &results.torn {
        super::tell(&format!("omitted: {torn}"));
    }
    let report = Report::of(&results);
    let place = |wanted: &Option<PathBuf>, name: &str| {
        wanted.clone().unwrap_or_else(|| arguments.folder.join(name))
    };
    write(&place(&arguments.html, "report.html"), &html::page(&report))?;
    write(&place(&arguments.markdown, "report.md"), &markdown::text(&report))?;
    if let Some(folder) = &arguments.plots {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, text) in html::plots(&report) {
            write(&folder.join(name), &text)?;
        }
    }
    for trace in traces(&arguments.folder)? {
        draw_trace(&trace, None, arguments.plots.as_deref())?;
    }
    for section in report.sections.iter().filter(|section| !section.judgements.is_empty()) {
        print(targets(section))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The traces of a folder of results, by name.
fn traces(folder: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder.join("traces");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.with_context(|| format!("cannot read {}", folder.display()))?.path());
    }
    files.retain(|file| file.extension().is_some_and(|suffix| suffix == "jsonl"));
    files.sort();
    Ok(files)
}

/// Draws a trace to a page, beside it unless said otherwise, and its panels to a folder.
fn draw_trace(file: &Path, page: Option<&Path>, plots: Option<&Path>) -> Result<()> {
    let trace = Trace::read(file)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    // A name may have dots of its own.
    let beside = file.with_file_name(format!("{name}.html"));
    write(page.unwrap_or(&beside), &html::trace_page(&name, &trace))?;
    if let Some(folder) = plots {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, text) in html::trace_plots(&name, &trace) {
            write(&folder.join(name), &text)?;
        }
    }
    Ok(())
}

/// The targets of an experiment, a line each: verdict, target, figure.
fn targets(section: &Section) -> String {
    let name = &section.answer.entry.name;
    let mut lines = vec![format!("\n{name}: {}", section.verdict().1)];
    lines.extend(section.judgements.iter().map(|judgement| {
        let verdict = judgement.verdict.name();
        format!("  {verdict:<12}  {} – {}", judgement.text, judgement.outcome())
    }));
    lines.join("\n")
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    print(file.display())
}
