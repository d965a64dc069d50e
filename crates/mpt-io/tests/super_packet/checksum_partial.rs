//! Packets whose checksum may be partial, without an indication of it.

use mpt_io::tun::{Coalescer, Counters, Offloads, Outlet, ReadCounters, SuperPacket, VnetHeader};
use proptest::prelude::*;

use crate::flow::{Extension, Flow, Ip, Transport, flows, payload};
use crate::wire::Recorder;

/// Pushes packets in one burst.
fn push_all(device: &Recorder, packets: &[Vec<u8>]) -> Counters {
    let mut coalescer = Coalescer::new();
    for packet in packets {
        coalescer.push_either(device, packet);
    }
    coalescer.flush(device);
    coalescer.counters()
}

/// What one packet alone is written as.
fn write(packet: &[u8]) -> (VnetHeader, Vec<u8>) {
    let device = Recorder::new(Offloads::ALL);
    push_all(&device, &[packet.to_vec()]);
    device.writes().remove(0)
}

/// What a sender that leaves checksums out makes of what it reads.
fn checksum_partial(header: &VnetHeader, packet: &[u8]) -> Vec<Vec<u8>> {
    let (mut memory, mut counters) =
        ([&header.to_bytes()[..], packet].concat(), ReadCounters::default());
    let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
    let mut packets = Vec::new();
    while let Some(packet) = read.next_unfinished() {
        let mut place = vec![0xee; packet.bytes().len()];
        packet.emit_partial(&mut place);
        packets.push(place);
    }
    packets
}

proptest! {
    #[test]
    fn all_datagrams_sent_arrive(
        (flow, payload, size) in (flows(), payload(4000), 1..2000_usize),
        kind in 0..3,
        offloads in prop::sample::select(&[
            Offloads::ALL,
            Offloads { tso: false, uso: false, ..Offloads::ALL },
            Offloads::NONE,
        ][..]),
    ) {
        let (expected, sent) = match kind {
            // Segments, a packet without checksum, and packets with a complete checksum.
            0 => {
                let (header, packet) = flow.super_packet(&payload, size);
                (flow.packets(&payload, size), checksum_partial(&header, &packet))
            }
            1 => {
                let (header, packet) = flow.partial(&payload);
                (flow.packets(&payload, payload.len()), checksum_partial(&header, &packet))
            }
            _ => {
                let packets = flow.packets(&payload, size);
                let sent = packets.iter().flat_map(|one| checksum_partial(&VnetHeader::NONE, one));
                (packets.clone(), sent.collect())
            }
        };
        let device = Recorder::new(offloads);
        let counters = push_all(&device, &sent);
        prop_assert_eq!(counters.written, expected.len() as u64);
        prop_assert_eq!((counters.corrupt, counters.unfinishable), (0, 0));
        prop_assert_eq!(device.packets(), expected);
    }

    #[test]
    fn random_bytes_arrive_as_they_are_or_completed(packet in payload(120)) {
        let device = Recorder::new(Offloads::ALL);
        prop_assert_eq!(push_all(&device, &[packet]).written, 1);
    }
}

#[test]
fn complete_and_partial_packets_are_merged_alike() {
    for flow in Flow::mergeable() {
        let complete = flow.packets(&[7; 5999], 1000);
        let mut packets = flow.partials(&[7; 5999], 1000);
        for place in [1, 2, 5] {
            packets[place].clone_from(&complete[place]);
        }
        let device = Recorder::new(Offloads::ALL);
        let counters = push_all(&device, &packets);
        assert_eq!((device.writes().len(), counters.merged, counters.corrupt), (1, 6, 0));
        assert_eq!(device.packets(), complete);
    }
}

