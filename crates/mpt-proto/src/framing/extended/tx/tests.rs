use super::*;
use crate::wire::inner;
use etherparse::PacketBuilder;

fn packet(source_port: u16) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(source_port, 9);
    builder.write(&mut packet, &[0; 20]).expect("a packet");
    packet
}

fn stamp(tx: &mut Tx, path: &mut WirePath, packet: &[u8]) -> Header {
    let inner = inner::parse(packet).expect("an IP packet");
    *tx.stamp(Instant::from_nanos(5_000), &Item::new(packet, &inner), path).header()
}

#[test]
fn each_packet_says_how_far_back_its_flow_was() {
    let (mut tx, mut path) = (Tx::new(7, false, false), WirePath { id: 3, next: u32::MAX });
    let flows = [packet(1), packet(2)];
    let order = [0, 0, 1, 0, 1, 1, 0];
    let headers = order.map(|flow| stamp(&mut tx, &mut path, &flows[flow]));
    assert_eq!(headers.map(|header| header.distance), [0, 1, 0, 2, 2, 1, 3]);
    assert_eq!(headers.map(|header| header.path_sequence)[..3], [u32::MAX, 0, 1]);
    let sequences = headers.map(|header| header.sequence.map(Seq::value));
    assert_eq!(sequences[6], Some(6));
    assert!(headers.iter().all(|header| (header.key, header.path, header.sent) == (7, 3, 5)));
}

#[test]
fn acknowledgements_of_tcp_wait_for_nothing_and_nothing_waits_for_them() {
    let segment = |data: &[u8]| {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder.tcp(1, 9, 7, 1000).ack(5).write(&mut packet, data).expect("a packet");
        packet
    };
    let (mut tx, mut path) = (Tx::new(7, false, false), WirePath { id: 3, next: 0 });
    let packets = [segment(b"data"), segment(b""), segment(b""), segment(b"data")];
    let distances = packets.map(|packet| stamp(&mut tx, &mut path, &packet).distance);
    assert_eq!(distances, [0, 0, 0, 3]);
}

#[test]
fn a_distance_that_does_not_fit_is_said_to_be_too_far() {
    let (mut tx, mut path) = (Tx::new(7, false, false), WirePath { id: 0, next: 0 });
    stamp(&mut tx, &mut path, &packet(1));
    tx.next = tx.next.plus(65_533);
    assert_eq!(stamp(&mut tx, &mut path, &packet(1)).distance, 65_534);
    tx.next = tx.next.plus(1 << 20);
    assert_eq!(stamp(&mut tx, &mut path, &packet(1)).distance, u16::MAX);
}

#[test]
fn a_copy_keeps_its_place_and_takes_a_new_path_sequence() {
    let (mut tx, mut path) = (Tx::new(7, false, false), WirePath { id: 0, next: 0 });
    let mut other = WirePath { id: 1, next: 40 };
    let header = stamp(&mut tx, &mut path, &packet(1));
    let first = Stamp { header, is_sealed: false };
    let no = |_| false;
    let copy = tx.again(first, no).expect("a copy");
    let copy = copy.leaving(Instant::from_nanos(9_000), &mut other);
    let Header { sequence, path, path_sequence, sent, flags, .. } = *copy.header();
    assert_eq!((sequence, path, path_sequence, sent), (Some(Seq::FIRST), 1, 40, 9));
    assert!(flags.contains(Flags::OUT_OF_TURN));
    tx.next = tx.next.plus(REACH);
    assert_eq!(tx.again(first, no), None, "no longer recognised");
    let mut renewed = Tx::new(8, false, true);
    assert_eq!(renewed.again(first, no), None, "another session");
    renewed.next = Seq::FIRST.next();
    let copy = renewed.again(first, |index| index == 7).expect("a copy in another epoch");
    assert_eq!((copy.header().key, copy.is_sealed()), (8, true));
}
