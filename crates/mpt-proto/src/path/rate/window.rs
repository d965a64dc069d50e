//! The congestion window of CUBIC (RFC 9438) of one flow, where a path competes with others for a queue.

use std::time::Duration;

use crate::time::Instant;

/// Bytes of a segment, the unit in which the window grows.
const SEGMENT: f64 = 1500.0;

/// The factor of a congestion event, the growth in segments per cubic second, and the slope of Reno's window with this factor
/// in segments per round trip (RFC 9438 sections 4.3, 4.6 and 5.1).
const BETA: f64 = 0.7;
const C: f64 = 0.4;
const RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The least window, in segments.
const LEAST: f64 = 4.0;

/// A window in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: f64,
    /// Where the curve is flat: the window before the last reduction.
    plateau: f64,
    /// Since when it grows along the curve.
    epoch: Option<Instant>,
    /// Seconds from then until the plateau.
    until: f64,
    /// What Reno's would be.
    reno: f64,
    /// When it was reduced last: losses of a round trip from then on are one event.
    reduced_at: Option<Instant>,
    /// Whether it doubles per round trip, until something is lost.
    starts: bool,
}

impl Window {
    /// A window of so many bytes, from which on it grows: along the curve, or in slow start. What is lost within a round trip is
    /// of an earlier event.
    pub(super) fn new(now: Instant, bytes: f64, starts: bool) -> Self {
        let size = (bytes / SEGMENT).max(LEAST);
        let reduced_at = Some(now);
        Self { size, plateau: size, epoch: None, until: 0.0, reno: size, reduced_at, starts }
    }

    /// In bytes.
    pub(super) fn bytes(&self) -> f64 {
        self.size * SEGMENT
    }

    /// So many bytes arrived while the window was used up.
    pub(super) fn on_delivered(&mut self, now: Instant, bytes: f64, round_trip: Duration) {
        let count = bytes / SEGMENT;
        if self.starts {
            self.size += count;
            return;
        }
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.plateau = self.plateau.max(self.size);
            self.until = ((self.plateau - self.size) / C).cbrt();
            self.reno = self.size;
            now
        });
        self.reno += RENO * count / self.size;
        let age = (now.since(epoch) + round_trip).as_secs_f64();
        let target = C * (age - self.until).powi(3) + self.plateau;
        let target = target.clamp(self.size, 1.5 * self.size);
        self.size = (self.size + (target - self.size) / self.size * count).max(self.reno);
    }

    /// So many bytes are in flight, and nothing was lost: it is no less.
    pub(super) fn raise(&mut self, bytes: f64) {
        self.size = self.size.max(bytes / SEGMENT);
    }

    /// Something was lost. All losses of one round trip are one event. The window does not fall below `floor` bytes. Returns whether it is
    /// a new one.
    pub(super) fn on_loss(&mut self, now: Instant, round_trip: Duration, floor: f64) -> bool {
        if self.reduced_at.is_some_and(|at| now.since(at) < round_trip) {
            return false;
        }
        self.reduced_at = Some(now);
        let floor = (floor / SEGMENT).max(LEAST);
        if self.size <= floor {
            return true;
        }
        self.starts = false;
        // It gives way further if it had not even recovered (section 4.7).
        let recovered = self.size >= self.plateau;
        self.plateau = if recovered { self.size } else { self.size * (1.0 + BETA) / 2.0 };
        self.size = (self.size * BETA).max(floor);
        self.epoch = None;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(50);

    /// Windows in segments after so many round trips from the 100th second on.
    fn grow(window: &mut Window, trips: u32) -> Vec<f64> {
        let begin = Instant::ZERO + Duration::from_secs(100);
        let trip = |trip| {
            let bytes = window.bytes();
            window.on_delivered(begin + ROUND_TRIP * trip, bytes, ROUND_TRIP);
            window.size
        };
        (0..trips).map(trip).collect()
    }

    #[test]
    fn it_is_back_after_the_cubic_time_and_flat_there() {
        let mut window = Window::new(Instant::ZERO, 640.0 * SEGMENT, false);
        let at = Instant::ZERO + Duration::from_secs(99);
        assert!(window.on_loss(at, ROUND_TRIP, 0.0));
        assert!((window.size - 448.0).abs() < 1e-9);
        assert!(!window.on_loss(at + ROUND_TRIP / 2, ROUND_TRIP, 0.0), "the same event");
        // K = cbrt(0.3 * 640 / 0.4) s = 7.83 s = 157 round trips.
        let sizes = grow(&mut window, 300);
        let back = sizes.iter().position(|&size| size >= 0.995 * 640.0).unwrap();
        assert!((110..160).contains(&back), "{back}");
        assert!(sizes[165] < 1.02 * 640.0 && sizes[299] > 1.1 * 640.0);
    }

    #[test]
    fn one_that_starts_doubles_until_something_is_lost() {
        let mut window = Window::new(Instant::ZERO, 10.0 * SEGMENT, true);
        assert!(
            !window.on_loss(Instant::ZERO + ROUND_TRIP / 2, ROUND_TRIP, 0.0),
            "of what was before"
        );
        assert_eq!(grow(&mut window, 3), [20.0, 40.0, 80.0]);
        assert!(window.on_loss(Instant::ZERO + Duration::from_secs(101), ROUND_TRIP, 0.0));
        assert!(grow(&mut window, 3)[2] < 80.0);
    }

    #[test]
    fn it_does_not_give_way_below_its_floor() {
        let mut window = Window::new(Instant::ZERO, 100.0 * SEGMENT, true);
        let [one, two, three] = [1, 2, 3].map(|second| Instant::ZERO + Duration::from_secs(second));
        window.on_loss(one, ROUND_TRIP, 120.0 * SEGMENT);
        window.on_delivered(one, 30.0 * SEGMENT, ROUND_TRIP);
        assert!((window.size - 130.0).abs() < 1e-9, "it still starts: {}", window.size);
        window.on_loss(two, ROUND_TRIP, 120.0 * SEGMENT);
        assert!((window.size - 120.0).abs() < 1e-9, "{}", window.size);
        window.on_loss(three, ROUND_TRIP, 0.0);
        assert!((window.size - 84.0).abs() < 1e-9, "{}", window.size);
    }

    #[test]
    fn it_is_no_less_than_what_is_in_flight() {
        let mut window = Window::new(Instant::ZERO, 100.0 * SEGMENT, false);
        window.raise(50.0 * SEGMENT);
        assert!((window.size - 100.0).abs() < 1e-9, "{}", window.size);
        window.raise(400.0 * SEGMENT);
        window.on_loss(Instant::ZERO + Duration::from_secs(1), ROUND_TRIP, 0.0);
        assert!((window.size - 280.0).abs() < 1e-9, "{}", window.size);
    }

    #[test]
    fn a_small_one_grows_at_least_as_renos() {
        let mut window = Window::new(Instant::ZERO, 10.0 * SEGMENT, false);
        window.on_loss(Instant::ZERO + ROUND_TRIP, ROUND_TRIP, 0.0);
        let sizes = grow(&mut window, 21);
        assert!(sizes[20] > 7.0 + 20.0 * 0.529 * 0.9, "{}", sizes[20]);
        for second in 2..50 {
            window.on_loss(Instant::ZERO + Duration::from_secs(second), ROUND_TRIP, 0.0);
        }
        assert!((window.size - LEAST).abs() < 1e-9);
    }
}
