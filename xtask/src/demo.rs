//! `cargo demo`: build what ships, then show it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::cargo::{command, workspace};

/// Builds `mpt` and `mpt-lab` and becomes `mpt-lab demo` with `arguments`, so that signals and the
/// exit code are the lab's own. Returns only if that did not come about.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let built = command()
        .args(["build", "--release", "--package", "mpt", "--package", "mpt-lab"])
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the build failed, so there is nothing to demonstrate");
    }
    let lab = workspace()?.target_directory.into_std_path_buf().join("release/mpt-lab");
    let error = Command::new(&lab).arg("demo").args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", lab.display()))
}
