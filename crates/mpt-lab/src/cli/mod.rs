//! The commands, one file each, and what they share: where their words go.
//!
//! Results go to the standard output, everything else to the standard error. A command returns
//! its exit code: 0, or 1 for an answer that is no. An error is a failure, and `main` makes it 2.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod list;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod selftest;
pub(crate) mod shell;
pub(crate) mod up;

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};

/// Tells how something goes on. A failed write is ignored: nothing that matters is lost.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a line of a result. A reader that has gone away is no failure: `| head`
/// got what it asked for.
///
/// # Errors
///
/// The standard output cannot be written for another reason.
pub(crate) fn print(line: impl std::fmt::Display) -> Result<()> {
    match writeln!(io::stdout().lock(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to the standard output"),
    }
}
