//! The packets that wait, each in the slot of its number, and for which number each of them waits.

use crate::sequence::Seq;
use crate::sink::Held;
use crate::time::Instant;

/// The slot of a number that was not delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The packet with this number, if it is held, and since when, by the microseconds of the clock.
    held: Option<Held>,
    since: u32,
    /// How far ahead the held packet is that waits for this number; 0 is none.
    follower: u32,
}

#[derive(Debug)]
pub(super) struct Waiting {
    /// A power of two of at least the window, so that a number's slot is its low bits; allocated when the first
    /// packet is held, because most connections of a server are idle.
    slots: Vec<Slot>,
    window: u32,
    held: u32,
}

impl Waiting {
    pub(super) fn new(window: u32) -> Self {
        Self { slots: Vec::new(), window, held: 0 }
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// How many packets are held. Where none is, none waits for a number either.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    pub(super) fn contains(&self, seq: Seq) -> bool {
        self.held > 0 && self.slots[self.slot(seq)].held.is_some()
    }

    /// Stores a packet whose slot is free. `seq` is less than the window ahead of every number that is held or
    /// still to come.
    pub(super) fn put(&mut self, now: Instant, seq: Seq, held: Held) {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); self.window.next_power_of_two() as usize];
        }
        let slot = self.slot(seq);
        (self.slots[slot].held, self.slots[slot].since) = (Some(held), now.micros());
        self.held += 1;
    }

    /// The packet `follower`, which is held, waits for `seq`, which is behind it and not resolved. A sender names
    /// each number once; of two followers the last one is remembered, and the other one waits for its turn.
    pub(super) fn follow(&mut self, seq: Seq, follower: Seq) {
        let slot = self.slot(seq);
        self.slots[slot].follower = follower.offset_from(seq).unsigned_abs();
    }

    /// Takes out the packet with this number, and since when it was held.
    pub(super) fn take(&mut self, seq: Seq) -> Option<(Held, u32)> {
        if self.held == 0 {
            return None;
        }
        let slot = self.slot(seq);
        let held = self.slots[slot].held.take()?;
        self.held -= 1;
        Some((held, self.slots[slot].since))
    }

    /// Takes out the packet that waits for `seq`, which is resolved.
    pub(super) fn take_follower(&mut self, seq: Seq) -> Option<(Seq, (Held, u32))> {
        if self.held == 0 {
            return None;
        }
        let slot = self.slot(seq);
        let distance = std::mem::take(&mut self.slots[slot].follower);
        if distance == 0 {
            return None;
        }
        let follower = seq.plus(distance);
        self.take(follower).map(|held| (follower, held))
    }

    fn slot(&self, seq: Seq) -> usize {
        seq.value() as usize & (self.slots.len() - 1)
    }
}
