//! The congestion window of Linux's CUBIC (RFC 9438, HyStart), and Reno's.
//!
//! Beside the RFC, the kernel: measures time since the epoch plus the least delay; never grows by more
//! than one segment for two acknowledged; before the first loss grows by at least 5 % per round trip;
//! forgets everything at a timeout, and takes the window back if the timeout was spurious.

use std::time::Duration;

use mpt_proto::Instant;

/// The window of a new connection (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
/// The factor of a reduction (RFC 9438 section 4.6).
const BETA: f64 = 717.0 / 1024.0;
/// Growth in segments per cubic second (RFC 9438 section 5.1).
const C: f64 = 0.4;
/// The slope of the Reno-friendly window (RFC 9438 section 4.3): 3 (1 - β) / (1 + β) per window.
const RENO_SLOPE: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// HyStart looks only at windows from here on.
const HYSTART_LEAST_WINDOW: f64 = 16.0;
/// Acknowledgements with at most this spacing belong to one ACK train.
const HYSTART_TRAIN_GAP: Duration = Duration::from_millis(2);
/// For so long after a reduction delays say nothing.
const SETTLING: Duration = Duration::from_secs(1);
/// Segments of four super-packets, which merging may delay, and for how long at the most.
const MERGED: f64 = 4.0 * 45.0;
const MOST_MERGING: Duration = Duration::from_millis(1);
/// Samples of a round before its delay counts.
const HYSTART_SAMPLES: u32 = 8;
/// HyStart accepts a rise of the delay by an eighth, within these bounds.
const HYSTART_RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// What kind of growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681.
    Reno,
}

/// A congestion window, in segments.
#[derive(Clone, Debug)]
pub struct Cubic {
    growth: Growth,
    window: f64,
    slow_start_below: f64,
    memory: Memory,
}

/// What a timeout makes the kernel forget.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// The window before the last reduction; zero before the first.
    greatest: f64,
    epoch: Option<Epoch>,
    least_delay: Option<Duration>,
    hystart: Hystart,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    plateau: f64,
    until_plateau: f64,
    reno: f64,
}

/// The watch over slow start.
#[derive(Clone, Debug, Default)]
struct Hystart {
    found: bool,
    round_ends: u64,
    round_start: Instant,
    last_acknowledgement: Instant,
    least: Option<Duration>,
    samples: u32,
}

/// A round-trip time that was sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) now: Instant,
    pub(super) delay: Duration,
    /// The smoothed round-trip time.
    pub(super) smoothed: Duration,
    /// The next segment that the receiver expects.
    pub(super) acknowledged: u64,
    /// The next segment to be sent.
    pub(super) next: u64,
}

/// What an undo brings back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    window: f64,
    slow_start_below: f64,
}

impl Cubic {
    /// A new connection's window.
    pub fn new(growth: Growth) -> Self {
        Self {
            growth,
            window: INITIAL_WINDOW,
            slow_start_below: f64::INFINITY,
            memory: Memory::default(),
        }
    }

    /// How many segments may be in flight; at least one.
    pub fn window(&self) -> f64 {
        self.window.max(1.0)
    }

    pub(super) fn slow_start_below(&self) -> f64 {
        self.slow_start_below
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.window < self.slow_start_below
    }

    /// Proportional rate reduction and recovery set the window directly.
    pub(super) fn set_window(&mut self, window: f64) {
        self.window = window.max(1.0);
    }

    /// Watches over slow start.
    pub(super) fn on_sample(&mut self, sample: &Sample) {
        if self.growth == Growth::Reno {
            return;
        }
        // Delays right after a recovery say nothing.
        if self.memory.epoch.is_some_and(|epoch| sample.now.since(epoch.start) < SETTLING) {
            return;
        }
        let least = self.memory.least_delay.map_or(sample.delay, |least| least.min(sample.delay));
        self.memory.least_delay = Some(least);
        if !self.memory.hystart.found && self.is_in_slow_start() {
            // What merging at the receiver may add: four super-packets at the rate of pacing.
            let merging = sample.smoothed.mul_f64(MERGED / (2.0 * self.window));
            let train = (least + merging.min(MOST_MERGING)) / 2;
            let hystart = &mut self.memory.hystart;
            if hystart.on_sample(sample, least, train, self.window) {
                self.slow_start_below = self.window;
            }
        }
    }

    /// `count` segments were delivered, in a state in which the window may grow.
    pub(super) fn on_delivered(&mut self, now: Instant, count: f64) {
        let mut count = count;
        if self.is_in_slow_start() {
            let grown = (self.window + count).min(self.slow_start_below);
            count -= grown - self.window;
            self.window = grown;
            if count <= 0.0 {
                return;
            }
        }
        let per_segment = match self.growth {
            Growth::Reno => self.window,
            Growth::Cubic => self.cubic_pace(now, count),
        };
        self.window += count / per_segment;
    }

    /// How many delivered segments make the window grow by one.
    fn cubic_pace(&mut self, now: Instant, count: f64) -> f64 {
        let Memory { greatest, least_delay, .. } = self.memory;
        let window = self.window;
        let epoch = self.memory.epoch.get_or_insert_with(|| Epoch {
            start: now,
            plateau: greatest.max(window),
            until_plateau: ((greatest - window).max(0.0) / C).cbrt(),
            reno: window,
        });
        epoch.reno += RENO_SLOPE * count / window;
        let age = (now.since(epoch.start) + least_delay.unwrap_or_default()).as_secs_f64();
        let target = C * (age - epoch.until_plateau).powi(3) + epoch.plateau;
        let mut pace = if target > window { window / (target - window) } else { 100.0 * window };
        if greatest == 0.0 {
            pace = pace.min(20.0);
        }
        if epoch.reno > window {
            pace = pace.min(window / (epoch.reno - window));
        }
        pace.max(2.0)
    }

