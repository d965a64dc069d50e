//! Two ways to keep a packet that came early.

use mpt_proto::{Held, MAX_WINDOW, Sink};

/// The length of a slot for a copy, in bytes.
const SLOT: usize = 2048;

/// Where early packets wait.
pub(crate) enum Keep {
    /// Where they were received.
    Reference,
    /// In a separate slot.
    Copy(Pool),
}

impl Keep {
    /// Slots for as many packets as can wait at all.
    pub(crate) fn copy() -> Self {
        let memory = vec![0; MAX_WINDOW as usize * SLOT];
        Self::Copy(Pool { memory, free: (0..MAX_WINDOW).rev().collect() })
    }
}

/// Slots of 2 KiB, of which that freed last is used first.
pub(crate) struct Pool {
    memory: Vec<u8>,
    free: Vec<u32>,
}

/// Receives packets, all of one length, while one datagram arrives.
pub(super) struct Receiver<'a, F> {
    pub(super) keep: &'a mut Keep,
    /// All datagrams, their length, and that of what is in front of the packet.
    pub(super) datagrams: &'a [u8],
    pub(super) size: usize,
    pub(super) header: usize,
    /// The number of the one that arrives.
    pub(super) place: usize,
    pub(super) deliver: &'a mut F,
}

impl<F: FnMut(&[u8])> Sink for Receiver<'_, F> {
    fn deliver(&mut self, packet: &[u8]) {
        (self.deliver)(packet);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        match self.keep {
            Keep::Reference => Some(Held(self.place as u32)),
            Keep::Copy(pool) => {
                let slot = pool.free.pop()?;
                pool.memory[slot as usize * SLOT..][..packet.len()].copy_from_slice(packet);
                Some(Held(slot))
            }
        }
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let (number, len) = (held.0 as usize, self.size - self.header);
        match self.keep {
            Keep::Reference => {
                (self.deliver)(&self.datagrams[number * self.size + self.header..][..len]);
            }
            Keep::Copy(pool) => {
                (self.deliver)(&pool.memory[number * SLOT..][..len]);
                pool.free.push(held.0);
            }
        }
        len
    }
}
