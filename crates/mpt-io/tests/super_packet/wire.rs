//! A stand-in for the kernel's side of a device.

use std::cell::RefCell;
use std::io;

use mpt_io::tun::{Offloads, Outlet, ReadCounters, SuperPacket, VnetHeader};

/// Takes writes and keeps them.
pub(crate) struct Recorder {
    offloads: Offloads,
    /// Kinds of segmentation that it refuses.
    refuses: Vec<u8>,
    writes: RefCell<Vec<(VnetHeader, Vec<u8>)>>,
}

impl Recorder {
    pub(crate) fn new(offloads: Offloads) -> Self {
        Self { offloads, refuses: Vec::new(), writes: RefCell::default() }
    }

    /// A kernel that does not support this type of segmentation although it was expected to.
    pub(crate) fn refusing(gso_type: u8) -> Self {
        Self { refuses: vec![gso_type], ..Self::new(Offloads::ALL) }
    }

    /// What was written, header and packet.
    pub(crate) fn writes(&self) -> Vec<(VnetHeader, Vec<u8>)> {
        self.writes.borrow().clone()
    }

    /// What was written, as packets.
    pub(crate) fn packets(&self) -> Vec<Vec<u8>> {
        self.writes().into_iter().flat_map(|(header, packet)| split(&header, &packet)).collect()
    }
}

impl Outlet for Recorder {
    fn offloads(&self) -> Offloads {
        self.offloads
    }

    fn write_with(&self, header: &VnetHeader, packet: &[u8]) -> io::Result<()> {
        assert!(self.offloads.vnet_header || *header == VnetHeader::NONE, "{header:?}");
        if self.refuses.contains(&header.gso_type) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        self.writes.borrow_mut().push((*header, packet.to_vec()));
        Ok(())
    }
}

/// All packets of a super-packet, finished.
pub(crate) fn split(header: &VnetHeader, packet: &[u8]) -> Vec<Vec<u8>> {
    let mut counters = ReadCounters::default();
    let packets = split_counting(header, packet, Offloads::ALL, &mut counters);
    assert_eq!(counters.dropped(), 0, "{header:?} {counters:?}");
    packets
}

/// All packets of what may be a super-packet.
pub(crate) fn split_counting(
    header: &VnetHeader,
    packet: &[u8],
    offloads: Offloads,
    counters: &mut ReadCounters,
) -> Vec<Vec<u8>> {
    let mut memory = [&header.to_bytes()[..], packet].concat();
    let mut super_packet = SuperPacket::new(&mut memory, offloads, counters);
    let mut packets = Vec::new();
    while let Some(packet) = super_packet.next_packet() {
        packets.push(packet.to_vec());
    }
    packets
}
