//! What a host sends to an origin that it does not know: never more bytes than came from there, and not often.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::pair::{CONNECTION, Host, Inbox, Pair, Sent, Settings, config, packet};
use mpt_proto::{
    Cipher, Ciphers, Endpoint, EndpointConfig, FramingConfig, HostKeys, Instant, KEY_LEN, PathId,
    PeerKeys, PrivateKey, ReorderConfig, Secret, TransmitKind,
};

/// Kinds of datagrams (section 8.2 of `docs/protocol.md`).
const DATA: u8 = 0;
const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const RESPONSE: u8 = 4;
const CHALLENGE: u8 = 5;
const PATH_ANSWER: u8 = 6;
const PATH_STATUS: u8 = 9;
const CLOSE: u8 = 10;
const CONFIRM: u8 = 11;
const COOKIE_REPLY: u8 = 13;

/// Longer than any datagram of these hosts.
const LONG: usize = 1500;

fn host_config(framing: FramingConfig, number: u8, start: u8) -> EndpointConfig {
    let reorder = ReorderConfig { evidence: true, ..ReorderConfig::default() };
    let mut config = config(&Settings { reorder, ..Settings::default() }, number);
    config.secret = Secret::new([16 * number + start; 16]);
    let connection = &mut config.connections[0];
    connection.framing = framing;
    if framing == FramingConfig::Sealed {
        let private = |number| PrivateKey::new([number; KEY_LEN]);
        let mut seed = [number; KEY_LEN];
        seed[1] = start;
        let clock = Duration::from_secs(1_800_000_000 + u64::from(start));
        let ciphers = Ciphers::fastest(Cipher::Aes256Gcm);
        config.keys = Some(HostKeys::new(private(number), ciphers, seed, clock));
        let public = private(3 - number).public();
        connection.peer_keys = Some(PeerKeys { public, preshared: None, invitation: None });
    }
    config
}

fn host(framing: FramingConfig, number: u8, start: u8, now: Instant) -> Host {
    let endpoint = Endpoint::new(&host_config(framing, number, start), now);
    Host { number, endpoint: endpoint.expect("good settings"), inbox: Inbox::default() }
}

/// Two hosts that know nothing of each other yet.
fn new_pair(framing: FramingConfig) -> Pair {
    let now = Instant::ZERO + Duration::from_secs(1000);
    Pair { now, left: host(framing, 1, 0, now), right: host(framing, 2, 0, now) }
}

/// Whether both hosts are in a session.
fn is_in_session(pair: &Pair) -> bool {
    let has_session = |host: &Host| host.endpoint.connection(CONNECTION).has_session();
    has_session(&pair.left) && has_session(&pair.right)
}

/// Time passes in which the links carry all that is sent. Returns what the left host sent.
fn step(pair: &mut Pair) -> Vec<Sent> {
    pair.now += Duration::from_millis(50);
    for host in [&mut pair.left, &mut pair.right] {
        host.endpoint.handle_timeout(pair.now, &mut host.inbox);
    }
    let there = polled(&mut pair.left, pair.now);
    there.iter().for_each(|sent| pair.right.receive(pair.now, sent));
    polled(&mut pair.right, pair.now).iter().for_each(|sent| pair.left.receive(pair.now, sent));
    there
}

/// Two hosts in a session, and what the left one sent to get there and in it: the first datagram of each kind.
fn in_session(framing: FramingConfig) -> (Pair, BTreeMap<u8, Vec<u8>>) {
    let mut pair = new_pair(framing);
    let mut sent: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    for _ in 0..60 {
        let mut there = step(&mut pair);
        let data = pair.left.send(pair.now, &packet(1, 1));
        data.iter().for_each(|data| pair.right.receive(pair.now, data));
        there.extend(data);
        for Sent { bytes, .. } in there {
            // Not those of plain framing.
            if bytes[2..4] == [0x88, 0xb5] {
                sent.entry(kind(&bytes)).or_insert(bytes);
            }
        }
    }
    assert!(is_in_session(&pair));
    (pair, sent)
}

