//! Recording what arrives in a session, and when to tell the peer.

use std::time::Duration;

use super::connection::{Arrival, ReceiveHalf};
use super::measured::ReceiveQuality;
use super::side::ReceiveSide;
use crate::id::{MAX_PATHS, PathId, SocketId};
use crate::messages::{Messages, PathUpdate, Reply};
use crate::path::delay::OneWayDelay;
use crate::path::rtt::RoundTrip;
use crate::path::silence::longest_silence;
use crate::rx::path::ReceivePath;
use crate::rx::quiet::Quiet;
use crate::rx::recorder::{Datagram, Recorded};
use crate::time::Instant;
use crate::wire::extended::{Flags, Header, Kind};

/// The least time between two feedbacks, and the time where the round trip is unknown.
const LEAST: Duration = Duration::from_millis(5);
const UNKNOWN: Duration = Duration::from_millis(25);

/// A loss is told at once, but not sooner than this after the last feedback.
const AT_ONCE: Duration = Duration::from_millis(1);

/// No repair is waited for longer than a sender of TCP waits until it sends again itself, which in Linux is 200 ms and a round trip after the
/// last acknowledgement; and not for longer than a second.
const TCP_WAITS: Duration = Duration::from_millis(200);
const LONGEST_REPAIR: Duration = Duration::from_secs(1);

/// A path by which nothing has come for so long may be silent.
pub(super) const NOTHING_CAME: Duration = Duration::from_millis(25);

/// As long as what may be on a silent path is waited for, feedback is sent no more often than this.
const TOLD_AGAIN: Duration = Duration::from_millis(10);

/// After this time a feedback is sent however little has arrived.
const LONGEST: Duration = Duration::from_millis(100);

/// Feedback takes no more than a hundredth of the bytes that arrived: these are the bytes for each path of it,
/// headers included, times a hundred.
const BYTES_PER_PATH: u64 = 100 * 120;

/// A beacon of so many bytes of UDP payload is told about like data.
pub(crate) const PADDED: usize = 250;

/// One of so many is one of a train: feedback need not be short beside it, as it would be late, and tell of what has come behind the train.
const LONG: usize = 1000;
const ENOUGH: u64 = BYTES_PER_PATH * MAX_PATHS as u64;

/// How much longer a gap is waited for than the delays explain, at least, and the most that it is waited for at all.
const SPARE: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How much longer a repair is waited for than round trips explain: what both hosts take.
const REPAIR_SPARE: Duration = Duration::from_millis(10);

/// What a path has left behind comes at once, and stands in the queue of another one.
const COMES_AT_ONCE: Duration = Duration::from_millis(30);

/// Where delays vary by more from one datagram to the next, the round trip of late counts for repairs, and not the least.
const VARIES: Duration = Duration::from_millis(1);

/// A path by which nothing has come for so long, while datagrams come by others, is asked for in case a translator
/// has forgotten this host: something sent on it shows the peer where it is now.
const SILENCE: Duration = Duration::from_millis(50);
const NUDGES_EVERY: Duration = Duration::from_millis(200);
const NUDGED_FOR: Duration = Duration::from_secs(1);

/// The congestion mark *experienced* in a type of service (RFC 3168).
const CE: u8 = 0b11;

/// What comes by a path says what should follow.
#[inline(never)]
fn watch(
    receiver: &mut ReceivePath,
    quiet_at: &mut Option<Instant>,
    header: &Header,
    at: Instant,
    (is_newest, is_probe): (bool, bool),
) {
    let is_newest = is_newest || receiver.recorder.is_highest(header.path_sequence);
    let is_in_turn = is_newest && !header.flags.contains(Flags::OUT_OF_TURN);
    let quiet = &mut receiver.quiet;
    if header.kind == Kind::Data && is_in_turn {
        quiet.on_packet(at);
        quiet_at.get_or_insert(at + Quiet::EARLIEST);
    } else if header.kind == Kind::Beacon && is_newest && !is_probe {
        quiet.on_beacon(at);
    } else {
        quiet.on_other(at);
    }
}

impl ReceiveSide {
    /// The kernel has dropped so many datagrams since a socket was opened, because its receive buffer was full. To be
    /// called now and then, so that feedback tells the peer that its path has not lost them.
    pub fn set_overflows(&mut self, socket: SocketId, overflows: u64) {
        for (_, connection) in self.connections.iter_mut() {
            connection.set_overflows(socket, overflows as u32);
        }
    }
}

