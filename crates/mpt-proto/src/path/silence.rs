//! When a path is silent: something was sent on it, and no feedback tells that it arrived, for longer than that takes.

use std::time::Duration;

use super::MAX_FEEDBACK_GAP;
use super::feedback::Delay;
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

/// All paths that a feedback tells about are known after this.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Of so many datagrams in a row one arrives.
const SEVERAL: i32 = 5;

/// So often, in microseconds, it is remembered what was sent by then, and so many times.
const REMEMBERED_EVERY: u32 = 5000;
const REMEMBERED: usize = 6;

/// How many mean deviations a round trip may be longer.
const DEVIATIONS: u32 = 4;

/// How long nothing is heard of a path that carries much, where the round trip is this, until a sender takes it for silent.
pub(crate) fn longest_silence(round_trip: RoundTrip) -> Duration {
    let RoundTrip { smoothed, variation, .. } = round_trip;
    let interval = (smoothed / 4).max(LEAST);
    smoothed + (variation * DEVIATIONS).max(MAX_FEEDBACK_GAP + interval).max(FOLLOWS)
}

/// Whether several path sequences follow the one that has arrived, up to this one.
fn is_several(sequence: u32, arrived: u32) -> bool {
    sequence.wrapping_sub(arrived).cast_signed() >= SEVERAL
}

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
    /// When it was sent.
    last_at: Instant,
    /// The path sequences by which several had been sent since the last one that is known to have arrived, and when they were,
    /// in microseconds, oldest first; and how many these are.
    several: ([(u32, u32); REMEMBERED], u8),
    /// The highest path sequence that is known to have arrived, and when it did, in microseconds of the peer's clock.
    arrived: (u32, u32),
    /// When feedback has told that what was sent last should have arrived long before, or one of several in a row.
    missed: Option<Instant>,
    /// How many bytes the datagrams have that are sent, smoothed.
    len: u32,
    /// When feedback told last that something arrived.
    progress: Instant,
    /// How long that may have taken after it was sent.
    usual: Duration,
}

