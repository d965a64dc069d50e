//! A bounded pool for packets that must wait.
//!
//! All memory is reserved when the pool is made and none afterwards. The kernel gives pages only
//! when they are first written, and slots are handed out last-in first-out with fresh ones last, so
//! a pool costs as much as the largest number of packets that ever waited at once, and the slot
//! that is handed out next is the one most likely still in the cache.

/// Packets in slots of equal size.
#[derive(Debug)]
pub struct Pool {
    memory: Box<[u8]>,
    lengths: Box<[u32]>,
    slot_size: usize,
    /// Slots that were used and given back, the last one on top.
    freed: Vec<u32>,
    /// Slots below this one were handed out at least once.
    fresh: u32,
    counters: Counters,
}

/// A place in a [`Pool`] that holds one packet.
///
/// Only the pool that gave it can take it back ([`Pool::free`]). A slot that is dropped instead
/// stays occupied for the life of its pool.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a slot that is not given back to its pool stays occupied"]
pub struct Slot(u32);

/// Packets that a [`Pool`] did not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets refused because every slot was occupied.
    pub exhausted: u64,
    /// Packets refused because they are longer than a slot.
    pub oversized: u64,
}

impl Pool {
    /// Bytes of the slots that were ever handed out; the others are not real memory.
    pub fn touched(&self) -> usize {
        self.fresh as usize * self.slot_size
    }

    /// A pool of `slots` slots of `slot_size` bytes each.
    ///
    /// # Panics
    ///
    /// If the product does not fit into the address space, or either number not into 32 bits.
    pub fn new(slots: usize, slot_size: usize) -> Self {
        assert!(
            u32::try_from(slots).is_ok() && u32::try_from(slot_size).is_ok(),
            "slots are counted in 32 bits"
        );
        let bytes = slots.checked_mul(slot_size).expect("a pool fits into the address space");
        Self {
            // Zeroed allocations of this size come straight from the kernel, untouched.
            memory: vec![0; bytes].into_boxed_slice(),
            lengths: vec![0; slots].into_boxed_slice(),
            slot_size,
            freed: Vec::with_capacity(slots),
            fresh: 0,
            counters: Counters::default(),
        }
    }

    /// Most memory that a pool of these dimensions can ever occupy, in bytes.
    pub const fn worst_case(slots: usize, slot_size: usize) -> usize {
        slots * (slot_size + size_of::<u32>() + size_of::<u32>())
    }

    /// Copies `packet` into a free slot; if there is none, counts the reason.
    pub fn store(&mut self, packet: &[u8]) -> Option<Slot> {
        if packet.len() > self.slot_size {
            self.counters.oversized += 1;
            return None;
        }
        let index = match self.freed.pop() {
            Some(index) => index,
            None if (self.fresh as usize) < self.lengths.len() => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => {
                self.counters.exhausted += 1;
                return None;
            }
        };
        let start = index as usize * self.slot_size;
        self.memory[start..start + packet.len()].copy_from_slice(packet);
        self.lengths[index as usize] = packet.len() as u32;
        Some(Slot(index))
    }

    /// The packet in `slot`.
    ///
    /// # Panics
    ///
    /// May panic, or show another packet, if `slot` is of another pool.
    pub fn get(&self, slot: &Slot) -> &[u8] {
        let index = slot.0 as usize;
        let start = index * self.slot_size;
        &self.memory[start..start + self.lengths[index] as usize]
    }

    /// Gives `slot` back; the next packet will be stored there.
    pub fn free(&mut self, slot: Slot) {
        debug_assert!(slot.0 < self.fresh, "a slot of this pool");
        self.freed.push(slot.0);
    }

    /// Number of slots, free and occupied.
    pub fn slots(&self) -> usize {
        self.lengths.len()
    }

    /// Longest packet that fits, in bytes.
    pub fn slot_size(&self) -> usize {
        self.slot_size
    }

    /// Number of occupied slots.
    pub fn occupied(&self) -> usize {
        self.fresh as usize - self.freed.len()
    }

    /// Packets refused so far, by reason.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_back_as_it_went_in() {
        let mut pool = Pool::new(3, 4);
        let (a, b) = (pool.store(b"abcd").unwrap(), pool.store(b"e").unwrap());
        let empty = pool.store(b"").unwrap();
        assert_eq!(
            (pool.get(&a), pool.get(&b), pool.get(&empty)),
            (&b"abcd"[..], &b"e"[..], &b""[..])
        );
        assert_eq!(pool.occupied(), 3);
    }

    #[test]
    fn an_exhausted_pool_refuses_counts_and_recovers() {
        let mut pool = Pool::new(2, 8);
        let a = pool.store(b"one").unwrap();
        let _b = pool.store(b"two").unwrap();
        assert_eq!(pool.store(b"three"), None);
        assert_eq!(pool.store(b"four"), None);
        assert_eq!(pool.counters(), Counters { exhausted: 2, oversized: 0 });
        pool.free(a);
        let c = pool.store(b"five").unwrap();
        assert_eq!(pool.get(&c), b"five");
        assert_eq!(pool.occupied(), 2);
    }

    #[test]
    fn an_oversized_packet_is_counted_and_takes_no_slot() {
        let mut pool = Pool::new(1, 4);
        assert_eq!(pool.store(b"fives"), None);
        assert_eq!(pool.counters(), Counters { exhausted: 0, oversized: 1 });
        assert!(pool.store(b"four").is_some());
    }

    #[test]
    fn the_slot_freed_last_is_used_first_and_fresh_ones_last() {
        let mut pool = Pool::new(100, 8);
        let (a, b) = (pool.store(b"a").unwrap(), pool.store(b"b").unwrap());
        let (first, second) = (a.0, b.0);
        pool.free(a);
        pool.free(b);
        assert_eq!(pool.store(b"c").unwrap().0, second);
        assert_eq!(pool.store(b"d").unwrap().0, first);
        assert_eq!(pool.fresh, 2, "no third slot was touched");
    }

    #[test]
    fn untouched_slots_cost_nothing() {
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
        };
        let before = resident();
        let mut pool = Pool::new(131_072, 2048);
        let slot = pool.store(&[1; 2048]).unwrap();
        // 256 MiB in all; other tests of this process may touch some memory meanwhile.
        assert!(resident() < before + (64 << 20), "{before} {}", resident());
        assert_eq!(pool.get(&slot), [1; 2048]);
        assert!(Pool::worst_case(131_072, 2048) >= 256 << 20);
    }

    #[test]
    fn many_rounds_neither_leak_nor_mix_slots() {
        let mut pool = Pool::new(16, 8);
        let mut held = std::collections::VecDeque::new();
        for round in 0_u64..10_000 {
            if held.len() == 16 || (round % 3 == 0 && !held.is_empty()) {
                let (value, slot): (u64, Slot) = held.pop_front().unwrap();
                assert_eq!(pool.get(&slot), value.to_ne_bytes());
                pool.free(slot);
            }
            held.push_back((round, pool.store(&round.to_ne_bytes()).unwrap()));
            assert_eq!(pool.occupied(), held.len());
        }
    }
}
