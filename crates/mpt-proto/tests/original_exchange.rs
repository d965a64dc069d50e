//! Exchanges with the original MPT: a peer written from what is known of it, byte by byte, says and hears
//! that paths are down and up.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::original::{
    Auth, Code, Commands, ConnectionCommands, Destination, Event, Key, Outcome, PathReport, Refusal,
};
use mpt_proto::{ConnectionId, Instant};

const CONNECTION: ConnectionId = ConnectionId(3);
const KEY: &str = "0123456789abcdef0123456789ABCDEF";

/// Own tunnel address and the peer's, as bytes of their mapped form.
const OWN: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2];
const PEER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 3];

/// A path: the peer's end and the own one.
const PEER_END: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
const OWN_END: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 1];

const DOWN: u8 = 0x80;

/// A message as the original writes it. What it leaves uninitialised is 0xee.
struct Frame {
    status: u8,
    kind: u8,
    cookie: [u8; 4],
    round: u8,
    initiator: [u8; 16],
    responder: [u8; 16],
    data: Vec<u8>,
}

impl Frame {
    /// From the peer as initiator.
    fn request(kind: u8, cookie: [u8; 4], round: u8, status: u8) -> Self {
        let data = if round == 1 { vec![32, 0, 0, 0] } else { [PEER_END, OWN_END].concat() };
        Self { status, kind, cookie, round, initiator: PEER, responder: OWN, data }
    }

    /// From the peer as responder.
    fn reply(kind: u8, cookie: [u8; 4], round: u8, code: u8) -> Self {
        let data = if round == 2 { vec![32, 0, 0, 0] } else { vec![] };
        Self { status: code, kind, cookie, round, initiator: OWN, responder: PEER, data }
    }

    fn bytes(&self) -> Vec<u8> {
        let len: usize = [0, 4, 36][usize::from(self.kind)];
        let mut bytes = vec![0xa2, self.status, self.kind, len as u8];
        bytes.extend(&[&self.cookie[..], &[0; 32]].concat()[..len]);
        bytes.extend([self.round, 4]);
        bytes.extend(if self.kind == 2 { [0xee, 0xee] } else { [0, 0] });
        bytes.extend([&self.initiator[..], &self.responder, &self.data].concat());
        if self.kind == 2 {
            let hash = hmac_sha256::Hash::hash(&[&bytes[..], KEY.as_bytes()].concat());
            bytes[8..40].copy_from_slice(&hash);
        }
        bytes
    }
}

fn auth(kind: u8) -> Auth {
    match kind {
        0 => Auth::None,
        1 => Auth::Random,
        _ => Auth::Sha256(Key::new(KEY).expect("a key")),
    }
}

fn settings(kind: u8) -> ConnectionCommands {
    let (local, remote) = (IpAddr::from([10, 0, 0, 2]), IpAddr::from([10, 0, 0, 3]));
    ConnectionCommands { local, remote, auth: auth(kind), sources: vec![] }
}

fn source() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 65050))
}

fn report(down: bool) -> PathReport {
    let (initiator, responder) = ([198, 51, 100, 1].into(), [192, 0, 2, 1].into());
    PathReport { initiator, responder, down }
}

/// This end, with the peer that is played by hand.
struct Host {
    commands: Commands,
    now: Instant,
    chance: u32,
}

impl Host {
    fn new(kind: u8) -> Self {
        let mut commands = Commands::default();
        commands.set_connection(CONNECTION, settings(kind));
        // Nothing depends on when a host was started.
        Self { commands, now: Instant::from_nanos(1_000_000_000), chance: 0x0a0b_0c00 }
    }

