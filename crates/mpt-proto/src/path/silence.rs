//! When a path is silent: something was sent on it, and no feedback tells that it arrived, for longer than that takes.

use std::time::Duration;

use super::MAX_FEEDBACK_GAP;
use super::rtt::RoundTrip;
use crate::time::Instant;

/// The least time between two feedbacks (section 8.2 of `docs/protocol.md`), and the longest if little is sent.
const LEAST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(100);

/// What feedback takes of what it is about, inverted, times the bytes of a block: it is sent no later than after so many bytes for
/// each path.
const BYTES_PER_PATH: u64 = 12_000;

/// How many mean deviations a round trip may be longer.
const DEVIATIONS: u32 = 4;

/// What is awaited of one path.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Since when something is awaited, or feedback about what was sent before, and the bytes that the connection had sent
    /// then.
    awaited: Option<(Instant, u64)>,
    /// The path sequence that was sent last, and the bytes of the connection.
    last: (u32, u64),
    /// When feedback told last that something arrived.
    progress: Instant,
    /// How long that may have taken after it was sent.
    usual: Duration,
}

impl Silence {
    /// Data was sent on the path, and so many bytes by the connection in all.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, sequence: u32, bytes: u64) {
        self.last = (sequence, bytes);
        if self.awaited.is_none() {
            self.awaited = Some((now, bytes));
        }
    }

    /// Feedback tells that a path sequence has arrived that was sent at that time. What comes late, by a longer way back,
    /// says nothing of the time since.
    pub(crate) fn on_progress(
        &mut self,
        now: Instant,
        highest: u32,
        sent: Instant,
        round_trip: Option<RoundTrip>,
    ) {
        let (last, bytes) = self.last;
        let is_open = last.wrapping_sub(highest).cast_signed() > 0;
        let since = if self.usual.is_zero() { now } else { now.min(sent + self.usual) };
        self.awaited = self.awaited.filter(|_| is_open).map(|_| (since, bytes));
        self.progress = now;
        self.usual =
            round_trip.map_or(Duration::ZERO, |it| it.recent() + it.variation * DEVIATIONS + LEAST);
    }

    /// Nothing is awaited any more.
    pub(crate) fn forget(&mut self) {
        self.awaited = None;
    }

    /// Whether nothing is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        self.awaited.is_none()
    }

    /// When feedback told last that something arrived.
    pub(crate) fn progress(&self) -> Instant {
        self.progress
    }

    /// When the path will have been silent for too long, if nothing is heard of it: a round trip and four deviations, or at
    /// least what two feedbacks may be apart of which the first is lost with its path. `bytes` were sent by the connection in
    /// all, which has so many paths. `None` if nothing is awaited.
    pub(crate) fn due(&self, round_trip: RoundTrip, bytes: u64, paths: u64) -> Option<Instant> {
        let (since, before) = self.awaited?;
        let recent = round_trip.recent();
        let is_loaded = bytes.saturating_sub(before) >= 2 * paths * BYTES_PER_PATH;
        let interval = if is_loaded { (recent / 4).max(LEAST) } else { LONGEST };
        let spare = (round_trip.variation * DEVIATIONS).max(MAX_FEEDBACK_GAP + interval);
        Some(since + recent + spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn trip(millis: u64, variation: u64) -> RoundTrip {
        let [time, variation] = [millis, variation].map(Duration::from_millis);
        RoundTrip { latest: time, min: time, smoothed: time, variation }
    }

    const MUCH: u64 = 1 << 20;

    #[test]
    fn what_is_sent_is_awaited_for_a_round_trip_and_four_deviations() {
        let mut silence = Silence::default();
        assert_eq!(silence.due(trip(20, 2), MUCH, 2), None);
        silence.on_sent(at(100), 7, 0);
        silence.on_sent(at(110), 8, 1000);
        assert_eq!(silence.due(trip(20, 2), MUCH, 2), Some(at(145)), "at least 25 ms more");
        assert_eq!(silence.due(trip(20, 10), MUCH, 2), Some(at(160)));
        assert_eq!(silence.due(trip(200, 2), MUCH, 2), Some(at(370)), "50 ms between feedbacks");
    }

    #[test]
    fn where_little_is_sent_feedback_takes_longer() {
        let mut silence = Silence::default();
        silence.on_sent(at(100), 7, 5000);
        assert_eq!(silence.due(trip(20, 2), 5000 + 47_999, 2), Some(at(240)));
        assert_eq!(silence.due(trip(20, 2), 5000 + 48_000, 2), Some(at(145)));
    }

    #[test]
    fn progress_begins_the_time_anew() {
        let (mut silence, usual) = (Silence::default(), trip(20, 1));
        (0..10).for_each(|number| silence.on_sent(at(100), u32::MAX.wrapping_add(number), 0));
        silence.on_progress(at(130), 3, at(100), Some(usual));
        assert_eq!(silence.due(usual, MUCH, 2), Some(at(175)), "the rest stands in a queue");
        silence.on_sent(at(160), 9, 0);
        silence.on_progress(at(165), 4, at(100), Some(usual));
        assert_eq!(silence.due(usual, MUCH, 2), Some(at(129 + 45)), "it came by a longer way");
        silence.on_progress(at(170), 9, at(160), Some(usual));
        assert_eq!((silence.due(usual, MUCH, 2), silence.is_idle()), (None, true));
    }
}
