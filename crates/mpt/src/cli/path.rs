//! `mpt path up|down|weight|priority|add|remove`

use anyhow::Result;
use mpt_control::{PathStatus, Request};

use super::change::ask;
use super::line::{PathAction, PathName};
use crate::exit::Exit;

/// Sends the request to the daemon.
pub(super) fn path(action: &PathAction) -> Result<Exit> {
    match action {
        PathAction::Up(name) => set(name, Some(PathStatus::Available), None, None),
        PathAction::Down(name) => set(name, Some(PathStatus::Off), None, None),
        PathAction::Weight { path, weight } => set(path, None, Some(*weight), None),
        PathAction::Priority { path, priority } => set(path, None, None, Some(*priority)),
        PathAction::Add { connection, settings, socket } => {
            let (connection, settings) = (connection.clone(), settings.join("\n") + "\n");
            ask(&socket.socket, &Request::PathAdd { connection, settings })
        }
        PathAction::Remove(PathName { connection, path, socket }) => {
            let (connection, path) = (connection.clone(), path.clone());
            ask(&socket.socket, &Request::PathRemove { connection, path })
        }
    }
}

fn set(
    name: &PathName,
    status: Option<PathStatus>,
    weight: Option<u16>,
    priority: Option<u8>,
) -> Result<Exit> {
    let (connection, path) = (name.connection.clone(), name.path.clone());
    let request = Request::Path { connection, path, status, weight, priority };
    ask(&name.socket.socket, &request)
}
