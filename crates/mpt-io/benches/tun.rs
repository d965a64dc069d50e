//! Time per packet between TUN device and tunnel, without the kernel's share: splitting
//! super-packets, and putting packets together again.
//!
//! Every figure is for one super-packet of 64 kB; divan's items per second count its packets.

#[path = "instructions/nowhere.rs"]
mod nowhere;

use std::hint::black_box;

use divan::counter::ItemsCount;
use divan::{Bencher, Divan};
use mpt_io::tun::{Coalescer, Offloads, ReadCounters, SuperPacket, Unfinished, VnetHeader};
use nowhere::Nowhere;

fn main() {
    Divan::from_args().main();
}

/// Bytes of payload in each packet, and of a UDP flood.
const SIZES: [usize; 2] = [1448, 64];

/// A protocol and its headers in front of payload.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Tcp4,
    Tcp6,
    Udp4,
}

const KINDS: [Kind; 3] = [Kind::Tcp4, Kind::Tcp6, Kind::Udp4];

#[divan::bench(args = KINDS, consts = SIZES)]
fn split<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    let super_packet = super_packet(kind, SIZE);
    let packets = packets(&super_packet).len();
    bencher
        .counter(ItemsCount::new(packets))
        .with_inputs(|| super_packet.clone())
        .bench_local_refs(|memory| {
            let mut counters = ReadCounters::default();
            let mut read = SuperPacket::new(memory, Offloads::ALL, &mut counters);
            while let Some(packet) = read.next_packet() {
                black_box(packet);
            }
        });
}

/// Splitting with the copy into a send batch of datagrams, in one pass.
#[divan::bench(args = KINDS, consts = SIZES)]
fn split_and_emit<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    into_batch(bencher, &super_packet(kind, SIZE), |packet, place| packet.emit(place));
}

/// The same in two passes.
#[divan::bench(args = KINDS, consts = SIZES)]
fn split_and_copy<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    into_batch(bencher, &super_packet(kind, SIZE), |packet, place| {
        place.copy_from_slice(packet.finish());
    });
}

/// The same without checksums.
#[divan::bench(args = KINDS, consts = SIZES)]
fn split_and_emit_partial<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    into_batch(bencher, &super_packet(kind, SIZE), |packet, place| {
        black_box(packet.emit_partial(place));
    });
}

fn into_batch(
    bencher: Bencher<'_, '_>,
    super_packet: &[u8],
    emit: impl Fn(Unfinished<'_>, &mut [u8]),
) {
    const HEADER: usize = 12;
    let packets = packets(super_packet).len();
    let mut send_batch = vec![0; 2 * super_packet.len() + 100 * packets];
    bencher
        .counter(ItemsCount::new(packets))
        .with_inputs(|| super_packet.to_vec())
        .bench_local_refs(|memory| {
            let mut counters = ReadCounters::default();
            let mut read = SuperPacket::new(memory, Offloads::ALL, &mut counters);
            let mut rest = &mut send_batch[..];
            while let Some(packet) = read.next_unfinished() {
                let (place, behind) = rest.split_at_mut(HEADER + packet.bytes().len());
                emit(packet, &mut place[HEADER..]);
                rest = behind;
            }
            black_box(rest);
        });
}

#[divan::bench(args = KINDS, consts = SIZES)]
fn split_leaving_checksums_out<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    let super_packet = super_packet(kind, SIZE);
    let packets = packets(&super_packet).len();
    bencher
        .counter(ItemsCount::new(packets))
        .with_inputs(|| super_packet.clone())
        .bench_local_refs(|memory| {
            let mut counters = ReadCounters::default();
            let mut read = SuperPacket::new(memory, Offloads::ALL, &mut counters);
            while let Some(packet) = read.next_unfinished() {
                black_box(packet.leave());
            }
        });
}

#[divan::bench(args = KINDS, consts = SIZES)]
fn coalesce<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    bench_coalesce(bencher, &packets(&super_packet(kind, SIZE)), Coalescer::push);
}

#[divan::bench(args = KINDS, consts = SIZES)]
fn coalesce_with_checksums_left_out<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    bench_coalesce(bencher, &partials(&super_packet(kind, SIZE)), Coalescer::push_partial);
}

/// The same, without an indication of it.
#[divan::bench(args = KINDS, consts = SIZES)]
fn coalesce_partial<const SIZE: usize>(bencher: Bencher<'_, '_>, kind: Kind) {
    bench_coalesce(bencher, &partials(&super_packet(kind, SIZE)), Coalescer::push_either);
}

