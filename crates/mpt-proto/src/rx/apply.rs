//! Changes of connections and paths at the receive side: see [`Change`].

use std::net::IpAddr;

use super::connection::ReceiveHalf;
use super::side::{Arrivals, ReceiveSide, refresh_deadline};
use crate::change::Change;
use crate::config::ConnectionConfig;
use crate::demux::address::Origin;
use crate::framing::extended::identity::At;
use crate::id::{AcceptId, ConnectionId, PathId};
use crate::path::PathStatus;
use crate::sink::Sink;
use crate::time::Instant;

impl ReceiveSide {
    /// Applies a change to receiving, after the transmit side. Packets held for a connection that
    /// ends go to `sink`.
    pub fn change(&mut self, now: Instant, change: &Change, sink: &mut impl Sink) {
        let id = change.connection();
        if matches!(change, Change::AddConnection { .. }) {
            self.added += 1;
        }
        let Some(connection) = self.connections.get_mut(id.index()) else {
            if let Change::AddConnection { config, accepted_by, .. } = change {
                self.add(now, id, config, *accepted_by, sink);
            }
            return;
        };
        let messages = &mut self.messages;
        match change {
            // The number is in use.
            Change::AddConnection { .. } => {}
            Change::RemoveConnection { .. } => {
                connection.end(sink);
                if let Some(session) = connection.session() {
                    self.sessions.remove(session);
                }
                if let Some(handshakes) = &connection.handshakes {
                    for index in handshakes.indices() {
                        self.sessions.indices.remove(&index);
                    }
                    self.sessions.keys.remove(&handshakes.peer.public);
                    self.sessions.clients.remember(&handshakes.peer.public, handshakes.newest());
                }
                for peer in connection.peer() {
                    if let Some(ids) = self.sessions.greetable.get_mut(peer) {
                        ids.retain(|other| *other != id);
                        if ids.is_empty() {
                            self.sessions.greetable.remove(peer);
                        }
                    }
                }
                messages.forget(id);
                self.accepting.remove(id, connection.peer(), connection.accepted_by());
                self.connections.take(id.index());
                self.origins.remove(|owner, _| owner == id);
            }
            Change::SetConnection { config, .. } => connection.set(now, config, sink),
            Change::AddPath { path, config, .. } => {
                if connection.add_path(*path, config) {
                    // One of that number may have been left, and still be where it was.
                    self.origins.remove(|owner, other| owner == id && other == *path);
                    self.origins.claim(connection.origin(), *path, (config.socket, config.remote));
                    self.accepting.claimed(config.socket, config.remote);
                }
            }
            Change::RemovePath { path, .. } => connection.remove_path(now, *path, sink, messages),
            Change::SetPath { path, config, .. } => {
                if connection.set_path(now, *path, config, sink, messages) {
                    self.origins.remove(|owner, other| owner == id && other == *path);
                    self.origins.claim(connection.origin(), *path, (config.socket, config.remote));
                }
            }
            // The transmit side chooses paths.
            Change::SetSurcharge { .. } => {}
            Change::SetStatus { path, status, .. } => {
                connection.set_status(now, *path, *status, sink, messages);
            }
            Change::SetFits { path, fits, .. } => {
                connection.set_fits(now, *path, *fits, sink, messages)
            }
            Change::SetPeerDown { path, down, .. } => {
                connection.set_peer_down(now, *path, *down, sink, messages);
            }
            Change::SetPresent { path, present, .. } => {
                connection.set_present(now, *path, *present, sink, messages);
            }
        }
        if let Some(connection) = self.connections.get_mut(id.index()) {
            connection.tell(now, sink, &mut self.messages);
            // A client that was accepted asks by itself.
            if adds_way(change) && connection.accepted_by().is_none() {
                connection.ask_on_new_path(now);
            }
            self.sessions.drive(now, id, connection, &mut self.messages);
        }
        refresh_deadline(&mut self.deadlines, &self.connections, id);
        self.answer_client(now, id);
    }

    /// Answers the handshake of a client for which this connection was made, as soon as it has a path to it.
    fn answer_client(&mut self, now: Instant, id: ConnectionId) {
        let Some(half) = self.connections.get(id.index()) else { return };
        let Some(handshakes) = &half.handshakes else { return };
        let clients = &mut self.sessions.clients;
        let at = clients.waits_at(&handshakes.peer.public);
        if at.is_none_or(|at| half.path_at(at).is_none()) {
            return;
        }
        let Some(ready) = clients.take_waiting(now, &handshakes.peer.public) else { return };
        let timestamp = ready.received.timestamp;
        let mut arrivals = self.arrivals_from(ready.at, ready.addressed_to);
        if let Err(reason) = arrivals.respond(now, id, *ready.received) {
            arrivals.drops.add(reason);
        }
        drop(arrivals);
        for (at, addressed_to) in ready.copies {
            let mut arrivals = self.arrivals_from(at, addressed_to);
            if let Err(reason) = arrivals.answer_again(id, timestamp) {
                arrivals.drops.add(reason);
            }
        }
    }

    /// For what came from there a while ago.
    fn arrivals_from(&mut self, at: At, addressed_to: Option<IpAddr>) -> Arrivals<'_> {
        let At { socket, remote } = at;
        self.arrivals(Origin { socket, remote, tos: 0 }).addressed_to(addressed_to)
    }

    fn add(
        &mut self,
        now: Instant,
        id: ConnectionId,
        config: &ConnectionConfig,
        by: Option<AcceptId>,
        sink: &mut impl Sink,
    ) {
        let same = |peer: &IpAddr| self.local.iter().any(|own| own.is_ipv4() == peer.is_ipv4());
        // The same condition as at the transmit side.
        if !config.peer.iter().any(same) {
            return;
        }
        let derived = (&self.sessions.secret, self.added);
        let mut connection = ReceiveHalf::new(id, config, by, &self.local, derived);
        if let Some(handshakes) = &mut connection.handshakes {
            handshakes.set_newest(self.sessions.clients.newest(&handshakes.peer.public));
        }
        if let Some(handshakes) = &connection.handshakes {
            self.sessions.keys.insert(handshakes.peer.public, id);
            if by.is_none() {
                connection.ask_on_new_path(now);
            }
        } else if let Some(session) = connection.session() {
            self.sessions.add(id, session);
            for peer in &config.peer {
                self.sessions.greetable.entry(*peer).or_default().push(id);
            }
        }
        for (path, settings) in (0..).map(PathId).zip(&config.paths) {
            self.origins.claim(connection.origin(), path, (settings.socket, settings.remote));
        }
        self.accepting.add(id, &config.peer, by);
        connection.tell(now, sink, &mut self.messages);
        self.sessions.drive(now, id, &mut connection, &mut self.messages);
        self.connections.put(id.index(), connection);
        refresh_deadline(&mut self.deadlines, &self.connections, id);
        self.answer_client(now, id);
    }
}

/// Whether there may be a path more by which the peer can be asked for a session.
fn adds_way(change: &Change) -> bool {
    let present = matches!(change, Change::SetPresent { present: true, .. });
    let available = matches!(change, Change::SetStatus { status: PathStatus::Available, .. });
    present || available || matches!(change, Change::AddPath { .. })
}
