//! The cargo that runs a task, and what it knows of the workspace.

use std::env;
use std::ffi::OsString;

use anyhow::Context;
use cargo_metadata::{Metadata, MetadataCommand};

/// The cargo that runs this task, or else the one in PATH.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The workspace in which the task runs, without its dependencies: where it is, and where cargo puts its
/// output, by environment, configuration or default.
pub(crate) fn workspace() -> anyhow::Result<Metadata> {
    MetadataCommand::new().no_deps().exec().context("cannot read the workspace's metadata")
}
