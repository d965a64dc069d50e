//! Others that keep a queue on the way of a path, and what is done about them.
//!
//! A pace that holds the queue short yields to a flow that ends only where the queue does: to such a flow less traffic is room.
//! What betrays it: less is sent than the path delivers, and q does not fall (a *failed drain*). A longer route looks the same, so two
//! of these have the present delay taken for the least one. If something is lost at that time as well, where nothing is lost otherwise, or the
//! route becomes longer again and again, somebody else fills a queue, and the path *competes*: it is sent on as one flow of CUBIC would be, with the window over
//! the round trip as its pace (the idea is Copa's: Arun and Balakrishnan, Copa: Practical Delay-Based Congestion Control for the Internet, NSDI 2018).
//!
//! That ends when the queue has been nearly empty once in five round trips, as no loss-based flow leaves it; or when it twice falls
//! by as much as it must if nobody else is there, after less was sent for a round trip.

use std::time::Duration;

use super::points::{Sample, after, earlier};
use super::rivals::{
    AGAIN, ALONE, CLEAR, Competition, EMPTY, Evidence, GROWN, LONG, Losses, MOST_EMPTY, Rivals,
    SHORT, SOON, SUSPECTED, TEST, TOGETHER, TRIPS, TRUSTED, Test, YIELDS, next_test,
};
use super::window::Window;
use super::{Finding, RateEstimator};
use crate::time::Instant;

impl RateEstimator {
    /// Whether others keep a queue on the path for which it competes.
    pub(crate) fn competes(&self) -> bool {
        self.rivals.competition.is_some()
    }

    /// The pace of a path that competes, in bytes per second, where the round trip is this at present.
    pub(super) fn competing_pace(&self, now: Instant, latest: Duration) -> Option<f64> {
        let competition = self.rivals.competition.as_ref()?;
        let pace = competition.window.bytes() / latest.as_secs_f64().max(1e-3);
        // A window that is not used up does not grow, while the round trip does.
        let pace = pace.max(competition.least_share());
        let tests = competition.test.is_some_and(|test| now < test.ends);
        Some(if tests { pace.min(self.rate * super::LOW_PACE) } else { pace })
    }

    /// Datagrams that were lost, and that arrived, by the last feedback.
    fn counts(&self) -> [u32; 2] {
        [self.rivals.lost, self.points.last().map_or(0, |last| last.packets)]
    }

    /// Less was sent twice, and q did not fall. `base` was the least delay until now.
    pub(super) fn on_failed_drains(&mut self, now: Instant, base: u32) {
        let before = self.rivals.evidence.filter(|before| now.since(before.at) < SUSPECTED);
        let base = before.map_or(base, |before| earlier(before.base, base));
        let soon = before.filter(|before| now.since(before.at) < SOON);
        let times = soon.map_or(1, |before| before.times.saturating_add(1));
        self.rivals.evidence = Some(Evidence { base, at: now, times });
    }

    /// Feedback came with the number of datagrams lost so far; returns whether there are more.
    pub(super) fn on_lost(&mut self, now: Instant, lost: u32, least: Duration) -> bool {
        let more = after(lost, std::mem::replace(&mut self.rivals.lost, lost)) > 0;
        if more {
            let suspected = self.rivals.evidence.is_some_and(|it| now.since(it.at) < SUSPECTED);
            let is_short = f64::from(self.queue) <= SHORT * self.target(least);
            let is_stray = is_short && !suspected && !self.competes();
            self.rivals.on_loss(now, is_stray);
        }
        more
    }

    /// Begins to compete if somebody else fills the queue. The least round trip and the last one are these, and tests are at times with this
    /// phase.
    pub(super) fn look_for_rivals(
        &mut self,
        now: Instant,
        [least, latest]: [Duration; 2],
        phase: Duration,
    ) {
        let Rivals { evidence, lost_at, trusted_until, .. } = self.rivals;
        let Some(evidence) = evidence else { return };
        let lately = |at| now.since(at) <= TOGETHER;
        let is_lossy = lost_at.is_some_and(lately) && !self.rivals.loses_at_random(now);
        let is_again = evidence.times >= AGAIN;
        let is_suspect = lately(evidence.at) && (is_lossy || is_again);
        if self.competes() || !is_suspect || now < trusted_until {
            return;
        }
        let Some(base) = self.base().map(|base| earlier(base, evidence.base)) else { return };
        let queue = self.present_delay(least).map_or(0, |delay| after(delay, base));
        // Where delays vary a queue seems to come and go.
        let grown = if is_lossy { 0.0 } else { GROWN };
        if f64::from(queue) < self.target(least) + grown + CLEAR * self.noise {
            return;
        }
        self.set_base(base);
        self.queue = queue;
        // If there is one other flow, half of what the path has carried before is fair.
        let peak = self.rivals.peak();
        let rate = self.rate.max(self.pace).max(peak / 2.0);
        self.rivals.competition = Some(Box::new(Competition {
            since: now,
            peak,
            window: Window::new(now, rate * latest.as_secs_f64(), true),
            bytes: self.points.last().map_or(0, |last| last.bytes),
            most: self.queue,
            least: self.queue,
            began: now,
            most_before: 0,
            test: None,
            test_at: next_test(now, latest, phase),
            phase,
            passed: false,
            losses: Losses::new(now, self.usual_loss, self.counts()),
        }));
        (self.draining_until, self.doubted) = (None, None);
        self.findings.push(now, Finding::Rival { queue: self.queue() });
    }

