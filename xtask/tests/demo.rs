//! `cargo xtask demo` with a cargo that builds a stand-in for the lab.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `xtask demo` with `arguments`; `build` is what `cargo build` does instead of building.
fn demo(directory: &Path, build: &str, arguments: &[&str]) -> Output {
    let cargo = directory.join("cargo");
    let script = format!(
        "#!/bin/sh\ncase $1 in\nbuild) {build} ;;\n*) exec {} \"$@\" ;;\nesac\n",
        env!("CARGO")
    );
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("demo")
        .args(arguments)
        .env("CARGO", &cargo)
        .env("CARGO_TARGET_DIR", directory.join("out"))
        .output()
        .unwrap()
}

#[test]
fn becomes_the_lab_that_was_built_with_its_arguments_and_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let build = r#"echo "built: $*" >&2
        mkdir -p "$CARGO_TARGET_DIR/release"
        printf '#!/bin/sh\necho "$*"\nexit 7\n' > "$CARGO_TARGET_DIR/release/mpt-lab"
        chmod +x "$CARGO_TARGET_DIR/release/mpt-lab""#;
    let output = demo(directory.path(), build, &["--json", "--seed", "3"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "demo --json --seed 3\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "built: build --release --package mpt --package mpt-lab\n");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn a_failed_build_is_said_and_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path(), "exit 101", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("the build failed"));
}
