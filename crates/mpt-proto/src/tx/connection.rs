//! The transmit half of a connection: which path, which number, and the keepalives.
//!
//! Only this half allocates sequence numbers. Information of the receive half comes as
//! [`Message`](crate::Message)s.

use std::net::IpAddr;
use std::time::Duration;

use super::beyond::Beyond;
use super::copies::FeedbackCopies;
use super::doubts::Doubts;
use super::path::TransmitPath;
use super::silent::FailOver;
use super::stages::Paced;
use super::told::Told;
use crate::class::Classes;
use crate::config::{ConnectionConfig, SchedulerConfig};
use crate::framing::datagram::Item;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::tx::WirePath;
use crate::framing::{Stamp, Tx};
use crate::id::PathId;
use crate::path::metrics::PathMetrics;
use crate::rest::Rest;
use crate::scheduler::{Paths, Scheduler};
use crate::slots::Slots;
use crate::stats::{ConnectionStats, Drop, FewDrops, PathStats, Traffic};
use crate::time::Instant;
use crate::token_bucket::TokenBucket;
use crate::tx::by_weight::ByWeight;
use crate::tx::greeting::Greeting;
use crate::tx::highest::HighestRate;
use crate::tx::repair::Repair;
use crate::tx::retransmit::LossWindow;
use crate::tx::run::Run;
use crate::tx::transmit::{Keep, TransmitKind};
use crate::wire::extended::NO_PATH;
use crate::wire::extended::feedback::Block;
use crate::wire::inner;
use crate::wire::keepalive::Activation;

/// What one connection needs for sending.
#[derive(Debug)]
pub struct TransmitHalf {
    pub(super) framing: Tx,
    /// How a session is asked for, if the framing has any.
    pub(super) greeting: Option<Greeting>,
    /// The path id of the path added last, and the highest path sequence of those that are gone.
    pub(super) last_wire: WirePath,
    /// A handshake initiation, since when it waits, and the paths on which it is yet to be sent, one bit each.
    pub(super) initiation: Option<(Box<[u8]>, Instant, u64)>,
    /// Whether beacons are sent, because there is a session.
    pub(super) has_beacons: bool,
    /// When they are due, if data was sent.
    pub(super) beacons_at: Option<Instant>,
    /// What arrived, to be reported to the peer, since when that waits, and the number of the next feedback, with the path id of the
    /// last one.
    pub(super) reports: Vec<Block>,
    pub(super) reports_at: Option<Instant>,
    pub(super) feedback_number: (u16, Option<u8>),
    pub(super) copies: FeedbackCopies,
    pub(super) fail_over: FailOver,
    /// Paths that may have ceased to deliver.
    pub(super) doubts: Doubts,
    /// Whether copies of what is sent are kept for retransmission.
    pub(super) keeps: bool,
    /// A path that has been lost, and what of that which was sent on it is in doubt.
    pub(super) lost: Option<(PathId, LossWindow)>,
    pub(super) scheduler: Scheduler,
    pub(super) run: Run,
    /// What the paths carried together of late.
    pub(super) highest_rate: HighestRate,
    pub(super) policy: SchedulerConfig,
    /// Whether fewer acknowledgements of beginning TCP connections are sent.
    pub(super) thins_acks: bool,
    /// Whether bulk flows may be given equal delays.
    pub(super) equalises: bool,
    pub(super) by_weight: ByWeight,
    /// Whether paths compete with others that keep a queue.
    pub(super) competes: bool,
    /// Whether a path is stopped that loses too much.
    pub(super) breaks: bool,
    /// Paths that were stopped, with the percent that was lost, or are used again since this was last asked.
    pub(super) stops: Vec<(PathId, Option<u8>)>,
    /// Whether losses are repaired, if the peer does so, too.
    pub(super) repairs: bool,
    pub(super) repair: Repair,
    pub(super) classes: Classes,
    /// What waits for the paths, where they are chosen by earliest arrival and there is a session.
    pub(super) paced: Option<Box<Paced>>,
    /// Packets that were marked in place of being dropped.
    pub(super) marked: u64,
    pub(super) paths: Slots<TransmitPath>,
    /// It is removed when its last path has notified the peer.
    pub(super) ending: bool,
    /// Its host stops.
    pub(super) stopping: bool,
    /// How often a path that stood by has been called up ([`Activation::calls`]).
    pub(super) calls: u8,
    /// How often announcements on all paths are permitted: a burst of 8, and then ten per second.
    pub(super) volley: TokenBucket,
    /// Rate limit for retransmissions triggered by the peer's loss reports: a burst of 4, and then
    /// one per second.
    pub(super) words: TokenBucket,
    /// How often a weight that the peer announces is obeyed: 8 times, and then once per second.
    pub(super) weights: TokenBucket,
    /// The lost path that was reported last.
    pub(super) told_lost: usize,
    /// Own and the peer's tunnel address, as keepalives name them.
    pub(super) addresses: (IpAddr, IpAddr),
    /// The configured key, which hellos name.
    pub(super) key: Option<u32>,
    pub(super) told: Told,
    pub(super) sent: Traffic,
    pub(super) beyond: Beyond,
    pub(super) drops: FewDrops,
    pub(super) rest: Rest,
}

