//! Bit by bit: what is sent into one device, and what a capture sees come out of another.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use etherparse::{Icmpv4Type, Icmpv6Type, IpNumber, PacketBuilder};
use mpt_io::netlink::Netlink;
use mpt_io::tun::{
    Burst, Coalescer, Device, Offloads, Options, ReadCounters, SuperPacket, VnetHeader,
};

use super::{open, options};
use crate::flow::{CWR, ECE, Extension, FIN, Flow, Ip, PSH, Transport};
use crate::world::readable;
use crate::{Outcome, Test};

pub(crate) const TESTS: &[Test] = &[
    ("tun::every_shape_arrives_bit_by_bit", || every_shape(Offloads::ALL)),
    ("tun::every_shape_arrives_without_any_offload", || every_shape(Offloads::NONE)),
];

/// A packet as the kernel is given it, and the packets that it stands for.
type Shape = (VnetHeader, Vec<u8>, Vec<Vec<u8>>);

/// A packet socket on one interface, with the header in front of packets.
struct Tap(File);

fn every_shape(offloads: Offloads) -> Outcome {
    let near = open(&Options { offloads, ..options("near") })?;
    let far = open(&Options { offloads, ..options("far") })?;
    for device in [&near, &far] {
        let mut netlink = Netlink::open().unwrap();
        netlink.disable_address_generation(device.index()).unwrap();
        netlink.set_up(device.index(), true).unwrap();
    }
    let (mut sender, mut capture) = (Tap::open(&near), Tap::open(&far));
    let (mut burst, mut coalescer) = (Burst::new(), Coalescer::new());
    let shapes = shapes();
    let mut read = Vec::new();
    for (header, packet, expected) in &shapes {
        sender.send(header, packet);
        for _ in 0..expected.len() {
            if read_one(&near, &mut burst, &mut coalescer, &far, &mut read) == expected.len() {
                break;
            }
        }
    }
    coalescer.flush(&far);
    let expected: Vec<&Vec<u8>> = shapes.iter().flat_map(|(_, _, packets)| packets).collect();
    assert_same("read", &read, &expected);
    assert_eq!(burst.counters().dropped(), 0, "{:?}", burst.counters());

    let mut captured = Vec::new();
    let mut reads = 0;
    while captured.len() < expected.len() {
        captured.extend(capture.receive());
        reads += 1;
    }
    assert_same("captured", &captured, &expected);
    let counters = coalescer.counters();
    assert_eq!(counters.written, expected.len() as u64, "{counters:?}");
    let merged = offloads == Offloads::ALL;
    assert_eq!(reads < captured.len(), merged, "{counters:?}");
    assert_eq!(counters.corrupt, if merged { 4 } else { 0 }, "{counters:?}");
    Ok(())
}

/// Carries one read from device to device; how many packets it held.
fn read_one(
    from: &Device,
    burst: &mut Burst,
    coalescer: &mut Coalescer,
    to: &Device,
    copies: &mut Vec<Vec<u8>>,
) -> usize {
    let before = copies.len();
    while copies.len() == before {
        readable(from);
        let mut super_packet = from.read(burst).unwrap().unwrap();
        while let Some(packet) = super_packet.next_packet() {
            if is_ours(packet) {
                coalescer.push(to, packet);
                copies.push(packet.to_vec());
            }
        }
    }
    copies.len() - before
}

/// Whether the test sent this packet. The kernel sends packets by itself.
fn is_ours(packet: &[u8]) -> bool {
    match packet[0] >> 4 {
        4 => packet[12..16] == [10, 9, 0, 1],
        _ => packet[8..10] == [0xfd, 0],
    }
}

fn assert_same(what: &str, packets: &[Vec<u8>], expected: &[&Vec<u8>]) {
    for (number, (packet, expected)) in packets.iter().zip(expected).enumerate() {
        assert_eq!(&packet, expected, "{what}, packet {number}");
    }
    assert_eq!(packets.len(), expected.len(), "{what}");
}

/// Every kind of packet, in an order in which some can be merged and some come in between.
fn shapes() -> Vec<Shape> {
    let payload: Vec<u8> = (0..20_003_u32).map(|i| (i * 31 / 7) as u8).collect();
    let mut shapes = Vec::new();
    for flow in Flow::mergeable() {
        // Many segments, with flags that belong to one end; an odd rest; a lone one.
        let mut ended = flow.clone();
        if let Transport::Tcp { flags, .. } = &mut ended.transport {
            *flags |= PSH | FIN | ECE;
        }
        for (flow, len, size) in [(&flow, 20_003, 1440), (&ended, 9001, 999), (&flow, 60, 1)] {
            shapes.push(many(flow, &payload[..len], size));
        }
        // One packet, its checksum open; then packets that follow one another.
        let (header, packet) = flow.partial(&payload[..77]);
        shapes.push((header, packet, flow.packets(&payload[..77], 77)));
        let run = flow.continued(0, 1).packets(&payload[..5000], 1200);
        shapes.extend(run.into_iter().map(alone));
        // A wrong checksum in the middle of a run.
        let mut run = flow.packets(&payload[..3600], 1200);
        *run[1].last_mut().unwrap() ^= 0x20;
        shapes.extend(run.into_iter().map(alone));
        // No payload at all.
        let (header, packet) = flow.partial(&[]);
        shapes.push((header, packet, vec![flow.empty()]));
    }
    let mut marked = Flow::tcp4();
    if let Transport::Tcp { flags, .. } = &mut marked.transport {
        *flags |= CWR;
    }
    shapes.extend(marked.packets(&payload[..3000], 1000).into_iter().map(alone));
    shapes.extend(with_options(&payload));
    shapes.extend(other_protocols(&payload).into_iter().map(alone));
    shapes.extend(fragments(&payload).into_iter().map(alone));
    shapes
}

