//! Packets of every kind, each built from scratch.

use std::net::IpAddr;

use mpt_lab::topology::Side;
use mpt_proto::wire::checksum::internet;

use crate::site::inner;

/// The payload of those packets that the device may merge; no TCP or UDP has more.
pub(super) const PAYLOAD: usize = 1200;

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const DESTINATION: u8 = 60;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4];
const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 9, 0, 0, 0, 10, 0];

/// An IP header before its payload is known.
#[derive(Clone)]
struct Ip {
    version: u8,
    /// Type of service or traffic class.
    tos: u8,
    /// Of IPv4, and the flow label of IPv6.
    identification: u16,
    /// The flags and the offset of IPv4.
    fragment: u16,
    options: Vec<u8>,
    /// Of IPv6: number and content behind the first two bytes.
    extensions: Vec<(u8, Vec<u8>)>,
}

impl Ip {
    fn new(version: u8) -> Self {
        let (options, extensions) = (Vec::new(), Vec::new());
        Self { version, tos: 0, identification: 77, fragment: 0x4000, options, extensions }
    }

    fn addresses(&self) -> Vec<u8> {
        let octets = |side| match inner(side, self.version) {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        [octets(Side::Left), octets(Side::Right)].concat()
    }

    fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        if self.version == 4 {
            let words = 5 + self.options.len() / 4;
            let mut header = vec![0x40 | words as u8, self.tos];
            header.extend(((4 * words + payload.len()) as u16).to_be_bytes());
            header.extend(self.identification.to_be_bytes());
            header.extend(self.fragment.to_be_bytes());
            header.extend([61, protocol, 0, 0]);
            header.extend(self.addresses());
            header.extend(&self.options);
            let checksum = internet(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            return [&header, payload].concat();
        }
        let mut rest = Vec::new();
        let followers = self.extensions.iter().skip(1).map(|(number, _)| *number);
        for ((number, content), next) in self.extensions.iter().zip(followers.chain([protocol])) {
            // A fragment header has no length of its own.
            let len = if *number == FRAGMENT { 0 } else { (content.len() + 2) / 8 - 1 };
            rest.extend([next, len as u8]);
            rest.extend(content);
        }
        rest.extend(payload);
        let first = self.extensions.first().map_or(protocol, |(number, _)| *number);
        let mut header = vec![0x60 | self.tos >> 4, self.tos << 4];
        header.extend(self.identification.to_be_bytes());
        header.extend((rest.len() as u16).to_be_bytes());
        header.extend([first, 61]);
        header.extend(self.addresses());
        [header, rest].concat()
    }

    /// With the checksum over the pseudo-header at that place of `message`.
    fn summed(&self, protocol: u8, mut message: Vec<u8>, checksum: usize) -> Vec<u8> {
        let len = (message.len() as u32).to_be_bytes();
        let pseudo = [&self.addresses()[..], &len, &[0, 0, 0, protocol]].concat();
        let sum = internet(&[&pseudo[..], &message].concat());
        message[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
        self.packet(protocol, &message)
    }

    fn udp(&self, payload: &[u8]) -> Vec<u8> {
        self.summed(UDP, udp(payload), 6)
    }

    fn tcp(&self, flags: u8, number: usize, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let words = 5 + options.len() / 4;
        let sequence = 0xffff_f000_u32.wrapping_add(number as u32);
        let mut segment = [6000_u16.to_be_bytes(), 6001_u16.to_be_bytes()].concat();
        segment.extend(sequence.to_be_bytes());
        segment.extend([0, 0, 0, 9, (words << 4) as u8, flags, 0x20, 0, 0, 0, 0, 0]);
        if flags & URG != 0 {
            segment[18..20].copy_from_slice(&5_u16.to_be_bytes());
        }
        segment.extend(options);
        segment.extend(payload);
        self.summed(TCP, segment, 16)
    }

    /// Packets of one flow that follow one another, the last one shorter: what a receiver merges.
    fn tcp_run(&self, options: &[u8]) -> Vec<Vec<u8>> {
        let bytes = bytes(5 * PAYLOAD + 77);
        let pieces = bytes.chunks(PAYLOAD).enumerate();
        let packet = |(number, piece): (usize, &[u8])| {
            self.following(number).tcp(ACK, number * PAYLOAD, options, piece)
        };
        pieces.map(packet).collect()
    }

    fn udp_run(&self) -> Vec<Vec<u8>> {
        let bytes = bytes(5 * PAYLOAD + 77);
        let pieces = bytes.chunks(PAYLOAD).enumerate();
        pieces.map(|(number, piece)| self.following(number).udp(piece)).collect()
    }

    /// The header of a packet that comes so many behind.
    fn following(&self, number: usize) -> Self {
        let step = if self.version == 4 { number as u16 } else { 0 };
        Self { identification: self.identification + step, ..self.clone() }
    }
}

/// Without its checksum.
fn udp(payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() + 8) as u16;
    let header = [6000, 6001, len, 0].map(u16::to_be_bytes).concat();
    [&header, payload].concat()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 / 7) as u8).collect()
}