impl TransmitHalf {
    pub(crate) fn new(
        config: &ConnectionConfig,
        addresses: (IpAddr, IpAddr),
        own: Identity,
        now: Instant,
    ) -> Self {
        let mut half = Self {
            framing: Tx::new(config),
            greeting: Greeting::new(config.framing, own),
            last_wire: WirePath { id: NO_PATH - 1, next: 0 },
            initiation: None,
            has_beacons: false,
            beacons_at: None,
            reports: Vec::new(),
            reports_at: None,
            feedback_number: (0, None),
            copies: FeedbackCopies::default(),
            fail_over: FailOver::default(),
            doubts: Doubts::default(),
            keeps: false,
            lost: None,
            scheduler: Scheduler::new(config.scheduler),
            run: Run::default(),
            highest_rate: HighestRate::default(),
            policy: config.scheduler,
            thins_acks: config.thin_acks,
            equalises: config.equalise,
            by_weight: ByWeight::default(),
            competes: config.compete,
            breaks: config.breaker,
            stops: Vec::new(),
            repairs: config.repairs(),
            repair: Repair::default(),
            classes: Classes::new(&config.classes),
            paced: None,
            marked: 0,
            paths: Slots::default(),
            ending: false,
            stopping: false,
            calls: 0,
            volley: TokenBucket::new(8, Duration::from_millis(100)),
            words: TokenBucket::new(4, Duration::from_secs(1)),
            weights: TokenBucket::new(8, Duration::from_secs(1)),
            told_lost: 0,
            addresses,
            key: config.key,
            told: Told { reorder: config.reorder, ..Told::default() },
            sent: Traffic::default(),
            beyond: Beyond::default(),
            drops: FewDrops::default(),
            rest: Rest::default(),
        };
        for (id, path) in (0..).map(PathId).zip(&config.paths) {
            half.add_path(id, path, now);
        }
        half
    }

