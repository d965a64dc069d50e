//! Inner packets on their way to the TUN interface: the core's [`Sink`].

use mpt_io::buffer::{Pool, Slot};
use mpt_io::tun::{Coalescer, Counters, Device};
use mpt_proto::{Held, Sink};

/// The most packets held for all connections of a tunnel together, whatever their windows add up
/// to: 64 Ki of 2 KiB, 128 MiB, of which only what is used ever becomes real.
const MAX_HELD: usize = 65_536;

/// What a tunnel's inner packets pass through.
pub(super) struct Incoming {
    held: Pool,
    coalescer: Coalescer,
}

/// An [`Incoming`] with the interface it leads to.
pub(super) struct Delivery<'a> {
    device: &'a Device,
    incoming: &'a mut Incoming,
}

impl Incoming {
    /// Room for `windows` held packets, bounded, of up to `packet_size` bytes.
    pub(super) fn new(windows: usize, packet_size: usize) -> Self {
        Self { held: Pool::new(windows.min(MAX_HELD), packet_size), coalescer: Coalescer::new() }
    }

    pub(super) fn to<'a>(&'a mut self, device: &'a Device) -> Delivery<'a> {
        Delivery { device, incoming: self }
    }

    /// Ends a burst.
    pub(super) fn flush(&mut self, device: &Device) {
        self.coalescer.flush(device);
    }

    /// What became of the packets.
    pub(super) fn counters(&self) -> Counters {
        self.coalescer.counters()
    }
}

impl Sink for Delivery<'_> {
    fn deliver(&mut self, packet: &[u8]) {
        self.incoming.coalescer.push(self.device, packet);
    }

    fn hold(&mut self, packet: &[u8]) -> Option<Held> {
        self.incoming.held.store(packet).map(|slot| Held(slot.into_number()))
    }

    fn deliver_held(&mut self, held: Held) -> usize {
        let slot = Slot::from_number(held.0);
        let packet = self.incoming.held.get(&slot);
        let len = packet.len();
        self.incoming.coalescer.push(self.device, packet);
        self.incoming.held.free(slot);
        len
    }
}
