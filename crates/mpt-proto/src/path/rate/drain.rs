//! Drains: less is sent than the path delivers. Then q falls, or the least delay has risen, by another route for example.
//!
//! A queue that other paths of the connection have a part in says less. Two paths over one modem see the same queue, and each of them is
//! believed to carry what it carried while the other one was idle, more than there is together: then each is sent on by less
//! than its rate, and q stands all the same. To take that for a longer route, again and again, has the queue grow without end. So as long
//! as another path has a queue, too:
//!
//! - A drain is judged when what was sent after it has arrived, however long the queue has become meanwhile.
//! - After one that fails the rate is *doubted*: the path is sent on by less than what it delivers. If q falls then, that is its rate.
//!   If it does not, the route is longer, and the rate is what it was.
//! - That counts only while nothing else fills the queue: the other paths are sent on by less than they deliver as well.
//!
//! Others outside of the connection that send steadily, whatever they are told, fill what is hardly drained, and the rate beside them is easily
//! believed to be higher than it is. So on a path alone a drain that fails is repeated with a little less. Not with much: a flow
//! that keeps a queue would take it.

use std::time::Duration;

use super::check::{DrainCheck, Queues};
use super::points::{Point, after};
use super::{Finding, Given, LEAST, RateEstimator, Stage};
use crate::time::Instant;

/// A drain is long enough when q should have fallen by so many microseconds.
const ENOUGH: f64 = 4000.0;

/// It has failed if q fell by less than this share of what it should.
const FAILED: f64 = 0.25;
const FAILED_BY_THEN: f64 = 0.5;

/// What a path delivers that has little to send may be much less than it carries: a rate that is doubted falls to no less than this share.
const DOUBTED: f64 = 0.5;

/// The same of a path alone.
const DOUBTED_ALONE: f64 = 0.96;

/// Another path may have the queue in common if it sees more than this share of it. Nor does what falls to no less show that anything was drained.
const SIMILAR: f64 = 0.5;

impl RateEstimator {
    /// What the queue of this path says to another one that sees a queue: if both have it in common, that is about the same.
    pub(crate) fn queues(&self, other: Duration) -> Queues {
        let stands = self.queue() > other.mul_f64(SIMILAR);
        match self.stage {
            Stage::Open => Queues::Empty,
            Stage::Start => Queues::Filling,
            // What others keep there is known.
            Stage::Servo if !stands || self.competes() => Queues::Empty,
            Stage::Servo if self.doubted.is_some() => Queues::Draining,
            Stage::Servo => Queues::Filling,
        }
    }

    /// Less is sent than the path delivers: then q falls, or the least delay has risen.
    pub(super) fn check_base(&mut self, now: Instant, round_trip: Duration, given: &Given) {
        let Some(&Point { highest, .. }) = self.points.last() else { return };
        if self.stage != Stage::Servo || f64::from(self.queue) <= self.target(round_trip) {
            if self.stage == Stage::Servo {
                self.end_doubt();
            }
            (self.drain, self.misses, self.doubted) = (None, 0, None);
            return;
        }
        let elapsed = now.since(self.updated).as_micros() as f64;
        let share = 1.0 - self.pace / self.trusted();
        let means_take = self.means_take();
        // What was sent before makes q grow, however little is sent now.
        let before = self.queue.max(self.foreseen(now, given) as i32);
        let new = DrainCheck { before, from: given.last, predicted: 0.0, judged: None };
        let drain = self.drain.get_or_insert_with(|| Box::new(new));
        drain.predicted += (share * elapsed).max(0.0);
        let is_shared = given.others > Queues::Empty;
        let long = if is_shared { f64::from(drain.before) / 4.0 } else { 0.0 };
        if drain.judged.is_none() && drain.predicted >= long.max(ENOUGH) {
            // What is sent now arrives behind what stands in the queue, and a mean shows it later.
            let queue = Duration::from_micros(before.unsigned_abs().into());
            drain.judged =
                Some((now + round_trip + queue + means_take, given.last, drain.predicted));
        }
        if is_shared && after(highest, drain.from) <= 0 {
            drain.before = drain.before.max(self.queue);
        }
        let Some((at, last, by_then)) = drain.judged else { return };
        if now < at || is_shared && after(highest, last) < 0 {
            return;
        }
        let fell = f64::from(drain.before - self.queue);
        let failed = match is_shared {
            true => fell < FAILED_BY_THEN * by_then.min(f64::from(drain.before)),
            false => fell < FAILED * drain.predicted.min(f64::from(drain.before)),
        };
        self.drain = None;
        if !failed {
            self.misses = 0;
            return;
        }
        let had_failed = self.misses > 0;
        self.misses = 1;
        if !had_failed && self.doubted.is_none() {
            // If q falls on a path alone, that says nothing of its rate: somebody else may have sent less.
            let (share, before) =
                if is_shared { (DOUBTED, self.queue) } else { (DOUBTED_ALONE, 0) };
            let delivers = self.delivered.max(share * self.rate).max(LEAST);
            self.doubted = Some((self.rate.min(delivers), before));
        }
        if had_failed && given.others < Queues::Filling {
            self.misses = 0;
            self.doubted = None;
            self.on_longer(now);
        }
    }

    /// What the path is sent on by: its rate, or less while that is doubted.
    pub(super) fn trusted(&self) -> f64 {
        self.doubted.map_or(self.rate, |(delivers, _)| delivers.min(self.rate))
    }

    /// The queue is short. If it was not when the rate was doubted, that is no more than what the path delivered.
    fn end_doubt(&mut self) {
        let trusted = self.trusted();
        if let Some((_, before)) = self.doubted.take()
            && f64::from(self.queue) < SIMILAR * f64::from(before)
        {
            self.rate = trusted;
        }
    }

