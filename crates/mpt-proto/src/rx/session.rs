//! The session of a connection, at its receiving half.

use std::time::Duration;

use super::connection::{ReceiveHalf, without_session};
use super::measured::Measured;
use super::playout::delivery;
use super::reorder::Restarts;
use crate::config::{FramingConfig, ReorderConfig};
use crate::event::Event;
use crate::framing::extended::identity::{At, Identity};
use crate::framing::extended::session::{Peer, Session, SessionUpdate};
use crate::id::PathId;
use crate::messages::{Messages, Reply};
use crate::secret::Secret;
use crate::sink::Sink;
use crate::stats::Drop;
use crate::time::Instant;
use crate::timer::{Deadline, Timer};

/// How long all paths may be down before a session ends, where plain framing can take over.
const END_AFTER: Duration = Duration::from_secs(10);

/// How long what was sent before a session may arrive in it: plain data, and answers to hellos.
pub(super) const OVERLAP: Duration = Duration::from_secs(2);

/// The indices of a connection have changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewed {
    /// That of the session that is over.
    pub(super) gone: u32,
    /// That of the session after the one to come.
    pub(super) next: u32,
}

impl ReceiveHalf {
    /// The session, if the framing has any.
    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    /// The peer of the session, if there is one.
    pub fn session_peer(&self) -> Option<Peer> {
        self.session().and_then(Session::peer)
    }

