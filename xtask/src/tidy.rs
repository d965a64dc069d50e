//! `cargo xtask tidy`: rules of this repository that no other tool checks.
//!
//! Each rule is a file. It looks at the workspace and returns [`Violation`]s; each of them is shown
//! as one line with place, problem, and remedy.

mod core;
mod dependencies;
mod drops;
mod files;
mod imports;
mod lengths;
mod links;
mod markdown;
mod pictures;
mod programs;
mod source;
mod unsafe_code;
mod words;

use std::fmt;
use std::process::ExitCode;

use anyhow::Context;
use cargo_metadata::MetadataCommand;

use files::Files;

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    /// File and perhaps line, or a crate.
    place: String,
    /// What is wrong there.
    what: String,
    /// What to do about it.
    remedy: String,
}

impl Violation {
    fn new(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.place, self.what, self.remedy)
    }
}

/// Applies all rules. Exit code 1 if any was broken.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let metadata = MetadataCommand::new().exec().context("cannot read the workspace's metadata")?;
    let files = Files::read(metadata.workspace_root.as_std_path())?;

    for note in lengths::notes(&files) {
        println!("tidy: note: {note}");
    }
    let violations = [
        dependencies::check(&metadata)?,
        unsafe_code::check(&files),
        programs::check(&files),
        lengths::check(&files),
        links::check(&files),
        drops::check(&files),
        imports::check(&files),
        core::check(&files),
        words::check(&files),
        pictures::check(metadata.workspace_root.as_std_path())
            .context("cannot list the pictures")?,
    ]
    .concat();
    for violation in &violations {
        eprintln!("tidy: {violation}");
    }
    if violations.is_empty() {
        println!("tidy: {} files, all rules kept", files.len());
        Ok(ExitCode::SUCCESS)
    } else {
        eprintln!("tidy: rules broken: {}", violations.len());
        Ok(ExitCode::FAILURE)
    }
}
