//! Announcements and checksums are read by another library.

use etherparse::{IpNumber, PacketBuilder, TcpHeader, TcpOptionElement as Element};
use proptest::prelude::*;

use super::*;

const SOURCE_V6: [u8; 16] = [0xfd; 16];
const DESTINATION_V6: [u8; 16] = [0xfc; 16];

fn syn_header() -> TcpHeader {
    let mut header = TcpHeader::new(5000, 80, 7, 64_240);
    header.syn = true;
    header
}

fn ipv4(header: TcpHeader) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [10, 9, 0, 2], 64);
    builder.tcp_header(header).write(&mut packet, b"odd").unwrap();
    packet
}

fn ipv6(header: TcpHeader) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6(SOURCE_V6, DESTINATION_V6, 64);
    builder.tcp_header(header).write(&mut packet, b"odd").unwrap();
    packet
}

fn announcing(mss: u16) -> TcpHeader {
    let mut header = syn_header();
    header
        .set_options(&[
            Element::MaximumSegmentSize(mss),
            Element::SelectiveAcknowledgementPermitted,
            Element::WindowScale(7),
        ])
        .unwrap();
    header
}

fn with_raw_options(options: &[u8]) -> TcpHeader {
    let mut header = syn_header();
    header.set_options_raw(options).unwrap();
    header
}

/// What is announced and whether the checksum is right, as another library reads it.
fn read(packet: &[u8]) -> (Option<u16>, bool) {
    let sliced = etherparse::SlicedPacket::from_ip(packet).unwrap();
    let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("TCP") };
    let mss = tcp.options_iterator().find_map(|option| match option {
        Ok(Element::MaximumSegmentSize(mss)) => Some(mss),
        _ => None,
    });
    let header = tcp.to_header();
    let right = match sliced.net.unwrap() {
        etherparse::NetSlice::Ipv4(ip) => {
            header.calc_checksum_ipv4(&ip.header().to_header(), tcp.payload()).unwrap()
        }
        etherparse::NetSlice::Ipv6(ip) => {
            header.calc_checksum_ipv6(&ip.header().to_header(), tcp.payload()).unwrap()
        }
        etherparse::NetSlice::Arp(_) => panic!("IP"),
    };
    (mss, header.checksum == right)
}

#[test]
fn a_syn_announces_what_fits() {
    for (mut packet, lowered) in [(ipv4(announcing(1460)), 1360), (ipv6(announcing(1440)), 1340)] {
        assert!(read(&packet).1, "the builder's checksum");
        assert!(clamp(&mut packet, 1400, Checksum::Complete));
        assert_eq!(read(&packet), (Some(lowered), true));
        assert!(!clamp(&mut packet, 1400, Checksum::Complete), "there is nothing left to do");
    }
}

#[test]
fn an_answer_to_a_syn_is_one_too() {
    let mut header = announcing(1460);
    header.ack = true;
    let mut packet = ipv4(header);
    assert!(clamp(&mut packet, 1400, Checksum::Complete));
    assert_eq!(read(&packet), (Some(1360), true));
}

#[test]
fn an_mss_that_fits_is_not_changed() {
    for mss in [0, 100, 536, 1359, 1360] {
        let packet = ipv4(announcing(mss));
        let mut same = packet.clone();
        assert!(!clamp(&mut same, 1400, Checksum::Complete));
        assert_eq!(same, packet);
    }
}

#[test]
fn the_mss_is_never_clamped_below_the_minimum() {
    for mtu in [0, 40, 576, 575] {
        let mut packet = ipv4(announcing(1460));
        assert!(clamp(&mut packet, mtu, Checksum::Complete));
        assert_eq!(read(&packet), (Some(536), true));
        let mut packet = ipv6(announcing(1440));
        assert!(clamp(&mut packet, mtu, Checksum::Complete));
        assert_eq!(read(&packet), (Some(1220), true));
    }
    let mut packet = ipv4(announcing(u16::MAX));
    assert!(!clamp(&mut packet, u32::MAX, Checksum::Complete));
}

#[test]
fn values_at_odd_places_and_repeated_ones_are_found() {
    let odd = [1, 2, 4, 0x05, 0xb4, 1, 1, 0];
    let twice = [2, 4, 0x05, 0xb4, 1, 2, 4, 0x23, 0x28, 0, 0, 0];
    for options in [&odd[..], &twice] {
        let mut packet = ipv4(with_raw_options(options));
        assert!(clamp(&mut packet, 1400, Checksum::Complete));
        assert_eq!(read(&packet), (Some(1360), true));
    }
    let mut packet = ipv4(with_raw_options(&twice));
    clamp(&mut packet, 1400, Checksum::Complete);
    assert_eq!(packet[47..49], 1360_u16.to_be_bytes(), "whichever the receiver believes");
}

