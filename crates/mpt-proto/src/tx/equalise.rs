//! Equal delays for bulk flows whose senders keep less in flight than the slower paths need.
//!
//! A slower path joins when more waits for the fastest one than the difference of their delays. BBR
//! (draft-ietf-ccwg-bbr) keeps twice the least round trip in flight. That is the fastest path's, so if the slower
//! ones take longer than that, they never join.
//!
//! Of such a flow the peer holds each packet until it has taken a certain time, the *equal delay*, whichever path it
//! came by. It grows step by step, as long as the flow keeps the fastest path full nevertheless: at first by
//! what it may have in flight beyond one round trip, and by what stands in the queue, which shrinks by as much. After
//! ten seconds BBR measures its least round trip again, and this delay is part of it, unlike the queue, which BBR
//! drains for that. So it keeps more in flight and the equal delay can grow further, until the slower paths join.
//!
//! Slower paths may also have joined because more waits for the fastest one than the difference of their delays, as
//! happens when start-up ends so. BBR drains that after ten seconds. So the equal delay takes the place of what waits
//! there, unless packets wait for all paths.
//!
//! Paths that take no longer than the equal delay are used alike, as if they were one, the fastest.
//!
//! A flow whose window bounds it to one path's worth shows that: the fastest path is not full any more. Then
//! the equal delay shrinks. Flows that fill all paths without it are left alone.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::queue::{Early, Judged, Volume};
use crate::time::Instant;

/// Paths whose delays differ by less are not worth it.
const LEAST_SKEW: Duration = Duration::from_millis(4);

/// What is left in the queue of the fastest path to keep it busy.
const LEFT: Duration = Duration::from_millis(3);

/// Without a bulk flow for so long all ends.
const FORGOTTEN: Duration = Duration::from_secs(3);

/// A connection that begins and has sent nothing for so long has either become a bulk flow or will not.
const YOUNG: Duration = Duration::from_secs(1);

/// How much longer than the mean delay of the slowest path it can become: what that delay varies by.
const SPARE: Duration = Duration::from_millis(2);

/// The paths that the equal delay reaches are full if as much is sent in all as this share of their rates; and nothing is left to gain if
/// it is that share of all rates.
const FULL: f64 = 0.96;

/// If more is sent than this share of all rates, slower paths have joined by themselves.
const JOINED: f64 = 0.75;

/// A step has harmed if less than this share of what was sent before it is sent after it.
const HARMED: f64 = 0.97;

/// A trial ends at once if this share is not reached, in so many round trips.
const HARMED_AT_ONCE: f64 = 0.85;
const LOOK: u32 = 3;

/// A trial takes so many round trips, since BBR sends less only when the best of ten has been forgotten; and at least
/// so long.
const ROUNDS: u32 = 16;
const TRIAL: Duration = Duration::from_millis(600);

/// The equal delay grows by this part of the round trip.
const STEP: u32 = 6;

/// After a step that has harmed it does not grow for a trial, and for twice as many each further time, up to this.
const LONGEST_REST: u16 = 128;

/// Whether something has happened at all, and so lately.
fn is_within(now: Instant, at: Instant, time: Duration) -> bool {
    at != Instant::ZERO && now.since(at) < time
}

/// What an equal delay becomes that is too long.
pub(super) fn shrunk(delay: Duration) -> Duration {
    delay * 2 / 3
}

/// The equal delay of a connection.
#[derive(Debug, Default)]
pub(super) struct Equalise {
    delay: Duration,
    /// What it is from the first packet of a connection on.
    early: Early,
    /// Whether there was one since the last time without bulk flows.
    is_used: bool,
    /// When a bulk flow last sent, and a connection that takes the early delay and sends much.
    bulk_at: Instant,
    young_at: Instant,
    /// The bytes of IP packets sent by all paths.
    sent: u64,
    /// The present trial: when it began, the bytes sent before, the least queue of the fastest path since, and whether
    /// packets have waited for all paths.
    began: Instant,
    before: u64,
    least: Option<Duration>,
    /// When it was last looked at within the trial, and the bytes sent before.
    looked: Instant,
    looked_at: u64,
    was_full: bool,
    /// What the trial is of: the delay before it, and then what was sent, and what the paths that it reached carry, in bytes per second.
    step: Option<(Duration, [f64; 2])>,
    /// Trials to come without growth, and after the next step that harms.
    rest: u16,
    next_rest: u16,
}

