//! Answers are read by another library; a packet that must not be answered is not.

use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, NetSlice, PacketBuilder,
    SlicedPacket, TransportSlice, icmpv4, icmpv6,
};
use proptest::prelude::*;

use super::*;

const OWN_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
const OWN_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1));
const SENDER_V4: [u8; 4] = [192, 0, 2, 7];
const SENDER_V6: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const TARGET_V4: [u8; 4] = [10, 9, 0, 2];
const TARGET_V6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// The answer, if there is one. Its memory has been used before.
fn answer(packet: &[u8], mtu: u32, source: IpAddr) -> Option<Vec<u8>> {
    let mut place = [0xee; MAX_LEN];
    let len = too_big(packet, mtu, source, &mut place)?;
    Some(place[..len].to_vec())
}

fn udp_v4(payload: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(SENDER_V4, TARGET_V4, 64).udp(1, 2);
    builder.write(&mut packet, &vec![0x5a; payload]).unwrap();
    packet
}

fn udp_v6(payload: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6(SENDER_V6, TARGET_V6, 64).udp(1, 2);
    builder.write(&mut packet, &vec![0x5a; payload]).unwrap();
    packet
}

/// The packet with other bytes from `at` on and a right header checksum again.
fn with_v4(mut packet: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    packet[10..12].fill(0);
    let sum = checksum::internet(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn with_v6(mut packet: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    packet
}

#[test]
fn the_ipv4_packet_too_big_message_is_parsed_by_another_library() {
    for payload in [1300, 1301, 1473, 9000, 60_000] {
        let packet = udp_v4(payload);
        let found = answer(&packet, 1280, OWN_V4).expect("an answer");
        assert_eq!(found.len(), 576, "as much as fits");
        let sliced = SlicedPacket::from_ip(&found).unwrap();
        let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!((IpAddr::from(header.source), header.destination), (OWN_V4, SENDER_V4));
        assert_eq!((header.dscp.value(), header.ecn.value()), (48, 0));
        assert_eq!(usize::from(header.total_len), found.len());
        assert!(header.dont_fragment);
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("ICMP") };
        let unreachable = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
        let kind = Icmpv4Type::DestinationUnreachable(unreachable);
        assert_eq!(icmp.icmp_type(), kind);
        assert_eq!(icmp.checksum(), kind.calc_checksum(icmp.payload()));
        assert_eq!(icmp.payload(), &packet[..icmp.payload().len()]);
    }
}

#[test]
fn that_a_host_is_unreachable_is_parsed_by_another_library() {
    let answer = |packet: &[u8], source| {
        let mut place = [0xee; MAX_LEN];
        unreachable(packet, source, &mut place).map(|len| place[..len].to_vec())
    };
    for payload in [0, 100, 9000] {
        let packet = udp_v4(payload);
        let found = answer(&packet, OWN_V4).expect("an answer");
        let sliced = SlicedPacket::from_ip(&found).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("ICMP") };
        let kind = Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Host);
        assert_eq!(icmp.icmp_type(), kind);
        assert_eq!(icmp.checksum(), kind.calc_checksum(icmp.payload()));
        assert_eq!(icmp.payload(), &packet[..icmp.payload().len()]);

        let packet = udp_v6(payload);
        let found = answer(&packet, OWN_V6).expect("an answer");
        let sliced = SlicedPacket::from_ip(&found).unwrap();
        let Some(NetSlice::Ipv6(ip)) = sliced.net else { panic!("IPv6") };
        let (from, to) = (ip.header().source(), ip.header().destination());
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("ICMPv6") };
        let kind = Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Address);
        assert_eq!(icmp.icmp_type(), kind);
        let sum = kind.calc_checksum(from, to, icmp.payload()).unwrap();
        assert_eq!(icmp.checksum(), sum);
        assert_eq!(icmp.payload(), &packet[..icmp.payload().len()]);
    }
    // A sender that lets its packets be fragmented is told, too; but nobody is told about an error, a later fragment, or a group.
    let packet = udp_v4(100);
    assert!(answer(&with_v4(packet.clone(), 6, &[0, 0]), OWN_V4).is_some());
    assert_eq!(answer(&with_v4(packet.clone(), 6, &[0, 9]), OWN_V4), None);
    assert_eq!(answer(&with_v4(packet.clone(), 16, &[224, 0, 0, 1]), OWN_V4), None);
    assert_eq!(answer(&with_v6(udp_v6(100), 24, &[0xff, 2]), OWN_V6), None);
    let error = answer(&packet, OWN_V4).expect("an answer");
    assert_eq!(answer(&error, OWN_V4), None);
}

