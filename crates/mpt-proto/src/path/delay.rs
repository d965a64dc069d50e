//! How long datagrams take from the peer to here, path by path, without synchronized clocks.
//!
//! Arrival time minus send timestamp is the delay and an offset of the two clocks, which is the same for all paths.
//! So a delay alone says nothing, but how much longer one path takes than another is exact, and so is how much longer
//! a datagram takes than another. All values are relative to the first difference of the session, in microseconds.

use std::time::Duration;

use crate::id::PathId;
use crate::slots::Slots;
use crate::time::Instant;

/// The minimum is over as much of the past, or half of it at least: longer than a queue stays full under TCP, shorter
/// than a route lasts. Clocks that drift by 50 ppm move by half a millisecond.
const WINDOW: Duration = Duration::from_secs(10);

/// The maximum is over once to twice this time: a queue of TCP that has filled may fill again.
const PEAK: Duration = Duration::from_millis(500);

/// Datagrams of this time are taken together, so that thousands per second do not count more than few.
const INTERVAL: Duration = Duration::from_millis(5);

/// A difference that changes by more than this many microseconds at once is of another clock.
const JUMP: u32 = 1_000_000;

/// What is known of the delay of one path. Differences are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OneWayDelay {
    /// The shortest of the last ten seconds.
    pub(crate) min: i32,
    /// The longest of the last second or so.
    pub(crate) max: i32,
    /// The smoothed mean.
    pub(crate) mean: i32,
    /// The smoothed mean deviation from it.
    pub(crate) deviation: Duration,
    /// Interarrival jitter (RFC 3550 section 6.4.1).
    pub(crate) jitter: Duration,
}

/// The delays of all paths of a session.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// The first difference of the session, or after the last jump of a clock.
    reference: Option<u32>,
    paths: Slots<PathDelay>,
    /// The paths whose last datagram was of another clock than those before, one bit each.
    jumped: u64,
    /// Those of them that are alone with it, because another path is as before.
    alone: u64,
}

impl Delays {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.paths.memory()
    }

    /// Gives back memory that is not needed.
    pub(crate) fn rest(&mut self) {
        self.paths.shrink();
    }

    /// A datagram arrived, sent at `sent` microseconds of the peer's clock. Duplicates do not count.
    pub(crate) fn on_arrival(&mut self, now: Instant, path: PathId, sent: u32) {
        let difference = now.micros().wrapping_sub(sent);
        let reference = *self.reference.get_or_insert(difference);
        let delay = difference.wrapping_sub(reference).cast_signed();
        match self.paths.get_mut(path.index()) {
            None => self.paths.put(path.index(), PathDelay::new(now, delay)),
            Some(known) if known.is_jump(delay) => self.on_jump(now, path, difference, delay),
            Some(known) => {
                known.on_arrival(now, delay);
                if self.jumped != 0 {
                    self.jumped &= !(1 << path.index());
                    self.alone = self.jumped;
                }
            }
        }
    }

    /// The clock was changed, a host was suspended, or the path takes that much longer.
    fn on_jump(&mut self, now: Instant, path: PathId, difference: u32, delay: i32) {
        let bit = 1 << path.index();
        self.jumped |= bit;
        if self.alone & bit != 0 {
            self.jumped &= !bit;
            self.alone &= !bit;
            self.paths.put(path.index(), PathDelay::new(now, delay));
            return;
        }
        let is_as_before = |(index, path): (usize, &PathDelay)| {
            now.since(path.last_at) < WINDOW && self.jumped >> index & 1 == 0
        };
        if !self.paths.iter().any(is_as_before) {
            *self = Self { reference: Some(difference), ..Self::default() };
            self.paths.put(path.index(), PathDelay::new(now, 0));
        }
    }

    /// A path is gone, or new.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        self.paths.take(path.index());
        self.jumped &= !(1 << path.index());
        self.alone &= self.jumped;
    }

    /// The delay of a path; `None` before a datagram came by it.
    pub(crate) fn get(&self, path: PathId) -> Option<OneWayDelay> {
        self.paths.get(path.index()).map(PathDelay::get)
    }

    /// How much longer a path takes, on average, than the fastest of all can.
    pub(crate) fn relative(&self, path: PathId) -> Option<Duration> {
        let fastest = self.paths.iter().map(|(_, path)| path.get().min).min()?;
        Some(micros(i64::from(self.get(path)?.mean) - i64::from(fastest)))
    }

    /// How long it takes from now until a datagram that was sent at `sent` microseconds of the peer's clock has taken
    /// `longer` than the fastest path at its best.
    pub(crate) fn until(&self, now: Instant, sent: u32, longer: Duration) -> Option<Duration> {
        let fastest = self.paths.iter().map(|(_, path)| path.get().min).min()?;
        let taken = now.micros().wrapping_sub(sent).wrapping_sub(self.reference?).cast_signed();
        Some(longer.saturating_sub(micros(i64::from(taken) - i64::from(fastest))))
    }

    /// The slowest of some paths, one bit each.
    pub(crate) fn slowest(&self, among: u64) -> Option<OneWayDelay> {
        let among = self.paths.iter().filter(|(index, _)| among >> index & 1 != 0);
        among.map(|(_, path)| path.get()).max_by_key(|delay| delay.max)
    }

    /// How much longer than by the fastest of some paths, one bit each, datagrams take by the slowest one at their best.
    pub(crate) fn apart(&self, among: u64) -> Option<Duration> {
        let among = self.paths.iter().filter(|(index, _)| among >> index & 1 != 0);
        let least = among.map(|(_, path)| path.get().min);
        let (fastest, slowest) = (least.clone().min()?, least.max()?);
        Some(micros(i64::from(slowest) - i64::from(fastest)))
    }

    /// How long after a datagram came by `path` one with a lower number can still come by another: as long as the
    /// `slowest` path took longer lately, and four of its mean deviations. A sender that lets packets wait for faster
    /// paths, so that all arrive in their order, cannot know the rates of those paths better than by half: that much
    /// of the difference of their delays is added.
    pub(crate) fn wait(&self, path: PathId, slowest: OneWayDelay) -> Option<Duration> {
        let longer = i64::from(slowest.max) - i64::from(self.get(path)?.mean);
        let fastest = self.paths.iter().map(|(_, path)| path.get().min).min()?;
        let apart = i64::from(slowest.mean) - i64::from(fastest);
        Some(micros(longer) + slowest.deviation * 4 + micros(apart) / 2)
    }
}

