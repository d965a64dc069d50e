//! Copies of what was sent, until feedback tells what became of it.
//!
//! They lie in one ring for all connections, which grows as long as it would have to overwrite what is not acknowledged.
//! When it is as large as it may be, the oldest are forgotten: they are not repaired then, and nothing waits for that.

mod missing;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use crate::framing::Stamp;
use crate::id::{ConnectionId, PathId};
use crate::sequence::Seq;
use crate::time::Instant;
use crate::tx::repair::{Again, CopyKind, DEADLINE};
use crate::tx::retransmit::Sent;
use crate::wire::extended::feedback::Block;

/// The most bytes of inner packets that are kept: what 2.5 Gbit/s amount to in 100 ms.
const CAPACITY: usize = 32 << 20;

/// The bytes to begin with. More than any one packet has.
const LEAST: usize = 64 << 10;

/// The most packets that are kept.
const MOST: usize = 32_768;

/// The most bytes that are copied per second: the packets of 2 Gbit/s. At the 0.1 µs or so that a copy of 1400 bytes
/// takes they cost two percent of a processor.
const PER_SECOND: usize = 256 << 20;

/// The bounds of what is kept, and how much that is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Packets that are kept.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were not kept, or were forgotten before anything was known of them, because of a bound.
    pub forgotten: u64,
}

impl StoreStats {
    /// The most packets that are kept.
    pub const MOST_PACKETS: usize = MOST;
    /// The most bytes of them.
    pub const MOST_BYTES: usize = CAPACITY;
    /// The most bytes that are kept per second. While more are sent, none are.
    pub const MOST_BYTES_PER_SECOND: usize = PER_SECOND;
}

/// What feedback shows of a packet before that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Missing,
    /// It is taken to be lost, and was sent again.
    TakenLost,
    Arrived,
}

/// A packet that is kept, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// When it was sent first.
    pub(crate) first: Instant,
    /// How often it was sent before the last time, and why it was sent then if it was before.
    pub(crate) times: u8,
    pub(crate) kind: Option<CopyKind>,
    pub(crate) seen: Seen,
    pub(crate) tos: u8,
    pub(crate) stamp: Stamp,
}

impl Kept {
    /// Whether it was sent once, for no other reason than that it came.
    fn is_first(&self) -> bool {
        self.times == 0 && self.kind.is_none()
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.stamp.sequence().map_or(0, Seq::value)
    }
}

/// Which of the packets it is, counted from the first that ever was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

#[derive(Clone, Copy, Debug)]
struct Entry {
    kept: Kept,
    start: u32,
    len: u32,
    /// Whether nothing is known of it for certain.
    open: bool,
}

/// The packets that are kept.
#[derive(Debug, Default)]
pub(crate) struct Unacknowledged {
    /// The inner packets, one behind the other, round and round.
    bytes: Vec<u8>,
    /// Where the next one goes.
    end: usize,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// How many entries there were before these.
    gone: u64,
    /// By connection and path, path sequences and what was sent with them, in the order in which it was sent.
    paths: BTreeMap<(u16, u8), VecDeque<(u32, u64)>>,
    allowance: Allowance,
    kept_bytes: usize,
    forgotten: u64,
}

/// Nothing is kept while more is sent than may be. Where some of a flow's losses were repaired and others were not, the flow
/// would slow down all the same, and copies would have been made in vain.
#[derive(Debug, Default)]
struct Allowance {
    /// Bytes that were sent in this window of time.
    sent: usize,
    /// The end of the window.
    until: Instant,
    /// Whether more was sent in this window, or the one before, than may be kept.
    exceeded: bool,
}

impl Allowance {
    /// Short, so that little is copied before more turns out to be sent, and longer than what lies between two bursts of a flow.
    const WINDOW: Duration = Duration::from_micros(62_500);
    /// What may be kept in it.
    const BYTES: usize = PER_SECOND / 16;

    /// A packet of this length is sent. Whether it may be kept.
    #[inline]
    fn take(&mut self, now: Instant, len: usize) -> bool {
        if now >= self.until {
            self.exceeded = self.sent > Self::BYTES && now < self.until + Self::WINDOW;
            (self.sent, self.until) = (0, now + Self::WINDOW);
        }
        self.sent += len;
        self.exceeded |= self.sent > Self::BYTES;
        !self.exceeded
    }
}

impl Unacknowledged {
    /// Whether a packet of this length is kept that is sent now. It counts as sent.
    #[inline]
    pub(crate) fn allows(&mut self, now: Instant, len: usize) -> bool {
        let allowed = self.allowance.take(now, len);
        self.forgotten += u64::from(!allowed);
        allowed
    }

    /// Keeps a packet that was sent, for the first time or again, and that is [allowed](Self::allows).
    pub(crate) fn put(&mut self, sent: Sent, again: Option<Again>, packet: &[u8]) {
        let Some(sequence) = sent.stamp.path_sequence() else { return };
        if packet.is_empty() || packet.len() > LEAST {
            return;
        }
        let place = self.make_room(sent.at, packet.len());
        self.bytes[place.clone()].copy_from_slice(packet);
        let (start, len) = (place.start as u32, packet.len() as u32);
        let (first, times) = again.map_or((sent.at, 0), |again| (again.first, again.times));
        let kind = again.map(|again| again.kind);
        let seen = Seen::Missing;
        let kept = Kept { first, times, kind, seen, tos: sent.tos, stamp: sent.stamp };
        let number = self.gone + self.entries.len() as u64;
        self.entries.push_back(Entry { kept, start, len, open: true });
        self.kept_bytes += packet.len();
        self.end = place.end;
        let gone = self.gone;
        let path = self.paths.entry((sent.connection.0, sent.path.0)).or_default();
        // Of a path without feedback only those stay that are still there.
        while path.front().is_some_and(|(_, number)| *number < gone) {
            path.pop_front();
        }
        path.push_back((sequence, number));
    }

