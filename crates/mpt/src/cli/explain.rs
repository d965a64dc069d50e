//! `mpt explain`

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use mpt_control::{Client, ErrorKind, Reply, Request};

use crate::exit::Exit;
use crate::output;

/// Asks the daemon at `socket` why packets went where they went, and prints it.
pub(super) fn explain(connection: Option<&str>, json: bool, socket: &Path) -> Result<Exit> {
    let request = Request::Explain { connection: connection.map(str::to_owned) };
    match Client::connect(socket)?.request(&request)? {
        Reply::Explanation { connections } if json => {
            let text = serde_json::to_string_pretty(&connections);
            output::print(&(text.context("cannot write the explanation")? + "\n"))
        }
        Reply::Explanation { connections } => output::print(&output::explanations(&connections)),
        Reply::Error { kind: ErrorKind::NoSuchConnection, message, .. } => {
            output::complain(message);
            Ok(Exit::Negative)
        }
        Reply::Error { message, .. } => bail!(message),
        other @ (Reply::Changed { .. }
        | Reply::Config { .. }
        | Reply::Done
        | Reply::Peers { .. }
        | Reply::Status { .. }
        | Reply::Trace { .. }
        | Reply::Version { .. }
        | Reply::WebToken { .. }) => bail!("unexpected reply from the daemon: {other:?}"),
    }
}
