//! What the receiving half of a connection knows of its session.

use std::time::Duration;

use super::identity::{At, Identity};
use crate::id::PathId;
use crate::secret::Secret;
use crate::time::Instant;

/// At most one challenge goes to an origin in this time.
const CHALLENGES_EVERY: Duration = Duration::from_millis(100);

/// A peer that seems to have forgotten the session is asked once in this time.
const DOUBTS_EVERY: Duration = Duration::from_secs(1);

/// So many origins of a connection that have no path are remembered.
const CANDIDATES: usize = 8;

/// What stands for no path in the table of the peer's path ids.
const NONE: u8 = u8::MAX;

/// The peer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its session id.
    pub session: u64,
    /// The connection index under which it receives.
    pub index: u32,
    /// Whether it accepts packets whose checksum is partial.
    pub partial: bool,
    /// Whether it repairs losses.
    pub repairs: bool,
    /// Whether it reads parity.
    pub parity: bool,
}

/// An answer to a hello, which waits to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Who answered.
    pub peer: Peer,
    /// What proves that this host receives at the origin of the hello.
    pub cookie: u64,
    /// The path by which the answer came.
    pub path: PathId,
}

/// How the session of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUpdate {
    /// There is none, and it is asked for with this identity.
    Wanted(Identity),
    /// The peer has answered.
    Offered(Offer),
    /// Both hosts have agreed, and this one is known to the peer by this identity: it is used from now on.
    Agreed(Peer, Identity),
    /// The peer may have restarted: it is asked whether it still has the session.
    Doubted,
    /// The peer still has the session.
    Holds,
}

/// The session of one connection, at its receiving half.
#[derive(Debug)]
pub(crate) struct Session {
    own: Identity,
    /// The identity of the session after this one. What is sent in one session so never counts in another,
    /// however late it comes.
    next: Identity,
    /// The peer, once both hosts have agreed.
    peer: Option<Peer>,
    /// A peer that has answered a hello, and of which nothing has come since.
    offered: Option<Peer>,
    /// When the session began.
    began: Instant,
    /// Own paths by the peer's path ids.
    bound: Box<[u8; 256]>,
    candidates: Vec<Candidate>,
    /// When somebody last said that the peer has forgotten the session, and was believed.
    doubted: Option<Instant>,
}

/// An origin in a session that no path has.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    at: At,
    challenged: Instant,
}

impl Session {
    /// No session yet.
    pub(crate) fn new(own: Identity, next: Identity) -> Self {
        Self {
            own,
            next,
            peer: None,
            offered: None,
            began: Instant::ZERO,
            bound: Box::new([NONE; 256]),
            candidates: Vec::new(),
            doubted: None,
        }
    }

    /// By what this host is known.
    pub(crate) fn own(&self) -> Identity {
        self.own
    }

    /// By what it is known in the session after this one.
    pub(crate) fn next(&self) -> Identity {
        self.next
    }

    /// By what a host with this session id is answered that asks for a session.
    pub(crate) fn identity_for(&self, session: u64) -> Identity {
        match self.peer {
            Some(peer) if peer.session != session => self.next,
            _ => self.own,
        }
    }

