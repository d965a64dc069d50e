//! What the last feedbacks said of a path, and what the path carried between two of them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;

/// Rates are measured over so many mean deviations more, as single datagrams are late by them.
const SPAN: f64 = 4.0;

/// A path on which delays vary by more than so many microseconds has jitter.
pub(super) const JITTERY: f64 = 500.0;

/// Points are so far apart. A loss is told sooner.
const APART: Duration = Duration::from_millis(4);

/// Where delays vary also by so many datagrams: the points that are kept then reach back for those that the least mean is of, however
/// few are sent.
const APART_BY: i32 = 3;

/// Datagrams of no more bytes do not wait for each other.
pub(super) const SMALL: u64 = 400;

/// Points of the past that are kept.
const POINTS: usize = 64;

/// What one feedback said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    pub(super) at: Instant,
    /// Path sequence.
    pub(super) highest: u32,
    pub(super) sent: u32,
    pub(super) arrived: u32,
    /// Bytes of IP packets that had arrived.
    pub(super) bytes: u64,
    /// The same of UDP payload.
    pub(super) payload: u64,
    pub(super) packets: u32,
    /// Of how many of them delays are known: those of this feedback alone, to which [`Points::push`] adds those before.
    pub(super) meant: u32,
    pub(super) lost: u32,
    /// The shortest delay since the point before, modulo 2^32.
    pub(super) delay: u32,
    /// The mean delay since the point before, modulo 2^32.
    pub(super) mean: u32,
    /// The sum of these delays, relative to the first mean, in microseconds. [`Points::push`] computes it.
    pub(super) sum: i64,
}

impl Point {
    /// The sum and the count of delays so far, those of a later feedback included.
    fn with_delays(&self, later: &Self, reference: u32) -> (i64, u32) {
        let delays = i64::from(later.meant) * i64::from(after(later.mean, reference));
        (self.sum.saturating_add(delays), self.meant.wrapping_add(later.meant))
    }
}

/// A mean delay is of so many packets at least: with fewer it says little where delays vary.
const LEAST_MEANT: u32 = 16;

/// And need not be of more.
const MOST_MEANT: u32 = 64;

/// The least of many means is of more: it is below them by chance the more, the fewer each is of. Where delays deviate by 10 ms that
/// was as much as is allowed for, and a path whose queue was empty seemed full. Points that are kept reach back for so many.
const MOST_OF_LEAST: u32 = 160;

/// Where delays deviate by one millisecond, so many; the square of that where they deviate by more, so that a mean is off by one
/// millisecond whatever they do.
const MEANT_PER_SQUARE: f64 = 1.6;

/// Of how many packets a mean delay is where delays deviate by `noise` microseconds on average.
pub(super) fn meant(noise: f64) -> u32 {
    ((MEANT_PER_SQUARE * (noise / 1000.0).powi(2)) as u32).clamp(LEAST_MEANT, MOST_MEANT)
}

/// The same of the least mean delay.
pub(super) fn meant_of_least(noise: f64) -> u32 {
    ((MEANT_PER_SQUARE * (noise / 1000.0).powi(2)) as u32).clamp(MOST_MEANT, MOST_OF_LEAST)
}

/// Least delays and rates are of so many at least.
pub(super) const FEWEST: u32 = 16;

/// What is late comes in so many mean deviations after the first.
const LATE: f64 = 4.0;

/// What arrives is steady if none of three parts differs from the whole by more than this share.
const STEADY: f64 = 0.8;

/// So many are not worth giving back.
const FEW: usize = 2;

/// The last points, oldest first.
#[derive(Debug, Default)]
pub(super) struct Points {
    last: VecDeque<Point>,
    /// The first mean delay, to which sums are relative.
    reference: Option<u32>,
}

/// What the path carried between two points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Microseconds in which it was sent, and in which it arrived.
    pub(super) sent: f64,
    pub(super) arrived: f64,
    pub(super) bytes: f64,
    pub(super) packets: f64,
    pub(super) lost: f64,
    /// Whether the path was kept busy all the time.
    pub(super) busy: bool,
}

impl Sample {
    /// The share of datagrams that was lost.
    pub(super) fn loss(&self) -> f64 {
        self.lost / (self.lost + self.packets).max(1.0)
    }

    /// Whether datagrams were small on average, as those are that carry no data.
    pub(super) fn is_small(&self) -> bool {
        self.bytes <= SMALL as f64 * self.packets
    }

    /// Bytes per second that arrived.
    pub(super) fn rate(&self) -> f64 {
        self.bytes * 1e6 / self.arrived.max(self.sent).max(1.0)
    }
}

