//! A path that drops what exceeds its rate and queues nothing, such as a policer or a link with a shallow buffer.
//!
//! No delay tells its rate, and loss alone does not: a radio link loses at any rate. So when more is lost than usual, a
//! little less than what arrived is sent for a while. If the loss ends, it came from sending too much, and the rate
//! stays below what arrived; after two seconds, doubling to a minute, more is tried again. If it goes on, it is the
//! path's own.

use std::time::Duration;

use super::points::{Point, after};
use crate::time::Instant;

/// Loss is measured over a round trip and at least this, until so many datagrams have been lost or so many have
/// arrived. Of a path that loses 12 by chance, no more than two are lost in the same time once in 2000 times.
const EPOCH: Duration = Duration::from_millis(50);
const LOST: i32 = 12;
const DATAGRAMS: u32 = 2000;

/// Less than this share that is lost says nothing.
const LOSS: f64 = 0.004;

/// What is sent of what arrived, to see whether the loss ends, and when it did.
const TRIAL: f64 = 0.95;
const HELD: f64 = 0.98;

/// More than so many times the loss before a trial is not the same loss.
const GROWN: f64 = 1.5;

/// If the loss goes on at less than this part of what arrived at first, it does not come from what is sent.
const WORTHLESS: f64 = 0.7;

/// How long no more is tried, at first and at the most.
const HOLD: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Free,
    /// Less is sent than what arrived when such a share was lost, for as many datagrams.
    Trial { delivered: f64, loss: f64, packets: u32 },
    /// No more arrives than this, and than `first` when it began.
    Held { delivered: f64, first: f64, until: Instant },
}

/// What is known of the loss of a path.
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    state: State,
    /// The share that is lost whatever is sent.
    usual: f64,
    /// Since when loss is measured, of what was sent after some time.
    from: Option<Point>,
    sent_after: Option<u32>,
    hold: Duration,
    /// What arrived when it was held last.
    held: f64,
}

impl Ceiling {
    /// The most that may be sent, in bytes per second, on a path that is believed to deliver `rate`.
    pub(super) fn bound(&self, rate: f64) -> Option<f64> {
        match self.state {
            State::Free => None,
            State::Trial { delivered, .. } => Some(TRIAL * delivered.min(rate)),
            State::Held { delivered, .. } => Some(HELD * delivered),
        }
    }

    /// What the path delivers, in bytes per second, if that is known by what it drops.
    pub(super) fn delivered(&self) -> Option<f64> {
        match self.state {
            State::Held { delivered, .. } => Some(delivered),
            State::Free | State::Trial { .. } => None,
        }
    }

    /// The share that is lost whatever is sent.
    pub(super) fn usual(&self) -> f64 {
        self.usual
    }

    /// The path has just been filled for the first time: what was sent before this does not count.
    pub(super) fn restart(&mut self, now: Instant) {
        self.begin(now, State::Free);
    }

    /// Feedback about the path arrived. It says something only while nothing stands in its queue and it is kept busy:
    /// `busy_from` is the path sequence since which it has been.
    pub(super) fn on_point(&mut self, point: &Point, busy_from: Option<u32>, round_trip: Duration) {
        let now = point.at;
        if let State::Held { until, .. } = self.state
            && now >= until
        {
            self.begin(now, State::Free);
        }
        let is_busy = |from: &Point| busy_from.is_some_and(|busy| after(from.highest, busy) >= 0);
        let is_early = self.sent_after.is_some_and(|sent| after(point.sent, sent) < 0);
        let Some(from) = self.from.filter(|from| is_busy(from) && !is_early) else {
            self.from = Some(*point);
            return;
        };
        let packets = point.packets.wrapping_sub(from.packets);
        let lost = after(point.lost, from.lost).max(0);
        let is_enough = match self.state {
            State::Trial { packets: before, .. } => packets >= before,
            State::Free | State::Held { .. } => lost >= LOST || packets >= DATAGRAMS,
        };
        if point.at.since(from.at) < round_trip.max(EPOCH) || !is_enough {
            return;
        }
        self.from = Some(*point);
        let loss = f64::from(lost) / (f64::from(lost) + f64::from(packets));
        let time = f64::from(after(point.arrived, from.arrived)).max(1.0);
        let delivered = (point.bytes - from.bytes) as f64 * 1e6 / time;
        self.on_loss(now, loss, delivered, packets);
    }

