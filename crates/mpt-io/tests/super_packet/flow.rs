//! Flows of packets, every packet of which is built from scratch.

use etherparse::{
    IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, UdpHeader,
};
use mpt_io::tun::VnetHeader;
use proptest::prelude::*;

/// What the packets of a flow have in common, and where it starts.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) ip: Ip,
    pub(crate) transport: Transport,
    /// TOS or traffic class.
    pub(crate) tos: u8,
    pub(crate) hops: u8,
    pub(crate) ports: (u16, u16),
}

/// IP and what it adds to the plain header.
#[derive(Clone, Debug)]
pub(crate) enum Ip {
    V4 { identification: u16, dont_fragment: bool, options: Vec<u8> },
    V6 { flow_label: u32, extensions: Vec<Extension> },
}

/// An IPv6 extension header of `8 + 8 * len` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extension {
    pub(crate) number: u8,
    pub(crate) len: u8,
}

/// TCP or UDP.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    Tcp { sequence: u32, ack: u32, window: u16, flags: u8, urgent: u16, options: Vec<u8> },
    Udp,
}

/// FIN and PSH, which only the last segment keeps; ACK; ECE; CWR, which only the first keeps.
pub(crate) const FIN: u8 = 0x01;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const ECE: u8 = 0x40;
pub(crate) const CWR: u8 = 0x80;

const ROUTING: u8 = 43;
const SOURCE_V6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const DESTINATION_V6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
/// Where a routing header leads in the end.
const FINAL_V6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
const SOURCE_V4: [u8; 4] = [10, 9, 0, 1];
const DESTINATION_V4: [u8; 4] = [10, 9, 0, 2];

impl Flow {
    /// TCP in IPv4 with the options that Linux sends.
    pub(crate) fn tcp4() -> Self {
        let options = vec![1, 1, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7];
        let transport = Transport::Tcp {
            sequence: 0xffff_f000,
            ack: 77,
            window: 501,
            flags: ACK,
            urgent: 0,
            options,
        };
        let ip = Ip::V4 { identification: 0xfffe, dont_fragment: true, options: vec![] };
        Self { ip, transport, tos: 2, hops: 64, ports: (40_000, 5201) }
    }

    /// The same in IPv6.
    pub(crate) fn tcp6() -> Self {
        Self { ip: Ip::V6 { flow_label: 0xa_bcde, extensions: vec![] }, ..Self::tcp4() }
    }

    pub(crate) fn udp4() -> Self {
        Self { transport: Transport::Udp, ..Self::tcp4() }
    }

    pub(crate) fn udp6() -> Self {
        Self { transport: Transport::Udp, ..Self::tcp6() }
    }

