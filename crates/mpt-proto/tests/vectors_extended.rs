//! The test vectors of extended framing in `docs/protocol.md`, read from the document itself.

use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use crate::document::{blocks, bytes, count, datagram, rows, text};
use mpt_proto::wire::erasure::{add, factor};
use mpt_proto::wire::extended::beacon::{self, Beacon};
use mpt_proto::wire::extended::challenge::{Answer, Challenge};
use mpt_proto::wire::extended::close::{Close, Reason};
use mpt_proto::wire::extended::feedback::{Block, Feedback, List, Range, Writer};
use mpt_proto::wire::extended::hello::{self, Capabilities, Hello};
use mpt_proto::wire::extended::parity::{COVER_LEN, Members, Parity};
use mpt_proto::wire::extended::settings::{Picks, Settings};
use mpt_proto::wire::extended::status::Status;
use mpt_proto::wire::extended::{
    CONTROL_LEN, DATA_LEN, Flags, Header, Kind, Message, NO_PATH, is_extended,
};
use mpt_proto::wire::inner;
use mpt_proto::wire::keepalive::{Activation, Echo, Report};
use mpt_proto::{Drop, Seq};

const MESSAGES: std::ops::RangeInclusive<u8> = 15..=25;

/// The keys with which the two hosts of the vectors call each other.
const LEFT: u32 = 0x0a0b_0c0d;
const RIGHT: u32 = 0x1a1b_1c1d;

const COOKIE: u64 = 0x0123_4567_89ab_cdef;

/// The whole datagram of a vector. The padding of the hello is not printed.
fn whole(number: u8) -> Vec<u8> {
    let mut datagram = datagram(number);
    if number == 15 {
        assert!(text(15).contains("252 bytes of padding"));
        datagram.resize(datagram.len() + 252, 0);
    }
    datagram
}

fn data(key: u32, sequence: u32) -> Header {
    Header { key, sequence: Some(Seq::new(sequence)), ..control(Kind::Data, key, 0, 0, 0) }
}

fn control(kind: Kind, key: u32, path: u8, path_sequence: u32, sent: u32) -> Header {
    let (flags, distance) = (Flags::NONE, 0);
    Header { key, sequence: None, kind, flags, path, distance, path_sequence, sent }
}

/// Asserts that a vector has this header, which is written as it was read, and returns what follows it.
fn assert_header(number: u8, header: Header) -> Vec<u8> {
    let datagram = whole(number);
    assert!(is_extended(&datagram));
    assert_eq!(Header::parse(&datagram), Ok(header), "14.{number}");
    let (head, rest) = datagram.split_at(header.size());
    let mut written = vec![0xee; header.size()];
    header.emit(&mut written);
    assert_eq!(written, head, "14.{number}");
    rest.to_vec()
}

/// What a function writes to a place of `len` bytes.
fn written(len: usize, emit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut place = vec![0xee; len];
    emit(&mut place);
    place
}

#[test]
fn data_is_read_and_written_as_printed() {
    let first =
        Header { flags: Flags::TAIL, path: 1, distance: 5, path_sequence: 6, ..data(LEFT, 4) };
    let last = Header {
        flags: Flags::PARTIAL | Flags::OUT_OF_TURN | Flags::EQUALISE,
        path: 254,
        distance: u16::MAX,
        path_sequence: u32::MAX,
        sent: u32::MAX - 15,
        ..data(u32::MAX, u32::MAX)
    };
    for (number, header) in [(13, Header { sent: 5_000_000, ..first }), (14, last)] {
        assert_eq!(header.size(), DATA_LEN);
        let payload = assert_header(number, header);
        assert_eq!(payload, datagram(1)[4..]);
        assert!(inner::parse(&payload).is_some_and(|inner| inner.len == payload.len()));
    }
}