    /// A congestion event: the threshold falls; the caller lets the window follow.
    pub(super) fn on_congestion(&mut self) -> Before {
        let before = Before { window: self.window, slow_start_below: self.slow_start_below };
        match self.growth {
            Growth::Reno => self.slow_start_below = (self.window / 2.0).max(2.0),
            Growth::Cubic => {
                // Give way faster if the window had not even recovered (section 4.7).
                let recovered = self.window >= self.memory.greatest;
                let share = if recovered { 1.0 } else { (1.0 + BETA) / 2.0 };
                self.memory.greatest = self.window * share;
                self.memory.epoch = None;
                self.slow_start_below = (self.window * BETA).max(2.0);
            }
        }
        before
    }

    /// A timeout: as a congestion event, and everything else is forgotten.
    pub(super) fn on_timeout(&mut self) -> Before {
        let before = self.on_congestion();
        self.memory = Memory::default();
        before
    }

    /// The reduction was wrong.
    pub(super) fn undo(&mut self, before: Before) {
        self.window = self.window.max(before.window);
        self.slow_start_below = self.slow_start_below.max(before.slow_start_below);
    }
}

impl Hystart {
    /// Whether slow start has gone far enough.
    fn on_sample(
        &mut self,
        sample: &Sample,
        least: Duration,
        train: Duration,
        window: f64,
    ) -> bool {
        let &Sample { now, delay, .. } = sample;
        if sample.acknowledged > self.round_ends {
            self.round_ends = sample.next;
            self.round_start = now;
            self.last_acknowledgement = now;
            self.least = None;
            self.samples = 0;
        }
        if window < HYSTART_LEAST_WINDOW {
            return false;
        }
        if now.since(self.last_acknowledgement) <= HYSTART_TRAIN_GAP {
            self.last_acknowledgement = now;
            self.found |= now.since(self.round_start) > train;
        }
        let least_of_round = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least_of_round);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else {
            let (low, high) = HYSTART_RISE;
            self.found |= least_of_round > least + (least / 8).clamp(low, high);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(40);

    /// Windows after each of `rounds` round trips in which a full window is delivered.
    fn grow(cubic: &mut Cubic, rounds: u32) -> Vec<f64> {
        let start = Instant::ZERO + Duration::from_secs(60);
        let step = |round| {
            let now = start + ROUND_TRIP * round;
            let window = cubic.window().floor();
            for _ in 0..window as u64 {
                cubic.on_delivered(now, 1.0);
            }
            cubic.window()
        };
        (0..rounds).map(step).collect()
    }

    fn reduced(window: f64) -> Cubic {
        let mut cubic = Cubic::new(Growth::Cubic);
        cubic.set_window(window);
        cubic.on_congestion();
        cubic.set_window(cubic.slow_start_below());
        cubic
    }

    #[test]
    fn the_window_is_back_after_the_time_of_the_rfc() {
        // K = cbrt(1000 (1 - 0.7) / 0.4) = 9.09 s, 227 round trips.
        let windows = grow(&mut reduced(1000.0), 300);
        let back = windows.iter().position(|&window| window >= 999.0).unwrap();
        // The curve is flat there: it is one segment below for the last 1.4 s.
        assert!((190..=229).contains(&back), "{back}");
        assert!(windows[290] > 1001.0);
    }

    #[test]
    fn small_windows_grow_as_reno_does() {
        let windows = grow(&mut reduced(10.0), 20);
        // From 7 by 0.53 per round trip.
        assert!((windows[19] - 17.6).abs() < 1.0, "{windows:?}");
    }

    #[test]
    fn before_the_first_loss_growth_is_at_least_five_percent() {
        let mut cubic = Cubic::new(Growth::Cubic);
        cubic.set_window(400.0);
        cubic.slow_start_below = 400.0;
        let windows = grow(&mut cubic, 10);
        assert!(windows[9] > 400.0 * 1.05_f64.powi(9), "{windows:?}");
    }

    #[test]
    fn hystart_ends_slow_start_when_the_delay_rises() {
        let mut cubic = Cubic::new(Growth::Cubic);
        cubic.set_window(100.0);
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        // One sample each 3 ms, so that there is no ACK train.
        for sample in 0..12 {
            let delay = Duration::from_millis(if sample < 2 { 20 } else { 30 });
            let (acknowledged, next) = if sample < 2 { (1, 101) } else { (102, 300) };
            let now = ms(3 * sample);
            cubic.on_sample(&Sample { now, delay, smoothed: delay, acknowledged, next });
        }
        assert!(!cubic.is_in_slow_start());
        assert_eq!(cubic.slow_start_below(), 100.0);
    }

    #[test]
    fn an_undo_brings_the_window_back() {
        let mut cubic = Cubic::new(Growth::Cubic);
        cubic.set_window(50.0);
        let before = cubic.on_timeout();
        cubic.set_window(1.0);
        cubic.undo(before);
        assert_eq!((cubic.window(), cubic.is_in_slow_start()), (50.0, true));
    }
}
