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
mod tests {
    use super::*;
    use crate::queue::store::Store;

    const LONGEST: Duration = Duration::from_millis(20);

    /// Paths whose delays vary.
    const WAYS: Ways = Ways { longest: LONGEST, vary: true, is_crowded: false };

    /// Acknowledges a window in slow start, two segments at a time, of a round of this length. Returns how many
    /// acknowledgements were passed on, and the least time between them.
    fn round(
        acks: &mut AckThinner,
        at: &mut Instant,
        number: &mut u32,
        bytes: u32,
    ) -> Vec<Instant> {
        let count = bytes / 2920;
        let mut passed = Vec::new();
        let mut store = Store::default();
        for _ in 0..count {
            *at += Duration::from_millis(100) / count;
            *number = number.wrapping_add(2920);
            passed.extend(acks.poll(*at).map(|_| *at));
            match acks.on_segment(*at, 7, Segment::Ack(*number), WAYS).0 {
                Fate::Pass => passed.push(*at),
                Fate::Wait(until) => acks.hold(7, store.take(52), 52, 0, until),
            }
        }
        passed
    }

    #[test]
    fn fewer_than_eight_in_a_round_of_slow_start() {
        let mut acks = AckThinner::default();
        let (mut at, mut number) = (Instant::ZERO, u32::MAX - 100_000);
        acks.on_segment(at, 7, Segment::Syn, WAYS);
        assert_eq!(acks.on_segment(at, 7, Segment::Ack(number), WAYS).0, Fate::Pass);
        let mut window = BEGIN;
        for doubled in 0..8 {
            let passed = round(&mut acks, &mut at, &mut number, window);
            if window > BEGIN {
                assert!((4..8).contains(&passed.len()), "{doubled}: {}", passed.len());
                let apart = passed.windows(2).map(|pair| pair[1].since(pair[0])).min();
                assert!(apart.is_some_and(|apart| apart >= APART), "{apart:?}");
            }
            window *= 2;
        }
    }

    #[test]
    fn the_last_one_leaves_and_what_shows_trouble_ends_it() {
        let mut acks = AckThinner::default();
        let mut store = Store::default();
        let ms = |millis| Instant::ZERO + Duration::from_millis(millis);
        acks.on_segment(ms(0), 7, Segment::Syn, WAYS);
        acks.on_segment(ms(1), 7, Segment::Ack(0), WAYS);
        acks.on_segment(ms(10), 7, Segment::Ack(BEGIN), WAYS);
        let (fate, _) = acks.on_segment(ms(20), 7, Segment::Ack(BEGIN + 1), WAYS);
        assert_eq!(fate, Fate::Wait(ms(40)));
        acks.hold(7, store.take(52), 52, 0, ms(40));
        assert_eq!(acks.due(), Some(ms(40)));
        assert_eq!(acks.poll(ms(39)), None);
        assert!(acks.poll(ms(40)).is_some());
        assert_eq!((acks.poll(ms(40)), acks.due()), (None, None));
        let (_, obsolete) = acks.on_segment(ms(50), 7, Segment::Ack(BEGIN + 2), WAYS);
        assert_eq!(obsolete, None);
        acks.hold(7, store.take(52), 52, 0, ms(70));
        for number in [2, 1] {
            let again = acks.on_segment(ms(50), 7, Segment::Ack(BEGIN + number), WAYS);
            assert_eq!(again, (Fate::Pass, None), "a repeated one is counted by the sender");
        }
        let (fate, obsolete) = acks.on_segment(ms(51), 7, Segment::Report, WAYS);
        assert!(fate == Fate::Pass && obsolete.is_some());
        let (fate, _) = acks.on_segment(ms(52), 7, Segment::Ack(BEGIN + 3), WAYS);
        assert!(matches!(fate, Fate::Wait(_)), "one report may be a matter of order");
        for _ in 0..REPORTS {
            acks.on_segment(ms(53), 7, Segment::Report, WAYS);
        }
        let (fate, _) = acks.on_segment(ms(54), 7, Segment::Ack(BEGIN + 4), WAYS);
        assert_eq!(fate, Fate::Pass, "it has lost something");
    }

    #[test]
    fn a_window_that_does_not_grow_is_acknowledged_all_the_time() {
        let mut acks = AckThinner::default();
        let mut store = Store::default();
        acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
        acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
        let mut passed_at = Instant::ZERO;
        // 2 MB per second: an eighth of what was acknowledged before is soon more than is in flight.
        for millis in 1..4000_u32 {
            let now = Instant::ZERO + Duration::from_millis(millis.into());
            if acks.poll(now).is_some() {
                passed_at = now;
            }
            match acks.on_segment(now, 7, Segment::Ack(2000 * millis), WAYS).0 {
                Fate::Pass => passed_at = now,
                Fate::Wait(until) => acks.hold(7, store.take(52), 52, 0, until),
            }
            assert!(now.since(passed_at) <= LONGEST + APART, "{millis} ms");
        }
    }

    #[test]
    fn a_mark_ends_it() {
        let mut acks = AckThinner::default();
        acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
        acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
        acks.on_segment(Instant::ZERO, 7, Segment::Marked, WAYS);
        let (fate, _) = acks.on_segment(Instant::ZERO, 7, Segment::Ack(BEGIN + 1), WAYS);
        assert_eq!(fate, Fate::Pass);
    }

    #[test]
    fn after_a_while_all_pass() {
        let mut acks = AckThinner::default();
        acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
        acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
        let later = Instant::ZERO + BEGINNING;
        for number in 0..10 {
            let segment = Segment::Ack(10 * BEGIN + number);
            assert_eq!(acks.on_segment(later, 7, segment, WAYS).0, Fate::Pass);
        }
        // Slow start takes longer where the round trip is 0.6 s.
        let longest = Duration::from_millis(150);
        let mut fate =
            |number| acks.on_segment(later, 7, Segment::Ack(number), Ways { longest, ..WAYS }).0;
        assert_eq!(fate(10 * BEGIN + 10), Fate::Pass);
        assert_eq!(fate(10 * BEGIN + 11), Fate::Wait(later + longest));
    }

    #[test]
    fn they_wait_later_on_where_the_path_is_crowded_and_only_there() {
        let mut acks = AckThinner::default();
        let mut store = Store::default();
        acks.on_segment(Instant::ZERO, 7, Segment::Syn, WAYS);
        acks.on_segment(Instant::ZERO, 7, Segment::Ack(0), WAYS);
        let begin = Instant::ZERO + 2 * BEGINNING;
        let mut passed = [0, 0];
        for millis in 1..=400_u32 {
            let (now, is_crowded) = (begin + Duration::from_millis(millis.into()), millis > 200);
            let count = &mut passed[usize::from(is_crowded)];
            *count += i32::from(acks.poll(now).is_some());
            match acks
                .on_segment(now, 7, Segment::Ack(5000 * millis), Ways { is_crowded, ..WAYS })
                .0
            {
                Fate::Pass => *count += 1,
                Fate::Wait(until) => acks.hold(7, store.take(52), 52, 0, until),
            }
        }
        assert_eq!(passed[0], 200, "all");
        assert!((9..=11).contains(&passed[1]), "{}: one each 20 ms", passed[1]);
    }
}
