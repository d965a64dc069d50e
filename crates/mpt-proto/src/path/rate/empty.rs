//! What is known of a path before it is full, and of what it does to datagrams when nothing stands in its queue.

use std::time::Duration;

use super::means::Alone;
use super::points::{JITTERY, SMALL, after, earlier};
use super::train::{About, Train};
use super::{LEAST as FLOOR, RateEstimator, Stage};
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

/// Where delays vary a path that is not full after so much has shown that it carries more than was believed.
const GROWS: f64 = 1.9;

/// Where delays vary by more, how far apart a train arrives says nothing, and it shows by its mean delay.
const STEADY: Duration = Duration::from_millis(5);

/// The delay of 16 datagrams exceeds the least of them by so many mean deviations, if it is distributed normally (1.77 and 0.80 standard
/// deviations).
const OVER_DEVIATION: f64 = 2.2;

/// Where what is late holds up what follows, delays deviate by less: the delay of single datagrams exceeds their least by so many times what
/// that of data deviates by beside its trend (simulated: 50 Mbit/s varying by 2 and 5 ms, 20 by 10, 15 by 15).
const OVER_WAVERING: f64 = 5.0;

/// The least delay is of one to two times so long.
const LEAST: Duration = Duration::from_secs(20);

impl RateEstimator {
    /// How fast a burst goes through, as far as it is known, in bytes per second.
    pub(crate) fn burst(&self) -> Option<u64> {
        let known = self.trains.burst().unwrap_or(0.0).max(self.rate);
        (known > 0.0).then_some(known as u64)
    }

    /// What the path is believed to carry before and after it has been full, in bytes per second.
    pub(crate) fn capacity(&self) -> Option<u64> {
        match self.stage {
            Stage::Servo => self.rate(),
            Stage::Open | Stage::Start => {
                let shown = self.trains.known()?;
                Some(shown.max(self.rate) as u64)
            }
        }
    }

    /// Whether the capacity is only the least that it may be: where delays vary, trains often show no more.
    pub(crate) fn is_least(&self) -> bool {
        self.spreads() && !self.is_measured() && self.shown().is_none()
    }

    /// Whether it is being found out what the path carries, as others are full: it will soon carry more.
    pub(crate) fn is_starting(&self) -> bool {
        let grows = self.stage == Stage::Servo && self.is_jittery() && self.boost > GROWS;
        self.stage == Stage::Start || grows
    }

    /// What trains have shown, in bytes per second, if the path hardly carries more.
    pub(crate) fn shown(&self) -> Option<f64> {
        self.trains.limit(!self.spread().is_zero())
    }

    /// How much the delay exceeds its least on average, if it varies although nothing stands in a queue.
    pub(crate) fn spread(&self) -> Duration {
        let spread = self.exceeds();
        Duration::from_micros(if spread > JITTERY { spread as u64 } else { 0 })
    }

    /// Whether delays vary although nothing stands in a queue, and by more than a packet takes.
    pub(crate) fn varies(&self) -> bool {
        self.exceeds() > self.packet_takes().max(JITTERY)
    }

    /// By how many microseconds the delay exceeds its least on average although nothing stands in a queue: that of single datagrams, or what
    /// data shows that is paced.
    pub(super) fn exceeds(&self) -> f64 {
        let wavering = self.wavering.mean();
        let of_data = match self.overtaking.is_usual() {
            true => OVER_DEVIATION * self.noise,
            false if wavering > JITTERY.max(self.packet_takes() / 2.0) => OVER_WAVERING * wavering,
            false => 0.0,
        };
        of_data.max(self.spread.mean())
    }

    /// What feedback tells of the data that has arrived since the one before.
    pub(super) fn on_data(&mut self, block: &Block) {
        let Some(last) = self.points.last() else { return };
        let missing = block.highest.wrapping_sub(block.received);
        self.overtaking.on_missing(last.highest.wrapping_sub(last.packets), missing);
        if self.stage == Stage::Servo {
            let arrived = f64::from(after(block.highest_arrived, last.arrived));
            let grown = arrived - f64::from(after(block.highest_sent, last.sent));
            let burst = self.burst_takes();
            self.wavering.on_delays(grown, block.delay_deviation.into(), burst);
        }
    }

    /// How long a packet takes to leave, in microseconds.
    fn packet_takes(&self) -> f64 {
        1500.0 * 1e6 / self.rate.max(FLOOR)
    }

