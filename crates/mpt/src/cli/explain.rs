//! `mpt explain`

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use mpt_control::{Client, ErrorKind, Reply, Request};

use crate::exit::Exit;
use crate::output;

/// Asks the daemon at `socket` why packets went where they went, and prints it.
pub(super) fn explain(connection: Option<&str>, json: bool, socket: &Path) -> Result<Exit> {
    let request = Request::Explain { connection: connection.map(str::to_owned) };
    let reply = Client::connect(socket)?.request(&request)?;
    let Reply::Explanation { connections } = reply else {
        let refusal = reply.into_refusal();
        if refusal.kind != ErrorKind::NoSuchConnection {
            bail!(refusal);
        }
        output::complain(refusal);
        return Ok(Exit::Negative);
    };
    if json {
        let text = serde_json::to_string_pretty(&connections);
        return output::print(&(text.context("cannot write the explanation")? + "\n"));
    }
    output::print(&output::explanations(&connections))
}
