//! Inner packets on their way to the TUN interface: the core's [`Sink`].

use mpt_io::buffer::{Pool, Slot};
use mpt_io::tun::{Coalescer, Counters, Device};
use mpt_io::udp::{Kept, Receive};
use mpt_proto::{Held, Sink};

use super::clamp::Clamp;

/// The most packets held for all connections of a tunnel together, whatever their windows add up
/// to: 64 Ki of 2 KiB, 128 MiB, of which only what is used ever becomes real.
const MAX_HELD: usize = 65_536;

/// What a tunnel's inner packets pass through.
pub(super) struct Incoming {
    /// The held packets by their number.
    held: Vec<Option<(Place, Checksum)>>,
    /// The numbers that are not used, the next one on top.
    numbers: Vec<u32>,
    copies: Pool,
    door: Door,
}

/// The last step to the interface.
struct Door {
    coalescer: Coalescer,
    clamp: Clamp,
    /// What is true of packets whose datagrams do not say.
    unsaid: Checksum,
}

/// What is known of a packet's transport checksum.
#[derive(Clone, Copy)]
enum Checksum {
    /// It is there.
    Complete,
    /// It may be partial, which the packet itself shows.
    Either,
    /// It is partial: the datagram says so.
    Partial,
}

/// Where a held packet is.
enum Place {
    /// Where it was received.
    Kept(Kept),
    /// In the pool of copies.
    Copied(Slot),
}

/// An [`Incoming`] between the memory that packets are in and the interface they go to.
pub(super) struct Delivery<'a> {
    receive: &'a Receive,
    device: &'a Device,
    incoming: &'a mut Incoming,
    checksum: Checksum,
}

impl Incoming {
    /// The memory that is reserved for packets of up to `packet_size` bytes.
    pub(super) const fn reserved(packet_size: usize) -> usize {
        Pool::worst_case(MAX_HELD, packet_size)
    }

    /// Nothing held, of what may be up to `packet_size` bytes. `either`: packets may have partial
    /// checksums without being said to.
    pub(super) fn new(packet_size: usize, either: bool) -> Self {
        let unsaid = if either { Checksum::Either } else { Checksum::Complete };
        Self {
            held: Vec::new(),
            numbers: Vec::new(),
            copies: Pool::new(MAX_HELD, packet_size),
            door: Door { coalescer: Coalescer::new(), clamp: Clamp::default(), unsaid },
        }
    }

    pub(super) fn to<'a>(&'a mut self, receive: &'a Receive, device: &'a Device) -> Delivery<'a> {
        let checksum = self.door.unsaid;
        Delivery { receive, device, incoming: self, checksum }
    }

    /// Ends a burst.
    pub(super) fn flush(&mut self, device: &Device) {
        self.door.coalescer.flush(device);
    }

    /// Bytes of memory that packets which wait for others have taken at the most.
    pub(super) fn memory(&self) -> usize {
        self.copies.touched()
    }

    /// What became of the packets.
    pub(super) fn counters(&self) -> Counters {
        self.door.coalescer.counters()
    }

    /// Has TCP announce no more than what fits `mtu` bytes; `None`: whatever it likes.
    pub(super) fn clamp_mss(&mut self, mtu: Option<u32>) {
        self.door.clamp.set(mtu);
    }

    /// SYNs that were made to announce less.
    pub(super) fn lowered(&self) -> u64 {
        self.door.clamp.lowered
    }

    /// A number for a packet to be held; `None` if there are as many as there may be.
    fn number(&mut self) -> Option<u32> {
        if self.numbers.is_empty() && self.held.len() < self.copies.slots() {
            self.numbers.push(self.held.len() as u32);
            self.held.push(None);
        }
        self.numbers.pop()
    }
}

impl Delivery<'_> {
    /// The next packet has a partial checksum, or is not said to have one.
    pub(super) fn set_partial(&mut self, partial: bool) {
        let unsaid = self.incoming.door.unsaid;
        self.checksum = if partial { Checksum::Partial } else { unsaid };
    }
}

impl Sink for Delivery<'_> {
    fn deliver(&mut self, packet: &[u8]) {
        self.incoming.door.push(self.device, packet, self.checksum);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        let number = self.incoming.number()?;
        let kept = self.receive.keep(packet).map(Place::Kept);
        let place = kept.or_else(|| self.incoming.copies.store(packet).map(Place::Copied));
        if place.is_none() {
            self.incoming.numbers.push(number);
            return None;
        }
        self.incoming.held[number as usize] = place.map(|place| (place, self.checksum));
        Some(Held(number))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let Incoming { held: places, numbers, copies, door } = &mut *self.incoming;
        let Some((place, checksum)) = places[held.0 as usize].take() else { return 0 };
        numbers.push(held.0);
        let packet = match &place {
            Place::Kept(kept) => self.receive.kept(kept),
            Place::Copied(slot) => copies.get(slot),
        };
        let len = packet.len();
        door.push(self.device, packet, checksum);
        match place {
            Place::Kept(kept) => self.receive.release(kept),
            Place::Copied(slot) => copies.free(slot),
        }
        len
    }
}

impl Door {
    fn push(&mut self, device: &Device, packet: &[u8], checksum: Checksum) {
        let Self { coalescer, clamp, .. } = self;
        let packet = clamp.incoming(packet, !matches!(checksum, Checksum::Complete));
        match checksum {
            Checksum::Complete => coalescer.push(device, packet),
            Checksum::Either => coalescer.push_either(device, packet),
            Checksum::Partial => coalescer.push_partial(device, packet),
        }
    }
}
