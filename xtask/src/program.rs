//! The program: built, stripped, and asked which C library it needs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::architecture::Architecture;
use crate::cargo;

/// Builds `mpt` in release mode and returns where it is. With a different `rustc` the output goes
/// to a separate folder, because compilers cannot share artifacts.
pub(crate) fn build(
    target: &Path,
    arch: Architecture,
    rustc: Option<&Path>,
) -> anyhow::Result<PathBuf> {
    let mut command = cargo::command();
    command.args(["build", "--release", "--package", "mpt", "--bin", "mpt"]);
    let mut folder = target.to_path_buf();
    if let Some(rustc) = rustc {
        folder.push("other-compiler");
        let rustc = rustc.canonicalize().with_context(|| format!("no {}", rustc.display()))?;
        command.env("RUSTC", rustc).env("CARGO_TARGET_DIR", &folder);
    }
    if arch != Architecture::of_this_machine()? {
        if !has_standard_library(rustc, arch.target())? {
            bail!(
                "this Rust has no standard library for {target}: install it with `rustup target add {target}`, \
                 or fetch Debian's Rust with `contrib/arm64/fetch-rust.sh` and give `--rustc \
                 target/debian-rust/rustc`",
                target = arch.target()
            );
        }
        let name = arch.target().to_uppercase().replace('-', "_");
        let linker = format!("CARGO_TARGET_{name}_LINKER");
        if env::var_os(&linker).is_none() {
            command.env(linker, format!("{}gcc", arch.tools()));
        }
        command.args(["--target", arch.target()]);
        folder.push(arch.target());
    }
    if !command.status().context("cannot start cargo")?.success() {
        bail!("the build failed, so there is nothing to package");
    }
    Ok(folder.join("release/mpt"))
}

/// A compiler makes code for other machines, but a program also needs the standard library of those.
pub(crate) fn has_standard_library(rustc: Option<&Path>, target: &str) -> anyhow::Result<bool> {
    let given = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc.map_or(given, |rustc| rustc.as_os_str().to_owned()))
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .context("cannot start rustc")?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(fs::read_dir(&folder).is_ok_and(|files| {
        files.flatten().any(|file| file.file_name().as_encoded_bytes().starts_with(b"libstd-"))
    }))
}

/// The program without the symbols that only a debugger needs; `copy` is where it is put.
pub(crate) fn stripped(binary: &Path, arch: Architecture, copy: &Path) -> anyhow::Result<Vec<u8>> {
    let own = arch == Architecture::of_this_machine()?;
    let strip = if own { "strip".to_owned() } else { format!("{}strip", arch.tools()) };
    let done = Command::new(&strip)
        .arg("--strip-unneeded")
        .args(["--remove-section=.comment", "--remove-section=.note", "-o"])
        .arg(copy)
        .arg(binary)
        .status()
        .with_context(|| format!("cannot start {strip}: install binutils"))?;
    if !done.success() {
        bail!("{strip} does not take {}", binary.display());
    }
    fs::read(copy).with_context(|| format!("cannot read {}", copy.display()))
}

/// The latest version of the C library of which a program needs a symbol: the versions stand in it as
/// texts, `GLIBC_2.34`.
pub(crate) fn libc_version(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let starts = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let version = |(at, _): (usize, &[u8])| {
        let text = program[at + MARK.len()..].split(|&byte| byte == 0).next()?;
        let (major, minor) = std::str::from_utf8(text).ok()?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    starts.filter_map(version).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_version_counts_as_numbers_do() {
        let program = b"\x7fELF\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0GLIBC_\0rest";
        assert_eq!(libc_version(program), Some((2, 34)));
        assert_eq!(libc_version(b"static"), None);
    }
}
