//! How soon a path is used again that was left, and how much at first.

use std::time::Duration;

use crate::time::Instant;

/// A path that was left for the second time has to answer for so long before it is used again; for twice as long each
/// time, and at the most.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(8);

/// One time is forgiven when the path was not left for so long.
const FORGIVEN: Duration = Duration::from_secs(30);

/// Answers that are further apart do not count as one time.
const APART: Duration = Duration::from_millis(300);

/// A path that was left is likely to be used again within this time.
const MISSED: Duration = Duration::from_secs(5);

/// A path that is used again begins with this share of its rate, and has all of it after so many round trips. One without a limit of its own
/// has a limit until the share is the most: what was committed while it had less must not leave at once.
const LEAST_SHARE: f64 = 0.125;
const RAMP: f64 = 4.0;
const MOST_SHARE: f64 = 2.0;

/// What is known of the times that a path was left.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    times: u32,
    left_at: Instant,
    /// Since when it has answered, and when it did so last.
    answers: Option<(Instant, Instant)>,
    returned_at: Option<Instant>,
}

impl Patience {
    /// For so long after it was left a path is suspected.
    pub(crate) const SUSPECTED: Duration = FORGIVEN;

    /// Whether it was left so lately that it is suspected.
    pub(crate) fn is_suspect(&self, now: Instant) -> bool {
        self.times > 0 && now.since(self.left_at) < Self::SUSPECTED
    }

    /// Whether it was left so lately that flows do well to keep sending what it carried.
    pub(crate) fn is_missed(&self, now: Instant) -> bool {
        self.times > 0 && now.since(self.left_at) < MISSED
    }

    /// The path is left.
    pub(crate) fn on_left(&mut self, now: Instant) {
        let forgiven = now.since(self.left_at).as_millis() / FORGIVEN.as_millis();
        self.times = self.times.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX)) + 1;
        (self.left_at, self.answers, self.returned_at) = (now, None, None);
    }

    /// For how long it has to answer.
    fn wait(&self) -> Duration {
        match self.times {
            0 | 1 => Duration::ZERO,
            times => (FIRST * 2_u32.pow((times - 2).min(10))).min(LONGEST),
        }
    }

    /// What was sent on it after it was left has arrived. Returns whether it is used again.
    pub(crate) fn on_answer(&mut self, now: Instant) -> bool {
        let (since, _) =
            self.answers.filter(|(_, last)| now.since(*last) <= APART).unwrap_or((now, now));
        self.answers = Some((since, now));
        now.since(since) >= self.wait()
    }

    /// It is used again; or for the first time, if it was never left.
    pub(crate) fn on_return(&mut self, now: Instant) {
        if self.times > 0 {
            self.returned_at = Some(now);
        }
    }

    /// It was left by mistake: what was sent on it before has arrived, only late. So it is used again as before.
    pub(crate) fn on_mistake(&mut self) {
        self.times = self.times.saturating_sub(1);
        self.returned_at = None;
    }

    /// The share of its rate that it is used with, from 1/8 to 2, where its round trip is this; `None` if it was not left, or that is long ago.
    pub(crate) fn share(&self, now: Instant, round_trip: Duration) -> Option<f64> {
        let trips = now.since(self.returned_at?).as_secs_f64() / round_trip.as_secs_f64().max(1e-3);
        let share = (trips / RAMP).max(LEAST_SHARE);
        (share < MOST_SHARE).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// For how many milliseconds a path has to answer that is left at a time.
    fn waits(patience: &mut Patience, left: u64) -> Option<u64> {
        patience.on_left(at(left));
        (0..20_000).step_by(50).find(|after| patience.on_answer(at(left + after)))
    }

    #[test]
    fn a_path_that_is_left_again_and_again_has_to_answer_for_longer() {
        let mut patience = Patience::default();
        let waited: Vec<_> =
            (0..8).map(|n| waits(&mut patience, 100_000 + n * 10_000).unwrap()).collect();
        assert_eq!(waited, [0, 250, 500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(waits(&mut patience, 170_000 + 90_000), Some(4000), "three times forgiven");
        assert_eq!(waits(&mut patience, 600_000), Some(0));
    }

    #[test]
    fn answers_that_cease_do_not_count() {
        let mut patience = Patience::default();
        patience.on_left(at(100_000));
        patience.on_left(at(101_000));
        assert!(!patience.on_answer(at(101_100)));
        assert!(!patience.on_answer(at(103_000)));
        assert!(!patience.on_answer(at(103_200)));
        assert!(patience.on_answer(at(103_250)));
    }

    #[test]
    fn a_path_that_was_left_by_mistake_is_not_suspected() {
        let mut patience = Patience::default();
        for left in (100..130).map(|second| second * 1000) {
            assert_eq!(waits(&mut patience, left), Some(0));
            patience.on_return(at(left + 50));
            patience.on_mistake();
            assert!(!patience.is_suspect(at(left + 60)));
            assert_eq!(patience.share(at(left + 60), Duration::from_millis(50)), None);
        }
    }

    #[test]
    fn a_path_that_is_used_again_has_its_rate_after_four_round_trips() {
        let mut patience = Patience::default();
        let ms = Duration::from_millis;
        assert_eq!(patience.share(at(0), ms(50)), None);
        patience.on_left(at(1000));
        patience.on_return(at(2000));
        let shares = [2000, 2050, 2100, 2200, 2250].map(|now| patience.share(at(now), ms(50)));
        assert_eq!(shares, [0.125, 0.25, 0.5, 1.0, 1.25].map(Some));
        assert_eq!(patience.share(at(2400), ms(50)), None);
    }
}
