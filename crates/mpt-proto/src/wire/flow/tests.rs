use super::*;
use crate::wire::inner;
use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Extensions, Ipv6FragmentHeader, Ipv6Header,
    Ipv6RawExtHeader, PacketBuilder, SlicedPacket, TransportSlice,
};
use proptest::prelude::*;
use std::collections::HashSet;

fn parse(packet: &[u8]) -> Flow {
    Flow::parse(packet, &inner::parse(packet).unwrap())
}

fn ports_of(source: u16, destination: u16) -> Option<Ports> {
    Some(Ports { source, destination })
}

/// An IPv4 packet of a protocol above which stands `payload`.
fn ipv4(protocol: u8, more: bool, offset: u16, payload: &[u8]) -> Vec<u8> {
    let mut header =
        Ipv4Header::new(payload.len() as u16, 64, IpNumber(protocol), [10, 0, 0, 1], [10, 0, 0, 2])
            .unwrap();
    (header.more_fragments, header.dont_fragment) = (more, false);
    header.fragment_offset = IpFragOffset::try_new(offset).unwrap();
    let mut packet = Vec::new();
    header.write(&mut packet).unwrap();
    packet.extend(payload);
    packet
}

/// An IPv6 packet with these extension headers, the first named first.
fn ipv6(headers: &[(u8, Vec<u8>)], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut next: Vec<u8> = headers.iter().map(|(number, _)| *number).collect();
    next.push(protocol);
    let mut above = Vec::new();
    for ((_, bytes), following) in headers.iter().zip(&next[1..]) {
        above.push(*following);
        above.extend(&bytes[1..]);
    }
    above.extend(payload);
    let header = Ipv6Header {
        payload_length: above.len() as u16,
        next_header: IpNumber(next[0]),
        source: [1; 16],
        destination: [2; 16],
        ..Ipv6Header::default()
    };
    let mut packet = header.to_bytes().to_vec();
    packet.extend(above);
    packet
}

/// An extension header of 8 bytes and 8 for each of `more`.
fn extension(number: u8, more: u8) -> (u8, Vec<u8>) {
    let mut bytes = vec![0; 8 + usize::from(more) * 8];
    bytes[1] = more;
    (number, bytes)
}

#[test]
fn flows_of_the_five_protocols_with_ports_are_identified_by_ports() {
    let above = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0];
    for protocol in 0..=u8::MAX {
        let expected = match protocol {
            6 | 17 | 33 | 132 | 136 => ports_of(0x1234, 0x5678),
            _ => None,
        };
        let flow = parse(&ipv4(protocol, false, 0, &above));
        assert_eq!((flow.protocol, flow.ports), (protocol, expected));
        assert_eq!(parse(&ipv4(protocol, false, 0, &above[..3])).ports, None, "cut");
        if ![0, 43, 44, 60].contains(&protocol) {
            let flow = parse(&ipv6(&[], protocol, &above));
            assert_eq!((flow.protocol, flow.ports), (protocol, expected));
        }
    }
}

#[test]
fn all_pieces_of_a_packet_are_of_one_flow() {
    let above = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0];
    let pieces = [(true, 0), (true, 185), (false, 370)]
        .map(|(more, offset)| parse(&ipv4(17, more, offset, &above)));
    assert_eq!(pieces[0], Flow { ports: None, ..parse(&ipv4(17, false, 0, &above)) });
    assert_eq!(pieces, [pieces[0]; 3]);

    let pieces = [(true, 0), (true, 185), (false, 370), (false, 0)].map(|(more, offset)| {
        let fragment =
            Ipv6FragmentHeader::new(IpNumber(17), IpFragOffset::try_new(offset).unwrap(), more, 99);
        let bytes = fragment.to_bytes().to_vec();
        parse(&ipv6(&[extension(0, 0), (44, bytes)], 17, &above))
    });
    assert_eq!((pieces[0].protocol, pieces[0].ports), (17, None));
    assert_eq!(pieces, [pieces[0]; 4]);
}

#[test]
fn extension_headers_are_walked_up_to_a_limit() {
    let above = [0, 80, 0, 90];
    let headers = [extension(0, 0), extension(60, 3), extension(43, 2), extension(60, 31)];
    let flow = parse(&ipv6(&headers, 6, &above));
    assert_eq!((flow.protocol, flow.ports), (6, ports_of(80, 90)));
    let many = |count| vec![extension(60, 0); count];
    assert_eq!(parse(&ipv6(&many(MAX_EXTENSIONS), 6, &above)).ports, ports_of(80, 90));
    let beyond = parse(&ipv6(&many(MAX_EXTENSIONS + 1), 6, &above));
    assert_eq!(beyond.ports, None);
    let mut lying = ipv6(&[extension(60, 0)], 6, &above);
    lying[41] = 1;
    let flow = parse(&lying);
    assert_eq!((flow.protocol, flow.ports), (60, None), "a header longer than the packet");
}