#[test]
fn hellos_are_read_and_written_as_printed() {
    let (left, right) = (0x1111_1111_2222_2222, 0x3333_3333_4444_4444);
    let all = Capabilities::PARTIAL | Capabilities::FEEDBACK | Capabilities::REPAIR;
    let first = Hello {
        version: hello::VERSION,
        capabilities: all,
        session: left,
        echo: 0,
        sender: [10, 9, 0, 1].into(),
        receiver: [10, 9, 0, 2].into(),
        key: Some(7),
        cookie: 0,
        index: LEFT,
    };
    let answer = Hello {
        capabilities: Capabilities::PARTIAL | Capabilities::FEEDBACK,
        session: right,
        echo: left,
        sender: first.receiver,
        receiver: first.sender,
        cookie: COOKIE,
        index: RIGHT,
        ..first
    };
    let confirm = Hello {
        capabilities: Capabilities::NONE,
        echo: right,
        sender: "fd00:9::1".parse().unwrap(),
        receiver: "fd00:9::2".parse().unwrap(),
        key: None,
        cookie: COOKIE,
        ..first
    };
    for (number, header, len, hello) in [
        (15, control(Kind::Hello, 0, 0, 0, 5_000_000), hello::PADDED_LEN, first),
        (16, control(Kind::HelloAnswer, LEFT, 1, 0, 9_000_000), hello::LEN, answer),
        (17, control(Kind::HelloConfirm, RIGHT, 254, 0, 5_020_000), hello::LEN, confirm),
    ] {
        let message = assert_header(number, header);
        assert_eq!(Hello::parse(header.kind, &message), Ok(hello), "14.{number}");
        assert_eq!(written(len, |place| hello.emit(place)), message, "14.{number}");
    }
}

#[test]
fn challenges_and_answers_are_read_and_written_as_printed() {
    let message = assert_header(18, control(Kind::PathChallenge, RIGHT, 3, 0, 5_000_000));
    let challenge = Challenge { number: COOKIE };
    assert_eq!(Challenge::parse(&message), Ok(challenge));
    assert_eq!(written(8, |place| challenge.emit(place)), message);

    let message = assert_header(19, control(Kind::PathAnswer, LEFT, 1, 0, 5_000_001));
    let answer = Answer { number: COOKIE, size: 1400 };
    assert_eq!(Answer::parse(&message), Ok(answer));
    assert_eq!(written(12, |place| answer.emit(place)), message);
}

fn list<T: Copy + Default, const N: usize>(items: &[T]) -> List<T, N> {
    let mut list = List::default();
    assert!(items.iter().all(|&item| list.push(item)));
    list
}

#[test]
fn feedback_is_read_and_written_as_printed() {
    let message = assert_header(20, control(Kind::Feedback, LEFT, 0, 9, 6_000_100));
    let first = Block {
        path: 3,
        quiet: false,
        highest: 1000,
        highest_sent: 5_990_000,
        highest_arrived: 5_999_000,
        received: 990,
        received_bytes: (1 << 32) + 1,
        lost: 8,
        resolved: 991,
        duplicates: 1,
        late: 2,
        ce: 3,
        overflows: 4,
        first_arrived: 5_994_000,
        bytes_after_first: 14_000,
        delay_min: 9000,
        delay_mean: 250,
        delay_deviation: 60,
        longest: NonZeroU16::new(1472),
        below: 302,
        ranges: list(&[Range { missing: 0, received: 10 }, Range { missing: 2, received: 300 }]),
        bitmap: List::default(),
    };
    let second = Block {
        path: 254,
        highest: u32::MAX,
        highest_sent: u32::MAX - 15,
        highest_arrived: 20,
        received: 70_000,
        received_bytes: 104_000_000,
        lost: 65_536,
        resolved: u32::MAX - 64,
        duplicates: u16::MAX,
        delay_min: 36,
        bitmap: list(&[1 << 63 | 1, 1]),
        ..Block::default()
    };
    let feedback = Feedback::parse(&message).expect("a feedback");
    assert_eq!((feedback.number, feedback.clock), (258, 6_000_000));
    assert_eq!(feedback.blocks().collect::<Vec<_>>(), [first, second]);

    let mut place = [0xee; 1200];
    let mut writer = Writer::new(&mut place, 258, None, 6_000_000);
    assert!(writer.push(&first) && writer.push(&second));
    let len = writer.finish();
    assert_eq!(place[..len], message);
}

