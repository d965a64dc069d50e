//! One path, as far as it is received on.

use std::time::Duration;

use crate::config::PathConfig;
use crate::framing::extended::identity::At;
use crate::framing::plain::path::PlainPath;
use crate::measure::Order;
use crate::path::PathState;
use crate::path::estimator::PathEstimator;
use crate::path::liveness::Liveness;
use crate::rx::missing::Missing;
use crate::rx::quiet::Quiet;
use crate::rx::recorder::Recorder;
use crate::stats::Traffic;
use crate::time::Instant;
use crate::timer::{Deadline, Timer};
use crate::wire::extended::settings::Settings;

/// One path, as far as it is received on.
#[derive(Debug)]
pub(super) struct ReceivePath {
    /// Where the peer's datagrams come from.
    pub(super) origin: At,
    /// The port that the last of them came from that was no inner packet; 0 before the first.
    pub(super) heard_port: u16,
    pub(super) liveness: Liveness,
    /// Until then packets of the peer may come, although the path is not live, or not yet.
    pub(super) lingers: Option<Instant>,
    /// It goes when it lingers no more.
    pub(super) leaving: bool,
    /// What plain framing infers from the peer's keepalives.
    pub(super) plain: PlainPath,
    /// What arrived, by path sequence, in a session.
    pub(super) recorder: Recorder,
    /// What should come by it next.
    pub(super) quiet: Quiet,
    /// How many datagrams the kernel had no room for in the receive buffer of the socket.
    pub(super) overflows: u32,
    /// What of the peer's feedback should have come by it, and has not.
    pub(super) missing: Option<Missing>,
    /// When the peer was last sent something on it because it had fallen silent.
    pub(super) nudged: Instant,
    /// The silence after which it is down, by its settings: without a session, and in one if the peer says how often it sends
    /// path statuses.
    times: (Option<Duration>, Option<Duration>),
    /// How often it does.
    pub(super) peer_interval: Option<Duration>,
    /// How it is set, as far as it has said so.
    pub(super) peer_settings: Option<Box<Settings>>,
    /// The last report, so that only changes are reported.
    pub(super) told: (bool, PathState),
    pub(super) estimator: PathEstimator,
    pub(super) order: Order,
    /// Packets that had come before, by this path or another.
    pub(super) copies: u64,
    pub(super) received: Traffic,
    pub(super) control_received: Traffic,
    pub(super) keepalives_received: u64,
    /// Packets on this path and on the others, when a keepalive came last on a path that the peer has said is down.
    pub(super) passed_over: Option<(u64, u64)>,
    /// Keepalives that were padded to a length, which are not counted to the peer.
    pub(super) probes_received: u64,
}

impl ReceivePath {
    /// A path by which nothing came yet. A peer that is `known_to_speak` sends keepalives, whatever the
    /// path's times.
    pub(super) fn new(config: &PathConfig, known_to_speak: bool) -> Self {
        Self {
            origin: At { socket: config.socket, remote: config.remote },
            heard_port: 0,
            liveness: Liveness::new(config.status, config.dead_time),
            lingers: None,
            leaving: false,
            plain: PlainPath::new(config, known_to_speak),
            recorder: Recorder::default(),
            quiet: Quiet::default(),
            overflows: 0,
            missing: None,
            nudged: Instant::ZERO,
            times: (config.dead_time, config.failover),
            peer_interval: None,
            peer_settings: None,
            told: (false, PathState::Probing),
            estimator: PathEstimator::default(),
            order: Order::default(),
            copies: 0,
            received: Traffic::default(),
            control_received: Traffic::default(),
            keepalives_received: 0,
            probes_received: 0,
            passed_over: None,
        }
    }

    /// Bytes of memory apart from its own size, and from what its order takes.
    pub(super) fn memory(&self) -> usize {
        let settings = self.peer_settings.as_ref().map_or(0, |it| size_of_val(&**it));
        self.recorder.memory() + self.estimator.memory() + settings
    }

    /// Other times. The status is for [`Liveness::on_status`].
    pub(super) fn set(&mut self, config: &PathConfig, known_to_speak: bool) {
        self.origin = At { socket: config.socket, remote: config.remote };
        self.times = (config.dead_time, config.failover);
        self.set_dead_time();
        self.plain.set(config, known_to_speak);
    }

    /// Has the dead time follow the settings and what the peer says.
    pub(super) fn set_dead_time(&mut self) {
        let (dead_time, failover) = self.times;
        let watched = failover.zip(self.peer_interval).filter(|_| dead_time.is_some());
        let in_session = watched.map(|(failover, interval)| failover.max(interval * 7 / 2));
        self.liveness.on_dead_time(in_session.or(dead_time));
    }

    /// The peer has restarted: what was known of its clock and counters means nothing any more.
    pub(super) fn forget_peer(&mut self) {
        self.estimator = PathEstimator::default();
        self.plain.forget_peer();
        (self.recorder, self.missing) = (Recorder::default(), None);
        self.quiet = Quiet::default();
        self.peer_interval = None;
        self.peer_settings = None;
        self.set_dead_time();
    }

    /// An inner packet of the peer arrived, in a datagram of this length. Returns whether that
    /// changes the report about the path.
    #[inline(always)]
    pub(super) fn on_packet(&mut self, now: Instant, len: usize) -> bool {
        self.received.add(len);
        let is_back = self.liveness.on_data(now);
        // A standby path carries only what is pinned to it; or it has been activated, and the message
        // that says so was lost.
        is_back || self.plain.stands_by.take().is_some() || self.told.0 != self.liveness.hearing()
    }

    /// Whether the peer, at this activation epoch, may be sending packets on it, or packets are
    /// still in flight.
    pub(super) fn is_waited_for(&self, now: Instant, calls: u8) -> bool {
        let lingers = self.lingers.is_some_and(|until| now < until);
        (self.liveness.live() || lingers) && self.plain.stands_by != Some(calls)
    }

    /// When it goes silent, or nothing can be on its way any more.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let silent = self.liveness.deadline();
        let silent = silent.map(|at| Deadline { at, timer: Timer::DeadTime });
        let linger = self.lingers.map(|at| Deadline { at, timer: Timer::Linger });
        Deadline::earlier(silent, linger)
    }

    /// Whether it has been left, and nothing comes by it any more.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.leaving && self.lingers.is_none_or(|until| until <= now)
    }

    /// A packet came that had come before. If the peer has `sent_again` what it had sent on another path,
    /// it has counted that as sent on this one.
    pub(super) fn on_copy(&mut self, sent_again: bool) {
        self.copies += 1;
        self.on_uncounted_copy(sent_again);
    }

    /// The same while copies are not counted. A datagram that the network has doubled was sent once.
    pub(super) fn on_uncounted_copy(&mut self, sent_again: bool) {
        if self.recorder.has_repeated() || !sent_again {
            self.estimator.on_copy();
        }
    }
}