    /// One flow of each kind that can be merged.
    pub(crate) fn mergeable() -> [Self; 4] {
        [Self::tcp4(), Self::tcp6(), Self::udp4(), Self::udp6()]
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.transport, Transport::Tcp { .. })
    }

    /// Whether packets go to another address first than the one that their checksum covers.
    pub(crate) fn is_routed(&self) -> bool {
        match &self.ip {
            Ip::V4 { .. } => false,
            Ip::V6 { extensions, .. } => extensions.iter().any(|e| e.number == ROUTING),
        }
    }

    /// The packets that carry `payload`, up to `size` bytes each.
    pub(crate) fn packets(&self, payload: &[u8], size: usize) -> Vec<Vec<u8>> {
        let count = payload.len().div_ceil(size);
        let chunks = payload.chunks(size).enumerate();
        chunks
            .map(|(i, chunk)| self.segment(i, i * size, chunk, [i == 0, i + 1 == count]))
            .collect()
    }

    /// The super-packet that carries `payload`, header in front, as the kernel hands it out.
    pub(crate) fn super_packet(&self, payload: &[u8], size: usize) -> (VnetHeader, Vec<u8>) {
        let mut packet = self.segment(0, 0, payload, [true, true]);
        let (start, field) = self.checksum_at();
        let pseudo = self.pseudo_header(packet.len() - start);
        packet[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
        let gso_type = match (&self.transport, &self.ip) {
            (Transport::Tcp { .. }, Ip::V4 { .. }) => VnetHeader::GSO_TCPV4,
            (Transport::Tcp { .. }, Ip::V6 { .. }) => VnetHeader::GSO_TCPV6,
            (Transport::Udp, _) => VnetHeader::GSO_UDP_L4,
        };
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type,
            hdr_len: (packet.len() - payload.len()) as u16,
            gso_size: size as u16,
            csum_start: start as u16,
            csum_offset: (field - start) as u16,
        };
        (header, packet)
    }

    /// A packet that the kernel wants the checksum of completed.
    pub(crate) fn partial(&self, payload: &[u8]) -> (VnetHeader, Vec<u8>) {
        let (header, packet) = self.super_packet(payload, 1);
        (VnetHeader { gso_type: 0, gso_size: 0, ..header }, packet)
    }

    /// The packet without payload.
    pub(crate) fn empty(&self) -> Vec<u8> {
        self.segment(0, 0, &[], [true, true])
    }

    /// [`packets`](Self::packets) that lack their transport checksum.
    pub(crate) fn partials(&self, payload: &[u8], size: usize) -> Vec<Vec<u8>> {
        let (start, field) = self.checksum_at();
        let mut packets = self.packets(payload, size);
        for packet in &mut packets {
            let pseudo = self.pseudo_header(packet.len() - start);
            packet[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
        }
        packets
    }

    /// The continuation of the flow after `sent` bytes of payload in this many packets.
    pub(crate) fn continued(&self, sent: usize, packets: u16) -> Self {
        let mut flow = self.clone();
        if let Ip::V4 { identification, .. } = &mut flow.ip {
            *identification = identification.wrapping_add(packets);
        }
        if let Transport::Tcp { sequence, .. } = &mut flow.transport {
            *sequence = sequence.wrapping_add(sent as u32);
        }
        flow
    }

    /// Where the checksummed part and the checksum are.
    pub(crate) fn checksum_at(&self) -> (usize, usize) {
        let start = match &self.ip {
            Ip::V4 { options, .. } => 20 + options.len(),
            Ip::V6 { extensions, .. } => 40 + extensions.iter().map(|e| e.bytes()).sum::<usize>(),
        };
        (start, start + if self.is_tcp() { 16 } else { 6 })
    }

    /// One packet, built on its own: the `number`th, after `sent` bytes of payload.
    fn segment(&self, number: usize, sent: usize, payload: &[u8], ends: [bool; 2]) -> Vec<u8> {
        let transport = self.transport_header(sent, payload, ends);
        [self.ip_header(number, transport.len() + payload.len()), transport, payload.to_vec()]
            .concat()
    }

    fn ip_header(&self, number: usize, behind: usize) -> Vec<u8> {
        let protocol = if self.is_tcp() { 6 } else { 17 };
        match &self.ip {
            Ip::V4 { identification, dont_fragment, options } => {
                let mut header = Ipv4Header {
                    dscp: IpDscp::try_new(self.tos >> 2).unwrap(),
                    ecn: IpEcn::try_new(self.tos & 3).unwrap(),
                    total_len: (20 + options.len() + behind) as u16,
                    identification: identification.wrapping_add(number as u16),
                    dont_fragment: *dont_fragment,
                    time_to_live: self.hops,
                    protocol: IpNumber(protocol),
                    source: SOURCE_V4,
                    destination: DESTINATION_V4,
                    options: options[..].try_into().unwrap(),
                    ..Ipv4Header::default()
                };
                header.header_checksum = header.calc_header_checksum();
                header.to_bytes().to_vec()
            }
            Ip::V6 { flow_label, extensions } => {
                let mut next = protocol;
                let mut chain = Vec::new();
                for extension in extensions.iter().rev() {
                    chain.splice(..0, extension.header(next));
                    next = extension.number;
                }
                let header = Ipv6Header {
                    traffic_class: self.tos,
                    flow_label: Ipv6FlowLabel::try_new(*flow_label).unwrap(),
                    payload_length: (chain.len() + behind) as u16,
                    next_header: IpNumber(next),
                    hop_limit: self.hops,
                    source: SOURCE_V6,
                    destination: DESTINATION_V6,
                };
                [&header.to_bytes()[..], &chain].concat()
            }
        }
    }

    fn transport_header(&self, sent: usize, payload: &[u8], [first, last]: [bool; 2]) -> Vec<u8> {
        let (source_port, destination_port) = self.ports;
        let v4 = matches!(self.ip, Ip::V4 { .. });
        match &self.transport {
            Transport::Tcp { sequence, ack, window, flags, urgent, options } => {
                let flag = |bit: u8| flags & bit != 0;
                let mut header = TcpHeader {
                    source_port,
                    destination_port,
                    sequence_number: sequence.wrapping_add(sent as u32),
                    acknowledgment_number: *ack,
                    fin: flag(FIN) && last,
                    psh: flag(PSH) && last,
                    ack: flag(ACK),
                    ece: flag(ECE),
                    cwr: flag(CWR) && first,
                    window_size: *window,
                    urgent_pointer: *urgent,
                    ..TcpHeader::default()
                };
                header.set_options_raw(options).unwrap();
                header.checksum = if v4 {
                    header.calc_checksum_ipv4_raw(SOURCE_V4, DESTINATION_V4, payload).unwrap()
                } else {
                    header.calc_checksum_ipv6_raw(SOURCE_V6, self.receiver_v6(), payload).unwrap()
                };
                header.to_bytes().to_vec()
            }
            Transport::Udp => {
                let length = (8 + payload.len()) as u16;
                let mut header =
                    UdpHeader { source_port, destination_port, length, ..UdpHeader::default() };
                header.checksum = if v4 {
                    header.calc_checksum_ipv4_raw(SOURCE_V4, DESTINATION_V4, payload).unwrap()
                } else {
                    header.calc_checksum_ipv6_raw(SOURCE_V6, self.receiver_v6(), payload).unwrap()
                };
                header.to_bytes().to_vec()
            }
        }
    }

    /// Whose address the checksum covers (RFC 8200, section 8.1).
    fn receiver_v6(&self) -> [u8; 16] {
        if self.is_routed() { FINAL_V6 } else { DESTINATION_V6 }
    }

    /// The sum of the pseudo header, word by word.
    fn pseudo_header(&self, len: usize) -> u16 {
        let mut bytes = match self.ip {
            Ip::V4 { .. } => [SOURCE_V4, DESTINATION_V4].concat(),
            Ip::V6 { .. } => [SOURCE_V6, self.receiver_v6()].concat(),
        };
        bytes.extend((len as u32).to_be_bytes());
        bytes.extend([0, if self.is_tcp() { 6 } else { 17 }]);
        let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

impl Extension {
    fn bytes(self) -> usize {
        8 + 8 * usize::from(self.len)
    }

    /// Options headers are filled with padding, routing headers with one segment left to go.
    fn header(self, next: u8) -> Vec<u8> {
        let mut header = vec![0; self.bytes()];
        (header[0], header[1]) = (next, self.len);
        if self.number == ROUTING {
            header[3] = 1;
        } else {
            (header[2], header[3]) = (1, self.bytes() as u8 - 4);
        }
        header
    }
}

/// Any flow, with all that headers can have.
pub(crate) fn flows() -> impl Strategy<Value = Flow> {
    let ip = prop_oneof![
        (any::<u16>(), any::<bool>(), 0..=10_usize).prop_map(|(identification, df, words)| {
            Ip::V4 { identification, dont_fragment: df, options: vec![1; words * 4] }
        }),
        (0..1_u32 << 20, prop::collection::vec(extensions(), 0..3))
            .prop_map(|(flow_label, extensions)| Ip::V6 { flow_label, extensions }),
    ];
    let tcp = (any::<[u32; 2]>(), any::<[u16; 2]>(), any::<u8>(), 0..=10_usize).prop_map(
        |([sequence, ack], [window, urgent], flags, words)| Transport::Tcp {
            sequence,
            ack,
            window,
            flags: ACK | flags & (FIN | PSH | ECE | CWR),
            urgent,
            options: vec![1; words * 4],
        },
    );
    let transport = prop_oneof![tcp, Just(Transport::Udp)];
    (ip, transport, any::<u8>(), 1..=255_u8, any::<(u16, u16)>())
        .prop_map(|(ip, transport, tos, hops, ports)| Flow { ip, transport, tos, hops, ports })
}

fn extensions() -> impl Strategy<Value = Extension> {
    (prop_oneof![Just(0_u8), Just(ROUTING), Just(60)], 0..3_u8)
        .prop_map(|(number, len)| Extension { number, len })
}

/// Payload of up to `most` bytes.
pub(crate) fn payload(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..=most)
}
