//! Paths that are silent are left at once, long before they count as down, and used again when they answer.
//!
//! What was sent on a path that is left and is not acknowledged is sent again by the others, which also carry all that follows.
//! The path stays up: path statuses go on it as probes. As soon as feedback tells that one has arrived, the path is used
//! again, with a part of its rate at first. If it is left often it has to answer for longer ([`Patience`]).
//!
//! [`Patience`]: crate::path::patience::Patience

use std::time::Duration;

use super::connection::TransmitHalf;
use super::path::{Left, TransmitPath};
use crate::id::{MAX_PATHS, PathId};
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

/// A path that was left is probed so often, and when it has gone down then, for as long as it is likely to be back soon.
const PROBES_EVERY: Duration = Duration::from_millis(50);

/// A feedback tells about all paths if these are no more.
const TOLD_AT_ONCE: u64 = 5;

/// Of a path by which packets come far apart so many bytes more are awaited.
const PACKETS: f64 = 4.0 * 1500.0;

/// Others must have been heard of so lately: if nothing is heard of any path, it is not the path.
const LATELY: Duration = Duration::from_millis(30);

/// If it is so late that the time is over, the host stood still, and may not have read what has arrived.
const LATE: Duration = Duration::from_millis(3);
const GRACE: Duration = Duration::from_millis(5);

/// A path that carries so many times as much as another one need not be paced when it takes that over. For how long it is
/// at least.
const SPARE: u64 = 4;
const TAKES_OVER: Duration = Duration::from_millis(100);

/// The only path that carries is left for one that was left before if it is silent for so much longer.
const LAST: Duration = Duration::from_millis(150);

impl Left {
    /// Whether nearly all that was sent up to this path sequence has arrived after all, as so many have in all. Where long datagrams
    /// alone are lost, as a path has become narrow, many arrive as well.
    fn stood_still(self, highest: u32, received: u32) -> bool {
        let (told, before) = self.told;
        let [sent, came] = [highest.wrapping_sub(told), received.wrapping_sub(before)];
        8 * u64::from(came) >= 7 * u64::from(sent)
    }
}

impl TransmitPath {
    /// It takes over what another one has carried, in bytes per second. If bursts have shown that it carries little more than
    /// that, it is paced for a while, as all that was on its way comes at once.
    fn take_over(&mut self, now: Instant, carried: u64) {
        let round_trip = self.round_trip();
        self.rate.take_over(round_trip);
        let burst = self.rate.burst().filter(|burst| *burst < SPARE * carried);
        let until = now + (round_trip * 4).max(TAKES_OVER);
        self.takes_over = burst.map(|burst| (until, burst.max(2 * carried)));
    }

    /// It is used again, or for the first time.
    pub(super) fn on_return(&mut self, now: Instant) {
        self.patience.on_return(now);
        self.rate.on_return(now);
    }

    /// Whether it is probed.
    fn is_probed(&self, now: Instant) -> bool {
        if self.usable() { self.left.is_some() } else { self.patience.is_missed(now) }
    }

    /// Whether what was sent on it is expected to arrive.
    fn is_watched(&self) -> bool {
        self.carries() || self.usable() && self.left.is_some_and(|left| left.arrives)
    }

    /// How long some packets take at its pace: nothing follows from one that is missing where the next one is far away.
    fn packets(&self) -> Duration {
        let pace = self.fixed_rate.or_else(|| self.rate.pace()).unwrap_or(u64::MAX);
        Duration::from_secs_f64(PACKETS / pace as f64)
    }

    /// By how much the round trip is longer by another path, which has this one at best.
    fn slower(&self, other: Duration) -> Duration {
        self.feedback.round_trip().map_or(Duration::ZERO, |own| other.saturating_sub(own.min))
    }
}

