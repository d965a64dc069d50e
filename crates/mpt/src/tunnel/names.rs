//! Events in the operator's words.
//!
//! The core uses numbers. A number's owner may be removed before an event is read, so every event
//! is converted to text at once.

use std::collections::HashMap;
use std::net::SocketAddr;

use mpt_control::Event as RecentEvent;
use mpt_proto::{
    AcceptId, Change, ConnectRequest, ConnectionId, DownCause, Drop, Event, Instant, PathId,
    PathState, ReceiveHalf,
};

/// The names of connections and paths. Numbers that are used again bring their new names.
#[derive(Debug, Default)]
pub(super) struct Names {
    connections: HashMap<ConnectionId, String>,
    paths: HashMap<(ConnectionId, PathId), String>,
    accepts: HashMap<AcceptId, String>,
    /// What this host lacks for paths, in words.
    absences: HashMap<(ConnectionId, PathId), String>,
}

impl Names {
    /// Takes in the name of what `change` adds.
    pub(super) fn add(&mut self, change: &Change, name: String) {
        match *change {
            Change::AddConnection { connection, .. } => {
                self.connections.insert(connection, name);
            }
            Change::AddPath { connection, path, .. } => {
                self.paths.insert((connection, path), name);
            }
            Change::RemoveConnection { .. }
            | Change::SetConnection { .. }
            | Change::RemovePath { .. }
            | Change::SetPath { .. }
            | Change::SetSurcharge { .. }
            | Change::SetStatus { .. }
            | Change::SetFits { .. }
            | Change::SetPeerDown { .. } => {}
            Change::SetPresent { connection, path, .. } => {
                self.absences.insert((connection, path), name);
            }
        }
    }

    /// The name of a connection.
    pub(super) fn connection(&self, connection: ConnectionId) -> Option<&str> {
        self.connections.get(&connection).map(String::as_str)
    }

    /// The name of a path.
    pub(super) fn path(&self, connection: ConnectionId, path: PathId) -> Option<&str> {
        self.paths.get(&(connection, path)).map(String::as_str)
    }

    /// The name of a template.
    pub(super) fn accept(&self, accept: AcceptId) -> &str {
        self.accepts.get(&accept).map_or("?", String::as_str)
    }

    /// Takes in the names of all templates.
    pub(super) fn set_accepts(&mut self, accepts: impl Iterator<Item = (AcceptId, String)>) {
        self.accepts = accepts.collect();
    }

    /// A refusal, as it is shown; `None` if there was none.
    pub(super) fn describe_refusal(
        &self,
        now: Instant,
        request: &ConnectRequest,
    ) -> Option<RecentEvent> {
        let ConnectRequest { accept, remote, peer, refused, .. } = request;
        let name = self.accept(*accept);
        let why = if (*refused)? == Drop::AcceptRate {
            "too many connection requests at once; it is accepted later if it continues to send (max_rate)"
        } else {
            "the limit is reached; it is accepted when one is forgotten (max_connections, max_paths)"
        };
        Some(RecentEvent {
            at_seconds: now.since(Instant::ZERO).as_secs_f64(),
            connection: None,
            path: None,
            text: format!("template {name} refuses {peer} from {remote}: {why}"),
        })
    }

    /// An event as it is shown.
    pub(super) fn describe(&self, now: Instant, event: &Event) -> RecentEvent {
        let (connection, path) = match *event {
            Event::Narrow { connection, path, .. }
            | Event::Proven { connection, path, .. }
            | Event::Stopped { connection, path, .. }
            | Event::Resumed { connection, path }
            | Event::Path { connection, path, .. } => (connection, Some(path)),
            Event::Restart { connection, .. }
            | Event::NoSession { connection }
            | Event::Session { connection, .. }
            | Event::SessionEnd { connection } => (connection, None),
        };
        let name = self.connections.get(&connection).map_or("?", String::as_str);
        let path_of = path;
        let path = path.and_then(|path| self.paths.get(&(connection, path)));
        let path_name = path.map_or("?", String::as_str);
        let text = match *event {
            Event::Narrow { carries, .. } => format!(
                "connection {name}: path {path_name} loses datagrams of more than {carries} bytes; \
                 the MTU follows"
            ),
            Event::Proven { carries, .. } => format!(
                "connection {name}: path {path_name} carries datagrams of {carries} bytes; longer ones \
                 no longer arrive, and the MTU follows"
            ),
            Event::Path { from, to, .. } => {
                let absence = path_of.and_then(|path| self.absences.get(&(connection, path)));
                let what = match (from, to, absence) {
                    (PathState::Down(DownCause::Absent), PathState::Down(DownCause::Silent), _) => {
                        "has what it needs again, and waits for the peer".to_owned()
                    }
                    (_, PathState::Down(DownCause::Absent), Some(why)) => {
                        format!("{} {}: {why}{}", changed(from, to), to.name(), next(to))
                    }
                    _ => format!("{} {to}{}", changed(from, to), next(to)),
                };
                format!("connection {name}: path {path_name} {what}")
            }
            Event::Stopped { lost_percent, .. } => format!(
                "connection {name}: path {path_name} is stopped, because it lost {lost_percent} % although next to \
                 nothing was sent on it; it is probed, and used again when that arrives"
            ),
            Event::Resumed { .. } => {
                format!("connection {name}: path {path_name} is used again after it was stopped")
            }
            Event::Session { replaces: false, .. } => {
                format!("connection {name}: a session with the peer has begun")
            }
            Event::Session { replaces: true, .. } => {
                format!("connection {name}: the peer has restarted and has a new session")
            }
            Event::NoSession { .. } => format!(
                "connection {name}: the peer answers no hello: plain framing is used; with a peer that \
                 only knows this, set framing = \"plain\""
            ),
            Event::SessionEnd { .. } => {
                format!("connection {name}: the session has ended; the peer is asked for another")
            }
            Event::Restart { expected, found, .. } => {
                format!(
                    "connection {name}: peer restarted: got sequence {found}, expected {expected}"
                )
            }
        };
        RecentEvent {
            at_seconds: now.since(Instant::ZERO).as_secs_f64(),
            connection: Some(name.to_owned()),
            path: path.cloned(),
            text,
        }
    }
}

