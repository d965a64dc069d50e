//! Datagrams of sealed framing: opened before anything in them is believed; and the messages of handshakes (section 9
//! of `docs/protocol.md`).

use super::hello::peer;
use super::side::Arrivals;
use crate::framing::datagram::Opened;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::reply::ReplyBody;
use crate::framing::sealed::cookie;
use crate::framing::sealed::epoch::Epoch;
use crate::framing::sealed::handshake::{Agreed, Received, Refusal, Timestamp};
use crate::id::ConnectionId;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::hello::{self, Capabilities, Hello};
use crate::wire::extended::sealed::TAG_LEN;
use crate::wire::extended::{Header, Kind};

impl Arrivals<'_> {
    /// Opens a datagram, if it is one of sealed framing; `None` if not. What it gives is `None` in turn if the datagram
    /// was dropped and counted, or has been dealt with.
    #[inline]
    pub(super) fn open_sealed(
        &mut self,
        now: Instant,
        header: &Header,
        datagram: &mut [u8],
    ) -> Option<Option<Opened>> {
        self.sessions.host.as_ref()?;
        let id = match self.opened {
            Some((key, id)) if key == header.key => id,
            _ => match self.owner(header) {
                Some(id) => id,
                None if header.kind == Kind::HandshakeInitiation && header.key == 0 => {
                    let message = &datagram[header.size()..];
                    if let Err(reason) = self.on_initiation(now, message) {
                        self.drops.add(reason);
                    }
                    return Some(None);
                }
                None => return None,
            },
        };
        Some(match self.open_of(now, id, header, datagram) {
            Ok(opened) => opened,
            Err(reason) => {
                self.drops.add(reason);
                self.note_answer(now, id, reason);
                None
            }
        })
    }

    /// Whether a connection accepts nothing but sealed datagrams.
    #[inline]
    pub(super) fn is_sealed(&self, id: ConnectionId) -> bool {
        self.sessions.host.is_some() && self.connections[id.index()].handshakes.is_some()
    }

    /// The connection with sealed framing that an index leads to.
    fn owner(&self, header: &Header) -> Option<ConnectionId> {
        let id = *self.sessions.indices.get(&header.key)?;
        self.connections.get(id.index()).filter(|half| half.handshakes.is_some()).map(|_| id)
    }

    #[inline]
    fn open_of(
        &mut self,
        now: Instant,
        id: ConnectionId,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Option<Opened>, Drop> {
        if matches!(header.kind, Kind::HandshakeResponse | Kind::CookieReply) {
            let message = &datagram[header.size()..];
            return self.on_answer(now, id, header, message).map(|()| None);
        }
        let half = &mut self.connections[id.index()];
        let handshakes = half.handshakes.as_mut().ok_or(Drop::UnknownIndex)?;
        if let Some(key) = handshakes.epochs.open(now, header, datagram)? {
            // The peer uses what it has been offered.
            self.sessions.give_up(handshakes);
            half.follow_epoch(now, key, &self.sessions.secret, self.messages);
            self.on_epoch(id);
        }
        self.opened = Some((header.key, id));
        let known = self.bound.filter(|bound| (bound.0, bound.1) == (header.key, header.path));
        let (connection, path) = match known {
            Some((.., connection, path)) if header.sequence.is_some() => (connection, path),
            _ => {
                let payload = &datagram[header.size()..datagram.len() - TAG_LEN];
                match self.locate(now, id, header, payload, datagram.len())? {
                    Some(found) => found,
                    None => return Ok(None),
                }
            }
        };
        Ok(Some(Opened::extended(connection, path, *header, TAG_LEN)))
    }

    /// Another epoch is in use.
    fn on_epoch(&mut self, id: ConnectionId) {
        self.sessions.forget_indices(&mut self.connections[id.index()]);
        (self.bound, self.opened) = (None, None);
        self.touch(id);
    }

    /// Somebody begins a handshake.
    #[cold]
    fn on_initiation(&mut self, now: Instant, message: &[u8]) -> Result<(), Drop> {
        let at = self.at();
        let received = match self.sessions.host()?.read_initiation(now, at, message) {
            Ok(received) => received,
            Err(Refusal::Drop(reason)) => {
                self.note_initiation(now, reason, None);
                return Err(reason);
            }
            Err(Refusal::Ask(index, reply)) => {
                self.send(index, None, ReplyBody::Cookie(reply));
                return Err(Drop::HandshakeLoad);
            }
        };
        let (hello, is_copy) = (received.hello, self.is_copy(&received));
        let of = self.sessions.keys.get(&received.peer).copied();
        let result = match of {
            Some(id) => self.respond(now, id, received),
            None => self.on_client(now, Box::new(received)),
        };
        if let Err(reason) = result
            && !is_copy
        {
            self.note_initiation(now, reason, Some((of, &hello)));
        }
        result
    }

    /// Whether an initiation is the last one of its sender once more, as one that came by another path is.
    fn is_copy(&self, received: &Received) -> bool {
        let latest = match self.sessions.keys.get(&received.peer) {
            Some(id) => {
                let handshakes = self.connections[id.index()].handshakes.as_ref();
                handshakes.and_then(|handshakes| handshakes.newest())
            }
            None => self.sessions.clients.latest(&received.peer),
        };
        latest == Some(received.timestamp)
    }

    /// Somebody without a connection begins a handshake.
    fn on_client(&mut self, now: Instant, received: Box<Received>) -> Result<(), Drop> {
        let wall_clock = match self.sessions.wall_clock {
            Some((then, since_1970)) => since_1970 + now.since(then),
            None => self.sessions.host()?.wall_clock(now),
        };
        let from = (self.at(), self.addressed_to);
        let (accepting, origin, local) = (&*self.accepting, self.origin, self.local);
        let accepts = |accept, received: &Received| {
            let Hello { sender, receiver, key, .. } = received.hello;
            accepting.may_begin(accept, origin, (sender, receiver, key), local)
        };
        self.sessions.clients.on_initiation(now, wall_clock, from, received, accepts)
    }

    /// Answers an initiation.
    pub(super) fn respond(
        &mut self,
        now: Instant,
        id: ConnectionId,
        received: Received,
    ) -> Result<(), Drop> {
        let at = self.at();
        let half = &mut self.connections[id.index()];
        let hello = received.hello;
        if !half.framing.plain.knows(hello.sender, hello.receiver) || half.key != hello.key {
            return Err(Drop::HandshakeRefused);
        }
        let (key, number, repair) = (half.key, half.number, half.repair);
        let session = half.session().ok_or(Drop::HandshakeRefused)?.identity_for(hello.session);
        let handshakes = half.handshakes.as_mut().ok_or(Drop::HandshakeRefused)?;
        let host = self.sessions.host()?;
        let is_greater = *host.public() > handshakes.peer.public;
        let has_precedence = is_greater && handshakes.is_under_way(now);
        let timestamp = received.timestamp;
        if !handshakes.is_later(timestamp) {
            return self.answer_again(id, timestamp);
        }
        if has_precedence {
            return Err(Drop::HandshakeYield);
        }
        if !is_greater {
            self.sessions.give_up(handshakes);
        }
        let index = self.sessions.choose_index(id, number, &mut handshakes.chosen);
        let own = Identity { session: session.session, index };
        let answer = Hello {
            version: hello::VERSION,
            capabilities: Capabilities::own(repair),
            session: own.session,
            echo: hello.session,
            sender: hello.receiver,
            receiver: hello.sender,
            key,
            cookie: 0,
            index,
        };
        let preshared = handshakes.peer.preshared.clone();
        let response = self.sessions.host()?.respond(received, preshared.as_ref(), answer);
        let (response, Agreed { seal, open, cipher }) = match response {
            Ok(agreed) => agreed,
            Err(reason) => {
                self.sessions.indices.remove(&index);
                return Err(reason);
            }
        };
        let peer = peer(&hello);
        let epoch = Epoch::new(now, (own, peer), (cipher, open), seal.usage(), false);
        handshakes.epochs.offer(epoch, seal);
        handshakes.set_answered((timestamp, hello.index), &response, at);
        self.sessions.forget_indices(&mut self.connections[id.index()]);
        self.touch(id);
        self.send(hello.index, None, ReplyBody::HandshakeResponse(response));
        Ok(())
    }

    /// Answers an initiation once more that has come by another path as well.
    pub(super) fn answer_again(
        &mut self,
        id: ConnectionId,
        timestamp: Timestamp,
    ) -> Result<(), Drop> {
        let at = self.at();
        let handshakes = self.connections[id.index()].handshakes.as_mut();
        let again = handshakes.and_then(|handshakes| handshakes.answer_again(timestamp, at));
        let (key, response) = again.ok_or(Drop::HandshakeReplay)?;
        self.send(key, None, ReplyBody::HandshakeResponse(response));
        Ok(())
    }

    /// The peer answers an initiation: by a response, or by asking for a cookie.
    #[cold]
    fn on_answer(
        &mut self,
        now: Instant,
        id: ConnectionId,
        header: &Header,
        message: &[u8],
    ) -> Result<(), Drop> {
        let half = &mut self.connections[id.index()];
        let handshakes = half.handshakes.as_mut().ok_or(Drop::HandshakeUnknown)?;
        let waiting = handshakes.waiting.as_ref();
        let waiting = waiting.filter(|waiting| waiting.hello.index == header.key);
        let mac1 = waiting.ok_or(Drop::HandshakeUnknown)?.mac1();
        if header.kind == Kind::CookieReply {
            let cookie = cookie::read(&handshakes.peer.public, &mac1, message);
            handshakes.set_cookie(now, cookie.ok_or(Drop::HandshakeForged)?);
            return Ok(());
        }
        let host = self.sessions.host()?;
        let (said, answer, agreed) = host.read_response(&mut handshakes.waiting, message)?;
        if !half.framing.plain.knows(answer.sender, answer.receiver) || half.key != answer.key {
            self.sessions.indices.remove(&said.index);
            return Err(Drop::HandshakeRefused);
        }
        let own = Identity { session: said.session, index: said.index };
        let secret = &self.sessions.secret;
        half.begin_epoch(now, (own, peer(&answer)), agreed, secret, self.messages);
        self.on_epoch(id);
        Ok(())
    }

    /// The deadline of a connection may have moved.
    pub(super) fn touch(&mut self, id: ConnectionId) {
        if self.touched != Some(id) {
            self.refresh_deadline();
            self.touched = Some(id);
        }
    }
}