#[test]
fn the_ipv6_packet_too_big_message_is_parsed_by_another_library() {
    for payload in [1300, 1301, 1473, 9000, 60_000] {
        let packet = udp_v6(payload);
        let found = answer(&packet, 1320, OWN_V6).expect("an answer");
        assert_eq!(found.len(), 1280, "as much as fits");
        let sliced = SlicedPacket::from_ip(&found).unwrap();
        let Some(NetSlice::Ipv6(ip)) = sliced.net else { panic!("IPv6") };
        let header = ip.header().to_header();
        assert_eq!((IpAddr::from(header.source), header.destination), (OWN_V6, SENDER_V6));
        assert_eq!((header.traffic_class, header.flow_label.value()), (0xc0, 0));
        assert_eq!((header.hop_limit, usize::from(header.payload_length)), (64, found.len() - 40));
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("ICMPv6") };
        let kind = Icmpv6Type::PacketTooBig { mtu: 1320 };
        assert_eq!(icmp.icmp_type(), kind);
        assert!(icmp.is_checksum_valid(header.source, header.destination));
        assert_eq!(icmp.payload(), &packet[..icmp.payload().len()]);
    }
}

#[test]
fn short_packets_are_quoted_whole_and_padding_is_not() {
    let packet = udp_v4(100);
    let padded = [&packet[..], &[7; 50]].concat();
    let found = answer(&padded, 100, OWN_V4).expect("an answer");
    assert_eq!(found.len(), 20 + 8 + packet.len());
    assert_eq!(found[28..], packet);
}

#[test]
fn packets_that_fit_get_no_icmp_answer() {
    assert_eq!(answer(&udp_v4(1252), 1280, OWN_V4), None, "1280 bytes");
    assert!(answer(&udp_v4(1253), 1280, OWN_V4).is_some());
    assert_eq!(answer(&udp_v6(1232), 576, OWN_V6), None, "1280 bytes");
    let told = answer(&udp_v6(1233), 576, OWN_V6).expect("an answer");
    assert_eq!(told[44..48], 1280_u32.to_be_bytes(), "never less than the least");
    assert_eq!(answer(&udp_v4(40), 10, OWN_V4), None, "68 bytes");
    let told = answer(&udp_v4(41), 10, OWN_V4).expect("an answer");
    assert_eq!(told[26..28], 68_u16.to_be_bytes());
}

#[test]
fn ipv4_that_may_be_fragmented_or_is_a_later_fragment_gets_no_answer() {
    let packet = udp_v4(1400);
    assert_eq!(answer(&with_v4(packet.clone(), 6, &[0x00, 0]), 1280, OWN_V4), None, "no DF");
    assert_eq!(answer(&with_v4(packet.clone(), 6, &[0x40, 1]), 1280, OWN_V4), None, "later");
    assert!(
        answer(&with_v4(packet, 6, &[0x60, 0]), 1280, OWN_V4).is_some(),
        "the first of several"
    );
}

#[test]
fn addresses_that_are_not_one_host_get_no_answer() {
    let packet = udp_v4(1400);
    for source in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        let source: Ipv4Addr = source.parse().unwrap();
        let packet = with_v4(packet.clone(), 12, &source.octets());
        assert_eq!(answer(&packet, 1280, OWN_V4), None, "from {source}");
    }
    for target in ["0.0.0.0", "224.0.0.1", "239.255.255.255", "255.255.255.255"] {
        let target: Ipv4Addr = target.parse().unwrap();
        let packet = with_v4(packet.clone(), 16, &target.octets());
        assert_eq!(answer(&packet, 1280, OWN_V4), None, "to {target}");
    }
    let packet = udp_v6(1400);
    for source in ["::", "::1", "ff02::1"] {
        let source: Ipv6Addr = source.parse().unwrap();
        let packet = with_v6(packet.clone(), 8, &source.octets());
        assert_eq!(answer(&packet, 1280, OWN_V6), None, "from {source}");
    }
    let multicast =
        with_v6(packet.clone(), 24, &Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 1]).octets());
    assert!(answer(&multicast, 1280, OWN_V6).is_some(), "the exception of RFC 4443");
    assert_eq!(answer(&with_v6(packet, 24, &[0; 16]), 1280, OWN_V6), None, "to nobody");
}

