//! Packets on the way, taken out in the order of their due times.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use mpt_proto::Instant;

/// A packet on the way. The number breaks ties: first in, first out.
#[derive(Clone, Debug)]
struct Entry<P> {
    due: Instant,
    number: u64,
    packet: P,
}

/// A priority queue that costs nothing while due times rise, which is nearly always: those go to
/// the end of a plain queue, only stragglers to a heap.
#[derive(Clone, Debug)]
pub(super) struct Flight<P> {
    rising: VecDeque<Entry<P>>,
    early: BinaryHeap<Entry<P>>,
    next_number: u64,
}

impl<P> Default for Flight<P> {
    fn default() -> Self {
        Self { rising: VecDeque::new(), early: BinaryHeap::new(), next_number: 0 }
    }
}

impl<P> Flight<P> {
    pub(super) fn push(&mut self, due: Instant, packet: P) {
        let entry = Entry { due, number: self.next_number, packet };
        self.next_number += 1;
        if self.rising.back().is_none_or(|last| last.due <= due) {
            self.rising.push_back(entry);
        } else {
            self.early.push(entry);
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |entry: &Entry<P>| entry.due;
        match (self.rising.front().map(due), self.early.peek().map(due)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, P)> {
        if self.next_due()? > now {
            return None;
        }
        let from_heap = match (self.rising.front(), self.early.peek()) {
            (Some(rising), Some(early)) => early > rising,
            (rising, _) => rising.is_none(),
        };
        let entry = if from_heap { self.early.pop() } else { self.rising.pop_front() }?;
        Some((entry.due, entry.packet))
    }
}

/// Greater means sooner, as [`BinaryHeap`] takes the greatest first.
impl<P> Ord for Entry<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<P> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Entry<P> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_leave_in_the_order_of_due_time_then_arrival(
            dues in prop::collection::vec(0_u64..20, 0..60),
        ) {
            let mut flight = Flight::default();
            for (i, &due) in dues.iter().enumerate() {
                flight.push(Instant::from_nanos(due), vec![i as u8]);
            }
            let mut expected: Vec<_> = dues.iter().enumerate().map(|(i, &d)| (d, i as u8)).collect();
            expected.sort();
            for (due, number) in expected {
                prop_assert_eq!(flight.next_due(), Some(Instant::from_nanos(due)));
                if due > 0 {
                    prop_assert!(flight.pop_due(Instant::from_nanos(due - 1)).is_none());
                }
                let popped = flight.pop_due(Instant::from_nanos(due));
                prop_assert_eq!(popped, Some((Instant::from_nanos(due), vec![number])));
            }
            prop_assert_eq!(flight.next_due(), None);
        }
    }
}