/// Everything, in an order in which some can be merged and some come in between.
pub(super) fn all() -> Vec<Vec<u8>> {
    let mut packets = runs().concat();
    for version in [4, 6] {
        packets.extend(tcp_shapes(&Ip::new(version)));
        packets.extend(udp_shapes(&Ip::new(version)));
        packets.extend(echoes(&Ip::new(version)));
        for protocol in [47, 50, 132, 253] {
            packets.push(Ip::new(version).packet(protocol, &bytes(101)));
        }
    }
    packets.extend(v4_shapes());
    packets.extend(v6_shapes());
    packets
}

/// Runs that are merged.
pub(super) fn runs() -> Vec<Vec<Vec<u8>>> {
    let mut runs = Vec::new();
    for version in [4, 6] {
        let ip = Ip::new(version);
        runs.extend([ip.tcp_run(&[]), ip.tcp_run(&TIMESTAMPS), ip.udp_run()]);
    }
    runs
}

fn tcp_shapes(ip: &Ip) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for flags in
        [SYN, SYN | ACK | ECE, ACK, ACK | FIN, ACK | PSH, ACK | URG, RST, ACK | ECE, 0xff, 0]
    {
        for options in [&[][..], &TIMESTAMPS, &SACK, &[2, 4, 5, 0xb4, 1, 3, 3, 7]] {
            for len in [0, 1, 500, PAYLOAD] {
                packets.push(ip.tcp(flags, 0, options, &bytes(len)));
            }
        }
    }
    // A run with marks in its middle and at its ends.
    for mark in [PSH, FIN | PSH, ECE, CWR, URG] {
        for place in 0..3 {
            let segment = |number| {
                let flags = if number == place { ACK | mark } else { ACK };
                ip.following(number).tcp(flags, number * PAYLOAD, &TIMESTAMPS, &bytes(PAYLOAD))
            };
            packets.extend((0..3).map(segment));
        }
    }
    // Twice the same, one missing, and backwards.
    for number in [0, 0, 2, 1] {
        packets.push(ip.following(number).tcp(ACK, number * PAYLOAD, &[], &bytes(PAYLOAD)));
    }
    // Every DSCP and ECN, in a run that would be one but for that.
    for (number, tos) in (0..=255).step_by(3).enumerate() {
        let ip = Ip { tos, ..ip.following(number) };
        packets.push(ip.tcp(ACK, number * PAYLOAD, &[], &bytes(PAYLOAD)));
    }
    packets
}

