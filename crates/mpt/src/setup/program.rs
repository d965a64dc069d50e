//! Other programs: systemctl, resolvectl and nft for what only they do, and this program as a daemon.
//!
//! Only commands that a person runs as root come here, and the two that systemd runs for them before and after the
//! daemon; never the daemon. Arguments are passed as they are, without a shell.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// This very program, for others to start.
///
/// # Errors
///
/// The kernel does not say where it is.
pub(crate) fn own() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find out where this program is")
}

/// Whether there is such a program.
pub(crate) fn exists(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(usual).any(|folder| folder.join(name).is_file())
}

/// Runs a program to its end with a text as its input.
///
/// # Errors
///
/// It cannot be started, or says that it has failed.
pub(crate) fn run(name: &str, arguments: &[&str], input: &str) -> Result<()> {
    let shown = || format!("{name} {}", arguments.join(" "));
    let start = || {
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take()
            && let Err(error) = stdin.write_all(input.as_bytes())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error);
        }
        child.wait_with_output()
    };
    let output = match start() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no `{name}` on this host: install it (Debian: {})", package(name));
        }
        output => output.with_context(|| format!("cannot run `{}`", shown()))?,
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        bail!("`{}` failed ({}): {said}", shown(), output.status);
    }
    Ok(())
}

fn package(name: &str) -> String {
    let package = match name {
        "nft" => "nftables",
        "resolvectl" => "systemd-resolved",
        "systemctl" => "systemd",
        other => other,
    };
    format!("apt install {package}")
}

/// Starts the daemon; what it logs goes to `log`, or to standard error.
///
/// # Errors
///
/// The kernel's.
pub(crate) fn daemon(config: &Path, log: Option<File>) -> Result<Child> {
    let mut command = Command::new(own()?);
    command.arg("run").arg(config).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(log) = log {
        command.stderr(log);
    }
    command.spawn().context("cannot start the daemon")
}
