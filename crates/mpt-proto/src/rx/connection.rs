//! The receive half of a connection: what is heard on each path, and the order of what arrives.
//!
//! It owns the state of the paths, because that depends on received datagrams. Information for the
//! transmit half goes out as [`Messages`]. The state of each path is in [`path`](super::path),
//! runtime reconfiguration in [`reconfigure`](super::reconfigure).

use std::net::IpAddr;
use std::time::Duration;

use super::covers::Covers;
use super::handshakes::Handshakes;
use super::measured::Measured;
use super::path::ReceivePath;
use super::playout::{PlayOut, delivery};
use crate::config::{ConnectionConfig, FramingConfig, MAX_WINDOW, ReorderConfig};
use crate::event::Event;
use crate::framing::Rx;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::session::Session;
use crate::id::AcceptId;
use crate::id::ConnectionId;
use crate::id::PathId;
use crate::measure::{Arrival as Came, Budget, Look, Stream};
use crate::messages::{Messages, PathUpdate, Reply};
use crate::path::{DownCause, PathState};
use crate::prefix::Prefix;
use crate::rest::Rest;
use crate::rx::reorder::{Accepted, ReorderBuffer};
use crate::secret::Secret;
use crate::sequence::Seq;
use crate::sink::Sink;
use crate::slots::Slots;
use crate::stats::{Drop, FewDrops, ParityStats, Traffic};
use crate::time::Instant;
use crate::timer::{Deadline, Timer};

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) path: PathId,
    /// When it came to this host: the delay of its path ends here.
    pub(crate) at: Instant,
    /// The type of service of its outer header.
    pub(crate) tos: u8,
    /// The port that it came from.
    pub(crate) port: u16,
    /// The length of the whole datagram.
    pub(crate) len: usize,
}

/// How long a path that we begin to hear may stay without packets before that means that none were
/// sent: longer than most round trips, in which the peer learns of it.
const GRACE: Duration = Duration::from_secs(1);

/// How long after a path is lost what the peer sent on it may come again on others, at the end of a long
/// queue perhaps.
const AGAIN: Duration = Duration::from_secs(1);

/// What one connection needs for receiving.
#[derive(Debug)]
pub struct ReceiveHalf {
    pub(super) id: ConnectionId,
    pub(super) framing: Rx,
    /// The session, if the framing has any.
    pub(super) session: Option<Box<Session>>,
    /// How many connections had been added with this one, and how many sessions this one has forgotten: what its
    /// identity is derived from.
    pub(super) number: u64,
    pub(super) sessions_forgotten: u64,
    /// What the session measures, if there is one.
    pub(super) measured: Option<Box<Measured>>,
    /// The handshakes, in sealed framing.
    pub(super) handshakes: Option<Box<Handshakes>>,
    /// Whether the order begins anew with the next packet, because a session has begun.
    pub(super) restarts: bool,
    /// Since when all paths of a session have been down.
    pub(super) all_down_since: Option<Instant>,
    pub(super) key: Option<u32>,
    /// The template that it was accepted by.
    pub(super) accepted_by: Option<AcceptId>,
    pub(super) paths: Slots<ReceivePath>,
    pub(super) reorder: ReorderBuffer,
    /// Whether losses are repaired, if the peer does so, too.
    pub(super) repair: bool,
    /// How packets are put in order while there is a session; without one nothing is known of flows.
    pub(super) order_in_session: ReorderConfig,
    /// The numbers as they come, before they are put in order.
    pub(super) stream: Stream,
    /// How many of them are looked at.
    pub(super) budget: Budget,
    pub(super) networks: Vec<Prefix>,
    /// The paths on which the peer may be sending, one bit each.
    pub(super) live: u64,
    /// How often the peer has called up paths that stood by, as far as is known.
    pub(super) calls: u8,
    /// Until then the peer may be sending again what it sent on a path that is lost.
    pub(super) again_until: Instant,
    pub(super) play_out: PlayOut,
    pub(super) rest: Rest,
    /// What parity covers, as soon as anything came of that, and what was counted in sessions before.
    pub(super) covers: Option<Box<Covers>>,
    pub(super) parity_before: ParityStats,
    pub(super) delivered: Traffic,
    pub(super) drops: FewDrops,
    /// A packet whose congestion mark was changed: the only one that is copied here.
    pub(super) marked: Vec<u8>,
}

