//! The sink of a host: what its core delivers, and what it has the host keep.

use mpt_proto::{Held, Sink};

/// Keeps held packets in numbered slots and delivered ones in order.
///
/// It is as strict as the contract of [`Sink`]: a number that was not given out, or is given back
/// twice, is a defect of the core and ends the run.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) delivered: Vec<Vec<u8>>,
    slots: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
    limit: usize,
}

impl Inbox {
    /// Keeps at most `limit` packets.
    pub(super) fn new(limit: usize) -> Self {
        Self { delivered: Vec::new(), slots: Vec::new(), free: Vec::new(), limit }
    }

    pub(super) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.push(packet.to_vec());
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        if self.held() >= self.limit {
            return None;
        }
        let packet = Some(packet.to_vec());
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                Some(Held(slot))
            }
            None => {
                self.slots.push(packet);
                Some(Held(self.slots.len() as u32 - 1))
            }
        }
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let packet = self.slots.get_mut(held.0 as usize).and_then(Option::take);
        let packet = packet.expect("the core gives each held number back once");
        self.free.push(held.0);
        let len = packet.len();
        self.delivered.push(packet);
        len
    }
}
