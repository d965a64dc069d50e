//! What is remembered of the losses of a path on which no queue stands.

use std::time::Duration;

use super::points::{Point, after};
use crate::time::Instant;

/// So much is suspect, if so many were lost. Where delays vary it is more, as what is late counts as lost for a while: up to the second
/// where they exceed the least one by so much on average.
pub(super) const SUSPECT: [f64; 2] = [0.05, 0.08];
pub(super) const VARIES: Duration = Duration::from_millis(6);
pub(super) const LOST: f64 = 20.0;

/// In a test so much of what arrives is sent, and less than this share of the loss that was suspect proves an excess.
/// Less than the other share says that the test was of too much.
pub(super) const BELOW: f64 = 0.95;
pub(super) const PROVES: f64 = 1.0 / 3.0;
pub(super) const LESS: f64 = 2.0 / 3.0;

/// What may be lost beyond what is at random.
pub(super) const LITTLE: f64 = 0.01;

/// What is known of a path that has lost something.
#[derive(Debug, Default)]
pub(super) struct Excess {
    pub(super) state: State,
    pub(super) window: Interval,
    /// The last feedback, if the time since then counts.
    pub(super) before: Option<Point>,
    /// Until when what is told to be lost may have been dropped by a queue that stood.
    pub(super) overflowed_until: Instant,
    pub(super) trusted_until: Instant,
    pub(super) trusted_for: Duration,
    /// What a cap did since it grew last, and after what time of that it was tested last.
    pub(super) stood: Interval,
    pub(super) tested_after: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum State {
    #[default]
    Usual,
    /// No more than this is sent, to see what is lost of what was sent after `from`. It was `loss` before, and whether it was
    /// `capped` then. If that proves an excess, the cap begins to grow by the share `step`.
    Test { most: f64, from: u32, loss: f64, step: f64, capped: bool },
    /// The path delivers no more than this. If it loses little more than in the test, which is the share `random`, the cap grows by the
    /// share `step`.
    Capped { most: f64, step: f64, random: f64 },
}

/// What a path did in some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    pub(super) lost: f64,
    /// Datagrams and bytes that arrived, and in how many microseconds.
    packets: f64,
    bytes: f64,
    arrived: f64,
    pub(super) length: Duration,
}

impl Interval {
    pub(super) fn add(&mut self, before: &Point, point: &Point) {
        self.extend(&Self {
            lost: f64::from(after(point.lost, before.lost)),
            packets: f64::from(after(point.packets, before.packets)),
            bytes: point.bytes.saturating_sub(before.bytes) as f64,
            arrived: f64::from(after(point.arrived, before.arrived)),
            length: point.at.since(before.at),
        });
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.lost += other.lost;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.arrived += other.arrived;
        self.length += other.length;
    }

    pub(super) fn sent(&self) -> f64 {
        (self.packets + self.lost).max(1.0)
    }

    pub(super) fn loss(&self) -> f64 {
        self.lost / self.sent()
    }

    /// What arrived, in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.bytes * 1e6 / self.arrived.max(1.0)
    }

    /// Whether no more is lost than the share `random` that is lost at random, [`LITTLE`], and two standard deviations.
    pub(super) fn loses_little(&self, random: f64) -> bool {
        self.loss() <= random + LITTLE + 2.0 * (random / self.sent()).sqrt()
    }

    pub(super) fn is_suspect(&self, loss: f64) -> bool {
        self.loss() > loss && self.lost >= LOST
    }

    /// Less than what arrives, which was `recent` bytes per second at last, is to be sent after this path sequence.
    pub(super) fn test(&self, [recent, step]: [f64; 2], from: u32, capped: bool) -> State {
        State::Test { most: BELOW * self.rate().max(recent), from, loss: self.loss(), step, capped }
    }
}
