//! Packets that are lost and sent again, and whether it is worth while to wait for them.

use std::time::Duration;

use crate::time::Instant;

/// One packet changes the share of those that came by so much.
const WEIGHT: f32 = 1.0 / 16.0;

/// It is waited for if at least this share has come.
const WORTHWHILE: f32 = 0.5;

/// What is not waited for any more is tried again after a second, and after twice as long each time that this is no better, up to
/// the longest. The share counts as this then: seven more that do not come are enough to end it.
const TRIED_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(16)];
const TRIED: f32 = 0.75;

/// When this share has come, the times begin anew.
const WELL: f32 = 0.9;

#[derive(Debug)]
pub(in crate::rx::reorder) struct Repairs {
    /// How long a packet may take to come again.
    wait: Duration,
    /// How long it takes until what a silent path has left behind comes by another one.
    silence: Duration,
    /// The share of those that came of the ones that were lost at first, smoothed.
    came: f32,
    /// When they are waited for again, if they are not; and how long that takes the next time.
    tried_at: Option<Instant>,
    tried_after: Duration,
}

impl Default for Repairs {
    fn default() -> Self {
        let (wait, silence) = (Duration::ZERO, Duration::ZERO);
        Self { wait, silence, came: 1.0, tried_at: None, tried_after: TRIED_AFTER[0] }
    }
}

impl Repairs {
    /// How long a packet may take to come again after it is known to be lost; zero if none does. To be called now and then.
    pub(in crate::rx::reorder) fn set_wait(&mut self, now: Instant, wait: Duration) {
        self.wait = wait;
        if self.came >= WORTHWHILE {
            self.tried_at = None;
            if self.came >= WELL {
                self.tried_after = TRIED_AFTER[0];
            }
            return;
        }
        let tried_at = *self.tried_at.get_or_insert(now + self.tried_after);
        if now >= tried_at {
            (self.came, self.tried_at) = (TRIED, None);
            self.tried_after = (self.tried_after * 2).min(TRIED_AFTER[1]);
        }
    }

    /// How long it takes until what a silent path has left behind comes by another one; zero if it does not.
    pub(in crate::rx::reorder) fn set_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// How long that is waited for.
    pub(super) fn silence(&self) -> Duration {
        self.silence
    }

    /// How long one is waited for.
    pub(super) fn wait(&self) -> Duration {
        if self.came >= WORTHWHILE { self.wait } else { Duration::ZERO }
    }

    /// Since when it has to be known that a packet is lost, if it is not waited for any more.
    pub(super) fn before(&self, now: Instant) -> Instant {
        now.before(self.wait())
    }

    /// A packet came that was missing, in turn or not. Most of those out of turn were sent again.
    pub(super) fn on_filled(&mut self, in_turn: bool) {
        if !in_turn {
            self.came += (1.0 - self.came) * WEIGHT;
        }
    }

    /// The same of one that was given up, and so counts as one that did not come.
    pub(super) fn on_late(&mut self, in_turn: bool) {
        (0..3).for_each(|_| self.on_filled(in_turn));
    }

    /// So many packets were given up.
    pub(super) fn on_lost(&mut self, lost: u32) {
        for _ in 0..lost.min(64) {
            self.came -= self.came * WEIGHT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_waited_for_as_long_as_most_of_them_come() {
        let mut repairs = Repairs::default();
        repairs.set_wait(Instant::ZERO, Duration::from_millis(40));
        repairs.on_lost(8);
        assert_eq!(repairs.wait(), Duration::from_millis(40), "it may be chance");
        repairs.on_lost(8);
        assert_eq!(repairs.wait(), Duration::ZERO);
        (0..8).for_each(|_| repairs.on_filled(true));
        assert_eq!(repairs.wait(), Duration::ZERO, "these were not sent again");
        (0..8).for_each(|_| repairs.on_filled(false));
        assert_eq!(repairs.wait(), Duration::from_millis(40));
    }

    #[test]
    fn packets_that_come_late_are_worth_a_longer_wait() {
        let mut repairs = Repairs::default();
        repairs.set_wait(Instant::ZERO, Duration::from_millis(40));
        for _ in 0..1000 {
            repairs.on_lost(1);
            repairs.on_late(false);
        }
        assert_eq!(repairs.wait(), Duration::from_millis(40));
    }

    /// Ten given up each second, of which these come: how many seconds passed before each time that they were waited for again.
    fn trials(repairs: &mut Repairs, seconds: u64, comes: impl Fn(u64) -> bool) -> Vec<u64> {
        let (mut trials, mut since) = (Vec::new(), 0);
        for second in 0..seconds {
            let waited = repairs.wait();
            repairs
                .set_wait(Instant::ZERO + Duration::from_secs(second), Duration::from_millis(40));
            if waited.is_zero() && !repairs.wait().is_zero() {
                trials.push(second - since);
                since = second;
            }
            for _ in 0..10 {
                if comes(second) { repairs.on_filled(false) } else { repairs.on_lost(1) }
            }
        }
        trials
    }

    #[test]
    fn what_is_not_waited_for_is_tried_again_on_a_schedule() {
        let mut repairs = Repairs::default();
        repairs.set_wait(Instant::ZERO, Duration::from_millis(40));
        // A second until that is noticed is part of each time.
        assert_eq!(trials(&mut repairs, 100, |_| false), [3, 3, 5, 9, 17, 17, 17, 17]);
        // From the 20th second to the 30th they come: they are waited for at once, and the times begin anew.
        let trials = trials(&mut repairs, 60, |second| (20..30).contains(&second));
        assert_eq!(trials, [33, 3, 5, 9]);
    }
}
