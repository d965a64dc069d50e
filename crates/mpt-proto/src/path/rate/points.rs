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
    pub(super) lost: u32,
    /// The shortest delay since the point before, modulo 2^32.
    pub(super) delay: u32,
}

/// So many are not worth giving back.
const FEW: usize = 4;

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

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Point>()
    }

    /// Forgets all but the last one, if they take much: nothing was sent for long, so that no other is compared with what
    /// comes.
    pub(super) fn rest(&mut self) {
        if self.0.capacity() <= FEW {
            return;
        }
        self.0.drain(..self.0.len().saturating_sub(1));
        self.0.shrink_to_fit();
    }

    /// What is told so soon after the point before takes its place.
    pub(super) fn push(&mut self, mut point: Point) {
        let mut last = self.0.iter().rev();
        if let (Some(last), Some(before)) = (last.next(), last.next())
            && point.at.since(before.at) < APART
        {
            point.delay = earlier(point.delay, last.delay);
            self.0.pop_back();
        }
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
        let mut before = self.0.iter().rev().skip(1);
        let first = before.find(|point| {
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
            // Least delays vary less than those of single datagrams.
            arrived = (sent + f64::from(after(last.delay, first.delay))).max(1.0);
        }
        Some(Sample {
            sent,
            arrived,
            bytes: last.bytes.saturating_sub(first.bytes) as f64,
            packets: f64::from(last.packets.wrapping_sub(first.packets)),
            lost: f64::from(after(last.lost, first.lost).max(0)),
            busy: after(first.highest, busy_from) >= 0,
        })
    }
}

/// How far one value modulo 2^32 is after another.
pub(super) fn after(value: u32, other: u32) -> i32 {
    value.wrapping_sub(other).cast_signed()
}

pub(super) fn earlier(one: u32, other: u32) -> u32 {
    if after(one, other) < 0 { one } else { other }
}