#[test]
fn a_single_packet_is_completed_by_the_kernel_only_if_partial() {
    for flow in Flow::mergeable() {
        for payload in [&b"odd"[..], b"even", b""] {
            let (partial, complete) = if payload.is_empty() {
                let field = flow.checksum_at().1;
                let mut partial = flow.partials(b"x", 1).remove(0);
                let complete = flow.empty();
                // The pseudo header of a packet that is one byte shorter.
                let sum = u16::from_be_bytes([partial[field], partial[field + 1]]) - 1;
                partial.clone_from(&complete);
                partial[field..field + 2].copy_from_slice(&sum.to_be_bytes());
                (partial, complete)
            } else {
                let partial = flow.partials(payload, 100).remove(0);
                (partial, flow.packets(payload, 100).remove(0))
            };
            assert_eq!(write(&complete), (VnetHeader::NONE, complete));
            let (header, written) = write(&partial);
            assert!(header.needs_checksum() && header.gso_type == VnetHeader::GSO_NONE);
            assert_eq!(written, partial);
        }
    }
}

#[test]
fn extensions_do_not_hide_a_missing_checksum() {
    for transport in [Flow::tcp6().transport, Transport::Udp] {
        let extensions = vec![Extension { number: 0, len: 1 }, Extension { number: 60, len: 0 }];
        let ip = Ip::V6 { flow_label: 7, extensions };
        let flow = Flow { ip, transport, ..Flow::tcp6() };
        let (header, written) = write(&flow.partials(b"payload", 100)[0]);
        assert_eq!(usize::from(header.csum_start), flow.checksum_at().0);
        let device = Recorder::new(Offloads::ALL);
        device.write_with(&header, &written).unwrap();
        assert_eq!(device.packets(), flow.packets(b"payload", 100));
    }
}

#[test]
fn what_has_no_transport_checksum_is_not_touched() {
    // No checksum in UDP, a fragment, ICMP that quotes a partial packet, and less than a header.
    let mut without = Flow::udp4().packets(b"payload", 100).remove(0);
    without[26..28].fill(0);
    let mut fragment = Flow::udp4().partials(b"payload", 100).remove(0);
    fragment[6] |= 0x20;
    let mut fragment_v6 = Flow::udp6().partials(b"payload", 100).remove(0);
    fragment_v6[6] = 44;
    fragment_v6.splice(40..40, [17, 0, 0, 1, 0, 0, 0, 1]);
    let mut icmp = Flow::udp4().partials(b"payload", 100).remove(0);
    icmp[9] = 1;
    let cut = Flow::tcp4().partials(b"payload", 100)[0][..39].to_vec();
    for packet in [without, fragment, fragment_v6, icmp, cut] {
        assert_eq!(write(&packet), (VnetHeader::NONE, packet));
    }
}

#[test]
fn a_checksum_that_looks_like_the_sum_of_the_pseudo_header_stays_what_it_is() {
    for flow in Flow::mergeable() {
        // In a one's complement sum, what the payload adds to the checksum of zeroes to make it the
        // sum of the pseudo header is their difference.
        let field = flow.checksum_at().1;
        let word = |packet: &[u8]| u16::from_be_bytes([packet[field], packet[field + 1]]);
        let wanted = word(&flow.partials(&[0, 0], 100)[0]);
        let (sum, carry) = (!wanted).overflowing_add(word(&flow.packets(&[0, 0], 100)[0]));
        let payload = (sum + u16::from(carry)).to_be_bytes();
        let complete = flow.packets(&payload, 100).remove(0);
        assert_eq!(word(&complete), wanted);
        let device = Recorder::new(Offloads::ALL);
        push_all(&device, std::slice::from_ref(&complete));
        assert!(device.writes()[0].0.needs_checksum(), "it is taken for a partial one");
        assert_eq!(device.packets(), [complete]);
    }
}

#[test]
fn a_corrupt_packet_stays_corrupt() {
    for flow in Flow::mergeable() {
        for bad in 0..4 {
            let mut packets = flow.packets(&[1; 400], 100);
            *packets[bad].last_mut().unwrap() ^= 0x10;
            let device = Recorder::new(Offloads::ALL);
            assert_eq!(push_all(&device, &packets).corrupt, 1);
            assert_eq!(device.packets(), packets, "not a bit mended");
        }
    }
}
