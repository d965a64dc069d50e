//! `mpt status`

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use mpt_control::{Client, Reply, Request};

use super::Exit;
use crate::output;

/// Asks the daemon at `socket` for its status and prints it.
pub(super) fn status(json: bool, socket: &Path) -> Result<Exit> {
    let status = match Client::connect(socket)?.request(&Request::Status {})? {
        Reply::Status { status } => status,
        Reply::Error { message, .. } => bail!(message),
        other @ (Reply::Changed { .. }
        | Reply::Config { .. }
        | Reply::Done
        | Reply::Version { .. }) => {
            bail!("the daemon gave an answer to another question: {other:?}")
        }
    };
    if json {
        let text = serde_json::to_string_pretty(&status).context("cannot write the status")?;
        output::print(&(text + "\n"))
    } else {
        output::print(&output::status(&status, output::colour_on_stdout()))
    }
}
