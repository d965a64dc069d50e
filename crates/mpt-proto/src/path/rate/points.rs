//! What the last feedbacks said of a path, and what the path carried between two of them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;

/// Rates are measured over so many mean deviations more, as single datagrams are late by them.
const SPAN: f64 = 8.0;

/// A path on which delays vary by more than so many microseconds has jitter.
const JITTERY: f64 = 500.0;

/// A delay that changes by more in one step has another cause than a queue, in microseconds.
const LEAP: f64 = 5000.0;

/// The growth of a queue is looked at over so many feedbacks.
const RAMP: usize = 4;

/// Points of the past that are kept.
const POINTS: usize = 64;

/// What one feedback said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: Instant,
    /// Path sequence.
    pub(super) highest: u32,
    pub(super) sent: u32,
    pub(super) arrived: u32,
    /// Bytes of IP packets that had arrived.
    pub(super) bytes: u64,
    pub(super) packets: u32,
    pub(super) lost: u32,
    /// The shortest delay since the point before, modulo 2^32, and the mean.
    pub(super) delay: u32,
    pub(super) mean: u32,
}

impl Point {
    /// The delay that shows best how it changes, where delays deviate by `noise` microseconds: the least one is that of
    /// a single datagram, but it does not contain what datagrams of a burst wait for each other.
    pub(super) fn level(&self, noise: f64) -> u32 {
        if noise > JITTERY { self.mean } else { self.delay }
    }
}

/// The last points, oldest first.
#[derive(Debug, Default)]
pub(super) struct Points(VecDeque<Point>);

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
    /// Whether the delay changed by one leap: what arrived in that time says nothing of the rate.
    pub(super) leaps: bool,
}

impl Sample {
    /// The share of datagrams that was lost.
    pub(super) fn loss(&self) -> f64 {
        self.lost / (self.lost + self.packets).max(1.0)
    }

    /// Bytes per second that arrived.
    pub(super) fn rate(&self) -> f64 {
        self.bytes * 1e6 / self.arrived.max(self.sent).max(1.0)
    }
}

impl Points {
    pub(super) fn last(&self) -> Option<&Point> {
        self.0.back()
    }

    pub(super) fn push(&mut self, point: Point) {
        if self.0.len() == POINTS {
            self.0.pop_front();
        }
        self.0.push_back(point);
    }

    /// The least delay of the points in the last `span`, and of 16 packets at least.
    pub(super) fn least_delay(&self, span: Duration) -> Option<u32> {
        let last = self.0.back()?;
        let recent = self.0.iter().rev().take_while(|point| {
            last.at.since(point.at) <= span || last.packets.wrapping_sub(point.packets) < 16
        });
        recent.map(|point| point.delay).reduce(earlier)
    }

    /// What was carried since `span`, or longer, on a path whose delays deviate by `noise` microseconds. It has been
    /// kept busy since a path sequence.
    pub(super) fn sample(&self, span: Duration, noise: f64, busy_from: u32) -> Option<Sample> {
        let last = self.0.back()?;
        let span = span.as_micros() as i32 + (SPAN * noise) as i32;
        let mut before = self.0.iter().rev().enumerate().skip(1);
        let (intervals, first) = before.find(|(_, point)| {
            after(last.arrived, point.arrived) >= span
                && last.packets.wrapping_sub(point.packets) >= 16
        })?;
        let arrived = after(last.arrived, first.arrived);
        if arrived > 8 * span + 200_000 {
            // Hardly anything is sent.
            return None;
        }
        let sent = f64::from(after(last.sent, first.sent));
        let mut arrived = f64::from(arrived);
        if noise > JITTERY {
            // Means vary less than the delays of single datagrams.
            arrived = (sent + f64::from(after(last.mean, first.mean))).max(1.0);
        }
        Some(Sample {
            sent,
            arrived,
            bytes: (last.bytes - first.bytes) as f64,
            packets: f64::from(last.packets.wrapping_sub(first.packets)),
            lost: f64::from(after(last.lost, first.lost).max(0)),
            busy: after(first.highest, busy_from) >= 0,
            leaps: self.leaps(intervals.max(2), noise),
        })
    }

    /// The last two points.
    pub(super) fn last_two(&self) -> Option<[&Point; 2]> {
        let mut last = self.0.iter().rev();
        let (last, before) = (last.next()?, last.next()?);
        Some([before, last])
    }

    /// How fast a queue has grown or shrunk, in microseconds per feedback: over so many that noise averages out.
    pub(super) fn ramp(&self) -> f64 {
        let mut last = self.0.iter().rev();
        let (Some(last), Some(before)) = (last.next(), last.nth(RAMP - 1)) else { return 0.0 };
        f64::from(after(last.mean, before.mean)) / RAMP as f64
    }

    /// The second difference of the last least delays, in microseconds: a queue that grows or shrinks has little.
    pub(super) fn bend(&self) -> f64 {
        let mut last = self.0.iter().rev().map(|point| point.delay);
        let (Some(last), Some(middle), Some(first)) = (last.next(), last.next(), last.next())
        else {
            return 0.0;
        };
        f64::from(after(last, middle).wrapping_sub(after(middle, first))).abs()
    }

    /// Whether the delay changed in the last `intervals` between two points by one leap of more than [`LEAP`], and not
    /// step by step. Delays deviate by `noise` microseconds.
    fn leaps(&self, intervals: usize, noise: f64) -> bool {
        let newest_first = self.0.iter().rev().zip(self.0.iter().rev().skip(1));
        let changes = newest_first.take(intervals).map(|(point, before)| {
            // Least delays vary less, but they show a rise later.
            if noise > JITTERY {
                after(point.delay, before.delay)
            } else {
                after(point.arrived, before.arrived) - after(point.sent, before.sent)
            }
        });
        let (sum, greatest) = changes.fold((0, 0_i32), |(sum, greatest), change| {
            (sum + change, if change.abs() > greatest.abs() { change } else { greatest })
        });
        let others = f64::from((sum - greatest).abs());
        let greatest = f64::from(greatest.abs());
        greatest > LEAP + 4.0 * noise && others < 0.35 * greatest
    }
}

/// How far one value modulo 2^32 is after another.
pub(super) fn after(value: u32, other: u32) -> i32 {
    value.wrapping_sub(other).cast_signed()
}

pub(super) fn earlier(one: u32, other: u32) -> u32 {
    if after(one, other) < 0 { one } else { other }
}