    /// How long two packets take to leave, in microseconds: datagrams of one burst wait for each other.
    pub(super) fn burst_takes(&self) -> f64 {
        2.0 * self.packet_takes()
    }

    /// Whether delays vary, also while data is sent.
    pub(super) fn is_jittery(&self) -> bool {
        self.varies() && self.noise > JITTERY
    }

    /// The least delay of the last half minute or so: arrival minus send timestamp, modulo 2^32.
    pub(crate) fn least(&self) -> Option<u32> {
        self.least.0.map(|[present, before]| earlier(present, before))
    }

    /// A delay was seen.
    pub(super) fn on_least(&mut self, now: Instant, delay: u32) {
        let (least, began) = &mut self.least;
        let least = least.get_or_insert([delay; 2]);
        if now.since(*began) >= LEAST {
            *began = now;
            *least = [delay, least[0]];
        }
        least[0] = earlier(least[0], delay);
    }

    /// How much delays of small datagrams vary. The delays are of so many.
    pub(super) fn on_spread(&mut self, block: &Block, meant: u32) {
        let last = self.points.last().copied().unwrap_or_default();
        let packets = block.received.wrapping_sub(last.packets);
        let bytes = block.received_bytes.saturating_sub(last.payload);
        if packets == 0 || bytes > u64::from(packets) * SMALL {
            return;
        }
        // Where delays vary by more than beacons are apart few are told of at once. Their mean says as much as that of many.
        self.on_alone(block, meant);
        self.spread.add(block.delay_min, block.delay_mean, meant);
    }

    /// Feedback tells of what others have overtaken, and of nothing new.
    pub(super) fn on_late(&mut self, block: &Block, meant: u32) {
        let Some(last) = self.points.last().copied() else { return };
        let packets = after(block.received, last.packets);
        let bytes = block.received_bytes.saturating_sub(last.payload);
        if packets > 0 && bytes <= packets as u64 * SMALL {
            self.on_alone(block, meant);
        }
    }

    /// Feedback told of small datagrams. Those that others had overtaken have a part in the mean: they are the slow ones.
    pub(super) fn on_alone(&mut self, block: &Block, meant: u32) {
        let mean = block.delay_min.wrapping_add(block.delay_mean);
        Alone::add(&mut self.trains.alone, mean, meant);
    }

    /// How much the delay deviates, without what datagrams of a burst wait for each other.
    pub(super) fn without_burst(&self, deviation: f64, burst: f64) -> f64 {
        // Of what varies for two reasons the squares add up. The difference itself, at 2 Mbit/s 12 ms less, leaves so little of what a link
        // varies by that it seems full, and stays at 2 Mbit/s.
        let rest = if self.varies() {
            (deviation.powi(2) - burst.powi(2)).max(0.0).sqrt()
        } else {
            deviation - burst
        };
        rest.max(deviation / 2.0)
    }

    /// Of how many datagrams the next train is, if one is to be sent: the path is not known to have been full.
    pub(crate) fn wants_train(&self, now: Instant) -> Option<usize> {
        self.trains.next(now, self.spreads()).filter(|_| !self.is_measured())
    }

    /// Whether delays vary so much that how far apart datagrams arrive says little.
    pub(crate) fn spreads(&self) -> bool {
        self.spread() > STEADY
    }

    /// Whether a train is on the path, or what feedback tells of it is on its way.
    pub(crate) fn awaits_train(&self, now: Instant) -> bool {
        self.trains.is_awaited(now)
    }

    /// Whether a train is on its way: what goes with it would seem to be part of it.
    pub(crate) fn has_train(&self, now: Instant) -> bool {
        self.trains.is_on_way(now)
    }

    /// A train of so many datagrams with so many bytes of UDP payload is sent from this path sequence on, on a path with this round trip.
    pub(crate) fn on_train(
        &mut self,
        now: Instant,
        from: u32,
        [count, bytes]: [usize; 2],
        round_trip: Duration,
    ) {
        self.trains.on_sent(now, Train::new(now, from, count as u32, bytes as u64, round_trip));
    }

    /// What is known of the feedback with this number.
    pub(super) fn about(&self, number: u16, header: u64) -> About {
        let spread = Some(self.spread.mean()).filter(|_| self.spreads());
        About { number, header, spread }
    }