fn udp_shapes(ip: &Ip) -> Vec<Vec<u8>> {
    // Only what is followed by nothing longer, and then by nothing at all, is merged.
    let lens = [0, 1, 2, 57, 58, 999, 1000, PAYLOAD, PAYLOAD, 1];
    let mut packets: Vec<_> = lens.iter().map(|&len| ip.udp(&bytes(len))).collect();
    // No checksum, which only IPv4 knows; the others drop it at the end, not on the way.
    packets.extend([PAYLOAD; 3].map(|len| ip.packet(UDP, &udp(&bytes(len)))));
    // One whose sum is zero is sent as all ones (RFC 768).
    let mut all_ones = bytes(PAYLOAD);
    all_ones[..2].fill(0);
    let sum = ip.udp(&all_ones);
    let at = sum.len() - PAYLOAD - 2;
    all_ones[..2].copy_from_slice(&sum[at..at + 2]);
    let mut all_ones = ip.udp(&all_ones);
    assert_eq!(all_ones[at..at + 2], [0, 0]);
    all_ones[at..at + 2].fill(0xff);
    packets.extend([all_ones.clone(), all_ones]);
    packets
}

fn echoes(ip: &Ip) -> Vec<Vec<u8>> {
    let message = |len| [&[0, 0, 0, 0, 0, 9, 0, 1][..], &bytes(len)].concat();
    // Replies without a request.
    let echo = |len| {
        let mut message = message(len);
        if ip.version == 6 {
            message[0] = 129;
            return ip.summed(ICMP_V6, message, 2);
        }
        let sum = internet(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        ip.packet(ICMP, &message)
    };
    [0, 57, 1380].map(echo).to_vec()
}

/// Options and fragments of IPv4.
fn v4_shapes() -> Vec<Vec<u8>> {
    let ip = Ip::new(4);
    // No operation and end; record route with room.
    let lists = [vec![1, 1, 1, 0], [&[7, 11, 4][..], &[0; 8], &[0]].concat()];
    let mut packets = Vec::new();
    for options in lists {
        let ip = Ip { options, ..ip.clone() };
        packets.extend([ip.tcp_run(&[]), ip.udp_run(), vec![ip.udp(&bytes(33))]].concat());
    }
    // With and without leave to fragment, and the reserved bit.
    for fragment in [0, 0x4000, 0x8000] {
        let ip = Ip { fragment, ..ip.clone() };
        packets.extend([ip.udp(&bytes(100)), ip.tcp(ACK, 0, &[], &bytes(100))]);
    }
    // Fragments: first, middle, last; of TCP and UDP.
    for protocol in [TCP, UDP] {
        for fragment in [0x2000, 0x2000 + 24, 48] {
            packets.push(Ip { fragment, ..ip.clone() }.packet(protocol, &bytes(192)));
        }
    }
    packets
}

/// Extension headers of IPv6.
fn v6_shapes() -> Vec<Vec<u8>> {
    let padding = |number| (number, vec![1, 4, 0, 0, 0, 0]);
    // No segments left, of an unused type (RFC 4727).
    let routing = (ROUTING, vec![253, 0, 0, 0, 0, 0]);
    let fragment = |place: u16| (FRAGMENT, [&place.to_be_bytes()[..], &[0, 0, 0, 7]].concat());
    let chains = [
        vec![padding(HOP_BY_HOP)],
        vec![padding(DESTINATION)],
        vec![routing.clone()],
        vec![padding(HOP_BY_HOP), padding(DESTINATION), routing],
        // One that is a fragment by name only (RFC 6946).
        vec![fragment(0)],
    ];
    let mut packets = Vec::new();
    for extensions in chains {
        let ip = Ip { extensions, ..Ip::new(6) };
        packets.extend([ip.tcp_run(&TIMESTAMPS), ip.udp_run(), echoes(&ip)].concat());
    }
    for place in [1, 192 | 1, 384] {
        let ip = Ip { extensions: vec![fragment(place)], ..Ip::new(6) };
        packets.extend([TCP, UDP].map(|protocol| ip.packet(protocol, &bytes(192))));
    }
    packets
}