impl ReceiveHalf {
    /// A datagram of the session arrived.
    #[inline(always)]
    pub(super) fn record(&mut self, now: Instant, arrival: &Arrival, header: &Header) {
        let Some(measured) = &mut self.measured else { return };
        let receiver = &mut self.paths[arrival.path.index()];
        let recorder = &mut receiver.recorder;
        let sample = (now, arrival.path, header.sent);
        // Padded ones are sent to find out what the path is like.
        let is_probe = header.kind == Kind::Beacon && arrival.len >= PADDED;
        let is_sample = measured.last != sample || is_probe;
        let datagram = Datagram {
            sequence: header.path_sequence,
            sent: header.sent,
            at: arrival.at,
            len: arrival.len,
            ce: arrival.tos & CE == CE,
            is_sample,
        };
        let recorded = recorder.on_arrival(now, datagram);
        if is_sample && recorded.is_first() {
            measured.last = sample;
            measured.delays.on_arrival(arrival.at, arrival.path, header.sent);
        }
        measured.bytes += arrival.len as u64;
        if recorded != Recorded::InOrder {
            let known = recorder.has_untold_loss().then_some(now).or(recorder.expires_at());
            known.into_iter().for_each(|at| measured.tell_by(at.max(measured.told_at + AT_ONCE)));
        }
        if header.kind == Kind::Data {
            measured.tell_after(now, LEAST);
        } else if is_probe {
            measured.bytes += if arrival.len >= LONG { ENOUGH } else { 0 };
            measured.tell_after(now, LEAST);
        }
        // Most packets come with others that were sent at the same time, and say no more.
        if is_sample {
            let is_newest = recorded == Recorded::InOrder;
            watch(receiver, &mut measured.quiet_at, header, arrival.at, (is_newest, is_probe));
        }
    }

    /// Gives out what arrived on each path since the last feedback, if it is time. The waits of the order follow what
    /// was measured.
    pub(super) fn give_feedback(&mut self, now: Instant, messages: &mut Messages) {
        self.watch_ways_back(now, messages);
        let due = self.measured.as_ref().and_then(|measured| measured.deadline());
        if due.is_none_or(|at| now < at) {
            return;
        }
        let (overdue, quiet_at) = self.overdue(now);
        let Some(measured) = &mut self.measured else { return };
        measured.quiet_at = quiet_at;
        // The peer is to know that nothing comes by a path, though nothing comes by the others either.
        let silent_at = self.reorder.silent_at().and_then(|(at, silent)| {
            let of = self.paths.iter().filter(|(index, _)| silent >> index & 1 != 0);
            let last = of.filter_map(|(_, path)| path.recorder.last_at()).min()?;
            Some(at.max(last + NOTHING_CAME))
        });
        // Nor that nothing comes back by a path.
        let missing = self.paths.iter().filter_map(|(_, path)| path.told_missing_at(now));
        let silent_at = missing.chain(silent_at).min();
        let is_silent = silent_at.is_some_and(|at| at <= now) || overdue != 0;
        measured.silent_at = silent_at.map(|at| at.max(now + TOLD_AGAIN));
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !is_due(measured.due) && !is_due(measured.lost_at) && !is_silent {
            return;
        }
        let fastest =
            |path: &ReceivePath| path.estimator.quality().round_trip.map(RoundTrip::recent);
        let round_trip = self.paths.iter().filter_map(|(_, path)| fastest(path)).min();
        let interval = round_trip.map_or(UNKNOWN, |round_trip| (round_trip / 4).max(LEAST));
        let paths = self.paths.iter().count() as u64;
        let longest = measured.told_at + LONGEST;
        let next = measured.told_at + interval;
        let expiring = self.paths.iter_mut().filter_map(|(_, path)| path.recorder.expire(now));
        let expiring = expiring.min();
        let lacks_bytes = now < longest && measured.bytes < paths * BYTES_PER_PATH;
        let is_untold =
            overdue != 0 || self.paths.iter().any(|(_, path)| path.recorder.has_untold_loss());
        let at_once = measured.told_at + AT_ONCE;
        if !(is_untold && now >= at_once) && (now < next || lacks_bytes && !is_silent) {
            let later = if now < next { next } else { longest.min(now + interval) };
            (measured.due, measured.lost_at) =
                (Some(if is_untold { at_once } else { later }), None);
            expiring.into_iter().for_each(|at| measured.tell_by(at.max(now + AT_ONCE)));
            return;
        }
        (measured.told_at, measured.bytes) = (now, 0);
        (measured.due, measured.lost_at) = (None, None);
        expiring.into_iter().for_each(|at| measured.tell_by(at.max(now + AT_ONCE)));
        if let Some(handshakes) = self.handshakes.as_mut().filter(|it| it.epochs.is_used_up()) {
            handshakes.begin_series(now);
        }
        let Some(session) = self.session.as_deref() else { return };
        for (index, path) in self.paths.iter_mut() {
            if overdue >> index & 1 != 0 {
                let path = PathId(index as u8);
                messages.update(self.id, PathUpdate::Quiet { path });
            }
            let Some(id) = session.peer_id(PathId(index as u8)) else { continue };
            if let Some(mut block) = path.recorder.block(now, id, measured.repairs, is_silent) {
                block.longest = path.plain.longest();
                block.quiet = overdue >> index & 1 != 0;
                block.overflows = path.overflows;
                messages.report(self.id, Box::new(block));
            }
        }
        self.on_told_quiet(now, overdue);
        self.set_waits(now);
        self.nudge_silent(now, messages);
    }

    /// The kernel has dropped so many datagrams for lack of room at a socket, modulo 2^32.
    pub(super) fn set_overflows(&mut self, socket: SocketId, overflows: u32) {
        let paths = self.paths.iter_mut().map(|(_, path)| path);
        let here = paths.filter(|path| path.origin.socket == socket);
        here.for_each(|path| path.overflows = overflows);
    }