    fn on_loss(&mut self, now: Instant, loss: f64, delivered: f64, packets: u32) {
        let is_unusual = loss > LOSS + 2.0 * self.usual;
        match self.state {
            State::Free if is_unusual => {
                self.begin(now, State::Trial { delivered, loss, packets });
            }
            State::Free => self.usual += (loss - self.usual) / 8.0,
            State::Trial { delivered: tried, loss: before, .. } if loss < before / 4.0 => {
                // Before the trial a policer may have let through more than its rate.
                let delivered = tried.min(delivered / TRIAL);
                let is_same = (delivered - self.held).abs() < 0.1 * self.held;
                let longer = (2 * self.hold).clamp(HOLD[0], HOLD[1]);
                self.hold = if is_same { longer } else { HOLD[0] };
                self.held = delivered;
                let until = now + self.hold;
                self.begin(now, State::Held { delivered, first: delivered, until });
            }
            State::Trial { loss: before, .. } if loss > GROWN * before => {
                // It has only begun to drop: a policer lets through more than its rate for a while.
                self.begin(now, State::Trial { delivered, loss, packets });
            }
            State::Trial { .. } => {
                self.usual = self.usual.max(loss);
                self.begin(now, State::Free);
            }
            State::Held { delivered: before, first, until } if is_unusual => {
                let delivered = delivered.min(HELD * before);
                if delivered < WORTHLESS * first {
                    // Less does not help: the loss is the path's own by now.
                    self.usual = self.usual.max(loss);
                    self.begin(now, State::Free);
                } else {
                    self.held = delivered;
                    self.begin(now, State::Held { delivered, first, until });
                }
            }
            State::Held { .. } => {}
        }
    }

    fn begin(&mut self, now: Instant, state: State) {
        self.state = state;
        self.sent_after = Some(now.micros());
        self.from = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(20);

    /// Feedback after so many milliseconds in which 100 datagrams arrived per 10 ms, and a tenth as many were lost.
    fn point(millis: u32) -> Point {
        let tens = millis / 10;
        let micros = millis * 1000;
        Point {
            at: Instant::ZERO + Duration::from_millis(millis.into()),
            highest: 110 * tens,
            sent: micros - 10_000,
            arrived: micros,
            bytes: u64::from(100 * tens) * 1000,
            packets: 100 * tens,
            lost: 10 * tens,
            delay: 10_000,
            mean: 10_000,
        }
    }

    #[test]
    fn loss_of_a_path_that_is_kept_busy_is_looked_into() {
        let mut ceiling = Ceiling::default();
        (2..10).for_each(|tens| ceiling.on_point(&point(10 * tens), Some(0), ROUND_TRIP));
        assert_eq!(ceiling.bound(1e9), Some(TRIAL * 1e7), "{ceiling:?}");
        assert_eq!(ceiling.bound(1e6), Some(TRIAL * 1e6), "less is believed already");
    }

    #[test]
    fn loss_of_a_path_that_idles_now_and_then_says_nothing() {
        let mut ceiling = Ceiling::default();
        for tens in 2..100 {
            let point = point(10 * tens);
            // It idled a moment ago each time, and has sent since.
            ceiling.on_point(&point, Some(point.highest - 50), ROUND_TRIP);
        }
        assert_eq!((ceiling.bound(1e9), ceiling.usual()), (None, 0.0), "{ceiling:?}");
    }

    #[test]
    fn loss_that_grows_in_a_trial_is_not_the_usual_one() {
        let mut ceiling = Ceiling::default();
        let now = Instant::ZERO;
        ceiling.on_loss(now, 0.02, 3e6, 600);
        ceiling.on_loss(now, 0.08, 2e6, 600);
        assert_eq!((ceiling.bound(1e9), ceiling.usual()), (Some(TRIAL * 2e6), 0.0), "{ceiling:?}");
        ceiling.on_loss(now, 0.0, TRIAL * 2e6, 600);
        assert_eq!(ceiling.delivered(), Some(2e6));
    }

    #[test]
    fn loss_that_goes_on_whatever_is_sent_ends_the_hold() {
        let mut ceiling = Ceiling::default();
        let now = Instant::ZERO;
        ceiling.on_loss(now, 0.1, 1e6, 600);
        ceiling.on_loss(now, 0.0, TRIAL * 1e6, 600);
        assert_eq!(ceiling.delivered(), Some(1e6));
        (0..100).for_each(|_| ceiling.on_loss(now, 0.1, 1e6, 600));
        assert_eq!(ceiling.delivered(), None, "{ceiling:?}");
        assert!(ceiling.usual() > 0.05, "{ceiling:?}");
    }
}
