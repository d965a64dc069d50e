//! Messages against the vectors of `docs/protocol.md`: read and written byte for byte, and every wrong field
//! refused by name.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mpt_original::{Auth, AuthKind, Code, Command, Key, Message, PathReport, Refusal, Step};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    assert_eq!(digits.len() % 2, 0, "{hex}");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The message of a vector in section 11.4 of the document, whose title has its length.
fn vector(number: u8) -> Vec<u8> {
    let document = include_str!("../../../../docs/protocol.md");
    let begin = document.find(&format!("**11.4.{number}** ")).expect("a vector");
    let mut parts = document[begin..].split("```");
    let title = parts.next().expect("a title");
    let message = bytes(parts.next().expect("a block"));
    assert!(title.contains(&format!("({} bytes)", message.len())), "11.4.{number}: {title}");
    message
}

fn key() -> Key {
    Key::new("0123456789abcdef0123456789ABCDEF").expect("a key")
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The message of a vector from 10.0.0.3 to 10.0.0.2.
fn message(auth: AuthKind, cookie: u32, step: Step<'_>) -> Message<'_> {
    let (initiator, responder) = (address("10.0.0.3"), address("10.0.0.2"));
    Message { auth, cookie, initiator, responder, step }
}

/// The path of the vectors.
fn report() -> PathReport {
    PathReport { initiator: address("192.0.2.1"), responder: address("198.51.100.1"), down: true }
}

/// The bits that a receiver ignores. A change of any other bit gives a refusal or another message. Every
/// shorter message is refused.
fn ignored_bits<T: PartialEq + std::fmt::Debug, E>(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> BTreeSet<usize> {
    let Ok(original) = parse(bytes) else { panic!("it can be read") };
    for end in 0..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "cut off after {end} bytes");
    }
    let is_ignored = |&bit: &usize| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        parse(&changed).is_ok_and(|found| found == original)
    };
    (0..bytes.len() * 8).filter(is_ignored).collect()
}

/// These bits of these bytes, the least significant being 0.
fn bits(places: &[(std::ops::Range<usize>, std::ops::Range<usize>)]) -> BTreeSet<usize> {
    let bits = |(bytes, bits): &(std::ops::Range<usize>, std::ops::Range<usize>)| {
        let bits = bits.clone();
        bytes.clone().flat_map(move |byte| bits.clone().map(move |bit| byte * 8 + bit))
    };
    places.iter().flat_map(bits).collect()
}

#[test]
fn commands_without_a_hash_match_the_vectors() {
    let command = Command::PathStatus;
    let cookie = 0x0102_0304;
    for (number, auth, message) in [
        (1, Auth::None, message(AuthKind::None, 0, Step::Open { command, down: true, size: 32 })),
        (2, Auth::None, message(AuthKind::None, 0, Step::Proceed { command, size: 32 })),
        (3, Auth::None, message(AuthKind::None, 0, Step::Path(report()))),
        (4, Auth::None, message(AuthKind::None, 0, Step::Done { command, description: &[] })),
        (5, Auth::Random, message(AuthKind::Random, cookie, Step::Path(report()))),
    ] {
        let vector = vector(number);
        assert_eq!(Message::parse(&vector), Ok(message), "11.4.{number}");
        assert_eq!(auth.verify(&vector), Ok(()));
        assert_eq!(message.emit(&auth), vector, "11.4.{number}");

        let read = |bytes: &[u8]| {
            let message = Message::parse(bytes).map(|message| format!("{message:?}"))?;
            auth.verify(bytes).map(|()| message)
        };
        // The cause why a path is down, in rounds 1 and 3, and two reserved bytes.
        let zeroes = 6 + auth.kind().block_len();
        let mut ignored = bits(&[(zeroes..zeroes + 2, 0..8)]);
        if message.step.round().is_request() {
            ignored.extend(bits(&[(1..2, 0..7)]));
        }
        assert_eq!(ignored_bits(&vector, read), ignored, "11.4.{number}");
        let longer = [&vector[..], &[0]].concat();
        assert_eq!(Message::parse(&longer), Err(Refusal::Length), "11.4.{number}");
    }
}

