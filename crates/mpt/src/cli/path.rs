//! `mpt path up|down [CONNECTION] PATH`

use anyhow::{Result, bail};
use mpt_control::{Client, ErrorKind, PathStatus, Reply, Request};

use super::{Exit, PathAction};
use crate::output;

/// Tells the daemon what we want of a path.
pub(super) fn path(action: &PathAction) -> Result<Exit> {
    let (name, status) = match action {
        PathAction::Up(name) => (name, PathStatus::Available),
        PathAction::Down(name) => (name, PathStatus::Off),
    };
    let request =
        Request::Path { connection: name.connection.clone(), path: name.path.clone(), status };
    match Client::connect(&name.socket.socket)?.request(&request)? {
        Reply::Done => Ok(Exit::Done),
        Reply::Error { kind: ErrorKind::NoSuchPath | ErrorKind::AmbiguousPath, message } => {
            output::complain(message);
            Ok(Exit::Negative)
        }
        Reply::Error { message, .. } => bail!(message),
        other @ (Reply::Status { .. } | Reply::Version { .. }) => {
            bail!("the daemon gave an answer to another question: {other:?}")
        }
    }
}
