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

mod lane;
mod some;

use std::time::Duration;

use crate::id::PathId;
use crate::time::Instant;
pub(crate) use lane::Choice;
use lane::{CATCH_UP, Lane, SLACK};

/// Datagrams leave up to so much early, so that those of a path leave together.
const AHEAD: Duration = Duration::from_micros(500);

/// A flow leaves a path that has never been full for another one only if it gains so much.
const STRANGE: Duration = Duration::from_millis(2);

/// A path that is slower than the fastest by more than this carries nothing of it.
pub(crate) const MOST_SKEW: Duration = Duration::from_millis(300);

/// Which of the paths that have room takes a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    /// That on which it arrives first.
    #[default]
    Earliest,
    /// That with the lowest delay.
    LowestRtt,
    /// All of them.
    Redundant,
}

/// The paths that carry, and what is known of them.
#[derive(Debug, Default)]
pub(crate) struct Earliest {
    rule: Rule,
    lanes: Vec<Lane>,
    /// The path that carried last what no limit held back.
    favourite: Option<PathId>,
    /// The delay of the slowest path in use.
    slowest: Duration,
}

impl Earliest {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// Whether each packet takes all paths that have room.
    pub(crate) fn copies(&self) -> bool {
        self.rule == Rule::Redundant
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.lanes.capacity() * size_of::<Lane>()
    }

    /// Gives back memory that is not needed.
    pub(crate) fn rest(&mut self) {
        self.lanes.shrink_to_fit();
    }

    /// The paths that carry. What is known of those that stay is kept.
    pub(crate) fn set_paths(&mut self, paths: impl Iterator<Item = PathId>) {
        let before = std::mem::take(&mut self.lanes);
        let known = |path| before.iter().find(|lane| lane.path == path).copied();
        self.lanes.extend(paths.map(|path| known(path).unwrap_or_else(|| Lane::new(path))));
        self.set_slowest();
    }

