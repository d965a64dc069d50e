//! What was lately sent, to be sent again on other paths when the one that it was sent on is lost.
//!
//! An interface without carrier silently drops datagrams until this is detected, and a peer that
//! has lost a path gets more datagrams on it until its report arrives. This loss is known long
//! before the ends of the inner flows can detect it. So each datagram is kept for a moment. When a
//! path is lost, those sent on it within the [loss window](LossWindow) are retransmitted, with
//! their old numbers, on the remaining paths; the receiver, which detects duplicates, delivers one
//! of each.
//!
//! They are kept in one ring for all connections. It grows as long as it would have to overwrite what
//! may still be needed, up to [`CAPACITY`]; a tunnel that sends little needs little. As each is copied once
//! more, no more than an [`Allowance`] per second is kept.

use std::collections::VecDeque;
use std::time::Duration;

use crate::framing::Stamp;
use crate::id::ConnectionId;
use crate::id::PathId;
use crate::time::Instant;

/// The most bytes of inner packets that are kept: what [`Allowance::BYTES`] amount to in 62 ms, or what
/// 100 Mbit/s do in a third of a second.
const CAPACITY: usize = 4 << 20;

/// The bytes to begin with. More than any one packet has.
const LEAST: usize = 64 << 10;

/// The most packets that are kept: those that a receiver remembers (section 6.5 of `docs/protocol.md`).
const MOST: usize = 16_384;

/// How often a datagram is sent again at the most: if the path that it was sent again on is lost as well.
const TIMES: u8 = 2;

/// After this time nothing that was sent is in doubt any more.
const LONGEST: Duration = Duration::from_millis(1500);

/// The assumed round trip of a path without a measurement: that of common access links.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// What is believed of a round trip. The least is what hosts themselves take. Whatever is sent again stands in
/// the queues of the paths that are left before all that follows, so more than the most would be felt as a
/// gap; it is one way on most paths, queues included.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(10);
const MOST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// How long a peer takes to detect and report the loss of a path that carries packets. This
/// implementation checks every 5 ms.
pub(crate) const PEER_UNNOTICED: Duration = Duration::from_millis(10);

/// How much earlier than it left a datagram can seem to have been sent: by the length of a wake-up.
const WAKE_UP: Duration = Duration::from_millis(5);

/// A pause in sending up to this long may be a stall of the host: it learned of the loss late, so
/// the loss window is counted back from its last datagram.
const STANDSTILL: Duration = Duration::from_millis(250);

/// What of that which was sent on a path is in doubt when the path is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossWindow {
    now: Instant,
    reach: Duration,
}

impl LossWindow {
    /// The path is known to be lost now. It was lost up to `unnoticed` ago, and what was in flight on it then
    /// is lost too, in the queue of a modem perhaps.
    pub(crate) fn new(now: Instant, unnoticed: Duration, round_trip: Option<Duration>) -> Self {
        let flight = round_trip.unwrap_or(ROUND_TRIP).clamp(LEAST_ROUND_TRIP, MOST_ROUND_TRIP);
        Self { now, reach: unnoticed.saturating_add(flight + WAKE_UP).min(LONGEST) }
    }

    /// From when on whatever was sent is in doubt, if the newest of it was sent at `newest`.
    fn since(self, newest: Instant) -> Instant {
        let stands_still = self.now.since(newest) <= STANDSTILL;
        let told = if stands_still { newest.min(self.now) } else { self.now };
        told.before(self.reach)
    }
}

/// The path of what is not to be sent again: that of nothing.
const NO_PATH: PathId = PathId(u8::MAX);

/// A datagram that was sent, without its inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) connection: ConnectionId,
    pub(crate) path: PathId,
    pub(crate) tos: u8,
    pub(crate) stamp: Stamp,
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct RetransmitBuffer {
    /// The inner packets, one behind the other, round and round.
    bytes: Vec<u8>,
    /// Where the next one goes.
    end: usize,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// How many entries there were before these.
    gone: u64,
    /// Those to be sent again, counted from the first that ever was.
    again: VecDeque<u64>,
    allowance: Allowance,
    /// When anything was sent last that could have been kept.
    newest: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent: Sent,
    start: u32,
    len: u32,
    /// Whether it is among those to be sent again.
    again: bool,
    /// How often it has been among them.
    times: u8,
}

