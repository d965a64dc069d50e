//! Packets that are lost and sent again, and whether it is worth while to wait for them.

use std::time::Duration;

use crate::time::Instant;

/// One packet changes the share of those that came by so much.
const WEIGHT: f32 = 1.0 / 16.0;

/// It is waited for if at least this share has come.
const WORTHWHILE: f32 = 0.5;

#[derive(Debug)]
pub(in crate::rx::reorder) struct Repairs {
    /// How long a packet may take to come again.
    wait: Duration,
    /// The share of those that came of the ones that were lost at first, smoothed.
    came: f32,
}

impl Default for Repairs {
    fn default() -> Self {
        Self { wait: Duration::ZERO, came: 1.0 }
    }
}

impl Repairs {
    /// How long a packet may take to come again after it is known to be lost; zero if none does.
    pub(in crate::rx::reorder) fn set_wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// How long one is waited for.
    pub(super) fn wait(&self) -> Duration {
        if self.came >= WORTHWHILE { self.wait } else { Duration::ZERO }
    }

    /// Since when it has to be known that a packet is lost, if it is not waited for any more.
    pub(super) fn before(&self, now: Instant) -> Instant {
        Instant::ZERO + now.since(Instant::ZERO + self.wait())
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
        repairs.set_wait(Duration::from_millis(40));
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
        repairs.set_wait(Duration::from_millis(40));
        for _ in 0..1000 {
            repairs.on_lost(1);
            repairs.on_late(false);
        }
        assert_eq!(repairs.wait(), Duration::from_millis(40));
    }
}
