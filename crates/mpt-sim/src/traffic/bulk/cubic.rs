//! The congestion window of CUBIC (RFC 9438), with Reno as its lower bound.

use std::time::Duration;

use mpt_proto::Instant;

/// The window of a new connection, in packets (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// The factor by which a congestion event reduces the window (RFC 9438 section 4.6).
const BETA: f64 = 0.7;

/// How fast the window grows, in packets per cubic second (RFC 9438 section 5.1).
const C: f64 = 0.4;

/// HyStart accepts a rise of the round trip by an eighth, within these bounds, in each round (RFC 9406 section 4.3).
const RISE: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];

/// So many round trips of a round tell.
const SAMPLES: u32 = 8;

/// A congestion window, in packets.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: f64,
    slow_start_below: f64,
    /// The window before the last reduction.
    greatest: f64,
    /// The growth since then, once it has begun.
    epoch: Option<Epoch>,
    hystart: Option<HyStart>,
}

/// Ends slow start when the round trip rises, as Linux does (RFC 9406; what that leaves out, the conservative slow start, Linux
/// leaves out as well).
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    /// The round ends when this transmission is answered.
    ends: u64,
    /// The least round trip of all, and of this round, of so many.
    least: Option<Duration>,
    of_round: Option<Duration>,
    samples: u32,
}

/// One stretch of growth without loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// The window of the curve's plateau.
    plateau: f64,
    /// Seconds from the start until the plateau.
    until_plateau: f64,
    /// What the window of Reno would be.
    reno: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        let (window, slow_start_below) = (INITIAL_WINDOW, f64::INFINITY);
        Self { window, slow_start_below, greatest: 0.0, epoch: None, hystart: None }
    }
}

impl Cubic {
    /// The same with HyStart.
    pub fn with_hystart() -> Self {
        Self { hystart: Some(HyStart::default()), ..Self::default() }
    }

    /// Transmission `answered` took this round trip, `next` being the next transmission.
    pub fn on_round_trip(&mut self, answered: u64, next: u64, sample: Duration) {
        let Some(hystart) = &mut self.hystart else { return };
        if hystart.rises(answered, next, sample) && self.window < self.slow_start_below {
            self.slow_start_below = self.window;
        }
    }

    /// How many packets may be in flight; at least one.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// `count` packets left the wire as they should.
    pub fn on_acknowledged(&mut self, now: Instant, count: usize, round_trip: Duration) {
        let count = count as f64;
        if self.window < self.slow_start_below {
            self.window += count;
            return;
        }
        let (window, plateau) = (self.window, self.greatest.max(self.window));
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            plateau,
            until_plateau: ((plateau - window) / C).cbrt(),
            reno: window,
        });
        // The slope at which Reno with this factor is as fast as with one half (section 4.3).
        epoch.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA) * count / window;
        let age = (now.since(epoch.start) + round_trip).as_secs_f64();
        let target = C * (age - epoch.until_plateau).powi(3) + epoch.plateau;
        let target = target.clamp(window, 1.5 * window);
        self.window = (window + (target - window) / window * count).max(epoch.reno);
    }

    /// Packets were lost.
    pub fn on_congestion(&mut self) {
        // Give way faster if the window had not even recovered (section 4.7).
        let recovered = self.window >= self.greatest;
        self.greatest = if recovered { self.window } else { self.window * (1.0 + BETA) / 2.0 };
        self.window = (self.window * BETA).max(2.0);
        self.slow_start_below = self.window;
        self.epoch = None;
    }

    /// Nothing came back for a whole timeout, or for one more. What was sent again after the first one says nothing of how much fits, so
    /// the next one leaves it at that (RFC 5681 section 3.1).
    pub fn on_timeout(&mut self, is_first: bool) {
        if is_first {
            self.greatest = self.window;
            self.slow_start_below = (self.window * BETA).max(2.0);
        }
        self.window = 1.0;
        self.epoch = None;
    }
}

impl HyStart {
    /// Whether slow start has gone far enough.
    fn rises(&mut self, answered: u64, next: u64, sample: Duration) -> bool {
        if answered >= self.ends {
            (self.ends, self.of_round, self.samples) = (next, None, 0);
        }
        let least = self.least.map_or(sample, |least| least.min(sample));
        let of_round = self.of_round.map_or(sample, |least| least.min(sample));
        (self.least, self.of_round) = (Some(least), Some(of_round));
        self.samples += 1;
        self.samples >= SAMPLES && of_round > least + (least / 8).clamp(RISE[0], RISE[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(50);

    /// Windows at the ends of `count` round trips without loss.
    fn grow(cubic: &mut Cubic, count: u32) -> Vec<f64> {
        let round = |i| {
            let now = Instant::ZERO + ROUND_TRIP * i;
            cubic.on_acknowledged(now, cubic.window() as usize, ROUND_TRIP);
            cubic.window()
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn slow_start_doubles_the_window_every_round_trip() {
        assert_eq!(grow(&mut Cubic::default(), 4), [20.0, 40.0, 80.0, 160.0]);
    }

    #[test]
    fn after_a_loss_the_window_returns_to_its_height_after_the_cubic_time() {
        let mut cubic = Cubic::default();
        grow(&mut cubic, 6);
        let before = cubic.window();
        cubic.on_congestion();
        assert!((cubic.window() - 0.7 * before).abs() < 1e-9);
        // K = cbrt(0.3 * 640 / 0.4) s = 7.83 s = 157 round trips.
        let windows = grow(&mut cubic, 300);
        let back = windows.iter().position(|&window| window >= 0.995 * before).unwrap();
        assert!((110..160).contains(&back), "{back}");
        // Flat around the height, steep beyond.
        assert!(windows[165] < 1.02 * before);
        assert!(windows[299] > 1.1 * before);
        assert!(windows.windows(2).all(|pair| pair[1] >= pair[0]));
    }

    #[test]
    fn small_windows_grow_at_least_as_reno_does() {
        let mut cubic = Cubic::default();
        cubic.on_congestion(); // from 10 to 7
        let windows = grow(&mut cubic, 21);
        // 0.53 packets per round trip; rounding the packets of a window down costs a little.
        assert!(windows[20] > 7.0 + 20.0 * 0.529 * 0.9, "{}", windows[20]);
    }

    #[test]
    fn a_timeout_starts_over_slowly() {
        let mut cubic = Cubic::default();
        grow(&mut cubic, 3);
        cubic.on_timeout(true);
        assert_eq!(cubic.window(), 1.0);
        assert_eq!(grow(&mut cubic, 3), [2.0, 4.0, 8.0]);
        let before = cubic.slow_start_below;
        cubic.on_timeout(false);
        assert_eq!((cubic.window(), cubic.slow_start_below), (1.0, before));
    }
}