impl TransmitHalf {
    /// The peer tells that something arrived on a path.
    pub(super) fn on_path_progress(&mut self, now: Instant, index: usize, block: &Block) {
        let others = self.paths.iter().filter(|(other, path)| {
            *other != index && path.carries() && now.since(path.silence.progress()) <= LATELY
        });
        let others = others.map(|(_, path)| path.silence.on_the_way()).sum();
        let path = &mut self.paths[index];
        let (highest, ago) = (block.highest, now.micros().wrapping_sub(block.highest_sent));
        let sent = now.before(Duration::from_micros(ago.into()));
        let round_trip = path.feedback.round_trip();
        let (told, paths) = ([highest, block.highest_arrived], self.fail_over.paths);
        let before = path.silence.on_the_way();
        path.silence.on_progress(now, told, sent, round_trip, [others, paths]);
        let arrived = before.saturating_sub(path.silence.on_the_way());
        if highest.wrapping_sub(path.doubted_from).cast_signed() >= 0 {
            self.doubts.end(index);
        }
        for (_, other) in self.paths.iter_mut().filter(|(other, _)| *other != index) {
            other.silence.on_progress_beside(now, arrived, paths);
        }
        let path = &mut self.paths[index];
        let Some(left) = path.left else { return };
        let answers = highest.wrapping_sub(left.sequence).cast_signed() >= 0;
        if !answers || path.unheard {
            return;
        }
        if left.stood_still(highest, path.feedback.received() as u32) {
            self.take_back(now, index);
            self.paths[index].patience.on_mistake();
        } else if path.patience.on_answer(now) {
            self.take_back(now, index);
        }
    }

    /// The peer has written a feedback at that time of its clock: what should have arrived long before is missing.
    pub(super) fn on_written(&mut self, now: Instant, written: u32) {
        let before = std::mem::replace(&mut self.fail_over.written, written);
        if before == written || !(2..=TOLD_AT_ONCE).contains(&self.fail_over.paths) {
            return;
        }
        for index in 0..MAX_PATHS {
            let other = self.fastest_beside(index);
            let Some(path) = self.paths.get_mut(index).filter(|path| path.carries()) else {
                continue;
            };
            let (spare, delay) = (path.slower(other) / 4 + path.packets(), path.feedback.delay());
            let missed =
                delay.and_then(|delay| path.silence.on_written(now, written, delay, spare));
            self.fail_over.at = self.fail_over.at.into_iter().chain(missed).min();
        }
    }

    fn take_back(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        path.left = None;
        path.silence.forget();
        path.on_return(now);
        self.repair.stats.returns += 1;
        self.reschedule(now);
    }

    /// Leaves paths that are silent, and probes those that are left.
    pub(super) fn watch_silence(&mut self, now: Instant) {
        if !self.is_repaired() {
            self.fail_over.at = None;
            self.paths.iter_mut().for_each(|(_, path)| path.left = None);
            return;
        }
        let count = self.paths.iter().count() as u64;
        self.fail_over.paths = count;
        if count > 1 {
            let silent = self.paths.iter().find_map(|(index, path)| {
                let at = self.silent_at(index).filter(|at| path.is_watched() && *at <= now)?;
                Some((index, at))
            });
            if let Some((index, at)) = silent {
                if now.since(at) > LATE && now >= self.fail_over.grace + LATE {
                    self.fail_over.grace = now + GRACE;
                }
                if now >= self.fail_over.grace {
                    self.on_silent(now, index, at);
                }
            }
        }
        let mut next = None;
        for index in (0..MAX_PATHS).filter(|_| count > 1) {
            let silent_at =
                self.silent_at(index).map(|at| if at <= now { now + GRACE } else { at });
            let Some(path) = self.paths.get_mut(index) else { continue };
            path.left = path.left.filter(|_| path.usable());
            if !path.is_probed(now) {
                next = next.into_iter().chain(silent_at.filter(|_| path.usable())).min();
                continue;
            }
            if path.probe_at <= now {
                path.probe_at = now + PROBES_EVERY;
                path.keepalive_now(now);
            }
            let silent_at = silent_at.filter(|_| path.is_watched());
            next = next.into_iter().chain(Some(path.probe_at)).chain(silent_at).min();
        }
        self.fail_over.at = next;
    }

    /// When a path will have been silent for too long.
    fn silent_at(&self, index: usize) -> Option<Instant> {
        let path = self.paths.get(index)?;
        path.silence.due(path.feedback.round_trip()?, path.slower(self.fastest_beside(index)))
    }

    /// The least round trip of the others than this path.
    fn fastest_beside(&self, index: usize) -> Duration {
        let others = self.paths.iter().filter(|(other, path)| *other != index && path.carries());
        others.map(|(_, path)| path.round_trip()).min().unwrap_or_default()
    }

