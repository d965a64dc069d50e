//! The programs that `cargo xtask static` has built: started where there is nothing but them.
//!
//! Building them takes minutes, so this does not: `contrib/static/test.sh` builds and then does more.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program for machines like this one, if it was built since the latest change of version.
fn program() -> Option<PathBuf> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    // Beside `debug`, in which the program under test is.
    let target = Path::new(env!("CARGO_BIN_EXE_xtask")).ancestors().nth(2)?;
    let file = target.join(format!("static/mpt-{}-{arch}", env!("CARGO_PKG_VERSION")));
    file.exists().then_some(file)
}

#[test]
fn the_static_program_runs_where_nothing_else_is() {
    let Some(program) = program() else {
        println!("skipped: no static program: `cargo xtask static` builds it");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    fs::copy(program, root.path().join("mpt")).unwrap();
    fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mpt.toml"),
        root.path().join("mpt.toml"),
    )
    .unwrap();
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("--map-root-user").arg("--root").arg(root.path()).arg("/mpt").args(arguments);
        command.output().unwrap()
    };
    let version = inside(&["version"]);
    if String::from_utf8_lossy(&version.stderr).starts_with("unshare: ") {
        assert!(env::var_os("MPT_NO_SKIP").is_none(), "{version:?}");
        println!("skipped: {}", String::from_utf8_lossy(&version.stderr));
        return;
    }
    let expected = format!("mpt {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8_lossy(&version.stdout), expected, "{version:?}");
    let checked = inside(&["check", "--file-only", "mpt.toml"]);
    assert!(checked.status.success(), "{checked:?}");
}
