//! `cargo xtask static`: the program without any library that a host would have to have.
//!
//! It is linked with musl, which Rust brings along. The C code among the dependencies (ciphers) is compiled with the headers of musl:
//! on Debian for amd64 `musl-gcc` of the package musl-tools does so, and for arm64 the cross compiler with headers that
//! `contrib/static/fetch-musl.sh` fetches. What a machine lacks is named, and the other programs are built nevertheless.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};

use crate::architecture::Architecture;
use crate::cargo::{self, workspace};
use crate::program;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The machines that they are for: by default, all.
    #[arg(long, value_name = "ARCH")]
    arch: Vec<Architecture>,

    /// Where the programs go, by default `static` in cargo's output.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Builds the programs and says where they are.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let workspace = workspace()?;
    let target = workspace.target_directory.as_std_path();
    let folder = options.out.clone().unwrap_or_else(|| target.join("static"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut exit = ExitCode::SUCCESS;
    let asked = match &*options.arch {
        [] => &[Architecture::Amd64, Architecture::Arm64],
        some => some,
    };
    for &arch in asked {
        let lacking = lacking(arch)?;
        if !lacking.is_empty() {
            eprintln!("xtask: no program for {}: first {}", arch.name(), lacking.join(", and "));
            exit = ExitCode::from(2);
            continue;
        }
        let built = build(workspace.workspace_root.as_std_path(), target, arch)?;
        let file = folder.join(format!("mpt-{}-{}", env!("CARGO_PKG_VERSION"), arch.name()));
        let bytes = program::stripped(&built, arch, &file)?;
        check(&bytes, arch)
            .with_context(|| format!("{} is not what it should be", file.display()))?;
        println!("{}", file.display());
    }
    Ok(exit)
}

/// What has to be done first on this machine.
fn lacking(arch: Architecture) -> anyhow::Result<Vec<String>> {
    let mut todo = Vec::new();
    let target = arch.musl_target();
    if !program::has_standard_library(None, target)? {
        todo.push(format!("`rustup target add {target}`"));
    }
    let own = arch == Architecture::of_this_machine()?;
    let (compiler, package) = match (own, arch) {
        (true, _) => ("musl-gcc", "musl-tools"),
        (false, Architecture::Arm64) => ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        (false, Architecture::Amd64) => bail!("on this machine only programs for itself are built"),
    };
    if env::var_os(format!("CC_{}", target.replace('-', "_"))).is_none()
        && Command::new(compiler).arg("--version").output().is_err()
    {
        todo.push(format!("`apt-get install {package}`"));
    }
    Ok(todo)
}

fn build(root: &Path, target: &Path, arch: Architecture) -> anyhow::Result<PathBuf> {
    let triple = arch.musl_target();
    let mut command = cargo::command();
    command.args(["build", "--release", "--package", "mpt", "--bin", "mpt", "--target", triple]);
    let cc = format!("CC_{}", triple.replace('-', "_"));
    if arch != Architecture::of_this_machine()? && env::var_os(&cc).is_none() {
        let gcc = format!("{}gcc", arch.tools());
        // Its own headers come from the compiler, and the C library's from musl.
        let flags =
            format!("-nostdinc -isystem {} -isystem {}", own_headers(&gcc)?, headers(root)?);
        let name = triple.to_uppercase().replace('-', "_");
        command.env(cc, &gcc).env(format!("CFLAGS_{}", triple.replace('-', "_")), flags);
        command.env(format!("CARGO_TARGET_{name}_LINKER"), &gcc);
    }
    if !command.status().context("cannot start cargo")?.success() {
        bail!("the build for {} failed", arch.name());
    }
    Ok(target.join(triple).join("release/mpt"))
}

/// The folder of a compiler's own headers.
fn own_headers(gcc: &str) -> anyhow::Result<String> {
    let output = Command::new(gcc).arg("-print-file-name=include").output();
    let output = output.with_context(|| format!("cannot start {gcc}"))?;
    Ok(String::from_utf8(output.stdout).context("no path")?.trim().to_owned())
}

/// The headers of musl for another machine than this.
fn headers(root: &Path) -> anyhow::Result<String> {
    let script = root.join("contrib/static/fetch-musl.sh");
    let output = Command::new(&script).stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {}", script.display()))?;
    ensure!(output.status.success(), "{} failed ({})", script.display(), output.status);
    Ok(String::from_utf8(output.stdout).context("no path")?.trim().to_owned())
}

/// Checks that a program is for these machines and that none of its segments asks for a loader, by the ELF header.
fn check(program: &[u8], arch: Architecture) -> anyhow::Result<()> {
    const INTERPRETER: u32 = 3;
    ensure!(program.starts_with(b"\x7fELF\x02\x01"), "no program of 64 bits, least byte first");
    let number = |at: usize, len: usize| {
        let bytes = program.get(at..at + len).context("it is cut off")?;
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        anyhow::Ok(number)
    };
    let machine = number(18, 2)?;
    ensure!(machine == u64::from(arch.machine()), "it is for machines of number {machine}");
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let at = usize::try_from(table + index * size).context("a place too far")?;
        ensure!(number(at, 4)? != u64::from(INTERPRETER), "it needs a loader and libraries");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_libraries_is_refused() {
        // This test is one, and one for machines like this.
        let own = fs::read(env::current_exe().expect("a path")).expect("a file");
        let arch = Architecture::of_this_machine().expect("a known machine");
        let refused = |program: &[u8], arch| check(program, arch).expect_err("refused").to_string();
        assert_eq!(refused(&own, arch), "it needs a loader and libraries");
        let other = match arch {
            Architecture::Amd64 => Architecture::Arm64,
            Architecture::Arm64 => Architecture::Amd64,
        };
        assert!(refused(&own, other).starts_with("it is for machines of number"));
        assert_eq!(refused(&own[..60], arch), "it is cut off");
        assert!(refused(b"#!/bin/sh", arch).starts_with("no program"));
    }

    #[test]
    fn a_program_that_needs_none_passes() {
        let arch = Architecture::Arm64;
        let mut program = vec![0; 64 + 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[18..20].copy_from_slice(&arch.machine().to_le_bytes());
        // One segment that is loaded, right after the header.
        for (at, value) in [(32, 64), (54, 56), (56, 1), (64, 1)] {
            program[at] = value;
        }
        check(&program, arch).expect("it needs no loader");
    }
}