#[test]
fn icmp_errors_get_no_answer_and_other_icmp_messages_do() {
    let echo = IcmpEchoHeader { id: 1, seq: 2 };
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(SENDER_V4, TARGET_V4, 64);
    let header = Icmpv4Header::new(Icmpv4Type::EchoRequest(echo));
    builder.icmpv4(header.icmp_type).write(&mut packet, &[0; 1400]).unwrap();
    assert!(answer(&packet, 1280, OWN_V4).is_some(), "echo");
    for kind in [3, 4, 5, 11, 12, 1, 2, 19, 41, 44, 255] {
        packet[20] = kind;
        assert_eq!(answer(&packet, 1280, OWN_V4), None, "type {kind}");
    }
    for kind in [0, 9, 10, 13, 14, 15, 16, 17, 18, 42, 43] {
        packet[20] = kind;
        assert!(answer(&packet, 1280, OWN_V4).is_some(), "type {kind}");
    }

    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6(SENDER_V6, TARGET_V6, 64);
    let header = Icmpv6Header::new(Icmpv6Type::EchoRequest(echo));
    builder.icmpv6(header.icmp_type).write(&mut packet, &[0; 1400]).unwrap();
    assert!(answer(&packet, 1280, OWN_V6).is_some(), "echo");
    for kind in [0, 1, 2, 3, 4, 100, 127, 137] {
        packet[40] = kind;
        assert_eq!(answer(&packet, 1280, OWN_V6), None, "type {kind}");
    }
    packet[6] = 60;
    packet[40..48].copy_from_slice(&[ICMPV6, 0, 1, 4, 0, 0, 0, 0]);
    packet[48] = 1;
    assert_eq!(answer(&packet, 1280, OWN_V6), None, "behind destination options");
    packet[48] = 129;
    assert!(answer(&packet, 1280, OWN_V6).is_some());
    packet[41] = 255;
    assert_eq!(answer(&packet, 1280, OWN_V6), None, "behind what leads out of the packet");
}

#[test]
fn ipv6_fragments_are_answered_unless_they_may_hide_an_error() {
    let mut packet = udp_v6(1400);
    packet[6] = 44;
    packet[40..48].copy_from_slice(&[17, 0, 1, 1, 0, 0, 0, 7]);
    assert!(answer(&packet, 1280, OWN_V6).is_some(), "a later fragment");
    packet[40] = ICMPV6;
    assert_eq!(answer(&packet, 1280, OWN_V6), None, "of ICMPv6");
}

#[test]
fn damaged_headers_and_foreign_versions_get_no_answer() {
    let mut packet = udp_v4(1400);
    assert_eq!(answer(&packet, 1280, OWN_V6), None);
    assert_eq!(answer(&packet[..1000], 1280, OWN_V4), None, "cut off");
    packet[8] ^= 1;
    assert_eq!(answer(&packet, 1280, OWN_V4), None, "wrong checksum");
    assert_eq!(answer(&udp_v6(1400), 1280, OWN_V4), None);
    assert_eq!(answer(&[], 1280, OWN_V4), None);
}

proptest! {
    #[test]
    fn never_panics_and_never_answers_its_own_answers(
        random in prop::collection::vec(any::<u8>(), 0..200),
        at in 0_usize..60,
        mtu in any::<u32>(),
        v6 in any::<bool>(),
    ) {
        let (mut packet, own) = if v6 { (udp_v6(1400), OWN_V6) } else { (udp_v4(1400), OWN_V4) };
        answer(&random, mtu, own);
        for (byte, random) in packet[at..].iter_mut().zip(random) {
            *byte = random;
        }
        for mtu in [mtu, 1280] {
            if let Some(found) = answer(&packet, mtu, own) {
                prop_assert!(found.len() <= MAX_LEN);
                prop_assert_eq!(inner::parse(&found).map(|inner| inner.len), Some(found.len()));
                prop_assert_eq!(answer(&found, 68, own), None);
            }
        }
    }
}
