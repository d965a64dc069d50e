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

#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// A power of two, so that a number's slot is its low bits, and more than any held number is ahead of the expected
    /// one; allocated when the first packet is held, because most connections of a server are idle.
    slots: Vec<Slot>,
    held: u32,
}

/// So many slots at least.
const FEWEST: usize = 1024;

impl Waiting {
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

    /// Stores a packet whose slot is free, where `next` is expected: no number that is held or still to come is before that.
    pub(super) fn put(&mut self, now: Instant, next: Seq, seq: Seq, held: Held) {
        self.reach(next, seq);
        let slot = self.slot(seq);
        (self.slots[slot].held, self.slots[slot].since) = (Some(held), now.micros());
        self.held += 1;
    }

    /// A number came that may be far ahead of all that wait: it must not share a slot with one of them, also if it does not wait.
    #[inline]
    pub(super) fn cover(&mut self, next: Seq, seq: Seq) {
        if self.held > 0 {
            self.reach(next, seq);
        }
    }

    /// Makes room for a number, unless there is.
    #[inline]
    fn reach(&mut self, next: Seq, seq: Seq) {
        let ahead = seq.offset_from(next).unsigned_abs() as usize;
        if ahead >= self.slots.len() {
            self.grow(next, ahead);
        }
    }

    /// Makes room for a number that is so far `ahead` of the expected one.
    #[cold]
    fn grow(&mut self, next: Seq, ahead: usize) {
        let len = (ahead + 1).next_power_of_two().max(FEWEST);
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); len]);
        let last = before.len().wrapping_sub(1);
        for (place, slot) in before.iter().enumerate() {
            let offset = place.wrapping_sub(next.value() as usize) & last;
            let place = self.slot(next.plus(offset as u32));
            self.slots[place] = *slot;
        }
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
