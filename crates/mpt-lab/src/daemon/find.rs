//! Which `mpt` to run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The environment variable that names the daemon's binary.
const VARIABLE: &str = "MPT_BIN";
/// Lab and daemon must have the same version, because each parses the output of the other.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Finds the daemon's binary: the one named, else the one named by the environment variable
/// `MPT_BIN`, else `mpt` beside this executable. Another version is refused.
///
/// # Errors
///
/// There is none, it does not run, or it is of another version; with the remedy.
pub fn find(explicit: Option<&Path>) -> Result<PathBuf> {
    let from_environment = || env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let (binary, origin) = if let Some(path) = explicit {
        (path.to_owned(), "given by --mpt")
    } else if let Some(path) = from_environment() {
        (path.into(), "given by MPT_BIN")
    } else {
        let own = env::current_exe().context("cannot tell where this program lies")?;
        (own.with_file_name("mpt"), "expected beside this program")
    };
    // It may be started from another folder.
    let binary = binary.canonicalize().with_context(|| {
        format!(
            "no daemon at {}, {origin}; build it with `cargo build --release -p mpt`, or give its \
             path with --mpt PATH",
            binary.display()
        )
    })?;
    check_version(&binary)?;
    Ok(binary)
}

fn check_version(binary: &Path) -> Result<()> {
    let name = binary.display();
    let output = Command::new(binary)
        .arg("version")
        .output()
        .with_context(|| format!("cannot run {name}: is it executable for this user?"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(version) = version_in(&text).filter(|_| output.status.success()) else {
        bail!(
            "{name} does not report its version, so it is not mpt: give the path of one with --mpt PATH"
        );
    };
    if version != VERSION {
        bail!(
            "{name} is mpt {version}, but this is mpt-lab {VERSION}: build both \
             together with `cargo build --release`"
        );
    }
    Ok(())
}

/// The version in what `mpt version` prints: `mpt 1.2.3`, whatever follows.
fn version_in(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    (words.next()? == "mpt").then(|| words.next()).flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A stand-in for the daemon that prints `text` and exits with `code`.
    fn program(folder: &Path, text: &str, code: i32) -> PathBuf {
        let path = folder.join(format!("mpt-{code}-{}", text.len()));
        fs::write(&path, format!("#!/bin/sh\necho '{text}'\nexit {code}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn only_the_same_version_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let same = program(folder.path(), &format!("mpt {VERSION} (abc)"), 0);
        assert_eq!(find(Some(&same)).unwrap(), same.canonicalize().unwrap());
        for (text, code, part) in [
            ("mpt 99.0.0", 0, "is mpt 99.0.0, but this is mpt-lab"),
            ("hello", 0, "does not report its version"),
            ("mpt 0.1.0", 3, "does not report its version"),
        ] {
            let error = find(Some(&program(folder.path(), text, code))).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let error = find(Some(&folder.path().join("none"))).unwrap_err();
        assert!(error.to_string().contains("given by --mpt; build it with"), "{error}");
    }
}
