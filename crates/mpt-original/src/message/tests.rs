//! Messages against captured bytes, and read back after writing.

use super::*;
use crate::auth::Key;

/// Round 1 of a connection create as it was captured from the original, with the key that is built
/// into it.
const CAPTURED: &str = "a300022400000000193d90a0536de866e77647f40d26e1afeb1886c726eb3d59fb05fecf6c95c2a6\
                        0104000000000000000000000000ffff0a00000200000000000000000000ffff0a00000367040000";

fn captured() -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&CAPTURED[at..at + 2], 16).unwrap();
    (0..CAPTURED.len()).step_by(2).map(digit).collect()
}

#[test]
fn the_hash_of_a_captured_message_is_verified_and_written() {
    let (captured, auth) = (captured(), Auth::Sha256(Key::public()));
    assert_eq!(auth.verify(&captured), Ok(()));
    let message = Message::parse(&captured).unwrap();
    let expected = Message {
        auth: AuthKind::Sha256,
        cookie: 0,
        initiator: IpAddr::from([10, 0, 0, 2]),
        responder: IpAddr::from([10, 0, 0, 3]),
        step: Step::Open { command: Command::Create, down: false, size: 0x467 },
    };
    assert_eq!(message, expected);
    assert_eq!(message.emit(&auth), captured);
}

#[test]
fn every_changed_bit_and_every_cut_of_a_hashed_message_is_refused() {
    let auth = Auth::Sha256(Key::public());
    for bit in 0..captured().len() * 8 {
        let mut changed = captured();
        changed[bit / 8] ^= 1 << (bit % 8);
        let refused = Message::parse(&changed).err().or(auth.verify(&changed).err());
        assert!(refused.is_some(), "bit {bit}");
    }
    for end in 0..captured().len() {
        let cut = &captured()[..end];
        assert!(Message::parse(cut).is_err() && auth.verify(cut).is_err(), "{end} bytes");
    }
}

#[test]
fn every_message_reads_back_as_written() {
    let report = PathReport {
        initiator: "2001:db8::1".parse().unwrap(),
        responder: "2001:db8::2".parse().unwrap(),
        down: false,
    };
    let key = Key::new("0123456789abcdef0123456789ABCDEF").unwrap();
    let steps = |command, size| {
        [
            Step::Open { command, down: command == Command::PathStatus, size },
            Step::Proceed { command, size },
            Step::Done { command, description: &[] },
            Step::Refused { command, round: Round::Two, code: Code::UNKNOWN },
            Step::Refused { command, round: Round::Four, code: Code(255) },
        ]
    };
    let created = Step::Done { command: Command::Create, description: b";;;;;" };
    let both = [steps(Command::PathStatus, 32), steps(Command::Create, 5)];
    let data = [Step::Path(report), Step::Create(b";;;;;"), created];
    for step in both.concat().into_iter().chain(data) {
        for auth in [Auth::None, Auth::Random, Auth::Sha256(key.clone())] {
            if step.command() == Command::Create && auth.kind() != AuthKind::Sha256 {
                continue;
            }
            let cookie = if auth == Auth::None { 0 } else { 0x0102_0304 };
            let (initiator, responder) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
            let message = Message { auth: auth.kind(), cookie, initiator, responder, step };
            let bytes = message.emit(&auth);
            assert_eq!(Message::parse(&bytes), Ok(message));
            assert_eq!(auth.verify(&bytes), Ok(()));
            assert!(bytes.len() <= MAX_MESSAGE);
        }
    }
}
