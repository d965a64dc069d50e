//! The transmit half of a connection: which path, which number, and the keepalives.
//!
//! It alone allocates sequence numbers. What it must know of the receive half comes as [`Note`]s.

use std::net::IpAddr;
use std::time::Duration;

use crate::config::{ConnectionConfig, MAX_PATHS, PathConfig, SchedulerConfig};
use crate::measure::Heard;
use crate::note::Note;
use crate::path::narrowing::{Arrived, Narrowing};
use crate::path::{DownCause, PathId, PathState, PathStatus};
use crate::peer_kind::PeerKind;
use crate::recent::{Doubt, PEER_UNNOTICED};
use crate::scheduler::{Pins, Scheduler, Share};
use crate::sequence::Seq;
use crate::slots::Slots;
use crate::stats::{ConnectionStats, Drop, Drops, PathStats, Traffic};
use crate::time::Instant;
use crate::timer::{Deadline, Timer};
use crate::token_bucket::TokenBucket;
use crate::wire::gre::{self, Header, Protocol};
use crate::wire::inner::Inner;
use crate::wire::keepalive::{Duty, Keepalive, Report, Trailer};

/// A keepalive may be early by this part of its interval, where that saves a wake-up.
const EARLY: u32 = 16;

/// What one connection needs for sending.
#[derive(Debug)]
pub struct TransmitHalf {
    peer_kind: PeerKind,
    key: Option<u32>,
    checksum: bool,
    /// The number of the next datagram, if they are numbered.
    next: Option<Seq>,
    /// Whether the peer may be sent the same datagram twice.
    repeats: bool,
    /// Whether what is sent is to be kept, because it could be sent again.
    keeps: bool,
    /// A path that has been lost, and what of that which was sent on it is in doubt.
    lost: Option<(PathId, Doubt)>,
    scheduler: Scheduler,
    policy: SchedulerConfig,
    paths: Slots<TransmitPath>,
    /// It goes when its last path has told the peer so.
    ending: bool,
    /// How often a path that stood by has been called up ([`Duty::calls`]).
    calls: u8,
    /// How often all paths may be told at once: 8 times, and then ten times per second.
    volley: TokenBucket,
    /// The lost path that was told of last.
    told_lost: usize,
    /// Own and the peer's tunnel address, as keepalives name them.
    addresses: (IpAddr, IpAddr),
    sent: Traffic,
    drops: Drops,
}

#[derive(Debug)]
struct TransmitPath {
    status: PathStatus,
    weight: u16,
    priority: u8,
    pins: Pins,
    up: bool,
    /// Whether this host has what it needs to send on it.
    present: bool,
    /// It goes when it has told the peer so.
    leaving: bool,
    hearing: bool,
    keepalive: Option<Duration>,
    /// When the next keepalive is due; never while the path is off.
    next_keepalive: Option<Instant>,
    /// What its keepalives tell of the peer's datagrams.
    arrived: Arrived,
    /// What the peer's keepalives tell of ours.
    narrowing: Narrowing,
    /// The sending time that the next keepalive echoes.
    heard: Option<Heard>,
    round_trip: Option<Duration>,
    sent: Traffic,
    /// How many of these had been sent on another path before.
    resent: u64,
    keepalives_sent: u64,
}

impl TransmitHalf {
    pub(crate) fn new(
        config: &ConnectionConfig,
        addresses: (IpAddr, IpAddr),
        now: Instant,
    ) -> Self {
        let mut half = Self {
            peer_kind: config.peer_kind,
            key: config.key,
            checksum: config.checksum,
            next: config.sequence.then_some(Seq::FIRST),
            repeats: may_repeat(config),
            keeps: false,
            lost: None,
            scheduler: Scheduler::new(config.scheduler),
            policy: config.scheduler,
            paths: Slots::default(),
            ending: false,
            calls: 0,
            volley: TokenBucket::new(8, Duration::from_millis(100)),
            told_lost: 0,
            addresses,
            sent: Traffic::default(),
            drops: Drops::default(),
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

    /// How many bytes of GRE header each inner packet gets.
    pub fn header_len(&self) -> usize {
        gre::options_len(self.checksum, self.key.is_some(), self.next.is_some())
    }

    /// A path's share of packets.
    ///
    /// # Panics
    ///
    /// If the connection has no such path.
    pub fn weight(&self, path: PathId) -> u16 {
        self.paths[path.index()].weight
    }

    /// Whether a path could carry packets, but stands by because one of a better priority carries.
    pub fn standby(&self, path: PathId) -> bool {
        self.scheduler.is_standby(path)
    }

    /// What was sent and what could not be; the rest is known to the receive half.
    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats { sent: self.sent, drops: self.drops, ..ConnectionStats::default() }
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

    /// Bytes of memory that it takes, its own size included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.paths.memory() + self.scheduler.memory()
    }

    /// Decides the path and writes the header for an inner packet. One for which there is no path
    /// takes no number.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, packet: &[u8], inner: &Inner) -> Option<(PathId, Header)> {
        let Inner { protocol, len, .. } = *inner;
        let Some(path) = self.scheduler.select(packet) else {
            self.drops.add(Drop::NoPath);
            return None;
        };
        let sequence = self.next;
        self.next = sequence.map(Seq::next);
        let header = Header { protocol, checksum: self.checksum, key: self.key, sequence };
        self.sent.add(len);
        let size = header.size() + len;
        let sending = &mut self.paths[path.index()];
        sending.sent.add(size);
        sending.narrowing.on_sent(size);
        Some((path, header))
    }

