//! The held packets, each in the slot of its number.

use std::collections::VecDeque;

use crate::sequence::Seq;
use crate::sink::Held;
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Ring {
    /// A power of two of at least the window, so that a number's slot is its low bits; allocated
    /// when the first packet is held, because most connections of a server are idle.
    slots: Vec<Option<Held>>,
    window: u32,
    held: u32,
    /// The held packets that no earlier one outranks in number: both numbers and arrival times
    /// rise, and the front is the longest held of all. A packet that arrives below the back leaves
    /// before it does, so nobody needs to remember when that one came.
    records: VecDeque<(Seq, Instant)>,
}

impl Ring {
    pub(super) fn new(window: u32) -> Self {
        Self { slots: Vec::new(), window, held: 0, records: VecDeque::new() }
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Held>>()
            + self.records.capacity() * size_of::<(Seq, Instant)>()
    }

    pub(super) fn held(&self) -> u32 {
        self.held
    }

    pub(super) fn contains(&self, seq: Seq) -> bool {
        self.held > 0 && self.slots[self.slot(seq)].is_some()
    }

    /// Stores a packet whose slot is free. `seq` is less than the window ahead of every number
    /// that is held or still to come.
    pub(super) fn put(&mut self, seq: Seq, held: Held, now: Instant) {
        if self.slots.is_empty() {
            self.slots = vec![None; self.window.next_power_of_two() as usize];
        }
        let slot = self.slot(seq);
        self.slots[slot] = Some(held);
        self.held += 1;
        if self.records.back().is_none_or(|&(last, _)| seq.offset_from(last) > 0) {
            self.records.push_back((seq, now));
        }
    }

    /// Takes out the packet with the lowest number, if that is `seq`.
    pub(super) fn take(&mut self, seq: Seq) -> Option<Held> {
        if self.held == 0 {
            return None;
        }
        let slot = self.slot(seq);
        let held = self.slots[slot].take()?;
        self.held -= 1;
        if self.records.front().is_some_and(|&(first, _)| first == seq) {
            self.records.pop_front();
        }
        Some(held)
    }

    /// The packet that has been held longest, and since when.
    pub(super) fn longest_held(&self) -> Option<(Seq, Instant)> {
        self.records.front().copied()
    }

    fn slot(&self, seq: Seq) -> usize {
        seq.value() as usize & (self.slots.len() - 1)
    }
}