impl ReceiveHalf {
    pub(crate) fn new(
        id: ConnectionId,
        config: &ConnectionConfig,
        accepted_by: Option<AcceptId>,
        addresses: &[IpAddr],
        (secret, number): (&Secret, u64),
    ) -> Self {
        let has_sessions = config.framing != FramingConfig::Plain;
        let identity = |count| Identity::derive(secret, number, count);
        let session = || Box::new(Session::new(identity(0), identity(1)));
        let mut half = Self {
            id,
            framing: Rx::new(config, addresses),
            session: has_sessions.then(session),
            number,
            sessions_forgotten: 0,
            measured: None,
            handshakes: config.peer_keys.clone().map(|keys| Box::new(Handshakes::new(keys))),
            restarts: false,
            all_down_since: None,
            key: config.key,
            accepted_by,
            paths: Slots::default(),
            reorder: ReorderBuffer::new(without_session(config.reorder)),
            repair: config.repairs(),
            order_in_session: config.reorder,
            stream: Stream::default(),
            budget: Budget::default(),
            networks: config.networks.clone(),
            live: 0,
            calls: 0,
            again_until: Instant::ZERO,
            play_out: PlayOut::default(),
            rest: Rest::default(),
            covers: None,
            parity_before: ParityStats::default(),
            delivered: Traffic::default(),
            drops: FewDrops::default(),
            marked: Vec::new(),
        };
        for (path, config) in (0..).map(PathId).zip(&config.paths) {
            half.add_path(path, config);
        }
        half
    }

    /// By what its datagrams are known: its number, its GRE key, and whether by the port too.
    pub(crate) fn origin(&self) -> (ConnectionId, Option<u32>, bool) {
        (self.id, self.key, self.accepted_by.is_some())
    }

    /// The template by which it was accepted.
    pub fn accepted_by(&self) -> Option<AcceptId> {
        self.accepted_by
    }

    /// The peer's tunnel addresses.
    pub(crate) fn peer(&self) -> &[IpAddr] {
        self.framing.peer()
    }

