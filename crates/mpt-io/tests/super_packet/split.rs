//! Packets out of super-packets.

use mpt_io::tun::{Offloads, ReadCounters, SuperPacket, VnetHeader};
use proptest::prelude::*;

use crate::flow::{ACK, CWR, Flow, PSH, Transport, flows, payload};
use crate::wire::{split, split_counting};

proptest! {
    #[test]
    fn segments_are_the_packets_that_would_have_been_sent(
        (flow, payload, size) in (flows(), payload(6000), 1..2000_usize),
        ecn in any::<bool>(),
    ) {
        let (mut header, packet) = flow.super_packet(&payload, size);
        if ecn {
            header.gso_type |= VnetHeader::GSO_ECN;
        }
        header.hdr_len = 0; // a hint that nobody needs
        let expected = flow.packets(&payload, size);
        let mut counters = ReadCounters::default();
        let packets = split_counting(&header, &packet, Offloads::ALL, &mut counters);
        prop_assert_eq!(counters, ReadCounters {
            packets: expected.len() as u64,
            super_packets: u64::from(expected.len() > 1),
            ..ReadCounters::default()
        });
        prop_assert_eq!(packets, expected);
    }

    #[test]
    fn a_missing_checksum_is_filled_in((flow, payload) in (flows(), payload(2000))) {
        let (header, packet) = flow.partial(&payload);
        let expected = flow.packets(&payload, payload.len());
        prop_assert_eq!(split(&header, &packet), expected);
    }

    #[test]
    fn a_packet_that_lacks_nothing_is_not_touched(packet in payload(2000)) {
        prop_assert_eq!(split(&VnetHeader::NONE, &packet), vec![packet]);
    }

    #[test]
    fn without_headers_every_byte_is_the_packet(packet in payload(2000)) {
        let (mut memory, mut counters) = (packet.clone(), ReadCounters::default());
        let mut read = SuperPacket::new(&mut memory, Offloads::NONE, &mut counters);
        prop_assert_eq!(read.next_packet(), Some(&packet[..]));
        prop_assert_eq!(read.next_packet(), None);
        prop_assert_eq!(counters, ReadCounters { packets: 1, ..ReadCounters::default() });
    }

    #[test]
    fn partial_checksums_are_the_only_difference(
        (flow, payload, size) in (flows(), payload(4000), 1..2000_usize),
    ) {
        let (header, packet) = flow.super_packet(&payload, size);
        let mut memory = [&header.to_bytes()[..], &packet].concat();
        let mut counters = ReadCounters::default();
        let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
        for (expected, left_out) in
            flow.packets(&payload, size).into_iter().zip(flow.partials(&payload, size))
        {
            let (left, partial) = read.next_unfinished().unwrap().leave();
            prop_assert_eq!(partial, !flow.is_routed());
            prop_assert_eq!(left, if partial { left_out } else { expected });
        }
        prop_assert!(read.next_unfinished().is_none());
    }

    #[test]
    fn emitted_packets_equal_those_completed_in_place(
        (flow, payload, size) in (flows(), payload(4000), 1..2000_usize),
        segmented in any::<bool>(),
    ) {
        let (header, packet) =
            if segmented { flow.super_packet(&payload, size) } else { flow.partial(&payload) };
        let size = if segmented { size } else { payload.len() };
        let mut memory = [&header.to_bytes()[..], &packet].concat();
        let mut counters = ReadCounters::default();
        let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
        for (expected, left_out) in
            flow.packets(&payload, size).into_iter().zip(flow.partials(&payload, size))
        {
            let packet = read.next_unfinished().unwrap();
            let mut place = vec![0xee; packet.bytes().len()];
            prop_assert_eq!(packet.emit_partial(&mut place), !flow.is_routed());
            prop_assert_eq!(&place, if flow.is_routed() { &expected } else { &left_out });
            prop_assert_eq!(packet.bytes(), &left_out);
            place.fill(0xee);
            packet.emit(&mut place);
            prop_assert_eq!(&place, &expected);
            prop_assert_eq!(packet.finish(), &expected);
        }
        prop_assert!(read.next_unfinished().is_none());
    }

    #[test]
    fn a_packet_that_lacks_nothing_is_emitted_as_it_is(packet in payload(2000)) {
        let mut memory = [&VnetHeader::NONE.to_bytes()[..], &packet].concat();
        let mut counters = ReadCounters::default();
        let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
        let unfinished = read.next_unfinished().unwrap();
        let mut place = vec![0xee; packet.len()];
        unfinished.emit(&mut place);
        prop_assert_eq!(&place, &packet);
        place.fill(0xee);
        prop_assert!(!unfinished.emit_partial(&mut place));
        prop_assert_eq!(&place, &packet);
    }
}

#[test]
fn the_largest_super_packet_is_split() {
    for flow in Flow::mergeable() {
        let headers = flow.partial(b"x").1.len() - 1;
        let payload: Vec<u8> = (0..65_535 - headers).map(|i| (i * 31 / 7) as u8).collect();
        for size in [1, 536, 1448, 9000, payload.len()] {
            let (header, packet) = flow.super_packet(&payload, size);
            assert_eq!(packet.len(), 65_535);
            assert!(split(&header, &packet) == flow.packets(&payload, size), "{size}: {flow:?}");
        }
    }
}

#[test]
fn a_flag_of_one_end_stays_at_that_end() {
    let mut flow = Flow::tcp4();
    let Transport::Tcp { flags, .. } = &mut flow.transport else { unreachable!() };
    *flags = ACK | PSH | CWR;
    let (header, packet) = flow.super_packet(&[0; 30], 10);
    let flags: Vec<u8> = split(&header, &packet).iter().map(|packet| packet[33]).collect();
    assert_eq!(flags, [ACK | CWR, ACK, ACK | PSH]);
}

#[test]
fn a_checksum_that_the_far_end_would_not_recognize_as_partial_is_completed() {
    // A datagram of another tunnel, in which the kernel left the inner checksum open: its place
    // cannot be seen from the outside.
    let (inner_header, inner) = Flow::tcp4().partial(b"in a tunnel in a tunnel");
    let flow = Flow::udp6();
    let packet = flow.packets(&inner, 2000).remove(0);
    let start = (packet.len() - inner.len()) as u16 + inner_header.csum_start;
    let header = VnetHeader { csum_start: start, ..inner_header };
    let mut memory = [&header.to_bytes()[..], &packet].concat();
    let mut counters = ReadCounters::default();
    let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
    let (left, partial) = read.next_unfinished().unwrap().leave();
    assert!(!partial);
    let expected = Flow::tcp4().packets(b"in a tunnel in a tunnel", 2000).remove(0);
    assert_eq!(left[packet.len() - inner.len()..], expected);

    let whole = flow.packets(b"x", 1).remove(0);
    let mut memory = [&VnetHeader::NONE.to_bytes()[..], &whole].concat();
    let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
    assert_eq!(read.next_unfinished().unwrap().leave(), (&whole[..], false));
}
