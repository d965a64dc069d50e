//! What is known of a path before it is full, and of what it does to datagrams when nothing stands in its queue.

use std::time::Duration;

use super::means::Alone;
use super::points::{JITTERY, Point, earlier};
use super::train::Train;
use super::{LEAST as FLOOR, RateEstimator, Stage};
use crate::time::Instant;
use crate::wire::extended::feedback::Block;

/// Datagrams of no more bytes do not wait for each other.
const SMALL: u64 = 400;

/// Fewer of them say nothing of how much delays vary.
const FEWEST: u32 = 6;

/// How far those are apart that are sent to show how much delays vary.
pub(crate) const APART: Duration = Duration::from_millis(5);

/// Where delays vary a path that is not full after so much has shown that it carries more than was believed.
const GROWS: f64 = 1.9;

/// Where delays vary by more, how far apart a train arrives says nothing, and it shows by its mean delay.
const STEADY: Duration = Duration::from_millis(5);

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

    /// Whether it is being found out what the path carries, as others are full: it will soon carry more.
    pub(crate) fn is_starting(&self) -> bool {
        let grows = self.stage == Stage::Servo && self.is_jittery() && self.boost > GROWS;
        self.stage == Stage::Start || grows
    }

    /// What trains have shown, in bytes per second, if it is a bound: where delays vary, datagrams of a train arrive further
    /// apart than the path explains.
    pub(crate) fn shown(&self) -> Option<f64> {
        self.trains.limit().filter(|_| self.spread().is_zero())
    }

    /// How much the delay exceeds its least on average, if it varies although nothing stands in a queue.
    pub(crate) fn spread(&self) -> Duration {
        let (spread, _) = self.spread;
        Duration::from_micros(if spread > JITTERY { spread as u64 } else { 0 })
    }

    /// Whether delays vary although nothing stands in a queue, and by more than a packet takes.
    pub(super) fn varies(&self) -> bool {
        let packet = 1500.0 * 1e6 / self.rate.max(FLOOR);
        self.spread.0 > packet.max(JITTERY)
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
        let Some(last) = self.points.last() else { return };
        let packets = block.received.wrapping_sub(last.packets);
        let bytes = block.received_bytes.saturating_sub(last.payload);
        if packets == 0 || bytes > u64::from(packets) * SMALL {
            return;
        }
        // Where delays vary by more than beacons are apart few are told of at once. Their mean says as much as that of many.
        let longer = block.delay_mean.saturating_sub(stood_still(block, last, packets));
        let mean = block.delay_min.wrapping_add(longer);
        Alone::add(&mut self.trains.alone, mean, meant);
        if meant >= FEWEST {
            let (spread, count) = &mut self.spread;
            *count = (*count + 1).min(16);
            *spread += (f64::from(longer) - *spread) / f64::from(*count);
        }
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
    pub(super) fn spreads(&self) -> bool {
        self.spread() > STEADY
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
}

/// How many microseconds longer so many datagrams took on average because the link stood still and then delivered them together, as a
/// mobile one does that was asleep. Each of them that was sent later took as much less.
fn stood_still(block: &Block, before: &Point, packets: u32) -> u32 {
    let sent = block.highest_sent.wrapping_sub(before.sent);
    // A pause before them is no part of it.
    let sent = sent.min(packets.saturating_mul(APART.as_micros() as u32));
    let arrived = block.highest_arrived.wrapping_sub(block.first_arrived);
    let together = sent.saturating_sub(arrived);
    // By less they come nearer to each other where delays vary.
    let stood = u64::from(if together > sent / 4 * 3 { together } else { 0 });
    (stood * stood / u64::from(2 * sent.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many milliseconds delays seem to vary by, where datagrams are sent 5 ms apart and take 15 ms and so much longer. Feedback
    /// tells of so many at once.
    fn spread(told: &[u32], longer: impl Fn(u32) -> u32) -> u128 {
        let (mut path, mut block) = (RateEstimator::default(), Block::default());
        let mut first = 0;
        for count in told {
            let [packets, sent, payload] =
                [block.received, block.highest_sent, block.received_bytes as u32];
            let payload = payload.into();
            path.points.push(Point { packets, sent, payload, ..Point::default() }, false);
            let numbers = first..first + count;
            first += count;
            let took = |number| 15 + longer(number);
            let least = numbers.clone().map(took).min().unwrap();
            let mean = numbers.clone().map(took).sum::<u32>() * 1000 / count;
            let arrived = numbers.map(|number| 5 * number + took(number)).min().unwrap();
            (block.received, block.received_bytes) = (first, 250 * u64::from(first));
            block.highest_sent = 5000 * (first - 1);
            block.highest_arrived = block.highest_sent + 1000 * took(first - 1);
            block.first_arrived = 1000 * arrived;
            (block.delay_min, block.delay_mean) = (1000 * least, mean - 1000 * least);
            path.on_spread(&block, *count);
        }
        path.spread().as_millis()
    }

    #[test]
    fn delays_do_not_vary_because_a_link_stood_still() {
        assert_eq!(spread(&[10; 3], |_| 0), 0);
        // From the fifth on, for 80 ms.
        let asleep = |number: u32| match number {
            0..4 => 0,
            _ => 100_u32.saturating_sub(5 * number),
        };
        let seems = spread(&[4, 18, 8], asleep);
        assert!(seems <= 3, "{seems}");
        let seems = spread(&[10; 3], |number| number * 7 % 20);
        assert!((7..=10).contains(&seems), "{seems}");
    }

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
        assert!(path.spread().is_zero(), "one alone does not show how much delays vary");
    }

    #[test]
    fn what_a_burst_takes_hides_little_of_what_delays_vary_by() {
        let rate = 250_000.0;
        let mut path = RateEstimator { rate, spread: (20_000.0, 16), ..RateEstimator::default() };
        let deviation = path.without_burst(22_000.0, 12_000.0);
        assert!((18_000.0..19_000.0).contains(&deviation), "{deviation}");
        path.spread.0 = 0.0;
        assert_eq!(path.without_burst(22_000.0, 9000.0), 13_000.0, "nothing else makes them vary");
    }
}
