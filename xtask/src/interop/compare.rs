//! `cargo xtask interop --wireguard`: how fast a sealed tunnel is beside the kernel's WireGuard, on a kernel that has it.
//!
//! The machine is emulated, and so are the instructions for AES and for vectors with which either encrypts: the ratio is not
//! that of a real processor, and the figures are good for nothing else. What it shows is that both can be compared, by
//! `mpt-lab bench`, which measures the same on any host whose kernel has WireGuard.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::command::output;
use super::inside::Verdict;
use crate::cargo;

/// What is measured, in the names of `mpt-lab bench`.
const SUBJECTS: &str = "raw,mpt-1-extended,sealed-1,sealed-2,wireguard";

/// The kernel's module, below `kernel/` of its modules.
pub(super) const MODULE: &str = "drivers/net/wireguard/wireguard";

/// The programs that it takes, without debug assertions: the daemon and the lab.
pub(super) fn built(target: &Path) -> anyhow::Result<[PathBuf; 2]> {
    let mut build = cargo::command();
    build.args(["build", "--quiet", "--release", "--bins", "--package", "mpt"]);
    let built = build.args(["--package", "mpt-lab"]).status();
    if !built.context("cannot start cargo")?.success() {
        bail!("the build failed, so there is nothing to compare");
    }
    Ok(["mpt", "mpt-lab"].map(|program| target.join("release").join(program)))
}

/// Measures in the machine and prints the table.
pub(super) fn run() -> Verdict {
    let mut bench = Command::new("/bin/mpt-lab");
    bench.args(["bench", "--quick", "--over", "pass,wire", "--only", SUBJECTS]);
    match output(bench.args(["--mpt", "/bin/mpt"])) {
        // What the kernel lacks is left out of the table, and named below it.
        Ok(table) if table.contains("Omitted") => Verdict::failed(table.trim()),
        Ok(table) => {
            println!("{}", table.trim());
            Verdict::passed("measured beside the kernel's WireGuard")
        }
        Err(error) => Verdict::failed(&format!("{error:#}")),
    }
}