    /// What is answered to a message.
    fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let chance = &mut self.chance;
        self.commands.handle_datagram(self.now, source(), message, || {
            *chance += 1;
            *chance
        });
        let answer = self.commands.poll_transmit(self.now)?;
        assert_eq!(answer.to, Destination::Source(source()));
        assert_eq!(self.commands.poll_transmit(self.now), None, "one answer to one message");
        Some(answer.message)
    }

    /// The cookie that an exchange gets, and the answer that has it.
    fn open(&mut self, kind: u8, status: u8) -> [u8; 4] {
        let answer = self.answer(&Frame::request(kind, [0; 4], 1, status).bytes());
        cookie(&answer.expect("round 2"))
    }

    /// That a message is refused for a reason, and not answered.
    fn refuses(&mut self, message: &[u8], refusal: Refusal) {
        let before = *self.commands.refusals();
        assert_eq!(self.answer(message), None, "{}", refusal.name());
        let after = self.commands.refusals();
        assert_eq!(after.count(refusal), before.count(refusal) + 1, "{}", refusal.name());
        assert_eq!(after.total(), before.total() + 1);
        assert_eq!(self.commands.poll_event(), None);
    }

    /// What is sent to the peer now.
    fn sent(&mut self) -> Option<Vec<u8>> {
        let transmit = self.commands.poll_transmit(self.now)?;
        assert!(matches!(transmit.to, Destination::Peer { connection: CONNECTION, .. }));
        Some(transmit.message)
    }

    /// An answer of the peer.
    fn hears(&mut self, frame: &Frame) {
        self.commands.handle_datagram(self.now, source(), &frame.bytes(), || unreachable!());
    }

    /// What became of what was told.
    fn told(&mut self) -> Option<(PathReport, Outcome)> {
        match self.commands.poll_event()? {
            Event::Told { connection: CONNECTION, report, outcome } => Some((report, outcome)),
            event @ (Event::Path { .. } | Event::Create(_) | Event::Told { .. }) => {
                panic!("{event:?}")
            }
        }
    }

    /// Waits until something is due.
    fn wait(&mut self) -> Duration {
        let due = self.commands.poll_timeout().expect("something is due");
        let waited = due.since(self.now);
        self.now = due;
        self.commands.handle_timeout(self.now);
        waited
    }
}

fn cookie(message: &[u8]) -> [u8; 4] {
    if message[2] == 0 { [0; 4] } else { message[4..8].try_into().expect("four bytes") }
}

/// The path, as this end has it.
fn heard(down: bool) -> Option<Event> {
    let (local, remote) = ([198, 51, 100, 1].into(), [192, 0, 2, 1].into());
    Some(Event::Path { connection: CONNECTION, local, remote, down })
}

#[test]
fn a_peer_is_answered_in_rounds_2_and_4_with_each_kind_of_authentication() {
    for kind in 0..=2 {
        let mut host = Host::new(kind);
        for (status, down) in [(DOWN, true), (0, false), (0x83, true), (0xff, true), (0x7f, false)]
        {
            let first = Frame::request(kind, [0; 4], 1, status);
            let second = host.answer(&first.bytes()).expect("round 2");
            let cookie = cookie(&second);
            assert_eq!(cookie == [0; 4], kind == 0, "kinds 1 and 2 have a cookie");
            let expected = Frame { status: 0, cookie, round: 2, ..first };
            assert_eq!(second, clean(&expected), "the echo of round 1");
            assert_eq!(host.commands.poll_event(), None, "nothing has been said yet");

            let third = Frame::request(kind, cookie, 3, status);
            let fourth = host.answer(&third.bytes()).expect("round 4");
            let expected = Frame { status: 0, round: 4, data: vec![], ..third };
            assert_eq!(fourth, clean(&expected));
            assert_eq!(host.commands.poll_event(), heard(down), "status {status:#x}");

            let again = Frame::request(kind, cookie, 3, status).bytes();
            assert_eq!(host.answer(&again), Some(fourth), "the answer may have been lost");
            assert_eq!(host.commands.poll_event(), None, "but it is done once");
        }
        assert_eq!(host.commands.refusals().total(), 0);
        assert_eq!(host.commands.poll_timeout(), None);
    }
}