#[test]
fn packets_that_are_no_syn_with_the_option_are_not_changed() {
    let no_syn = TcpHeader { syn: false, ..announcing(1460) };
    let behind_the_end = with_raw_options(&[1, 0, 2, 4, 0x05, 0xb4, 0, 0]);
    let of_wrong_length = with_raw_options(&[2, 3, 0x05, 2, 6, 0x05, 0xb4, 0]);
    let without_length = with_raw_options(&[8, 0, 2, 4, 0x05, 0xb4, 1, 1]);
    let cut = with_raw_options(&[1, 1, 1, 1, 1, 1, 1, 2]);
    let cut_later = with_raw_options(&[1, 1, 1, 1, 1, 2, 4, 9]);
    let others = [no_syn, syn_header(), behind_the_end, of_wrong_length, without_length];
    for header in others.into_iter().chain([cut, cut_later]) {
        for packet in [ipv4(header.clone()), ipv6(header.clone())] {
            let mut same = packet.clone();
            assert!(!clamp(&mut same, 100, Checksum::Complete), "{header:?}");
            assert_eq!(same, packet);
        }
    }
}

#[test]
fn fragments_and_authenticated_segments_are_distinguished() {
    let mut later = ipv4(announcing(1460));
    later[7] = 1;
    assert!(!clamp(&mut later, 1400, Checksum::Complete));
    let mut first = ipv4(announcing(1460));
    first[6] = 0x20;
    assert!(clamp(&mut first, 1400, Checksum::Complete));

    let plain = ipv6(announcing(1440));
    for (kind, header, expected) in [
        (IpNumber::IPV6_DESTINATION_OPTIONS, &[6_u8, 0, 1, 4, 0, 0, 0, 0][..], true),
        (IpNumber::IPV6_FRAGMENTATION_HEADER, &[6, 0, 0, 1, 0, 0, 0, 7], true),
        (IpNumber::IPV6_FRAGMENTATION_HEADER, &[6, 0, 0, 9, 0, 0, 0, 7], false),
        (IpNumber::AUTHENTICATION_HEADER, &[6, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], false),
    ] {
        let mut packet = [&plain[..40], header, &plain[40..]].concat();
        packet[5] += header.len() as u8;
        packet[6] = kind.0;
        assert_eq!(clamp(&mut packet, 1400, Checksum::Complete), expected, "{kind:?}");
        let same: Vec<u8> = [&packet[..40], &packet[40 + header.len()..]].concat();
        let mut unwrapped = plain.clone();
        clamp(&mut unwrapped, if expected { 1400 } else { 9000 }, Checksum::Complete);
        assert_eq!(same[40..], unwrapped[40..], "{kind:?}");
    }
}

#[test]
fn a_partial_checksum_stays_partial() {
    for mut packet in [ipv4(announcing(1460)), ipv6(announcing(1440))] {
        let at = if packet[0] >> 4 == 4 { 20 } else { 40 };
        let segment_len = (packet.len() - at) as u16;
        let addresses = if at == 20 { 12..20 } else { 8..40 };
        let pseudo = [&packet[addresses], &[0, TCP], &segment_len.to_be_bytes()].concat();
        let partial = (!checksum::internet(&pseudo)).to_be_bytes();
        let complete = packet.clone();
        packet[at + 16..at + 18].copy_from_slice(&partial);
        for kind in [Checksum::Missing, Checksum::Shown] {
            let mut packet = packet.clone();
            assert!(clamp(&mut packet, 1300, kind));
            assert_eq!(packet[at + 16..at + 18], partial, "{kind:?}");
            let sum = checksum::internet(&packet[at..]);
            packet[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
            assert!(read(&packet).1, "completed over the option as it is: {kind:?}");
        }
        let mut packet = complete;
        assert!(clamp(&mut packet, 1300, Checksum::Shown));
        assert!(read(&packet).1, "not missing, so mended");
    }
}

proptest! {
    #[test]
    fn the_updated_checksum_is_the_computed_one(
        mss in any::<u16>(),
        mtu in 500_u32..2000,
        shift in 0_usize..3,
        sequence in any::<u32>(),
        v6 in any::<bool>(),
    ) {
        let mut options = vec![1; shift];
        options.extend([2, 4]);
        options.extend(mss.to_be_bytes());
        options.resize(8, 0);
        let header = TcpHeader { sequence_number: sequence, ..with_raw_options(&options) };
        let mut packet = if v6 { ipv6(header) } else { ipv4(header) };
        let limit = limit(mtu, if v6 { Protocol::Ipv6 } else { Protocol::Ipv4 });
        prop_assert_eq!(clamp(&mut packet, mtu, Checksum::Complete), mss > limit);
        prop_assert_eq!(read(&packet), (Some(mss.min(limit)), true));
    }

    #[test]
    fn hostile_packets_do_no_harm(
        random in prop::collection::vec(any::<u8>(), 0..120),
        at in 0_usize..70,
        v6 in any::<bool>(),
        mtu in any::<u32>(),
    ) {
        for kind in [Checksum::Complete, Checksum::Missing, Checksum::Shown] {
            clamp(&mut random.clone(), mtu, kind);
            let mut packet = if v6 { ipv6(announcing(1440)) } else { ipv4(announcing(1460)) };
            for (byte, random) in packet.iter_mut().skip(at).zip(&random) {
                *byte = *random;
            }
            let before = packet.clone();
            let lowered = clamp(&mut packet, mtu, kind);
            prop_assert_eq!(packet.len(), before.len());
            prop_assert!(lowered || packet == before);
            prop_assert!(is_syn(&before) || !lowered, "a SYN is never missed");
        }
    }
}