    /// Feedback about a path that competes: something more was `lost` or not.
    pub(super) fn compete(
        &mut self,
        now: Instant,
        sample: Option<&Sample>,
        lost: bool,
        [least, latest]: [Duration; 2],
    ) {
        let target = self.target(least);
        let (queue, share) = (self.queue, 1.0 - self.pace / self.rate);
        let elapsed = now.since(self.updated).as_micros() as f64;
        let counts = self.counts();
        let Some(competition) = &mut self.rivals.competition else { return };
        competition.losses.on_counts(now, counts);
        let busy = sample.is_some_and(|sample| sample.busy);
        let bytes = self.points.last().map_or(0, |last| last.bytes);
        let arrived = bytes.saturating_sub(std::mem::replace(&mut competition.bytes, bytes)) as f64;
        if lost {
            let floor = competition.least_share() * latest.as_secs_f64();
            competition.window.on_loss(now, latest, floor);
        } else if busy {
            competition.window.on_delivered(now, arrived, latest);
        }
        if let Some(sample) = sample {
            let rate = sample.rate();
            // What is not given way below may be more than the window.
            if !lost {
                competition.window.raise(rate * latest.as_secs_f64());
            }
            let gain = if busy { 0.25 * (rate - self.rate) } else { (rate - self.rate).max(0.0) };
            self.rate = (self.rate + gain).max(super::LEAST);
        }
        competition.most = competition.most.max(queue);
        competition.least = competition.least.min(queue);
        let most = f64::from(competition.most.max(competition.most_before));
        let mut ends = None;
        if now.since(competition.began) >= latest * TRIPS {
            let empty = (EMPTY * most).min(MOST_EMPTY).max(target.min(most / 2.0));
            if f64::from(competition.least) < empty {
                ends = Some(false);
            }
            competition.most_before = competition.most;
            (competition.most, competition.least, competition.began) = (queue, queue, now);
        }
        match &mut competition.test {
            None if now >= competition.test_at => {
                let length = latest.max(TEST);
                let (ends, judged_at) = (now + length, now + length + latest);
                let test =
                    Test { before: queue, lowest: queue, predicted: 0.0, ends, judged_at, busy };
                competition.test = Some(test);
            }
            None => {}
            Some(test) => {
                test.lowest = test.lowest.min(queue);
                test.busy &= busy || now >= test.ends;
                if now <= test.ends + Duration::from_micros(elapsed as u64) {
                    test.predicted += (share * elapsed).max(0.0);
                }
                if now >= test.judged_at {
                    let fell = f64::from(test.before - test.lowest);
                    let alone = fell >= ALONE * test.predicted.min(f64::from(test.before))
                        && fell <= YIELDS * test.predicted
                        && test.busy;
                    if alone && competition.passed {
                        ends = Some(true);
                    }
                    competition.passed = alone;
                    competition.test_at = next_test(now, latest, competition.phase);
                    competition.test = None;
                }
            }
        }
        if let Some(alone) = ends {
            self.cease_to_compete(now, alone);
        }
    }

    /// The queue is empty at times, or nobody else is there: the pace holds it short again.
    fn cease_to_compete(&mut self, now: Instant, alone: bool) {
        let Some(competition) = self.rivals.competition.take() else { return };
        let rivals = &mut self.rivals;
        rivals.evidence = None;
        if now.since(competition.since) >= LONG {
            rivals.trusted_for = Duration::ZERO;
        }
        if alone {
            rivals.trusted_for = (rivals.trusted_for * 2).clamp(TRUSTED[0], TRUSTED[1]);
            rivals.trusted_until = now + rivals.trusted_for;
        }
        (self.drain, self.misses, self.boost) = (None, 0, 1.0);
        self.base_began = now;
        self.findings.push(now, Finding::Alone { queue: self.queue() });
    }
}
