//! The least delay of a path, and whether it has risen.
//!
//! What stands in a queue falls when less is sent than the path delivers. If the delay does not fall, either the path
//! delivers no more than what is sent, by chance, or nothing stands in a queue and the route has become longer. So less
//! still is sent, a fifth below what was delivered: a queue now falls. If the delay does not, the present one is the
//! least.
//!
//! All of it goes by the send timestamps of what arrived, so it is never judged before it can be seen.

use std::time::Duration;

use crate::time::Instant;

use super::points::{Point, after, earlier};

/// The least delay is looked for again after this time, and holds for one to two times as long.
const BASE: Duration = Duration::from_secs(5);

/// A fall is judged when it should be that many microseconds, and so many mean deviations of the delay.
const JUDGED: f64 = 4000.0;
const JUDGED_NOISE: f64 = 4.0;

/// The delay must have fallen by this part of what it should.
const PART: f64 = 0.25;

/// What is sent while the queue must fall, of what was delivered.
const LESS: f64 = 0.8;

/// The least delay of a path, arrival minus send timestamp modulo 2^32, and the doubt about it.
#[derive(Debug, Default)]
pub(super) struct Base {
    /// In the present and in the last period.
    least: Option<[u32; 2]>,
    began: Instant,
    check: Option<Check>,
}

/// A time in which less is sent than the path delivers, if it delivers `rate`.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// In bytes per second: what is believed, or what was delivered in the first check.
    rate: f64,
    is_second: bool,
    /// It counts what was sent after this.
    sent_after: Option<u32>,
    from: Point,
    /// By how much the delay should have fallen, in microseconds.
    predicted: f64,
}

/// What a check has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Judgement {
    /// The queue is one, and the path delivers so many bytes per second.
    Delivers(f64),
    /// The least delay has risen to the present one.
    Rose,
}

impl Base {
    /// The least delay.
    pub(super) fn get(&self) -> Option<u32> {
        self.least.map(|[present, before]| earlier(present, before))
    }

    /// A delay was measured. Returns whether a period is over in which nothing near the least was seen, `near` being
    /// in microseconds.
    pub(super) fn on_delay(&mut self, now: Instant, delay: u32, near: f64) -> bool {
        let Some(least) = &mut self.least else {
            self.least = Some([delay; 2]);
            self.began = now;
            return false;
        };
        least[0] = earlier(least[0], delay);
        if now.since(self.began) < BASE {
            return false;
        }
        let unseen = f64::from(after(least[0], least[1])) > near;
        *least = [delay, least[0]];
        self.began = now;
        unseen
    }

    /// The most that may be sent, in bytes per second, while it is in doubt.
    pub(super) fn bound(&self) -> Option<f64> {
        self.check.filter(|check| check.is_second).map(|check| LESS * check.rate)
    }

    /// The delay is what it should be.
    pub(super) fn trust(&mut self) {
        self.check = None;
    }

    /// The delay is above what it should be: was less sent between two points, and did it fall? `rate` is what the path
    /// is believed to deliver.
    pub(super) fn on_excess(
        &mut self,
        now: Instant,
        rate: f64,
        noise: f64,
        points: [&Point; 2],
    ) -> Option<Judgement> {
        let [before, last] = points;
        let first =
            Check { rate, is_second: false, sent_after: None, from: *before, predicted: 0.0 };
        let check = self.check.get_or_insert(first);
        if !check.is_second && (check.rate - rate).abs() > 0.05 * rate {
            *check = first;
        }
        if check.sent_after.is_some_and(|sent| after(before.sent, sent) < 0) {
            check.from = *last;
            return None;
        }
        let sent = f64::from(after(last.sent, before.sent));
        check.predicted += sent - (last.bytes - before.bytes) as f64 * 1e6 / check.rate;
        if check.predicted < 0.0 {
            (check.from, check.predicted) = (*last, 0.0);
        }
        if check.predicted < JUDGED + JUDGED_NOISE * noise {
            return None;
        }
        let fell = f64::from(after(check.from.level(noise), last.level(noise)));
        let has_fallen = fell >= PART * check.predicted;
        let (is_second, rate) = (check.is_second, check.rate);
        let time = f64::from(after(last.arrived, check.from.arrived)).max(1.0);
        let delivered = (last.bytes - check.from.bytes) as f64 * 1e6 / time;
        self.check = None;
        match (is_second, has_fallen) {
            (false, true) => None,
            (false, false) => {
                self.check = Some(Check {
                    rate: delivered,
                    is_second: true,
                    sent_after: Some(now.micros()),
                    from: *last,
                    predicted: 0.0,
                });
                None
            }
            (true, true) => Some(Judgement::Delivers(rate)),
            (true, false) => {
                self.least = Some([last.delay; 2]);
                self.began = now;
                Some(Judgement::Rose)
            }
        }
    }
}