/// Which of the datagrams to be sent again this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl RetransmitBuffer {
    /// Whether a packet of this length is kept; if so it counts.
    #[inline]
    pub(crate) fn allows(&mut self, now: Instant, len: usize) -> bool {
        self.newest = now;
        self.allowance.take(now, len)
    }

    /// Keeps a datagram with this inner packet.
    pub(crate) fn put(&mut self, sent: Sent, packet: &[u8]) {
        if packet.is_empty() || packet.len() > LEAST {
            return;
        }
        if self.end + packet.len() > self.bytes.len() {
            self.turn(sent.at);
        }
        let place = self.end..self.end + packet.len();
        let is_in_the_way = |entry: &Entry| {
            let start = entry.start as usize;
            start < place.end && start + entry.len as usize > place.start
        };
        while self.entries.len() == MOST || self.entries.front().is_some_and(is_in_the_way) {
            self.forget_oldest();
        }
        self.bytes[place.clone()].copy_from_slice(packet);
        let (start, len) = (place.start as u32, packet.len() as u32);
        self.entries.push_back(Entry { sent, start, len, again: false, times: 0 });
        self.end = place.end;
    }

    /// The end is reached: the ring grows, or wraps.
    fn turn(&mut self, now: Instant) {
        // What lies behind the end of the newest is the oldest.
        while self.entries.front().is_some_and(|entry| entry.start as usize >= self.end) {
            self.forget_oldest();
        }
        let needed = |entry: &Entry| now.since(entry.sent.at) <= LONGEST;
        let grows = self.bytes.is_empty() || self.entries.front().is_some_and(needed);
        if grows && self.bytes.len() < CAPACITY {
            self.bytes.resize((2 * self.bytes.len()).clamp(LEAST, CAPACITY), 0);
        } else {
            self.end = 0;
        }
    }

    fn forget_oldest(&mut self) {
        self.entries.pop_front();
        self.gone += 1;
    }

    /// A path is lost: datagrams sent on it within the loss window are retransmitted.
    pub(crate) fn send_again(&mut self, connection: ConnectionId, path: PathId, doubt: LossWindow) {
        let since = doubt.since(self.newest);
        let newest_first = self.entries.iter_mut().enumerate().rev();
        let in_doubt = newest_first.take_while(|(_, entry)| entry.sent.at >= since);
        let before = self.again.len();
        for (index, entry) in in_doubt {
            let is_on = (entry.sent.connection, entry.sent.path) == (connection, path);
            if is_on && !entry.again && entry.times < TIMES {
                (entry.again, entry.times) = (true, entry.times + 1);
                self.again.push_back(self.gone + index as u64);
            }
        }
        self.again.make_contiguous()[before..].reverse();
    }

    /// A connection begins: what one of the same number sent before has nothing to do with it.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        let entries = self.entries.iter_mut();
        for entry in entries.filter(|entry| entry.sent.connection == connection) {
            (entry.sent.path, entry.again) = (NO_PATH, false);
        }
    }

    /// The next datagram to be sent again, in the order in which they were sent.
    pub(crate) fn take_next(&mut self) -> Option<(Place, Sent)> {
        loop {
            let place = Place(self.again.pop_front()?);
            // It may have been overwritten or forgotten since.
            if let Some(entry) = self.entry_mut(place).filter(|entry| entry.again) {
                entry.again = false;
                return Some((place, entry.sent));
            }
        }
    }

    /// Its inner packet, as long as nothing further is kept.
    pub(crate) fn packet(&self, place: Place) -> &[u8] {
        let entry = place.0.checked_sub(self.gone).and_then(|at| self.entries.get(at as usize));
        entry.map_or(&[], |entry| &self.bytes[entry.start as usize..][..entry.len as usize])
    }

    /// It left on this path. If that one is lost too, soon enough after it was sent first, it is sent
    /// once more.
    pub(crate) fn set_path(&mut self, place: Place, path: PathId) {
        if let Some(entry) = self.entry_mut(place) {
            entry.sent.path = path;
        }
    }

    fn entry_mut(&mut self, place: Place) -> Option<&mut Entry> {
        let at = place.0.checked_sub(self.gone)?;
        self.entries.get_mut(at as usize)
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.again.capacity() * size_of::<u64>()
    }
}

/// Keeps this many consecutive bytes, and then none until the end of the second.
#[derive(Debug, Default)]
struct Allowance {
    left: usize,
    until: Instant,
}

impl Allowance {
    /// Bytes that are copied per second: the packets of 500 Mbit/s. At the 0.1 µs or so that a copy of
    /// 1400 bytes takes they cost half a percent of a processor.
    const BYTES: usize = 64 << 20;

    const SECOND: Duration = Duration::from_secs(1);

    #[inline]
    fn take(&mut self, now: Instant, len: usize) -> bool {
        if self.left < len {
            if now < self.until {
                return false;
            }
            (self.left, self.until) = (Self::BYTES, now + Self::SECOND);
        }
        self.left -= len;
        true
    }
}

#[cfg(test)]
mod tests;
