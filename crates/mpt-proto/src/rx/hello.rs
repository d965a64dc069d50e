//! How a session begins: hellos, their answers, and confirms (section 8.3 of `docs/protocol.md`).
//!
//! Nothing is kept for a hello. Each session has an [identity](Identity) of its own, so nothing that was sent in one is
//! taken for a part of the next, in which the same numbers occur again.

use super::session::OVERLAP;
use super::side::Arrivals;
use crate::framing::extended::identity::{At, Identity, Meeting};
use crate::framing::extended::reply::ReplyBody;
use crate::framing::extended::session::{Offer, Peer, SessionUpdate};
use crate::id::ConnectionId;
use crate::stats::Drop;
use crate::time::Instant;
use crate::wire::extended::hello::{Capabilities, Hello, VERSION};

impl Arrivals<'_> {
    /// Somebody asks for a session. He is answered, and forgotten.
    pub(super) fn on_hello(&mut self, now: Instant, hello: &Hello) -> Result<(), Drop> {
        let Some(id) = self.greeted(hello) else {
            let outcome = self.invite(now, hello);
            if outcome.is_err() {
                self.note_hello(now, hello);
            }
            return outcome;
        };
        let session = self.connections[id.index()].session().ok_or(Drop::HelloUnknown)?;
        let (own, repair) =
            (session.identity_for(hello.session), self.connections[id.index()].repair);
        self.answer_hello(now, hello, own, repair);
        self.note_unconfirmed(now, id);
        Ok(())
    }

    /// Answers a hello with this identity. `repair`: losses are repaired.
    pub(super) fn answer_hello(
        &mut self,
        now: Instant,
        hello: &Hello,
        own: Identity,
        repair: bool,
    ) {
        let cookie = meeting(self.at(), hello, own.session).cookie(&self.sessions.secret, now);
        let answer = Hello {
            version: VERSION,
            capabilities: Capabilities::own(repair),
            session: own.session,
            echo: hello.session,
            sender: hello.receiver,
            receiver: hello.sender,
            key: hello.key,
            cookie,
            index: own.index,
        };
        self.send(hello.index, None, ReplyBody::HelloAnswer(answer));
    }

    /// The connection that a hello is for: by tunnel addresses and key, and of several the one with a path at
    /// this socket.
    fn greeted(&self, hello: &Hello) -> Option<ConnectionId> {
        let ids = self.sessions.greetable.get(&hello.sender)?;
        let fits = |id: &&ConnectionId| {
            let half = &self.connections[id.index()];
            half.key == hello.key && half.framing.plain.knows(hello.sender, hello.receiver)
        };
        let here = |id: &&ConnectionId| {
            let mut paths = self.connections[id.index()].paths.iter();
            paths.any(|(_, path)| path.origin.socket == self.origin.socket)
        };
        let mut fitting = ids.iter().filter(fits);
        fitting.clone().find(here).or_else(|| fitting.next()).copied()
    }

    /// The peer answers a hello of this host.
    pub(super) fn on_hello_answer(
        &mut self,
        now: Instant,
        id: ConnectionId,
        hello: &Hello,
    ) -> Result<(), Drop> {
        let half = &mut self.connections[id.index()];
        let path = half.path_at(At { socket: self.origin.socket, remote: self.origin.remote });
        let path = path.ok_or(Drop::PathUnknown)?;
        let known = half.framing.plain.knows(hello.sender, hello.receiver);
        let session = half.session.as_mut().filter(|_| known).ok_or(Drop::ControlAddress)?;
        if hello.version != VERSION {
            self.note_version(now, id, hello.version);
            return Err(Drop::HelloVersion);
        }
        if hello.echo != session.own().session {
            return Err(Drop::HelloCookie);
        }
        let peer = peer(hello);
        match session.peer() {
            Some(current) if current.session == peer.session => {
                self.messages.session(id, SessionUpdate::Holds);
            }
            // It is to a hello of before the session.
            Some(_) if now < session.began() + OVERLAP => return Err(Drop::HelloCookie),
            // The peer has restarted. What it sent before may still come, so it is asked with another identity.
            Some(_) => self.forget(now, id),
            None => {
                if session.on_answer(peer) {
                    let offer = Offer { peer, cookie: hello.cookie, path };
                    self.messages.session(id, SessionUpdate::Offered(offer));
                }
            }
        }
        Ok(())
    }

    /// The peer confirms an answer of this host, from an origin that has received it.
    pub(super) fn on_confirm(
        &mut self,
        now: Instant,
        id: ConnectionId,
        peer_path: u8,
        hello: &Hello,
    ) -> Result<(), Drop> {
        let at = self.at();
        let half = &mut self.connections[id.index()];
        let session = half.session().ok_or(Drop::UnknownIndex)?;
        let own = [session.own(), session.next()].into_iter().find(|own| own.session == hello.echo);
        let (due, current) = (session.identity_for(hello.session), session.peer());
        let own = own.ok_or(Drop::HelloCookie)?;
        if hello.version != VERSION {
            self.note_version(now, id, hello.version);
            return Err(Drop::HelloVersion);
        }
        if !half.framing.plain.knows(hello.sender, hello.receiver) || half.key != hello.key {
            return Err(Drop::ControlAddress);
        }
        let meeting = meeting(at, hello, own.session);
        if !meeting.is_valid(&self.sessions.secret, now, hello.cookie) {
            return Err(Drop::HelloCookie);
        }
        if own != due {
            // Since the answer a session has begun, or has ended.
            let repair = half.repair;
            self.answer_hello(now, hello, due, repair);
            return Ok(());
        }
        match current {
            None => half.begin_session(now, peer(hello), self.messages),
            Some(current) if current.session == hello.session => {}
            Some(_) => {
                let secret = &self.sessions.secret;
                let renewed = half.replace_session(now, peer(hello), secret, self.messages);
                self.sessions.renew(id, renewed);
                self.bound = None;
            }
        }
        let half = &mut self.connections[id.index()];
        match half.path_at(at) {
            Some(path) => {
                half.greet_back(path, self.messages);
                self.bind(id, peer_path, path);
            }
            None => self.request_path(now, id, peer_path),
        }
        Ok(())
    }
}

pub(super) fn peer(hello: &Hello) -> Peer {
    let partial = hello.capabilities.contains(Capabilities::PARTIAL);
    let repairs = hello.capabilities.contains(Capabilities::REPAIR);
    let parity = hello.capabilities.contains(Capabilities::PARITY);
    Peer { session: hello.session, index: hello.index, partial, repairs, parity }
}

pub(super) fn meeting(at: At, hello: &Hello, own: u64) -> Meeting {
    Meeting {
        at,
        initiator: (hello.sender, hello.session, hello.index),
        responder: (hello.receiver, own),
    }
}
