//! How long datagrams a path carries, found out by probes (RFC 8899, section 5; section 8.4 of `docs/protocol.md`).
//!
//! All lengths are bytes of UDP payload. A search begins with what the local interface and route allow and, if
//! that does not arrive, halves the distance between the longest that was answered and the shortest that was
//! not. What a path carries is *verified* when there is evidence that it carries less than before: probes of
//! the proven length and of the least length go out together. If only the short ones are answered, the path
//! is narrower now, and carries the least length until a search has found more.

use std::time::Duration;

use crate::time::Instant;

/// The least inner packet that a path has to carry, in bytes (RFC 8200, section 5).
pub(crate) const LEAST_INNER: usize = 1280;

/// Probes of one length before it counts as too long (MAX_PROBES of RFC 8899, section 5.1.2).
const TRIES: u8 = 3;

/// A search ends when the next length is so close to the proven one.
const STEP: usize = 8;

/// Between searches on a path that carries less than its interface and route allow (PMTU_RAISE_TIMER of
/// RFC 8899, section 5.1.1).
const RAISE: Duration = Duration::from_secs(600);

/// How long after a search the shortest length that did not arrive is tried again alone, doubling up to [`RAISE`]: all
/// its probes may have been lost for other reasons.
const AGAIN: Duration = Duration::from_secs(2);

/// How long a path whose proven length was verified is not verified again.
const QUIET: Duration = Duration::from_secs(1);

/// Without a datagram longer than the least length in this time, nothing that is lost says anything of lengths.
const LATELY: Duration = Duration::from_secs(1);

/// So many probes of the least length have to be answered, and none of the proven one, for a path to be narrower.
const ANSWERS: u8 = 2;

/// What is assumed of a path whose round trip is not known yet.
const ROUND_TRIP: Duration = Duration::from_millis(300);

/// The least allowance for an answer above the round trip: a busy host takes that long at times.
const ALLOWANCE: Duration = Duration::from_millis(30);

/// What one path carries, and how that is found out.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// The length of a datagram with [`LEAST_INNER`].
    base: usize,
    /// What the local interface and the route allow; 0 as long as it is not known.
    local: usize,
    /// The longest that is known to arrive; `None` before the first search has found anything.
    proven: Option<usize>,
    /// The shortest that is known not to arrive.
    too_long: Option<usize>,
    round: Option<Round>,
    /// When to begin a search, or to try the longest again if one has ended.
    next: Option<Instant>,
    /// After that, how long it takes to the next one; `None` if no search has ended.
    again: Option<Duration>,
    /// When a datagram longer than the least length was sent last.
    long_at: Option<Instant>,
    /// When the proven length was verified last.
    verified: Option<Instant>,
    /// Probes that an answer may be to, by their numbers.
    sent: Vec<(u32, usize)>,
}

/// Probes of one length, one after the other.
#[derive(Debug)]
struct Round {
    len: usize,
    verifies: bool,
    tries: u8,
    /// When to send the next one, or to give up.
    at: Instant,
    /// A probe of the least length is to follow.
    with_base: bool,
    base_arrived: u8,
}

impl PathMtu {
    /// For datagrams with this many bytes of header before the inner packet.
    pub(crate) fn new(header_len: usize) -> Self {
        Self {
            base: header_len + LEAST_INNER,
            local: 0,
            proven: None,
            too_long: None,
            round: None,
            next: None,
            again: None,
            long_at: None,
            verified: None,
            sent: Vec::new(),
        }
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<(u32, usize)>()
    }

    /// The longest datagram that is known to arrive; `None` before the first search has found anything.
    pub(crate) fn proven(&self) -> Option<usize> {
        self.proven
    }

    /// The length of a datagram that every path has to carry.
    pub(crate) fn least(&self) -> usize {
        self.base
    }

    /// The interface and the route allow datagrams of this length.
    pub(crate) fn set_local(&mut self, now: Instant, len: usize) {
        if len == self.local {
            return;
        }
        self.local = len;
        (self.too_long, self.again) = (None, None);
        self.round = None;
        self.next = Some(now);
        self.proven = self.proven.map(|proven| proven.min(len.max(self.base)));
    }

