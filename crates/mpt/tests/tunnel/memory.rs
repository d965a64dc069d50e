//! The daemon where its memory is limited.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mpt_lab::guard;
use mpt_lab::topology::Side;

use crate::site::{Site, TWO_LINKS, daemon, eventually};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] =
    &[("memory::a_tunnel_that_gets_none_is_a_clear_error", refused_tunnel)];

fn refused_tunnel() {
    let site = Site::links_only(TWO_LINKS, "");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mpt.toml");
    let socket = folder.path().join("control.sock");
    let control = format!("[control]\nsocket = '{}'\n", socket.display());
    fs::write(&file, control + &site.config(Side::Left)).expect("a file");
    for mebibytes in [40, 70, 100, 130] {
        let mut command = limited(mebibytes, &file);
        let child = site.lab.left().spawn(command.stderr(Stdio::piped()));
        let (code, error) = end(child.expect("mpt runs"));
        assert_eq!(code, Some(2), "{mebibytes} MiB: {error}");
        assert!(
            error.contains("cannot start tunnel `mpt0`: no memory"),
            "{mebibytes} MiB: {error}"
        );
        assert!(error.contains("ulimit -v"), "{error}");
    }
}

/// `mpt run` in an address space of so much.
fn limited(mebibytes: u32, file: &Path) -> Command {
    let mut command = guard::command("sh");
    let script = format!("ulimit -v {}; exec \"$0\" run \"$1\"", mebibytes << 10);
    command.args(["-c", &script]).arg(daemon()).arg(file);
    command
}

/// Waits for the end of a process. Returns its exit code, and what it said.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut ended = None;
    eventually("the process ends", || {
        ended = child.try_wait().expect("a process");
        ended.is_some()
    });
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut said).expect("text");
    (ended.and_then(|status| status.code()), said)
}