fn bench_coalesce(
    bencher: Bencher<'_, '_>,
    packets: &[Vec<u8>],
    push: impl Fn(&mut Coalescer, &Nowhere, &[u8]),
) {
    let mut coalescer = Coalescer::new();
    bencher.counter(ItemsCount::new(packets.len())).bench_local(|| {
        for packet in packets {
            push(&mut coalescer, &Nowhere, black_box(packet));
        }
        coalescer.flush(&Nowhere);
    });
}

/// Acknowledgements without payload, none of which can be merged.
#[divan::bench]
fn coalesce_nothing(bencher: Bencher<'_, '_>) {
    let mut ack = packets(&super_packet(Kind::Tcp4, 1388)).remove(0);
    ack.truncate(52);
    ack[2..4].copy_from_slice(&52_u16.to_be_bytes());
    let mut coalescer = Coalescer::new();
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        coalescer.push(&Nowhere, black_box(&ack));
    });
}

/// A super-packet of 64 kB, or 64 datagrams, as the kernel hands it out.
fn super_packet(kind: Kind, size: usize) -> Vec<u8> {
    let tcp = [1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 7, 0x80, 0x10, 1, 0, 0, 0, 0, 0];
    let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let (transport, offset) = match kind {
        Kind::Tcp4 | Kind::Tcp6 => ([&tcp[..], &options].concat(), 16),
        Kind::Udp4 => (vec![1, 2, 3, 4, 0, 0, 0, 0], 6),
    };
    let ip_len = if matches!(kind, Kind::Tcp6) { 40 } else { 20 };
    let headers = ip_len + transport.len();
    let count = if matches!(kind, Kind::Udp4) { 64 } else { usize::MAX };
    let payload = ((65_535 - headers) / size).min(count) * size;
    let (total, behind) = ((headers + payload) as u16, (transport.len() + payload) as u16);
    let mut ip = match kind {
        Kind::Tcp6 => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, 6, 64];
            ip[4..6].copy_from_slice(&behind.to_be_bytes());
            ip.resize(40, 0xfd);
            ip
        }
        Kind::Tcp4 | Kind::Udp4 => {
            let protocol = if matches!(kind, Kind::Tcp4) { 6 } else { 17 };
            let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, protocol, 0, 0];
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip.extend([10, 9, 0, 1, 10, 9, 0, 2]);
            ip
        }
    };
    let addresses = if ip_len == 20 { &ip[12..] } else { &ip[8..] };
    let protocol = if matches!(kind, Kind::Udp4) { 17 } else { 6 };
    let words = addresses.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>() + protocol + u32::from(behind);
    let sum = (sum & 0xffff) + (sum >> 16);
    ip.extend(&transport);
    ip[ip_len + offset..][..2]
        .copy_from_slice(&(((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    ip.extend((0..payload).map(|i| (i * 7) as u8));
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: match kind {
            Kind::Tcp4 => VnetHeader::GSO_TCPV4,
            Kind::Tcp6 => VnetHeader::GSO_TCPV6,
            Kind::Udp4 => VnetHeader::GSO_UDP_L4,
        },
        hdr_len: headers as u16,
        gso_size: size as u16,
        csum_start: ip_len as u16,
        csum_offset: offset as u16,
    };
    [&header.to_bytes()[..], &ip].concat()
}

/// The finished packets of a super-packet.
fn packets(super_packet: &[u8]) -> Vec<Vec<u8>> {
    let (mut memory, mut counters) = (super_packet.to_vec(), ReadCounters::default());
    let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
    let mut packets = Vec::new();
    while let Some(packet) = read.next_packet() {
        packets.push(packet.to_vec());
    }
    assert!(packets.len() > 40 && counters.dropped() == 0, "{counters:?}");
    packets
}

/// The packets of a super-packet without their checksums.
fn partials(super_packet: &[u8]) -> Vec<Vec<u8>> {
    let (mut memory, mut counters) = (super_packet.to_vec(), ReadCounters::default());
    let mut read = SuperPacket::new(&mut memory, Offloads::ALL, &mut counters);
    let mut packets = Vec::new();
    while let Some(packet) = read.next_unfinished() {
        let (packet, partial) = packet.leave();
        assert!(partial, "all of a super-packet lack it");
        packets.push(packet.to_vec());
    }
    packets
}
