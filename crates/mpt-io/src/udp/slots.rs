//! Which slots of a receive batch's memory are in use, and for what.
//!
//! A slot is *free*, or *filled* by the last receive, or *kept* because a packet in it is still in
//! use. Free slots are allocated last-in first-out, so that a tunnel with little traffic uses few
//! slots that stay in the cache, and unused ones come last, so that memory is touched only as far
//! as needed.

use std::cell::{Cell, RefCell};

/// The use of every slot.
///
/// Packets are kept and released while others are looked at, hence the cells.
#[derive(Debug)]
pub(super) struct Slots {
    /// Packets kept in each slot.
    kept: Box<[Cell<u16>]>,
    /// The free slots, the next one on top.
    free: RefCell<Vec<u16>>,
    /// The slots of the last receive, in its order.
    filled: Vec<u16>,
}

impl Slots {
    /// `count` free slots.
    pub(super) fn new(count: u16) -> Self {
        Self {
            kept: vec![Cell::new(0); usize::from(count)].into_boxed_slice(),
            free: RefCell::new((0..count).rev().collect()),
            filled: Vec::with_capacity(usize::from(count)),
        }
    }

    /// Takes back the slots of the last receive in which nothing is kept, and hands out up to `count`
    /// for the next, in the order in which they are to be filled.
    pub(super) fn refill(&mut self, count: usize) -> &[u16] {
        let free = self.free.get_mut();
        while let Some(slot) = self.filled.pop() {
            if self.kept[usize::from(slot)].get() == 0 {
                free.push(slot);
            }
        }
        for _ in 0..count.min(free.len()) {
            self.filled.extend(free.pop());
        }
        &self.filled
    }

    /// The slot that the last receive filled as number `index`.
    pub(super) fn filled(&self, index: usize) -> u16 {
        self.filled[index]
    }

    /// Whether more than half of all slots are free: then packets may be kept where they are.
    pub(super) fn has_room(&self) -> bool {
        self.free.borrow().len() > self.kept.len() / 2
    }

    /// Notes that a packet in `slot`, one of the last receive, is kept. False if too many are.
    pub(super) fn keep(&self, slot: u16) -> bool {
        let kept = &self.kept[usize::from(slot)];
        kept.get().checked_add(1).map(|more| kept.set(more)).is_some()
    }

    /// Notes that a kept packet in `slot` is no longer needed.
    pub(super) fn release(&self, slot: u16) {
        let kept = &self.kept[usize::from(slot)];
        debug_assert!(kept.get() > 0, "a packet is released once");
        kept.set(kept.get() - 1);
        // A slot of the last receive still shows its other packets; the next refill takes it back.
        if kept.get() == 0 && !self.filled.contains(&slot) {
            self.free.borrow_mut().push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quiet_batch_always_uses_the_same_slots() {
        let mut slots = Slots::new(8);
        for _ in 0..3 {
            assert_eq!(slots.refill(2), [0, 1]);
        }
        assert_eq!(slots.refill(100), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_slot_with_a_kept_packet_is_skipped() {
        let mut slots = Slots::new(4);
        slots.refill(2);
        assert!(slots.keep(0) && slots.keep(0));
        assert_eq!(slots.refill(2), [1, 2]);
        slots.release(0);
        assert_eq!(slots.refill(2), [1, 2]);
        slots.release(0);
        assert_eq!(slots.refill(3), [1, 2, 0]);
    }

    #[test]
    fn what_is_released_in_the_same_round_is_free_after_it() {
        let mut slots = Slots::new(3);
        slots.refill(2);
        assert!(slots.keep(1));
        slots.release(1);
        assert_eq!(slots.refill(3), [0, 1, 2]);
    }

    #[test]
    fn there_is_room_while_more_than_half_is_free() {
        let mut slots = Slots::new(4);
        assert!(slots.has_room());
        slots.refill(1);
        assert!(slots.has_room());
        slots.refill(2);
        assert!(!slots.has_room());
    }

    proptest! {
        /// Every slot is free, filled or kept, and none is handed out while something is kept in it.
        #[test]
        fn no_slot_is_lost_or_handed_out_twice(
            steps in prop::collection::vec((1usize..4, any::<prop::sample::Index>(), any::<bool>()), 1..200),
        ) {
            let mut slots = Slots::new(6);
            let mut kept: Vec<u16> = Vec::new();
            for (count, pick, keep) in steps {
                let filled = slots.refill(count).to_vec();
                prop_assert!(filled.iter().all(|slot| !kept.contains(slot)));
                let mut unique = filled.clone();
                unique.dedup();
                prop_assert_eq!(unique.len(), filled.len());
                if keep && !filled.is_empty() {
                    let slot = filled[pick.index(filled.len())];
                    prop_assert!(slots.keep(slot));
                    kept.push(slot);
                } else if !kept.is_empty() {
                    slots.release(kept.swap_remove(pick.index(kept.len())));
                }
            }
            for slot in kept.drain(..) {
                slots.release(slot);
            }
            prop_assert_eq!(slots.refill(6).len(), 6);
        }
    }
}
