//! By how much packets are overtaken on a path: what tells a packet that comes late from one that is lost.
//!
//! Where delays vary, the peer tells only after the longest of them that a packet is lost. Most packets come long before, so one
//! that is still missing then is more likely lost than late, and can be sent again. The quantile that this takes is
//! followed by stochastic approximation (Robbins and Monro, A Stochastic Approximation Method, 1951), which needs no
//! samples to be kept.

use std::time::Duration;

use crate::time::Instant;

/// A packet that was overtaken by more than the limit raises it by so much of the spread.
const STEP: f64 = 0.1;

/// Where losses are rarer than this nothing is taken to be lost early.
const RAREST: f64 = 2e-4;

/// Of all packets so many times less than are lost may be sent again although they are only late, and so many at the most.
const NEEDLESS: f64 = 3.0;
const MOST: f64 = 0.01;

/// To begin with the limit is so many mean deviations of the delay: four standard deviations from the fastest packets to
/// the slowest but few, if delays are normally distributed.
const DEVIATIONS: u32 = 6;

/// By how much packets of one path are overtaken, as far as feedback shows.
#[derive(Debug, Default)]
pub(crate) struct Overtaken {
    /// A packet is overtaken by more, in seconds, with the probability `share`; zero before anything is known.
    limit: f64,
    share: f64,
    /// The mean deviation of the delay, in seconds.
    spread: f64,
    /// When the newest packet was sent that had arrived by the last feedback.
    newest: Instant,
}

impl Overtaken {
    /// The path loses this share of packets, and delays have this mean deviation.
    pub(in crate::tx) fn set(&mut self, loss: f64, deviation: Duration) {
        self.share = if loss < RAREST { 0.0 } else { (loss / NEEDLESS).min(MOST) };
        self.spread = deviation.as_secs_f64();
        if self.limit == 0.0 {
            self.limit = (deviation * DEVIATIONS).as_secs_f64();
        }
    }

    /// Whether anything may be taken to be lost.
    pub(in crate::tx) fn applies(&self) -> bool {
        self.share > 0.0 && self.limit > 0.0
    }

    /// A packet has arrived that was sent at this time, and had not by the last feedback.
    pub(in crate::tx) fn on_arrived(&mut self, sent: Instant) {
        let by = self.newest.since(sent).as_secs_f64();
        let step = self.spread * STEP;
        let moved = if by > self.limit { step * (1.0 - self.share) } else { -step * self.share };
        self.limit = (self.limit + moved).max(self.spread);
    }

    /// Feedback tells that a packet has arrived that was sent at this time, and none that was sent later.
    pub(in crate::tx) fn on_newest(&mut self, sent: Instant) {
        self.newest = self.newest.max(sent);
    }

    /// Packets that were sent before this time, and have not arrived, are taken to be lost; `None` if none are.
    pub(in crate::tx) fn lost_before(&self) -> Option<Instant> {
        self.applies().then(|| self.newest.before(Duration::from_secs_f64(self.limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// A packet is sent in each millisecond, and overtaken by less than `most` ms, by each time as often. Returns by how much the
    /// last ones may be overtaken before they are taken to be lost.
    fn follow(overtaken: &mut Overtaken, packets: u32, most: u32) -> Option<Duration> {
        let begin = overtaken.newest + MILLI * 1000;
        for number in 1..=packets {
            let now = begin + MILLI * number;
            overtaken.on_newest(now);
            overtaken.on_arrived(now.before(MILLI * (number * 37 % most)));
        }
        overtaken.lost_before().map(|before| overtaken.newest.since(before))
    }

    #[test]
    fn of_three_that_are_lost_one_more_may_be_only_late() {
        let mut overtaken = Overtaken::default();
        overtaken.set(0.03, MILLI * 10);
        for (most, least) in [(60, 57), (100, 95), (40, 37)] {
            let limit = follow(&mut overtaken, 30_000, most).expect("losses");
            assert!((MILLI * least..MILLI * (most + 3)).contains(&limit), "{most}: {limit:?}");
        }
    }

    #[test]
    fn where_hardly_anything_is_lost_nothing_is_taken_to_be() {
        let mut overtaken = Overtaken::default();
        assert_eq!(overtaken.lost_before(), None);
        overtaken.set(0.0001, MILLI * 10);
        assert_eq!(follow(&mut overtaken, 1000, 60), None);
    }
}