    /// A place for so many bytes. The ring grows if something would be overwritten that may still be needed.
    fn make_room(&mut self, now: Instant, len: usize) -> Range<usize> {
        let is_needed = |entry: &Entry| entry.open && now.since(entry.kept.first) <= DEADLINE;
        loop {
            let wraps = self.end + len > self.bytes.len();
            let place = if wraps { 0..len } else { self.end..self.end + len };
            let is_in_the_way = |entry: &Entry| {
                let start = entry.start as usize;
                // What lies behind the end of the newest is the oldest.
                let is_behind = wraps && start >= self.end;
                is_behind || start < place.end && start + entry.len as usize > place.start
            };
            let grows = self.bytes.len() < CAPACITY;
            match self.entries.front() {
                _ if self.bytes.is_empty() => self.grow(),
                Some(first) if is_in_the_way(first) && is_needed(first) && grows => self.grow(),
                Some(first) if is_in_the_way(first) || self.entries.len() == MOST => {
                    self.forget_oldest();
                }
                _ => return place,
            }
        }
    }

    /// Makes the ring twice as large, with all that is kept at its beginning.
    fn grow(&mut self) {
        self.forget_known();
        let mut bytes = vec![0; (2 * self.bytes.len()).clamp(LEAST, CAPACITY)];
        let mut end = 0;
        for entry in &mut self.entries {
            let (start, len) = (entry.start as usize, entry.len as usize);
            bytes[end..end + len].copy_from_slice(&self.bytes[start..start + len]);
            entry.start = end as u32;
            end += len;
        }
        (self.bytes, self.end) = (bytes, end);
    }

    fn forget_oldest(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.gone += 1;
            self.kept_bytes -= entry.len as usize;
            self.forgotten += u64::from(entry.open);
        }
    }

    /// Forgets what nothing is needed of any more.
    fn forget_known(&mut self) {
        while self.entries.front().is_some_and(|entry| !entry.open) {
            self.forget_oldest();
        }
    }

    /// Something is known of a packet now. `None` if it was before.
    fn close(&mut self, number: u64) -> Option<Kept> {
        let at = number.checked_sub(self.gone)?;
        let entry = self.entries.get_mut(at as usize)?;
        std::mem::take(&mut entry.open).then_some(entry.kept)
    }

    /// The peer tells what arrived by a path. What of that which was sent on it is lost goes into `lost`; for what arrived
    /// and was not sent for the first time `arrived` is called.
    pub(crate) fn on_report(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        block: &Block,
        lost: &mut Vec<Place>,
        mut arrived: impl FnMut(CopyKind, &Kept),
    ) {
        let key = (connection.0, path.0);
        let is_resolved = |sequence: u32| sequence.wrapping_sub(block.resolved).cast_signed() < 0;
        // Those that are lost are still needed for a moment.
        self.forget_known();
        while let Some(sent) = self.paths.get_mut(&key)
            && let Some(&(sequence, number)) = sent.front()
            && is_resolved(sequence)
        {
            sent.pop_front();
            let Some(kept) = self.close(number) else { continue };
            match (block.was_received(sequence), kept.kind) {
                (Some(false), _) => lost.push(Place(number)),
                (Some(true), Some(kind)) => arrived(kind, &kept),
                _ => {}
            }
        }
    }

    /// A path is left. What was sent on it and is not acknowledged goes into `lost`.
    pub(crate) fn on_left(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        lost: &mut Vec<Place>,
    ) {
        for (_, number) in self.paths.remove(&(connection.0, path.0)).unwrap_or_default() {
            if self.close(number).is_some_and(|kept| kept.seen == Seen::Missing) {
                lost.push(Place(number));
            }
        }
    }

    /// A path is in doubt. What was sent on it once, and is not acknowledged, goes into `missing`.
    pub(crate) fn on_doubted(
        &self,
        connection: ConnectionId,
        path: PathId,
        missing: &mut Vec<Place>,
    ) {
        for &(_, number) in self.paths.get(&(connection.0, path.0)).into_iter().flatten() {
            let entry = number.checked_sub(self.gone).and_then(|at| self.entries.get(at as usize));
            let is_missing = entry.is_some_and(|entry| {
                let Kept { times, kind, seen, .. } = entry.kept;
                let is_first = times == 0 && matches!(kind, None | Some(CopyKind::Covered));
                entry.open && is_first && seen == Seen::Missing
            });
            if is_missing {
                missing.push(Place(number));
            }
        }
    }

    /// A packet that is lost, as long as nothing further is kept or reported.
    pub(crate) fn get(&self, Place(number): Place) -> Option<(Kept, &[u8])> {
        let entry = self.entries.get(number.checked_sub(self.gone)? as usize)?;
        Some((entry.kept, &self.bytes[entry.start as usize..][..entry.len as usize]))
    }

    /// A connection begins, or a session of it: what was sent before has nothing to do with it.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        let own = (connection.0, u8::MIN)..=(connection.0, u8::MAX);
        let paths: Vec<_> = self.paths.range(own).map(|(key, _)| *key).collect();
        for key in paths {
            for (_, number) in self.paths.remove(&key).unwrap_or_default() {
                self.close(number);
            }
        }
    }

    /// How much is kept.
    pub(crate) fn stats(&self) -> StoreStats {
        StoreStats {
            packets: self.entries.len() as u64,
            bytes: self.kept_bytes as u64,
            forgotten: self.forgotten,
        }
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let sent: usize = self.paths.values().map(VecDeque::capacity).sum();
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + sent * size_of::<(u32, u64)>()
    }
}

#[cfg(test)]
mod tests;
