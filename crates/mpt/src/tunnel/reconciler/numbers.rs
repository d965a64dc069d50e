//! Numbers for connections and paths.
//!
//! A freed number is reused late, because messages about its last owner may still be in transit
//! between two threads, and datagrams in flight.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a number rests. PathUpdates cross in microseconds, datagrams in seconds at the most.
const REST: Duration = Duration::from_secs(10);

/// Numbers from 0 up to a limit.
#[derive(Debug)]
pub(super) struct Numbers {
    limit: u16,
    /// None from here on has been used yet.
    next: u16,
    /// Those that were given back, with the time, the first one first.
    resting: VecDeque<(Instant, u16)>,
}

impl Numbers {
    /// All numbers below `limit`.
    pub(super) fn below(limit: u16) -> Self {
        Self { limit, next: 0, resting: VecDeque::new() }
    }

    /// A free number; `None` if all are in use.
    pub(super) fn take(&mut self, now: Instant) -> Option<u16> {
        let rested = self.resting.front().is_some_and(|&(since, _)| now >= since + REST);
        if !rested && self.next < self.limit {
            self.next += 1;
            return Some(self.next - 1);
        }
        self.resting.pop_front().map(|(_, number)| number)
    }

    /// Gives a number back.
    pub(super) fn give_back(&mut self, now: Instant, number: u16) {
        self.resting.push_back((now, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_number_is_reused_last() {
        let (mut numbers, now) = (Numbers::below(3), Instant::now());
        assert_eq!((numbers.take(now), numbers.take(now)), (Some(0), Some(1)));
        numbers.give_back(now, 0);
        assert_eq!(numbers.take(now), Some(2), "not the one that was used a moment ago");
        assert_eq!(numbers.take(now), Some(0), "there is no other");
        assert_eq!(numbers.take(now), None);
        let mut numbers = Numbers::below(9);
        numbers.take(now);
        numbers.give_back(now, 0);
        assert_eq!(numbers.take(now + REST), Some(0));
    }
}