impl Points {
    pub(super) fn last(&self) -> Option<&Point> {
        self.last.back()
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.last.capacity() * size_of::<Point>()
    }

    /// Forgets all but the last one, if they take much: nothing was sent for long, so that no other is compared with what
    /// comes.
    pub(super) fn rest(&mut self) {
        if self.last.capacity() <= FEW {
            return;
        }
        self.last.drain(..self.last.len().saturating_sub(1));
        self.last.shrink_to_fit();
    }

    /// What is told so soon after the point before takes its place; where the delay `varies` also what is told of so few.
    pub(super) fn push(&mut self, mut point: Point, varies: bool) {
        let reference = *self.reference.get_or_insert(point.mean);
        if let Some(last) = self.last() {
            (point.sum, point.meant) = last.with_delays(&point, reference);
        }
        let mut last = self.last.iter().rev();
        if let (Some(last), Some(before)) = (last.next(), last.next())
            && (point.at.since(before.at) < APART
                || varies && after(point.packets, before.packets) <= APART_BY)
        {
            point.delay = earlier(point.delay, last.delay);
            self.last.pop_back();
        }
        if self.last.len() == POINTS {
            self.last.pop_front();
        }
        // Of an idle path there are a few, for which a deque would have room for twice as many.
        if self.last.len() < POINTS / 8 {
            self.last.reserve_exact(1);
        }
        self.last.push_back(point);
    }

    /// What has arrived since the last point was sent before what that one tells of. Its delays count, as the long ones are among them.
    pub(super) fn add_delays(&mut self, point: &Point) {
        if let (Some(last), Some(reference)) = (self.last.back_mut(), self.reference) {
            (last.sum, last.meant) = last.with_delays(point, reference);
        }
    }

    /// The least delay of the points in the last `span`, and of 16 packets at least.
    pub(super) fn least_delay(&self, span: Duration) -> Option<u32> {
        let last = self.last.back()?;
        let recent = self.last.iter().rev().take_while(|point| {
            last.at.since(point.at) <= span || last.packets.wrapping_sub(point.packets) < FEWEST
        });
        recent.map(|point| point.delay).reduce(earlier)
    }

    /// The mean delay of the last `span`, and of `meant` packets at least.
    pub(super) fn mean_delay(&self, span: Duration, meant: u32) -> Option<u32> {
        self.mean_before(self.last.len().checked_sub(1)?, span, meant)
    }

    /// Whether the mean delay of the last `span` is one of what was sent without a pause: the path had been kept busy since a path sequence
    /// for a mean deviation before that begins, or about as much arrived each moment, also in the time before in which what is late
    /// still comes.
    pub(super) fn is_steady(&self, span: Duration, noise: f64, busy_from: u32) -> bool {
        let begin = self
            .last
            .len()
            .checked_sub(1)
            .and_then(|last| self.mean_begins(last, span, meant_of_least(noise)));
        let (Some(first), Some(last)) = (begin, self.last()) else { return false };
        let before = |at: Instant, lead: f64| {
            let lead = Duration::from_micros(lead as u64);
            self.last.iter().rev().find(|point| at.since(point.at) >= lead)
        };
        if before(first.at, noise).is_some_and(|point| after(point.highest, busy_from) >= 0) {
            return true;
        }
        let half = last.at.since(first.at).as_micros() as f64 / 2.0;
        let Some(middle) = before(last.at, half) else { return false };
        let Some(before) = before(first.at, LATE * noise) else { return false };
        let rate = |from: &Point, to: &Point| {
            let packets = f64::from(to.packets.wrapping_sub(from.packets));
            packets / f64::from(after(to.arrived, from.arrived)).max(1.0)
        };
        let usual = rate(first, last);
        let rates = [rate(before, first), rate(first, middle), rate(middle, last)];
        rates.iter().all(|rate| (usual * STEADY..=usual / STEADY).contains(rate))
    }

    /// The mean delay as it was at one of the points.
    fn mean_before(&self, index: usize, span: Duration, meant: u32) -> Option<u32> {
        let (last, first) = (self.last[index], self.mean_begins(index, span, meant)?);
        let meant = last.meant.wrapping_sub(first.meant);
        let mean = last.sum.saturating_sub(first.sum) / i64::from(meant);
        Some(self.reference?.wrapping_add_signed(i32::try_from(mean).ok()?))
    }

    /// The point at which the packets begin of which the mean delay at one of the points is.
    fn mean_begins(&self, index: usize, span: Duration, meant: u32) -> Option<&Point> {
        let last = &self.last[index];
        self.last.iter().take(index).rev().find(|point| {
            last.at.since(point.at) >= span && last.meant.wrapping_sub(point.meant) >= meant
        })
    }

