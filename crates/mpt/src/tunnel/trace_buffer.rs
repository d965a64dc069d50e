//! The lines of a trace that wait to be read, and what each traced connection was at when the last one was written.

use std::collections::{BTreeMap, VecDeque};

use mpt_control::TraceLine;
use mpt_proto::{ConnectionId, Instant, PathId};

use super::history::{PathSent, Sent};

/// Lines that wait to be read: those of 64 paths in 3 s, some megabytes.
const MOST_LINES: usize = 4096;

/// What has been traced of a tunnel.
#[derive(Debug, Default)]
pub(super) struct TraceBuffer {
    pub(super) connections: BTreeMap<ConnectionId, TracedConnection>,
    /// When the next sample is due, if anything is traced.
    pub(super) at: Option<Instant>,
    /// The last lines, and the number of the last of them.
    lines: VecDeque<(ConnectionId, TraceLine)>,
    pub(super) number: u64,
    /// Lines that were dropped before they were read by anybody.
    missed: u64,
    /// The number of the last line that somebody has read.
    pub(super) read: u64,
}

/// A connection: until when it is traced, when it was sampled last, and what was counted then.
#[derive(Debug, Default)]
pub(super) struct TracedConnection {
    pub(super) until: Instant,
    pub(super) sampled: Instant,
    pub(super) sent: Sent,
    /// By path.
    pub(super) paths: BTreeMap<PathId, PathSent>,
}

impl TraceBuffer {
    /// When the next sample is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    /// How many connections are traced, and how many lines nobody has read in time.
    pub(super) fn counters(&self) -> (u64, u64) {
        (self.connections.len() as u64, self.missed)
    }

    /// Nobody reads any more.
    pub(super) fn forget_lines(&mut self) {
        self.lines = VecDeque::new();
    }

    /// A line about a connection.
    pub(super) fn push(&mut self, connection: ConnectionId, line: TraceLine) {
        if self.lines.len() == MOST_LINES {
            self.lines.pop_front();
            if self.number - MOST_LINES as u64 >= self.read {
                self.missed += 1;
            }
        }
        self.number += 1;
        self.lines.push_back((connection, line));
    }

    /// The lines about these connections after that of a number, and how many of all are gone.
    pub(super) fn after(&self, number: u64, wanted: &[ConnectionId]) -> (u64, Vec<TraceLine>) {
        let first = self.number - self.lines.len() as u64;
        let skip = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        let lines = self.lines.iter().skip(skip).filter(|(id, _)| wanted.contains(id));
        (first.saturating_sub(number), lines.map(|(_, line)| line.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> TraceLine {
        TraceLine { at_seconds: number as f64, ..TraceLine::default() }
    }

    fn numbers(lines: &[TraceLine]) -> Vec<u64> {
        lines.iter().map(|line| line.at_seconds as u64).collect()
    }

    #[test]
    fn each_client_gets_what_came_since_it_asked_last() {
        let mut trace = TraceBuffer::default();
        let (one, two) = (ConnectionId(1), ConnectionId(2));
        for number in 1..=4 {
            trace.push(if number % 2 == 1 { one } else { two }, line(number));
        }
        let of = |after, wanted: &[ConnectionId]| {
            let (missed, lines) = trace.after(after, wanted);
            (missed, numbers(&lines))
        };
        assert_eq!(of(0, &[one, two]), (0, vec![1, 2, 3, 4]));
        assert_eq!(of(1, &[one]), (0, vec![3]));
        assert_eq!(of(4, &[one, two]), (0, vec![]));
    }

    #[test]
    fn who_reads_too_slowly_misses_the_oldest_and_is_told() {
        let mut trace = TraceBuffer::default();
        let one = ConnectionId(1);
        let most = MOST_LINES as u64;
        (1..=most + 10).for_each(|number| trace.push(one, line(number)));
        let (missed, lines) = trace.after(3, &[one]);
        assert_eq!((missed, lines.len(), lines[0].at_seconds), (7, MOST_LINES, 11.0));
        assert_eq!(trace.counters(), (0, 10));
        trace.read = trace.number;
        (1..=most).for_each(|number| trace.push(one, line(number)));
        assert_eq!(trace.counters(), (0, 10), "they had been read");
    }
}
