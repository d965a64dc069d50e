//! `mpt-lab report DIR`: what a folder of results says, as a page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mpt_lab::report::{Report, Section, html, markdown};
use mpt_lab::results::Results;

use super::print;

/// Creates a report of a folder of results: one self-contained HTML file, and the same tables as
/// Markdown. No experiment is run. Prints the files' names, then each target with its verdict and
/// the figure that it got.
///
/// Exit code 0: they are written. 2: they could not be written.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder, as created by `mpt-lab run --out`.
    folder: PathBuf,
    /// The HTML file to write; default: report.html in the folder.
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
    for section in report.sections.iter().filter(|section| !section.judgements.is_empty()) {
        print(targets(section))?;
    }
    Ok(ExitCode::SUCCESS)
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