    /// By what this host is known to the peer, if the framing has sessions.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.session().map(Session::own)
    }

    /// The path with this origin.
    pub(super) fn path_at(&self, at: At) -> Option<PathId> {
        let same = |origin: At| {
            (origin.socket, origin.remote.ip(), origin.remote.port())
                == (at.socket, at.remote.ip(), at.remote.port())
        };
        let mut paths = self.paths.iter().filter(|(_, path)| same(path.origin));
        // One that is about to go is there beside the one that takes its place.
        let first = paths.next()?;
        let found = std::iter::once(first).chain(paths).find(|(_, path)| !path.leaving);
        Some(PathId(found.unwrap_or(first).0 as u8))
    }

    /// A session begins, where there is none. What is held of the order before is delivered with the next datagram.
    pub(super) fn begin_session(&mut self, now: Instant, peer: Peer, messages: &mut Messages) {
        self.do_begin_session(now, peer, false, messages);
    }

    /// A session takes the place of another.
    pub(super) fn replace_session(
        &mut self,
        now: Instant,
        peer: Peer,
        secret: &Secret,
        messages: &mut Messages,
    ) -> Option<Renewed> {
        let renewed = self.renew_session(secret);
        self.do_begin_session(now, peer, true, messages);
        renewed
    }

    fn do_begin_session(
        &mut self,
        now: Instant,
        peer: Peer,
        replaces: bool,
        messages: &mut Messages,
    ) {
        let Some(session) = &mut self.session else { return };
        session.begin(now, peer);
        messages.session(self.id, SessionUpdate::Agreed(peer, session.own()));
        self.on_session_began(peer, replaces, messages);
    }

    /// What follows from a session that has begun with this peer.
    pub(super) fn on_session_began(&mut self, peer: Peer, replaces: bool, messages: &mut Messages) {
        self.measured = Some(Box::new(Measured::new(self.repair && peer.repairs)));
        self.restarts = true;
        messages.event(Event::Session { connection: self.id, replaces });
    }

    /// There is no session any more, and another one is asked for.
    pub(super) fn forget_session(
        &mut self,
        secret: &Secret,
        messages: &mut Messages,
    ) -> Option<Renewed> {
        let renewed = self.renew_session(secret)?;
        messages.session(self.id, SessionUpdate::Wanted(self.identity()?));
        messages.event(Event::SessionEnd { connection: self.id });
        Some(renewed)
    }

    /// What is known of the peer is of a session that is over. The next one has another identity.
    pub(super) fn renew_session(&mut self, secret: &Secret) -> Option<Renewed> {
        let session = self.session.as_mut()?;
        let gone = session.own().index;
        self.sessions_forgotten += 1;
        session.renew(Identity::derive(secret, self.number, self.sessions_forgotten + 1));
        let next = session.next().index;
        self.reset_session();
        Some(Renewed { gone, next })
    }

    /// What was measured in a session is over with it.
    pub(super) fn reset_session(&mut self) {
        self.measured = None;
        self.parity_before = self.parity_stats();
        self.covers = None;
        self.restarts = true;
        self.all_down_since = None;
        self.calls = 0;
        self.paths.iter_mut().for_each(|(_, path)| path.forget_peer());
    }

    /// Has the peer told at once how a path is.
    pub(super) fn greet_back(&self, path: PathId, messages: &mut Messages) {
        messages.reply(self.id, Reply::Keepalive { path });
    }

    /// Begins the order anew, if a session has begun.
    #[inline(always)]
    pub(super) fn restart_order(&mut self, now: Instant, sink: &mut impl Sink) {
        if self.restarts {
            self.do_restart_order(now, sink);
        }
    }

    #[cold]
    fn do_restart_order(&mut self, now: Instant, sink: &mut impl Sink) {
        self.restarts = false;
        let config = self.order_now();
        let restarts = match self.session_peer() {
            Some(_) => Restarts::Told,
            None => Restarts::Inferred,
        };
        let mut out = delivery!(self, sink);
        self.reorder.set_config(now, config, &mut out);
        self.reorder.restart(now, restarts, &mut out);
        if let Some((repair, deadline)) = self.repair_wait() {
            self.reorder.set_repair_wait(now, repair.min(deadline));
        }
        self.play_out.end(sink, &mut self.delivered);
        self.stream.restart();
        self.paths.iter_mut().for_each(|(_, path)| path.order.restart());
    }

    /// How packets are put in order at present.
    pub(super) fn order_now(&self) -> ReorderConfig {
        match self.session_peer() {
            // Without a window nothing could be held; in the order by evidence it only bounds the memory.
            Some(_) if self.order_in_session.evidence => {
                let window = self.order_in_session.window.max(ReorderConfig::default().window);
                ReorderConfig { window, ..self.order_in_session }
            }
            Some(_) => self.order_in_session,
            None => without_session(self.order_in_session),
        }
    }

    /// Whether a datagram of plain framing, where there can be sessions, has a place in the order. Without one it
    /// is of the time before the session.
    #[cold]
    pub(super) fn accepts_plain(&self, now: Instant) -> Result<bool, Drop> {
        if matches!(self.framing.config, FramingConfig::Extended | FramingConfig::Sealed) {
            return Err(Drop::Framing);
        }
        let began = self.session().filter(|session| session.peer().is_some()).map(Session::began);
        match began {
            None => Ok(true),
            Some(began) if now < began + OVERLAP => Ok(false),
            Some(_) => Err(Drop::Framing),
        }
    }

    /// Notes whether all paths are down. Then the session ends after a while, where plain framing can take over.
    pub(super) fn watch_session(&mut self, now: Instant, any_up: bool) {
        self.watch_handshakes(now, any_up);
        let ends = self.framing.config == FramingConfig::Auto && self.session_peer().is_some();
        if any_up || !ends {
            self.all_down_since = None;
        } else if self.all_down_since.is_none() {
            self.all_down_since = Some(now);
        }
    }

    /// The next deadline of the session.
    #[cold]
    pub(super) fn session_deadline(&self) -> Option<Deadline> {
        let end = self.session_end().map(|at| Deadline { at, timer: Timer::SessionEnd });
        let feedback = self.measured.as_ref().and_then(|measured| measured.deadline());
        let end = Deadline::earlier(end, self.handshake_deadline());
        Deadline::earlier(end, feedback.map(|at| Deadline { at, timer: Timer::Feedback }))
    }

    /// When the session ends unless a path comes up.
    pub(super) fn session_end(&self) -> Option<Instant> {
        self.all_down_since.map(|since| since + END_AFTER)
    }
}
