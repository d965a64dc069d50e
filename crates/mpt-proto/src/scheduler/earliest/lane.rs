//! A path that carries, and what is committed to it.

use std::time::Duration;

use crate::id::PathId;
use crate::time::Instant;

/// A path is given so much more than the difference of delays, so that it is never idle between two wake-ups.
pub(super) const SLACK: Duration = Duration::from_millis(2);

/// Where nothing is full, what counts is how long a burst of so many bytes takes, and no more than so long: a flow that
/// begins gains little from a path with a longer delay.
const BURST: u64 = 15_000;
const LONGEST_BURST: Duration = Duration::from_millis(6);

/// What was sent on a path without a limit stands in its queue for no longer than this, whatever was shown of it: feedback tells better.
const LONGEST_QUEUE: Duration = Duration::from_millis(30);

/// How much of the time in which nobody sent, because the host stood still, is made up for.
pub(super) const CATCH_UP: Duration = Duration::from_millis(4);

/// A path that carries more than this, in bytes per second, holds nothing back: to copy packets into a queue and to
/// wake up for them takes more of a processor than there is. Its rate says what it gets beside others, and nothing else.
const FASTEST_PACED: u64 = 500_000_000;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// By this path.
    Path(PathId),
    /// Nowhere before this time.
    Wait(Instant),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) path: PathId,
    /// In bytes per second; without a limit if it is not known.
    pub(super) rate: Option<u64>,
    /// How long a byte takes at this rate, in nanoseconds times 2^32: nothing is divided for each packet.
    per_byte: u64,
    /// How much longer datagrams take by it than by the fastest.
    pub(super) delay: Duration,
    /// How long a burst takes by it, if it has no limit.
    pub(super) burst: Duration,
    /// How much later packets arrive on average because some are lost.
    pub(super) risk: Duration,
    /// How long a byte takes by it, as `per_byte`, and until when it takes to carry what was sent on it, if it has no limit and trains have
    /// shown what it carries.
    shown: u64,
    full_until: Instant,
    /// How long a packet has to wait for the other paths before it takes this one.
    pub(super) price: Duration,
    /// When the next datagram may leave.
    pub(super) next: Instant,
    /// Bytes that are committed and have not left, and those of them that leave before the others.
    pub(super) committed: usize,
    pub(super) ahead: usize,
    /// Whether it has had nothing to send for a while since this was last asked.
    pub(super) idled: bool,
}

impl Lane {
    /// A path of which nothing is known.
    pub(super) fn new(path: PathId) -> Self {
        Self {
            path,
            rate: None,
            per_byte: 0,
            delay: Duration::ZERO,
            burst: LONGEST_BURST,
            risk: Duration::ZERO,
            shown: 0,
            full_until: Instant::ZERO,
            price: Duration::ZERO,
            next: Instant::ZERO,
            committed: 0,
            ahead: 0,
            idled: true,
        }
    }

    pub(super) fn set_rate(&mut self, rate: Option<u64>) {
        self.rate = rate;
        self.per_byte = per_byte(rate);
    }

    /// How fast a burst goes through it, in bytes per second, as far as it is known, and what trains have shown that it carries.
    pub(super) fn set_burst(&mut self, rate: Option<u64>, shown: Option<u64>) {
        self.shown = per_byte(shown);
        let time = |rate: u64| Duration::from_micros(BURST * 1_000_000 / rate.max(1));
        self.burst = rate.map_or(LONGEST_BURST, time).min(LONGEST_BURST);
    }

    /// How long it takes to send so many bytes.
    pub(super) fn time(&self, len: usize) -> Duration {
        Duration::from_nanos(self.nanos(len))
    }

    fn nanos(&self, len: usize) -> u64 {
        nanos(len, self.per_byte)
    }

    /// Whether packets wait for it.
    pub(super) fn is_paced(&self) -> bool {
        self.rate.is_some_and(|rate| rate <= FASTEST_PACED)
    }

    /// The path as it would be if its datagrams took at least so much longer than by the fastest. What it carries before it is full may be
    /// in its queue as long.
    pub(super) fn held(&self, equal: Duration) -> Self {
        let full_until = if equal > SLACK { Instant::ZERO } else { self.full_until };
        Self { delay: self.delay.max(equal), full_until, ..*self }
    }

    /// How long after the fastest a packet of `len` bytes arrives if nothing is committed. What the packet itself takes
    /// on a slow path is part of that.
    pub(super) fn idle(&self, len: usize) -> Duration {
        self.time(len) + self.delay
    }

    /// A packet of `len` bytes takes the path unless what is committed already bridges the difference to the slowest,
    /// which takes so much longer than the fastest.
    pub(super) fn take(&self, now: Instant, len: usize, slowest: Duration) -> Choice {
        if !self.is_paced() {
            return Choice::Path(self.path);
        }
        let allowed = slowest - self.idle(len) + SLACK;
        let busy = self.busy_until(now);
        if busy.since(now) <= allowed {
            return Choice::Path(self.path);
        }
        Choice::Wait(Instant::ZERO + busy.since(Instant::ZERO + allowed))
    }

    /// When what is committed will have left.
    pub(super) fn busy_until(&self, now: Instant) -> Instant {
        self.next.max(now).after(self.nanos(self.committed))
    }

    /// Whether no more is committed than keeps it busy.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.busy_until(now).since(now) <= SLACK
    }

    /// A datagram of `len` bytes leaves. One that is not held back is due no later than bridges the difference to the slowest
    /// path, which takes so much longer than the fastest.
    pub(super) fn on_sent(&mut self, now: Instant, len: usize, slowest: Duration) {
        self.committed = self.committed.saturating_sub(len);
        self.ahead = self.ahead.saturating_sub(len);
        if self.rate.is_none() {
            let full = self.full_until.max(now).after(nanos(len, self.shown));
            self.full_until = full.min(now + LONGEST_QUEUE);
        }
        self.next = self.next.max(now.before(CATCH_UP)).after(self.nanos(len));
        if !self.is_paced() && self.next > now + SLACK {
            self.next = self.next.min(now + slowest.saturating_sub(self.delay) + SLACK);
        }
    }

    pub(super) fn arrival(&self, now: Instant, len: usize) -> Instant {
        let busy = self.busy_until(now);
        let busy = if self.rate.is_none() { busy.max(self.full_until) } else { busy };
        busy.after(self.nanos(len)) + self.delay
    }
}

/// How long a byte takes at a rate in bytes per second, in nanoseconds times 2^32; none if it is not known.
fn per_byte(rate: Option<u64>) -> u64 {
    rate.map_or(0, |rate| (1_000_000_000 << 32) / rate.max(1))
}

/// How long so many bytes take of which one takes so long.
fn nanos(len: usize, per_byte: u64) -> u64 {
    ((len as u128 * u128::from(per_byte)) >> 32) as u64
}