    /// Has something sent on each live path that has just fallen silent, while data comes by others.
    fn nudge_silent(&mut self, now: Instant, messages: &mut Messages) {
        let (id, live) = (self.id, self.live);
        for (index, path) in self.paths.iter_mut().filter(|(index, _)| live >> index & 1 != 0) {
            let silent = path.recorder.last_at().map(|at| now.since(at));
            let is_silent = silent.is_some_and(|silent| silent >= SILENCE && silent < NUDGED_FOR);
            if is_silent && now.since(path.nudged) >= NUDGES_EVERY {
                path.nudged = now;
                messages.reply(id, Reply::Keepalive { path: PathId(index as u8) });
            }
        }
    }

    /// Has the order wait for as long as the delays of the paths explain.
    fn set_waits(&mut self, now: Instant) {
        let late = self.reorder.late_in_turn();
        let late_repairs = self.reorder.stats().late - late;
        let (repair, silence) = (self.repair_wait(), self.silence());
        let Some(measured) = &mut self.measured else { return };
        let slack = SPARE + measured.slack.after(now, late);
        let reorder = &self.reorder;
        let margins = self.paths.iter().map(|(index, _)| reorder.margin(PathId(index as u8)));
        let margin = margins.max().unwrap_or_default();
        let mut detected = Duration::ZERO;
        if let Some((repair, deadline)) = repair {
            let repair = repair + measured.repair_slack.after(now, late_repairs);
            self.reorder.set_repair_wait(now, repair.min(deadline));
            self.reorder.set_silence(silence.min(LONGEST_WAIT));
            // That a packet is lost is known when nothing that overtakes it can have done so.
            detected = margin * 5 / 4;
        }
        let Some(slowest) = measured.delays.slowest(self.live) else { return };
        for (index, receiver) in self.paths.iter_mut() {
            let path = PathId(index as u8);
            let wait = measured.delays.wait(path, slowest);
            if let Some((wait, delay)) = wait.zip(measured.delays.get(path)) {
                // A queue can grow by as much again while a packet is in it.
                let wait = (wait + wait / 2 + slack).min(LONGEST_WAIT).max(detected);
                // A queue that grows deviates too, but from one datagram to the next hardly.
                let spread = delay.deviation.min(delay.jitter);
                self.reorder.set_wait(path, wait, spread);
                self.reorder.set_received(path, receiver.recorder.received());
                receiver.recorder.set_margin(self.reorder.margin(path));
            }
        }
    }

    /// How long a packet that is lost may take to come again, and at the most; `None` if it does not. A first repair may
    /// be lost as well.
    pub(super) fn repair_wait(&self) -> Option<(Duration, Duration)> {
        let measured = self.measured.as_ref().filter(|measured| measured.repairs)?;
        let trips = self.paths.iter().filter(|(index, _)| self.live >> index & 1 != 0);
        let trips = trips.filter_map(|(_, path)| path.estimator.quality().round_trip);
        let fastest = trips.min_by_key(|trip| trip.recent());
        let trip = fastest.map_or(UNKNOWN, RoundTrip::recent);
        let least = fastest.map_or(UNKNOWN, |fastest| fastest.min);
        let slowest = measured.delays.slowest(self.live);
        let deviation = slowest.map_or(Duration::ZERO, |slowest| slowest.deviation);
        let varies = slowest.is_some_and(|slowest| slowest.jitter >= VARIES);
        let skew = measured.delays.apart(self.live).unwrap_or_default();
        let round_trip = if varies { trip } else { least };
        let deadline = (TCP_WAITS + round_trip).min(LONGEST_REPAIR) + skew;
        Some((trip * 2 + skew + deviation * 4 + REPAIR_SPARE, deadline))
    }

    /// How long it takes until what was on a path that falls silent comes by another one.
    fn silence(&self) -> Duration {
        let live = self.paths.iter().filter(|(index, _)| self.live >> index & 1 != 0);
        let trips = live.filter_map(|(_, path)| path.estimator.quality().round_trip);
        let fastest = trips.clone().map(RoundTrip::recent).min().unwrap_or(UNKNOWN);
        let longest = trips.map(longest_silence).max().unwrap_or_default();
        longest + fastest + COMES_AT_ONCE
    }

    /// What a path does to the peer's datagrams, by their timestamps and path sequences; `None` before a datagram of
    /// a session came by it.
    pub fn receive_quality(&self, path: PathId) -> Option<ReceiveQuality> {
        let measured = self.measured.as_ref()?;
        let OneWayDelay { min, mean, deviation, jitter, .. } = measured.delays.get(path)?;
        let recorder = &self.paths.get(path.index())?.recorder;
        let queueing = u64::try_from(i64::from(mean) - i64::from(min)).unwrap_or(0);
        Some(ReceiveQuality {
            delay: measured.delays.relative(path)?,
            queueing: Duration::from_micros(queueing),
            deviation,
            jitter,
            lost: recorder.lost(),
            received: recorder.received(),
        })
    }
}