    /// The paths of the connection.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + use<'_> {
        self.paths.iter().map(|(index, _)| PathId(index as u8))
    }

    /// How many bytes of header each inner packet gets, at the most: where the framing is negotiated, the
    /// longer header counts.
    pub fn header_len(&self) -> usize {
        self.framing.largest_overhead()
    }

    /// Whether the peer has just proved to answer no hello: said once.
    pub(crate) fn take_unanswered(&mut self) -> bool {
        self.greeting.as_mut().is_some_and(Greeting::take_unanswered)
    }

    /// The path id by which the peer knows a path.
    pub(crate) fn wire_id(&self, path: PathId) -> Option<u8> {
        self.paths.get(path.index()).map(|path| path.wire.id)
    }

    /// Whether datagrams are sent in a session of extended framing.
    pub fn has_session(&self) -> bool {
        self.framing.index().is_some()
    }

    /// Whether the peer was asked for a session and has left all hellos without an answer.
    pub fn is_unanswered(&self) -> bool {
        self.greeting.as_ref().is_some_and(Greeting::is_unanswered)
    }

    /// A path's share of packets: the configured one, or the one that the peer announces if it
    /// applies.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn weight(&self, path: PathId) -> u16 {
        self.paths[path.index()].weight.in_force()
    }

    /// Whether a path is up but on standby, because one of a better priority carries.
    pub fn standby(&self, path: PathId) -> bool {
        self.scheduler.is_standby(path)
    }

    /// What was sent and what could not be; the rest is known to the receive half.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats { sent: self.sent, drops: self.drops.all(), ..ConnectionStats::default() }
    }

    /// What was sent beyond inner packets.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// What was sent on a path; the rest is known to the receive half.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        let &TransmitPath { sent, resent, keepalives_sent, .. } = &self.paths[path.index()];
        PathStats { sent, resent, keepalives_sent, ..PathStats::default() }
    }

    /// How often keepalives go on a path, or path statuses in their place; `None` if there are none.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn keepalive_interval(&self, path: PathId) -> Option<Duration> {
        self.paths[path.index()].interval()
    }

    /// What is known of a path by this end as its sender.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn path_metrics(&self, path: PathId) -> PathMetrics {
        self.paths.metrics(path)
    }

    /// Whether any path can carry inner packets.
    pub(crate) fn has_usable_path(&self) -> bool {
        self.paths.iter().any(|(_, path)| path.usable())
    }

    /// Picks the path for an inner packet and stamps it. One for which there is no path takes no number.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Instant, item: &Item<'_>) -> Option<(PathId, Stamp)> {
        let chosen = match self.run.is_fast() {
            true => self.select_in_run(now, item),
            false => self.scheduler.select(now, item, &self.paths),
        };
        let Some(path) = chosen else {
            self.drops.add(Drop::NoPath);
            return None;
        };
        let sender = &mut self.paths[path.index()];
        let mut stamp = self.framing.stamp(now, item, &mut sender.wire);
        let len = stamp.overhead() + item.packet.len();
        sender.black_hole.on_sent(len);
        if stamp.is_extended() {
            if self.by_weight.holds(item) {
                stamp = stamp.equalised();
            }
            sender.idle.on_data(now);
            sender.mtu.on_data(now, len);
        }
        Some((path, stamp))
    }

    /// Whether copies of what it transmits now are kept.
    #[inline(always)]
    pub(super) fn keep(&self) -> Keep {
        match (self.is_repaired(), self.keeps) {
            (true, _) => Keep::UntilTold(None),
            // There is another path to send them on.
            (false, true) => Keep::Briefly,
            (false, false) => Keep::Not,
        }
    }

    /// Selects the path of a retransmission. `None` if there is none, or if the receiver may no
    /// longer recognise it as a duplicate.
    pub(crate) fn retransmit(
        &mut self,
        now: Instant,
        packet: &[u8],
        stamp: &Stamp,
    ) -> Option<(PathId, Stamp)> {
        let inner = inner::parse(packet)?;
        let item = Item::new(packet, &inner);
        let path = match self.scheduler.earliest().filter(|_| self.paced.is_some()) {
            Some(earliest) => match self.class_of(packet).and_then(|(it, _)| self.allowed(it)) {
                Some(allowed) => earliest.within(allowed).soonest(now, packet.len())?,
                None => earliest.soonest(now, packet.len())?,
            },
            None => self.scheduler.select(now, &item, &self.paths)?,
        };
        let path_state = &mut self.paths[path.index()];
        let stamp = self.framing.restamp(now, stamp, &mut path_state.wire)?;
        path_state.resent += 1;
        path_state.black_hole.on_sent(stamp.overhead() + packet.len());
        Some((path, stamp))
    }

    /// Datagrams with inner packets left this host on a path, `bytes` of UDP payload in all.
    pub(crate) fn on_sent(
        &mut self,
        path: PathId,
        kind: TransmitKind,
        datagrams: Traffic,
        egress_rate: Option<u64>,
    ) {
        let overhead = self.framing.overhead() as u64;
        if kind == TransmitKind::Inner {
            self.sent.packets += datagrams.packets;
            self.sent.bytes += datagrams.bytes.saturating_sub(datagrams.packets * overhead);
        }
        if let Some(path) = self.paths.get_mut(path.index()) {
            self.beyond.on_sent(kind, datagrams, [path.wire_len(0), overhead as usize]);
            path.metrics.egress_rate = egress_rate;
            if kind != TransmitKind::Control {
                path.sent += datagrams;
            }
        }
    }

    /// A path that has been lost since this was last asked, and what of that which was sent on it is in
    /// doubt.
    pub(crate) fn take_lost(&mut self) -> Option<(PathId, LossWindow)> {
        self.lost.take()
    }

    /// Paths that were stopped, with the percent that was lost, or are used again since this was last asked.
    pub(crate) fn take_stops(&mut self) -> Vec<(PathId, Option<u8>)> {
        std::mem::take(&mut self.stops)
    }

    /// Whether the peer may be sent the same datagram twice.
    pub(super) fn recognises_copies(&self) -> bool {
        self.framing.recognises_copies()
    }

    /// The paths by which packets go that are chosen by earliest arrival, one bit each.
    fn carried(&self) -> u64 {
        let Some(earliest) = self.scheduler.earliest() else { return 0 };
        let carry = self.paths.iter().filter(|(index, _)| earliest.has(PathId(*index as u8)));
        carry.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Passes the paths and their shares to the scheduler. The activation of a standby path is
    /// announced to the peer at once, on all paths.
    pub(super) fn reschedule(&mut self, now: Instant) {
        self.stop_runs();
        let stood_by = self.scheduler.standby();
        let ready = self.framing.is_ready();
        let carried = self.carried();
        // The last one is not left.
        let any = self.paths.iter().any(|(_, path)| path.carries());
        let usable = self.paths.iter().filter(|(_, path)| ready && path.usable());
        let usable = usable.filter(|(_, path)| path.carries() || !any);
        self.scheduler.set_paths(usable.clone().map(|(id, path)| path.share(PathId(id as u8))));
        self.keeps = self.recognises_copies() && usable.clone().nth(1).is_some();
        let stand_by = self.scheduler.standby();
        let usable = usable.fold(0, |bits, (id, _)| bits | 1_u64 << id);
        self.refresh_paced(now);
        self.resend_left(now, carried);
        self.set_rates(now);
        if stood_by & usable & !stand_by != 0 && self.framing.announces() {
            self.calls = Activation::next(self.calls);
            // Forged keepalives could ask for one volley after the other.
            if !self.volley.take(now) {
                return;
            }
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }
}