    /// The feedback with this number came later than one with a higher number. It says nothing new, except of the delays of a train.
    pub(crate) fn on_overtaken(&mut self, number: u16, block: &Block, header: u64) {
        self.trains.on_overtaken(block, self.about(number, header));
        self.begin_with_shown();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Given;
    use super::super::points::Point;
    use super::super::spread::Spread;
    use super::*;

    #[test]
    fn the_mean_delay_of_beacons_is_known_though_few_are_told_of_at_once() {
        let (mut path, mut block) = (RateEstimator::default(), Block::default());
        for number in 1..=24_u32 {
            let point = Point {
                packets: block.received,
                payload: block.received_bytes,
                ..Point::default()
            };
            path.points.push(point, false);
            // They take from 100 to 192 ms.
            (block.received, block.received_bytes) = (number, u64::from(number) * 250);
            (block.delay_min, block.delay_mean) = (100_000 + 4000 * (number * 7 % 24), 0);
            path.on_spread(&block, 1);
        }
        let mean = path.trains.mean_alone().unwrap();
        assert!((145_000..147_000).contains(&mean), "{mean}");
        let spread = path.spread().as_millis();
        assert!(
            (35..46).contains(&spread),
            "{spread}: the least of six is longer than that of all"
        );
    }

    #[test]
    fn beacons_that_others_have_overtaken_have_a_part_in_the_mean() {
        let (mut path, mut block) = (RateEstimator::default(), Block::default());
        for number in 1..=16_u32 {
            // One takes 100 ms, and the one before it 140: nothing new comes with that.
            for (highest, delay) in [(2 * number, 100_000), (2 * number, 140_000)] {
                block.received += 1;
                block.received_bytes += 100;
                (block.highest, block.delay_min) = (highest, delay);
                path.on_feedback(Instant::ZERO, &block, Given { meant: 1, ..Given::default() });
            }
        }
        assert_eq!(path.trains.mean_alone(), Some(120_000));
    }

    #[test]
    fn the_rest_of_a_train_shows_the_most_although_its_last_datagram_came_first() {
        let mut path = RateEstimator::default();
        [20_000; 2].into_iter().for_each(|longer| path.spread.add(0, longer, 16));
        Alone::add(&mut path.trains.alone, 50_000, 64);
        let block = |received: u32, meant| Block {
            received,
            highest: 31,
            received_bytes: 1400 * u64::from(received),
            bytes_after_first: 1400 * (meant - 1),
            delay_min: 20_000,
            delay_mean: 40_000,
            ..Block::default()
        };
        let tell = |path: &mut RateEstimator, number, received: u32, meant| {
            let least = Duration::from_millis(100);
            let given =
                Given { number, least, latest: least, meant, header: 28, ..Given::default() };
            path.on_feedback(Instant::ZERO, &block(received, meant), given);
        };
        path.on_train(Instant::ZERO, 0, [32, 32 * 1400], Duration::from_millis(100));
        tell(&mut path, 7, 4, 4);
        assert_eq!(path.capacity(), None, "four are too few");
        tell(&mut path, 9, 32, 1);
        assert_eq!(path.capacity(), None, "so are five");
        assert_eq!(path.wants_train(Instant::ZERO), None, "the rest may have been overtaken");
        path.on_overtaken(8, &block(28, 24), 28);
        let shown = path.capacity().expect("all have come") * 8 / 1_000_000;
        assert!((10..20).contains(&shown), "32 of 1428 bytes, in 20 to 35 ms: {shown}");
        assert!(path.wants_train(Instant::ZERO).is_some());
        assert!(!path.has_train(Instant::ZERO) && !path.is_measured());
    }

    #[test]
    fn what_a_burst_takes_hides_little_of_what_delays_vary_by() {
        let rate = 250_000.0;
        let mut path = RateEstimator { rate, ..RateEstimator::default() };
        [20_000; 2].into_iter().for_each(|longer| path.spread.add(0, longer, 16));
        let deviation = path.without_burst(22_000.0, 12_000.0);
        assert!((18_000.0..19_000.0).contains(&deviation), "{deviation}");
        path.spread = Spread::default();
        assert_eq!(path.without_burst(22_000.0, 9000.0), 13_000.0, "nothing else makes them vary");
    }

    #[test]
    fn what_packets_of_a_slow_link_take_is_no_delay_that_varies() {
        // Data deviates by 1 ms beside its trend.
        let varies = |rate| {
            let mut path = RateEstimator { rate, ..RateEstimator::default() };
            (0..400).for_each(|_| path.wavering.on_delays(0.0, 1000.0, 0.0));
            path.varies()
        };
        assert!(!varies(5e6 / 8.0), "a packet takes 2.4 ms");
        assert!(varies(20e6 / 8.0), "a packet takes 0.6 ms");
    }
}