    /// A path has been silent for too long since that time.
    fn on_silent(&mut self, now: Instant, silent: usize, since: Instant) {
        let others = || self.paths.iter().filter(|(index, _)| *index != silent);
        let heard = |path: &TransmitPath| {
            path.silence.is_idle() || now.since(path.silence.progress()) <= LATELY
        };
        if others().any(|(_, path)| path.carries() && heard(path)) {
            return self.leave(now, silent, false);
        }
        let other = others().filter_map(|(index, path)| Some((index, path.left?.since)));
        let waits = now.since(since) < LAST || others().any(|(_, path)| path.carries());
        if let Some((other, _)) = other.min_by_key(|(_, since)| *since).filter(|_| !waits) {
            self.take_back(now, other);
            self.leave(now, silent, false);
        }
    }

    /// What the peer sends by a path does not arrive, or does again. The path may carry what is sent on it, but who does not hear it
    /// cannot tell for long.
    pub(super) fn on_way_back(&mut self, now: Instant, index: usize, is_silent: bool) {
        let has_other = self.paths.iter().any(|(other, path)| other != index && path.carries());
        let is_repaired = self.is_repaired();
        let Some(path) = self.paths.get_mut(index) else { return };
        path.unheard = is_silent;
        if is_silent && is_repaired && has_other && path.carries() {
            let arrives = path.silence.is_idle() || now.since(path.silence.progress()) <= LATELY;
            self.leave(now, index, arrives);
        }
    }

    /// A path is left; what was sent on it is sent again unless it arrives.
    fn leave(&mut self, now: Instant, index: usize, arrives: bool) {
        self.doubts.end(index);
        let path = &mut self.paths[index];
        if !arrives {
            path.silence.forget();
        }
        if let Some(left) = &mut path.left {
            left.arrives = arrives;
            return self.fail_over.resend(now, 1 << index);
        }
        let told = (path.silence.highest(), path.feedback.received() as u32);
        path.left = Some(Left { since: now, sequence: path.wire.next, told, arrives });
        path.probe_at = now;
        self.repair.stats.leaves += 1;
        self.reschedule(now);
    }

    /// A path leads to another address of the peer from now on. What was sent to the one before is lost if the peer has left it.
    pub(super) fn on_elsewhere(&mut self, now: Instant, index: usize) {
        if self.is_repaired() {
            self.paths[index].silence.forget();
            self.fail_over.resend(now, 1 << index);
        }
    }

    /// Paths have ceased to carry: what is not acknowledged of them goes by the others. One that was switched off still
    /// delivers what it has.
    pub(super) fn resend_left(&mut self, now: Instant, carried: u64) {
        if !self.is_repaired() {
            return;
        }
        let gone = |path: &TransmitPath| !path.carries() && path.is_open();
        let absent = |path: &TransmitPath| !path.present;
        let gone = self.paths.iter().filter(|(_, path)| gone(path) || absent(path));
        let gone = carried & gone.fold(0, |bits, (index, _)| bits | 1_u64 << index);
        for index in (0..MAX_PATHS).filter(|index| gone >> index & 1 != 0) {
            self.on_gone(now, index);
        }
        let arrives = |path: &TransmitPath| path.left.is_some_and(|left| left.arrives);
        let arriving = self.paths.iter().filter(|(_, path)| path.usable() && arrives(path));
        let arriving = arriving.fold(0, |bits, (index, _)| bits | 1_u64 << index);
        self.fail_over.resend(now, gone & !arriving);
    }

    /// A path has ceased to carry: the others take over what it carried, and flows may keep what they had in flight there.
    fn on_gone(&mut self, now: Instant, index: usize) {
        self.doubts.end(index);
        let path = &mut self.paths[index];
        if path.breaker.is_stopped() {
            return;
        }
        path.patience.on_left(now);
        let carried = path.rate.rate();
        self.suspect(now);
        for (_, path) in self.paths.iter_mut().filter(|(_, path)| path.carries()) {
            carried.into_iter().for_each(|carried| path.take_over(now, carried));
        }
    }

    /// Whether a path is left because it is silent.
    pub fn is_left(&self, path: PathId) -> bool {
        self.paths.get(path.index()).is_some_and(|path| path.left.is_some())
    }
}
