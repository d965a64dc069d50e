//! The answers: what the tunnels know, put together.

use std::time::Instant;

use mpt_control::{ControlStatus, ErrorKind, PathStatus, Reply, Request, Status, TunnelStatus};

use crate::config::Settings;
use crate::tunnel::Handle;

/// What the control socket asks of a running tunnel.
pub(crate) trait Tunnel {
    /// The tunnel's name.
    fn name(&self) -> &str;

    /// Its status, or `None` if it did not answer in time.
    fn status(&self) -> Option<TunnelStatus>;

    /// Sets what is wanted of a path; `false` if the tunnel does not have it or does not answer.
    fn set_path_status(&self, connection: &str, path: &str, status: PathStatus) -> bool;

    /// Why it does not run any more, if it does not.
    fn failure(&self) -> Option<String>;
}

impl Tunnel for Handle {
    fn name(&self) -> &str {
        &self.name
    }

    fn status(&self) -> Option<TunnelStatus> {
        self.status()
    }

    fn set_path_status(&self, connection: &str, path: &str, status: PathStatus) -> bool {
        self.set_path_status(connection, path, status)
    }

    fn failure(&self) -> Option<String> {
        self.failure()
    }
}

/// The running tunnels and what is known about them all.
#[derive(Debug)]
pub(crate) struct Daemon<T> {
    tunnels: Vec<T>,
    /// Every path by the place of its tunnel and the names of its connection and itself.
    paths: Vec<(usize, String, String)>,
    ready: Instant,
}

impl<T: Tunnel> Daemon<T> {
    /// `tunnels` run these settings, in their order.
    pub(crate) fn new(settings: &Settings, tunnels: Vec<T>) -> Self {
        let mut paths = Vec::new();
        for (place, tunnel) in settings.tunnels.iter().enumerate() {
            for connection in &tunnel.connections {
                for path in &connection.paths {
                    paths.push((place, connection.name.clone(), path.name.clone()));
                }
            }
        }
        Self { tunnels, paths, ready: Instant::now() }
    }

    /// The tunnels, to be stopped.
    pub(crate) fn into_tunnels(self) -> Vec<T> {
        self.tunnels
    }

    /// The first tunnel that does not run any more, and why.
    pub(crate) fn failure(&self) -> Option<(&str, String)> {
        self.tunnels.iter().find_map(|tunnel| Some((tunnel.name(), tunnel.failure()?)))
    }

    /// Carries out a request. `control` is what the socket knows about itself.
    pub(crate) fn answer(&self, request: Request, control: ControlStatus) -> Reply {
        match request {
            Request::Path { connection, path, status } => {
                self.set_path_status(connection.as_deref(), &path, status)
            }
            Request::Status {} => Reply::Status { status: Box::new(self.status(control)) },
            Request::Version {} => Reply::Version { version: env!("CARGO_PKG_VERSION").into() },
        }
    }

    fn status(&self, control: ControlStatus) -> Status {
        let mut status = Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_seconds: self.ready.elapsed().as_secs_f64(),
            control,
            ..Status::default()
        };
        for tunnel in &self.tunnels {
            match tunnel.status() {
                Some(answer) => status.tunnels.push(answer),
                None => status.silent_tunnels.push(tunnel.name().into()),
            }
        }
        status
    }

    fn set_path_status(&self, connection: Option<&str>, path: &str, status: PathStatus) -> Reply {
        let matches = |wanted: &&(usize, String, String)| {
            wanted.2 == path && connection.is_none_or(|connection| wanted.1 == connection)
        };
        let found: Vec<_> = self.paths.iter().filter(matches).collect();
        match found.as_slice() {
            [] => self.no_such_path(connection, path),
            [(tunnel, connection, path)] => {
                let tunnel = &self.tunnels[*tunnel];
                if tunnel.set_path_status(connection, path, status) {
                    Reply::Done
                } else {
                    let message =
                        format!("tunnel `{}` does not answer: see the log", tunnel.name());
                    Reply::error(ErrorKind::Unavailable, message)
                }
            }
            several => {
                let connections = list(several.iter().map(|(_, connection, _)| connection));
                let message = format!(
                    "several connections have a path `{path}`: name the connection too ({connections})"
                );
                Reply::error(ErrorKind::AmbiguousPath, message)
            }
        }
    }

    fn no_such_path(&self, connection: Option<&str>, path: &str) -> Reply {
        let of_connection = |name: &str| self.paths.iter().any(|(_, other, _)| other == name);
        let message = match connection {
            Some(connection) if !of_connection(connection) => {
                let there = list(self.paths.iter().map(|(_, connection, _)| connection));
                format!("no connection `{connection}`: there are {there}")
            }
            connection => {
                let there = self.paths.iter().filter_map(|(_, owner, path)| {
                    connection.is_none_or(|connection| owner == connection).then_some(path)
                });
                format!("no path `{path}`: there are {}", list(there))
            }
        };
        Reply::error(ErrorKind::NoSuchPath, message)
    }
}

/// Most names given for choice in an answer.
const MAX_LISTED: usize = 10;

/// The names, each once, in their order.
fn list<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let mut listed: Vec<&str> = Vec::new();
    for name in names {
        if !listed.contains(&name.as_str()) {
            if listed.len() == MAX_LISTED {
                listed.push("...");
                break;
            }
            listed.push(name);
        }
    }
    listed.join(", ")
}
