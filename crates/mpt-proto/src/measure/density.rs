//! Reorder density and reorder buffer-occupancy density (RFC 5236).
//!
//! Each packet gets a receive index: the number that would have come in its place, had all that
//! arrived come in order. Its displacement is the receive index less its number. What comes within the
//! next packets decides whether a number is skipped as lost, so a packet waits in a window until as many
//! as the threshold have come behind it. A packet that would be displaced by more
//! than the threshold is not counted, and neither is one whose number was skipped.
//!
//! The numbers of the window and the early packets that left it before their turn are one set
//! here; whatever is in it from the receive index on is still to get its index. For the buffer
//! occupancy the least number of the window matters: every packet outside with a higher one would
//! still be held. One window serves both, so both thresholds are the same.
//!
//! The RFC's algorithm is corrected in two places. The number of a packet that is displaced too far
//! has already been used as an index, so one index is skipped for it; without this all following
//! packets would count as displaced permanently. And numbers so far apart that they do not fit the
//! set settle what is before them, whatever may come.

use std::collections::VecDeque;

use super::bits::{self, Bits};
use super::packed::{Packer, Unpacker};
use crate::sequence::Seq;

#[derive(Clone, Debug)]
pub(super) struct Density {
    threshold: u32,
    /// What arrived and is not counted yet, in the order of arrival.
    window: VecDeque<Seq>,
    /// Of the window, the numbers that none behind them is less than: its front is the least of all.
    least: VecDeque<Seq>,
    /// What is in the window or has left it.
    arrived: Bits,
    /// The number behind the highest that arrived.
    next: Seq,
    /// The least number that can be the next receive index.
    index: Seq,
    /// How many packets that left the window wait for lower numbers.
    held: u32,
    counts: Counts,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Packets that were late by the place, the first of which were in theirs.
    pub(super) late: Vec<u64>,
    /// Packets that were early by the place, the first of which were so by one.
    pub(super) early: Vec<u64>,
    /// Packets after which so many are held.
    pub(super) occupancy: Vec<u64>,
}

impl Density {
    pub(super) fn new(threshold: u32) -> Self {
        Self {
            threshold,
            window: VecDeque::new(),
            least: VecDeque::new(),
            arrived: Bits::default(),
            next: Seq::FIRST,
            index: Seq::FIRST,
            held: 0,
            counts: Counts::default(),
        }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether nothing waits to be counted.
    pub(super) fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Begins with nothing waiting and `index` as the next receive index.
    pub(super) fn begin(&mut self, index: Seq) {
        self.window.clear();
        self.least.clear();
        self.arrived.fill(index, bits::LEN, false);
        (self.next, self.index, self.held) = (index, index, 0);
    }

    /// What has been counted, behind what was packed before: all packets have been.
    pub(super) fn pack(&self, before: Packer) -> Box<[u8]> {
        let Counts { late, early, occupancy } = &self.counts;
        before.with_histograms([late, early, occupancy])
    }

    pub(super) fn unpack(&mut self, from: &mut Unpacker<'_>) {
        let [late, early, occupancy] = from.histograms();
        self.counts = Counts { late, early, occupancy };
    }

    /// Packets that came in order, nothing being held.
    pub(super) fn in_place(&mut self, packets: u64) {
        if packets > 0 {
            add(&mut self.counts.late, 0, packets);
            add(&mut self.counts.occupancy, 0, packets);
        }
    }

    /// A packet arrived that had not before.
    pub(super) fn arrive(&mut self, seq: Seq) {
        if seq.offset_from(self.index) < 0 {
            return;
        }
        // Unsigned: seen from the lowest number, one far ahead of the index may be beyond half around.
        while seq.offset_from(self.lowest()).cast_unsigned() >= bits::LEN {
            if self.window.is_empty() {
                self.begin(seq);
            } else {
                self.count_first();
            }
        }
        let ahead = seq.offset_from(self.next);
        if ahead >= 0 {
            self.arrived.fill(self.next, ahead.unsigned_abs(), false);
            self.next = seq.next();
        }
        self.arrived.insert(seq);
        self.window.push_back(seq);
        while self.least.back().is_some_and(|least| least.offset_from(seq) > 0) {
            self.least.pop_back();
        }
        self.least.push_back(seq);
        if self.window.len() > self.threshold as usize {
            self.count_first();
        }
    }

    /// Whether the next receive index is the number of the first packet of the window and nothing is
    /// held: if the window is in order as well, all of it is in its place.
    pub(super) fn is_calm(&self) -> bool {
        self.held == 0 && self.window.front().copied() == self.first_index()
    }

    /// Counts what is in the window, as if nothing more were to come.
    pub(super) fn finish(&mut self) {
        while !self.window.is_empty() {
            self.count_first();
        }
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        let Counts { late, early, occupancy } = &self.counts;
        let numbers = self.window.capacity() + self.least.capacity();
        let counts = late.capacity() + early.capacity() + occupancy.capacity();
        numbers * size_of::<Seq>() + counts * size_of::<u64>() + self.arrived.memory()
    }

    /// Counts the first packet of the window, which leaves it.
    fn count_first(&mut self) {
        let Some(seq) = self.window.pop_front() else { return };
        // A late packet was overtaken by one whose number has not been the receive index yet.
        let index = self.first_index().unwrap_or(self.next);
        let displacement = index.offset_from(seq);
        let counts = displacement.unsigned_abs() <= self.threshold;
        if counts {
            let places = displacement.unsigned_abs() as usize;
            if displacement < 0 {
                add(&mut self.counts.early, places - 1, 1);
            } else {
                add(&mut self.counts.late, places, 1);
            }
        } else {
            self.arrived.remove(seq);
        }
        self.index = if counts || displacement > 0 { index.next() } else { index };
        if self.least.front() == Some(&seq) {
            self.least.pop_front();
            let least = self.least.front().copied().unwrap_or(self.next);
            let passed = least.offset_from(seq.next()).unsigned_abs();
            self.held -= self.arrived.count(seq.next(), passed);
        } else if counts {
            self.held += 1;
        }
        if counts {
            add(&mut self.counts.occupancy, self.held as usize, 1);
        }
    }

    /// The next receive index: numbers that did not arrive are none.
    fn first_index(&self) -> Option<Seq> {
        self.arrived.first(self.index, self.next.offset_from(self.index).unsigned_abs())
    }

    /// The lowest number that the set must distinguish.
    fn lowest(&self) -> Seq {
        match self.least.front() {
            Some(least) if least.offset_from(self.index) < 0 => *least,
            _ => self.index,
        }
    }
}

/// Adds to the count of a number.
fn add(counts: &mut Vec<u64>, number: usize, count: u64) {
    if counts.len() <= number {
        counts.resize(number + 1, 0);
    }
    counts[number] += count;
}
