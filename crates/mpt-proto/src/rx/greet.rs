//! Datagrams of extended framing: whose they are, and those that begin or end a path or a session.
//!
//! Nothing is sent to an origin that is not a path but answers no longer than what came from it (section 8.4 of
//! `docs/protocol.md`).

use super::connection::ReceiveHalf;
use super::side::Arrivals;
use crate::demux::candidate::PathRequest;
use crate::framing::datagram::Opened;
use crate::framing::extended::identity::{At, is_challenge};
use crate::framing::extended::reply::{OriginReply, ReplyBody};
use crate::framing::extended::session::{Session, SessionUpdate};
use crate::id::{ConnectionId, PathId};
use crate::messages::PathUpdate;
use crate::mismatch::FramingFound;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::close::{self, Close, Reason};
use crate::wire::extended::hello::Hello;
use crate::wire::extended::sealed::TAG_LEN;
use crate::wire::extended::{CONTROL_LEN, Header, Kind, Message};

/// The most requests for paths that wait for their owner.
const PATH_REQUESTS: usize = 64;

/// What the longest message but a hello answer takes that is sent to an origin without a path.
const REPLY_LEN: usize = CONTROL_LEN + 12;

/// What the message takes that an index is unknown.
const CLOSE_LEN: usize = CONTROL_LEN + close::LEN;