/// As this end writes it: with zeroes in the bytes that mean nothing.
fn clean(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.bytes();
    if frame.kind == 2 {
        bytes[42..44].fill(0);
        bytes[8..40].fill(0);
        let hash = hmac_sha256::Hash::hash(&[&bytes[..], KEY.as_bytes()].concat());
        bytes[8..40].copy_from_slice(&hash);
    }
    bytes
}

#[test]
fn round_3_needs_the_cookie_of_an_exchange_that_is_open() {
    for kind in [1, 2] {
        let third = |cookie, status| Frame::request(kind, cookie, 3, status).bytes();
        let mut host = Host::new(kind);
        host.refuses(&third([0; 4], DOWN), Refusal::Order);
        let cookie = host.open(kind, DOWN);
        host.refuses(&third([0; 4], DOWN), Refusal::Cookie);
        host.refuses(&third([9; 4], DOWN), Refusal::Cookie);
        assert_eq!(host.open(kind, DOWN), cookie, "a repeated round 1 is the same exchange");
        assert!(host.answer(&third(cookie, DOWN)).is_some());
        assert_eq!(host.commands.poll_event(), heard(true));

        host.refuses(&third(cookie, 0), Refusal::Cookie);
        let next = host.open(kind, 0);
        assert_ne!(next, cookie, "something else is said with another cookie");

        host.now += Duration::from_secs(10);
        host.refuses(&third(cookie, DOWN), Refusal::Order);
        host.refuses(&third(next, 0), Refusal::Order);
    }
}

#[test]
fn without_cookies_round_3_still_needs_a_round_1() {
    let mut host = Host::new(0);
    let third = Frame::request(0, [0; 4], 3, DOWN).bytes();
    host.refuses(&third, Refusal::Order);
    host.open(0, DOWN);
    assert!(host.answer(&third).is_some());
    assert_eq!(host.commands.poll_event(), heard(true));
    host.refuses(&Frame::request(0, [0; 4], 3, 0).bytes(), Refusal::Cookie);
    host.open(0, 0);
    assert!(host.answer(&Frame::request(0, [0; 4], 3, 0).bytes()).is_some());
    assert_eq!(host.commands.poll_event(), heard(false));
}

/// In the original the kind that the message names decides where its fields are, and the connection's what is
/// checked, so that the check can be led past them.
#[test]
fn the_kind_of_authentication_is_the_connection_s() {
    for kind in 0..=2_u8 {
        let mut host = Host::new(kind);
        let cookie = host.open(kind, DOWN);
        for other in (0..=2).filter(|other| *other != kind) {
            for round in [1, 3] {
                let message = Frame::request(other, cookie, round, DOWN).bytes();
                host.refuses(&message, Refusal::AuthMismatch);
            }
        }
        // The same bytes, which only say that they are of another kind.
        for other in (0..=u8::MAX).filter(|other| *other != kind) {
            let mut message = Frame::request(kind, cookie, 3, DOWN).bytes();
            message[2] = other;
            let refusal = if other > 2 { Refusal::AuthKind } else { Refusal::AuthLength };
            host.refuses(&message, refusal);
        }
    }
}

#[test]
fn a_hash_with_another_key_is_refused_in_each_round() {
    let mut host = Host::new(2);
    let cookie = host.open(2, DOWN);
    for round in [1, 3] {
        let mut message = Frame::request(2, cookie, round, DOWN).bytes();
        message[8] ^= 1;
        host.refuses(&message, Refusal::AuthHash);
    }
}

#[test]
fn whose_a_message_is_its_tunnel_addresses_say() {
    let mut host = Host::new(0);
    let mut reversed = Frame::request(0, [0; 4], 1, DOWN);
    (reversed.initiator, reversed.responder) = (OWN, PEER);
    host.refuses(&reversed.bytes(), Refusal::Connection);
    host.commands.set_connection(
        CONNECTION,
        ConnectionCommands { remote: [10, 0, 0, 4].into(), ..settings(0) },
    );
    host.refuses(&Frame::request(0, [0; 4], 1, DOWN).bytes(), Refusal::Connection);
    let mut other = Frame::request(0, [0; 4], 1, DOWN);
    other.initiator[15] = 4;
    assert!(host.answer(&other.bytes()).is_some());
    host.commands.remove_connection(CONNECTION);
    host.refuses(&other.bytes(), Refusal::Connection);
}

