//! What the choice by earliest arrival is told of the paths: their rates and delays, and from both how much may wait.

use std::num::NonZeroU32;
use std::time::Duration;

use super::connection::TransmitHalf;
use super::early::{LITTLE, Way, early_delay};
use super::equalise::{Situation, shrunk};
use super::path::{ROUND_TRIP, TransmitPath};
use crate::config::SchedulerConfig;
use crate::id::PathId;
use crate::queue::{Limits, Times};
use crate::scheduler::earliest::{Earliest, MOST_SKEW};
use crate::slots::Slots;
use crate::time::Instant;

/// No more than this waits, whatever the rates: 64 MiB.
const MOST_WAITING: usize = 64 << 20;

/// A path that has not been used for so long although packets wait is tried again.
const UNUSED: Duration = Duration::from_secs(1);

/// A path that loses more than this share of datagrams has flows wait for repairs.
const LOSSY: f64 = 0.002;

/// The queue of flows that come in bursts may stand so many times as long before that tells of congestion.
const BURSTS: u32 = 3;

/// So much longer may packets wait after a path was left: as long as what was sent on it until then takes.
const LEFT_BEHIND: Duration = Duration::from_millis(150);

/// No longer a queue is kept for the window that transfers had while the paths carried more.
const MOST_KEPT: Duration = Duration::from_millis(100);

/// So long a transfer may have stood in the queue when it was told to slow down last: that is a part of its window, too.
const QUEUED: Duration = Duration::from_millis(30);

/// As much of TCP waits at most as the paths carry in this time, or in a round trip if that is longer. More would only be lost
/// later, by transfers that had time to grow beyond what the paths carry.
const TCP_STANDS: Duration = Duration::from_millis(100);

/// The same of all flows. Where paths are joined, congestion control that takes the time between two acknowledgements for
/// a rate, as quinn's BBR does, keeps several round trips in flight; what is dropped of that stops it for seconds.
/// RFC 8290 section 5.2.2 allows 10,240 packets by default, which is more below 300 Mbit/s.
const ALL_STAND: Duration = Duration::from_millis(400);

/// Of the queue that others keep so much counts.
const MOST_QUEUE: Duration = Duration::from_secs(1);

/// Up to this price the queue may become as long: so a flow that fills the other paths takes also those that cost. Above
/// it, such a flow is told to slow down before.
const MOST_PRICE: Duration = Duration::from_millis(100);

