//! Sealed framing at the receiving half: when handshakes begin, and what follows from them (section 9.3 of
//! `docs/protocol.md`).
//!
//! This half computes them, because their messages arrive here. The transmit half is told what to send, and with what to
//! seal.

use std::time::Duration;

use super::connection::ReceiveHalf;
use super::handshakes::{Handshakes, SealedStatus};
use super::sessions::Sessions;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::session::Peer;
use crate::framing::sealed::cipher::KeyBytes;
use crate::framing::sealed::cookie::PERIOD;
use crate::framing::sealed::epoch::Epoch;
use crate::framing::sealed::handshake::{Agreed, Host};
use crate::framing::sealed::tx::Sealing;
use crate::id::ConnectionId;
use crate::messages::Messages;
use crate::secret::Secret;
use crate::stats::Drop;
use crate::time::Instant;
use crate::timer::Deadline;
use crate::wire::extended::hello::{self, Capabilities, Hello};

/// The time from one initiation to the next.
const INTERVALS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// After a close no initiation is sent for so long.
const AFTER_CLOSE: Duration = Duration::from_secs(2);

impl Sessions {
    /// An index that leads nowhere yet, and leads to a connection from now on.
    pub(super) fn choose_index(&mut self, id: ConnectionId, number: u64, chosen: &mut u64) -> u32 {
        loop {
            *chosen += 1;
            let about = self.secret.about("epoch").number(number).number(*chosen);
            let index = about.output() as u32;
            if index != 0 && !self.indices.contains_key(&index) {
                self.indices.insert(index, id);
                return index;
            }
        }
    }

    /// Does what is due of the handshakes of a connection.
    #[cold]
    pub(super) fn drive(
        &mut self,
        now: Instant,
        id: ConnectionId,
        half: &mut ReceiveHalf,
        messages: &mut Messages,
    ) {
        let Some(handshakes) = &mut half.handshakes else { return };
        handshakes.epochs.expire(now);
        if handshakes.epochs.is_used_up() {
            handshakes.begin_series(now);
        }
        if handshakes.epochs.expires_at().is_some_and(|at| at <= now) {
            half.end_sealed(now, &self.secret, messages);
        }
        self.initiate(now, id, half, messages);
        self.forget_indices(half);
    }

    /// Sends an initiation, if one is due.
    fn initiate(
        &mut self,
        now: Instant,
        id: ConnectionId,
        half: &mut ReceiveHalf,
        messages: &mut Messages,
    ) {
        let own = half.session().map(|session| (session.own().session, session.peer()));
        let addresses = half.framing.plain.addresses();
        let Some(((session, peer), (sender, receiver))) = own.zip(addresses) else { return };
        let (key, number, repair) = (half.key, half.number, half.repair);
        let has_paths = half.paths.iter().any(|(_, path)| !path.leaving);
        let Some(handshakes) = &mut half.handshakes else { return };
        if handshakes.next.is_none_or(|at| now < at) {
            return;
        }
        if !has_paths {
            // Asks when there is a path.
            handshakes.next = None;
            return;
        }
        let interval = INTERVALS[usize::from(handshakes.attempts).min(INTERVALS.len() - 1)];
        handshakes.attempts = handshakes.attempts.saturating_add(1);
        handshakes.next = Some(now + interval);
        if let Some(before) = handshakes.waiting.take() {
            self.indices.remove(&before.hello.index);
        }
        let index = self.choose_index(id, number, &mut handshakes.chosen);
        let hello = Hello {
            version: hello::VERSION,
            capabilities: Capabilities::own(repair),
            session,
            echo: peer.map_or(0, |peer| peer.session),
            sender: receiver,
            receiver: sender,
            key,
            cookie: 0,
            index,
        };
        let cookie = handshakes.cookie.as_deref();
        let cookie = cookie.filter(|(_, since)| now.since(*since) < PERIOD);
        let cookie = cookie.map(|(cookie, _)| cookie);
        let host = self.host.as_deref_mut();
        let begun = host.and_then(|host| host.initiate(now, &handshakes.peer, hello, cookie));
        let Some(begun) = begun else {
            self.indices.remove(&index);
            return;
        };
        messages.initiation(id, begun.message.clone());
        handshakes.waiting = Some(Box::new(begun));
    }

    /// The indices of epochs that are over lead nowhere.
    pub(super) fn forget_indices(&mut self, half: &mut ReceiveHalf) {
        let gone = half.handshakes.as_mut().map(|it| it.epochs.take_gone());
        for index in gone.into_iter().flatten() {
            self.indices.remove(&index);
        }
    }

    /// An own initiation is given up.
    pub(super) fn give_up(&mut self, handshakes: &mut Handshakes) {
        if let Some(waiting) = handshakes.waiting.take() {
            self.indices.remove(&waiting.hello.index);
        }
    }

    /// This host, if it has keys.
    pub(super) fn host(&mut self) -> Result<&mut Host, Drop> {
        self.host.as_deref_mut().ok_or(Drop::UnknownIndex)
    }
}

impl ReceiveHalf {
    /// Whether it accepts nothing but sealed datagrams.
    pub fn is_sealed(&self) -> bool {
        self.handshakes.is_some()
    }

