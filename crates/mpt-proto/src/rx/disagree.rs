//! What a datagram that was dropped says of how both ends disagree.

use std::net::IpAddr;

use super::side::Arrivals;
use crate::demux::address::{Candidate, Origin};
use crate::framing::datagram::{Framed, Opened};
use crate::id::{ConnectionId, PathId};
use crate::mismatch::{FramingFound, Misfit, Mismatch, MismatchKind};
use crate::path::PathState;
use crate::rx::connection::ReceiveHalf;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::hello::Hello;
use crate::wire::gre;
use crate::wire::inner;
use crate::wire::keepalive::{FIRST_CONTROL, Keepalive};

impl Arrivals<'_> {
    /// What is at the origin is no datagram of plain framing, nor of extended framing.
    #[cold]
    pub(super) fn note_foreign(&mut self, now: Instant, reason: Drop) {
        // A wrong checksum is damage, and says nothing about settings.
        if reason != Drop::GreChecksum
            && let Some(candidate) = self.likeliest()
        {
            self.note(now, candidate, MismatchKind::Foreign(reason));
        }
    }

    /// A datagram of plain framing that no path has.
    #[cold]
    pub(super) fn note_refused(
        &mut self,
        now: Instant,
        datagram: &gre::Datagram<'_>,
        reason: Drop,
    ) {
        let key = datagram.header.key;
        if reason == Drop::GreKey
            && let Some(candidate) = self.likeliest()
        {
            return self.note(now, candidate, MismatchKind::Key { found: key });
        }
        if !self.mismatches.admits_stranger(now) {
            return;
        }
        if let Some((sender, receiver)) = self.tunnel_addresses(datagram) {
            let is_control = datagram.payload.first().is_some_and(|&first| first >= FIRST_CONTROL);
            let framing = is_control.then_some(false);
            self.note_stranger(now, (sender, receiver, key), framing);
        }
    }

    /// A hello for which there is no connection.
    #[cold]
    pub(super) fn note_hello(&mut self, now: Instant, hello: &Hello) {
        let Hello { sender, receiver, key, .. } = *hello;
        if self.candidates.is_empty() {
            if self.mismatches.admits_stranger(now) {
                self.note_stranger(now, (sender, receiver, key), Some(true));
            }
            return;
        }
        let knows = |candidate: &&Candidate| {
            let half = self.connections.get(candidate.connection.index());
            half.is_some_and(|half| half.framing.plain.knows(sender, receiver))
        };
        let known = self.candidates.iter().find(knows).copied();
        match known {
            Some(candidate) if candidate.key != key => {
                self.note(now, candidate, MismatchKind::Key { found: key });
            }
            Some(candidate) => {
                let kind = self.framing_of(candidate, FramingFound::Extended);
                self.note(now, candidate, kind);
            }
            None => {
                if let Some(candidate) = self.likeliest() {
                    self.note(now, candidate, MismatchKind::Addresses { sender, receiver });
                }
            }
        }
    }

    /// A datagram is of this framing, which the connection at its origin does not accept.
    #[cold]
    pub(super) fn note_framing(&mut self, now: Instant, found: FramingFound) {
        if let Some(candidate) = self.likeliest() {
            let kind = self.framing_of(candidate, found);
            self.note(now, candidate, kind);
        } else if self.mismatches.admits_stranger(now) {
            let kind = MismatchKind::Framing { found };
            // What is sealed names nobody. It can be the peer of the only connection that waits for one.
            match self.only_waiting() {
                Some(id) => self.note_on(now, id, None, kind),
                None => self.mismatches.note(now, self.stranger(kind)),
            }
        }
    }

    /// What a framing says that a candidate does not use: only a peer of this kind of program can be set to use another.
    fn framing_of(&self, candidate: Candidate, found: FramingFound) -> MismatchKind {
        match self.connections[candidate.connection.index()].framing.plain.is_mpt() {
            true => MismatchKind::Framing { found },
            false => MismatchKind::PeerKind,
        }
    }

    /// A handshake initiation was not answered. `said` is what it says, if that can be read, and the connection whose
    /// peer its sender is.
    #[cold]
    pub(super) fn note_initiation(
        &mut self,
        now: Instant,
        reason: Drop,
        said: Option<(Option<ConnectionId>, &Hello)>,
    ) {
        let fits = |(id, hello): (Option<ConnectionId>, &Hello)| {
            let half = &self.connections[id?.index()];
            let Hello { sender, receiver, key, .. } = *hello;
            if !half.framing.plain.knows(sender, receiver) {
                return Some(MismatchKind::Addresses { sender, receiver });
            }
            (half.key != key).then_some(MismatchKind::Key { found: key })
        };
        let tells = matches!(
            reason,
            Drop::HandshakeForged
                | Drop::HandshakeInvitation
                | Drop::HandshakeMac
                | Drop::HandshakeRefused
                | Drop::HandshakeReplay
                | Drop::HandshakeUnknown
        );
        if !tells {
            return;
        }
        let misfit = said.and_then(fits).filter(|_| reason == Drop::HandshakeRefused);
        let kind = misfit.unwrap_or(MismatchKind::Handshake(reason));
        let id = said.and_then(|(id, _)| id);
        let path = id.and_then(|id| self.connections[id.index()].path_at(self.at()));
        match (id, self.likeliest()) {
            (Some(id), _) => self.note_on(now, id, path, kind),
            (None, Some(candidate)) => self.note(now, candidate, kind),
            (None, None) if self.mismatches.admits_stranger(now) => {
                self.mismatches.note(now, self.stranger(kind));
            }
            (None, None) => {}
        }
    }

    /// The answer to an own handshake initiation was refused.
    #[cold]
    pub(super) fn note_answer(&mut self, now: Instant, id: ConnectionId, reason: Drop) {
        if matches!(reason, Drop::HandshakeForged | Drop::HandshakeMac | Drop::HandshakeRefused) {
            let path = self.connections[id.index()].path_at(self.at());
            self.note_on(now, id, path, MismatchKind::Handshake(reason));
        }
    }

    /// The peer of a connection without a session asks for one and is answered. Before long it should confirm.
    #[cold]
    pub(super) fn note_unconfirmed(&mut self, now: Instant, id: ConnectionId) {
        let at = self.at();
        let half = &self.connections[id.index()];
        if half.session_peer().is_none()
            && let Some(path) = half.path_at(at)
        {
            self.note_on(now, id, Some(path), MismatchKind::Unconfirmed);
        }
    }

    /// A message that begins a session is of another version.
    #[cold]
    pub(super) fn note_version(&mut self, now: Instant, id: ConnectionId, found: u8) {
        let path = self.connections[id.index()].path_at(self.at());
        self.note_on(now, id, path, MismatchKind::Version { found });
    }

    /// The peer of a connection has proved to be where no path leads to.
    #[cold]
    pub(super) fn note_elsewhere(&mut self, now: Instant, id: ConnectionId) {
        if self.mismatches.admits_stranger(now) {
            self.note_on(now, id, None, self.elsewhere(id));
        }
    }

    /// What does not fit where the peer of a connection is at an origin that no path leads to.
    fn elsewhere(&self, id: ConnectionId) -> MismatchKind {
        let by = self.connections[id.index()].accepted_by();
        let by = by.filter(|by| self.accepting.refuses(*by, self.origin.remote.ip()));
        match by {
            Some(accept) => MismatchKind::Template { accept, why: Misfit::Source },
            None => MismatchKind::Source,
        }
    }

    /// A connection has not taken a datagram of one of its paths.
    #[cold]
    pub(super) fn note_rejected(
        &mut self,
        now: Instant,
        opened: &Opened,
        payload: &[u8],
        reason: Drop,
    ) {
        let kind = match (reason, &opened.framed) {
            (Drop::ControlAddress, Framed::Plain(_)) => match Keepalive::parse(payload) {
                Ok(Keepalive { sender, receiver, .. }) => {
                    MismatchKind::Addresses { sender, receiver }
                }
                Err(_) => return,
            },
            (Drop::Framing, Framed::Plain(_))
                if self.connections[opened.connection.index()].session_peer().is_none() =>
            {
                MismatchKind::Framing { found: FramingFound::Plain }
            }
            (Drop::ControlUnknown, Framed::Plain(_)) => MismatchKind::PeerKind,
            _ => return,
        };
        self.note_on(now, opened.connection, Some(opened.path), kind);
    }

    /// Somebody at an origin without a path names these tunnel addresses, and this key. `asks` in extended framing,
    /// or not, to connect.
    fn note_stranger(
        &mut self,
        now: Instant,
        (sender, receiver, key): (IpAddr, IpAddr, Option<u32>),
        asks: Option<bool>,
    ) {
        let knows = |half: &ReceiveHalf| half.framing.plain.knows(sender, receiver);
        let of = self.connections.iter().find(|(_, half)| knows(half));
        if let Some((index, half)) = of {
            let waits = half.paths.iter().next().is_none();
            let kind = if half.key != key {
                MismatchKind::Key { found: key }
            } else if asks == Some(true) && half.is_sealed() {
                MismatchKind::Framing { found: FramingFound::Extended }
            } else if waits && asks == Some(false) {
                // Paths are learned in extended framing only.
                MismatchKind::Framing { found: FramingFound::Plain }
            } else {
                self.elsewhere(ConnectionId(index as u16))
            };
            return self.note_on(now, ConnectionId(index as u16), None, kind);
        }
        let misfit = asks.and_then(|extended| {
            self.accepting.misfit(self.origin, (sender, receiver, key, extended), self.local)
        });
        if let Some((accept, why)) = misfit {
            let kind = MismatchKind::Template { accept, why };
            return self.mismatches.note(now, self.stranger(kind));
        }
        // Where only the connection's own address is wrong, it is the one with this peer. Where the peer's is, it can
        // be any that waits for its peer to say where it is.
        let is_peer = |half: &ReceiveHalf| half.framing.peer().contains(&sender);
        let of = self.connections.iter().find(|(_, half)| is_peer(half));
        let of = of.map(|(index, _)| ConnectionId(index as u16)).or_else(|| self.only_waiting());
        let addresses = MismatchKind::Addresses { sender, receiver };
        match of {
            Some(id) if asks.is_some() => self.note_on(now, id, None, addresses),
            _ => self.mismatches.note(now, self.stranger(MismatchKind::Source)),
        }
    }

    /// The connection that waits for its peer to say where it is, if there is only one.
    fn only_waiting(&self) -> Option<ConnectionId> {
        let waits = |half: &ReceiveHalf| half.paths.iter().next().is_none();
        let mut waiting = self.connections.iter().filter(|(_, half)| waits(half));
        let (index, _) = waiting.next().filter(|_| waiting.next().is_none())?;
        Some(ConnectionId(index as u16))
    }

    /// Something that comes from where no path leads to.
    fn stranger(&self, kind: MismatchKind) -> Mismatch {
        let Origin { socket, remote, .. } = self.origin;
        Mismatch { socket, remote, connection: None, path: None, kind }
    }

    /// The tunnel addresses of sender and receiver, by a keepalive or an inner packet.
    fn tunnel_addresses(&self, datagram: &gre::Datagram<'_>) -> Option<(IpAddr, IpAddr)> {
        let payload = datagram.payload;
        if payload.first().is_some_and(|&first| first >= FIRST_CONTROL) {
            let Keepalive { sender, receiver, .. } = Keepalive::parse(payload).ok()?;
            return Some((sender, receiver));
        }
        let inner = inner::parse(payload)?;
        // Without keepalives the addresses of a packet between the two hosts themselves have to do.
        let is_peer =
            |half: &ReceiveHalf| half.framing.plain.knows(inner.source, inner.destination);
        let known = self.connections.iter().any(|(_, half)| is_peer(half));
        known.then_some((inner.source, inner.destination))
    }

    /// Of the paths that the origin can have the first that is not up.
    fn likeliest(&self) -> Option<Candidate> {
        let is_up = |candidate: &&Candidate| {
            let half = self.connections.get(candidate.connection.index());
            half.is_some_and(|half| {
                half.has(candidate.path) && half.state(candidate.path) == PathState::Up
            })
        };
        let first_down = self.candidates.iter().find(|candidate| !is_up(candidate));
        first_down.or(self.candidates.first()).copied()
    }

    fn note(&mut self, now: Instant, candidate: Candidate, kind: MismatchKind) {
        self.note_on(now, candidate.connection, Some(candidate.path), kind);
    }

    fn note_on(
        &mut self,
        now: Instant,
        id: ConnectionId,
        path: Option<PathId>,
        kind: MismatchKind,
    ) {
        let mismatch = Mismatch {
            socket: self.origin.socket,
            remote: self.origin.remote,
            connection: Some(id),
            path,
            kind,
        };
        self.mismatches.note(now, mismatch);
    }
}
