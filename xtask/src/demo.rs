//! `cargo demo`: build what ships, then show it.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use cargo_metadata::MetadataCommand;

/// Builds `mpt` and `mpt-lab` and becomes `mpt-lab demo` with `arguments`, so that signals and the
/// exit code are the lab's own. Returns only if that did not come about.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let built = Command::new(cargo())
        .args(["build", "--release", "--package", "mpt", "--package", "mpt-lab"])
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the build failed, so there is nothing to demonstrate");
    }
    let lab = target_directory()?.join("release/mpt-lab");
    let error = Command::new(&lab).arg("demo").args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", lab.display()))
}

/// The cargo that runs this task, or else the one in PATH.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Where cargo puts its output, by environment, configuration or default.
fn target_directory() -> anyhow::Result<PathBuf> {
    let metadata =
        MetadataCommand::new().no_deps().exec().context("cannot read the workspace's metadata")?;
    Ok(metadata.target_directory.into_std_path_buf())
}