    /// Whether it shows an invitation to its peer and has had no session yet: the peer is silent to one that is used or has
    /// expired.
    pub fn waits_for_invitation(&self) -> bool {
        let handshakes = self.handshakes.as_ref();
        handshakes.is_some_and(|it| it.peer.invitation.is_some() && it.epochs.count() == 0)
    }

    /// How datagrams are sealed; `None` without a session, and where they are not.
    pub fn sealed(&self) -> Option<SealedStatus> {
        let epochs = &self.handshakes.as_ref()?.epochs;
        let cipher = epochs.current()?.cipher;
        Some(SealedStatus { cipher, epoch: epochs.count() })
    }

    /// The next deadline of the handshakes.
    pub(super) fn handshake_deadline(&self) -> Option<Deadline> {
        self.handshakes.as_ref()?.deadline()
    }

    /// An own initiation was answered: its epoch is in use from now on.
    pub(super) fn begin_epoch(
        &mut self,
        now: Instant,
        (own, peer): (Identity, Peer),
        agreed: Agreed,
        secret: &Secret,
        messages: &mut Messages,
    ) {
        let Agreed { seal, open, cipher } = agreed;
        let epoch = Epoch::new(now, (own, peer), (cipher, open), seal.usage(), true);
        let Some(handshakes) = &mut self.handshakes else { return };
        handshakes.epochs.begin_as_initiator(now, epoch);
        self.follow_epoch(now, seal, secret, messages);
    }

    /// The epoch in use is another one. The session continues with it, or another one begins.
    pub(super) fn follow_epoch(
        &mut self,
        now: Instant,
        key: KeyBytes,
        secret: &Secret,
        messages: &mut Messages,
    ) {
        let Some(handshakes) = &mut self.handshakes else { return };
        handshakes.on_epoch();
        let Some(&Epoch { own, peer, cipher, .. }) = handshakes.epochs.current() else { return };
        let continues = self.session().is_some_and(|session| {
            session.peer().is_some_and(|current| current.session == peer.session)
                && session.own().session == own.session
        });
        if continues {
            if let Some(session) = &mut self.session {
                session.continue_as(own, peer);
            }
        } else {
            self.begin_sealed(now, own, peer, secret, messages);
        }
        let begins = (!continues).then_some((peer, own));
        let index = peer.index;
        messages.sealing(self.id, Box::new(Sealing { index, key, cipher, begins }));
    }

    /// The session ends, for lack of keys or because the peer has closed it.
    pub(super) fn end_sealed(&mut self, now: Instant, secret: &Secret, messages: &mut Messages) {
        self.forget_session(secret, messages);
        if let Some(handshakes) = &mut self.handshakes {
            handshakes.clear();
            handshakes.restart_series(now);
        }
    }

    /// The peer has closed the session.
    pub(super) fn close_sealed(&mut self, now: Instant, secret: &Secret, messages: &mut Messages) {
        self.end_sealed(now, secret, messages);
        if let Some(handshakes) = &mut self.handshakes {
            handshakes.restart_series(now + AFTER_CLOSE);
        }
    }

    /// All paths are silent, or one is not: then the peer is asked whether it still has the session.
    pub(super) fn watch_handshakes(&mut self, now: Instant, any_up: bool) {
        let has_session = self.session_peer().is_some();
        let Some(handshakes) = &mut self.handshakes else { return };
        handshakes.was_up = has_session && (handshakes.was_up || any_up);
        let is_silent = handshakes.was_up && !any_up;
        if is_silent && !handshakes.is_silent {
            handshakes.restart_series(now);
        } else if !is_silent && handshakes.is_silent && has_session {
            (handshakes.attempts, handshakes.next) = (0, handshakes.epochs.rekey_at());
        }
        handshakes.is_silent = is_silent;
    }

    /// There is a path more by which the peer can be asked for a session.
    pub(super) fn ask_on_new_path(&mut self, now: Instant) {
        let has_session = self.session_peer().is_some();
        let Some(handshakes) = self.handshakes.as_mut().filter(|_| !has_session) else { return };
        if handshakes.next.is_none() || handshakes.attempts > 2 {
            handshakes.restart_series(now);
        }
    }

    /// Bytes of memory that handshakes take, apart from this value's own size.
    pub(super) fn handshake_memory(&self) -> usize {
        let handshakes = self.handshakes.as_ref();
        handshakes.map_or(0, |it| size_of::<Handshakes>() + it.memory())
    }

    /// The session of an epoch begins. One that there was ends.
    fn begin_sealed(
        &mut self,
        now: Instant,
        own: Identity,
        peer: Peer,
        secret: &Secret,
        messages: &mut Messages,
    ) {
        let Some(session) = &self.session else { return };
        let (replaces, is_next) = (session.peer().is_some(), session.next().session == own.session);
        if is_next {
            self.renew_session(secret);
        } else if replaces {
            self.reset_session();
        }
        if let Some(session) = &mut self.session {
            session.begin_as(now, own, peer);
        }
        self.on_session_began(peer, replaces, messages);
    }
}