#[test]
fn beacons_are_read_and_written_as_printed() {
    let message = assert_header(21, control(Kind::Beacon, LEFT, 2, 0x0102_0304, 7_000_000));
    let paths = [
        Beacon { path: 2, covered: Seq::new(4_000_000_000), path_sequence: 0x0102_0303 },
        Beacon { path: 3, covered: Beacon::NOTHING, path_sequence: 0 },
    ];
    assert_eq!(beacon::parse(&message).expect("a beacon").collect::<Vec<_>>(), paths);
    assert_eq!(written(beacon::len(2), |place| beacon::emit(&paths, place)), message);
}

#[test]
fn path_statuses_are_read_and_written_as_printed() {
    let full = Status {
        report: Report { deaf: true, off: false },
        activation: Activation { standby: true, calls: 3 },
        count: 200,
        longest: NonZeroU16::new(1472),
        weight: NonZeroU16::new(40),
        lost: Some(2),
        interval: NonZeroU16::new(286),
        sent: 100_000,
        echo: Some(Echo { time: 4_294_967_286, held: 250_000 }),
        equalise: NonZeroU32::new(80_000),
        settings: None,
    };
    let settings = Settings {
        picks: Some(Picks::Earliest),
        priority: 7,
        weight: NonZeroU16::new(3),
        mtu: NonZeroU16::new(1400),
        mtu_is_set: true,
        dead_time: Some(Duration::from_millis(700)),
        evidence: false,
        window: 4096,
        max_delay: Duration::from_millis(100),
        early_release: true,
        drops_late: false,
    };
    let long = Status { settings: Some(settings), ..full };
    let bare = Status { report: Report { deaf: false, off: true }, ..Status::default() };
    for (number, header, status) in [
        (22, control(Kind::PathStatus, LEFT, 0, 17, 8_000_000), full),
        (23, control(Kind::PathStatus, LEFT, 254, 0, 0), bare),
        (30, control(Kind::PathStatus, LEFT, 0, 18, 8_000_000), long),
    ] {
        let message = assert_header(number, header);
        assert_eq!(Status::parse(&message), Ok(status), "14.{number}");
        assert_eq!(written(status.wire_len(), |place| status.emit(place)), message, "14.{number}");
    }
}

#[test]
fn closes_are_read_and_written_as_printed() {
    for (number, key, path, reason, index) in
        [(24, LEFT, 1, Reason::SwitchedOff, 0), (25, 0, NO_PATH, Reason::UnknownIndex, LEFT)]
    {
        let message = assert_header(number, control(Kind::Close, key, path, 0, 8_000_000));
        let close = Close { reason, index };
        assert_eq!(Close::parse(&message), Ok(close), "14.{number}");
        assert_eq!(written(8, |place| close.emit(place)), message, "14.{number}");
    }
}

#[test]
fn a_parity_is_computed_read_and_written_as_printed() {
    let message = assert_header(28, control(Kind::Parity, LEFT, 2, 8, 5_010_000));
    let packet = &datagram(1)[4..];
    let mut sum = vec![0; packet.len() + COVER_LEN];
    for (place, distance) in [5, 2].into_iter().enumerate() {
        add(&mut sum, &[&[0, distance], packet].concat(), factor(1, place));
    }
    let members = Members::new(&[Seq::new(4), Seq::new(6)]).expect("a group");
    let parity = Parity { number: 1, count: 2, members, bytes: &sum };
    assert_eq!(Parity::parse(&message), Ok(parity.clone()));
    let len = Parity::size(&parity.members, sum.len());
    assert_eq!(written(len, |place| parity.emit(place)), message);
}

#[test]
fn covered_data_is_read_and_written_as_printed() {
    let (flags, path, distance) = (Flags::TAIL | Flags::COVERED, 1, 5);
    let header = Header { flags, path, distance, path_sequence: 6, ..data(LEFT, 4) };
    assert_header(29, Header { sent: 5_000_000, ..header });
    assert_eq!(header.flags.value(), Flags::TAIL.value());
}

#[test]
fn every_printed_datagram_is_tested() {
    assert_eq!((blocks(13..=30), count()), (16, 30), "a vector was added or taken away");
}