    /// The peer, if there is a session.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// When the session began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.bound) + self.candidates.capacity() * size_of::<Candidate>()
    }

    /// Gives back memory that is not needed.
    pub(crate) fn rest(&mut self) {
        self.candidates.shrink_to_fit();
    }

    /// The peer has answered a hello, and there is no session. Returns whether that is news.
    pub(crate) fn on_answer(&mut self, peer: Peer) -> bool {
        self.offered.replace(peer) != Some(peer)
    }

    /// Something has arrived that the peer sends only in a session. Returns the peer of the session that begins
    /// by it.
    pub(crate) fn take_offered(&mut self) -> Option<Peer> {
        self.offered.take()
    }

    /// A session begins.
    pub(crate) fn begin(&mut self, now: Instant, peer: Peer) {
        self.began = now;
        self.offered = None;
        self.peer = Some(peer);
    }

    /// A session begins in which this host is known by `own`.
    pub(crate) fn begin_as(&mut self, now: Instant, own: Identity, peer: Peer) {
        self.own = own;
        self.bound.fill(NONE);
        self.candidates.clear();
        self.begin(now, peer);
    }

    /// The session continues, and both hosts are known by other indices.
    pub(crate) fn continue_as(&mut self, own: Identity, peer: Peer) {
        (self.own, self.peer) = (own, Some(peer));
    }

    /// The session is forgotten. The next one has the identity that was meant for it, and the one after it another.
    pub(crate) fn renew(&mut self, next: Identity) {
        *self = Self::new(self.next, next);
    }

    /// The own path that the peer knows by an id.
    #[inline(always)]
    pub(crate) fn path(&self, id: u8) -> Option<PathId> {
        let path = self.bound[usize::from(id)];
        (path != NONE).then_some(PathId(path))
    }

    /// The id by which the peer knows an own path.
    pub(crate) fn peer_id(&self, path: PathId) -> Option<u8> {
        self.bound.iter().position(|bound| *bound == path.0).map(|id| id as u8)
    }

    /// A path of the peer is this own one, and no other of the peer's is.
    pub(crate) fn bind(&mut self, id: u8, path: PathId) {
        self.unbind(path);
        self.bound[usize::from(id)] = path.0;
    }

    /// An own path is gone.
    pub(crate) fn unbind(&mut self, path: PathId) {
        self.bound.iter_mut().filter(|bound| **bound == path.0).for_each(|bound| *bound = NONE);
    }

    /// Something came from an origin that no path has. Returns the challenge to send there, unless one was
    /// sent a moment ago.
    pub(crate) fn challenge(&mut self, now: Instant, secret: &Secret, at: At) -> Option<u64> {
        let known = self.candidates.iter().position(|candidate| candidate.at == at);
        if let Some(place) = known {
            let candidate = &mut self.candidates[place];
            if now.since(candidate.challenged) < CHALLENGES_EVERY {
                return None;
            }
            candidate.challenged = now;
        } else {
            if self.candidates.len() == CANDIDATES {
                self.candidates.remove(0);
            }
            self.candidates.push(Candidate { at, challenged: now });
        }
        Some(super::identity::challenge(secret, now, self.own, at))
    }

    /// Somebody says that the peer has forgotten the session. Returns whether it is to be asked: not if it was asked a
    /// moment ago, because everybody who knows an index can say so.
    pub(crate) fn doubt(&mut self, now: Instant) -> bool {
        let asks = self.doubted.is_none_or(|at| now.since(at) >= DOUBTS_EVERY);
        if asks {
            self.doubted = Some(now);
        }
        asks
    }

    /// An origin has a path now.
    pub(crate) fn forget_candidate(&mut self, at: At) {
        self.candidates.retain(|candidate| candidate.at != at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SocketId;
    use std::net::SocketAddr;

    fn session() -> Session {
        Session::new(Identity { session: 1, index: 2 }, Identity { session: 3, index: 4 })
    }

    fn peer(session: u64) -> Peer {
        Peer { session, index: 9, partial: false, repairs: false, parity: false }
    }

    #[test]
    fn an_answer_begins_a_session_when_the_peer_uses_it() {
        let mut session = session();
        assert!(session.on_answer(peer(5)));
        assert!(!session.on_answer(peer(5)));
        assert_eq!(session.peer(), None);
        assert_eq!(session.take_offered(), Some(peer(5)));
        session.begin(Instant::ZERO, peer(5));
        assert_eq!((session.peer(), session.take_offered()), (Some(peer(5)), None));
    }

    #[test]
    fn each_session_has_an_identity_of_its_own() {
        let mut session = session();
        let (first, second) = (session.own(), session.next());
        assert_eq!(session.identity_for(5), first);
        session.begin(Instant::ZERO, peer(5));
        assert_eq!((session.identity_for(5), session.identity_for(6)), (first, second));
        session.renew(Identity { session: 5, index: 6 });
        assert_eq!((session.own(), session.peer()), (second, None));
    }

    #[test]
    fn a_path_has_one_id_of_the_peer_at_a_time() {
        let mut session = session();
        session.bind(4, PathId(0));
        session.bind(5, PathId(1));
        session.bind(6, PathId(0));
        let bound = [4, 5, 6].map(|id| session.path(id).map(|path| path.0));
        assert_eq!(bound, [None, Some(1), Some(0)]);
        session.unbind(PathId(1));
        assert_eq!(session.path(5), None);
    }

    #[test]
    fn a_peer_is_asked_once_per_second_whether_it_has_forgotten_the_session() {
        let mut session = session();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let asked = [0, 1, 999, 1000, 1999, 2000].map(|millis| session.doubt(at(millis)));
        assert_eq!(asked, [true, false, false, true, false, true]);
    }

    #[test]
    fn an_origin_is_challenged_ten_times_per_second_and_few_are_remembered() {
        let (mut session, secret) = (session(), Secret::new([1; 16]));
        let at =
            |port| At { socket: SocketId(0), remote: SocketAddr::from(([192, 0, 2, 1], port)) };
        let after = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert!(session.challenge(after(0), &secret, at(1)).is_some());
        assert!(session.challenge(after(99), &secret, at(1)).is_none());
        assert!(session.challenge(after(100), &secret, at(1)).is_some());
        for port in 2..200 {
            assert!(session.challenge(after(100), &secret, at(port)).is_some());
        }
        assert_eq!(session.candidates.len(), CANDIDATES);
    }
}
