//! The real binary: how it is run, and what it says.

use std::process::{Command, Output, Stdio};

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpt"));
    for variable in ["MPT_LOG", "MPT_OFFLOADS", "MPT_THREADS", "MPT_PARTIAL_CHECKSUMS"] {
        command.env_remove(variable);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn mpt(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line on standard error.
pub(crate) fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(text.starts_with("mpt: ") && text.ends_with('\n'), "{text:?}");
    assert_eq!(text.lines().count(), 1, "{text:?}");
    text.trim_end().to_owned()
}
