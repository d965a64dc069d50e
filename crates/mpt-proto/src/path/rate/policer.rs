//! Links that drop what they cannot carry at once: policers, and queues that are shorter than the target of q.
//!
//! There q never shows that more is sent than the link carries, so the pace goes on to exceed that, and the excess is lost. Loss alone
//! says nothing, as links lose at random, too. So if much is lost, less is sent for a while than arrives. If hardly anything is lost
//! then, the path is *capped*: it is sent on by what it was seen to deliver, and by a little more as long as little is lost.
//!
//! A path that is believed to carry more than it does is not kept busy by flows that lose, but what they send in bursts overflows it.

use std::time::Duration;

use super::excess::{BELOW, Excess, Interval, LESS, LITTLE, LOST, PROVES, SUSPECT, State, VARIES};
use super::points::{Sample, after};
use super::{Finding, RateEstimator, Stage};
use crate::time::Instant;

/// A path has a queue if q is so many times its target.
const STANDS: f64 = 3.0;

/// What is late by so many mean deviations counts as lost.
const TOLD_LATE: f64 = 4.0;

/// A window is so long, and a round trip at least; one of a path that is capped is longer. Until something is suspect it may become so long,
/// and where a path is capped so long.
const WINDOW: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(500)];
const LONGEST: Duration = Duration::from_secs(2);
const CAPPED: Duration = Duration::from_secs(8);

/// The cap grows by the first of these after a window in which no more than so much is lost beyond what is at random, and by twice as much each time, up to the last.
/// It begins with the second if the path was not kept busy: what it delivered then is less than it can.
const STEP: [f64; 3] = [0.005, 0.04, 0.16];

/// A cap that has not grown for so long and loses more than little is tested again, each time after twice as long: what was believed to be
/// lost at random may be too little. A path of which 2 % are lost at random was held at two thirds of its rate for six seconds when that
/// was four.
const STOOD: Duration = Duration::from_secs(1);

/// It does not grow if less than this share of it was delivered.
const USED: f64 = 0.8;

/// A cap has no meaning any more above so many times the rate.
const LOOSE: f64 = 1.25;

/// For so long after it was dead what a path loses is no excess: what had been sent on it meanwhile is told to be lost when something arrives
/// again, and later where delays vary.
const DEAD: Duration = Duration::from_secs(1);

/// After a test that proves that losses are random there is none for this time, twice as long each time, up to the longest.
const TRUSTED: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(160)];

impl RateEstimator {
    /// The most that may be sent because more is lost, in bytes per second.
    pub(super) fn most(&self) -> Option<f64> {
        match self.excess.as_ref()?.state {
            State::Usual => None,
            State::Test { most, .. } | State::Capped { most, .. } => Some(most),
        }
    }

    /// The path was dead, and carries again. What is being tested does not count.
    pub(crate) fn on_return(&mut self, now: Instant) {
        self.judged_from = now + DEAD;
        if let Some(excess) = &mut self.excess {
            if matches!(excess.state, State::Test { .. }) {
                excess.state = State::Usual;
            }
            (excess.window, excess.before) = (Interval::default(), None);
        }
    }

