//! Super-packets out of packets.

use mpt_io::tun::{Coalescer, Counters, Identification, Offloads, VnetHeader};
use proptest::prelude::*;

use crate::flow::{Flow, Ip, PSH, Transport, flows, payload};
use crate::wire::{Recorder, split};

/// Pushes packets in one burst.
fn push_all(device: &Recorder, packets: &[Vec<u8>]) -> Counters {
    let mut coalescer = Coalescer::new();
    for packet in packets {
        coalescer.push(device, packet);
    }
    coalescer.flush(device);
    coalescer.counters()
}

fn bytes(packets: &[Vec<u8>]) -> u64 {
    packets.iter().map(|packet| packet.len() as u64).sum()
}

#[test]
fn packets_become_the_super_packet_that_they_were() {
    for mut flow in Flow::mergeable() {
        let payload: Vec<u8> = (0..60_100).map(|i| (i * 7 / 5) as u8).collect();
        if let Transport::Tcp { flags, .. } = &mut flow.transport {
            *flags |= PSH;
        }
        let (device, packets) = (Recorder::new(Offloads::ALL), flow.packets(&payload, 1400));
        let counters = push_all(&device, &packets);
        assert!(device.writes() == [flow.super_packet(&payload, 1400)], "{flow:?}");
        let expected = Counters {
            written: 43,
            bytes: bytes(&packets),
            super_packets: 1,
            merged: 43,
            ..Counters::default()
        };
        assert_eq!(counters, expected);
    }
}

#[test]
fn the_last_packet_of_a_run_ends_it() {
    for mut flow in Flow::mergeable() {
        // A short packet ends the run: the next one begins another although it would fit.
        let device = Recorder::new(Offloads::ALL);
        let mut packets = flow.packets(&[1; 2500], 1000);
        packets.extend(flow.continued(2500, 3).packets(&[1; 2000], 1000));
        push_all(&device, &packets);
        assert_eq!(device.writes().len(), 2, "{flow:?}");
        assert_eq!(device.packets(), packets);

        // So does a pushed one, even of full size.
        let Transport::Tcp { flags, .. } = &mut flow.transport else { continue };
        *flags |= PSH;
        let device = Recorder::new(Offloads::ALL);
        let mut packets = flow.packets(&[1; 2000], 1000);
        packets.extend(flow.continued(2000, 2).packets(&[1; 2000], 1000));
        push_all(&device, &packets);
        assert_eq!(device.writes().len(), 2);
        assert_eq!(device.packets(), packets);
    }
}

#[test]
fn a_super_packet_has_its_limits() {
    let device = Recorder::new(Offloads::ALL);
    let packets = Flow::tcp4().packets(&[1; 140_000], 1448);
    push_all(&device, &packets);
    let lengths: Vec<usize> = device.writes().iter().map(|(_, packet)| packet.len()).collect();
    let full = 52 + 1448 * ((65_535 - 52) / 1448);
    assert_eq!(lengths, [full, full, 52 + 140_000 - 2 * (full - 52)]);

    let device = Recorder::new(Offloads::ALL);
    push_all(&device, &Flow::udp6().packets(&[1; 6500], 50));
    let sizes: Vec<usize> = device.writes().iter().map(|(_, packet)| packet.len()).collect();
    assert_eq!(sizes, [48 + 64 * 50, 48 + 64 * 50, 48 + 2 * 50]);
}

#[test]
fn a_burst_ends_with_flush() {
    let device = Recorder::new(Offloads::ALL);
    let packets = Flow::udp4().packets(&[1; 300], 100);
    let mut coalescer = Coalescer::new();
    coalescer.push(&device, &packets[0]);
    assert!(device.writes().is_empty(), "it waits for the next");
    coalescer.flush(&device);
    assert_eq!(device.writes(), [(VnetHeader::NONE, packets[0].clone())]);
    coalescer.flush(&device);
    assert_eq!(device.writes().len(), 1);
}

#[test]
fn switched_off_means_one_write_for_each_packet() {
    let packets = [Flow::tcp4(), Flow::udp4()].map(|flow| flow.packets(&[1; 3000], 1000)).concat();
    for (offloads, expected) in [
        (Offloads::ALL, 2),
        (Offloads { tso: false, ..Offloads::ALL }, 4),
        (Offloads { uso: false, ..Offloads::ALL }, 4),
        (Offloads { tso: false, uso: false, vnet_header: true }, 6),
        (Offloads::NONE, 6),
    ] {
        let device = Recorder::new(offloads);
        let counters = push_all(&device, &packets);
        assert_eq!(device.writes().len(), expected, "{offloads:?}");
        assert_eq!(device.packets(), packets);
        assert_eq!((counters.written, counters.bytes), (6, bytes(&packets)));
    }
}

#[test]
fn a_kernel_that_refuses_super_packets_gets_single_packets() {
    for (flow, gso_type) in Flow::mergeable().into_iter().zip([
        VnetHeader::GSO_TCPV4,
        VnetHeader::GSO_TCPV6,
        VnetHeader::GSO_UDP_L4,
        VnetHeader::GSO_UDP_L4,
    ]) {
        let device = Recorder::refusing(gso_type);
        let packets = flow.packets(&[3; 4500], 1000);
        let mut coalescer = Coalescer::new();
        for _ in 0..2 {
            packets.iter().for_each(|packet| coalescer.push(&device, packet));
            coalescer.flush(&device);
        }
        assert_eq!(device.packets(), [packets.clone(), packets.clone()].concat());
        let (written, bytes) = (10, 2 * bytes(&packets));
        let expected = Counters { written, bytes, refused: 1, ..Counters::default() };
        assert_eq!(coalescer.counters(), expected, "asked once, then never again");
    }
}

