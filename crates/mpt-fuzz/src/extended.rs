//! Datagrams of extended framing: their header and their messages.

use mpt_proto::wire::extended::beacon;
use mpt_proto::wire::extended::challenge::{self, Answer, Challenge};
use mpt_proto::wire::extended::close::{self, Close};
use mpt_proto::wire::extended::feedback::{self, Feedback};
use mpt_proto::wire::extended::hello::{self, Hello};
use mpt_proto::wire::extended::parity::Parity;
use mpt_proto::wire::extended::status::Status;
use mpt_proto::wire::extended::{Header, Kind, Message, is_extended};

/// A datagram. What is read from it is written again as the same fields.
pub fn extended(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    assert!(is_extended(bytes), "nothing else has such a header");
    assert!(header.size() <= bytes.len(), "not longer than it is");
    assert_eq!(header.sequence.is_some(), header.kind == Kind::Data);
    let mut written = [0xee; 24];
    header.emit(&mut written);
    assert_eq!(Header::parse(&written[..header.size()]), Ok(header));
    let payload = &bytes[header.size()..];
    if let Ok(message) = Message::parse(header.kind, payload) {
        message_written_again(header.kind, &message);
    }
}

fn message_written_again(kind: Kind, message: &Message<'_>) {
    let mut place = [0xee; 1200];
    match message {
        Message::Hello(hello) | Message::HelloAnswer(hello) | Message::HelloConfirm(hello) => {
            assert_ne!(hello.index, 0, "an index that can be used");
            let place = &mut place[..hello::PADDED_LEN];
            hello.emit(place);
            assert_eq!(Hello::parse(kind, place), Ok(*hello));
        }
        Message::Challenge(challenge) => {
            challenge.emit(&mut place[..challenge::LEN]);
            assert_eq!(Challenge::parse(&place[..challenge::LEN]), Ok(*challenge));
        }
        Message::Answer(answer) => {
            answer.emit(&mut place[..challenge::ANSWER_LEN]);
            assert_eq!(Answer::parse(&place[..challenge::ANSWER_LEN]), Ok(*answer));
        }
        Message::Feedback(feedback) => {
            assert!((1..=usize::from(feedback::MAX_BLOCKS)).contains(&feedback.blocks().count()));
            for block in feedback.blocks() {
                let &Feedback { number, before, clock, .. } = feedback;
                let mut writer = feedback::Writer::new(&mut place, number, before, clock);
                assert!(writer.push(&block), "one block always fits");
                let len = writer.finish();
                let again = Feedback::parse(&place[..len]).expect("what was written can be read");
                assert_eq!((again.number, again.before, again.clock), (number, before, clock));
                assert!(again.blocks().eq([block]));
            }
        }
        Message::Parity(parity) => {
            assert!(parity.number < parity.count && !parity.members.is_empty());
            let mut place = vec![0xee; Parity::size(&parity.members, parity.bytes.len())];
            parity.emit(&mut place);
            assert_eq!(Parity::parse(&place).as_ref(), Ok(parity));
            assert!(parity.members.iter().all(|number| parity.members.contains(number)));
        }
        Message::Beacon(blocks) => {
            let blocks: Vec<_> = blocks.clone().collect();
            let place = &mut place[..beacon::len(blocks.len())];
            beacon::emit(&blocks, place);
            let again = beacon::parse(place).expect("what was written can be read");
            assert!(again.eq(blocks));
        }
        Message::Status(status) => {
            let place = &mut place[..status.wire_len()];
            status.emit(place);
            assert_eq!(Status::parse(place), Ok(*status));
        }
        Message::Close(close) => {
            close.emit(&mut place[..close::LEN]);
            assert_eq!(Close::parse(&place[..close::LEN]), Ok(*close));
        }
    }
}
