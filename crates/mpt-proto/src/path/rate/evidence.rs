//! What a sample of what a path carried proves, and what it does not.

use super::RateEstimator;
use super::points::Sample;

/// Less than this share of its rate does not fill a path.
const SPARSE: f64 = 0.25;

/// Random losses exceed their mean by so many standard deviations hardly ever.
const CHANCE: f64 = 3.0;

impl RateEstimator {
    /// Whether so little was sent that a longer delay says nothing of what the path carries, unless it is much longer.
    pub(super) fn is_sparse(&self, sample: &Sample, target: f64) -> bool {
        !sample.busy && self.is_little(sample, target, self.rate)
    }

    /// The same of a path that is believed to carry `rate`, whether or not it was kept busy.
    pub(super) fn is_little(&self, sample: &Sample, target: f64, rate: f64) -> bool {
        let sent = sample.bytes * 1e6 / sample.sent.max(1.0);
        sent < SPARSE * rate && f64::from(self.queue) < 4.0 * target
    }

    /// Whether small datagrams alone were sent on a path of which nothing is known yet, and do not take longer than they may by chance. What is
    /// late counts as lost for a while, so losses say as little.
    pub(super) fn shows_nothing(&self, sample: &Sample, target: f64) -> bool {
        let most = 4.0 * (target + self.spread.mean());
        sample.is_small() && self.trains.known().is_none() && f64::from(self.queue) < most
    }

    /// Whether so much more is lost than usual that something must be full.
    pub(super) fn drops(&self, sample: &Sample) -> bool {
        let expected = (0.05 + 2.0 * self.usual_loss) * (sample.lost + sample.packets);
        sample.lost > 4.0 + expected + CHANCE * expected.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::check::DrainCheck;
    use super::super::{Queues, Stage};
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(40);

    /// A path that begins with 20 Mbit/s, whose delay is 15 ms above its least one.
    fn begun() -> RateEstimator {
        let (rate, queue, noise) = (2.5e6, 15_000, 4000.0);
        RateEstimator {
            stage: Stage::Start,
            rate,
            pace: rate,
            queue,
            noise,
            ..RateEstimator::default()
        }
    }

    /// 16 datagrams, none of them lost, sent in so many microseconds, which took 20 ms longer to arrive.
    fn sample(sent: f64, busy: bool) -> Sample {
        let arrived = sent + 20_000.0;
        Sample { sent, arrived, bytes: 24_000.0, packets: 16.0, lost: 0.0, busy }
    }

    #[test]
    fn a_longer_delay_of_few_datagrams_does_not_show_a_full_path() {
        let mut path = begun();
        path.update_start(&sample(200_000.0, false), ROUND_TRIP);
        assert_eq!((path.stage, path.rate), (Stage::Start, 2.5e6), "1 Mbit/s was sent");
        path.update_start(&sample(20_000.0, false), ROUND_TRIP);
        assert_eq!((path.stage, path.rate), (Stage::Servo, 0.6e6), "10 Mbit/s were");
    }

    #[test]
    fn little_beside_what_trains_have_shown_does_not_fill_a_path() {
        let open = |shown| {
            let mut path = RateEstimator { stage: Stage::Open, rate: 0.0, ..begun() };
            path.trains.show(shown);
            // 1 Mbit/s.
            path.update_open(&sample(200_000.0, true), ROUND_TRIP);
            path.stage
        };
        assert_eq!(
            [None, Some(0.4e6), Some(0.6e6)].map(open),
            [Stage::Servo, Stage::Servo, Stage::Open]
        );
    }

    #[test]
    fn small_datagrams_do_not_fill_a_path_of_which_nothing_is_known() {
        let stage = |bytes, shown| {
            let mut path = RateEstimator { stage: Stage::Open, rate: 0.0, ..begun() };
            path.trains.show(shown);
            let sample = Sample { bytes, lost: 12.0, ..sample(80_000.0, true) };
            path.update_open(&sample, ROUND_TRIP);
            if path.stage == Stage::Open {
                // Others are full.
                path.stage = Stage::Start;
                path.update_start(&sample, ROUND_TRIP);
            }
            path.stage
        };
        assert_eq!(stage(4000.0, None), Stage::Start, "of 250 bytes");
        assert_eq!(stage(8000.0, None), Stage::Servo, "of 500");
        assert_eq!(stage(4000.0, Some(0.1e6)), Stage::Servo, "it is as much as the path carries");
    }

    #[test]
    fn a_path_that_was_kept_busy_or_delays_much_is_full() {
        let mut path = begun();
        path.update_start(&sample(200_000.0, true), ROUND_TRIP);
        assert_eq!(path.stage, Stage::Servo);
        let mut path = RateEstimator { queue: 150_000, ..begun() };
        path.update_start(&sample(200_000.0, false), ROUND_TRIP);
        assert_eq!(path.stage, Stage::Servo);
    }

    #[test]
    fn a_rate_does_not_fall_because_few_datagrams_take_longer() {
        let mut path = RateEstimator { stage: Stage::Servo, ..begun() };
        path.update(Default::default(), &sample(200_000.0, false), ROUND_TRIP, Queues::Filling);
        assert_eq!(path.rate, 2.5e6);
        path.update(Default::default(), &sample(20_000.0, false), ROUND_TRIP, Queues::Filling);
        assert!(path.rate < 2.0e6, "{}", path.rate);
    }

    #[test]
    fn a_rate_does_not_fall_because_a_delay_is_longer_for_the_first_time() {
        let updated = |drain: Option<DrainCheck>, others| {
            let stage = Stage::Servo;
            let mut path = RateEstimator { stage, drain: drain.map(Box::new), ..begun() };
            path.update(Default::default(), &sample(20_000.0, false), ROUND_TRIP, others);
            path.rate
        };
        assert_eq!(updated(None, Queues::Empty), 2.5e6, "the route may be longer");
        assert!(updated(None, Queues::Draining) < 2.0e6, "another path has a queue, too");
        let drain = DrainCheck { before: 15_000, from: 0, predicted: 0.0, judged: None };
        assert!(updated(Some(drain), Queues::Empty) < 2.0e6, "q has grown since");
    }
}
