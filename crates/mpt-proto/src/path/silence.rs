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

/// When so much was sent it follows in this time, queues that grow included.
const FOLLOWS: Duration = Duration::from_millis(40);

/// How many mean deviations a round trip may be longer.
const DEVIATIONS: u32 = 4;

/// What is awaited of one path.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Since when something is awaited, or feedback about what was sent before, and the bytes that the connection had sent
    /// then.
    awaited: Option<(Instant, u64)>,
    /// When so much had been sent since then that feedback follows soon.
    loaded: Option<Instant>,
    /// The path sequence that was sent last, and the bytes of the connection.
    last: (u32, u64),
    /// When feedback told last that something arrived.
    progress: Instant,
    /// How long that may have taken after it was sent.
    usual: Duration,
}

impl Silence {
    /// Data was sent on the path, and so many bytes by the connection in all, which has so many paths.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, sequence: u32, bytes: u64, paths: u64) {
        self.last = (sequence, bytes);
        let (_, before) = *self.awaited.get_or_insert((now, bytes));
        if self.loaded.is_none() && bytes.saturating_sub(before) >= 2 * paths * BYTES_PER_PATH {
            self.loaded = Some(now);
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
        self.loaded = None;
        self.progress = now;
        self.usual =
            round_trip.map_or(Duration::ZERO, |it| it.smoothed + it.variation * DEVIATIONS + LEAST);
    }

    /// Nothing is awaited any more.
    pub(crate) fn forget(&mut self) {
        (self.awaited, self.loaded) = (None, None);
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
    /// least what two feedbacks may be apart of which the first is lost with its path. It is waited for longer where the
    /// alternative is so `slow` a path that its round trip is longer by this. `None` if nothing is awaited.
    pub(crate) fn due(&self, round_trip: RoundTrip, slow: Duration) -> Option<Instant> {
        let (since, _) = self.awaited?;
        let recent = round_trip.smoothed;
        let interval = if self.loaded.is_some() { (recent / 4).max(LEAST) } else { 2 * LONGEST };
        let spare =
            (round_trip.variation * DEVIATIONS).max(MAX_FEEDBACK_GAP + interval).max(slow / 4);
        let due = since + recent + spare;
        Some(self.loaded.map_or(due, |loaded| due.max(loaded + recent + FOLLOWS)))
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

    /// Data was sent at this time, much of it or little.
    fn sent(silence: &mut Silence, millis: u64, sequence: u32, bytes: u64) {
        silence.on_sent(at(millis), sequence, bytes, 2);
    }

    #[test]
    fn what_is_sent_is_awaited_for_a_round_trip_and_four_deviations() {
        let (mut silence, none) = (Silence::default(), Duration::ZERO);
        assert_eq!(silence.due(trip(20, 2), none), None);
        sent(&mut silence, 100, 7, 0);
        sent(&mut silence, 101, 8, 48_000);
        assert_eq!(silence.due(trip(20, 2), none), Some(at(161)), "at least 25 ms more");
        assert_eq!(silence.due(trip(20, 20), none), Some(at(200)));
        assert_eq!(silence.due(trip(200, 2), none), Some(at(370)), "50 ms between feedbacks");
        assert_eq!(silence.due(trip(20, 2), Duration::from_millis(400)), Some(at(220)));
    }

    #[test]
    fn where_little_is_sent_feedback_takes_longer() {
        let (mut silence, none) = (Silence::default(), Duration::ZERO);
        sent(&mut silence, 100, 7, 5000);
        sent(&mut silence, 150, 8, 5000 + 47_999);
        assert_eq!(silence.due(trip(20, 2), none), Some(at(340)));
        sent(&mut silence, 151, 9, 5000 + 48_000);
        assert_eq!(silence.due(trip(20, 2), none), Some(at(211)));
    }

    #[test]
    fn progress_begins_the_time_anew() {
        let (mut silence, usual, none) = (Silence::default(), trip(20, 1), Duration::ZERO);
        (0..10).for_each(|number| sent(&mut silence, 100, u32::MAX.wrapping_add(number), 0));
        silence.on_progress(at(130), 3, at(100), Some(usual));
        sent(&mut silence, 131, 9, 48_000);
        assert_eq!(silence.due(usual, none), Some(at(191)), "the rest stands in a queue");
        silence.on_progress(at(165), 4, at(100), Some(usual));
        sent(&mut silence, 110, 10, 96_000);
        assert_eq!(silence.due(usual, none), Some(at(129 + 45)), "it came by a longer way");
        silence.on_progress(at(170), 10, at(160), Some(usual));
        assert_eq!((silence.due(usual, none), silence.is_idle()), (None, true));
    }
}
