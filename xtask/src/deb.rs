//! `cargo xtask deb`: the Debian package.
//!
//! A package is an archive of archives (deb(5)): what is installed, from [`contents`], and what is said
//! about it, from [`control`], put together by [`archive`]. The program comes from cargo in release mode,
//! for this or another architecture. Everything has the time of the last commit, or of
//! `SOURCE_DATE_EPOCH`, so that the same source gives the same package.

mod archive;
mod contents;
mod control;
mod crates;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use cargo_metadata::MetadataCommand;

use crate::architecture::Architecture;
use crate::cargo::workspace;
use crate::{generate, program};
use archive::Archive;
use control::Package;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The machines that it is for: by default, those like this one.
    #[arg(long, value_name = "ARCH")]
    arch: Option<Architecture>,

    /// Where the package goes, by default `debian` in cargo's output.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Take this program instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Another compiler than cargo's own, for one that has the other architecture's standard library.
    #[arg(long, value_name = "FILE")]
    rustc: Option<PathBuf>,
}

/// Builds the package and says where it is.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let workspace = workspace()?;
    let target = workspace.target_directory.as_std_path();
    let root = workspace.workspace_root.as_std_path();
    let arch = options.arch.map_or_else(Architecture::of_this_machine, Ok)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => program::build(target, arch, options.rustc.as_deref())?,
    };
    let folder = options.out.clone().unwrap_or_else(|| target.join("debian"));
    let work = folder.join(format!("work-{}", arch.name()));
    generate::into(&work)?;

    let time = time(root);
    let program = program::stripped(&binary, arch, &work.join("mpt"))?;
    let metadata = MetadataCommand::new().exec().context("cannot read the workspace's metadata")?;
    let mut data = contents::archive(root, &work, &program, time)?;
    data.add("usr/share/doc/mpt/crates", 0o644, crates::list(&metadata)?.as_bytes())?;
    let package = Package {
        version: env!("CARGO_PKG_VERSION"),
        arch,
        libc: program::libc_version(&program).context("the program needs no version of libc6")?,
        size: data.size(),
    };
    data.add_compressed(
        "usr/share/doc/mpt/changelog.Debian.gz",
        package.changelog(time).as_bytes(),
    )?;
    let control = control::archive(&root.join("packaging/debian"), &package, &data, time)?;

    let file = folder.join(package.file_name());
    fs::write(&file, archive::package(control, data, time)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    println!("{}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// The time of everything in the package, in seconds since 1970.
fn time(root: &Path) -> u64 {
    let given = env::var("SOURCE_DATE_EPOCH").ok();
    let commit = || {
        let git = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(["log", "-1", "--format=%ct"])
            .output()
            .ok()?;
        String::from_utf8(git.stdout).ok()
    };
    given.or_else(commit).and_then(|time| time.trim().parse().ok()).unwrap_or_default()
}