/// What a receiver reads from a datagram, as text; padding counts for nothing.
fn read(datagram: &[u8]) -> Result<String, Drop> {
    let header = Header::parse(datagram)?;
    let payload = &datagram[header.size()..];
    if header.kind == Kind::Data {
        return Ok(format!("{header:?} {payload:02x?}"));
    }
    let message = Message::parse(header.kind, payload)?;
    if let Message::Feedback(feedback) = &message {
        let blocks: Vec<_> = feedback.blocks().collect();
        return Ok(format!("{header:?} {} {} {blocks:?}", feedback.number, feedback.clock));
    }
    Ok(format!("{header:?} {message:?}"))
}

/// What a receiver drops a datagram as; `None` if it reads it.
fn dropped(datagram: &[u8]) -> Option<Drop> {
    if !is_extended(datagram) {
        return Some(Drop::GreProtocol);
    }
    let is_data = Header::parse(datagram).is_ok_and(|header| header.kind == Kind::Data);
    if is_data && inner::parse(&datagram[DATA_LEN..]).is_none() {
        return Some(Drop::InnerMalformed);
    }
    read(datagram).err()
}

#[test]
fn every_truncation_of_every_vector_is_dropped_by_the_name_of_what_is_missing() {
    for number in 13..=25 {
        let whole = whole(number);
        let (gre, header) = if whole[0] & 0x10 == 0 { (8, CONTROL_LEN) } else { (12, DATA_LEN) };
        for len in 0..whole.len() {
            let expected = match len {
                // Whose protocol type is cut off belongs to no framing.
                0..4 => Drop::GreProtocol,
                len if len < gre => Drop::GreTruncated,
                len if len < header => Drop::ExtendedTruncated,
                _ if header == DATA_LEN => Drop::InnerMalformed,
                _ => Drop::ControlLength,
            };
            assert_eq!(dropped(&whole[..len]), Some(expected), "14.{number}, {len} bytes");
        }
        assert_eq!(dropped(&whole), None, "14.{number}");
    }
}

/// A flip means something else, or nothing, or is the reason for a drop; the header says which of these.
#[test]
fn every_flipped_bit_of_every_vector_means_what_the_header_says() {
    for number in 13..=25 {
        let whole = whole(number);
        let header = if whole[0] & 0x10 == 0 { CONTROL_LEN } else { DATA_LEN };
        let kind_at = header - 12;
        for bit in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 0x80 >> (bit % 8);
            let drop = dropped(&flipped);
            let expected: &[Option<Drop>] = match bit {
                6..13 => &[None],
                13..16 => &[Some(Drop::GreVersion)],
                // Without or with a sequence number another word says what it is.
                3 => &[
                    Some(Drop::GreFlags),
                    Some(Drop::ExtendedTruncated),
                    Some(Drop::ControlUnknown),
                    Some(Drop::ControlLength),
                    Some(Drop::InnerMalformed),
                ],
                0..16 => &[Some(Drop::GreFlags)],
                16..32 => &[Some(Drop::GreProtocol)],
                _ if bit / 8 == kind_at && bit % 8 < 4 => &[
                    Some(Drop::GreFlags),
                    Some(Drop::ControlLength),
                    Some(Drop::ControlUnknown),
                    Some(Drop::UnknownIndex),
                    None,
                ],
                _ if bit / 8 < header => &[None],
                _ if header == DATA_LEN => &[None, Some(Drop::InnerMalformed)],
                _ => &[None, Some(Drop::ControlLength), Some(Drop::UnknownIndex)],
            };
            assert!(expected.contains(&drop), "14.{number}, bit {bit}: {drop:?}");
        }
    }
}

/// A vector in which some bytes of the message are others, and behind which some more follow.
fn changed(number: u8, changes: &[(usize, u8)], more: usize) -> Vec<u8> {
    let mut datagram = whole(number);
    for &(at, byte) in changes {
        datagram[CONTROL_LEN + at] = byte;
    }
    datagram.resize(datagram.len() + more, 0);
    datagram
}

fn shortened(number: u8) -> Vec<u8> {
    let mut datagram = whole(number);
    datagram.pop();
    datagram
}