#[test]
fn a_connection_may_take_over_the_addresses_of_one_that_ends() {
    let mut host = Host::new(0);
    let heir = ConnectionId(4);
    host.commands.set_connection(heir, settings(0));
    host.commands.remove_connection(CONNECTION);
    host.open(0, DOWN);
    assert!(host.answer(&Frame::request(0, [0; 4], 3, DOWN).bytes()).is_some());
    let event = host.commands.poll_event();
    assert!(matches!(event, Some(Event::Path { connection, .. }) if connection == heir));
}

#[test]
fn commands_from_elsewhere_are_refused_where_it_is_known_where_the_peer_is() {
    let mut host = Host::new(1);
    let mut narrow = settings(1);
    narrow.sources = vec![[192, 0, 2, 9].into()];
    let cookie = host.open(1, DOWN);
    host.commands.set_connection(CONNECTION, narrow.clone());
    host.refuses(&Frame::request(1, cookie, 3, DOWN).bytes(), Refusal::Source);
    narrow.sources.push([192, 0, 2, 1].into());
    host.commands.set_connection(CONNECTION, narrow);
    let third = Frame::request(1, cookie, 3, DOWN).bytes();
    assert!(host.answer(&third).is_some(), "what was being said goes on");
}

#[test]
fn who_asks_too_often_waits_and_is_not_forgotten() {
    let mut host = Host::new(1);
    let (first, mut answered) = (Frame::request(1, [0; 4], 1, DOWN).bytes(), 0);
    let cookie = host.open(1, DOWN);
    while host.answer(&first).is_some() {
        answered += 1;
        assert!(answered < 1000, "there is a limit");
    }
    assert_eq!(host.commands.refusals().count(Refusal::Rate), 1);
    let third = Frame::request(1, cookie, 3, DOWN).bytes();
    host.refuses(&third, Refusal::Rate);
    host.now += Duration::from_millis(50);
    assert!(host.answer(&third).is_some());
    assert_eq!(host.commands.poll_event(), heard(true));
    host.refuses(&third, Refusal::Rate);
}

#[test]
fn cookies_are_not_guessed_any_faster_than_messages_are_answered() {
    for kind in [1, 2] {
        let mut host = Host::new(kind);
        host.open(kind, DOWN);
        let begun = host.now;
        for guess in 1..=2000_u32 {
            host.now += Duration::from_millis(1);
            let message = Frame::request(kind, guess.to_be_bytes(), 3, DOWN).bytes();
            assert_eq!(host.answer(&message), None);
        }
        let guessed = host.commands.refusals().count(Refusal::Cookie);
        let most = 63 + (host.now.since(begun).as_millis() / 50) as u64;
        assert!(guessed <= most, "{guessed} cookies were looked at in two seconds");
        assert_eq!(host.commands.refusals().count(Refusal::Rate), 2000 - guessed);
    }
}

#[test]
fn of_many_exchanges_the_oldest_ends() {
    let mut host = Host::new(2);
    let cookies: Vec<[u8; 4]> = (0..9)
        .map(|number| {
            let from = SocketAddr::from(([192, 0, 2, 1], 1000 + number));
            let first = Frame::request(2, [0; 4], 1, DOWN).bytes();
            let chance = 77;
            host.commands.handle_datagram(host.now, from, &first, || chance);
            cookie(&host.commands.poll_transmit(host.now).expect("round 2").message)
        })
        .collect();
    let mut different = cookies.clone();
    different.dedup();
    assert_eq!(different.len(), 9, "even where chance has no luck");
    host.refuses(&Frame::request(2, cookies[0], 3, DOWN).bytes(), Refusal::Cookie);
    for &cookie in &cookies[1..] {
        assert!(host.answer(&Frame::request(2, cookie, 3, DOWN).bytes()).is_some());
        assert_eq!(host.commands.poll_event(), heard(true));
    }
}

