//! The end of a burst, where delays vary.
//!
//! What arrives last of what was sent before a pause are the datagrams that took longest. Nothing that was sent later and is
//! faster comes between them any more, so their mean delay is above that of all, as if a queue had grown.

use super::RateEstimator;
use super::points::{after, meant};
use crate::wire::extended::feedback::Block;

/// No more datagrams than this follow before a pause is over: beacons and path statuses.
const IN_PAUSE: i32 = 16;

/// The length of a datagram in bytes.
const DATAGRAM: f64 = 1500.0;

impl RateEstimator {
    /// Whether feedback is about a train. That stands in a queue of its own making, which says nothing of the path.
    pub(crate) fn is_of_train(&self, block: &Block) -> bool {
        self.trains.is_in(block)
    }

    /// The path has nothing to send, `next` being its next path sequence.
    pub(crate) fn on_idle(&mut self, next: u32) {
        self.busy_from = next;
    }

    /// Whether the mean delay of what arrived last is that of the end of a burst: since a pause nothing but a few has arrived, and the newest
    /// datagrams that did were sent within a mean deviation of the delay before it; or they still are among those of which the mean is.
    pub(super) fn trails(&mut self, block: &Block) -> bool {
        if !self.is_jittery() {
            return false;
        }
        let missing = after(self.busy_from, block.highest);
        let last = (self.rate * self.noise / 1e6 / DATAGRAM).max(1.0);
        if missing > -IN_PAUSE && f64::from(missing) <= last {
            self.trails_until = Some(block.received.wrapping_add(meant(self.noise)));
        } else if self.trails_until.is_some_and(|until| after(block.received, until) >= 0) {
            self.trails_until = None;
        }
        self.trails_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Given, RateEstimator, Stage};
    use super::*;
    use crate::time::Instant;

    const APART: u32 = 120;
    const BYTES: u64 = 1500;

    /// What 100 Mbit/s carry of datagrams that take 5 to 45 ms by chance: when each was sent and when it arrived, by arrival.
    fn arrivals(count: u32) -> Vec<(u32, u32, u32)> {
        let mut random = 1_u64;
        let mut chance = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 40) as u32 % 20_000
        };
        let datagram = |sequence: u32| {
            let sent = sequence * APART;
            (sent + 5000 + chance() + chance(), sequence, sent)
        };
        let mut arrivals: Vec<_> = (0..count).map(datagram).collect();
        arrivals.sort_unstable();
        arrivals
    }

    /// Tells a path each 5 ms what has arrived.
    fn tell(path: &mut RateEstimator, block: &mut Block, arrivals: &[(u32, u32, u32)]) {
        for arrived in arrivals.chunk_by(|one, other| one.0 / 5000 == other.0 / 5000) {
            let delays = arrived.iter().map(|(arrived, _, sent)| arrived - sent);
            let mean = delays.clone().sum::<u32>() / arrived.len() as u32;
            let off: u32 = delays.clone().map(|delay| delay.abs_diff(mean)).sum();
            block.delay_min = delays.min().unwrap_or_default();
            block.delay_mean = mean - block.delay_min;
            block.delay_deviation = off / arrived.len() as u32;
            for &(arrived, sequence, sent) in arrived {
                block.received += 1;
                block.received_bytes += BYTES;
                if sequence >= block.highest {
                    (block.highest, block.highest_sent, block.highest_arrived) =
                        (sequence, sent, arrived);
                }
            }
            let now = Instant::ZERO + Duration::from_micros(arrived[0].0.into());
            let given = Given { least: Duration::from_millis(50), ..Given::default() };
            path.on_feedback(now, block, given);
        }
    }

    /// What is believed of the path, in Mbit/s, before a pause and after it, in which beacons are sent or not.
    fn around_a_pause(count: u32, beacons: u32) -> [f64; 2] {
        let (rate, spread) = (100e6 / 8.0, (20_000.0, 16));
        let stage = Stage::Servo;
        let mut path =
            RateEstimator { stage, rate, pace: rate, spread, ..RateEstimator::default() };
        let (mut block, mut arrivals) = (Block::default(), arrivals(count));
        let end = count * APART;
        let mut rest = arrivals.split_off(arrivals.partition_point(|(arrived, ..)| *arrived < end));
        tell(&mut path, &mut block, &arrivals);
        let before = path.rate;
        path.on_idle(count);
        rest.extend((0..beacons).map(|number| (end + 6000 + number, count + number, end)));
        rest.sort_unstable();
        tell(&mut path, &mut block, &rest);
        [before, path.rate].map(|rate| rate * 8e-6)
    }

    #[test]
    fn what_arrives_last_before_a_pause_does_not_make_a_path_seem_slower() {
        for count in [8000, 8010, 8020, 8030] {
            for beacons in [0, 3] {
                let [before, after] = around_a_pause(count, beacons);
                assert!(before > 95.0, "{before} Mbit/s of 100 while data is sent");
                assert!(after > 0.95 * before, "{after} Mbit/s of {before} are left");
            }
        }
    }
}