/// What a host has to send, answers included: those go where the socket of the path leads.
fn polled(host: &mut Host, now: Instant) -> Vec<Sent> {
    let mut sent = Vec::new();
    while let Some(transmit) = host.endpoint.poll_transmit(now) {
        let is_reply = transmit.kind() == TransmitKind::Reply;
        let path =
            if is_reply { PathId(host.endpoint.destination().0.0 as u8) } else { transmit.path };
        let mut bytes = vec![0; transmit.size()];
        host.endpoint.emit(now, &transmit, &mut bytes);
        sent.push(Sent { path, bytes });
    }
    sent
}

/// The kind of a datagram of extended framing: behind the GRE header, the key, and the sequence if there is one.
fn kind(datagram: &[u8]) -> u8 {
    let at = if datagram[0] & 0x10 == 0 { 8 } else { 12 };
    datagram[at] >> 4
}

/// An origin of its own for each number.
fn stranger(number: u32) -> SocketAddr {
    let [_, b, c, d] = number.to_be_bytes();
    SocketAddr::from(([198, b, c, d], 4754))
}

/// What a host sends to strangers because of a datagram of one of them: kinds and lengths.
fn answers(host: &mut Host, now: Instant, datagram: &[u8], from: SocketAddr) -> Vec<(u8, usize)> {
    let sent = Sent { path: PathId(0), bytes: datagram.to_vec() };
    host.receive_from(now, &sent, from);
    let mut answers = Vec::new();
    while let Some(transmit) = host.endpoint.poll_transmit(now) {
        let mut bytes = vec![0; transmit.size()];
        let is_reply = transmit.kind() == TransmitKind::Reply;
        host.endpoint.emit(now, &transmit, &mut bytes);
        if is_reply {
            assert_eq!(host.endpoint.destination().1, from, "nobody else is answered");
            answers.push((kind(&bytes), bytes.len()));
        }
    }
    answers
}

/// Has strangers send datagrams, each cut and padded to all lengths, and the same to an index that nobody has. Returns
/// how many answers of each kind came.
fn answered(host: &mut Host, mut now: Instant, sent: &[&Vec<u8>]) -> BTreeMap<u8, u32> {
    let (mut counts, mut strangers) = (BTreeMap::new(), 0);
    for datagram in sent {
        let mut unknown = (*datagram).clone();
        unknown[4] ^= 0x55;
        for datagram in [*datagram, &unknown] {
            for len in (0..datagram.len() + 60).chain([LONG]) {
                let mut datagram = datagram.clone();
                datagram.resize(len, 0);
                strangers += 1;
                now += Duration::from_millis(10);
                let answers = answers(host, now, &datagram, stranger(strangers));
                let bytes: usize = answers.iter().map(|(_, len)| len).sum();
                assert!(bytes <= len, "{len} bytes of {datagram:02x?} are answered by {answers:?}");
                answers.iter().for_each(|(kind, _)| *counts.entry(*kind).or_default() += 1);
            }
        }
    }
    counts
}

#[test]
fn a_stranger_gets_no_more_bytes_than_he_sent() {
    let (mut pair, mut sent) = in_session(FramingConfig::Extended);
    // To the index of the right host.
    let mut challenge = vec![0; 40];
    challenge[..4].copy_from_slice(&[0x20, 0, 0x88, 0xb5]);
    challenge[4..8].copy_from_slice(&sent[&DATA][4..8]);
    challenge[8] = CHALLENGE << 4;
    sent.insert(CHALLENGE, challenge);
    let captured: Vec<&Vec<u8>> = sent.values().collect();
    let counts = answered(&mut pair.right, pair.now, &captured);
    for kind in [ANSWER, CHALLENGE, PATH_ANSWER, CLOSE] {
        assert!(counts.get(&kind).is_some_and(|count| *count > 20), "{kind}: {counts:?}");
    }
    for kind in [DATA, HELLO, CONFIRM, PATH_STATUS] {
        assert!(sent.contains_key(&kind), "{kind} was sent");
    }
}