    /// What is known of a path: its rate in bytes per second, how much longer it takes than the fastest, and its price.
    pub(crate) fn set_path(
        &mut self,
        path: PathId,
        rate: Option<u64>,
        delay: Duration,
        price: Duration,
    ) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            (lane.delay, lane.price) = (delay, price);
            lane.set_rate(rate);
            self.set_slowest();
        }
    }

    /// How fast a burst goes through a path that has no limit, in bytes per second, as far as it is known, and what trains have shown that it
    /// carries.
    pub(crate) fn set_burst(&mut self, path: PathId, rate: Option<u64>, shown: Option<u64>) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            lane.set_burst(rate, shown);
        }
    }

    /// How much later packets arrive by a path on average because some are lost and sent again.
    pub(crate) fn set_risk(&mut self, path: PathId, risk: Duration) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            lane.risk = risk;
        }
    }

    fn set_slowest(&mut self) {
        self.slowest = self.used().map(|lane| lane.delay).max().unwrap_or_default();
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
        self.used().filter(carries).map(|lane| lane.delay).max().unwrap_or_default()
    }

    /// The rates of all paths in use, in bytes per second; `None` if one has no limit.
    pub(crate) fn rate(&self) -> Option<u64> {
        let rates = self.used().map(|lane| lane.rate);
        if self.copies() {
            // What one path carries: all carry the same.
            return rates.reduce(|one, other| Some(one?.max(other?))).flatten();
        }
        rates.sum()
    }

    /// The highest price of a path, beyond that of the cheapest.
    pub(crate) fn price(&self) -> Duration {
        let most = self.lanes.iter().map(|lane| lane.price).max().unwrap_or_default();
        most - self.least_price()
    }

    /// Whether bulk flows may take all paths alike: none costs, and each packet takes one that it arrives early by.
    pub(crate) fn equalises(&self) -> bool {
        self.rule == Rule::Earliest && self.price().is_zero()
    }

    /// Whether what has waited for so long is near to take a path that costs.
    pub(crate) fn spills(&self, waited: Duration) -> bool {
        let price = self.price();
        !price.is_zero() && waited >= price * 3 / 4
    }

    fn least_price(&self) -> Duration {
        self.used().map(|lane| lane.price).min().unwrap_or_default()
    }

    /// The path for a packet of `len` bytes that has waited for so long; `None` if there is no path at all.
    pub(crate) fn select(&self, now: Instant, len: usize, waited: Duration) -> Option<Choice> {
        if let [lane] = self.lanes[..]
            && self.rule == Rule::Earliest
            && lane.delay <= MOST_SKEW
        {
            return Some(match lane.is_paced() {
                true => lane.take(now, len, lane.idle(len)),
                false => Choice::Path(lane.path),
            });
        }
        let affordable = waited + self.least_price();
        let choice = self.select_among(now, len, affordable)?;
        let Choice::Wait(until) = choice else { return Some(choice) };
        let dearer = self.lanes.iter().map(|lane| lane.price).filter(|price| *price > affordable);
        let spills = dearer.min().map(|price| now + (price - affordable));
        Some(Choice::Wait(spills.map_or(until, |spills| until.min(spills))))
    }

    /// The same among the paths that cost no more than so much.
    fn select_among(&self, now: Instant, len: usize, most: Duration) -> Option<Choice> {
        let used = || self.used().filter(move |lane| lane.price <= most);
        if self.rule != Rule::Earliest {
            let ready = used().filter(|lane| lane.has_room(now));
            let choice = ready.min_by_key(|lane| lane.delay).map(|lane| Choice::Path(lane.path));
            let next = || used().map(|lane| lane.busy_until(now)).min();
            let free = used().filter(|lane| !lane.is_paced()).min_by_key(|lane| lane.delay);
            let choice = choice.or_else(|| free.map(|lane| Choice::Path(lane.path)));
            return choice.or_else(|| {
                Some(Choice::Wait(Instant::ZERO + next()?.since(Instant::ZERO + SLACK)))
            });
        }
        let best = used().min_by_key(|lane| lane.arrival(now, len) + self.strangeness(lane))?;
        if !best.is_paced() {
            return Some(Choice::Path(best.path));
        }
        // As much is committed to it as makes the slowest one better.
        let slowest = used().map(|lane| lane.idle(len) + self.strangeness(lane)).max()?;
        Some(best.take(now, len, slowest))
    }

    /// The paths but one that take a copy of a packet.
    pub(crate) fn copied_to(&self, now: Instant, but: PathId) -> impl Iterator<Item = PathId> {
        let others = self
            .lanes
            .iter()
            .filter(move |lane| lane.path != but && lane.price.is_zero() && lane.has_room(now));
        others.filter(|_| self.copies()).map(|lane| lane.path)
    }

    /// The path for a packet that the peer holds, from when it leaves, until it has taken `equal` longer
    /// than the fastest path does: no path takes less, so it takes the one whose queue is shortest.
    pub(crate) fn select_equalised(&self, now: Instant, equal: Duration) -> Option<Choice> {
        let held = |lane: &Lane| lane.held(equal);
        // What the packet itself takes would keep a path out that has a low rate because it has just begun. It counts nowhere here: a path
        // that is the best one and has no room would keep those out that have.
        let best = self.used().map(held).min_by_key(|lane| {
            let burst = if lane.rate.is_none() { lane.burst } else { Duration::ZERO };
            (lane.arrival(now, 0), burst, lane.delay)
        })?;
        let slowest = self.used().map(|lane| held(lane).idle(0)).max()?;
        Some(best.take(now, 0, slowest))
    }

    /// How long what is committed to the fastest path takes to leave, and the rate of that path in bytes per second.
    pub(crate) fn backlog(&self, now: Instant) -> Option<(Duration, u64)> {
        let fastest = self.lanes.iter().min_by_key(|lane| lane.delay)?;
        Some((fastest.busy_until(now).since(now), fastest.rate?))
    }

    /// A packet of `len` bytes takes this path, which was chosen for it.
    pub(crate) fn commit_chosen(&mut self, now: Instant, path: PathId, len: usize) {
        self.commit(now, path, len);
        if self.lane(path).is_some_and(|lane| lane.rate.is_none()) {
            self.favourite = Some(path);
        }
    }

    /// A packet of `len` bytes takes this path.
    pub(crate) fn commit(&mut self, now: Instant, path: PathId, len: usize) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) {
            if lane.committed == 0 {
                lane.idled |= now.since(lane.next) > CATCH_UP;
                lane.next = lane.next.max(now);
            }
            lane.committed += len;
        }
    }

    /// How many paths there are, if several, and none holds anything back.
    pub(crate) fn fast(&self) -> Option<u32> {
        let is_fast = self.has_several() && !self.lanes.iter().any(Lane::is_paced);
        is_fast.then_some(self.lanes.len() as u32)
    }

    /// Whether there is more than one path.
    pub(crate) fn has_several(&self) -> bool {
        self.lanes.len() > 1
    }

    /// Whether it helps to know what paths are like before they are used.
    pub(crate) fn is_trained(&self) -> bool {
        self.rule == Rule::Earliest
    }

    /// Whether packets wait for their path.
    pub(crate) fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.committed > 0)
    }

    /// The path by which a packet of `len` bytes that goes before all that is committed arrives first; `None` if as many
    /// do so already as may.
    pub(crate) fn select_ahead(&self, now: Instant, len: usize) -> Option<PathId> {
        let free = self.least_price();
        let used = self.used().filter(|lane| lane.price <= free);
        let arrival = |lane: &&Lane| {
            let leaves = lane.next.max(now) + lane.time(lane.ahead + len);
            leaves + lane.delay + self.strangeness(lane)
        };
        let best = used.min_by_key(arrival)?;
        (best.time(best.ahead) <= SLACK).then_some(best.path)
    }

    /// Whether packets that are lost are sent again: not where each takes all paths anyway.
    pub(crate) fn repairs(&self) -> bool {
        self.rule != Rule::Redundant
    }

    /// The two paths by which a packet of `len` bytes that goes before all that is committed arrives first, the better one
    /// first. One that costs is taken only if all do.
    pub(crate) fn best_ahead(&self, now: Instant, len: usize) -> [Option<PathId>; 2] {
        let free = self.least_price();
        let used = || self.used().filter(move |lane| lane.price <= free);
        let arrival = |lane: &&Lane| lane.next.max(now) + lane.time(lane.ahead + len) + lane.delay;
        let best = used().min_by_key(arrival).map(|lane| lane.path);
        let second = used().filter(|lane| Some(lane.path) != best).min_by_key(arrival);
        [best, second.map(|lane| lane.path)]
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

    /// Whether the next datagram of a path may leave: it is due, or nearly so, or nothing is held back there.
    pub(crate) fn may_send(&self, now: Instant, path: PathId) -> bool {
        self.is_due(now, path) || self.lane(path).is_some_and(|lane| !lane.is_paced())
    }

    /// Whether the path has sent all that it can carry until now, or nearly so.
    pub(crate) fn is_due(&self, now: Instant, path: PathId) -> bool {
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

    /// Of the paths to which more is committed than would be now, because their rates have fallen, the one on
    /// which the last of that arrives latest, and when.
    pub(crate) fn latest(&self, now: Instant) -> Option<(PathId, Instant)> {
        let most = |lane: &Lane| self.slowest.saturating_sub(lane.delay) + SLACK;
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
        let from = self.lane(but)?.price;
        let used = self.used().filter(|lane| lane.path != but && lane.price <= from);
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

    /// By how much earlier a packet has to arrive by a path without a limit to take it: by what it may lose; and if it was
    /// another one that carried the last, by more, as it may have a limit, and nothing is gained.
    fn strangeness(&self, lane: &Lane) -> Duration {
        let is_other = self.favourite.is_some_and(|path| path != lane.path);
        let strange = if is_other { STRANGE } else { Duration::ZERO };
        if lane.rate.is_none() { strange + lane.burst + lane.risk } else { Duration::ZERO }
    }

    /// The paths that are not too slow to carry anything.
    fn used(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| lane.delay <= MOST_SKEW)
    }

    fn lane(&self, path: PathId) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.path == path)
    }

    /// A datagram of `len` bytes leaves now that was committed before. Returns whether the path has had nothing to send
    /// for a while since the one before.
    pub(crate) fn on_sent(&mut self, now: Instant, path: PathId, len: usize) -> bool {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.path == path) else { return true };
        lane.on_sent(now, len, self.slowest);
        std::mem::take(&mut lane.idled)
    }

    #[cfg(test)]
    fn committed(&self, path: PathId) -> usize {
        self.lane(path).map_or(0, |lane| lane.committed)
    }
}

#[cfg(test)]
mod tests;