#[test]
fn equal_identifications_are_kept_or_renumbered() {
    let numbered = |dont_fragment| {
        let ip = Ip::V4 { identification: 0, dont_fragment, options: vec![] };
        let flow = Flow { ip, ..Flow::udp4() };
        [(); 4].map(|()| flow.packets(&[9; 100], 100).remove(0)).to_vec()
    };
    for (identification, dont_fragment, expected) in [
        (Identification::Keep, true, 4),
        (Identification::Renumber, true, 1),
        (Identification::Renumber, false, 4),
    ] {
        let (device, packets) = (Recorder::new(Offloads::ALL), numbered(dont_fragment));
        let mut coalescer = Coalescer::with_identification(identification);
        packets.iter().for_each(|packet| coalescer.push(&device, packet));
        coalescer.flush(&device);
        assert_eq!(device.writes().len(), expected, "{identification:?} {dont_fragment}");
        if expected == 4 {
            assert_eq!(device.packets(), packets);
        } else {
            let ip = Ip::V4 { identification: 0, dont_fragment, options: vec![] };
            let expected = Flow { ip, ..Flow::udp4() }.packets(&[9; 400], 100);
            assert_eq!(device.packets(), expected);
        }
    }
    // Increasing identifications are not merged with equal ones, nor the reverse.
    let flow = Flow {
        ip: Ip::V4 { identification: 0, dont_fragment: true, options: vec![] },
        ..Flow::udp4()
    };
    let [zero, one, two] =
        [0, 1, 2].map(|number| flow.continued(0, number).packets(&[9; 50], 50).remove(0));
    for packets in [[&zero, &one, &zero], [&zero, &zero, &two], [&zero, &zero, &one]] {
        let device = Recorder::new(Offloads::ALL);
        let mut coalescer = Coalescer::with_identification(Identification::Renumber);
        packets.iter().for_each(|packet| coalescer.push(&device, packet));
        coalescer.flush(&device);
        assert_eq!(device.writes().len(), 2);
    }
}

#[test]
fn packets_without_checksum_are_merged_or_finished() {
    for flow in Flow::mergeable() {
        let payload = [5; 3500];
        let expected = flow.packets(&payload, 1000);
        let partial: Vec<Vec<u8>> = flow.partials(&payload, 1000);
        for (offloads, writes) in [(Offloads::ALL, 1), (Offloads::NONE, 4)] {
            let device = Recorder::new(offloads);
            let mut coalescer = Coalescer::new();
            partial.iter().for_each(|packet| coalescer.push_partial(&device, packet));
            coalescer.flush(&device);
            assert_eq!(device.packets(), expected);
            assert_eq!((device.writes().len(), coalescer.counters().written), (writes, 4));
        }
        // A lone one asks the kernel for the checksum.
        let device = Recorder::new(Offloads::ALL);
        let mut coalescer = Coalescer::new();
        coalescer.push_partial(&device, &partial[3]);
        coalescer.flush(&device);
        assert!(device.writes()[0].0.needs_checksum());
        assert_eq!(device.packets(), expected[3..]);
    }
    let mut coalescer = Coalescer::new();
    let device = Recorder::new(Offloads::ALL);
    for nonsense in [&[][..], &[0x45; 3], &[0x45; 40], &[0x60; 60]] {
        coalescer.push_partial(&device, nonsense);
    }
    let expected = Counters { unfinishable: 4, ..Counters::default() };
    assert_eq!((coalescer.counters(), device.writes()), (expected, vec![]));
}

#[test]
fn a_damaged_packet_without_checksum_is_not_marked_valid() {
    for flow in Flow::mergeable() {
        let mut packets = flow.partials(&[5; 3000], 1000);
        packets[1][flow.checksum_at().1] ^= 1;
        let device = Recorder::new(Offloads::ALL);
        let mut coalescer = Coalescer::new();
        packets.iter().for_each(|packet| coalescer.push_partial(&device, packet));
        coalescer.flush(&device);
        let (header, written) = device.writes().remove(1);
        assert_eq!(header, VnetHeader::NONE, "the kernel checks it itself");
        let expected = flow.packets(&[5; 3000], 1000).remove(1);
        let field = flow.checksum_at().1;
        assert_ne!(written[field..field + 2], expected[field..field + 2]);
        assert_eq!(coalescer.counters().corrupt, 1);
    }
}

proptest! {
    #[test]
    fn split_and_coalesced_packets_are_the_same_bits(
        (flow, payload, size) in (flows(), payload(6000), 1..2000_usize),
        left_out in any::<bool>(),
    ) {
        let expected = flow.packets(&payload, size);
        let device = Recorder::new(Offloads::ALL);
        let mut coalescer = Coalescer::new();
        if left_out {
            for packet in flow.partials(&payload, size) {
                coalescer.push_partial(&device, &packet);
            }
        } else {
            let (header, packet) = flow.super_packet(&payload, size);
            for packet in split(&header, &packet) {
                coalescer.push(&device, &packet);
            }
        }
        coalescer.flush(&device);
        prop_assert_eq!(device.packets(), expected);
    }
}
