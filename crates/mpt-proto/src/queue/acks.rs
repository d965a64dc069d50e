//! Fewer acknowledgements of TCP connections that begin, so that slow start does not end because paths differ.
//!
//! HyStart (RFC 9406; as in Linux' CUBIC) leaves slow start when the least of eight or more round trips that were
//! measured in one round exceeds those of rounds before, or when acknowledgements follow each other at intervals of
//! less than 2 ms for half a round trip. Over paths of different delay, or of varying delay, both happen long before
//! the paths are full, and CUBIC then grows slowly. With fewer than eight acknowledgements in a round, at least
//! 2.1 ms apart, neither happens.
//!
//! A sender in slow start has as much in flight as it began with and all that was acknowledged since. So an
//! acknowledgement is passed on when it acknowledges an eighth of that: then six fit into a round, whatever the round
//! trip is. If it acknowledges less it waits until it is due, and then the last one leaves in any case: a sender that has
//! left slow start has less in flight. What reports a loss or repeats the number
//! before leaves at once, as senders count these. Connections that transfer little are left alone, and so are those that
//! are marked or have reported much loss, and after five seconds, or sixteen round trips if these are longer, all.
//!
//! Unless the fastest path is crowded. Where it carries little acknowledgements alone fill it, and each has to wait until it is as late
//! as by a slower path: 40 Mbit/s at 162 ms beside 2 Mbit/s at 10 ms had a round trip of 324 ms in place of 172. There all
//! connections have theirs thinned, to four in each round trip of the fastest path.

use std::time::Duration;

use super::store::Place;
use crate::time::Instant;
use crate::wire::segment::Segment;

/// Connections that are looked at. Another one in the same place replaces the first, unless that one waits.
const PLACES: usize = 64;

/// What TCP begins with (RFC 6928).
const BEGIN: u32 = 14_600;

/// So much is acknowledged before acknowledgements wait. HyStart looks at delays from 16 segments in flight on. Where paths differ that
/// matters a round trip later; where their delays vary the first eight of that round may be enough for it.
const LEAST: u32 = 30_000;
const LEAST_OF_VARYING: u32 = BEGIN;

/// The share of what is in flight by which acknowledgements are apart.
const SHARE: u32 = 8;

/// And the time.
pub(crate) const APART: Duration = Duration::from_micros(2100);

/// The time for which a connection counts as one that begins, and so many times the longest wait if that is more: slow start takes ten
/// to fifteen round trips, of which that is a quarter.
const BEGINNING: Duration = Duration::from_secs(5);
const WAITS: u32 = 64;

/// Reports of loss after which a connection is left alone. A few come when packets have only changed their order.
const REPORTS: u32 = 64;

/// The acknowledgements of one connection.
#[derive(Clone, Copy, Debug)]
struct Connection {
    hash: u64,
    began: Instant,
    /// The first acknowledgement, the highest, and the last one that was passed on.
    first: Option<u32>,
    highest: u32,
    passed: u32,
    reports: u32,
    passed_at: Instant,
    held: Option<Held>,
}

/// An acknowledgement that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) place: Place,
    pub(crate) len: usize,
    pub(crate) tos: u8,
    pub(crate) hash: u64,
    due: Instant,
}

/// What is known of the paths by which acknowledgements go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// For so long one waits at the most.
    pub(crate) longest: Duration,
    /// Whether their delays vary.
    pub(crate) vary: bool,
    /// Whether the one is crowded that they would take.
    pub(crate) is_crowded: bool,
}

/// What becomes of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes on its way.
    Pass,
    /// It waits until then, unless a later one comes: [`AckThinner::hold`] is to be called.
    Wait(Instant),
}

/// The connections that begin.
#[derive(Debug, Default)]
pub(crate) struct AckThinner {
    connections: Vec<Option<Connection>>,
    /// When the first of those that wait is due; not later.
    due: Option<Instant>,
}