#[test]
fn a_stranger_gets_no_more_bytes_than_he_sent_in_sealed_framing() {
    let (mut pair, sent) = in_session(FramingConfig::Sealed);
    let captured: Vec<&Vec<u8>> = sent.values().collect();
    assert_eq!(answered(&mut pair.right, pair.now, &captured), BTreeMap::new(), "it is silent");

    // Genuine initiations, as if each had taken another way, at a host that has had no peer yet. Of the two, the one
    // whose own initiation goes before that of its peer answers none.
    let mut counts: BTreeMap<u8, u32> = BTreeMap::new();
    for number in [1, 2] {
        let mut responder = host(FramingConfig::Sealed, number, 0, pair.now);
        responder.keepalives(pair.now);
        for start in 0..90 {
            let mut peer = host(FramingConfig::Sealed, 3 - number, start, pair.now);
            let initiation = peer.keepalives(pair.now).remove(0).bytes;
            let len = initiation.len();
            let answers = answers(&mut responder, pair.now, &initiation, stranger(start.into()));
            let bytes: usize = answers.iter().map(|(_, len)| len).sum();
            assert!(bytes <= len, "{len} bytes are answered by {answers:?}");
            answers.iter().for_each(|(kind, _)| *counts.entry(*kind).or_default() += 1);
        }
    }
    for kind in [RESPONSE, COOKIE_REPLY] {
        assert!(counts.get(&kind).is_some_and(|count| *count > 10), "{kind}: {counts:?}");
    }
}

#[test]
fn an_origin_is_challenged_once_in_a_tenth_of_a_second() {
    for framing in [FramingConfig::Extended, FramingConfig::Sealed] {
        let (mut pair, _) = in_session(framing);
        let mut challenges = Vec::new();
        for millis in 0..500_u64 {
            let now = pair.now + Duration::from_millis(millis);
            let datagram = pair.left.send(now, &packet(1, millis as u32)).expect("a path");
            let answers = answers(&mut pair.right, now, &datagram.bytes, stranger(1));
            let count = answers.iter().filter(|(kind, _)| *kind == CHALLENGE).count();
            challenges.extend(std::iter::repeat_n(millis, count));
            assert_eq!(answers.len(), count, "nothing but challenges goes there");
        }
        assert!((1..=5).contains(&challenges.len()), "{framing:?}: {challenges:?}");
        assert!(challenges.windows(2).all(|two| two[1] - two[0] >= 100), "{challenges:?}");
    }
}

#[test]
fn who_says_that_an_index_is_unknown_causes_one_hello_per_second() {
    let (mut pair, _) = in_session(FramingConfig::Extended);
    let data = pair.left.send(pair.now, &packet(1, 0)).expect("a path").bytes;
    // From the peer's address, with the index under which the left host sends.
    let mut close = vec![0; 28];
    close[..4].copy_from_slice(&[0x20, 0, 0x88, 0xb5]);
    close[8..10].copy_from_slice(&[CLOSE << 4, 255]);
    close[20] = 4;
    close[24..28].copy_from_slice(&data[4..8]);
    let mut hellos = 0;
    for _ in 0..100 {
        pair.left.receive(pair.now, &Sent { path: PathId(0), bytes: close.clone() });
        // The peer still has the session, and answers at once.
        let sent = [step(&mut pair), step(&mut pair)].concat();
        let is_hello = |sent: &&Sent| kind(&sent.bytes) == HELLO && sent.path == PathId(0);
        hellos += sent.iter().filter(is_hello).count();
    }
    assert_eq!(hellos, 10, "one per second, on each path");
    assert!(pair.left.endpoint.connection(CONNECTION).has_session(), "the session goes on");
}

