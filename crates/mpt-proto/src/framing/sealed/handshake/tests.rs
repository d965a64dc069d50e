use super::*;
use crate::id::SocketId;
use crate::keys::PrivateKey;
use crate::sequence::Seq;
use crate::wire::extended::hello::Capabilities;
use crate::wire::extended::{Flags, Header};
use std::net::SocketAddr;

fn host(number: u8) -> Host {
    let (private, ciphers) = (PrivateKey::new([number; 32]), Ciphers::fastest(Cipher::Aes256Gcm));
    let clock_zero = Duration::from_secs(1_800_000_000);
    Host::new(&HostKeys::new(private, ciphers, [number + 100; 32], clock_zero))
}

fn keys(number: u8, preshared: Option<u8>) -> PeerKeys {
    let public = PrivateKey::new([number; 32]).public();
    PeerKeys {
        public,
        preshared: preshared.map(|byte| PresharedKey::new([byte; 32])),
        invitation: None,
    }
}

fn at() -> At {
    At { socket: SocketId(0), remote: SocketAddr::from(([192, 0, 2, 1], 4754)) }
}

fn hello(session: u64, echo: u64, index: u32) -> Hello {
    let (sender, receiver) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let (version, capabilities, cookie) = (hello::VERSION, Capabilities::own(false), 0);
    Hello { version, capabilities, session, echo, sender, receiver, key: None, cookie, index }
}

/// The initiation of host 1 to host 2.
fn initiation(preshared: Option<u8>) -> (Host, Option<Box<Initiation>>) {
    let mut left = host(1);
    let begun = left.initiate(Instant::ZERO, &keys(2, preshared), hello(5, 0, 6), None);
    (left, begun.map(Box::new))
}

fn message(initiation: &Option<Box<Initiation>>) -> Box<[u8]> {
    initiation.as_ref().expect("it was made").message.clone()
}

/// What host 2 answers it, and what it has agreed on.
fn answer(right: &mut Host, message: &[u8], preshared: Option<u8>) -> ([u8; RESPONSE_LEN], Agreed) {
    let received = right.read_initiation(Instant::ZERO, at(), message).expect("authentic");
    assert_eq!(received.peer, keys(1, None).public);
    assert_eq!((received.hello.session, received.hello.index), (5, 6));
    let preshared = keys(1, preshared).preshared;
    right.respond(received, preshared.as_ref(), hello(7, 5, 8)).expect("a response")
}

/// Whether what one seals the other opens.
fn talk(one: &Agreed, other: &Agreed) -> bool {
    let (kind, sequence, flags) = (Kind::Data, Some(Seq::FIRST), Flags::NONE);
    let header =
        Header { key: 5, sequence, kind, flags, path: 0, distance: 0, path_sequence: 1, sent: 0 };
    let mut datagram = vec![0; 80];
    header.emit(&mut datagram);
    one.seal.key().seal(&header, &mut datagram).expect("a number that was not used");
    other.open.open(&header, &mut datagram).is_ok()
}

#[test]
fn two_hosts_agree_on_keys() {
    for preshared in [None, Some(9)] {
        let ((left, mut waiting), mut right) = (initiation(preshared), host(2));
        let (response, theirs) = answer(&mut right, &message(&waiting), preshared);
        let (said, answered, ours) =
            left.read_response(&mut waiting, &response).expect("authentic");
        assert_eq!((said.session, answered.session, answered.index), (5, 7, 8));
        assert!(waiting.is_none());
        assert!(talk(&ours, &theirs) && talk(&theirs, &ours));
        assert!(!talk(&ours, &ours), "each direction has a key of its own");
    }
}

#[test]
fn another_preshared_key_is_no_response() {
    for (one, other) in [(None, Some(9)), (Some(9), None), (Some(9), Some(8))] {
        let ((left, mut waiting), mut right) = (initiation(one), host(2));
        let (response, _) = answer(&mut right, &message(&waiting), other);
        let read = left.read_response(&mut waiting, &response);
        assert_eq!(read.err(), Some(Drop::HandshakeForged));
    }
}