    /// The present delay is the least.
    fn on_longer(&mut self, now: Instant) {
        let Some(base) = self.base() else { return };
        self.on_failed_drains(now, base);
        self.findings.push(now, Finding::Longer { by: self.queue() });
        self.set_base(base.wrapping_add_signed(self.queue));
        self.base_began = now;
        self.queue = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A path that is believed to carry 20 Mbit/s and delivers 16, on which the least delay is 30 ms.
    fn full() -> RateEstimator {
        let (rate, delivered) = (2.5e6, 2.0e6);
        let base = Some([30_000; 2]);
        let stage = Stage::Servo;
        RateEstimator { stage, rate, delivered, base, ..RateEstimator::default() }
    }

    /// For so many milliseconds `queue` stands there, and all has arrived that was sent until the last one.
    fn stands(path: &mut RateEstimator, millis: u32, queue: i32, others: Queues) {
        for _ in 0..millis {
            let (now, last) = (path.updated + MS, path.points.last().map_or(0, |it| it.highest));
            let highest = last + 1;
            path.points.push(Point { at: now, highest, ..Point::default() }, false);
            (path.queue, path.pace) = (queue, 0.7 * path.trusted());
            path.check_base(now, 20 * MS, &Given { last, others, ..Given::default() });
            path.updated = now;
            if path.queue != queue {
                return;
            }
        }
    }

    fn is_longer(path: &RateEstimator) -> bool {
        path.findings.iter().any(|found| matches!(found.what, Finding::Longer { .. }))
    }

    #[test]
    fn a_queue_that_stands_on_one_path_alone_is_a_longer_route() {
        let mut path = full();
        stands(&mut path, 200, 10_000, Queues::Empty);
        assert!(is_longer(&path));
        assert_eq!((path.base, path.rate, path.doubted), (Some([40_000; 2]), 2.5e6, None));
    }

    #[test]
    fn a_drain_that_fails_is_repeated_with_less() {
        let mut path = full();
        stands(&mut path, 60, 10_000, Queues::Empty);
        assert!(path.misses == 1 && !is_longer(&path));
        assert_eq!((path.rate, path.trusted()), (2.5e6, 2.4e6));
        stands(&mut path, 20, 1000, Queues::Empty);
        assert_eq!((path.rate, path.doubted), (2.5e6, None), "others may have sent less");
    }

    #[test]
    fn a_queue_that_others_may_fill_is_no_longer_route() {
        let mut path = full();
        stands(&mut path, 1000, 10_000, Queues::Filling);
        assert!(!is_longer(&path));
        assert_eq!((path.rate, path.trusted()), (2.5e6, 2.0e6), "doubted, but not changed");
    }

    #[test]
    fn a_doubt_is_right_if_the_queue_falls() {
        let mut path = full();
        stands(&mut path, 200, 10_000, Queues::Filling);
        stands(&mut path, 20, 1000, Queues::Draining);
        assert!(!is_longer(&path));
        assert_eq!((path.rate, path.doubted), (2.0e6, None));
    }

    #[test]
    fn a_queue_that_hardly_falls_says_nothing_of_a_doubt() {
        let mut path = full();
        stands(&mut path, 200, 2500, Queues::Filling);
        assert_eq!(path.trusted(), 2.0e6);
        stands(&mut path, 20, 1900, Queues::Filling);
        assert_eq!((path.rate, path.doubted), (2.5e6, None));
    }

    #[test]
    fn a_doubt_is_wrong_if_the_queue_stands_though_all_send_less() {
        let mut path = full();
        stands(&mut path, 200, 10_000, Queues::Draining);
        assert!(is_longer(&path));
        assert_eq!((path.rate, path.doubted), (2.5e6, None));
    }

    #[test]
    fn a_path_with_little_to_send_keeps_half_of_its_rate() {
        let mut path = RateEstimator { delivered: 1e5, ..full() };
        stands(&mut path, 200, 10_000, Queues::Filling);
        stands(&mut path, 20, 1000, Queues::Draining);
        assert_eq!(path.rate, 1.25e6);
    }

    #[test]
    fn a_queue_that_grows_by_what_was_sent_before_is_not_judged_by_that() {
        let mut path = full();
        path.points.push(Point::default(), false);
        // It overflows: 80 ms, all of which was sent before less was.
        for queue in (10_000..=80_000).step_by(1000) {
            (path.queue, path.pace) = (queue, 0.7 * path.rate);
            let now = path.updated + MS;
            let given = Given { last: 1000, others: Queues::Filling, ..Given::default() };
            path.check_base(now, 20 * MS, &given);
            path.updated = now;
        }
        assert_eq!((path.misses, path.doubted), (0, None));
        assert!(path.drain.is_some_and(|drain| drain.before == 80_000 && drain.judged.is_some()));
    }

    /// A path that starts with far too much, alone.
    #[test]
    fn a_queue_that_grows_by_what_is_on_its_way_is_no_longer_route() {
        for (ahead, longer) in [(0, true), (60 * 2500, false)] {
            let mut path = full();
            for queue in (10_000..=60_000).step_by(1000) {
                let sent = path.updated.micros().saturating_sub(20_000);
                let highest = path.points.last().map_or(1, |last| last.highest + 1);
                path.points
                    .push(Point { at: path.updated, sent, highest, ..Point::default() }, false);
                (path.queue, path.pace) = (queue, 0.5 * path.rate);
                let now = path.updated + MS;
                path.check_base(now, 20 * MS, &Given { ahead, ..Given::default() });
                path.updated = now;
            }
            assert_eq!((path.misses > 0) || is_longer(&path), longer, "{ahead} bytes on the way");
        }
    }
}