/// What the equal delay follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// What waits for the fastest path, as the time that it takes to leave.
    pub(super) backlog: Duration,
    /// The rate of the paths that take no longer than the equal delay, so that the flow uses them alike, and of those that would if it had
    /// [shrunk], in bytes per second. The fastest one is always among them.
    pub(super) reached: [u64; 2],
    /// The rate of all; `None` if one is not known.
    pub(super) rates: Option<u64>,
    /// Whether packets wait for all paths.
    pub(super) is_full: bool,
    /// How much longer the slowest path takes that is worth it.
    pub(super) skew: Duration,
    /// The least round trip of the fastest path.
    pub(super) round_trip: Duration,
}

impl Equalise {
    /// How much longer than by the fastest path a packet of a flow of this volume has to take.
    pub(super) fn of(&self, volume: Volume) -> Option<Duration> {
        (self.has_flag(volume) && !self.delay.is_zero()).then_some(self.delay)
    }

    /// How much longer than by the fastest path packets of bulk flows have to take.
    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// Whether the packets of bulk flows have the flag. That remains so when the equal delay is no more, so that none
    /// overtakes those that still wait at the peer.
    pub(super) fn is_active(&self) -> bool {
        self.is_used || self.is_early()
    }

    /// Whether a packet of a flow of this volume has the flag.
    pub(super) fn has_flag(&self, volume: Volume) -> bool {
        match volume {
            Volume::Bulk => self.is_active(),
            Volume::Early => self.is_early(),
            Volume::Sparse | Volume::Usual => false,
        }
    }

    /// Whether it has grown beyond what it is from the first packet on, since bulk flows fill the fastest path.
    pub(super) fn is_learned(&self) -> bool {
        self.is_used
    }

    /// That of connections that begin.
    pub(super) fn early(&self) -> Early {
        self.early
    }

    /// Whether connections that begin have one.
    pub(super) fn is_early(&self) -> bool {
        !self.early.delay.is_zero()
    }

    /// What it is from the first packet of a connection on. Returns whether the peer is to be told of another delay.
    ///
    /// How long it is does not change while there is a bulk flow, or one that may become one: that takes the shorter round trip
    /// for its least one at once, and keeps less in flight, or does not know of the longer one for ten seconds and keeps too
    /// little. Whether it is needed may change.
    /// Unless there are not several paths any more.
    pub(super) fn set_early(&mut self, now: Instant, early: Early, has_several: bool) -> bool {
        if has_several && (self.has_bulk(now) || self.has_young(now)) {
            self.early.is_needed = early.is_needed;
            return false;
        }
        let before = self.delay;
        if early.delay > self.early.delay || self.delay == self.early.delay {
            self.delay = early.delay;
        }
        self.early = early;
        self.delay != before
    }

    /// As path status tells it, in microseconds.
    pub(super) fn told(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(u32::try_from(self.delay.as_micros()).unwrap_or(u32::MAX))
    }

    /// A packet of a flow is sent, or waits.
    pub(super) fn on_packet(&mut self, now: Instant, Judged { volume, is_over, .. }: Judged) {
        match volume {
            Volume::Bulk => self.bulk_at = now,
            Volume::Early if is_over => self.young_at = now,
            Volume::Early | Volume::Usual | Volume::Sparse => {}
        }
    }

    /// So many bytes of an IP packet leave.
    pub(super) fn on_sent(&mut self, len: usize) {
        self.sent += len as u64;
    }