/// Options and extension headers, which are never merged.
fn with_options(payload: &[u8]) -> Vec<Shape> {
    let ip = Ip::V4 { identification: 9, dont_fragment: false, options: vec![1; 8] };
    let mut shapes = vec![
        many(&Flow { ip: ip.clone(), ..Flow::tcp4() }, payload, 1000),
        many(&Flow { ip, ..Flow::udp4() }, &payload[..5001], 1000),
    ];
    for number in [0, 60] {
        let ip = Ip::V6 { flow_label: 1, extensions: vec![Extension { number, len: 1 }] };
        for flow in [Flow::tcp6(), Flow::udp6()] {
            let flow = Flow { ip: ip.clone(), ..flow };
            let (header, packet) = flow.partial(&payload[..501]);
            shapes.push((header, packet, flow.packets(&payload[..501], 501)));
            shapes.extend(flow.packets(&payload[..2400], 1200).into_iter().map(alone));
        }
    }
    shapes
}

/// Echoes, and protocols of which nothing is known.
fn other_protocols(payload: &[u8]) -> Vec<Vec<u8>> {
    let v4 = || PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 9);
    let v6 = || PacketBuilder::ipv6(FD, [0xfd; 16], 9);
    let echo = |payload: &[u8]| {
        let header = etherparse::IcmpEchoHeader { id: 1, seq: 2 };
        let mut packets = [Vec::new(), Vec::new()];
        let four = v4().icmpv4(Icmpv4Type::EchoRequest(header));
        four.write(&mut packets[0], payload).unwrap();
        let six = v6().icmpv6(Icmpv6Type::EchoRequest(header));
        six.write(&mut packets[1], payload).unwrap();
        packets
    };
    let mut packets = [echo(&payload[..57]), echo(&[])].concat();
    for protocol in [47, 50, 132, 253] {
        let mut both = [Vec::new(), Vec::new()];
        v4().write(&mut both[0], IpNumber(protocol), &payload[..100]).unwrap();
        v6().write(&mut both[1], IpNumber(protocol), &payload[..101]).unwrap();
        packets.extend(both);
    }
    packets
}

/// Fragments in both versions, first and last.
fn fragments(payload: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (place, number) in [(0x2000_u16, 0_u8), (25, 1)] {
        let mut packet = Flow::udp4().packets(&payload[..192], 192).remove(0);
        packet[6..8].copy_from_slice(&place.to_be_bytes());
        let mut header = etherparse::Ipv4Header::from_slice(&packet).unwrap().0;
        header.header_checksum = header.calc_header_checksum();
        packet.splice(..20, header.to_bytes());
        packets.push(packet);
        let more = [17, 0, 0, 1 - number, 0, 0, 0, 7];
        let behind = [&more[..], &payload[..192]].concat();
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6(FD, [0xfd; 16], 9);
        builder.write(&mut packet, IpNumber(44), &behind).unwrap();
        packets.push(packet);
    }
    packets
}

const FD: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

fn many(flow: &Flow, payload: &[u8], size: usize) -> Shape {
    let (header, packet) = flow.super_packet(payload, size);
    (header, packet, flow.packets(payload, size))
}

fn alone(packet: Vec<u8>) -> Shape {
    (VnetHeader::NONE, packet.clone(), vec![packet])
}

impl Tap {
    fn open(device: &Device) -> Self {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: socket() takes numbers only.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, protocol.into()) };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the descriptor was just opened, and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let on: libc::c_int = 1;
        let buffer: libc::c_int = 4 << 20;
        const PACKET_VNET_HDR: libc::c_int = 15;
        for (level, option, value) in
            [(libc::SOL_PACKET, PACKET_VNET_HDR, &on), (libc::SOL_SOCKET, libc::SO_RCVBUF, &buffer)]
        {
            // SAFETY: both options read one C int, which is what the pointer leads to.
            let result = unsafe {
                let len = size_of::<libc::c_int>() as libc::socklen_t;
                libc::setsockopt(
                    fd.as_raw_fd(),
                    level,
                    option,
                    std::ptr::from_ref(value).cast(),
                    len,
                )
            };
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
        }
        // SAFETY: sockaddr_ll is plain data for which all zeroes is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::sa_family_t;
        address.sll_protocol = protocol;
        address.sll_ifindex = device.index() as libc::c_int;
        // SAFETY: bind() reads an address of the length given, which is what the pointer leads to.
        let result = unsafe {
            let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len)
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        Self(fd.into())
    }

    fn send(&mut self, header: &VnetHeader, packet: &[u8]) {
        let bytes = [&header.to_bytes()[..], packet].concat();
        let sent = self.0.write(&bytes);
        assert!(sent.is_ok_and(|len| len == bytes.len()), "{header:?} {}", packet.len());
    }

    /// The packets in the next capture.
    fn receive(&mut self) -> Vec<Vec<u8>> {
        readable(&self.0);
        let mut memory = vec![0; 70_000];
        let len = self.0.read(&mut memory).unwrap();
        let mut counters = ReadCounters::default();
        let mut read = SuperPacket::new(&mut memory[..len], Offloads::ALL, &mut counters);
        let mut packets = Vec::new();
        while let Some(packet) = read.next_packet() {
            if is_ours(packet) {
                packets.push(packet.to_vec());
            }
        }
        assert_eq!(counters.dropped(), 0, "{counters:?}");
        packets
    }
}
