//! A path that carries, and what is committed to it.

use std::time::Duration;

use crate::id::PathId;
use crate::time::Instant;

/// A path is given so much more than the difference of delays, so that it is never idle between two wake-ups.
pub(super) const SLACK: Duration = Duration::from_millis(2);

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
    /// How much longer datagrams take by it than by the fastest.
    pub(super) delay: Duration,
    /// How long a burst takes by it, if it has no limit.
    pub(super) burst: Duration,
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
    /// How long it takes to send so many bytes.
    pub(super) fn time(&self, len: usize) -> Duration {
        let nanos = |rate: u64| (len as u64).saturating_mul(1_000_000_000) / rate.max(1);
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_nanos(nanos(rate)))
    }

    /// How long after the fastest a packet of `len` bytes arrives if nothing is committed. What the packet itself takes
    /// on a slow path is part of that.
    pub(super) fn idle(&self, len: usize) -> Duration {
        self.time(len) + self.delay
    }

    /// A packet of `len` bytes takes the path unless what is committed already bridges the difference to the slowest,
    /// which takes so much longer than the fastest.
    pub(super) fn take(&self, now: Instant, len: usize, slowest: Duration) -> Choice {
        let allowed = slowest - self.idle(len) + SLACK;
        let busy = self.busy_until(now);
        if busy.since(now) <= allowed {
            return Choice::Path(self.path);
        }
        Choice::Wait(Instant::ZERO + busy.since(Instant::ZERO + allowed))
    }

    /// When what is committed will have left.
    pub(super) fn busy_until(&self, now: Instant) -> Instant {
        self.next.max(now) + self.time(self.committed)
    }

    /// Whether no more is committed than keeps it busy.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.busy_until(now).since(now) <= SLACK
    }

    pub(super) fn arrival(&self, now: Instant, len: usize) -> Instant {
        self.busy_until(now) + self.time(len) + self.delay
    }
}
