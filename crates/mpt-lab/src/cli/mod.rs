//! The commands, one file each, and their common output functions.
//!
//! Results go to the standard output, everything else to the standard error. A command returns its
//! exit code: 0, or 1 for a negative result. An error is a failure, for which `main` returns 2.

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

/// Prints a line of progress to the standard error. It is not part of the result.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a line of a result. A closed pipe, such as that of `head`, is not an error.
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
