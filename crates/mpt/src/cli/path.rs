//! `mpt path up|down|weight|priority|add|remove`

use anyhow::Result;
use clap::{Args, Subcommand};
use mpt_control::{PathStatus, Request};

use super::change::ask;
use super::socket::SocketOption;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(super) enum PathAction {
    /// Put a path into service
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such path, 2 no daemon answers

Examples:
  mpt path up fibre              if only one connection has a path `fibre`
  mpt path up server fibre       if several have one")]
    Up(PathName),
    /// Take a path out of service: no inner packets, no keepalives
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such path, 2 no daemon answers

Examples:
  mpt path down fibre            if only one connection has a path `fibre`
  mpt path down server fibre     if several have one")]
    Down(PathName),
    /// Change a path's share of the packets, where they go by weights
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such path, 2 no daemon answers

Examples:
  mpt path weight fibre --to 5            if only one connection has a path `fibre`
  mpt path weight server fibre --to 5     if several have one")]
    Weight {
        #[command(flatten)]
        path: PathName,
        /// Its share relative to the other paths', 1 to 10000
        #[arg(long = "to", value_name = "WEIGHT", value_parser = clap::value_parser!(u16).range(1..=10_000))]
        weight: u16,
    },
    /// Change a path's priority
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such path, 2 no daemon answers

Examples:
  mpt path priority lte --to 1            on standby while a path with priority 0 is up
  mpt path priority server lte --to 1     if several connections have a path `lte`")]
    Priority {
        #[command(flatten)]
        path: PathName,
        /// Of the paths that are up, those with the lowest number carry packets, 0 to 255
        #[arg(long = "to", value_name = "PRIORITY")]
        priority: u8,
    },
    /// Add a path to a connection
    ///
    /// The settings are those of [[tunnel.connection.path]] in the configuration file, each as one
    /// argument. The file is not changed.
    #[command(after_help = "\
Exit codes: 0 done, 1 the settings are wrong, 2 no daemon answers

Examples:
  mpt path add 'name = \"lte\"' 'interface = \"wwan0\"' 'remote = \"203.0.113.5\"'
  mpt path add --connection server 'name = \"lte\"' 'remote = \"203.0.113.5\"' 'weight = 3'")]
    Add {
        /// The connection; may be left out if there is only one
        #[arg(long, value_name = "CONNECTION")]
        connection: Option<String>,
        /// KEY = VALUE as in the configuration file
        #[arg(value_name = "SETTING", required = true)]
        settings: Vec<String>,
        #[command(flatten)]
        socket: SocketOption,
    },
    /// Remove a path; the file is not changed
    #[command(after_help = "\
Exit codes: 0 done, 1 there is no such path, or it is the last one, 2 no daemon answers

Examples:
  mpt path remove lte            if only one connection has a path `lte`
  mpt path remove server lte     if several have one")]
    Remove(PathName),
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct PathName {
    /// The connection; may be left out if only one has such a path
    #[arg(value_name = "CONNECTION")]
    connection: Option<String>,
    /// The path's name in the configuration
    #[arg(value_name = "PATH")]
    path: String,
    #[command(flatten)]
    socket: SocketOption,
}

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