    /// Feedback came. What was sent on the path last is this, and the least round trip that.
    pub(super) fn look_for_excess(
        &mut self,
        now: Instant,
        sample: &Sample,
        round_trip: Duration,
        last: u32,
    ) {
        let Some(&point) = self.points.last() else { return };
        let judged_from = self.judged_from;
        if self.excess.is_none() && sample.lost == 0.0 {
            return;
        }
        let varies = self.spread().div_duration_f64(VARIES).min(1.0);
        let suspect = SUSPECT[0] + (SUSPECT[1] - SUSPECT[0]) * varies;
        let (recent, step) = match sample.busy {
            // The highest of many samples that vary is too high.
            true if self.is_jittery() => (0.0, STEP[0]),
            true => (sample.rate(), STEP[0]),
            false => (sample.rate() * (1.0 - sample.loss()), STEP[1]),
        };
        let target = self.target(round_trip);
        let is_sparse = self.is_sparse(sample, target);
        let queue = f64::from(self.queue);
        let stands = self.competes() || queue > STANDS * target;
        let Excess {
            state,
            window,
            before,
            overflowed_until,
            trusted_until,
            trusted_for,
            stood,
            tested_after,
        } = &mut **self.excess.get_or_insert_default();
        if stands {
            // What is lost where a queue overflows the pace mends. It is told when the queue has gone.
            let late = (queue + TOLD_LATE * self.noise).max(0.0);
            *overflowed_until = now + round_trip + Duration::from_secs_f64(late * 1e-6);
        }
        if now < *overflowed_until {
            (*state, *window, *before) = (State::Usual, Interval::default(), None);
            return;
        }
        let counts = match state {
            // What the test is about has not arrived yet; and of what does not fill a path little is lost, whatever that carries.
            State::Test { from, .. } => sample.busy && after(point.highest, *from) > 0,
            State::Usual | State::Capped { .. } => !is_sparse,
        };
        let before = std::mem::replace(before, counts.then_some(point));
        let (true, Some(before)) = (counts, before) else { return };
        window.add(&before, &point);
        let least = WINDOW[usize::from(matches!(state, State::Capped { .. }))];
        if window.length < least.max(round_trip) {
            return;
        }
        match *state {
            State::Usual
                if window.is_suspect(suspect) && now >= (*trusted_until).max(judged_from) =>
            {
                *state = window.test([recent, step], last, false);
            }
            State::Usual if (1.0..LOST).contains(&window.lost) && window.length < LONGEST => return,
            State::Usual => {}
            // By chance nothing is lost of few.
            State::Test { loss, .. } if window.sent() * loss < LOST => {
                if window.length < LONGEST {
                    return;
                }
                *state = State::Usual;
            }
            State::Test { most, loss, step, capped, .. } if window.loss() < PROVES * loss => {
                let most = most / BELOW;
                *state = State::Capped { most, step, random: window.loss() };
                *trusted_for = Duration::ZERO;
                self.stage = Stage::Servo;
                *stood = Interval::default();
                if !capped {
                    *tested_after = Duration::ZERO;
                    let (from, to) = ((most / (1.0 - loss)) as u64, most as u64);
                    self.findings.push(now, Finding::Cut { from, to, loss });
                }
            }
            State::Test { loss, step, capped, .. } if window.loss() < LESS * loss => {
                *state = window.test([0.0, step], last, capped);
            }
            State::Test { .. } => {
                *state = State::Usual;
                *trusted_for = (*trusted_for * 2).clamp(TRUSTED[0], TRUSTED[1]);
                *trusted_until = now + *trusted_for;
            }
            // So little is sent that it takes long until much is lost.
            State::Capped { step, .. }
                if step == STEP[0] && window.loss() > suspect && window.lost < LOST =>
            {
                if window.length < CAPPED {
                    return;
                }
                *state = State::Usual;
            }
            State::Capped { .. } if window.is_suspect(suspect) => {
                *state = window.test([recent, step], last, true)
            }
            State::Capped { most, random, .. }
                if window.loses_little(random) && window.rate() < USED * most => {}
            State::Capped { most, .. } if most > LOOSE * self.rate => *state = State::Usual,
            State::Capped { most, step, random } if window.loses_little(random) => {
                *stood = Interval::default();
                let most = most * (1.0 + step);
                *state = State::Capped { most, step: (2.0 * step).min(STEP[2]), random };
            }
            State::Capped { most, step, random } => {
                stood.extend(window);
                let has_stood = stood.length >= STOOD.max(*tested_after * 2);
                if has_stood && stood.is_suspect(LITTLE) {
                    *tested_after = stood.length;
                    *state = stood.test([0.0, STEP[0]], last, true);
                    *stood = Interval::default();
                } else {
                    // The cap may have grown by what is lost.
                    let less = if step > STEP[0] { window.loss() } else { 0.0 };
                    *state = State::Capped { most: most * (1.0 - less), step: STEP[0], random };
                }
            }
        }
        *window = Interval::default();
        if let Some(most) = self.most() {
            (self.rate, self.boost) = (self.rate.min(most), 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A path that is believed to carry 20 Mbit/s, and is sent on by a quarter more.
    fn path() -> RateEstimator {
        let (stage, rate, pace) = (Stage::Servo, 2.5e6, 3.125e6);
        RateEstimator { stage, rate, pace, base: Some([0; 2]), ..RateEstimator::default() }
    }

    /// What the pace gives is sent for so many milliseconds, and so much of it is lost, as a function of that.
    fn send(path: &mut RateEstimator, millis: u32, queue: i32, loss: impl Fn(f64) -> f64) {
        send_in(path, millis, queue, true, loss);
    }

    /// The same, and whether the path is kept busy all the time.
    fn send_in(
        path: &mut RateEstimator,
        millis: u32,
        queue: i32,
        busy: bool,
        loss: impl Fn(f64) -> f64,
    ) {
        for _ in 0..millis / 10 {
            let now = path.updated + 10 * MS;
            let pace = path.most().unwrap_or(path.pace).min(path.pace);
            let sent = pace / 100.0 / 1000.0;
            let mut point = path.points.last().copied().unwrap_or_default();
            point.at = now;
            point.arrived = point.arrived.wrapping_add(10_000);
            let lost = sent * loss(pace);
            point.lost += lost.round() as u32;
            point.packets += (sent - lost).round() as u32;
            point.bytes += ((sent - lost) * 1000.0) as u64;
            point.highest += 1000;
            path.points.push(point, false);
            path.queue = queue;
            let (bytes, packets) = ((sent - lost) * 1000.0, sent - lost);
            let sample = Sample { sent: 10_000.0, arrived: 10_000.0, bytes, packets, lost, busy };
            path.look_for_excess(now, &sample, 20 * MS, point.highest);
            path.updated = now;
        }
    }

    /// 20 Mbit/s pass.
    fn policed(pace: f64) -> f64 {
        (1.0 - 2.5e6 / pace).max(0.0)
    }

    #[test]
    fn a_cap_that_came_by_chance_is_lifted_although_the_path_loses_at_random() {
        let mut path = path();
        send(&mut path, 220, 0, |_| 0.13);
        send(&mut path, 600, 0, |_| 0.033);
        let most = path.most().expect("it is capped");
        assert!(most < 3.2e6, "{most}");
        // What the path carries shows again as soon as more is sent.
        for _ in 0..10 {
            send(&mut path, 1000, 0, |_| 0.033);
            path.rate = path.most().unwrap_or(path.rate).min(4e6);
        }
        assert!(path.most().is_none_or(|most| most > 4e6), "{:?}", path.most());
    }

    #[test]
    fn what_a_queue_has_dropped_is_no_excess_although_it_is_told_late() {
        for (queue, capped) in [(100_000, false), (0, true)] {
            let mut path = path();
            send(&mut path, 50, queue, |_| 0.02);
            send(&mut path, 100, 0, |_| 0.3);
            send(&mut path, 400, 0, |_| 0.0);
            assert_eq!(path.most().is_some(), capped, "a queue of {queue} us stood");
        }
    }

    #[test]
    fn a_cap_that_does_not_grow_is_tested_again() {
        let mut path = path();
        send(&mut path, 220, 0, |_| 0.13);
        send(&mut path, 600, 0, |_| 0.0);
        let most = path.most().expect("it is capped");
        // More is lost at random than in the test.
        send(&mut path, 8000, 0, |_| 0.033);
        assert!(path.most().is_none_or(|other| other > 1.1 * most), "{:?}", path.most());
    }

    #[test]
    fn what_exceeds_the_rate_of_a_policer_is_found_and_not_sent() {
        let mut path = path();
        send(&mut path, 2000, 0, policed);
        let most = path.most().expect("it is capped");
        assert!((2.4e6..2.6e6).contains(&most), "{most}");
        assert!(path.findings.iter().any(|found| matches!(found.what, Finding::Cut { .. })));
    }

    #[test]
    fn a_policer_that_lets_more_pass_is_found_too() {
        let mut path = path();
        send(&mut path, 2000, 0, policed);
        send(&mut path, 10_000, 0, |_| 0.0);
        assert!(path.most().is_none_or(|most| most > 3.1e6), "{:?}", path.most());
    }

    #[test]
    fn what_is_lost_of_bursts_is_suspect_too() {
        let mut path = path();
        send_in(&mut path, 400, 0, false, policed);
        assert!(path.most().is_some_and(|most| most < 2.5e6), "a test: {:?}", path.most());
        send(&mut path, 400, 0, policed);
        assert!(path.findings.iter().any(|found| matches!(found.what, Finding::Cut { .. })));
    }

    #[test]
    fn a_cap_that_is_used_grows_although_the_path_is_not_kept_busy() {
        let mut path = path();
        send(&mut path, 2000, 0, policed);
        send_in(&mut path, 10_000, 0, false, |_| 0.0);
        assert!(path.most().is_none_or(|most| most > 3.1e6), "{:?}", path.most());
    }

    #[test]
    fn what_a_cap_grew_by_is_taken_back_if_it_is_lost() {
        let mut path = path();
        send(&mut path, 2000, 0, policed);
        let state = State::Capped { most: 2.6e6, step: STEP[2], random: 0.0 };
        path.excess.as_mut().expect("something was lost").state = state;
        send(&mut path, 600, 0, policed);
        assert!(path.most().is_some_and(|most| most < 2.55e6), "{:?}", path.most());
    }

    /// Each 100 ms three datagrams arrive, and each fifth time one is lost: in half a second that is too few to be suspect.
    #[test]
    fn a_cap_ends_where_too_little_is_sent_to_judge_what_is_lost() {
        let mut path = RateEstimator { rate: 30e3, ..path() };
        let state = State::Capped { most: 30e3, step: STEP[0], random: 0.0 };
        path.excess = Some(Box::new(Excess { state, ..Excess::default() }));
        let mut capped = Duration::ZERO;
        for tenth in 0..150 {
            let now = path.updated + 100 * MS;
            let mut point = path.points.last().copied().unwrap_or_default();
            let lost = u32::from(tenth % 5 == 0);
            (point.at, point.arrived) = (now, point.arrived.wrapping_add(100_000));
            (point.lost, point.packets) = (point.lost + lost, point.packets + 3);
            (point.bytes, point.highest) = (point.bytes + 3000, point.highest + 3 + lost);
            path.points.push(point, false);
            let (sent, lost) = (100_000.0, f64::from(lost));
            let sample =
                Sample { sent, arrived: sent, bytes: 3000.0, packets: 3.0, lost, busy: true };
            path.look_for_excess(now, &sample, 20 * MS, point.highest);
            path.updated = now;
            capped += if path.most().is_some() { 100 * MS } else { Duration::ZERO };
        }
        assert!((CAPPED..CAPPED + LONGEST).contains(&capped), "{capped:?}");
    }

    #[test]
    fn a_test_of_too_much_is_followed_by_another() {
        let mut path = path();
        send(&mut path, 210, 0, |_| 0.6);
        assert!(path.most().is_some(), "a test");
        send(&mut path, 210, 0, |_| 0.3);
        assert!(path.most().is_some(), "another one");
        send(&mut path, 210, 0, |_| 0.28);
        assert_eq!(path.most(), None, "it does not help");
    }

    #[test]
    fn loss_that_stays_is_random_and_not_tested_again_soon() {
        let mut path = path();
        send(&mut path, 2000, 0, |_| 0.2);
        assert_eq!(path.most(), None);
        send(&mut path, 10_000, 0, |pace| if pace < 3e6 { 0.0 } else { 0.2 });
        assert_eq!(path.most(), None, "within 20 s");
        send(&mut path, 15_000, 0, policed);
        assert!(path.most().is_some(), "after that");
    }

    #[test]
    fn what_is_lost_where_a_queue_stands_is_no_policers() {
        let mut path = path();
        send(&mut path, 2000, 50_000, policed);
        assert_eq!(path.most(), None);
    }
}