#[test]
fn no_bit_of_an_initiation_can_be_changed() {
    let (_, waiting) = initiation(None);
    let mut right = host(2);
    for bit in 0..8 * (INITIATION_LEN - MAC_LEN) {
        let mut changed = message(&waiting);
        changed[bit / 8] ^= 1 << (bit % 8);
        // Each second another one, which is not yet load.
        let now = Instant::ZERO + Duration::from_secs(bit as u64);
        let read = right.read_initiation(now, at(), &changed);
        let first = INITIATION_LEN - 2 * MAC_LEN;
        let of_noise = (8 * MAC1_COVERS..8 * first).contains(&bit);
        let reason = if of_noise { Drop::HandshakeForged } else { Drop::HandshakeMac };
        assert_eq!(read.err(), Some(Refusal::Drop(reason)), "bit {bit}");
        // By somebody who knows the public key.
        let code = mac1_of(&right.mac1_key, &changed[..first]);
        changed[first..first + MAC_LEN].copy_from_slice(&code);
        if bit < 8 * first {
            let read = right.read_initiation(now, at(), &changed).err();
            let index = Some(Refusal::Drop(Drop::HandshakeRefused));
            let forged = Some(Refusal::Drop(Drop::HandshakeForged));
            assert_eq!(read, if bit < 32 { index } else { forged }, "bit {bit}");
        }
    }
    let message = message(&waiting);
    for len in 0..INITIATION_LEN {
        let read = right.read_initiation(Instant::ZERO, at(), &message[..len]);
        assert!(read.is_err(), "{len} bytes");
    }
}

#[test]
fn an_initiation_that_is_too_long_is_not_even_hashed() {
    let mut right = host(2);
    for (len, reason) in [
        (LONGEST_LEN, Drop::HandshakeMac),
        (LONGEST_LEN + 1, Drop::ControlLength),
        (60_000, Drop::ControlLength),
    ] {
        let read = right.read_initiation(Instant::ZERO, at(), &vec![7; len]);
        assert_eq!(read.err(), Some(Refusal::Drop(reason)), "{len} bytes");
    }
}

#[test]
fn no_bit_of_a_response_can_be_changed_and_the_true_one_still_counts() {
    let ((left, mut waiting), mut right) = (initiation(Some(3)), host(2));
    let (response, theirs) = answer(&mut right, &message(&waiting), Some(3));
    for bit in 0..8 * RESPONSE_LEN {
        let mut changed = response;
        changed[bit / 8] ^= 1 << (bit % 8);
        let read = left.read_response(&mut waiting, &changed);
        let first = RESPONSE_LEN - MAC_LEN;
        let of_noise = (8 * MAC1_COVERS..8 * first).contains(&bit);
        let reason = if of_noise { Drop::HandshakeForged } else { Drop::HandshakeMac };
        assert_eq!(read.err(), Some(reason), "bit {bit}");
        let code = mac1_of(&left.mac1_key, &changed[..first]);
        changed[first..].copy_from_slice(&code);
        if bit < 8 * first {
            let read = left.read_response(&mut waiting, &changed);
            assert_eq!(read.err(), Some(Drop::HandshakeForged), "bit {bit}");
        }
    }
    let (.., ours) = left.read_response(&mut waiting, &response).expect("authentic");
    assert!(talk(&theirs, &ours));
    let again = left.read_response(&mut waiting, &response);
    assert_eq!(again.err(), Some(Drop::HandshakeUnknown));
}

#[test]
fn a_stranger_is_no_peer() {
    let (_, waiting) = initiation(None);
    let read = host(3).read_initiation(Instant::ZERO, at(), &message(&waiting));
    assert_eq!(read.err(), Some(Refusal::Drop(Drop::HandshakeMac)), "it is to another host");
    let ((left, mut own), mut right) = (initiation(None), host(2));
    let (mut response, _) = answer(&mut right, &message(&waiting), None);
    assert_eq!(left.read_response(&mut None, &response).err(), Some(Drop::HandshakeUnknown));
    response[RESPONSE_LEN - 1] ^= 1;
    assert_eq!(left.read_response(&mut own, &response).err(), Some(Drop::HandshakeMac));
}

#[test]
fn later_initiations_have_later_timestamps_and_other_keys() {
    let (mut left, mut right) = (host(1), host(2));
    let messages = [0, 1, 300_000_000_000].map(|nanos| {
        let now = Instant::from_nanos(nanos);
        let begun = left.initiate(now, &keys(2, None), hello(5, 0, 6), None).expect("keys");
        let read = right.read_initiation(Instant::ZERO, at(), &begun.message);
        (begun.message, read.expect("authentic").timestamp)
    });
    assert!(messages.windows(2).all(|pair| pair[0].1 < pair[1].1));
    assert!(messages.windows(2).all(|pair| pair[0].0[4..36] != pair[1].0[4..36]));
}

