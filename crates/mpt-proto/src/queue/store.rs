//! The bytes of the packets that wait.

/// Where a packet stands in a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// Inner packets that wait, each in a buffer of its own. Buffers are used again, so that nothing is allocated once
/// there are enough.
#[derive(Debug, Default)]
pub(crate) struct Store {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Packet {
    bytes: Vec<u8>,
    /// Whether its TCP or UDP checksum is only the sum of the pseudo-header.
    partial: bool,
}

/// Buffers that are kept for packets to come.
const KEPT: usize = 1024;

impl Store {
    /// A place for a packet of this length, whose bytes are to be [written](Self::fill).
    pub(crate) fn take(&mut self, len: usize) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            (self.packets.len() - 1) as u32
        });
        let packet = &mut self.packets[place as usize];
        packet.bytes.resize(len, 0);
        packet.partial = false;
        Place(place)
    }

    /// Another place with the same packet.
    pub(crate) fn copy(&mut self, from: Place) -> Place {
        let place = self.take(0);
        self.copy_to(from, place);
        place
    }

    /// The packet is written to another place as well, as it is.
    pub(crate) fn copy_to(&mut self, Place(from): Place, Place(to): Place) {
        let Packet { bytes, partial } = std::mem::take(&mut self.packets[from as usize]);
        let copy = &mut self.packets[to as usize];
        copy.bytes.clear();
        copy.bytes.extend_from_slice(&bytes);
        copy.partial = partial;
        self.packets[from as usize] = Packet { bytes, partial };
    }

    /// Writes the packet. `fill` returns whether its checksum is partial.
    pub(crate) fn fill(&mut self, place: Place, fill: impl FnOnce(&mut [u8]) -> bool) {
        let packet = &mut self.packets[place.0 as usize];
        packet.partial = fill(&mut packet.bytes);
    }

    /// The packet, and whether its checksum is partial.
    pub(crate) fn get(&self, place: Place) -> (&[u8], bool) {
        let packet = &self.packets[place.0 as usize];
        (&packet.bytes, packet.partial)
    }

    /// The packet, to be changed.
    pub(crate) fn get_mut(&mut self, place: Place) -> &mut [u8] {
        &mut self.packets[place.0 as usize].bytes
    }

    /// The packet has left.
    pub(crate) fn give_back(&mut self, Place(place): Place) {
        if self.free.len() >= KEPT {
            self.packets[place as usize].bytes = Vec::new();
        }
        self.free.push(place);
    }

    /// Whether no packet waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.packets.len()
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        let bytes: usize = self.packets.iter().map(|packet| packet.bytes.capacity()).sum();
        self.packets.capacity() * size_of::<Packet>() + self.free.capacity() * 4 + bytes
    }
}