/// The delay of one path. What is smoothed is scaled by 16.
#[derive(Clone, Copy, Debug)]
struct PathDelay {
    /// The delay of the last datagram, and when it arrived.
    last: i32,
    last_at: Instant,
    /// The smallest since `half_began`, and in the half of the window before.
    min: i32,
    min_before: i32,
    half_began: Instant,
    /// The largest since `peak_began`, and in the time before.
    max: i32,
    max_before: i32,
    peak_began: Instant,
    mean: i64,
    deviation: i64,
    jitter: u64,
    /// When the first of these times ends.
    next: Instant,
    /// The datagrams of this interval: how many, and sums of delays and of deviations from the mean.
    interval_began: Instant,
    count: i64,
    sum: i64,
    deviations: i64,
}

impl PathDelay {
    fn new(now: Instant, delay: i32) -> Self {
        Self {
            last: delay,
            last_at: now,
            min: delay,
            min_before: delay,
            half_began: now,
            max: delay,
            max_before: delay,
            peak_began: now,
            mean: i64::from(delay) * 16,
            deviation: 0,
            jitter: 0,
            next: now,
            interval_began: now,
            count: 0,
            sum: 0,
            deviations: 0,
        }
    }

    fn is_jump(&self, delay: i32) -> bool {
        delay.wrapping_sub(self.mean()).unsigned_abs() > JUMP
    }

    fn mean(&self) -> i32 {
        (self.mean / 16) as i32
    }

    fn on_arrival(&mut self, now: Instant, delay: i32) {
        // J += (|D| - J) / 16.
        let change = u64::from(delay.abs_diff(self.last));
        self.jitter = self.jitter + change - (self.jitter + 8) / 16;
        self.last = delay;
        self.last_at = now;
        let is_next = now >= self.next;
        if is_next {
            self.begin_again(now, delay);
        }
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        self.count += 1;
        self.sum += i64::from(delay);
        self.deviations += i64::from(delay.abs_diff(self.mean()));
        if is_next && now.since(self.interval_began) >= INTERVAL {
            self.end_interval(now);
        }
        if is_next {
            let half = self.half_began + WINDOW / 2;
            self.next = half.min(self.peak_began + PEAK).min(self.interval_began + INTERVAL);
        }
    }

    /// Begins the next window of a minimum or maximum, if it is time.
    fn begin_again(&mut self, now: Instant, delay: i32) {
        if now.since(self.half_began) >= WINDOW / 2 {
            let is_over = now.since(self.half_began) >= WINDOW;
            self.min_before = if is_over { delay } else { self.min };
            self.min = delay;
            self.half_began = now;
        }
        if now.since(self.peak_began) >= PEAK {
            (self.max_before, self.max) = (self.max, delay);
            self.peak_began = now;
        }
    }

    /// With the gain of an eighth, as RFC 6298 smooths round trips.
    fn end_interval(&mut self, now: Instant) {
        self.mean += (self.sum * 16 / self.count - self.mean) / 8;
        self.deviation += (self.deviations * 16 / self.count - self.deviation) / 8;
        (self.count, self.sum, self.deviations) = (0, 0, 0);
        self.interval_began = now;
    }

    fn get(&self) -> OneWayDelay {
        OneWayDelay {
            min: self.min.min(self.min_before),
            max: self.max.max(self.max_before),
            mean: self.mean(),
            deviation: micros(self.deviation / 16),
            jitter: Duration::from_nanos(self.jitter * 1000 / 16),
        }
    }
}

/// Microseconds, none if they are less.
fn micros(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests;