    /// What was carried since `span`, or longer, on a path whose delays deviate by `noise` microseconds. It has been
    /// kept busy since a path sequence. If its delays vary, up to the share `jittery` that is lost counts as carried.
    pub(super) fn sample(
        &self,
        span: Duration,
        noise: f64,
        jittery: Option<f64>,
        busy_from: u32,
    ) -> Option<Sample> {
        let is_jittery = jittery.is_some();
        let last = self.last.back()?;
        let span = span.as_micros() as i32 + (SPAN * noise) as i32;
        let index = self.last.iter().rposition(|point| {
            after(last.arrived, point.arrived) >= span
                && last.packets.wrapping_sub(point.packets) >= FEWEST
        })?;
        let first = self.last[index];
        let arrived = after(last.arrived, first.arrived);
        if arrived > 8 * span + 200_000 {
            // Hardly anything is sent.
            return None;
        }
        let busy = after(first.highest, busy_from) >= 0;
        let sent = f64::from(after(last.sent, first.sent));
        let mut arrived = f64::from(arrived);
        let lost = f64::from(after(last.lost, first.lost).max(0));
        let packets = f64::from(last.packets.wrapping_sub(first.packets));
        let mut bytes = last.bytes.saturating_sub(first.bytes) as f64;
        if noise > JITTERY {
            // Least delays vary less than those of single datagrams, and means still less where all vary.
            let mean = |index| {
                self.mean_before(index, Duration::ZERO, meant(noise)).filter(|_| is_jittery)
            };
            let means = mean(self.last.len() - 1).zip(mean(index));
            let (later, before) = means.unwrap_or((last.delay, first.delay));
            let grown = f64::from(after(later, before));
            // Neither follows what comes in bursts with pauses between: there the time in which it arrived says how fast that was at least.
            let least = if is_jittery { arrived / 2.0 } else { 1.0 };
            arrived = (sent + grown).max(if busy { least } else { arrived });
        }
        if let Some(at_random) = jittery {
            // Of what was sent by then some has been overtaken, and arrives later. If what is lost at random did not count, the rate
            // would fall by it each time that it is measured: the pace is hardly above it, and there is no highest one to keep.
            let dropped = (lost - at_random * (packets + lost)).max(0.0);
            let of = f64::from(after(last.highest, first.highest)) / (packets + dropped);
            bytes *= of.clamp(0.5, 2.0);
        }
        Some(Sample { sent, arrived, bytes, packets, lost, busy })
    }
}

/// How far one value modulo 2^32 is after another.
pub(super) fn after(value: u32, other: u32) -> i32 {
    value.wrapping_sub(other).cast_signed()
}

pub(super) fn earlier(one: u32, other: u32) -> u32 {
    if after(one, other) < 0 { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a path of 5 Mbit/s each time that it has brought four more datagrams, of 32 every 200 ms that were sent at 12 Mbit/s.
    fn bursts(count: u32) -> Points {
        let mut points = Points::default();
        for number in 0..8 * count {
            let (begin, place) = (number / 8 * 200_000, number % 8 + 1);
            let (sent, arrived) = (begin + place * 4000, begin + place * 9600);
            let point = Point {
                at: Instant::ZERO + Duration::from_micros(u64::from(arrived)),
                highest: 4 * number + 3,
                sent,
                arrived: arrived + 30_000,
                bytes: u64::from(4 * (number + 1)) * 1500,
                packets: 4 * (number + 1),
                meant: 4,
                delay: 30_000 + place * 5600,
                mean: 30_000 + place * 5600 - 2800,
                ..Point::default()
            };
            points.push(point, true);
        }
        points
    }

    #[test]
    fn what_comes_in_bursts_does_not_seem_faster_than_it_arrives() {
        let points = bursts(8);
        let sample = points.sample(Duration::from_millis(20), 4000.0, Some(0.1), u32::MAX / 2);
        let rate = sample.unwrap().rate() * 8e-6;
        assert!((4.5..5.5).contains(&rate), "{rate}");
    }

    #[test]
    fn where_delays_vary_a_mean_of_many_is_known_however_few_are_sent() {
        for varies in [false, true] {
            let mut points = Points::default();
            for packets in 1..=400_u32 {
                let at = Instant::ZERO + Duration::from_millis(5) * packets;
                let point = Point {
                    at,
                    highest: packets,
                    packets,
                    meant: 1,
                    mean: 30_000,
                    ..Point::default()
                };
                points.push(point, varies);
            }
            let mean = points.mean_delay(Duration::from_millis(100), MOST_OF_LEAST);
            assert_eq!(mean, Some(30_000).filter(|_| varies));
        }
    }
}