impl Silence {
    /// Data was sent on the path, in a datagram of so many bytes, and so many bytes by the connection in all, which has so many
    /// paths.
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        sequence: u32,
        len: u32,
        bytes: u64,
        paths: u64,
    ) {
        (self.last, self.last_at) = ((sequence, bytes), now);
        self.remember(now, sequence);
        self.len = self.len - self.len / 8 + len / 8;
        let (_, before) = *self.awaited.get_or_insert((now, bytes));
        if self.loaded.is_none() && bytes.saturating_sub(before) >= 2 * paths * BYTES_PER_PATH {
            self.loaded = Some(now);
        }
    }

    /// Remembers when this path sequence was sent, if several were since the last one that is known to have arrived.
    #[inline]
    fn remember(&mut self, now: Instant, sequence: u32) {
        let (remembered, count) = &mut self.several;
        let (now, next) = (now.micros(), usize::from(*count));
        let before = remembered[..next].last();
        if next < REMEMBERED
            && before.is_none_or(|(_, before)| now.wrapping_sub(*before) >= REMEMBERED_EVERY)
            && is_several(sequence, self.arrived.0)
        {
            remembered[next] = (sequence, now);
            *count += 1;
        }
    }

    /// Feedback tells that a path sequence has arrived, when it did by the peer's clock, and that it was sent at that time. What
    /// comes late, by a longer way back, says nothing of the time since. Of the connection, which has so many paths, so many
    /// bytes are [on their way](Self::on_the_way) by others.
    pub(crate) fn on_progress(
        &mut self,
        now: Instant,
        [highest, arrived]: [u32; 2],
        sent: Instant,
        round_trip: Option<RoundTrip>,
        [others, paths]: [u64; 2],
    ) {
        (self.arrived, self.missed) = ((highest, arrived), None);
        let (remembered, count) = &mut self.several;
        let all = remembered[..usize::from(*count)].iter();
        let told = all.take_while(|(it, _)| !is_several(*it, highest)).count();
        remembered.rotate_left(told);
        *count -= told as u8;
        let (last, bytes) = self.last;
        let is_open = last.wrapping_sub(highest).cast_signed() > 0;
        let since = if self.usual.is_zero() { now } else { now.min(sent + self.usual) };
        // What is on its way arrives after what this feedback told, so it is told by the next one.
        let told = bytes.saturating_sub(self.on_the_way() + others);
        // What was sent first after a pause is no older than it is, whatever feedback tells of before the pause.
        self.awaited = self.awaited.filter(|_| is_open).map(|(first, _)| (since.max(first), told));
        let is_loaded = is_open && bytes - told >= 2 * paths * BYTES_PER_PATH;
        self.loaded = self.awaited.filter(|_| is_loaded).map(|(since, _)| since);
        self.progress = now;
        self.usual =
            round_trip.map_or(Duration::ZERO, |it| it.smoothed + it.variation * DEVIATIONS + LEAST);
    }

    /// Of what was on its way by another path when feedback told of this one last, so many bytes have arrived. If the same feedback
    /// tells of them, the next one may be as far away as where little is sent.
    pub(crate) fn on_progress_beside(&mut self, now: Instant, arrived: u64, paths: u64) {
        let Some((_, told)) = &mut self.awaited else { return };
        if now.since(self.progress) > AT_ONCE {
            return;
        }
        let (_, bytes) = self.last;
        *told = told.saturating_add(arrived).min(bytes);
        if bytes - *told < 2 * paths * BYTES_PER_PATH {
            self.loaded = None;
        }
    }

    /// How many bytes have been sent on the path of which no feedback tells yet.
    pub(crate) fn on_the_way(&self) -> u64 {
        let (last, _) = self.last;
        u64::try_from(last.wrapping_sub(self.arrived.0).cast_signed()).unwrap_or(0)
            * u64::from(self.len)
    }

    /// The peer has written a feedback at that time of its clock, and datagrams have this delay by the path; it is waited for longer
    /// by so much.
    /// Returns when the path will count as silent if it has not told of it as well.
    pub(crate) fn on_written(
        &mut self,
        now: Instant,
        written: u32,
        delay: Delay,
        spare: Duration,
    ) -> Option<Instant> {
        if self.awaited.is_none() || self.missed.is_some() {
            return self.missed;
        }
        let (_, arrived) = self.arrived;
        let (remembered, count) = &self.several;
        let several = remembered[..usize::from(*count)].first();
        let sent = several.map_or(self.last_at.micros(), |(_, at)| *at);
        let expected = sent.wrapping_add(delay.mean);
        let since = [expected, arrived].map(|at| written.wrapping_sub(at).cast_signed());
        let least = ((delay.deviation * DEVIATIONS).max(FOLLOWS) + spare).as_micros() as i32;
        if since.into_iter().all(|since| since >= least) {
            self.missed = Some(now + AT_ONCE);
        }
        self.missed
    }

    /// Nothing is awaited any more.
    pub(crate) fn forget(&mut self) {
        (self.awaited, self.loaded, self.missed) = (None, None, None);
        self.several.1 = 0;
    }

    /// Whether nothing is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        self.awaited.is_none()
    }

    /// The highest path sequence that is known to have arrived.
    pub(crate) fn highest(&self) -> u32 {
        self.arrived.0
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
        let due = self.loaded.map_or(due, |loaded| due.max(loaded + recent + FOLLOWS));
        Some(self.missed.map_or(due, |missed| due.min(missed)))
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
        silence.on_sent(at(millis), sequence, 1400, bytes, 2);
    }

    /// Feedback tells that it has arrived, and nothing of other paths.
    fn progress(silence: &mut Silence, millis: u64, sequence: u32, sent: u64, trip: RoundTrip) {
        silence.on_progress(at(millis), [sequence, 0], at(sent), Some(trip), [0, 2]);
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
    fn what_the_same_feedback_tells_of_other_paths_is_not_awaited() {
        // Of 100 kB that are on their way by another path a feedback tells as well, so the next one may be far away.
        for (after, due) in [(0, 300 + 20 + 20 + 200), (5, 300 + 60)] {
            let mut silence = Silence::default();
            sent(&mut silence, 100, 7, 0);
            sent(&mut silence, 290, 8, 100_000);
            silence.on_progress(at(300), [7, 0], at(280), Some(trip(20, 2)), [98_600, 2]);
            silence.on_progress_beside(at(300 + after), 98_600, 2);
            assert_eq!(silence.due(trip(20, 2), Duration::ZERO), Some(at(due)), "{after} ms after");
        }
    }

    #[test]
    fn progress_begins_the_time_anew() {
        let (mut silence, usual, none) = (Silence::default(), trip(20, 1), Duration::ZERO);
        (0..10).for_each(|number| sent(&mut silence, 100, u32::MAX.wrapping_add(number), 0));
        progress(&mut silence, 130, 3, 100, usual);
        sent(&mut silence, 131, 9, 48_000);
        assert_eq!(silence.due(usual, none), Some(at(191)), "the rest stands in a queue");
        progress(&mut silence, 165, 4, 100, usual);
        sent(&mut silence, 110, 10, 96_000);
        assert_eq!(silence.due(usual, none), Some(at(130 + 45)), "it came by a longer way");
        progress(&mut silence, 170, 10, 160, usual);
        assert_eq!((silence.due(usual, none), silence.is_idle()), (None, true));
    }

    /// A keep-alive arrived before the pause, and feedback tells of it again just after data was sent.
    #[test]
    fn what_is_sent_after_a_pause_is_not_awaited_since_before_it() {
        let (mut silence, usual, none) = (Silence::default(), trip(20, 1), Duration::ZERO);
        sent(&mut silence, 100, 7, 0);
        progress(&mut silence, 125, 7, 100, usual);
        assert!(silence.is_idle());
        sent(&mut silence, 400, 9, 3000);
        progress(&mut silence, 405, 8, 200, usual);
        assert_eq!(silence.due(usual, none), Some(at(400 + 20 + 220)));
    }

    /// A transfer stops as soon as its window is used up, while much is on its way that is not told yet.
    #[test]
    fn what_is_on_its_way_is_awaited_although_nothing_more_is_sent() {
        let (usual, none) = (trip(20, 1), Duration::ZERO);
        let mut silence = Silence::default();
        (0..100).for_each(|number| sent(&mut silence, 100, number, 1400 * u64::from(number)));
        progress(&mut silence, 120, 49, 100, usual);
        assert!(silence.on_the_way() > 48_000, "{}", silence.on_the_way());
        assert_eq!(silence.due(usual, none), Some(at(180)), "a round trip and 40 ms");
        // The other path has some of it.
        progress(&mut silence, 122, 79, 102, usual);
        assert_eq!(silence.due(usual, none), Some(at(122 + 20 + 220)));
        let others = 60_000 - silence.on_the_way();
        silence.on_progress(at(124), [79, 0], at(104), Some(usual), [others, 2]);
        assert_eq!(silence.due(usual, none), Some(at(124 + 60)));
    }

    #[test]
    fn a_path_is_silent_when_the_peer_has_long_been_without_what_was_sent_last() {
        let (usual, none) = (trip(20, 1), Duration::ZERO);
        let deviation = Duration::from_millis(2);
        // The peer's clock is 500 ms ahead, and datagrams take 10 ms.
        let delay = Delay { min: 510_000, least: 510_000, mean: 510_000, deviation };
        let mut silence = Silence::default();
        (0..10).for_each(|number| sent(&mut silence, 100, number, 1400 * u64::from(number)));
        silence.on_progress(at(125), [4, 610_000], at(100), Some(usual), [0, 2]);
        let mut written =
            |now, written: u32| silence.on_written(at(now), written * 1000, delay, none);
        assert_eq!(written(140, 630), None);
        assert_eq!(written(160, 649), None, "it should have come 39 ms before");
        assert_eq!(written(161, 650), Some(at(162)), "as soon as all is known that was told");
        assert_eq!(silence.due(usual, none), Some(at(162)));
        silence.on_progress(at(161), [5, 648_000], at(100), Some(usual), [0, 2]);
        assert!(silence.due(usual, none).unwrap() > at(200), "something came after all");
        assert_eq!(silence.on_written(at(170), 680_000, delay, none), None, "32 ms after that");
        assert!(silence.on_written(at(180), 690_000, delay, none).is_some());
        silence.on_progress(at(181), [9, 650_000], at(100), Some(usual), [0, 2]);
        assert_eq!(silence.on_written(at(900), 1_400_000, delay, none), None, "all has come");
    }

    /// The acknowledgements of a transfer are so few bytes that nothing else tells soon, and they go on for as long as data comes.
    #[test]
    fn a_path_is_silent_when_several_in_a_row_have_not_come_though_more_are_sent() {
        let deviation = Duration::from_millis(2);
        let delay = Delay { min: 10_000, least: 10_000, mean: 10_000, deviation };
        let usual = trip(20, 1);
        let written = |every: u64, at_millis: u64| {
            let mut silence = Silence::default();
            (0..50).filter(|it| it % every == 0).enumerate().for_each(|(number, time)| {
                silence.on_sent(at(100 + time), number as u32, 60, 60 * number as u64, 2);
            });
            silence.on_progress(at(120), [0, 110_000], at(100), Some(usual), [0, 2]);
            let now = at(at_millis + 10);
            silence.on_written(now, at_millis as u32 * 1000, delay, Duration::ZERO).is_some()
        };
        assert!(!written(1, 154), "the fifth has been missing for 39 ms");
        assert!(written(1, 155), "for 40 ms");
        assert!(!written(20, 189) && written(20, 190), "few may be lost: the last one counts");
    }
}