#[test]
fn a_peer_is_told_with_each_kind_of_authentication() {
    for kind in 0..=2 {
        let mut host = Host::new(kind);
        for down in [true, false] {
            host.commands.tell(host.now, CONNECTION, report(down));
            let mut expected = Frame::request(kind, [0; 4], 1, if down { DOWN } else { 0 });
            (expected.initiator, expected.responder) = (OWN, PEER);
            assert_eq!(host.sent(), Some(clean(&expected)));
            assert_eq!(host.sent(), None, "and waits");

            let cookie = if kind == 0 { [0; 4] } else { [1, 2, 3, 4] };
            host.hears(&Frame::reply(kind, cookie, 2, 0));
            expected = Frame { cookie, round: 3, data: [OWN_END, PEER_END].concat(), ..expected };
            assert_eq!(host.sent(), Some(clean(&expected)));

            // The original may give its last answer yet another number.
            let last = if kind == 0 { [0; 4] } else { [5; 4] };
            host.hears(&Frame::reply(kind, last, 4, 0));
            assert_eq!(host.told(), Some((report(down), Outcome::Done)));
            assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
        }
        assert_eq!(host.commands.refusals().total(), 0);
    }
}

#[test]
fn each_round_is_sent_six_times_half_a_second_apart() {
    let half = Duration::from_millis(500);
    for answered in [false, true] {
        let mut host = Host::new(1);
        host.commands.tell(host.now, CONNECTION, report(true));
        if answered {
            host.sent().expect("round 1");
            host.hears(&Frame::reply(1, [7; 4], 2, 0));
        }
        let first = host.sent().expect("the first time");
        assert_eq!(first[8], if answered { 3 } else { 1 });
        for _ in 1..6 {
            assert_eq!(host.wait(), half);
            assert_eq!(host.sent().as_ref(), Some(&first));
            assert_eq!(host.told(), None);
        }
        assert_eq!(host.wait(), half);
        assert_eq!(host.told(), Some((report(true), Outcome::Unanswered)));
        assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
    }
}

#[test]
fn refusals_end_an_exchange_in_their_round_only() {
    for (round, code) in [(2, 4), (4, 5)] {
        let mut host = Host::new(0);
        host.commands.tell(host.now, CONNECTION, report(true));
        host.sent().expect("round 1");
        if round == 4 {
            host.hears(&Frame::reply(0, [0; 4], 4, code));
            assert_eq!(host.told(), None, "nobody waits for round 4");
            host.hears(&Frame::reply(0, [0; 4], 2, 0));
        }
        host.hears(&Frame::reply(0, [0; 4], round, code));
        assert_eq!(host.told(), Some((report(true), Outcome::Refused(Code(code)))));
    }
}

/// In the original any other round than the one that is waited for is the end.
#[test]
fn replies_out_of_turn_are_ignored() {
    let mut host = Host::new(1);
    let done = Frame::reply(1, [7; 4], 4, 0);
    host.hears(&done);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.sent().expect("round 1");
    host.hears(&done);
    assert_eq!(host.commands.refusals().count(Refusal::Order), 2);
    host.hears(&Frame::reply(1, [7; 4], 2, 0));
    assert_eq!(cookie(&host.sent().expect("round 3")), [7; 4]);
    host.hears(&Frame::reply(1, [7; 4], 2, 0));
    assert_eq!(host.sent(), None, "the same again changes nothing");
    host.hears(&Frame::reply(1, [8; 4], 2, 0));
    assert_eq!(cookie(&host.sent().expect("round 3")), [8; 4], "the peer knows this cookie only");
    assert_eq!(host.told(), None);
    host.hears(&done);
    assert_eq!(host.told(), Some((report(true), Outcome::Done)));
}

