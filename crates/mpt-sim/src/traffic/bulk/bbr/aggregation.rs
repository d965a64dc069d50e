//! Acknowledgements that come at once: how much more than the rate explains (`bbr_update_ack_aggregation` of Linux).

use std::time::Duration;

use mpt_proto::Instant;

/// The most is of the present and of the last period, of so many round trips each.
const ROUNDS: u32 = 5;

/// No more is allowed for than is delivered in this time.
const LONGEST: Duration = Duration::from_millis(100);

/// What was acknowledged beyond what the rate explains, in packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// When the present epoch began, and what was acknowledged in it.
    began: Instant,
    acknowledged: f64,
    /// The most of the present period and of the one before, and how many rounds the present one has.
    most: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// `count` packets were acknowledged, at this rate in packets per second and this window. A round begins with them, or
    /// not.
    pub(super) fn on_acknowledged(
        &mut self,
        now: Instant,
        count: usize,
        rate: f64,
        window: f64,
        is_round: bool,
    ) {
        if is_round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.most = [0.0, self.most[0]];
            }
        }
        let mut expected = rate * now.since(self.began).as_secs_f64();
        if self.acknowledged <= expected {
            (self.acknowledged, self.began, expected) = (0.0, now, 0.0);
        }
        self.acknowledged += count as f64;
        let extra = (self.acknowledged - expected).min(window);
        self.most[0] = self.most[0].max(extra);
    }

    /// How many packets more may be in flight because of it.
    pub(super) fn extra(&self, rate: Option<f64>) -> f64 {
        let bound = rate.unwrap_or_default() * LONGEST.as_secs_f64();
        self.most[0].max(self.most[1]).min(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_at_once_is_allowed_for_until_it_is_forgotten() {
        let mut aggregation = Aggregation::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        (1..100).for_each(|ms| aggregation.on_acknowledged(at(ms), 1, 1000.0, 1e4, false));
        assert!(aggregation.extra(Some(1000.0)) <= 2.0, "one by one: {aggregation:?}");
        (0..30).for_each(|_| aggregation.on_acknowledged(at(130), 1, 1000.0, 1e4, false));
        let extra = aggregation.extra(Some(1000.0));
        assert!((28.0..=32.0).contains(&extra), "{extra}");
        assert_eq!(aggregation.extra(Some(100.0)), 10.0, "100 ms at the most");
        (0..2 * ROUNDS).for_each(|_| {
            aggregation.on_acknowledged(at(9000), 0, 1000.0, 1e4, true);
        });
        assert!(aggregation.extra(Some(1000.0)) < 2.0);
    }
}
