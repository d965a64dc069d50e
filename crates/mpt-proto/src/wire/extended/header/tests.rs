use super::*;

const DATA: Header = Header {
    key: 0x0102_0304,
    sequence: Some(Seq::new(0x1112_1314)),
    kind: Kind::Data,
    flags: Flags::TAIL,
    path: 0x21,
    distance: 0x3132,
    path_sequence: 0x4142_4344,
    sent: 0x5152_5354,
};

const DATA_BYTES: [u8; DATA_LEN] = [
    0x30, 0x00, 0x88, 0xb5, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x02, 0x21, 0x31, 0x32,
    0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54,
];

fn control(kind: Kind) -> Header {
    Header { sequence: None, kind, flags: Flags::NONE, distance: 0, ..DATA }
}

fn emitted(header: &Header) -> Vec<u8> {
    let mut datagram = vec![0xee; header.size()];
    header.emit(&mut datagram);
    datagram
}

#[test]
fn data_is_read_and_written() {
    assert_eq!(emitted(&DATA), DATA_BYTES);
    assert_eq!(Header::parse(&DATA_BYTES), Ok(DATA));
    assert_eq!(Header::parse_data(&DATA_BYTES), Some(DATA), "and without the general way");
    let with_packet = [&DATA_BYTES[..], &[0x45; 20]].concat();
    assert_eq!(Header::parse(&with_packet), Ok(DATA));
}

#[test]
fn every_field_survives_the_round_trip() {
    for flags in 0..16 {
        let flags = Flags(flags);
        let header = Header { flags, path: NO_PATH, distance: u16::MAX, ..DATA };
        assert_eq!(Header::parse(&emitted(&header)), Ok(header));
    }
    for number in 1..16 {
        let header = control(Kind::from_number(number));
        assert_eq!((header.kind.number(), header.size()), (number, CONTROL_LEN));
        assert_eq!(Header::parse(&emitted(&header)), Ok(header));
    }
}

#[test]
fn flags_are_those_of_the_document() {
    let all = [Flags::PARTIAL, Flags::OUT_OF_TURN, Flags::TAIL, Flags::EQUALISE];
    assert_eq!(all.map(Flags::value), [8, 4, 2, 1]);
    let two = Flags::PARTIAL | Flags::TAIL;
    assert_eq!(all.map(|flag| two.contains(flag)), [true, false, true, false]);
    assert!(!Flags::TAIL.contains(two));
}

#[test]
fn the_fast_way_and_the_general_one_agree() {
    for bit in 0..8 * DATA_LEN {
        let mut datagram = DATA_BYTES;
        datagram[bit / 8] ^= 0x80 >> (bit % 8);
        assert_eq!(Header::parse(&datagram), parse_any(&datagram), "bit {bit}");
    }
}

#[test]
fn ignored_bits_are_ignored() {
    let mut data = DATA_BYTES;
    data[..2].copy_from_slice(&[0x33, 0xf8]);
    assert_eq!(Header::parse(&data), Ok(DATA));
    assert_eq!(Header::parse_data(&data), None, "the fast way knows no such data");
    let mut message = emitted(&control(Kind::Beacon));
    message[..2].copy_from_slice(&[0x23, 0xf8]);
    message[8] |= 0x0f;
    message[10..12].fill(0xff);
    assert_eq!(Header::parse(&message), Ok(control(Kind::Beacon)), "flags and distance");
}

#[test]
fn control_is_written_without_flags_and_distance() {
    let header = Header { flags: Flags::OUT_OF_TURN, distance: 7, ..control(Kind::Feedback) };
    assert_eq!(emitted(&header), emitted(&control(Kind::Feedback)));
}

#[test]
fn truncated_headers_are_named_by_what_is_missing() {
    let truncated = |len: usize, gre: usize| {
        if len < gre { Drop::GreTruncated } else { Drop::ExtendedTruncated }
    };
    for len in 0..DATA_LEN {
        assert_eq!(Header::parse(&DATA_BYTES[..len]), Err(truncated(len, 12)), "{len}");
    }
    let message = emitted(&control(Kind::Close));
    for len in 0..CONTROL_LEN {
        assert_eq!(Header::parse(&message[..len]), Err(truncated(len, 8)), "{len}");
    }
}

#[test]
fn foreign_headers_are_named() {
    let with = |first: u32, kind: u8| {
        let mut datagram = DATA_BYTES;
        datagram[..4].copy_from_slice(&first.to_be_bytes());
        // In either place of the type, with and without a sequence number.
        datagram[8] = kind << 4;
        datagram[12] = kind << 4;
        Header::parse(&datagram).map(|header| header.kind.number())
    };
    assert_eq!((with(0x3000_88b5, 0), with(0x2000_88b5, 5)), (Ok(0), Ok(5)));
    assert_eq!(with(0x3001_88b5, 0), Err(Drop::GreVersion));
    assert_eq!(with(0xf001_88b5, 0), Err(Drop::GreVersion), "before the flags");
    for flags in [0x7000, 0x3800, 0x3400, 0xb000, 0x1000, 0x0000] {
        assert_eq!(with(flags << 16 | 0x88b5, 0), Err(Drop::GreFlags), "{flags:04x}");
    }
    assert_eq!(with(0x2000_88b5, 0), Err(Drop::GreFlags), "data without a sequence number");
    for kind in (1..16).filter(|kind| *kind != Flags::COVERED_TYPE) {
        assert_eq!(with(0x3000_88b5, kind), Err(Drop::GreFlags), "control with one");
    }
    assert_eq!(with(0x3000_0800, 0), Err(Drop::GreProtocol));
}

#[test]
fn the_protocol_type_alone_makes_a_datagram_extended() {
    assert!(is_extended(&DATA_BYTES) && is_extended(&[0xff, 0xff, 0x88, 0xb5]));
    assert!(!is_extended(&DATA_BYTES[..3]) && !is_extended(&[0x30, 0x00, 0x08, 0x00, 0x88, 0xb5]));
}