#[test]
fn an_answer_that_is_not_authentic_is_told_in_the_end() {
    let mut host = Host::new(2);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.sent().expect("round 1");
    host.hears(&Frame::reply(0, [0; 4], 2, 0));
    let mut forged = Frame::reply(2, [7; 4], 2, 0).bytes();
    forged[8] ^= 1;
    host.commands.handle_datagram(host.now, source(), &forged, || unreachable!());
    assert_eq!(host.commands.refusals().count(Refusal::AuthMismatch), 1);
    assert_eq!(host.commands.refusals().count(Refusal::AuthHash), 1);
    assert_eq!((host.sent(), host.told()), (None, None), "it might be a forgery");
    while host.commands.poll_timeout().is_some() {
        host.wait();
        host.sent();
    }
    assert_eq!(host.told(), Some((report(true), Outcome::AuthFailed)));
}

/// In the original both would give up what they have begun.
#[test]
fn both_ends_may_begin_at_once() {
    for kind in 0..=2 {
        let mut host = Host::new(kind);
        host.commands.tell(host.now, CONNECTION, report(true));
        host.sent().expect("round 1");
        let theirs = host.open(kind, 0);
        let ours = if kind == 0 { [0; 4] } else { [1; 4] };
        host.hears(&Frame::reply(kind, ours, 2, 0));
        host.sent().expect("round 3");
        assert!(host.answer(&Frame::request(kind, theirs, 3, 0).bytes()).is_some());
        assert_eq!(host.commands.poll_event(), heard(false));
        host.hears(&Frame::reply(kind, ours, 4, 0));
        assert_eq!(host.told(), Some((report(true), Outcome::Done)));
        assert_eq!(host.commands.refusals().total(), 0);
    }
}

#[test]
fn of_what_waits_to_be_told_of_a_path_only_the_last_is_told() {
    let mut host = Host::new(0);
    let other = PathReport { initiator: [203, 0, 113, 1].into(), ..report(true) };
    for told in [report(true), report(false), other, report(true)] {
        host.commands.tell(host.now, CONNECTION, told);
    }
    assert_eq!(host.told(), Some((report(false), Outcome::Superseded)));
    for expected in [report(true), other, report(true)] {
        let first = host.sent().expect("round 1");
        assert_eq!(first[1], DOWN);
        host.hears(&Frame::reply(0, [0; 4], 2, 0));
        let third = host.sent().expect("round 3");
        assert_eq!(
            third[52..56],
            match expected.initiator {
                IpAddr::V4(address) => address.octets(),
                IpAddr::V6(_) => unreachable!("the paths here have none"),
            }
        );
        assert_eq!(host.sent(), None, "one after the other");
        host.hears(&Frame::reply(0, [0; 4], 4, 0));
        assert_eq!(host.told(), Some((expected, Outcome::Done)));
    }
    assert_eq!((host.sent(), host.told()), (None, None));
}

#[test]
fn what_waits_to_be_told_has_a_limit() {
    let mut host = Host::new(0);
    let path = |number: u8| PathReport { initiator: [203, 0, 113, number].into(), ..report(true) };
    for number in 0..=65 {
        host.commands.tell(host.now, CONNECTION, path(number));
    }
    assert_eq!(host.told(), Some((path(1), Outcome::Superseded)), "0 is being told");
    assert_eq!(host.told(), None);
}

#[test]
fn a_connection_with_another_key_begins_anew_and_one_that_ends_tells_nothing() {
    let mut host = Host::new(1);
    let cookie = host.open(1, DOWN);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.commands.set_connection(CONNECTION, settings(2));
    assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
    host.refuses(&Frame::request(2, cookie, 3, DOWN).bytes(), Refusal::Order);
    host.commands.tell(host.now, CONNECTION, report(true));
    host.commands.remove_connection(CONNECTION);
    assert_eq!((host.sent(), host.commands.poll_timeout()), (None, None));
    host.commands.tell(host.now, CONNECTION, report(true));
    assert_eq!(host.sent(), None);
}
