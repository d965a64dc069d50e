//! The least delay of a path, above which is what stands in queues: how it is seen, and when it has risen.

use std::time::Duration;

use super::points::{after, earlier, meant, meant_of_least};
use super::{LEAST, RateEstimator, SHORTEST, Stage};
use crate::time::Instant;

/// The least delay is looked for again after this time, and holds for one to two times as long.
const BASE: Duration = Duration::from_secs(5);

/// It is taken to be seen if in a period it was not more than so many microseconds above that of the one before; after so
/// many periods it is looked for nevertheless, as it may have risen by as much in each.
const SEEN: i32 = 500;
const MOST_SEEN: u8 = 6;

/// The least delay of some packets is above that of all by so many mean deviations.
const NOISE: f64 = 2.0;

/// The same of means, where delays vary.
const NOISE_OF_MEANS: f64 = 0.75;

/// The least mean delay is of what came in so many mean deviations at least.
const LONG: u32 = 4;

/// And in no more than this: the points that are kept reach about twice as far back.
const LONGEST: Duration = Duration::from_millis(120);

impl RateEstimator {
    /// What stands in queues on the way.
    pub(crate) fn queue(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.queue).unwrap_or(0))
    }

    /// The delay when nothing stands in a queue, arrival minus send timestamp, modulo 2^32: the least one, or the least mean where
    /// delays vary.
    pub(crate) fn base(&self) -> Option<u32> {
        let means = self.mean_base.filter(|_| self.goes_by_means());
        means.or(self.base).map(|[present, before]| earlier(present, before))
    }

    /// The delay is known anew.
    pub(super) fn on_delay(&mut self, now: Instant, round_trip: Duration) {
        let Some(last) = self.points.last().copied() else { return };
        let half = (round_trip / 2).max(SHORTEST);
        // Of what follows a pause the fastest arrive first: their mean is below that of all.
        let lead = Duration::from_micros(self.noise as u64);
        // So they do after a host has stood still, and the least of many means is below them by chance: both less over longer times.
        let long = half.max((lead * LONG).min(LONGEST));
        let is_steady = self.points.is_steady(long, self.noise, self.busy_from);
        let mean = self.points.mean_delay(long, meant_of_least(self.noise)).filter(|_| is_steady);
        // The first data of a flow has no mean yet, and the least delay of all is far below the least of so few.
        if self.mean_base.is_none()
            && self.is_jittery()
            && let Some(mean) = self.trains.mean_alone()
        {
            (self.mean_base, self.is_base_of_few) = (Some([mean; 2]), true);
        }
        match &mut self.base {
            None => {
                self.base = Some([last.delay; 2]);
                self.base_began = now;
            }
            Some(base) => {
                base[0] = earlier(base[0], last.delay);
                if let Some(mean) = mean {
                    let means = self.mean_base.get_or_insert([mean; 2]);
                    // That of few is off by chance.
                    let most = self.trains.most_alone(self.noise).filter(|_| self.is_base_of_few);
                    if let Some(most) = most {
                        *means = [earlier(most, mean); 2];
                    }
                    self.is_base_of_few = false;
                    means[0] = earlier(means[0], mean);
                }
                // Others that keep a queue never let it be seen.
                if self.rivals.keep_base() {
                    base[1] = earlier(base[0], base[1]);
                    if let Some(means) = &mut self.mean_base {
                        means[1] = earlier(means[0], means[1]);
                    }
                } else if now.since(self.base_began) >= BASE {
                    let seen = after(base[0], earlier(base[0], base[1])) <= SEEN;
                    self.bases_seen = if seen { self.bases_seen + 1 } else { MOST_SEEN };
                    *base = [last.delay, base[0]];
                    if let (Some(means), Some(mean)) = (&mut self.mean_base, mean) {
                        *means = [mean, means[0]];
                    }
                    (self.base_began, self.doubted) = (now, None);
                    // It is seen only while nothing stands in the queue. Most flows leave it empty for a moment; to send
                    // less costs them something.
                    if self.stage == Stage::Servo && self.bases_seen >= MOST_SEEN {
                        self.bases_seen = 0;
                        self.draining_until = Some(now + round_trip + Duration::from_millis(20));
                    }
                }
            }
        }
        let Some(base) = self.base() else { return };
        self.queue = after(self.present_delay(half).unwrap_or(last.delay), base);
    }

    /// What q is above zero although nothing stands in a queue, in microseconds. Where delays vary and no datagram overtakes another each
    /// waits for all that are late before it, so the more is sent the longer all take: by as much again as those take that are sent alone.
    pub(super) fn allowance(&self) -> f64 {
        let noise = self.noise * if self.goes_by_means() { NOISE_OF_MEANS } else { NOISE };
        let keeps_order = self.is_jittery() && !self.overtaking.is_usual();
        noise + if keeps_order { self.exceeds() } else { 0.0 }
    }

    /// Whether q is told from mean delays: where delays vary the least one of a few datagrams is far from that of many.
    pub(super) fn goes_by_means(&self) -> bool {
        self.mean_base.is_some() && self.is_jittery()
    }

    /// How long it takes until enough has arrived for a mean delay; zero if q is not told from means.
    pub(super) fn means_take(&self) -> Duration {
        if !self.goes_by_means() {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(f64::from(meant(self.noise)) * 1500.0 / self.rate.max(LEAST))
    }

    /// The delay of the last `span` to compare with [`base`](Self::base).
    pub(super) fn present_delay(&self, span: Duration) -> Option<u32> {
        let means = self.goes_by_means();
        means
            .then(|| self.points.mean_delay(span, meant(self.noise)))
            .flatten()
            .or_else(|| self.points.least_delay(span))
    }

    /// This is the delay when nothing stands in a queue.
    pub(super) fn set_base(&mut self, base: u32) {
        let by = self.base().map_or(0, |before| after(base, before));
        for bases in [&mut self.base, &mut self.mean_base].into_iter().flatten() {
            let before = earlier(bases[0], bases[1]);
            *bases = [before.wrapping_add_signed(by); 2];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Given, RateEstimator};
    use super::*;
    use crate::wire::extended::feedback::Block;

    /// Of how many datagrams its delays are.
    fn given(meant: u32) -> Given {
        let ms = Duration::from_millis;
        Given { least: ms(60), latest: ms(60), meant, ..Given::default() }
    }

    /// Sends `count` datagrams of so many bytes each 2 ms that take 30 ms and up to 16 ms more, in turn; feedback tells of 8 at once.
    fn send(path: &mut RateEstimator, block: &mut Block, [count, bytes]: [u32; 2]) {
        for _ in 0..count / 8 {
            block.received += 8;
            block.highest += 8;
            block.received_bytes += u64::from(8 * bytes);
            block.highest_sent += 16_000;
            block.highest_arrived = block.highest_sent + 38_000;
            (block.delay_min, block.delay_mean, block.delay_deviation) = (34_000, 4000, 3000);
            let now = Instant::ZERO + Duration::from_micros(block.highest_arrived.into());
            path.on_feedback(now, block, given(8));
        }
    }

    #[test]
    fn the_first_data_of_a_flow_is_compared_with_the_mean_delay_of_beacons() {
        let (mut path, mut block) = (RateEstimator::default(), Block::default());
        // One of many was as fast as none of eight is.
        block.delay_min = 15_000;
        send(&mut path, &mut block, [64, 60]);
        (path.base, path.rate) = (Some([15_000; 2]), 2.5e6);
        path.start(Duration::from_millis(60));
        path.on_idle(block.highest + 1000);
        send(&mut path, &mut block, [24, 1400]);
        assert!(path.queue().as_millis() <= 1, "{:?}: nothing stands in a queue", path.queue());
        assert!(path.goes_by_means() && !path.is_measured());
    }

    /// A path of which enough is known, and what arrived on it last.
    fn known() -> (RateEstimator, Block) {
        let (mut path, mut block) = (RateEstimator::default(), Block::default());
        send(&mut path, &mut block, [64, 60]);
        path.rate = 2.5e6;
        path.start(Duration::from_millis(60));
        send(&mut path, &mut block, [400, 1400]);
        (path, block)
    }

    /// How many milliseconds seem to stand in the queue of a path after ten times 1.6 s, where mean delays seemed to be 10 ms shorter
    /// before, and `of_few` says whether that was of few.
    fn queues(of_few: bool) -> Vec<u128> {
        let (mut path, mut block) = known();
        let base = path.base().unwrap();
        path.mean_base = Some([base.wrapping_sub(10_000); 2]);
        path.is_base_of_few = of_few;
        let queues = (0..10).map(|_| {
            for _ in 0..8 {
                // There was a moment in which nothing waited for it.
                path.on_idle(block.highest + 200);
                send(&mut path, &mut block, [100, 1400]);
            }
            path.queue().as_millis()
        });
        queues.collect()
    }

    #[test]
    fn the_mean_delay_of_a_path_that_is_never_kept_busy_is_seen() {
        let queues = queues(false);
        assert!(queues[0] >= 8 && queues[8..].iter().all(|queue| *queue <= 2), "{queues:?}");
    }

    #[test]
    fn the_mean_delay_of_few_beacons_is_corrected_by_that_of_data() {
        let queues = queues(true);
        assert!(queues.iter().all(|queue| *queue <= 5), "{queues:?}");
    }

    #[test]
    fn what_begins_with_the_fastest_is_not_steady() {
        let (mut path, mut block) = known();
        let base = path.base().unwrap();
        for _ in 0..20 {
            // A pause, and then 20 ms faster.
            block.highest_sent += 400_000;
            path.on_idle(block.highest + 400);
            for delay in [14_000, 24_000, 34_000] {
                block.received += 72;
                block.highest += 72;
                block.received_bytes += 72 * 1400;
                block.highest_sent += 20_000;
                block.highest_arrived = block.highest_sent + 38_000;
                (block.delay_min, block.delay_mean) = (delay, 4000);
                let now = Instant::ZERO + Duration::from_micros(block.highest_arrived.into());
                path.on_feedback(now, &block, given(72));
            }
        }
        assert_eq!(path.mean_base.unwrap()[1], base);
    }

    #[test]
    fn the_delay_of_one_is_not_that_of_all_whose_feedback_has_been_lost() {
        let (mut path, mut block) = known();
        let base = path.base().unwrap();
        // One that was fast is all that is told of, and 160 have arrived.
        block.received += 160;
        block.highest += 160;
        block.received_bytes += 160 * 1400;
        block.highest_sent += 320_000;
        block.highest_arrived = block.highest_sent + 32_000;
        (block.delay_min, block.delay_mean, block.bytes_after_first) = (32_000, 0, 0);
        let now = Instant::ZERO + Duration::from_micros(block.highest_arrived.into());
        path.on_feedback(now, &block, given(block.of_delays(160, 160 * 1400)));
        let lower = after(base, path.base().unwrap());
        assert!(lower < 200, "{lower} us");
    }

    #[test]
    fn what_was_overtaken_has_a_part_in_the_mean() {
        let (mut path, mut block) = known();
        let mean = path.points.mean_delay(Duration::from_millis(100), 64).unwrap();
        (block.received, block.received_bytes) =
            (block.received + 64, block.received_bytes + 64 * 1400);
        (block.delay_min, block.delay_mean) = (60_000, 0);
        let now = Instant::ZERO + Duration::from_micros(block.highest_arrived.into());
        path.on_feedback(now, &block, given(64));
        let later = path.points.mean_delay(Duration::from_millis(100), 64).unwrap();
        assert!(after(later, mean) > 5000, "{later} in place of {mean}");
    }
}