impl Arrivals<'_> {
    /// Reads the header of a datagram of extended framing and finds its connection and path.
    ///
    /// Nothing refers to the header of most data, so it stays in registers and is stored once: the processor would wait
    /// where one copy reads in one piece what was just written in several.
    #[inline(always)]
    pub(super) fn open_extended(&mut self, now: Instant, datagram: &mut [u8]) -> Option<Opened> {
        if self.sessions.host.is_none()
            && let Some(header) = Header::parse_data(datagram)
            && let Some((key, id, connection, path)) = self.bound
            && (key, id) == (header.key, header.path)
        {
            return Some(Opened::extended(connection, path, header, 0));
        }
        self.open_first(now, datagram)
    }

    /// The same for what is sealed, or is not the next data of a path.
    #[inline(never)]
    fn open_first(&mut self, now: Instant, datagram: &mut [u8]) -> Option<Opened> {
        let header = match Header::parse(datagram) {
            Ok(header) => header,
            Err(reason) => {
                self.drops.add(reason);
                return None;
            }
        };
        if let Some(opened) = self.open_sealed(now, &header, datagram) {
            return opened;
        }
        let known = self.bound.filter(|bound| (bound.0, bound.1) == (header.key, header.path));
        let known = known.filter(|_| header.sequence.is_some());
        let known = known.map(|(.., connection, path)| (connection, path));
        let (connection, path) = match known.or_else(|| self.find_by_origin(&header)) {
            Some(found) => found,
            None => match self.find(now, &header, datagram) {
                Ok(found) => found?,
                Err(reason) => {
                    self.drops.add(reason);
                    if header.kind == Kind::HandshakeInitiation {
                        self.note_framing(now, FramingFound::Sealed);
                    }
                    return None;
                }
            },
        };
        Some(Opened::extended(connection, path, header, 0))
    }

    pub(super) fn at(&self) -> At {
        At { socket: self.origin.socket, remote: self.origin.remote }
    }

    /// The connection and path of data in a session, by the paths that the origin can have: faster than by the index,
    /// and all that data needs. `None` where there is more to find out.
    fn find_by_origin(&mut self, header: &Header) -> Option<(ConnectionId, PathId)> {
        let [only] = self.candidates else { return None };
        let half = self.connections.get(only.connection.index())?;
        let session = half.session().filter(|session| session.peer().is_some())?;
        let is_data = header.sequence.is_some() && session.own().index == header.key;
        if !is_data
            || only.port != self.origin.remote.port()
            || session.path(header.path) != Some(only.path)
        {
            return None;
        }
        self.bound = Some((header.key, header.path, only.connection, only.path));
        Some((only.connection, only.path))
    }

    /// Finds connection and path by index, path id and origin. `None` if the datagram was a message that begins
    /// something, and has been dealt with.
    #[inline(never)]
    fn find(
        &mut self,
        now: Instant,
        header: &Header,
        datagram: &[u8],
    ) -> Result<Option<(ConnectionId, PathId)>, Drop> {
        let payload = &datagram[header.size()..];
        if header.key == 0 {
            let message = Message::parse(header.kind, payload)?;
            return if let Message::Hello(hello) = message {
                self.on_hello(now, &hello).map(|()| None)
            } else if let Message::Close(Close { reason: Reason::UnknownIndex, index }) = message {
                self.on_unknown_index(now, index).map(|()| None)
            } else {
                Err(Drop::UnknownIndex)
            };
        }
        let Some(&id) = self.sessions.indices.get(&header.key) else {
            if header.kind == Kind::HelloConfirm && header.key == self.sessions.inviter.index {
                return self.on_invited(now, &Hello::parse(header.kind, payload)?).map(|()| None);
            }
            self.answer_unknown_index(now, header, datagram.len());
            return Err(Drop::UnknownIndex);
        };
        if matches!(header.kind, Kind::HelloAnswer | Kind::HelloConfirm) {
            let hello = Hello::parse(header.kind, payload)?;
            let done = if header.kind == Kind::HelloAnswer {
                self.on_hello_answer(now, id, &hello)
            } else {
                self.on_confirm(now, id, header.path, &hello)
            };
            return done.map(|()| None);
        }
        let half = &mut self.connections[id.index()];
        let session = half.session.as_mut().filter(|session| session.own().index == header.key);
        let session = session.ok_or(Drop::UnknownIndex)?;
        let is_counted =
            matches!(header.kind, Kind::Data | Kind::Feedback | Kind::Beacon | Kind::PathStatus);
        if is_counted && let Some(peer) = session.take_offered() {
            half.begin_session(now, peer, self.messages);
        }
        self.locate(now, id, header, payload, datagram.len())
    }

    /// Finds the path of a datagram of a session; `None` if it was a message that needs none, and has been dealt with.
    pub(super) fn locate(
        &mut self,
        now: Instant,
        id: ConnectionId,
        header: &Header,
        payload: &[u8],
        len: usize,
    ) -> Result<Option<(ConnectionId, PathId)>, Drop> {
        let half = &self.connections[id.index()];
        let session = half.session().filter(|session| session.peer().is_some());
        let session = session.ok_or(Drop::UnknownIndex)?;
        let (path, bound) = (half.path_at(self.at()), session.path(header.path));
        if matches!(header.kind, Kind::PathChallenge | Kind::PathAnswer | Kind::Close) {
            let message = Message::parse(header.kind, payload)?;
            self.on_message(now, id, header.path, path, &message, len);
            return Ok(None);
        }
        let Some(path) = path else {
            self.challenge(now, id, len);
            // What the peer sends on a path of its own is in the session, wherever it comes from.
            return bound.map(|path| Some((id, path))).ok_or(Drop::PathUnknown);
        };
        if bound != Some(path) {
            self.bind(id, header.path, path);
        }
        self.bound = Some((header.key, header.path, id, path));
        Ok(Some((id, path)))
    }

    fn session_mut(&mut self, id: ConnectionId) -> Option<&mut Session> {
        self.connections[id.index()].session.as_deref_mut()
    }

    /// A path of the peer is this own one.
    pub(super) fn bind(&mut self, id: ConnectionId, peer_path: u8, path: PathId) {
        let at = self.at();
        if let Some(session) = self.session_mut(id) {
            session.bind(peer_path, path);
            session.forget_candidate(at);
        }
    }

    pub(super) fn send(&mut self, key: u32, path: Option<(ConnectionId, PathId)>, body: ReplyBody) {
        let (at, from) = (self.at(), self.addressed_to);
        let sealed_by = None;
        self.messages.reply_to_origin(OriginReply { at, from, path, key, sealed_by, body });
    }

    /// The same in a session, sealed where that is done.
    fn send_in(&mut self, id: ConnectionId, path: Option<PathId>, body: ReplyBody) {
        let half = &self.connections[id.index()];
        let Some(peer) = half.session_peer() else { return };
        let sealed_by = half.handshakes.is_some().then_some(id);
        let (key, path) = (peer.index, path.map(|path| (id, path)));
        let (at, from) = (self.at(), self.addressed_to);
        self.messages.reply_to_origin(OriginReply { at, from, path, key, sealed_by, body });
    }

    /// What the longest message but a hello answer takes that is sent to an origin of a connection without a path.
    fn reply_len(&self, id: ConnectionId) -> usize {
        let is_sealed = self.connections[id.index()].handshakes.is_some();
        if is_sealed { REPLY_LEN + TAG_LEN } else { REPLY_LEN }
    }

    /// A message of the session that is answered, or is an answer, or ends the session.
    fn on_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        peer_path: u8,
        path: Option<PathId>,
        message: &Message<'_>,
        len: usize,
    ) {
        let Some(own) = self.connections[id.index()].identity() else { return };
        if self.connections[id.index()].session_peer().is_none() {
            return;
        }
        if let Some(path) = path {
            self.connections[id.index()].paths[path.index()].control_received.add(len);
        }
        if let Message::Challenge(challenge) = message {
            let reply_len = self.reply_len(id);
            if len < reply_len {
                return self.drops.add(Drop::ControlLength);
            }
            let size = u16::try_from(len).unwrap_or(u16::MAX);
            self.send_in(id, path, ReplyBody::Answer { number: challenge.number, size });
            if path.is_none() {
                // Both together are no more than came.
                self.challenge(now, id, len - reply_len);
            }
        } else if let Message::Answer(answer) = message {
            let (number, len) = (answer.number, answer.size);
            match path {
                Some(path) => {
                    self.messages.update(id, PathUpdate::Carried { path, number, len });
                }
                None if is_challenge(&self.sessions.secret, now, own, self.at(), number) => {
                    self.request_path(now, id, peer_path);
                }
                None => self.drops.add(Drop::PathUnknown),
            }
        } else {
            self.forget(now, id);
        }
    }

    /// An origin has proved to be the peer's: its owner is asked to make it a path.
    pub(super) fn request_path(&mut self, now: Instant, connection: ConnectionId, peer_path: u8) {
        self.note_elsewhere(now, connection);
        let At { socket, remote } = self.at();
        let moved = self.connections[connection.index()]
            .session()
            .and_then(|session| session.path(peer_path));
        let request = PathRequest { connection, socket, remote, moved };
        if self.sessions.path_requests.len() < PATH_REQUESTS
            && !self.sessions.path_requests.contains(&request)
        {
            self.sessions.path_requests.push_back(request);
        }
    }

    /// Something in a session came from an origin that no path has.
    fn challenge(&mut self, now: Instant, id: ConnectionId, len: usize) {
        let (at, secret) = (self.at(), self.sessions.secret);
        let has_room = len >= self.reply_len(id);
        let Some(session) = self.session_mut(id).filter(|_| has_room) else { return };
        if let Some(number) = session.challenge(now, &secret, at) {
            self.send_in(id, None, ReplyBody::Challenge(number));
        }
    }

    /// The session ends.
    pub(super) fn forget(&mut self, now: Instant, id: ConnectionId) {
        let half = &mut self.connections[id.index()];
        if half.handshakes.is_some() {
            half.close_sealed(now, &self.sessions.secret, self.messages);
            self.sessions.forget_indices(half);
            (self.bound, self.opened) = (None, None);
            return self.touch(id);
        }
        let renewed = half.forget_session(&self.sessions.secret, self.messages);
        self.sessions.renew(id, renewed);
        self.bound = None;
    }

    /// The sender of a datagram believes in a session that this host does not know.
    fn answer_unknown_index(&mut self, now: Instant, header: &Header, len: usize) {
        // To strangers a host is silent that has sealed connections alone.
        let answers = self.sessions.host.is_none() || !self.sessions.greetable.is_empty();
        let answers = answers && header.kind != Kind::Close && len >= CLOSE_LEN;
        if answers && self.sessions.unknown.take(now) {
            self.send(0, None, ReplyBody::UnknownIndex(header.key));
        }
    }

    /// Somebody says that the peer does not know an index.
    fn on_unknown_index(&mut self, now: Instant, index: u32) -> Result<(), Drop> {
        if !self.sessions.unknown.take(now) {
            return Err(Drop::UnknownIndex);
        }
        let at = self.at();
        let is_of = |half: &ReceiveHalf| {
            half.session_peer().is_some_and(|peer| peer.index == index)
                && half.handshakes.is_none()
                && half.path_at(at).is_some()
        };
        let of = self.connections.iter().find(|(_, half)| is_of(half)).map(|(id, _)| id);
        let id = of.map(|id| ConnectionId(id as u16)).ok_or(Drop::UnknownIndex)?;
        let doubts = self.session_mut(id).is_some_and(|session| session.doubt(now));
        if doubts {
            self.messages.session(id, SessionUpdate::Doubted);
        }
        Ok(())
    }
}