/// What is said where the peer has left all paths of a connection; `None` if it has not.
pub(super) fn left(connection: &ReceiveHalf) -> Option<&'static str> {
    let all = |causes: &[DownCause]| {
        let is_one = |state| causes.iter().any(|cause| state == PathState::Down(*cause));
        let mut paths = connection.paths().peekable();
        paths.peek().is_some() && paths.all(|path| is_one(connection.state(path)))
    };
    match () {
        () if all(&[DownCause::PeerStopped]) => Some("the peer has stopped"),
        () if all(&[DownCause::PeerStopped, DownCause::PeerOff]) => {
            Some("the peer has switched off all its paths")
        }
        () => None,
    }
}

/// Somebody has come with an invitation that is none, or none any more.
pub(super) fn refused_invitation(now: Instant, remote: SocketAddr) -> RecentEvent {
    RecentEvent {
        at_seconds: now.since(Instant::ZERO).as_secs_f64(),
        connection: None,
        path: None,
        text: format!(
            "the invitation that {remote} has is used up, expired, or not of this host: make another one with `mpt invite`"
        ),
    }
}

/// How the name of a path's state is led in.
fn changed(from: PathState, to: PathState) -> String {
    // Another cause of the same.
    if from.name() == to.name() {
        return "is still".to_owned();
    }
    format!("was {}, is", from.name())
}

/// What happens to a path in that state.
fn next(state: PathState) -> &'static str {
    match state {
        PathState::Down(DownCause::Silent) => "; it is used again when the peer is heard",
        PathState::Down(DownCause::PeerDeaf) => "; it is used again when it does",
        PathState::Down(DownCause::Absent) => "; it is used when that changes",
        PathState::Down(DownCause::PeerLost) => "; it is used again when the peer has it again",
        PathState::UnusableMtu => "; it is used again when packets of 1280 bytes fit",
        PathState::Down(DownCause::PeerDown | DownCause::PeerOff) => {
            "; it is used again when the peer allows it"
        }
        PathState::Down(DownCause::PeerStopped) => "; it is used again when the peer is back",
        PathState::Off => "",
        PathState::Probing => "; it is used when the peer is heard",
        PathState::Up => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: ConnectionId = ConnectionId(1);
    const PATH: PathId = PathId(2);

    fn told(names: &Names, from: PathState, to: PathState) -> String {
        let event = Event::Path { connection: CONNECTION, path: PATH, from, to };
        names.describe(Instant::ZERO, &event).text
    }

    #[test]
    fn a_path_that_stays_down_for_another_cause_is_still_down() {
        let names = Names {
            connections: [(CONNECTION, "server".to_owned())].into(),
            paths: [((CONNECTION, PATH), "lte".to_owned())].into(),
            absences: [((CONNECTION, PATH), "interface wwan0 has no carrier".to_owned())].into(),
            ..Names::default()
        };
        let down = PathState::Down;
        for (from, to, words) in [
            (PathState::Up, down(DownCause::Silent), "was up, is down (silent for its dead time)"),
            (
                PathState::Up,
                down(DownCause::PeerStopped),
                "was up, is down (the peer has stopped); it is used again when the peer is back",
            ),
            (
                down(DownCause::PeerLost),
                down(DownCause::PeerDeaf),
                "is still down (the peer does not hear us on it); it is used again when it does",
            ),
            (
                down(DownCause::Silent),
                down(DownCause::Absent),
                "is still down: interface wwan0 has no carrier; it is used when that changes",
            ),
            (
                down(DownCause::Absent),
                down(DownCause::Silent),
                "has what it needs again, and waits for the peer",
            ),
        ] {
            let told = told(&names, from, to);
            let begin = format!("connection server: path lte {words}");
            assert!(told.starts_with(&begin), "{told} instead of {begin}");
        }
    }
}