    /// Its paths, those included that have been left and from which something may still come.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + use<'_> {
        self.paths.iter().map(|(index, _)| PathId(index as u8))
    }

    /// Looks at a number as it came, the reorder buffer having judged whose count it is of.
    pub(super) fn measure(
        &mut self,
        now: Instant,
        path: PathId,
        seq: Seq,
        judged: Result<Accepted, Drop>,
    ) {
        match self.budget.look(now) {
            Look::On => {}
            Look::Restarted => {
                self.stream.pause();
                self.paths.iter_mut().for_each(|(_, path)| path.order.restart());
            }
            Look::Away => {
                if judged == Err(Drop::Duplicate) {
                    let sent_again = self.was_sent_again(now);
                    self.paths[path.index()].on_uncounted_copy(sent_again);
                }
                return;
            }
        }
        let arrival = match judged {
            Err(Drop::Stray) => return,
            Ok(Accepted::Restart { .. } | Accepted::Return) => {
                self.stream.restart();
                self.stream.on_arrival(now, seq);
                Came::Restart
            }
            _ => self.stream.on_arrival(now, seq),
        };
        if arrival == Came::Restart {
            self.paths.iter_mut().for_each(|(_, path)| path.order.restart());
        }
        match arrival {
            Came::First | Came::Restart => self.paths[path.index()].order.on_arrival(now, seq),
            Came::Duplicate => {
                let sent_again = self.was_sent_again(now);
                self.paths[path.index()].on_copy(sent_again);
            }
            Came::Stray => {}
        }
    }

    /// Whether the peer has counted a packet as sent that comes for the second time: after a path was lost, and always
    /// in a session, where packets go by several paths at once in trains, as repairs, and as duplicates.
    #[cold]
    fn was_sent_again(&self, now: Instant) -> bool {
        now < self.again_until || self.session.is_some()
    }

    /// The next deadline of this half.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let hold = self.reorder.deadline().map(|at| Deadline { at, timer: Timer::MaxDelay });
        let mut first = hold;
        if self.session.is_some() {
            first = Deadline::earlier(first, self.session_deadline());
            let play_out = self.play_out.deadline();
            let play_out = play_out.map(|at| Deadline { at, timer: Timer::PlayOut });
            first = Deadline::earlier(first, play_out);
        }
        let paths = self.paths.iter().map(|(_, path)| path.deadline());
        paths.fold(first, Deadline::earlier)
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        sink: &mut impl Sink,
        messages: &mut Messages,
    ) {
        for (_, path) in self.paths.iter_mut() {
            path.liveness.on_timeout(now);
        }
        self.tell(now, sink, messages);
        self.give_feedback(now, messages);
        self.play_out.release(now, sink, &mut self.delivered);
        let mut sink = delivery!(self, sink);
        self.reorder.on_timeout(now, &mut sink);
        self.rest(now);
    }

    /// Reports what changed on the paths since the last report, for each path first whether it is
    /// heard and then the resulting state.
    ///
    /// The peer may send on a path as soon as it knows that we hear it, and packets sent before
    /// either end stopped using the path are still in flight. In both cases the path lingers, so
    /// that packets in flight on a slow path are not taken for lost.
    pub(crate) fn tell(&mut self, now: Instant, sink: &mut impl Sink, messages: &mut Messages) {
        let (connection, announces) = (self.id, self.framing.announces());
        let max_delay = self.reorder.config().max_delay;
        let mut live = 0;
        for (index, path) in self.paths.iter_mut() {
            let id = PathId(index as u8);
            let (hearing, state) = (path.liveness.hearing(), path.liveness.state());
            let was_live = self.live & 1 << index != 0;
            if path.liveness.live() {
                path.lingers = None;
            } else if hearing && !path.told.0 {
                path.lingers = Some(now + GRACE.max(max_delay));
            } else if was_live && path.liveness.is_left() && state != path.told.1 {
                path.lingers = Some(now + max_delay);
            }
            if path.lingers.is_some_and(|until| until <= now) && !path.leaving {
                path.lingers = None;
            }
            if hearing != path.told.0 {
                messages.update(connection, PathUpdate::Hearing { path: id, hearing });
            }
            if announces && (hearing, state) != path.told {
                messages.reply(connection, Reply::Keepalive { path: id });
            }
            if state != path.told.1 {
                messages.update(connection, PathUpdate::State { path: id, state });
                if matches!(state, PathState::Down(DownCause::Absent | DownCause::PeerLost)) {
                    self.again_until = now + AGAIN;
                    self.reorder.expect_copies(self.again_until);
                }
                let (from, to) = (path.told.1, state);
                messages.event(Event::Path { connection, path: id, from, to });
            }
            path.told = (hearing, state);
            live |= u64::from(path.is_waited_for(now, self.calls)) << index;
        }
        let any_up = self.paths.iter().any(|(_, path)| path.told.1 == PathState::Up);
        self.watch_session(now, any_up);
        if live != self.live {
            self.live = live;
            let mut sink = delivery!(self, sink);
            self.reorder.set_live(now, live, &mut sink);
        }
    }
}

/// The order of packets that come without a session.
pub(super) fn without_session(config: ReorderConfig) -> ReorderConfig {
    // So many are held only where the peer tells how long that is worth it.
    let is_larger = config.window > MAX_WINDOW;
    let window = if is_larger { ReorderConfig::default().window } else { config.window };
    ReorderConfig { evidence: false, window, ..config }
}
