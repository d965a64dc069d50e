//! Order of arrival of numbered packets: what was lost, doubled, or overtaken (RFC 4737).
//!
//! A packet is *reordered* if one with a higher number came before it (RFC 4737 section 3.3: its number
//! is below NextExp). Its *extent* (section 4.2) is how many arrivals lie between the first packet
//! that overtook it and itself, which is the size of a buffer that would have put it back in place.
//! The first packet that overtook is always one that raised the maximum, so remembering those suffices.
//! Copies are counted apart and take no part in the order, as RFC 4737 demands.

use std::collections::VecDeque;

use serde::Serialize;

/// How many packets that raised the maximum are remembered.
///
/// The widest reorder window of the tunnel is 10 000 packets; an extent beyond the history is reported as
/// the distance to the oldest packet remembered, a lower bound.
const HISTORY: usize = 65_536;

/// The receiver's ledger of packets numbered from 0.
#[derive(Debug)]
pub struct Order {
    /// One bit per number: seen or not. Bounded by the count the sender was going to send.
    seen: Vec<u64>,
    limit: u64,
    next_expected: u64,
    arrivals: u64,
    maxima: VecDeque<Maximum>,
    summary: Summary,
}

/// An arrival with a number above all before it.
#[derive(Clone, Copy, Debug)]
struct Maximum {
    number: u64,
    arrival: u64,
}

/// What became of the numbered packets of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Packets the sender sent.
    pub sent: u64,
    /// Packets that arrived, copies not counted.
    pub received: u64,
    /// Packets that never arrived.
    pub lost: u64,
    /// Further copies of packets that had arrived already.
    pub duplicated: u64,
    /// Packets overtaken by one with a higher number.
    pub reordered: u64,
    /// RFC 4737 section 4.1: reordered packets ÷ received packets, 0 to 1.
    pub reordered_ratio: f64,
    /// RFC 4737 section 4.2: the largest reordering extent, in packets.
    pub reordering_extent: u64,
    /// Arrivals whose number was never going to be sent: not this run's packets.
    pub foreign: u64,
}

impl Order {
    /// A ledger for packets numbered from 0 to `limit` - 1.
    pub fn new(limit: u64) -> Self {
        let words = usize::try_from(limit.div_ceil(64)).unwrap_or(usize::MAX);
        Self {
            seen: vec![0; words],
            limit,
            next_expected: 0,
            arrivals: 0,
            maxima: VecDeque::new(),
            summary: Summary::default(),
        }
    }

    /// Counts one arrival; true if it is the first copy of a packet of this run.
    pub fn on_arrival(&mut self, number: u64) -> bool {
        if number >= self.limit {
            self.summary.foreign += 1;
            return false;
        }
        if !self.mark(number) {
            self.summary.duplicated += 1;
            return false;
        }
        self.summary.received += 1;
        let arrival = self.arrivals;
        self.arrivals += 1;
        if number >= self.next_expected {
            self.next_expected = number + 1;
            if self.maxima.len() == HISTORY {
                self.maxima.pop_front();
            }
            self.maxima.push_back(Maximum { number, arrival });
        } else {
            self.summary.reordered += 1;
            let overtaker = self.maxima.partition_point(|maximum| maximum.number < number);
            let extent = self.maxima.get(overtaker).map_or(0, |maximum| arrival - maximum.arrival);
            self.summary.reordering_extent = self.summary.reordering_extent.max(extent);
        }
        true
    }

    /// Closes the ledger, given how many packets were really sent.
    pub fn finish(self, sent: u64) -> Summary {
        let Summary { received, reordered, .. } = self.summary;
        Summary {
            sent,
            lost: sent.saturating_sub(received),
            reordered_ratio: if received == 0 { 0.0 } else { reordered as f64 / received as f64 },
            ..self.summary
        }
    }

    /// Marks a number as seen; false if it was already.
    fn mark(&mut self, number: u64) -> bool {
        let bit = 1 << (number % 64);
        let word = &mut self.seen[(number / 64) as usize];
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_in_order_have_no_reordering() {
        let summary = arrive(10, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((summary.received, summary.lost, summary.reordered), (10, 0, 0));
    }

    #[test]
    fn a_gap_is_loss_and_not_reordering() {
        let summary = arrive(6, &[0, 1, 4, 5]);
        assert_eq!((summary.lost, summary.reordered, summary.reordering_extent), (2, 0, 0));
    }

    #[test]
    fn extent_reaches_back_to_the_first_packet_that_overtook() {
        let summary = arrive(10, &[0, 1, 2, 5, 6, 7, 3, 4, 8, 9]);
        assert_eq!(summary.reordered, 2);
        assert_eq!(summary.reordered_ratio, 0.2);
        assert_eq!(summary.reordering_extent, 4, "4 came four arrivals after 5");
    }

    #[test]
    fn one_late_packet_reorders_itself_and_not_those_that_overtook_it() {
        let summary = arrive(5, &[1, 2, 3, 4, 0]);
        assert_eq!((summary.reordered, summary.reordering_extent), (1, 4));
    }

    #[test]
    fn duplicates_and_foreign_packets_are_counted_separately() {
        let summary = arrive(4, &[0, 1, 1, 3, 0, 2, 99]);
        assert_eq!((summary.received, summary.duplicated, summary.foreign), (4, 2, 1));
        assert_eq!((summary.reordered, summary.reordering_extent), (1, 1), "copies take no place");
    }

    #[test]
    fn history_is_bounded_and_the_extent_then_a_lower_bound() {
        let count = HISTORY as u64 + 100;
        let mut order = Order::new(count + 1);
        for number in 1..=count {
            order.on_arrival(number);
        }
        order.on_arrival(0);
        assert_eq!(order.finish(count + 1).reordering_extent, HISTORY as u64);
    }

    fn arrive(sent: u64, numbers: &[u64]) -> Summary {
        let mut order = Order::new(sent);
        for &number in numbers {
            order.on_arrival(number);
        }
        order.finish(sent)
    }
}