#[test]
fn commands_with_a_hash_match_the_vector_and_no_bit_is_ignored() {
    let (vector, auth) = (vector(6), Auth::Sha256(key()));
    let message = message(AuthKind::Sha256, 0x0102_0304, Step::Path(report()));
    assert_eq!(Message::parse(&vector), Ok(message));
    assert_eq!(message.emit(&auth), vector);
    for bit in 0..vector.len() * 8 {
        let mut changed = vector.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(Message::parse(&changed).and_then(|_| auth.verify(&changed)).is_err(), "bit {bit}");
    }
    for end in 0..vector.len() {
        assert!(Message::parse(&vector[..end]).is_err(), "cut off after {end} bytes");
    }
    let other = Key::new("0123456789abcdef0123456789ABCDEE").expect("a key");
    assert_eq!(Auth::Sha256(other).verify(&vector), Err(Refusal::AuthHash));
}

/// It can be read but not verified: its key is refused here.
#[test]
fn the_captured_create_is_read_and_its_public_key_refused() {
    let vector = vector(7);
    let step = Step::Open { command: Command::Create, down: false, size: 0x467 };
    let (initiator, responder) = (address("10.0.0.2"), address("10.0.0.3"));
    let message = Message { auth: AuthKind::Sha256, cookie: 0, initiator, responder, step };
    assert_eq!(Message::parse(&vector), Ok(message));
    assert_eq!(Auth::Sha256(key()).verify(&vector), Err(Refusal::AuthHash));

    let mut hashed = vector.clone();
    hashed[8..40].fill(0);
    let built_in: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
    hashed.extend(&built_in.as_bytes()[..32]);
    assert_eq!(hmac_sha256::Hash::hash(&hashed), vector[8..40]);
    assert!(Key::new(&built_in).is_err());
}

/// Each with the reason under which it is counted.
#[test]
fn each_wrong_field_is_refused_for_its_reason() {
    let changed = |number, places: &[(usize, u8)]| {
        let mut message = vector(number);
        for &(place, byte) in places {
            message[place] = byte;
        }
        message
    };
    for (message, refusal) in [
        (vec![], Refusal::Short),
        (vector(4)[..39].to_vec(), Refusal::Short),
        (changed(1, &[(0, 0xa1)]), Refusal::Unknown),
        (changed(1, &[(0, 0xa4)]), Refusal::Unknown),
        (changed(1, &[(2, 3)]), Refusal::AuthKind),
        (changed(1, &[(2, 255)]), Refusal::AuthKind),
        (changed(1, &[(2, 2)]), Refusal::AuthLength),
        (changed(6, &[(2, 0)]), Refusal::AuthLength),
        (changed(1, &[(0, 0xa3)]), Refusal::AuthLength),
        (changed(1, &[(2, 2), (3, 36)]), Refusal::Length),
        (changed(4, &[(2, 1), (3, 4)]), Refusal::Length),
        (changed(1, &[(4, 0)]), Refusal::Round),
        (changed(1, &[(4, 5)]), Refusal::Round),
        (changed(7, &[(1, 0x80)]), Refusal::Status),
        (changed(1, &[(4, 3)]), Refusal::Length),
        (changed(3, &[(4, 1)]), Refusal::Length),
        (changed(1, &[(40, 0)]), Refusal::Size),
        (changed(1, &[(40, 33)]), Refusal::Size),
        (changed(1, &[(40, 0), (43, 32)]), Refusal::Size),
        (changed(7, &[(76, 0), (77, 0)]), Refusal::Size),
        (changed(7, &[(76, 1), (77, 0x40)]), Refusal::Size),
        (changed(3, &[(50, 0)]), Refusal::PathAddress),
        (changed(1, &[(5, 6)]), Refusal::Version),
        (changed(1, &[(5, 5)]), Refusal::Version),
        (changed(1, &[(18, 0), (34, 0)]), Refusal::Version),
    ] {
        assert_eq!(Message::parse(&message), Err(refusal), "{}: {message:02x?}", refusal.name());
    }
    // The data of a refusal is not read.
    let mut refused = changed(2, &[(1, 4)]);
    refused.push(0);
    assert_eq!(Message::parse(&refused), Err(Refusal::Length), "more than the original sends");
    for len in (40..=44).rev() {
        refused.truncate(len);
        assert!(matches!(
            Message::parse(&refused).expect("a refusal").step,
            Step::Refused { code: Code::UNKNOWN, .. }
        ));
    }
}