impl AckThinner {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.connections.capacity() * size_of::<Option<Connection>>()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.connections.iter().flatten().filter(|connection| connection.held.is_some()).count()
    }

    /// A segment of the connection with this hash is to be sent. An acknowledgement waits if the connection begins or the path is crowded
    /// that it would take. Returns also the one that waited, which is not needed any more.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        hash: u64,
        segment: Segment,
        ways: Ways,
    ) -> (Fate, Option<Held>) {
        if segment == Segment::Syn {
            return (Fate::Pass, self.begin(now, hash));
        }
        let Some(slot) = self.connections.get_mut(place(hash)) else { return (Fate::Pass, None) };
        let Some(connection) = slot.as_mut().filter(|connection| connection.hash == hash) else {
            return (Fate::Pass, None);
        };
        let is_young = now.since(connection.began) < BEGINNING.max(ways.longest * WAITS);
        let begins = is_young && connection.reports < REPORTS;
        match segment {
            Segment::Ack(number) if begins || ways.is_crowded => {
                connection.on_ack(now, number, ways)
            }
            Segment::Report => {
                connection.reports = connection.reports.saturating_add(1);
                (Fate::Pass, connection.held.take())
            }
            // Whatever it carries, it acknowledges no less.
            Segment::Ack(_) | Segment::Other => (Fate::Pass, connection.held.take()),
            Segment::Marked | Segment::Syn | Segment::End => {
                let held = connection.held.take();
                *slot = None;
                (Fate::Pass, held)
            }
        }
    }

    /// Returns what the same connection still held, from before it began anew.
    fn begin(&mut self, now: Instant, hash: u64) -> Option<Held> {
        if self.connections.is_empty() {
            self.connections.resize(PLACES, None);
        }
        let slot = &mut self.connections[place(hash)];
        if slot.is_some_and(|other| other.hash != hash && other.held.is_some()) {
            return None;
        }
        let begins = Connection {
            hash,
            began: now,
            first: None,
            highest: 0,
            passed: 0,
            reports: 0,
            passed_at: now,
            held: None,
        };
        slot.replace(begins).and_then(|before| before.held)
    }

    /// An acknowledgement waits.
    pub(crate) fn hold(&mut self, hash: u64, place: Place, len: usize, tos: u8, due: Instant) {
        let slot = self.connections.get_mut(self::place(hash)).and_then(Option::as_mut);
        if let Some(connection) = slot {
            connection.held = Some(Held { place, len, tos, hash, due });
            self.due = Some(self.due.map_or(due, |first| first.min(due)));
        }
    }

    /// When the first of those that wait is due, if any waits; not later.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes one that is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Held> {
        if self.due.is_none_or(|due| now < due) {
            return None;
        }
        let mut waiting = self.connections.iter_mut().flatten();
        let first = waiting.find(|connection| connection.held.is_some_and(|held| held.due <= now));
        if let Some(connection) = first {
            (connection.passed, connection.passed_at) = (connection.highest, now);
            return connection.held.take();
        }
        let held = self.connections.iter().flatten().filter_map(|connection| connection.held);
        self.due = held.map(|held| held.due).min();
        None
    }
}

impl Connection {
    /// Returns also the one that waited, if this one acknowledges more.
    fn on_ack(&mut self, now: Instant, number: u32, ways: Ways) -> (Fate, Option<Held>) {
        let first = *self.first.get_or_insert_with(|| {
            (self.passed, self.highest) = (number, number.wrapping_sub(1));
            number
        });
        if number.wrapping_sub(self.highest).cast_signed() <= 0 {
            return (Fate::Pass, None);
        }
        self.highest = number;
        let obsolete = self.held.take();
        let acknowledged = number.wrapping_sub(first);
        let more = number.wrapping_sub(self.passed);
        let is_enough = more >= acknowledged.saturating_add(BEGIN) / SHARE;
        let next = self.passed_at + APART;
        let least = if ways.vary { LEAST_OF_VARYING } else { LEAST };
        if acknowledged < least || (is_enough && now >= next) {
            (self.passed, self.passed_at) = (number, now);
            return (Fate::Pass, obsolete);
        }
        // A later one waits no longer than the one that it replaces. A sender that has left slow start has less in
        // flight than an eighth of all that was acknowledged, and would stand still in each round trip.
        let due = obsolete.map_or(now + ways.longest.max(APART), |held| held.due);
        (Fate::Wait(if is_enough { next } else { due }), obsolete)
    }
}

fn place(hash: u64) -> usize {
    (hash % PLACES as u64) as usize
}

#[cfg(test)]
mod tests;
