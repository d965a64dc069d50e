//! Headers that lie.

use mpt_io::tun::{Offloads, ReadCounters, SuperPacket, VnetHeader};
use proptest::prelude::*;

use crate::flow::{Flow, flows, payload};
use crate::wire::split_counting;

/// The counters after one read.
fn read(header: &VnetHeader, packet: &[u8], offloads: Offloads) -> ReadCounters {
    let mut counters = ReadCounters::default();
    let packets = split_counting(header, packet, offloads, &mut counters);
    assert_eq!(packets.len() as u64, counters.packets);
    counters
}

#[test]
fn every_invalid_header_has_a_drop_name() {
    const NONE: ReadCounters = ReadCounters {
        packets: 0,
        super_packets: 0,
        truncated: 0,
        unknown_type: 0,
        unasked_type: 0,
        no_size: 0,
        contradicted: 0,
        misplaced_checksum: 0,
    };
    for flow in Flow::mergeable() {
        let (good, packet) = flow.super_packet(&[7; 3000], 1000);
        let (partial, short) = flow.partial(b"short");
        assert_eq!(read(&good, &packet, Offloads::ALL).dropped(), 0);
        let other_type = match good.gso_type {
            VnetHeader::GSO_TCPV4 => VnetHeader::GSO_TCPV6,
            VnetHeader::GSO_TCPV6 => VnetHeader::GSO_UDP_L4,
            _ => VnetHeader::GSO_TCPV4,
        };
        let contradicted = ReadCounters { contradicted: 1, ..NONE };
        let misplaced = ReadCounters { misplaced_checksum: 1, ..NONE };
        let start = good.csum_start;
        let headers = packet.len() - 3000;
        for (what, header, packet, expected) in [
            (
                "a type that does not exist",
                VnetHeader { gso_type: 2, ..good },
                &packet[..],
                ReadCounters { unknown_type: 1, ..NONE },
            ),
            (
                "tunnelled segmentation",
                VnetHeader { gso_type: good.gso_type | 0x20, ..good },
                &packet,
                ReadCounters { unknown_type: 1, ..NONE },
            ),
            (
                "fragmentation, which is never asked for",
                VnetHeader { gso_type: VnetHeader::GSO_UDP, ..good },
                &packet,
                ReadCounters { unasked_type: 1, ..NONE },
            ),
            (
                "segments without size",
                VnetHeader { gso_size: 0, ..good },
                &packet,
                ReadCounters { no_size: 1, ..NONE },
            ),
            (
                "another protocol or version",
                VnetHeader { gso_type: other_type, ..good },
                &packet,
                contradicted,
            ),
            ("a length beyond the end", good, &packet[..packet.len() - 1], contradicted),
            ("headers beyond the end", good, &packet[..headers - 1], contradicted),
            ("a packet of no version", good, &[0x55; 2000], contradicted),
            ("no checksum", VnetHeader { flags: 0, ..good }, &packet, misplaced),
            ("another start", VnetHeader { csum_start: start - 1, ..good }, &packet, misplaced),
            ("another field", VnetHeader { csum_offset: 2, ..good }, &packet, misplaced),
            (
                "a sum beyond 16 bits",
                VnetHeader { csum_start: 0xffff, csum_offset: 0xffff, ..good },
                &packet,
                misplaced,
            ),
            (
                "a checksum behind the packet",
                VnetHeader { csum_offset: short.len() as u16 - start - 1, ..partial },
                &short,
                misplaced,
            ),
            (
                "a checksum far away",
                VnetHeader { csum_offset: 0xffff, ..partial },
                &short,
                misplaced,
            ),
            (
                "a checksum in the IP header",
                VnetHeader { csum_start: 8, ..partial },
                &short,
                misplaced,
            ),
            ("a checksum in no packet", partial, &[0x55; 80], misplaced),
        ] {
            assert_eq!(read(&header, packet, Offloads::ALL), expected, "{what}: {flow:?}");
        }
    }
}

#[test]
fn a_super_packet_must_have_a_segment_size() {
    for flow in Flow::mergeable() {
        let (header, packet) = flow.super_packet(&[], 1000);
        let expected = ReadCounters { contradicted: 1, ..ReadCounters::default() };
        assert_eq!(read(&header, &packet, Offloads::ALL), expected);
    }
}

#[test]
fn offloads_that_were_not_requested_are_off() {
    let (tcp, udp) = (Flow::tcp6(), Flow::udp4());
    let no_tso = Offloads { tso: false, ..Offloads::ALL };
    let no_uso = Offloads { uso: false, ..Offloads::ALL };
    for (flow, offloads, dropped) in
        [(&tcp, no_tso, 1), (&udp, no_uso, 1), (&tcp, no_uso, 0), (&udp, no_tso, 0)]
    {
        let (header, packet) = flow.super_packet(&[7; 3000], 1000);
        let counters = read(&header, &packet, offloads);
        assert_eq!((counters.unasked_type, counters.dropped()), (dropped, dropped));
        assert_eq!(counters.packets, 3 * (1 - dropped));
    }
}

#[test]
fn a_read_without_a_packet_is_truncated() {
    for len in 0..=10 {
        let (mut memory, mut counters) = (vec![0; len], ReadCounters::default());
        let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
        assert_eq!(read.next_packet(), None);
        assert_eq!((counters.truncated, counters.dropped(), counters.packets), (1, 1, 0));
    }
}

/// Any header, mostly near to one that could be.
fn headers() -> impl Strategy<Value = VnetHeader> {
    let gso_type = prop_oneof![
        4 => prop::sample::select(&[0_u8, 1, 4, 5, 0x81, 0x84][..]),
        1 => any::<u8>(),
    ];
    let small = || prop_oneof![3 => 0..100_u16, 1 => any::<u16>()];
    (any::<u8>(), gso_type, any::<u16>(), small(), small(), small()).prop_map(
        |(flags, gso_type, hdr_len, gso_size, csum_start, csum_offset)| VnetHeader {
            flags,
            gso_type,
            hdr_len,
            gso_size,
            csum_start,
            csum_offset,
        },
    )
}

proptest! {
    #[test]
    fn random_bytes_are_read_or_counted(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        header in headers(),
        (vnet_header, tso, uso) in any::<(bool, bool, bool)>(),
    ) {
        for memory in [bytes.clone(), [&header.to_bytes()[..], &bytes].concat()] {
            read_or_counted(memory, Offloads { vnet_header, tso, uso });
        }
    }

    #[test]
    fn damaged_super_packets_are_read_or_counted(
        (flow, payload, size) in (flows(), payload(600), 1..300_usize),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        (lied, replaced) in (headers(), any::<bool>()),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let (header, packet) = flow.super_packet(&payload, size);
        let header = if replaced { lied } else { header };
        let mut memory = [&header.to_bytes()[..], &packet].concat();
        // Damage lands in the headers, which are what is interpreted.
        let headers_len = memory.len() - payload.len();
        for (place, byte) in damage {
            memory[place.index(headers_len)] = byte;
        }
        if is_cut {
            memory.truncate(cut.index(memory.len()));
        }
        read_or_counted(memory, Offloads::ALL);
    }
}

fn read_or_counted(mut memory: Vec<u8>, offloads: Offloads) {
    let mut counters = ReadCounters::default();
    let len = memory.len();
    let mut read = SuperPacket::new(&mut memory, offloads, &mut counters);
    let mut packets = 0;
    while let Some(packet) = read.next_packet() {
        assert!(packet.len() <= len);
        packets += 1;
    }
    assert_eq!(packets, counters.packets);
    assert_eq!(counters.dropped(), u64::from(packets == 0));
}
