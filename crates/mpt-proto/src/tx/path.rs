//! One path, as far as it is sent on.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use super::idle::Idle;
use super::opened::Opened;
use super::weight::PathWeight;
use crate::change::Surcharge;
use crate::config::PathConfig;
use crate::framing::extended::tx::WirePath;
use crate::framing::plain::arrived::Arrived;
use crate::framing::plain::black_hole::BlackHoleDetector;
use crate::id::{PathId, SocketId};
use crate::path::PathStatus;
use crate::path::breaker::Breaker;
use crate::path::estimator::Heard;
use crate::path::feedback::PathFeedback;
use crate::path::metrics::PathMetrics;
use crate::path::mtu::PathMtu;
use crate::path::patience::Patience;
use crate::path::rate::RateEstimator;
use crate::path::silence::Silence;
use crate::pins::Pins;
use crate::scheduler::{Paths, Share};
use crate::slots::Slots;
use crate::stats::Traffic;
use crate::time::Instant;
use crate::tx::repair::{Overtaken, Spare};

/// A keepalive may be early by this part of its interval, where that saves a wake-up.
const EARLY: u32 = 16;

/// The round trip of a path that nothing is known of.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(50);

/// A path that is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) since: Instant,
    /// The first path sequence that was sent since.
    pub(super) sequence: u32,
    /// The highest path sequence that was known to have arrived then, and how many had.
    pub(super) told: (u32, u32),
    /// Whether what was sent before arrives, as it was left because nothing comes back by it: that is not sent again.
    pub(super) arrives: bool,
}

#[derive(Debug)]
pub(super) struct TransmitPath {
    pub(super) status: PathStatus,
    /// How the peer knows it in extended framing.
    pub(super) wire: WirePath,
    /// Since when no data was sent on it.
    pub(super) idle: Idle,
    pub(super) weight: PathWeight,
    pub(super) priority: u8,
    pub(super) pins: Pins,
    /// The classes that may not take it, one bit each.
    pub(super) refuses: u32,
    pub(super) up: bool,
    /// Whether this host has what it needs to send on it.
    pub(super) present: bool,
    /// It is removed when it has notified the peer.
    pub(super) leaving: bool,
    pub(super) hearing: bool,
    pub(super) keepalive: Option<Duration>,
    /// How long it may be silently dead in a session, and how often the peer sends path statuses, if it says so.
    pub(super) failover: Option<Duration>,
    pub(super) peer_interval: Option<Duration>,
    /// The configured silence after which it is down.
    pub(super) own_dead_time: Option<Duration>,
    /// How many path statuses were sent since the session began or settings changed.
    pub(super) statuses: u32,
    /// When the next keepalive is due; never while the path is off.
    pub(super) next_keepalive: Option<Instant>,
    /// What its keepalives report about the peer's datagrams.
    pub(super) arrived: Arrived,
    /// What the peer's keepalives report about ours.
    pub(super) black_hole: BlackHoleDetector,
    /// The length of the longest datagram that lately arrived, by the peer's keepalives since somebody asked.
    pub(super) carried: Option<u16>,
    /// The sending time that the next keepalive echoes.
    pub(super) heard: Option<Heard>,
    pub(super) metrics: PathMetrics,
    /// What the peer reports of it, in a session.
    pub(super) feedback: PathFeedback,
    /// Whether it is silent, whether it was left because of that, and what follows from that when it answers.
    pub(super) silence: Silence,
    pub(super) left: Option<Left>,
    /// The first path sequence that was sent since it was in doubt last.
    pub(super) doubted_from: u32,
    /// Whether nothing comes back by it, as feedback by other paths shows.
    pub(super) unheard: bool,
    /// When it is probed next, as long as it is left or went down then.
    pub(super) probe_at: Instant,
    pub(super) patience: Patience,
    /// Whether it is stopped because it loses too much.
    pub(super) breaker: Breaker,
    /// What may be sent again of what it has lost, and twice of what it carries.
    pub(super) spare: Spare,
    /// By how much packets are overtaken on it.
    pub(super) overtaken: Overtaken,
    /// Until when it is paced, and at what rate in bytes per second, because it takes over what another path has carried.
    pub(super) takes_over: Option<(Instant, u64)>,
    pub(super) sent: Traffic,
    /// How many of these had been sent on another path before.
    pub(super) resent: u64,
    pub(super) keepalives_sent: u64,
    /// Path challenges that were padded to a length.
    pub(super) probes: u32,
    /// What it carries in a session, and whether that was told since it changed.
    pub(super) mtu: PathMtu,
    pub(super) mtu_told: Option<usize>,
    /// How fast it may be sent on, where paths are chosen by that.
    pub(super) rate: RateEstimator,
    /// Its rate in bytes per second, if that is configured.
    pub(super) fixed_rate: Option<u64>,
    /// How long a packet has to wait for the other paths before it takes this one.
    pub(super) price: Duration,
    /// What it costs beyond that at present.
    pub(super) surcharge: Surcharge,
    /// What was sent at the beginning of the session to show what it is like.
    pub(super) opened: Opened,
    /// The host's socket and the peer's address that it connects.
    pub(super) ends: (SocketId, SocketAddr),
}

impl TransmitPath {
    /// The path has nothing to send, if so.
    #[inline]
    pub(super) fn on_idle_if(&mut self, is_idle: bool) {
        if is_idle {
            self.rate.on_idle(self.wire.next);
        }
    }