#[test]
fn padding_behind_the_packet_is_no_port() {
    let mut packet = ipv4(17, false, 0, &[]);
    packet.extend([1; 8]);
    assert_eq!(parse(&packet).ports, None);
}

#[test]
fn flows_that_differ_in_one_thing_hash_apart_and_spread_evenly() {
    let base = Flow {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        protocol: 17,
        ports: ports_of(1, 2),
    };
    let mapped = |address: [u8; 4]| IpAddr::V6(std::net::Ipv4Addr::from(address).to_ipv6_mapped());
    let other = [
        base,
        Flow { source: base.destination, destination: base.source, ..base },
        Flow { source: mapped([10, 0, 0, 1]), ..base },
        Flow { destination: IpAddr::from([10, 0, 0, 3]), ..base },
        Flow { protocol: 6, ..base },
        Flow { ports: ports_of(2, 1), ..base },
        Flow { ports: None, ..base },
    ];
    let hashes: HashSet<_> = other.iter().map(Flow::hash).collect();
    assert_eq!(hashes.len(), other.len());

    // Neighbouring ports and addresses, as clients really have them: a chi-square of 63 degrees of
    // freedom exceeds 120 once in 60,000.
    let mut counts = [0_u32; 64];
    for host in 0..16 {
        for port in 0..1024 {
            let source = IpAddr::from([10, 0, 0, host]);
            let flow = Flow { source, ports: ports_of(32768 + port, 443), ..base };
            counts[flow.hash() as usize % 64] += 1;
        }
    }
    let chi_square: f64 = counts.iter().map(|&n| (f64::from(n) - 256.0).powi(2) / 256.0).sum();
    assert!(chi_square < 120.0, "{chi_square}");
}

fn arbitrary_packet() -> impl Strategy<Value = Vec<u8>> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(source, destination)| {
        let header = Ipv4Header::new(0, 64, IpNumber::UDP, source, destination).unwrap();
        IpHeaders::Ipv4(header, Default::default())
    });
    let options =
        |here: bool| here.then(|| Ipv6RawExtHeader::new_raw(IpNumber(0), &[0; 14]).unwrap());
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<[bool; 2]>());
    let v6 = v6.prop_map(move |(source, destination, here)| {
        let header = Ipv6Header { source, destination, ..Ipv6Header::default() };
        let extensions = Ipv6Extensions {
            hop_by_hop_options: options(here[0]),
            destination_options: options(here[1]),
            ..Ipv6Extensions::default()
        };
        IpHeaders::Ipv6(header, extensions)
    });
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    (prop_oneof![v4, v6], any::<(bool, u16, u16)>(), payload).prop_map(
        |(headers, (tcp, source, destination), payload)| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ip(headers);
            match tcp {
                true => builder.tcp(source, destination, 1, 1).write(&mut packet, &payload),
                false => builder.udp(source, destination).write(&mut packet, &payload),
            }
            .unwrap();
            packet
        },
    )
}

proptest! {
    #[test]
    fn agrees_with_an_independent_parser(packet in arbitrary_packet()) {
        let flow = parse(&packet);
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let (protocol, source, destination) = match sliced.transport.unwrap() {
            TransportSlice::Tcp(tcp) => (6, tcp.source_port(), tcp.destination_port()),
            TransportSlice::Udp(udp) => (17, udp.source_port(), udp.destination_port()),
            TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_) | TransportSlice::Igmp(_) => {
                unreachable!("neither was built")
            }
        };
        prop_assert_eq!(flow.protocol, protocol);
        prop_assert_eq!(flow.ports, ports_of(source, destination));
    }

    #[test]
    fn truncated_and_modified_packets_never_panic_or_yield_wrong_ports(
        packet in arbitrary_packet(),
        end: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let inner = inner::parse(&packet).unwrap();
        let whole = Flow::parse(&packet, &inner);
        let cut = Flow::parse(&packet[..end.index(packet.len())], &inner);
        prop_assert!(cut.ports.is_none() || cut == whole);
        let mut altered = packet;
        for (place, byte) in changes {
            let place = place.index(altered.len());
            altered[place] = byte;
        }
        // The inner header as it was, and as it is if it is one.
        Flow::parse(&altered, &inner).hash();
        if let Some(inner) = inner::parse(&altered) {
            Flow::parse(&altered, &inner).hash();
        }
    }
}