    /// Follows the situation. Returns whether the peer is to be told of another delay.
    pub(super) fn update(&mut self, now: Instant, situation: Situation) -> bool {
        let Situation { backlog, reached, rates, is_full, skew, round_trip } = situation;
        let [reached, less] = reached.map(|rate| rate as f64);
        let before = self.delay;
        if !self.has_bulk(now) || skew < LEAST_SKEW {
            let Self { bulk_at, young_at, sent, early, .. } = *self;
            let delay = early.delay;
            let began = Self { bulk_at, young_at, sent, early, began: now, ..Self::default() };
            *self = Self { delay, before: sent, ..began };
            return before != delay;
        }
        self.least = Some(self.least.map_or(backlog, |least| least.min(backlog)));
        self.was_full |= is_full;
        let elapsed = now.since(self.began);
        if self.harms_at_once(now, situation) {
            return self.end_harmful(now);
        }
        if elapsed < TRIAL.max((round_trip + self.delay) * ROUNDS) {
            return false;
        }
        let sent = (self.sent - self.before) as f64 / elapsed.as_secs_f64();
        let stands = self.least.take().unwrap_or_default().saturating_sub(LEFT);
        let has_waited = std::mem::take(&mut self.was_full);
        let is_full = has_waited || rates.is_some_and(|rates| sent >= FULL * rates as f64);
        (self.began, self.before) = (now, self.sent);
        (self.looked, self.looked_at) = (now, self.sent);
        match self.step.take() {
            Some((delay, before)) if sent < HARMED * before[0].min(before[1] / FULL) => {
                self.step = Some((delay, before));
                return self.end_harmful(now);
            }
            Some(_) => self.next_rest = 0,
            None if sent < HARMED * FULL * less => {
                self.delay = shrunk(self.delay).max(self.early.delay);
            }
            None => {}
        }
        let has_joined = rates.is_some_and(|rates| sent > JOINED * rates as f64);
        if self.rest > 0 {
            self.rest -= 1;
        } else if sent >= FULL * reached
            && has_joined
            && !has_waited
            && !stands.is_zero()
            && self.delay < skew
        {
            // What stands in the queue of the fastest path lets slower ones join. BBR drains it when it measures its
            // least round trip. The same delay at the peer lasts, and now changes nothing.
            self.step = Some((self.delay, [sent, reached]));
            self.delay = (self.delay + stands).min(skew + SPARE);
            self.is_used = true;
        } else if sent >= FULL * reached
            && !is_full
            && self.delay < skew
            && (self.is_used || !has_joined)
        {
            self.step = Some((self.delay, [sent, reached]));
            let step = stands.max((round_trip + self.delay) / STEP);
            self.delay = (self.delay + step).min(skew + SPARE);
            self.is_used = true;
        }
        self.delay != before
    }

    fn has_bulk(&self, now: Instant) -> bool {
        is_within(now, self.bulk_at, FORGOTTEN)
    }

    fn has_young(&self, now: Instant) -> bool {
        is_within(now, self.young_at, YOUNG)
    }

    /// Whether the present step makes the flow send so much less that the end of the trial need not be awaited: a window
    /// that does not grow fills less of a longer round trip.
    fn harms_at_once(&mut self, now: Instant, situation: Situation) -> bool {
        let Some((_, [before, _])) = self.step else { return false };
        let elapsed = now.since(self.looked);
        if elapsed < TRIAL.max((situation.round_trip + self.delay) * LOOK) {
            return false;
        }
        let sent = (self.sent - self.looked_at) as f64;
        let is_first = self.looked == self.began;
        (self.looked, self.looked_at) = (now, self.sent);
        // In the first round trips the step itself changes what is sent.
        !is_first && sent / elapsed.as_secs_f64() < HARMED_AT_ONCE * before
    }

    /// The step of this trial is taken back.
    fn end_harmful(&mut self, now: Instant) -> bool {
        if let Some((delay, _)) = self.step.take() {
            self.delay = delay.max(self.early.delay);
        }
        self.rest = self.next_rest.clamp(1, LONGEST_REST);
        self.next_rest = self.rest * 2;
        (self.began, self.before, self.was_full, self.least) = (now, self.sent, false, None);
        (self.looked, self.looked_at) = (now, self.sent);
        true
    }
}

#[cfg(test)]
mod tests;