    pub(super) fn new(
        config: &PathConfig,
        header_len: usize,
        wire: WirePath,
        now: Instant,
    ) -> Self {
        let available = config.status == PathStatus::Available;
        Self {
            status: config.status,
            wire,
            idle: Idle::default(),
            weight: PathWeight::new(config),
            priority: config.priority,
            pins: config.pins.clone(),
            refuses: config.refuses,
            up: false,
            present: true,
            leaving: false,
            hearing: false,
            keepalive: config.keepalive,
            failover: config.failover,
            peer_interval: None,
            own_dead_time: config.dead_time,
            statuses: 0,
            next_keepalive: config.keepalive.filter(|_| available).map(|_| now),
            arrived: Arrived::new(now),
            black_hole: BlackHoleDetector::new(header_len),
            carried: None,
            heard: None,
            metrics: PathMetrics::default(),
            feedback: PathFeedback::default(),
            silence: Silence::default(),
            left: None,
            doubted_from: 0,
            unheard: false,
            probe_at: Instant::ZERO,
            patience: Patience::default(),
            breaker: Breaker::default(),
            spare: Spare::default(),
            overtaken: Overtaken::default(),
            takes_over: None,
            sent: Traffic::default(),
            resent: 0,
            keepalives_sent: 0,
            probes: 0,
            mtu: PathMtu::new(header_len),
            mtu_told: None,
            rate: RateEstimator::default(),
            fixed_rate: config.rate,
            price: Duration::from_millis(config.price.into()),
            surcharge: Surcharge::default(),
            opened: Opened::default(),
            ends: (config.socket, config.remote),
        }
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.rate.memory() + self.mtu.memory()
    }

    /// A session begins: nothing is known of what the path does to its datagrams.
    pub(super) fn begin_session(&mut self, now: Instant) {
        self.feedback = PathFeedback::default();
        self.rate = RateEstimator::default();
        self.breaker = Breaker::default();
        self.opened = Opened::default();
        (self.silence, self.left, self.unheard) = (Silence::default(), None, false);
        self.spare = Spare::default();
        self.overtaken = Overtaken::default();
        self.statuses = 0;
        self.mtu.resume(now);
    }

    /// Whether its next keepalive is due, or if `early` will be within a sixteenth of the interval.
    pub(super) fn is_due(&self, now: Instant, early: bool) -> bool {
        let margin =
            if early { self.interval().unwrap_or_default() / EARLY } else { Duration::ZERO };
        self.next_keepalive.is_some_and(|at| at <= now + margin)
    }

    /// How often keepalives go, or path statuses in their place: these as seldom as the peer's.
    pub(super) fn interval(&self) -> Option<Duration> {
        let watched = self.failover.zip(self.peer_interval).filter(|_| self.keepalive.is_some());
        let in_session = watched.map(|(own, peer)| PathConfig::interval(own).max(peer));
        in_session.or(self.keepalive)
    }

    /// How often path statuses would go if the peer were no slower, as they say it.
    pub(super) fn told_interval(&self) -> Option<NonZeroU16> {
        let interval = self.failover.map(PathConfig::interval).or(self.keepalive);
        let millis = interval.filter(|_| self.keepalive.is_some())?.as_micros().div_ceil(1000);
        NonZeroU16::new(u16::try_from(millis).unwrap_or(u16::MAX))
    }

    /// Whether it carries inner packets. One that goes off carries none from that moment on, whatever
    /// the receive half said of it before it knew.
    pub(super) fn usable(&self) -> bool {
        self.up && self.present && self.status == PathStatus::Available
    }

    /// Whether it carries what follows: it is usable, not left because it is silent, and not stopped because it loses too much.
    pub(super) fn carries(&self) -> bool {
        self.usable() && self.left.is_none() && !self.breaker.is_stopped()
    }

    /// The least round trip, as far as it is known.
    pub(super) fn round_trip(&self) -> Duration {
        self.feedback.round_trip().map_or(ROUND_TRIP, |trip| trip.min)
    }

    /// The delay from here to the peer: arrival minus send timestamp, in microseconds, modulo 2^32. What a flow that does
    /// not fill the path delays itself by is no part of it.
    pub(super) fn delay(&self) -> Option<u32> {
        let delay = self.feedback.delay()?;
        Some(if self.rate.is_open() { delay.least } else { delay.mean })
    }

    /// The bytes of the IP packet that carries a datagram of this length.
    pub(super) fn wire_len(&self, datagram: usize) -> usize {
        datagram + if self.ends.1.is_ipv4() { 28 } else { 48 }
    }

    pub(super) fn share(&self, path: PathId) -> Share<'_> {
        Share {
            path,
            weight: self.weight.in_force(),
            tier: (self.surcharge.last_resort, self.priority),
            pins: &self.pins,
        }
    }

    /// How long a packet has to wait for the other paths before it takes this one, by its settings and its surcharge.
    pub(super) fn cost(&self) -> Duration {
        self.price + Duration::from_millis(self.surcharge.price.into())
    }

    /// Whether hellos can be sent on it.
    pub(super) fn is_open(&self) -> bool {
        self.present && self.status == PathStatus::Available && !self.leaving
    }

    /// Has the next keepalive sent at once, on a path that sends any.
    pub(super) fn keepalive_now(&mut self, now: Instant) {
        if self.present && self.status == PathStatus::Available {
            self.next_keepalive = self.keepalive.map(|_| now);
        }
    }
}

impl Paths for Slots<TransmitPath> {
    fn metrics(&self, path: PathId) -> PathMetrics {
        self[path.index()].metrics
    }
}