/// The datagrams that the first cell of a row of 14.26 describes.
fn cases(cell: &str) -> Vec<Vec<u8>> {
    const LANES: usize = 3;
    const INDEX: usize = 72;
    const RANGES: usize = 9;
    const WORDS: usize = 10;
    let no_index: Vec<_> = (INDEX..INDEX + 4).map(|at| (at, 0)).collect();
    match cell {
        "14.15 without its last byte of padding" => vec![shortened(15)],
        "any of 14.16 to 14.25 without its last byte" => (16..=25).map(shortened).collect(),
        "14.16 with 0 or 2 lanes; with 65 lanes and 256 bytes more" => vec![
            changed(16, &[(LANES, 0)], 0),
            changed(16, &[(LANES, 2)], 0),
            changed(16, &[(LANES, 65)], 256),
        ],
        "14.15, 14.16 and 14.17 with the index 0" => {
            (15..=17).map(|number| changed(number, &no_index, 0)).collect()
        }
        "14.20 with 0 or 3 blocks; 14.21 with 0 or 3 blocks; both with 65 blocks and 5000 bytes more" =>
        {
            let few = |number| [0, 3].map(|blocks| changed(number, &[(0, blocks)], 0));
            let many = |number| changed(number, &[(0, 65)], 5000);
            [few(20), few(21), [many(20), many(21)]].concat()
        }
        "14.20 with 33 ranges or 17 words in the first block, and 5000 bytes more" => {
            vec![changed(20, &[(RANGES, 33)], 5000), changed(20, &[(WORDS, 17)], 5000)]
        }
        "14.24 with type 3, 4, 13, 14 or 15" => [3, 4, 13, 14, 15].map(close_as).to_vec(),
        "14.24 with type 12; 14.28 with number 2, with 0 or 9 parities, with 128 bytes of bitmap, or without bit 0; its first 31 bytes" =>
        {
            let changes = [(0, 2), (1, 0), (1, 9), (2, 127), (8, 4)];
            let mut cases = changes.map(|change| changed(28, &[change], 0)).to_vec();
            cases.extend([close_as(12), whole(28)[..31].to_vec()]);
            cases
        }
        literals => literals.split(", ").map(literal).collect(),
    }
}

/// 14.24 with another type.
fn close_as(kind: u8) -> Vec<u8> {
    let mut datagram = whole(24);
    datagram[8] = kind << 4;
    datagram
}

/// A datagram that a cell prints; "…" stands for the rest of 14.13.
fn literal(cell: &str) -> Vec<u8> {
    let hex = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
    let hex = hex.unwrap_or_else(|| panic!("14.26 has a row that is not tried: {cell}"));
    let Some(begun) = hex.strip_suffix('…') else { return bytes(hex) };
    let begun = bytes(begun);
    let rest = datagram(13).split_off(begun.len());
    [begun, rest].concat()
}

#[test]
fn vectors_to_be_dropped_are_dropped_by_name() {
    let rows = rows(26);
    assert_eq!(rows.len(), 14, "rows of the table");
    for (cell, verdict) in rows {
        let name = verdict.split('`').nth(1).expect("a name");
        for case in cases(cell) {
            assert!(is_extended(&case), "{cell}");
            assert_eq!(read(&case).map_err(Drop::name), Err(name), "{cell}\n{case:02x?}");
        }
    }
}

#[test]
fn vectors_with_bits_that_do_not_matter_are_read_as_if_unchanged() {
    assert!(text(27).starts_with("Read as if it were not changed: each of 14.13 to 14.25"));
    let same = |number: u8, datagram: Vec<u8>| {
        assert_eq!(read(&datagram), read(&whole(number)), "14.{number}: {datagram:02x?}");
        assert!(read(&datagram).is_ok(), "14.{number}");
    };
    for number in 13..=25 {
        let mut datagram = whole(number);
        datagram[0] |= 0x03;
        datagram[1] |= 0xf8;
        same(number, datagram);
    }
    for number in MESSAGES {
        let mut datagram = whole(number);
        datagram[8] |= 0x0f;
        datagram[10..12].fill(0xff);
        same(number, datagram);
        same(number, changed(number, &[], 1));
    }
    for number in 15..=17 {
        let reserved = (4..7).chain(60..63).map(|at| (at, 0xff));
        let mut changes: Vec<_> = reserved.collect();
        let message = whole(number).split_off(CONTROL_LEN);
        changes.extend([(7, message[7] | 0xf0), (63, message[63] | 0xfe)]);
        same(number, changed(number, &changes, 0));
    }
    same(16, changed(16, &[(3, 3)], 8));
}
