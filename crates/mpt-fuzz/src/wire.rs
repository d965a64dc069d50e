//! Datagrams and inner packets: what is read from them, and what is changed in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mpt_proto::wire::flow::{Flow, Ports};
use mpt_proto::wire::gre::{self as gre_header, Protocol};
use mpt_proto::wire::keepalive::{Keepalive, LEN};
use mpt_proto::wire::mss::Checksum;
use mpt_proto::wire::{checksum, ecn, icmp as icmp_answer, inner as inner_packet, mss as segment};

use crate::input::Input;

/// A datagram. What is read from it is written again as the same fields.
pub fn gre(bytes: &[u8]) {
    let Ok(datagram) = gre_header::parse(bytes) else { return };
    let header = datagram.header;
    assert_eq!(header.size() + datagram.payload.len(), bytes.len());
    let mut written = vec![0xee; header.size()];
    written.extend_from_slice(datagram.payload);
    header.emit(&mut written);
    let again = gre_header::parse(&written).expect("what was written can be read");
    assert_eq!(again, datagram);
}

/// A control message. What is read from it is written again as the same fields.
pub fn keepalive(bytes: &[u8]) {
    if let Ok(keepalive) = Keepalive::parse(bytes) {
        let mut place = [0xee; LEN];
        assert_eq!(Keepalive::parse(keepalive.emit(&mut place)), Ok(keepalive));
    }
}

/// An inner packet, behind a byte that is its new type of service.
pub fn inner(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let tos = input.byte();
    let packet = input.rest();
    let Some(inner) = inner_packet::parse(packet) else { return };
    assert!(inner.len <= packet.len(), "not longer than it is");
    let version = match inner.protocol {
        Protocol::Ipv4 => 4,
        Protocol::Ipv6 => 6,
    };
    assert_eq!(packet[0] >> 4, version);
    assert_eq!((inner.source.is_ipv4(), inner.destination.is_ipv4()), (version == 4, version == 4));

    if let Ok(found) = ecn::decapsulate(inner.tos, tos) {
        assert_eq!(found >> 2, inner.tos >> 2, "the DSCP stays");
    }
    let mut changed = packet.to_vec();
    ecn::set_type_of_service(&mut changed, &inner, tos);
    assert_eq!(inner_packet::parse(&changed), Some(inner_packet::Inner { tos, ..inner }));
    if version == 4 {
        let header = usize::from(packet[0] & 0x0f) * 4;
        let is_right = |packet: &[u8]| checksum::internet(&packet[..header]) == 0;
        assert_eq!(is_right(&changed), is_right(packet), "right stays right, wrong stays wrong");
    }
}

/// An inner packet, and its flow key. Bytes outside the key do not affect it, and the ports are at
/// the reported positions.
pub fn flow(bytes: &[u8]) {
    let Some(inner) = inner_packet::parse(bytes) else { return };
    let flow = Flow::parse(bytes, &inner);
    assert_eq!((flow.source, flow.destination), (inner.source, inner.destination));
    let mut changed = bytes.to_vec();
    changed.push(0xee);
    ecn::set_type_of_service(&mut changed, &inner, !inner.tos);
    let again = inner_packet::parse(&changed).expect("marks make no other packet");
    let again = Flow::parse(&changed, &again);
    assert_eq!((again, again.hash()), (flow, flow.hash()), "neither marks nor padding count");
    if let Some(Ports { source, destination }) = flow.ports {
        let ports = (u32::from(source) << 16 | u32::from(destination)).to_be_bytes();
        let header = if flow.source.is_ipv4() { 20 } else { 40 };
        let above = &bytes[header..inner.len];
        assert!(above.windows(4).any(|four| four == ports), "the packet has them");
        assert!([6, 17, 33, 132, 136].contains(&flow.protocol), "{} has none", flow.protocol);
    }
}

/// An inner packet that may be too big, behind two bytes with the MTU. An answer is a packet that can
/// be sent, to the sender, and is not answered itself.
pub fn icmp(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mtu = u32::from(input.word());
    let packet = input.rest();
    for own in [IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V6(Ipv6Addr::from([0xfd; 16]))] {
        let mut place = [0xee; icmp_answer::MAX_LEN];
        let Some(len) = icmp_answer::too_big(packet, mtu, own, &mut place) else { continue };
        let answer = &place[..len];
        let asked = inner_packet::parse(packet).expect("only packets are answered");
        let told = inner_packet::parse(answer).expect("an answer is a packet");
        assert_eq!((told.len, told.source, told.destination), (len, own, asked.source));
        let is_icmpv6 = packet[0] >> 4 == 6 && packet[6] == 58;
        assert!(!is_icmpv6 || packet[40] >= 128, "an error of ICMPv6 is not answered");
        let (header, quote) = if own.is_ipv4() { (20, 28) } else { (40, 48) };
        assert!(packet.starts_with(&answer[quote..]), "the quotation is one");
        if own.is_ipv4() {
            assert_eq!(checksum::internet(&answer[..header]), 0);
            assert_eq!(checksum::internet(&answer[header..]), 0);
        }
        let mut again = [0; icmp_answer::MAX_LEN];
        assert_eq!(icmp_answer::too_big(answer, 68, asked.source, &mut again), None);
        assert_eq!(icmp_answer::too_big(answer, 68, own, &mut again), None);
    }
}

/// An inner packet whose TCP announcement is lowered, behind two bytes with the MTU and one that says
/// what its checksum field holds. Once is enough, nothing else changes, and a right checksum stays right.
pub fn mss(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mtu = u32::from(input.word());
    let field = match input.byte() % 3 {
        0 => Checksum::Complete,
        1 => Checksum::Missing,
        _ => Checksum::Shown,
    };
    let packet = input.rest();
    let mut changed = packet.to_vec();
    let lowered = segment::clamp(&mut changed, mtu, field);
    assert_eq!(lowered, changed != packet);
    if !lowered {
        return;
    }
    assert!(!segment::clamp(&mut changed.clone(), mtu, field), "once is enough");
    let inner = inner_packet::parse(packet).expect("only packets are changed");
    assert_eq!(inner_packet::parse(&changed), Some(inner), "the IP header stays");
    assert_eq!(changed[inner.len..], packet[inner.len..], "padding stays");
    if field == Checksum::Complete {
        // The sum over an even number of bytes from an even place on is what the checksum is kept right
        // by. All headers in front of TCP are of even length.
        let sum = |packet: &[u8]| checksum::internet(&packet[..inner.len]) % 0xffff;
        assert_eq!(sum(&changed), sum(packet), "right stays right, wrong stays wrong");
    }
}