    /// The way to the peer is another one, or nobody knows: everything begins anew.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { base: self.base, local: self.local, ..Self::new(0) };
        self.next = Some(now);
    }

    /// There is a session, or the path is up again: searches that are due can begin.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.round = None;
        if self.proven.is_none_or(|proven| proven < self.local) && self.next.is_none() {
            self.next = Some(now);
        }
    }

    /// A datagram of this length is sent.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, now: Instant, len: usize) {
        if len > self.base {
            self.long_at = Some(now);
        }
    }

    /// There is evidence that long datagrams are lost, and only these.
    pub(crate) fn suspect(&mut self, now: Instant) {
        if self.long_at.is_none_or(|at| now.since(at) > LATELY) {
            return;
        }
        let is_quiet = self.verified.is_some_and(|at| now.since(at) < QUIET);
        let verifies = self.round.as_ref().is_some_and(|round| round.verifies);
        if let Some(len) = self.proven.filter(|&proven| proven > self.base)
            && !is_quiet
            && !verifies
        {
            self.round = Some(Round::new(now, len, true));
            // Answers to what was sent before say nothing of now.
            self.sent.clear();
        }
    }

    /// Some datagram longer than the least length has arrived: the path has not become narrower.
    pub(crate) fn on_long_arrived(&mut self, now: Instant) {
        if self.round.take_if(|round| round.verifies).is_some() {
            self.resume(now);
        }
    }

    /// The length of the probe to be sent at `now`, if one is due.
    pub(crate) fn poll(&mut self, now: Instant, round_trip: Option<Duration>) -> Option<usize> {
        let round_trip = round_trip.unwrap_or(ROUND_TRIP);
        let timeout = round_trip + (round_trip / 2).max(ALLOWANCE);
        loop {
            if self.round.is_none() && self.next.is_some_and(|at| at <= now) {
                self.search(now);
            }
            let round = self.round.as_mut().filter(|round| round.at <= now)?;
            if let Some(len) = round.next(now, timeout, self.base) {
                return Some(len);
            }
            self.give_up(now);
        }
    }

    /// Begins to try the next length, if there is one.
    fn search(&mut self, now: Instant) {
        self.next = None;
        if self.local == 0 {
            return;
        }
        if self.local <= self.base {
            self.proven = Some(self.base);
            return;
        }
        if self.again.is_some() {
            let len = self.too_long.unwrap_or(self.local);
            self.round = Some(Round::new(now, len, false));
            return;
        }
        let least = self.proven.unwrap_or(self.base);
        let goal = self.too_long.map_or(self.local, |too_long| least.midpoint(too_long));
        if goal < least + STEP && goal < self.local {
            self.again = Some(AGAIN);
            self.next = Some(now + AGAIN);
        } else if goal > least {
            self.round = Some(Round::new(now, goal, false));
        }
    }

    /// No probe of a round was answered in time.
    fn give_up(&mut self, now: Instant) {
        let Some(round) = self.round.take() else { return };
        if round.verifies && round.base_arrived < ANSWERS {
            // Little arrives at all, which says nothing of lengths.
            return;
        }
        if let Some(time) = self.again.filter(|_| !round.verifies) {
            let time = (time * 2).min(RAISE);
            self.next = Some(now + time);
            self.again = Some(time);
            if time == RAISE {
                // A length in between may pass by now.
                (self.too_long, self.again) = (None, None);
            }
            return;
        }
        self.proven = self.proven.filter(|_| !round.verifies).or(Some(self.base));
        (self.too_long, self.again) = (Some(round.len), None);
        self.next = Some(now);
    }

    /// A probe was sent under this number.
    pub(crate) fn on_sent(&mut self, number: u32, len: usize) {
        if self.sent.len() >= 2 * usize::from(TRIES) {
            self.sent.remove(0);
        }
        self.sent.push((number, len));
    }

    /// The numbers of the probes that an answer may be to.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + use<'_> {
        self.sent.iter().map(|(number, _)| *number)
    }

    /// A probe has arrived at the peer, by its answer.
    pub(crate) fn on_answer(&mut self, now: Instant, number: u32) {
        let Some(&(_, len)) = self.sent.iter().find(|(sent, _)| *sent == number) else { return };
        if let Some(round) = &mut self.round {
            round.base_arrived += u8::from(len == self.base);
            if len >= round.len {
                if round.verifies {
                    self.verified = Some(now);
                }
                self.round = None;
            }
        }
        if len <= self.local {
            self.proven = self.proven.max(Some(len));
            if self.too_long.take_if(|too_long| len >= *too_long).is_some() {
                self.again = None;
            }
        }
        if self.round.is_none() && self.proven < Some(self.local) && self.next.is_none() {
            self.next = Some(now);
        }
    }

    /// When to poll next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.round.as_ref().map(|round| round.at).or(self.next)
    }
}

impl Round {
    fn new(now: Instant, len: usize, verifies: bool) -> Self {
        Self { len, verifies, tries: 0, at: now, with_base: false, base_arrived: 0 }
    }

    /// The length of the probe that is due; `None` if the last one had its time. Where a length is verified, one of the
    /// least length follows each.
    fn next(&mut self, now: Instant, timeout: Duration, base: usize) -> Option<usize> {
        let is_base = std::mem::take(&mut self.with_base);
        if !is_base {
            if self.tries == TRIES {
                return None;
            }
            self.tries += 1;
            self.with_base = self.verifies;
        }
        if !self.with_base {
            self.at = if self.tries < TRIES { now + timeout / 4 } else { now + timeout };
        }
        Some(if is_base { base } else { self.len })
    }
}

#[cfg(test)]
mod tests;