impl TransmitHalf {
    /// Something has become known of the paths.
    pub(super) fn set_rates(&mut self, now: Instant) {
        if self.paced.is_none() {
            self.hold_by_weight(now);
            return;
        }
        // As soon as a path is full, the others are needed: they are not to be flooded.
        if self.paths.iter().any(|(_, path)| path.usable() && path.rate.is_measured()) {
            for (_, path) in self.paths.iter_mut().filter(|(_, path)| path.usable()) {
                let round_trip = path.round_trip();
                path.rate.start(round_trip);
            }
        }
        // A path that is not chosen although packets wait may be better than it is believed to be.
        if self.paced.as_ref().is_some_and(|paced| !paced.queues.is_empty()) {
            for (_, path) in self.paths.iter_mut().filter(|(_, path)| path.usable()) {
                if path.idle.elapsed(now) >= UNUSED {
                    let round_trip = path.round_trip();
                    path.rate.retry(now, round_trip);
                }
            }
        }
        let is_repaired = self.is_repaired();
        let Some(earliest) = self.scheduler.earliest_mut() else { return };
        for (index, path) in usable(&self.paths) {
            let delay = slower_than_fastest(&self.paths, path).unwrap_or_default();
            let taken = path.takes_over.filter(|(until, _)| now < *until).map(|(_, rate)| rate);
            let rate = path.fixed_rate.or_else(|| path.rate.pace()).or(taken);
            // One that is used again after it was left begins with less, which counts if anything is known of it.
            let share = path.patience.share(now, path.round_trip());
            let of = |rate: u64, share: f64| (rate as f64 * share) as u64;
            let rate = match (share, rate) {
                (Some(share), Some(rate)) => Some(of(rate, share.min(1.0))),
                (Some(share), None) => path.rate.rate().map(|rate| of(rate, share)),
                (None, rate) => rate,
            };
            earliest.set_path(PathId(index as u8), rate, delay, path.cost());
            let shown = path.rate.shown().map(|shown| shown as u64);
            earliest.set_burst(PathId(index as u8), path.rate.burst(), shown);
            let risk = path.round_trip().mul_f64(path.feedback.loss_expected());
            earliest.set_risk(PathId(index as u8), risk);
        }
        let least = least_round_trip(&self.paths);
        let mut round_trip = least + earliest.skew();
        // Packets wait at the peer for those that are repaired, so flows need a longer queue to fill the paths.
        let lossy = |path: &TransmitPath| path.feedback.loss_recent().is_some_and(|it| it > LOSSY);
        let waits = is_repaired && usable(&self.paths).any(|(_, path)| lossy(path));
        if waits {
            round_trip += round_trip * 3 / 2;
        }
        // So do they where packets overtake each other.
        let spreads = usable(&self.paths).map(|(_, path)| path.rate.spread());
        let spread = spreads.max().unwrap_or_default();
        round_trip += spread * 4;
        // Both together are what it takes until losses are heard of, once there were some. Where delays do not vary that would count the
        // queue which others keep.
        if waits && !spread.is_zero() {
            let repaired = self.repair.latency.expected() + recent_round_trip(&self.paths);
            round_trip = round_trip.max(repaired);
        }
        // What was waited for leaves the peer at once, and is acknowledged at once: flows come in bursts, each of which stands in
        // the queue for longer than a round trip.
        let bursts = if waits || !spread.is_zero() { BURSTS } else { 1 };
        // Where others keep a queue, flows take as much longer to fill the path, and to yield.
        let competing = usable(&self.paths).filter(|(_, path)| path.rate.competes());
        let queue = competing.map(|(_, path)| path.rate.queue()).max().unwrap_or_default();
        round_trip += queue.min(MOST_QUEUE);
        // A path that costs is taken by what has waited for its price. That must not be dropped before.
        let most = earliest.price();
        let mut price = if most <= MOST_PRICE { most } else { Duration::ZERO };
        // What a path has left behind goes first: the flows did not cause that.
        let takes_over =
            |path: &TransmitPath| path.takes_over.is_some_and(|(until, _)| now < until);
        // Nor what a path that begins will soon carry.
        let begins = |path: &TransmitPath| path.rate.is_starting() && path.cost().is_zero();
        let patience = if usable(&self.paths).any(|(_, path)| takes_over(path) || begins(path)) {
            LEFT_BEHIND
        } else {
            Duration::ZERO
        };
        // What transfers had in flight while the paths carried more, which they soon may again.
        let carried = rate_of(&self.paths, TransmitPath::carries);
        let left = rate_of(&self.paths, |path| !path.carries() && path.patience.is_missed(now));
        let fallen = self.highest_rate.of_late(now, carried) * 2 / 3;
        let kept = window_of(least, left, carried).max(window_of(
            round_trip,
            fallen.saturating_sub(carried),
            carried,
        ));
        price += patience + kept;
        let times = Times {
            target: Duration::from_millis(5).max(round_trip / 5) + price,
            interval: Duration::from_millis(100).max(round_trip * 6 / 5) * bursts + price,
            round_trip,
        };
        let rate = earliest.rate().unwrap_or(u64::MAX).min(u64::from(u32::MAX));
        let more = earliest.skew() + most + patience;
        let in_time = |time: Duration| {
            ((rate as f64 * (time.max(round_trip) + more).as_secs_f64()) as usize).min(MOST_WAITING)
        };
        let (tcp, all) = (in_time(TCP_STANDS * bursts), in_time(ALL_STAND));
        if let Some(paced) = &mut self.paced {
            paced.queues.set_limits(times, Limits { tcp, all });
            for (_, queues) in &mut paced.within {
                queues.set_limits(times, Limits { tcp, all });
            }
        }
        self.set_early(now);
        self.equalise(now);
        self.move_earlier(now);
    }

