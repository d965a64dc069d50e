//! Earliest arrival with a bounded backlog: each packet takes the path on which it will arrive first.
//!
//! A path that sends `R` bytes per second, whose datagrams take `D` to the peer and which is busy until `B`, delivers
//! a packet of length `L` at max(now, B) + L/R + D. Where R and D are right, packets arrive in the order in which they
//! were committed; and when all paths are busy, each has the share of its rate (the principle is that of ECF: Lim et
//! al., ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, CoNEXT 2017).
//!
//! What is committed cannot be taken back: its number is given. So no more is committed to a path than it takes to
//! bridge the difference of its delay to the slowest one, and a little to keep it busy. The rest waits without
//! a number.

use std::time::Duration;

use crate::id::PathId;
use crate::time::Instant;

/// A path is given so much more than the difference of delays, so that it is never idle between two wake-ups.
const SLACK: Duration = Duration::from_millis(2);

/// What is committed to a path moves elsewhere if it takes so much longer than it should.
const OVERDUE: Duration = Duration::from_millis(3);

/// Datagrams leave up to so much early, so that those of a path leave together.
const AHEAD: Duration = Duration::from_micros(500);

/// How much of the time in which nobody sent, because the host stood still, is made up for.
const CATCH_UP: Duration = Duration::from_millis(4);

/// A path that is slower than the fastest by more than this carries nothing of it.
pub(crate) const MOST_SKEW: Duration = Duration::from_millis(300);

/// The paths that carry, and what is known of them.
#[derive(Debug, Default)]
pub(crate) struct Earliest {
    lanes: Vec<Lane>,
    /// The delay of the slowest path in use.
    slowest: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    path: PathId,
    /// In bytes per second; without a limit if it is not known.
    rate: Option<u64>,
    /// How much longer datagrams take by it than by the fastest.
    delay: Duration,
    /// When the next datagram may leave.
    next: Instant,
    /// Bytes that are committed and have not left, and those of them that leave before the others.
    committed: usize,
    ahead: usize,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// By this path.
    Path(PathId),
    /// Nowhere before this time.
    Wait(Instant),
}

