//! What a TUN device hands over, and what is handed back to it.
//!
//! The kernel is trusted, but a guest or container behind a device may write what it likes into the
//! header in front of a packet.

use std::cell::RefCell;
use std::io;

use mpt_io::tun::{Coalescer, Offloads, Outlet, ReadCounters, SuperPacket, VnetHeader};

use crate::input::Input;

/// A super-packet behind a byte that says what offloads there are. However its packets are fetched they
/// are the same, and those that were put together again come apart as they were.
pub fn super_packet(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let vnet_header = choice & 1 == 0;
    let offloads = Offloads {
        vnet_header,
        tso: vnet_header && choice & 2 == 0,
        uso: vnet_header && choice & 4 == 0,
    };
    let memory = input.rest();
    let (packets, counters) = finished(memory, offloads);
    assert_eq!(packets.len() as u64, counters.packets);
    assert!(packets.is_empty() || counters.dropped() == 0);
    assert!(packets.iter().all(|packet| packet.len() <= memory.len()));
    assert_eq!(emitted(memory, offloads), packets, "copied as where they lie");
    if packets.len() <= MAX_COALESCED {
        assert_eq!(coalesced(&packets, offloads), packets, "put together and taken apart");
    }
}

/// More would only take time: a super-packet of one-byte segments has tens of thousands.
const MAX_COALESCED: usize = 500;

fn finished(memory: &[u8], offloads: Offloads) -> (Vec<Vec<u8>>, ReadCounters) {
    let (mut memory, mut counters) = (memory.to_vec(), ReadCounters::default());
    let mut super_packet = SuperPacket::new(&mut memory, offloads, &mut counters);
    let mut packets = Vec::new();
    while let Some(packet) = super_packet.next_packet() {
        packets.push(packet.to_vec());
    }
    (packets, counters)
}

fn emitted(memory: &[u8], offloads: Offloads) -> Vec<Vec<u8>> {
    let (mut memory, mut counters) = (memory.to_vec(), ReadCounters::default());
    let mut super_packet = SuperPacket::new(&mut memory, offloads, &mut counters);
    let mut packets = Vec::new();
    while let Some(packet) = super_packet.next_unfinished() {
        let mut place = vec![0xee; packet.bytes().len()];
        packet.emit(&mut place);
        packets.push(place);
    }
    packets
}

fn coalesced(packets: &[Vec<u8>], offloads: Offloads) -> Vec<Vec<u8>> {
    let outlet = Apart { offloads, packets: RefCell::default() };
    let mut coalescer = Coalescer::new();
    for packet in packets {
        coalescer.push(&outlet, packet);
    }
    coalescer.flush(&outlet);
    assert_eq!(coalescer.counters().written, packets.len() as u64);
    outlet.packets.into_inner()
}

/// A device that takes apart again what it is given.
struct Apart {
    offloads: Offloads,
    packets: RefCell<Vec<Vec<u8>>>,
}

impl Outlet for Apart {
    fn offloads(&self) -> Offloads {
        self.offloads
    }

    fn write_with(&self, header: &VnetHeader, packet: &[u8]) -> io::Result<()> {
        let mut memory = Vec::new();
        if self.offloads.vnet_header {
            memory.extend_from_slice(&header.to_bytes());
        } else {
            assert_eq!(*header, VnetHeader::NONE, "nothing is left to a device without a header");
        }
        memory.extend_from_slice(packet);
        let (packets, counters) = finished(&memory, self.offloads);
        assert_eq!(counters.dropped(), 0, "what is written is what it claims to be");
        self.packets.borrow_mut().extend(packets);
        Ok(())
    }
}
