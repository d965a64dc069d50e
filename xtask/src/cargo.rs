//! The cargo that runs a task, and its information about the workspace.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::Context;
use cargo_metadata::{Metadata, MetadataCommand};

/// The cargo that runs this task, or else the one in PATH.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// That cargo, to be started as if from a shell. Its environment variables about the task's own
/// crate would count as a change to some build scripts, and their dependents would be rebuilt each
/// time.
pub(crate) fn command() -> Command {
    let mut command = Command::new(cargo());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|own| text.starts_with(own)) {
            command.env_remove(name);
        }
    }
    command
}

/// The workspace in which the task runs, without its dependencies: where it is, and where cargo puts its
/// output, by environment, configuration or default.
pub(crate) fn workspace() -> anyhow::Result<Metadata> {
    MetadataCommand::new().no_deps().exec().context("cannot read the workspace's metadata")
}