impl Earliest {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.lanes.capacity() * size_of::<Lane>()
    }

    /// The paths that carry. What is known of those that stay is kept.
    pub(crate) fn set_paths(&mut self, paths: impl Iterator<Item = PathId>) {
        let before = std::mem::take(&mut self.lanes);
        let new = |path| Lane {
            path,
            rate: None,
            delay: Duration::ZERO,
            next: Instant::ZERO,
            committed: 0,
            ahead: 0,
        };
        let known = |path| before.iter().find(|lane| lane.path == path).copied();
        self.lanes.extend(paths.map(|path| known(path).unwrap_or_else(|| new(path))));
        self.set_slowest();
    }

    /// What is known of a path: its rate in bytes per second, and how much longer it takes than the fastest.
    pub(crate) fn set_path(&mut self, path: PathId, rate: Option<u64>, delay: Duration) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            (lane.rate, lane.delay) = (rate, delay);
            self.set_slowest();
        }
    }

    fn set_slowest(&mut self) {
        let used = self.lanes.iter().map(|lane| lane.delay).filter(|delay| *delay <= MOST_SKEW);
        self.slowest = used.max().unwrap_or_default();
    }

    /// How much longer the slowest path in use takes than the fastest.
    pub(crate) fn skew(&self) -> Duration {
        self.slowest
    }

    /// How much longer the slowest of those paths in use takes than the fastest that carry at least a tenth of what the
    /// fastest does, or of which that is not known.
    pub(crate) fn worthwhile_skew(&self, is_known: impl Fn(PathId) -> bool) -> Duration {
        let fastest = self.lanes.iter().min_by_key(|lane| lane.delay).and_then(|lane| lane.rate);
        let carries = |lane: &&Lane| {
            !is_known(lane.path) || lane.rate.zip(fastest).is_none_or(|(it, most)| it >= most / 10)
        };
        let used = self.lanes.iter().filter(|lane| lane.delay <= MOST_SKEW);
        used.filter(carries).map(|lane| lane.delay).max().unwrap_or_default()
    }

    /// The rates of all paths in use, in bytes per second; `None` if one has no limit.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.lanes.iter().filter(|lane| lane.delay <= MOST_SKEW).map(|lane| lane.rate).sum()
    }

    /// The path for a packet of `len` bytes; `None` if there is no path at all.
    pub(crate) fn select(&self, now: Instant, len: usize) -> Option<Choice> {
        let used = || self.lanes.iter().filter(|lane| lane.delay <= MOST_SKEW);
        let best = used().min_by_key(|lane| lane.arrival(now, len))?;
        // What the packet itself takes on a slow path is part of the difference.
        let idle = |lane: &Lane| lane.time(len) + lane.delay;
        let slowest = used().map(idle).max()?;
        let allowed = slowest - idle(best) + SLACK;
        let busy = best.busy_until(now);
        if busy.since(now) <= allowed {
            return Some(Choice::Path(best.path));
        }
        Some(Choice::Wait(Instant::ZERO + busy.since(Instant::ZERO + allowed)))
    }

    /// The path for a packet of `len` bytes that the peer holds until it has taken `equal` longer than the fastest path
    /// does: all paths by which it comes before are as good, so it takes the one whose queue is shortest.
    pub(crate) fn select_equalised(
        &self,
        now: Instant,
        len: usize,
        equal: Duration,
    ) -> Option<Choice> {
        let used = || self.lanes.iter().filter(|lane| lane.delay <= MOST_SKEW);
        // What the packet itself takes would keep a path out that has a low rate because it has just begun.
        let held = |lane: &Lane| (lane.busy_until(now) + lane.delay).max(now + equal);
        let best = used().min_by_key(|lane| (held(lane), lane.busy_until(now), lane.delay))?;
        let idle = |lane: &Lane| lane.time(len) + lane.delay;
        let slowest = used().map(idle).max()?.max(equal);
        let allowed = slowest - idle(best) + SLACK;
        let busy = best.busy_until(now);
        if busy.since(now) <= allowed {
            return Some(Choice::Path(best.path));
        }
        Some(Choice::Wait(Instant::ZERO + busy.since(Instant::ZERO + allowed)))
    }

    /// How long what is committed to the fastest path takes to leave, and the rate of that path in bytes per second.
    pub(crate) fn backlog(&self, now: Instant) -> Option<(Duration, u64)> {
        let fastest = self.lanes.iter().min_by_key(|lane| lane.delay)?;
        Some((fastest.busy_until(now).since(now), fastest.rate?))
    }

    /// A packet of `len` bytes takes this path.
    pub(crate) fn commit(&mut self, now: Instant, path: PathId, len: usize) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            if lane.committed == 0 {
                lane.next = lane.next.max(now);
            }
            lane.committed += len;
        }
    }

    /// Whether there is more than one path.
    pub(crate) fn has_several(&self) -> bool {
        self.lanes.len() > 1
    }

    /// Whether packets wait for their path.
    pub(crate) fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.committed > 0)
    }

    /// The path by which a packet of `len` bytes that goes before all that is committed arrives first; `None` if as many
    /// do so already as may.
    pub(crate) fn select_ahead(&self, now: Instant, len: usize) -> Option<PathId> {
        let used = self.lanes.iter().filter(|lane| lane.delay <= MOST_SKEW);
        let arrival = |lane: &&Lane| lane.next.max(now) + lane.time(lane.ahead + len) + lane.delay;
        let best = used.min_by_key(arrival)?;
        (best.time(best.ahead) <= SLACK).then_some(best.path)
    }

    /// A packet of `len` bytes that goes before all that is committed takes this path.
    pub(crate) fn commit_ahead(&mut self, now: Instant, path: PathId, len: usize) {
        self.commit(now, path, len);
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            lane.ahead += len;
        }
    }

    /// When the next datagram of a path is due.
    pub(crate) fn next(&self, path: PathId) -> Instant {
        self.lane(path).map_or(Instant::ZERO, |lane| lane.next)
    }

    /// Whether the next datagram of a path may leave: it is due, or nearly so.
    pub(crate) fn may_send(&self, now: Instant, path: PathId) -> bool {
        self.next(path) <= now + AHEAD
    }

    /// Whether the path carries.
    pub(crate) fn has(&self, path: PathId) -> bool {
        self.lane(path).is_some()
    }

    /// The path by which a packet of `len` bytes arrives first, however much is committed to it.
    pub(crate) fn soonest(&self, now: Instant, len: usize) -> Option<PathId> {
        self.lanes.iter().min_by_key(|lane| lane.arrival(now, len)).map(|lane| lane.path)
    }

    /// Of the paths to which clearly more is committed than would be now, because their rates have fallen, the one on
    /// which the last of that arrives latest, and when.
    pub(crate) fn latest(&self, now: Instant) -> Option<(PathId, Instant)> {
        let most =
            |lane: &Lane| (self.slowest.saturating_sub(lane.delay) + SLACK) * 3 / 2 + OVERDUE;
        let is_overdue =
            |lane: &&Lane| lane.committed > 0 && lane.busy_until(now).since(now) > most(lane);
        let overdue = self.lanes.iter().filter(is_overdue);
        overdue.map(|lane| (lane.path, lane.arrival(now, 0))).max_by_key(|(_, arrival)| *arrival)
    }

    /// The path but one by which a packet of `len` bytes arrives first after all that is committed, and when.
    pub(crate) fn soonest_but(
        &self,
        now: Instant,
        len: usize,
        but: PathId,
    ) -> Option<(PathId, Instant)> {
        let used = self.lanes.iter().filter(|lane| lane.path != but && lane.delay <= MOST_SKEW);
        used.map(|lane| (lane.path, lane.arrival(now, len))).min_by_key(|(_, arrival)| *arrival)
    }

    /// A packet of `len` bytes that was committed to a path does not take it.
    pub(crate) fn take_back(&mut self, path: PathId, len: usize) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            lane.committed = lane.committed.saturating_sub(len);
        }
    }

    /// Nothing is committed any more.
    pub(crate) fn clear(&mut self) {
        self.lanes.iter_mut().for_each(|lane| (lane.committed, lane.ahead) = (0, 0));
    }

    fn lane(&self, path: PathId) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.path == path)
    }

    /// A datagram of `len` bytes leaves now that was committed before.
    pub(crate) fn on_sent(&mut self, now: Instant, path: PathId, len: usize) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            lane.committed = lane.committed.saturating_sub(len);
            lane.ahead = lane.ahead.saturating_sub(len);
            let from = Instant::ZERO + now.since(Instant::ZERO + CATCH_UP);
            lane.next = lane.next.max(from) + lane.time(len);
        }
    }

    #[cfg(test)]
    fn committed(&self, path: PathId) -> usize {
        self.lane(path).map_or(0, |lane| lane.committed)
    }
}

impl Lane {
    /// How long it takes to send so many bytes.
    fn time(&self, len: usize) -> Duration {
        let nanos = |rate: u64| (len as u64).saturating_mul(1_000_000_000) / rate.max(1);
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_nanos(nanos(rate)))
    }

    /// When what is committed will have left.
    fn busy_until(&self, now: Instant) -> Instant {
        self.next.max(now) + self.time(self.committed)
    }

    fn arrival(&self, now: Instant, len: usize) -> Instant {
        self.busy_until(now) + self.time(len) + self.delay
    }
}

#[cfg(test)]
mod tests;