    /// Whether what it transmits is to be kept for a moment: it has another path to be sent again on.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Decides the path for a datagram that is sent again. It keeps its number.
    pub(crate) fn transmit_again(&mut self, packet: &[u8], header: &Header) -> Option<PathId> {
        let path = self.scheduler.select(packet).filter(|_| self.repeats)?;
        let size = header.size() + packet.len();
        let sending = &mut self.paths[path.index()];
        sending.sent.add(size);
        sending.resent += 1;
        sending.narrowing.on_sent(size);
        Some(path)
    }

    /// A path that has been lost since this was last asked, and since when what was sent on it is in
    /// doubt.
    pub(crate) fn take_lost(&mut self) -> Option<(PathId, Doubt)> {
        self.lost.take()
    }

    /// The next keepalive that is due, or if `early` nearly so.
    pub(crate) fn poll_keepalive(
        &mut self,
        now: Instant,
        early: bool,
    ) -> Option<(PathId, Header, Keepalive)> {
        let due = |path: &TransmitPath| path.is_due(now, early);
        let index = self.paths.iter().find(|(_, path)| due(path))?.0;
        let path = &mut self.paths[index];
        let off = path.status == PathStatus::Off;
        // The first one says that nothing was heard before it, also if the peer has been quicker: that
        // is how it knows a beginning. The truth follows behind it.
        let tells = self.peer_kind.tells();
        let first = tells && path.keepalives_sent == 0;
        let deaf = !off && (first || !path.hearing);
        let next = |every| if first && path.hearing { now } else { now + every };
        path.next_keepalive = if off { None } else { path.keepalive.map(next) };
        path.keepalives_sent += 1;
        let report = Report { deaf, off };
        let (sender, receiver) = self.addresses;
        path.narrowing.on_keepalive_sent();
        let arrivals = path.arrived.tell(now, path.keepalive.unwrap_or_default());
        let echo = path.heard.and_then(|heard| heard.echo(now));
        let trailer = Some(Trailer { sent: path.sent.packets as u32, time: now.micros(), echo });
        if path.leaving {
            self.paths.take(index);
        }
        let standby = self.scheduler.is_standby(PathId(index as u8));
        let duty = Duty { standby, calls: self.calls };
        let (path, lost) = (Some(index as u8), self.next_lost(index));
        let message = if tells {
            Keepalive { report, duty, arrivals, path, lost, sender, receiver, trailer }
        } else {
            Keepalive::bare(sender, receiver)
        };
        let protocol = if sender.is_ipv4() { Protocol::Ipv4 } else { Protocol::Ipv6 };
        let header = Header { protocol, checksum: self.checksum, key: self.key, sequence: None };
        Some((PathId(index as u8), header, message))
    }

    /// The path to be told of as lost by a keepalive on another one: all of them in turn.
    fn next_lost(&mut self, on: usize) -> Option<u8> {
        let lost = |(index, path): &(usize, &TransmitPath)| !path.present && *index != on;
        let after = self.paths.iter().filter(lost).find(|(index, _)| *index > self.told_lost);
        let (index, _) = after.or_else(|| self.paths.iter().find(lost))?;
        self.told_lost = index;
        Some(index as u8)
    }