/// The secret of an invitation arrives, and no bit on the way can be changed.
#[test]
fn an_invitation_is_sealed_into_the_initiation() {
    let (mut left, mut right) = (host(1), host(2));
    let secret = InvitationSecret::new([9; 32]);
    let invited = PeerKeys { invitation: Some(secret.clone()), ..keys(2, None) };
    let begun = left.initiate(Instant::ZERO, &invited, hello(5, 0, 6), None).expect("keys");
    assert_eq!(begun.message.len(), INVITED_LEN);
    assert!(!begun.message.windows(8).any(|bytes| bytes == [9; 8]));
    let received = right.read_initiation(Instant::ZERO, at(), &begun.message).expect("authentic");
    assert_eq!(received.invitation, Some(secret.hash()));
    for bit in (0..8 * (INVITED_LEN - MAC_LEN)).step_by(7) {
        let mut changed = begun.message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(host(2).read_initiation(Instant::ZERO, at(), &changed).is_err(), "bit {bit}");
    }
    // Without a secret, and with zeros for padding in its place, there is none.
    for invitation in [None, Some(InvitationSecret::new([0; 32]))] {
        let uninvited = PeerKeys { invitation, ..keys(2, None) };
        let begun = left.initiate(Instant::ZERO, &uninvited, hello(5, 0, 6), None).expect("keys");
        let read = host(2).read_initiation(Instant::ZERO, at(), &begun.message);
        assert_eq!(read.expect("authentic").invitation, None);
    }
}

#[test]
fn a_host_under_load_asks_for_a_cookie() {
    let (mut left, waiting) = initiation(None);
    let mut right = host(2);
    let asked = (0..200).find_map(|_| {
        match right.read_initiation(Instant::ZERO, at(), &message(&waiting)) {
            Err(Refusal::Ask(index, reply)) => Some((index, reply)),
            _ => None,
        }
    });
    let (index, reply) = asked.expect("a cookie reply");
    assert_eq!(index, 6);
    let waiting = waiting.expect("it waits");
    let cookie = crate::framing::sealed::cookie::read(right.public(), &waiting.mac1(), &reply);
    let cookie = cookie.expect("it is to this initiation");
    let next = left.initiate(Instant::ZERO, &keys(2, None), hello(5, 0, 6), Some(&cookie));
    let next = next.expect("keys").message;
    assert!(right.read_initiation(Instant::ZERO, at(), &next).is_ok());
    let elsewhere = At { socket: SocketId(1), ..at() };
    let read = right.read_initiation(Instant::ZERO, elsewhere, &next);
    assert!(matches!(read.err(), Some(Refusal::Ask(..) | Refusal::Drop(Drop::HandshakeLoad))));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A handshake with fixed keys, for other implementations: `tests/independent/handshake.txt`. Its private keys and seeds
/// are those of [`host`]; the ephemeral keys follow from the seeds, and stand there too.
#[test]
fn the_vectors_for_other_implementations_are_what_this_one_does() {
    let ((left, mut waiting), mut right) = (initiation(Some(9)), host(2));
    let ephemeral = |seed: u8| {
        let mut generator = Generator::new(&[seed; 32]);
        [(); 3].map(|()| hex(&*generator.draw())).concat()[128..].to_owned()
    };
    let initiation = message(&waiting);
    let (response, theirs) = answer(&mut right, &initiation, Some(9));
    let (.., ours) = left.read_response(&mut waiting, &response).expect("authentic");
    let mut text = String::new();
    for (name, value) in [
        ("initiator private", hex(PrivateKey::new([1; 32]).bytes())),
        ("initiator ephemeral", ephemeral(101)),
        ("responder private", hex(PrivateKey::new([2; 32]).bytes())),
        ("responder ephemeral", ephemeral(102)),
        ("pre-shared", hex(&[9; 32])),
        ("initiation", hex(&initiation)),
        ("response", hex(&response)),
        ("datagram from initiator", hex(&sealed_data(&ours))),
        ("datagram from responder", hex(&sealed_data(&theirs))),
    ] {
        text += &format!("{name}: {value}\n");
    }
    if std::env::var_os("MPT_WRITE_VECTORS").is_some() {
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/independent/handshake.txt");
        std::fs::write(place, &text).expect("it is written");
    }
    assert_eq!(text, include_str!("../../../../tests/independent/handshake.txt"));
}

/// A datagram of data on path 3 with 24 bytes of payload, 0 to 23.
fn sealed_data(agreed: &Agreed) -> Vec<u8> {
    let (kind, sequence, flags) = (Kind::Data, Some(Seq::new(7)), Flags::NONE);
    let (key, path, distance, path_sequence, sent) = (8, 3, 0, 5, 1000);
    let header = Header { key, sequence, kind, flags, path, distance, path_sequence, sent };
    let mut datagram = vec![0; header.size()];
    header.emit(&mut datagram);
    datagram.extend(0..24);
    datagram.extend([0; 16]);
    agreed.seal.key().seal(&header, &mut datagram).expect("a number that was not used");
    datagram
}
