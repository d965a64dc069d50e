//! `cargo xtask generate`: manual pages and completions, which the daemon's crate makes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::cargo::{self, workspace};

/// Makes them below cargo's output and says where.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let folder = folder()?;
    into(&folder)?;
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Where they are made.
fn folder() -> anyhow::Result<PathBuf> {
    Ok(workspace()?.target_directory.into_std_path_buf().join("generated"))
}

/// Makes them in `folder`: `man/man1`, `man/man5` and `completions`.
/// What was there before goes, so that no page outlives its command.
pub(crate) fn into(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot empty {}", folder.display()));
        }
        _ => {}
    }
    // With the features of the whole workspace, as its tests are built, nothing is built twice.
    let built = cargo::command()
        .args(["build", "--quiet", "--workspace", "--example", "generate"])
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        bail!("the build failed, so manual pages cannot be generated");
    }
    let program = workspace()?.target_directory.into_std_path_buf().join("debug/examples/generate");
    let done = Command::new(&program)
        .arg(folder)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !done.success() {
        bail!("manual pages and completions could not be made");
    }
    Ok(())
}