    /// When the next keepalive is due.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let at = self.paths.iter().filter_map(|(_, path)| path.next_keepalive).min()?;
        Some(Deadline { at, timer: Timer::Keepalive })
    }

    /// The receive half has seen something that changes what is sent. Every change is told to the
    /// peer at once, if it is of a kind that understands: that is how a path comes up in one round trip, also
    /// after the peer restarted.
    ///
    /// Returns a path that proves too narrow, with the length of the longest datagram that it carries.
    pub(crate) fn on_note(&mut self, note: Note, now: Instant) -> Option<(PathId, usize)> {
        let tells = self.peer_kind.tells();
        let mut flight = None;
        if let Note::State { path, state: PathState::Down(DownCause::PeerLost) } = note {
            flight = self.flight(path);
        }
        let path = self.paths.get_mut(note.path().index())?;
        match note {
            Note::Arrived { len, .. } => path.arrived.on_arrived(len),
            Note::Keepalive { path: id, count, arrivals, heard, round_trip } => {
                path.heard = heard;
                path.round_trip = round_trip;
                path.arrived.on_keepalives(count);
                return Some((id, path.narrowing.on_told(now, arrivals)?));
            }
            Note::Hearing { hearing, .. } => {
                path.hearing = hearing;
                if tells {
                    path.keepalive_now(now);
                }
            }
            Note::State { path: id, state } => {
                if path.usable() && state == PathState::Down(DownCause::PeerLost) {
                    self.lost = Some((id, Doubt::new(now, PEER_UNNOTICED, flight)));
                }
                self.change(id, now, |path| {
                    path.up = state == PathState::Up;
                    path.narrowing.forget();
                    if tells {
                        path.keepalive_now(now);
                    }
                });
            }
        }
        None
    }

    /// How long datagrams took to the peer on a path of which it has just sent word by another, and that
    /// word back. On that other path it may have waited behind much that the lost one had not.
    fn flight(&self, path: PathId) -> Option<Duration> {
        let path = self.paths.get(path.index())?;
        let round_trip = path.round_trip?;
        let word = self.paths.iter().filter_map(|(_, path)| path.heard).max_by_key(|it| it.at)?;
        let detour = path.heard.map_or(0, |back| word.slower_than(back));
        let by = Duration::from_micros(detour.unsigned_abs().into());
        Some(if detour < 0 { round_trip.saturating_sub(by) } else { round_trip + by })
    }

    /// A further path, unless there is one of that number.
    pub(crate) fn add_path(&mut self, id: PathId, config: &PathConfig, now: Instant) {
        if self.staying(id).is_some() {
            return;
        }
        self.paths.put(id.index(), TransmitPath::new(config, self.header_len(), now));
    }

    /// A path goes, once it has told the peer so. A path that sends no keepalives tells nothing.
    pub(crate) fn remove_path(&mut self, id: PathId, now: Instant) {
        self.set_status(id, PathStatus::Off, now);
        let Some(path) = self.staying(id) else { return };
        path.leaving = true;
        if path.next_keepalive.is_none() {
            self.paths.take(id.index());
        }
    }

    /// A path has other settings.
    pub(crate) fn set_path(&mut self, id: PathId, config: &PathConfig, now: Instant) {
        let Some(path) = self.staying(id) else { return };
        if path.keepalive != config.keepalive {
            path.keepalive = config.keepalive;
            path.next_keepalive = None;
            path.keepalive_now(now);
        }
        self.set_status(id, config.status, now);
        let Some(path) = self.staying(id) else { return };
        let share = path.share(id);
        if (share.weight, share.priority, share.pins)
            != (config.weight, config.priority, &config.pins)
        {
            (path.weight, path.priority) = (config.weight, config.priority);
            path.pins.clone_from(&config.pins);
            self.reschedule(now);
        }
    }

    /// The policy may be another one, and so may be whether the peer can tell copies.
    pub(crate) fn set(&mut self, config: &ConnectionConfig, now: Instant) {
        let (policy, repeats) = (config.scheduler, may_repeat(config));
        if policy != self.policy {
            self.scheduler = Scheduler::new(policy);
        }
        if (policy, repeats) != (self.policy, self.repeats) {
            (self.policy, self.repeats) = (policy, repeats);
            self.reschedule(now);
        }
    }

    /// The operator wants something else of a path. Going off is told to the peer once, if it is of a kind
    /// that would understand.
    pub(crate) fn set_status(&mut self, path: PathId, status: PathStatus, now: Instant) {
        let tells = self.peer_kind.tells();
        self.change(path, now, |path| {
            if status != path.status {
                path.status = status;
                let spoken_to = path.present && (tells || status == PathStatus::Available);
                path.next_keepalive = path.keepalive.filter(|_| spoken_to).map(|_| now);
            }
        });
    }

    /// What a path needs of this host is there again, or gone. That it is gone is told to the peer at
    /// once on the others: it would go on sending. That it went may have gone `unnoticed` for a while.
    pub(crate) fn set_present(
        &mut self,
        path: PathId,
        present: bool,
        unnoticed: Duration,
        now: Instant,
    ) {
        let (mut lost, mut doubt) = (false, None);
        self.change(path, now, |path| {
            lost = path.present && !present;
            doubt = path.usable().then(|| Doubt::new(now, unnoticed, path.round_trip));
            path.present = present;
            path.next_keepalive = None;
            path.keepalive_now(now);
        });
        if lost {
            self.lost = doubt.map(|doubt| (path, doubt));
        }
        if lost && self.peer_kind.tells() {
            self.told_lost = path.index().wrapping_sub(1).min(MAX_PATHS);
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }

    /// Every path goes off.
    pub(crate) fn close(&mut self, now: Instant) {
        let paths: Vec<PathId> = self.paths().collect();
        paths.into_iter().for_each(|path| self.set_status(path, PathStatus::Off, now));
    }

    /// The connection goes, once every path has told the peer so.
    pub(crate) fn end(&mut self, now: Instant) {
        self.ending = true;
        let paths: Vec<PathId> = self.paths().collect();
        paths.into_iter().for_each(|path| self.remove_path(path, now));
    }

    /// Whether it only has to tell the peer that it ends.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether it has ended and everything is told.
    pub(crate) fn is_over(&self) -> bool {
        self.ending && self.paths.is_empty()
    }

    /// Changes a path, and the scheduler's paths if it has become one of them or ceased to be.
    fn change(&mut self, path: PathId, now: Instant, change: impl FnOnce(&mut TransmitPath)) {
        let Some(path) = self.staying(path) else { return };
        let was_usable = path.usable();
        change(path);
        if path.usable() != was_usable {
            self.reschedule(now);
        }
    }

    /// A path that has not been told to go.
    fn staying(&mut self, path: PathId) -> Option<&mut TransmitPath> {
        self.paths.get_mut(path.index()).filter(|path| !path.leaving)
    }

    /// Tells the scheduler which paths there are, and how they are to be used. That one is called up
    /// which stood by is told to the peer at once, on all of them.
    fn reschedule(&mut self, now: Instant) {
        let stood_by = self.scheduler.standby();
        let usable = self.paths.iter().filter(|(_, path)| path.usable());
        self.scheduler.set_paths(usable.clone().map(|(id, path)| path.share(PathId(id as u8))));
        self.keeps = self.repeats && usable.clone().nth(1).is_some();
        let stand_by = self.scheduler.standby();
        let usable = usable.fold(0, |bits, (id, _)| bits | 1_u64 << id);
        if stood_by & usable & !stand_by != 0 && self.peer_kind.tells() {
            self.calls = Duty::next(self.calls);
            // Forged keepalives could ask for one volley after the other.
            if !self.volley.take(now) {
                return;
            }
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }
}

/// Whether a peer may be sent the same datagram twice: it drops the second one by its number. One end does
/// not know the other's window; both are taken to be configured alike. Other kinds of peers remember no
/// numbers, and the original takes those a little behind for a restart.
fn may_repeat(config: &ConnectionConfig) -> bool {
    config.peer_kind == PeerKind::Mpt && config.sequence && config.reorder.window > 0
}

impl TransmitPath {
    fn new(config: &PathConfig, header_len: usize, now: Instant) -> Self {
        let available = config.status == PathStatus::Available;
        Self {
            status: config.status,
            weight: config.weight,
            priority: config.priority,
            pins: config.pins.clone(),
            up: false,
            present: true,
            leaving: false,
            hearing: false,
            keepalive: config.keepalive,
            next_keepalive: config.keepalive.filter(|_| available).map(|_| now),
            arrived: Arrived::new(now),
            narrowing: Narrowing::new(header_len),
            heard: None,
            round_trip: None,
            sent: Traffic::default(),
            resent: 0,
            keepalives_sent: 0,
        }
    }

    /// Whether its next keepalive is due, or if `early` will be within a sixteenth of the interval.
    fn is_due(&self, now: Instant, early: bool) -> bool {
        let margin =
            if early { self.keepalive.unwrap_or_default() / EARLY } else { Duration::ZERO };
        self.next_keepalive.is_some_and(|at| at <= now + margin)
    }

    /// Whether it carries inner packets. One that goes off carries none from that moment on, whatever
    /// the receive half said of it before it knew.
    fn usable(&self) -> bool {
        self.up && self.present && self.status == PathStatus::Available
    }

    fn share(&self, path: PathId) -> Share<'_> {
        Share { path, weight: self.weight, priority: self.priority, pins: &self.pins }
    }

    /// Has the next keepalive sent at once, on a path that sends any.
    fn keepalive_now(&mut self, now: Instant) {
        if self.present && self.status == PathStatus::Available {
            self.next_keepalive = self.keepalive.map(|_| now);
        }
    }
}
