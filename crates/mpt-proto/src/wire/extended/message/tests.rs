use std::num::{NonZeroU16, NonZeroU32};

use proptest::prelude::*;

use super::*;
use crate::sequence::Seq;
use crate::wire::extended::beacon::Beacon;
use crate::wire::extended::close::Reason;
use crate::wire::extended::feedback::{self, Block, Range};
use crate::wire::extended::hello::{self, Capabilities};
use crate::wire::extended::parity::{Members, Parity};
use crate::wire::keepalive::{Activation, Echo, Report};

/// A message of every kind, without padding if it can be without.
fn samples() -> Vec<(Kind, Vec<u8>)> {
    let hello = Hello {
        version: 1,
        capabilities: Capabilities::PARTIAL | Capabilities::REPAIR,
        session: 0x0101_0202_0303_0404,
        echo: u64::MAX,
        sender: [10, 9, 0, 1].into(),
        receiver: "fd00::2".parse().unwrap(),
        key: Some(7),
        cookie: 9,
        index: 0x0506_0708,
    };
    let status = Status {
        report: Report { deaf: true, off: true },
        activation: Activation { standby: true, calls: 31 },
        count: 255,
        longest: NonZeroU16::new(1),
        weight: NonZeroU16::new(9728),
        lost: Some(254),
        interval: NonZeroU16::new(u16::MAX),
        sent: 5,
        echo: Some(Echo { time: 6, held: u32::MAX - 1 }),
        equalise: NonZeroU32::new(u32::MAX),
        settings: None,
    };
    let beacon = |path| Beacon { path, covered: Seq::new(3), path_sequence: 4 };
    let close = Close { reason: Reason::Unassigned(5), index: 1 };
    let mut with_lists = Block { path: 1, highest: 2, ..Block::default() };
    for missing in 0..3 {
        assert!(with_lists.ranges.push(Range { missing, received: 1 }));
    }
    assert!(with_lists.bitmap.push(1 << 63));
    let blocks = [with_lists, Block::default()];
    let answer = Answer { number: 3, size: 1472 };
    let members = Members::new(&[Seq::new(u32::MAX), Seq::new(1022)]).expect("a group");
    // What is behind the bitmap is parity, so none of it may be missing for it to be too short.
    let parity = Parity { number: 7, count: 8, members, bytes: b"abc" };
    let parity = written(Parity::size(&parity.members, 3), |place| parity.emit(place));
    vec![
        (Kind::Hello, written(hello::PADDED_LEN, |place| hello.emit(place))),
        (Kind::HelloAnswer, written(hello::LEN, |place| hello.emit(place))),
        (Kind::HelloConfirm, written(hello::LEN, |place| hello.emit(place))),
        (Kind::PathChallenge, written(8, |place| Challenge { number: 1 << 63 }.emit(place))),
        (Kind::PathAnswer, written(12, |place| answer.emit(place))),
        (Kind::Feedback, feedback(&blocks)),
        (Kind::Beacon, written(40, |place| beacon::emit(&[1, 2, 254].map(beacon), place))),
        (Kind::PathStatus, written(24, |place| status.emit(place))),
        (Kind::Close, written(8, |place| close.emit(place))),
        (Kind::Parity, parity),
    ]
}

fn written(len: usize, emit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut place = vec![0xee; len];
    emit(&mut place);
    place
}

fn feedback(blocks: &[Block]) -> Vec<u8> {
    let mut place = vec![0xee; feedback::MAX_LEN];
    let mut writer = feedback::Writer::new(&mut place, 1, None, 2);
    assert!(blocks.iter().all(|block| writer.push(block)));
    let len = writer.finish();
    place.truncate(len);
    place
}

/// Reads a message. What it says is written again, and read again as the same.
fn read_twice(kind: Kind, message: &[u8]) -> Result<(), Drop> {
    let again = match Message::parse(kind, message)? {
        Message::Hello(hello) | Message::HelloAnswer(hello) | Message::HelloConfirm(hello) => {
            let again = written(hello::PADDED_LEN, |place| hello.emit(place));
            Hello::parse(kind, &again) == Ok(hello)
        }
        Message::Challenge(challenge) => {
            Challenge::parse(&written(8, |place| challenge.emit(place))) == Ok(challenge)
        }
        Message::Answer(answer) => {
            Answer::parse(&written(12, |place| answer.emit(place))) == Ok(answer)
        }
        Message::Feedback(feedback) => feedback.blocks().all(|block| {
            let again = self::feedback(&[block]);
            Feedback::parse(&again).unwrap().blocks().eq([block])
        }),
        Message::Beacon(blocks) => {
            let blocks: Vec<_> = blocks.collect();
            let again = written(beacon::len(blocks.len()), |place| beacon::emit(&blocks, place));
            beacon::parse(&again).unwrap().eq(blocks)
        }
        Message::Status(status) => {
            Status::parse(&written(status.wire_len(), |place| status.emit(place))) == Ok(status)
        }
        Message::Close(close) => Close::parse(&written(8, |place| close.emit(place))) == Ok(close),
        Message::Parity(parity) => {
            let len = Parity::size(&parity.members, parity.bytes.len());
            Parity::parse(&written(len, |place| parity.emit(place))) == Ok(parity)
        }
    };
    assert!(again, "{kind:?} {message:02x?}");
    Ok(())
}

#[test]
fn every_message_survives_the_round_trip() {
    for (kind, message) in samples() {
        assert_eq!(read_twice(kind, &message), Ok(()), "{kind:?}");
    }
}

#[test]
fn every_truncation_has_the_wrong_length() {
    for (kind, message) in samples() {
        for end in 0..message.len() {
            let cut = Message::parse(kind, &message[..end]).err();
            assert_eq!(cut, Some(Drop::ControlLength), "{kind:?} of {end} bytes");
        }
    }
}

#[test]
fn an_unpadded_hello_has_the_wrong_length() {
    let (_, answer) = &samples()[1];
    assert_eq!(Hello::parse(Kind::Hello, answer), Err(Drop::ControlLength));
}

#[test]
fn kinds_without_a_message_are_unknown() {
    let known = samples();
    for number in 0..16 {
        let kind = Kind::from_number(number);
        if known.iter().all(|(known, _)| *known != kind) {
            let unknown = Message::parse(kind, &[0; 400]).err();
            assert_eq!(unknown, Some(Drop::ControlUnknown), "{kind:?}");
        }
    }
}

#[test]
fn a_path_without_a_beacon_before_has_the_number_before_the_first() {
    assert_eq!(Beacon::NOTHING.next(), Seq::FIRST);
}

proptest! {
    #[test]
    fn changed_messages_are_read_or_dropped(
        sample in 0..9_usize,
        flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        more in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let (kind, mut message) = samples().swap_remove(sample);
        for flip in flips {
            let bit = flip.index(8 * message.len());
            message[bit / 8] ^= 1 << (bit % 8);
        }
        message.extend(more);
        if let Err(reason) = read_twice(kind, &message) {
            prop_assert!([Drop::ControlLength, Drop::UnknownIndex].contains(&reason));
        }
    }

    #[test]
    fn any_bytes_are_read_or_dropped(
        number in 0..16_u8,
        message in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        // Which of them it is, is not what is tested here.
        let _ = read_twice(Kind::from_number(number), &message);
    }
}
