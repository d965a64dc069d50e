//! One path, as far as it is received on.

use std::time::Duration;

use crate::config::PathConfig;
use crate::measure::Order;
use crate::path::PathState;
use crate::path::estimator::{OVERTAKEN, PathEstimator, is_before};
use crate::path::liveness::Liveness;
use crate::stats::Traffic;
use crate::time::Instant;
use crate::timer::{Deadline, Timer};

/// For so many microseconds, 1 s, a keepalive may have been overtaken by another on the same path. A
/// peer whose clock goes back by more has started anew.
pub(super) const OUT_OF_ORDER: u32 = 1_000_000;

/// One path, as far as it is received on.
#[derive(Debug)]
pub(super) struct ReceivePath {
    pub(super) liveness: Liveness,
    /// Until then packets of the peer may come, although the path is not live, or not yet.
    pub(super) lingers: Option<Instant>,
    /// It goes when it lingers no more.
    pub(super) leaving: bool,
    /// When the peer said, by its own clock, that it has lost the path, unless it has come back since.
    pub(super) lost_at: Option<u32>,
    /// The peer's number for it.
    pub(super) peer_id: Option<u8>,
    /// The number of calls with which the peer said last that it stands by. If that is the last of all
    /// calls nobody waits for packets of this path: none are sent.
    pub(super) stands_by: Option<u8>,
    /// Whether keepalives mean anything here. Where none are sent and none are missed, the peer is
    /// of a kind that has none, and a forged one must not speak for it.
    pub(super) speaks_keepalive: bool,
    /// What was last told, so that only changes are.
    pub(super) told: (bool, PathState),
    pub(super) longest: Longest,
    pub(super) estimator: PathEstimator,
    pub(super) order: Order,
    /// Packets that had come before, by this path or another.
    pub(super) copies: u64,
    pub(super) received: Traffic,
    pub(super) keepalives_received: u64,
}

/// The longest datagram of a keepalive interval: told when one is longer than all before it, and so once
/// in each interval at least.
#[derive(Debug)]
pub(super) struct Longest {
    /// `None` where no keepalive could tell it to the peer.
    pub(super) every: Option<Duration>,
    len: u16,
    until: Instant,
}

impl ReceivePath {
    /// A path by which nothing came yet. A peer that is `known_to_speak` sends keepalives, whatever the
    /// path's times.
    pub(super) fn new(config: &PathConfig, known_to_speak: bool) -> Self {
        Self {
            liveness: Liveness::new(config.status, config.dead_time),
            lingers: None,
            leaving: false,
            lost_at: None,
            peer_id: None,
            stands_by: None,
            speaks_keepalive: speaks_keepalive(config) || known_to_speak,
            told: (false, PathState::Probing),
            longest: Longest { every: config.keepalive, len: 0, until: Instant::ZERO },
            estimator: PathEstimator::default(),
            order: Order::default(),
            copies: 0,
            received: Traffic::default(),
            keepalives_received: 0,
        }
    }

    /// Other times. The status is for [`Liveness::on_status`].
    pub(super) fn set(&mut self, config: &PathConfig, known_to_speak: bool) {
        self.liveness.on_dead_time(config.dead_time);
        self.longest.every = config.keepalive;
        self.speaks_keepalive = speaks_keepalive(config) || known_to_speak;
    }

    /// An inner packet of the peer's came, in a datagram of this length. Returns whether that changes
    /// what is to be told of the path.
    #[inline(always)]
    pub(super) fn on_packet(&mut self, now: Instant, len: usize) -> bool {
        self.received.add(len);
        self.liveness.on_heard(now);
        // Whoever stands by sends only what is pinned to it; or has been called up, and word of that was
        // lost.
        self.stands_by.take().is_some() || self.told.0 != self.liveness.hearing()
    }

    /// Whether the peer, who has called up paths so often, may be sending packets on it, or something that
    /// it sent is still on its way.
    pub(super) fn is_waited_for(&self, now: Instant, calls: u8) -> bool {
        let lingers = self.lingers.is_some_and(|until| now < until);
        (self.liveness.live() || lingers) && self.stands_by != Some(calls)
    }

    /// Whether the peer sent a keepalive with this time before it lost the path: that was on its way
    /// while word of the loss came by another, and does not mean that the path is back.
    pub(super) fn is_from_before_loss(&self, time: Option<u32>) -> bool {
        self.lost_at.zip(time).is_some_and(|(lost, time)| is_before(time, lost, OVERTAKEN))
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
        if !sent_again {
            self.estimator.on_copy();
        }
    }
}

impl Longest {
    /// A datagram arrived. Returns its length if it is to be told.
    #[inline(always)]
    pub(super) fn on_arrived(&mut self, now: Instant, len: usize) -> Option<u16> {
        // No datagram is longer than UDP's own length can say.
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        if len <= self.len && now < self.until {
            return None;
        }
        let every = self.every?;
        if now >= self.until {
            self.until = now + every;
        }
        self.len = len;
        Some(len)
    }
}

/// Whether keepalives are sent, or missed.
fn speaks_keepalive(config: &PathConfig) -> bool {
    config.keepalive.is_some() || config.dead_time.is_some()
}