    /// Has the delay of full segments follow what is known of the paths, where these are taken by weight.
    pub(super) fn hold_by_weight(&mut self, now: Instant) {
        let is_session = self.framing.index().is_some();
        let holds = self.equalises && is_session && self.policy == SchedulerConfig::Weighted;
        let trip = |path: &TransmitPath| {
            let least = path.feedback.round_trip().map(|trip| trip.min);
            (path.weight.in_force(), least.or(path.metrics.round_trip))
        };
        let paths = usable(&self.paths).filter(|_| holds);
        if self.by_weight.follow(paths.map(|(_, path)| trip(path))) {
            // On all paths, since one of them may lose it.
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }

    /// Has the early delay follow what is known of the paths.
    fn set_early(&mut self, now: Instant) {
        // To tell the peer of each of its steps would spoil what is being found out.
        if usable(&self.paths).any(|(_, path)| path.is_shown(now)) {
            return;
        }
        let equalises =
            self.equalises && self.scheduler.earliest().is_some_and(|it| it.equalises());
        let mut ways = Vec::new();
        let bases = usable(&self.paths).filter_map(|(_, path)| path.rate.least());
        let fastest =
            bases.reduce(
                |one, other| {
                    if one.wrapping_sub(other).cast_signed() < 0 { one } else { other }
                },
            );
        let most = usable(&self.paths).filter_map(|(_, path)| path.rate.capacity()).max();
        for (index, path) in usable(&self.paths).filter(|_| equalises) {
            let known = path.rate.capacity().filter(|_| !path.rate.is_least()).or(most);
            let rate = path.fixed_rate.or(path.rate.capacity().and(known));
            let (Some(base), Some(fastest)) = (path.rate.least(), fastest) else { continue };
            let skew = Duration::from_micros(base.wrapping_sub(fastest).into());
            if skew <= MOST_SKEW {
                let spread = path.rate.spread();
                let (path, is_known) = (PathId(index as u8), !path.rate.is_least());
                ways.push(Way { path, rate, is_known, skew, spread });
            }
        }
        let early = early_delay(&mut ways, least_round_trip(&self.paths));
        let has_several = equalises && usable(&self.paths).nth(1).is_some();
        let Some(paced) = &mut self.paced else { return };
        if paced.equalise.set_early(now, early, has_several) {
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }

    /// Has the equal delay follow what is known of the paths.
    pub(super) fn equalise(&mut self, now: Instant) {
        let earliest = self.scheduler.earliest();
        let Some((backlog, rate)) = earliest.and_then(|earliest| earliest.backlog(now)) else {
            return;
        };
        let is_known = |path: PathId| {
            self.paths.get(path.index()).is_some_and(|path| path.rate.capacity().is_some())
        };
        let skew = earliest.map(|it| it.worthwhile_skew(is_known));
        let equalises = self.equalises && earliest.is_some_and(Earliest::equalises);
        let skew = skew.filter(|_| equalises).unwrap_or_default();
        let round_trip = least_round_trip(&self.paths);
        let Some(paced) = &mut self.paced else { return };
        let is_full = !paced.queues.is_empty();
        let measured = |path: &TransmitPath| path.rate.rate().filter(|_| path.rate.is_measured());
        let rates = usable(&self.paths).map(|(_, path)| measured(path)).sum();
        let delay = paced.equalise.delay();
        let within = |delay| earliest.map_or(rate, |it| it.rate_within(delay).max(rate));
        let reached = [delay, shrunk(delay)].map(within);
        let situation = Situation { backlog, reached, rates, is_full, skew, round_trip };
        if paced.equalise.update(now, situation) {
            // On all paths, since one of them may lose it.
            self.paths.iter_mut().for_each(|(_, path)| path.keepalive_now(now));
        }
    }

    /// The equal delay, as path status tells it.
    pub(super) fn told_equal_delay(&self) -> Option<NonZeroU32> {
        match &self.paced {
            Some(paced) => paced.equalise.told(),
            None => self.by_weight.told(),
        }
    }
}

/// The paths that can carry.
fn usable(paths: &Slots<TransmitPath>) -> impl Iterator<Item = (usize, &TransmitPath)> + Clone {
    paths.iter().filter(|(_, path)| path.carries())
}

/// The rates of the paths of which this is true, as far as they are known.
fn rate_of(paths: &Slots<TransmitPath>, is_meant: impl Fn(&TransmitPath) -> bool) -> u64 {
    let meant = paths.iter().map(|(_, path)| path).filter(|path| is_meant(path));
    meant.filter_map(|path| path.fixed_rate.or_else(|| path.rate.rate())).sum()
}

/// How long it takes to send what a transfer has in flight because the paths carried so much more.
fn window_of(round_trip: Duration, more: u64, carried: u64) -> Duration {
    let times = (more as f64 / carried.max(1) as f64).min(100.0);
    (round_trip + QUEUED).mul_f64(times).min(MOST_KEPT)
}

/// The least round trip of the paths that can carry, as far as it is known.
pub(super) fn least_round_trip(paths: &Slots<TransmitPath>) -> Duration {
    let known = usable(paths).filter(|(_, path)| path.feedback.round_trip().is_some());
    known.map(|(_, path)| path.round_trip()).min().unwrap_or(ROUND_TRIP)
}

/// The longest of the least round trips of the paths that can carry, if all are known.
pub(super) fn longest_round_trip(paths: &Slots<TransmitPath>) -> Option<Duration> {
    let trips = usable(paths).map(|(_, path)| path.feedback.round_trip().map(|trip| trip.min));
    trips.reduce(|one, other| Some(one?.max(other?)))?
}

/// The least round trip of late of the paths that can carry, as far as it is known.
pub(super) fn recent_round_trip(paths: &Slots<TransmitPath>) -> Duration {
    let known = usable(paths).filter_map(|(_, path)| path.feedback.round_trip());
    known.map(|trip| trip.smoothed).min().unwrap_or(ROUND_TRIP)
}

/// Whether the delay of a path varies that does not carry little compared with the best one, as far as that is known.
pub(super) fn have_jitter(paths: &Slots<TransmitPath>) -> bool {
    let capacity = |path: &TransmitPath| path.rate.capacity().map(|rate| rate as f64);
    let most = usable(paths).filter_map(|(_, path)| capacity(path)).fold(0.0, f64::max);
    let carries = |path: &TransmitPath| capacity(path).is_none_or(|rate| rate >= LITTLE * most);
    usable(paths).any(|(_, path)| path.rate.spreads() && carries(path))
}

/// How much longer datagrams take by a path than by the fastest of those that can carry; `None` if it is not known.
pub(super) fn slower_than_fastest(
    paths: &Slots<TransmitPath>,
    path: &TransmitPath,
) -> Option<Duration> {
    let Some(own) = path.delay() else {
        // Of a path that carried nothing only the round trip is known.
        let others = usable(paths).filter_map(|(_, other)| other.metrics.round_trip);
        return Some(path.metrics.round_trip?.saturating_sub(others.min()?) / 2);
    };
    let others = usable(paths).filter_map(|(_, other)| other.delay());
    let micros = others.map(|other| own.wrapping_sub(other).cast_signed()).max()?;
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}