#[test]
fn unknown_capabilities_and_versions_are_answered_with_ours() {
    let mut pair = new_pair(FramingConfig::Auto);
    let sent = polled(&mut pair.left, pair.now);
    let hello =
        &sent.iter().find(|sent| kind(&sent.bytes) == HELLO).expect("it asks at once").bytes;
    // Behind the header: version, and capabilities at offset 4.
    let mut unknown = hello.clone();
    unknown[20] = 2;
    unknown[24..28].copy_from_slice(&[0xff; 4]);
    let answer = |host: &mut Host, hello: &[u8]| {
        host.receive_from(pair.now, &Sent { path: PathId(0), bytes: hello.to_vec() }, stranger(1));
        let answers = polled(host, pair.now).into_iter().map(|sent| sent.bytes);
        let mut answers = answers.filter(|bytes| bytes[0] == 0x20 && kind(bytes) == ANSWER);
        answers.next().expect("an answer")
    };
    let known = answer(&mut pair.right, hello);
    assert_eq!(answer(&mut pair.right, &unknown), known);
    assert_eq!((known[20], &known[24..28]), (1, &[0, 0, 0, 3][..]));
}

/// A keepalive, or data, of plain framing, as somebody writes them who knows the hosts' addresses.
fn plain(from: u8) -> [Vec<u8>; 2] {
    let host = |number| [[0; 10].as_slice(), &[0xff, 0xff, 10, 9, 0, number]].concat();
    let keepalive = [&[0, 0, 8, 0, 0xa1, 1, 0, 0, 0, 4, 0, 0][..], &host(from), &host(3 - from)];
    [keepalive.concat(), [&[0x10, 0, 8, 0, 0, 0, 0, 77][..], &packet(from, 77)].concat()]
}

#[test]
fn injected_datagrams_keep_nobody_in_plain_framing() {
    let mut pair = new_pair(FramingConfig::Auto);
    let (_, captured) = in_session(FramingConfig::Extended);
    let mut guess = 1_u32;
    for round in 0..200 {
        for host in [&mut pair.left, &mut pair.right] {
            let mut forged = plain(3 - host.number).to_vec();
            // Answers, confirms and closes of somebody who has seen neither hello nor index.
            for kind in [CONFIRM, HELLO] {
                let mut answer = captured[&kind].clone();
                guess = guess.wrapping_mul(0x915f_77f5).wrapping_add(1);
                answer[4..8].copy_from_slice(&guess.to_be_bytes());
                answer[8] = [ANSWER, CONFIRM, CLOSE][round % 3] << 4;
                forged.push(answer);
            }
            for bytes in forged {
                // From the address of the peer.
                host.receive(pair.now, &Sent { path: PathId(0), bytes });
            }
        }
        step(&mut pair);
        assert!(round < 20 || is_in_session(&pair), "round {round}");
    }
    let session = |event: &mpt_proto::Event| matches!(event, mpt_proto::Event::Session { .. });
    assert_eq!(pair.left.events().iter().filter(|event| session(event)).count(), 1);
}

#[test]
fn a_close_of_somebody_who_sees_the_index_shows_and_ends_nothing_for_long() {
    for framing in [FramingConfig::Auto, FramingConfig::Extended] {
        let (mut pair, sent) = in_session(framing);
        pair.right.events();
        let mut close = vec![0; 28];
        close[..4].copy_from_slice(&[0x20, 0, 0x88, 0xb5]);
        close[4..8].copy_from_slice(&sent[&DATA][4..8]);
        close[8..10].copy_from_slice(&[CLOSE << 4, 255]);
        let close = Sent { path: PathId(0), bytes: close };
        pair.right.receive_from(pair.now, &close, stranger(1));
        assert!(!pair.right.endpoint.connection(CONNECTION).has_session());
        (0..4).for_each(|_| drop(step(&mut pair)));
        assert!(is_in_session(&pair), "{framing:?}");
        let events = pair.right.events();
        let ended = |event: &mpt_proto::Event| matches!(event, mpt_proto::Event::SessionEnd { .. });
        assert_eq!(events.iter().filter(|event| ended(event)).count(), 1, "{events:?}");
    }
}
