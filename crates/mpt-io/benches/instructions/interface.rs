//! Between TUN interface and tunnel, without the kernel: super-packets split, and put together again.

use std::hint::black_box;

use mpt_io::tun::{Coalescer, Offloads, ReadCounters, SuperPacket, VnetHeader};

use super::Case;
use super::arrivals::{RECEIVER, SENDER};
use super::nowhere::Nowhere;

/// Bytes of payload in each packet.
const PAYLOAD: usize = 1360;

/// Packets in a super-packet.
const PACKETS: usize = 44;

/// The protocol of a super-packet.
#[derive(Clone, Copy)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

pub(super) fn split_tcp() -> Box<dyn Case> {
    Box::new(Split(Supply::new(Protocol::Tcp)))
}

pub(super) fn split_udp() -> Box<dyn Case> {
    Box::new(Split(Supply::new(Protocol::Udp)))
}

/// The same super-packet again and again: splitting writes into it.
pub(super) struct Supply {
    pristine: Vec<u8>,
    memory: Vec<u8>,
    counters: ReadCounters,
}

impl Supply {
    pub(super) fn new(protocol: Protocol) -> Self {
        let pristine = super_packet(protocol);
        Self { memory: pristine.clone(), pristine, counters: ReadCounters::default() }
    }

    pub(super) fn renew(&mut self) {
        self.memory.copy_from_slice(&self.pristine);
    }

    pub(super) fn read(&mut self) -> SuperPacket<'_> {
        SuperPacket::new(&mut self.memory, Offloads::ALL, &mut self.counters)
    }
}

struct Split(Supply);

impl Case for Split {
    fn packets(&self) -> usize {
        PACKETS
    }

    fn prepare(&mut self) {
        self.0.renew();
    }

    fn round(&mut self) {
        let mut read = self.0.read();
        while let Some(packet) = read.next_packet() {
            black_box(packet);
        }
    }

    fn check(&self) {
        assert_eq!(self.0.counters.dropped(), 0, "{:?}", self.0.counters);
    }
}

pub(super) fn coalesce_tcp() -> Box<dyn Case> {
    Box::new(Coalesce { packets: packets(Protocol::Tcp), coalescer: Coalescer::new() })
}

pub(super) fn coalesce_udp() -> Box<dyn Case> {
    Box::new(Coalesce { packets: packets(Protocol::Udp), coalescer: Coalescer::new() })
}

struct Coalesce {
    packets: Vec<Vec<u8>>,
    coalescer: Coalescer,
}

impl Case for Coalesce {
    fn packets(&self) -> usize {
        self.packets.len()
    }

    fn round(&mut self) {
        for packet in &self.packets {
            self.coalescer.push(&Nowhere, packet);
        }
        self.coalescer.flush(&Nowhere);
    }

    fn check(&self) {
        check_merged(&self.coalescer);
    }
}

/// Panics unless every write carried a whole super-packet.
pub(super) fn check_merged(coalescer: &Coalescer) {
    let counters = coalescer.counters();
    assert_eq!(counters.written, counters.super_packets * PACKETS as u64, "{counters:?}");
}

/// The finished packets of a super-packet.
pub(super) fn packets(protocol: Protocol) -> Vec<Vec<u8>> {
    let mut supply = Supply::new(protocol);
    let mut read = supply.read();
    let mut packets = Vec::new();
    while let Some(packet) = read.next_packet() {
        packets.push(packet.to_vec());
    }
    assert_eq!(packets.len(), PACKETS);
    packets
}

/// Packets from the sender to the receiver in one, as the kernel hands them out: with the sum of the
/// pseudo header where the checksum belongs.
fn super_packet(protocol: Protocol) -> Vec<u8> {
    let (number, gso_type, csum_offset, mut transport) = match protocol {
        Protocol::Tcp => {
            let ports_to_urgent =
                [1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 7, 0x80, 0x10, 1, 0, 0, 0, 0, 0];
            let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
            let header = [&ports_to_urgent[..], &timestamps].concat();
            (6, VnetHeader::GSO_TCPV4, 16, header)
        }
        Protocol::Udp => (17, VnetHeader::GSO_UDP_L4, 6, vec![1, 2, 3, 4, 0, 0, 0, 0]),
    };
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, number, 0, 0];
    ip.extend(SENDER.octets());
    ip.extend(RECEIVER.octets());
    let hdr_len = (ip.len() + transport.len()) as u16;
    let (len, behind_ip) = (PACKETS * PAYLOAD, transport.len() + PACKETS * PAYLOAD);
    let total = ip.len() + behind_ip;
    ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());

    let words = ip[12..].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>() + u32::from(number) + behind_ip as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    transport[csum_offset..][..2].copy_from_slice(&(sum as u16).to_be_bytes());

    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type,
        hdr_len,
        gso_size: PAYLOAD as u16,
        csum_start: ip.len() as u16,
        csum_offset: csum_offset as u16,
    };
    let payload: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
    [&header.to_bytes()[..], &ip, &transport, &payload].concat()
}
