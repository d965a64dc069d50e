//! Connections that peers ask this host to create.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_original::{
    Auth, AuthKind, Code, Command, Commands, ConnectionCommands, Create, CreateCommands,
    Destination, Event, Key, Message, Refusal, Round, Step,
};
use mpt_proto::{ConnectionId, Instant};

use crate::saved::{SAVED, address, described};

const KEY: &str = "0123456789abcdef0123456789ABCDEF";

fn auth() -> Auth {
    Auth::Sha256(Key::new(KEY).expect("a key"))
}

fn source() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 65020))
}

/// A host at 10.0.0.2, which 10.0.0.3 asks for a connection.
struct Host {
    commands: Commands,
    now: Instant,
}

impl Host {
    fn new(zero_cookie: bool) -> Self {
        let mut commands = Commands::default();
        commands.set_create(Self::settings(zero_cookie));
        Self { commands, now: Instant::from_nanos(1_000_000_000) }
    }

    fn settings(zero_cookie: bool) -> Option<CreateCommands> {
        let keys = vec![Key::new(KEY).expect("a key")];
        Some(CreateCommands { keys, zero_cookie })
    }

    fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.commands.handle_datagram(self.now, source(), message, || 77);
        let answer = self.commands.poll_transmit(self.now)?;
        assert_eq!(answer.to, Destination::Source(source()));
        Some(answer.message)
    }

    fn open(&mut self, text: &str) -> u32 {
        let answer = self.answer(&open(text)).expect("round 2");
        assert_eq!(auth().verify(&answer), Ok(()));
        let answer = Message::parse(&answer).expect("an answer");
        let size = text.len() as u32;
        assert_eq!(answer.step, Step::Proceed { command: Command::Create, size });
        answer.cookie
    }

    /// The code by which round 3 is refused.
    fn refused(&mut self, message: &[u8]) -> u8 {
        let answer = self.answer(message).expect("round 4");
        assert_eq!(auth().verify(&answer), Ok(()));
        assert_eq!(answer.len(), 41 + 36);
        assert_eq!(answer[40], 4);
        answer[1]
    }

    fn create(&mut self) -> Option<Create> {
        match self.commands.poll_event()? {
            Event::Create(create) => Some(*create),
            event @ (Event::Path { .. } | Event::Told { .. }) => panic!("{event:?}"),
        }
    }
}

fn message(cookie: u32, step: Step<'_>) -> Vec<u8> {
    sealed(&auth(), cookie, step)
}

fn sealed(auth: &Auth, cookie: u32, step: Step<'_>) -> Vec<u8> {
    let (initiator, responder) = (address("10.0.0.3"), address("10.0.0.2"));
    Message { auth: AuthKind::Sha256, cookie, initiator, responder, step }.emit(auth)
}

/// A message with a wrong hash.
fn forged(message: &[u8]) -> Vec<u8> {
    let mut forged = message.to_vec();
    forged[8] ^= 1;
    forged
}

fn open(text: &str) -> Vec<u8> {
    let size = text.len() as u32;
    message(0, Step::Open { command: Command::Create, down: false, size })
}

fn create(cookie: u32, text: &str) -> Vec<u8> {
    message(cookie, Step::Create(text.as_bytes()))
}

#[test]
fn create_is_refused_without_keys_and_with_a_hash_where_a_key_is_agreed() {
    let mut commands = Commands::default();
    for (message, round) in [(open(SAVED), 2), (create(0, SAVED), 4)] {
        commands.handle_datagram(Instant::ZERO, source(), &message, || unreachable!());
        let answer = commands.poll_transmit(Instant::ZERO).expect("a refusal").message;
        assert_eq!((answer[0], answer[1], answer[2], answer[3]), (0xa3, 4, 2, 36));
        assert_eq!((&answer[4..40], answer[40]), (&[0; 36][..], round), "no key, no hash");
        assert!(answer.len() <= message.len());
    }
    assert_eq!(commands.refusals().count(Refusal::CreateOff), 2);
    assert_eq!(commands.poll_event(), None);
    // Where a key is agreed, the refusal has a hash, and forged requests get none.
    let (local, remote) = (address("10.0.0.2"), address("10.0.0.3"));
    let settings = ConnectionCommands { local, remote, auth: auth(), sources: vec![] };
    commands.set_connection(ConnectionId(0), settings);
    for message in [open(SAVED), create(0, SAVED)] {
        commands.handle_datagram(Instant::ZERO, source(), &forged(&message), || unreachable!());
        assert_eq!(commands.poll_transmit(Instant::ZERO), None, "no hash for an offline search");
    }
    assert_eq!(commands.refusals().count(Refusal::AuthHash), 2);
    commands.handle_datagram(Instant::ZERO, source(), &open(SAVED), || unreachable!());
    let answer = commands.poll_transmit(Instant::ZERO).expect("a refusal").message;
    assert_eq!(auth().verify(&answer), Ok(()));
    let (command, round) = (Command::Create, Round::Two);
    let refused = Step::Refused { command, round, code: Code::UNKNOWN };
    assert_eq!(Message::parse(&answer).expect("a refusal").step, refused);

    // The rate of refusals is limited.
    let sent = (0..1000).filter(|_| {
        commands.handle_datagram(Instant::ZERO, source(), &open(SAVED), || unreachable!());
        commands.poll_transmit(Instant::ZERO).is_some()
    });
    assert!(sent.count() < 30);
    assert!(commands.refusals().count(Refusal::Rate) > 900);
}

#[test]
fn a_repeated_create_is_executed_once_and_answered_in_full() {
    let mut host = Host::new(false);
    let cookie = host.open(SAVED);
    let third = create(cookie, SAVED);
    assert_eq!(host.answer(&third), None, "the owner is asked");
    let create = host.create().expect("a connection to be created");
    assert_eq!((create.local, create.from), (address("10.0.0.2"), source()));
    assert_eq!(create.description, described());
    assert_eq!((host.answer(&third), host.create()), (None, None), "it is asked once");

    let mut mirrored = described();
    std::mem::swap(&mut mirrored.local, &mut mirrored.remote);
    assert!(host.commands.answer_create(create.id, Ok(&mirrored)));
    let fourth = host.commands.poll_transmit(host.now).expect("round 4").message;
    assert_eq!(auth().verify(&fourth), Ok(()));
    assert_eq!(fourth[76..], *mirrored.to_text().as_bytes(), "none of it is cut off");
    assert_eq!(host.answer(&third), Some(fourth), "the answer may have been lost");
    assert_eq!(host.create(), None);
    assert!(!host.commands.answer_create(create.id, Err(Code::UNKNOWN)), "it is answered");
    assert_eq!(host.commands.refusals().total(), 0);

    host.now += Duration::from_secs(10);
    assert_eq!(host.answer(&third), None, "a replay is refused");
    assert_eq!(host.commands.refusals().count(Refusal::Order), 1);
}

#[test]
fn a_refusal_of_the_owner_is_sent_and_a_late_answer_is_not() {
    let mut host = Host::new(false);
    let cookie = host.open(SAVED);
    host.answer(&create(cookie, SAVED));
    let id = host.create().expect("a connection to be created").id;
    host.commands.set_create(Host::settings(false));
    assert!(host.commands.answer_create(id, Err(Code(1))), "nothing has changed");
    let answer = host.commands.poll_transmit(host.now).expect("round 4").message;
    assert_eq!((answer[1], answer.len()), (1, 77));
    assert_eq!(host.refused(&create(cookie, SAVED)), 1);

    let cookie = host.open(SAVED);
    host.answer(&create(cookie, SAVED));
    let id = host.create().expect("a connection to be created").id;
    for settings in [None, Host::settings(false)] {
        host.commands.set_create(settings);
        assert!(!host.commands.answer_create(id, Ok(&described())), "the request is gone");
    }
}

#[test]
fn bad_descriptions_and_existing_connections_have_their_codes() {
    let mut host = Host::new(false);
    let truncated = &SAVED[..SAVED.len() - 40];
    let elsewhere = &SAVED.replace("10.0.0.3", "10.0.0.9");
    for text in [truncated, elsewhere, "rubbish"] {
        let cookie = host.open(text);
        assert_eq!(host.refused(&create(cookie, text)), Code::UNKNOWN.0);
        assert_eq!(host.create(), None);
    }
    assert_eq!(host.commands.refusals().count(Refusal::CreateText), 3);

    let (local, remote) = (address("10.0.0.2"), address("10.0.0.3"));
    let settings = ConnectionCommands { local, remote, auth: Auth::None, sources: vec![] };
    host.commands.set_connection(ConnectionId(0), settings);
    let cookie = host.open(SAVED);
    assert_eq!(host.refused(&create(cookie, SAVED)), Code::EXISTS.0);
    assert_eq!(host.create(), None);
}

#[test]
fn create_needs_the_key_the_cookie_and_the_announced_size() {
    let mut host = Host::new(false);
    assert_eq!(host.answer(&forged(&open(SAVED))), None);
    assert_eq!(host.commands.refusals().count(Refusal::AuthHash), 1);
    let cookie = host.open(SAVED);
    for other in [0, cookie + 1] {
        assert_eq!(host.answer(&create(other, SAVED)), None);
    }
    assert_eq!(host.commands.refusals().count(Refusal::Cookie), 2);
    let longer = format!("{SAVED};");
    assert_eq!(host.answer(&create(cookie, &longer)), None);
    assert_eq!(host.commands.refusals().count(Refusal::Size), 1);
    assert_eq!(host.create(), None);
}

#[test]
fn a_zero_cookie_is_accepted_where_it_is_permitted() {
    let mut host = Host::new(true);
    let third = create(0, SAVED);
    assert_eq!(host.answer(&third), None);
    assert_eq!(host.commands.refusals().count(Refusal::Order), 1);
    assert_ne!(host.open(SAVED), 0);
    assert_eq!(host.answer(&third), None);
    let id = host.create().expect("a connection to be created").id;
    assert!(host.commands.answer_create(id, Ok(&described())));
    let fourth = host.commands.poll_transmit(host.now).expect("round 4").message;
    assert_eq!(Message::parse(&fourth).expect("round 4").cookie, 0, "that of the request");
    assert_eq!(host.answer(&third), Some(fourth));
    assert_eq!(host.create(), None);
}

/// Each connection that permits creates has a key.
#[test]
fn each_key_is_accepted_and_its_answer_is_hashed_with_it() {
    let keys = ["first", "other", "third"]
        .map(|name| Key::new(&format!("{name}-key-of-thirty-two-characters")).expect("a key"));
    let [first, other, third] = keys.clone().map(Auth::Sha256);
    let mut host = Host::new(false);
    let settings = CreateCommands { keys: keys[..2].to_vec(), zero_cookie: false };
    host.commands.set_create(Some(settings));
    let opening = Step::Open { command: Command::Create, down: false, size: SAVED.len() as u32 };
    let exchange = |host: &mut Host, auth: &Auth| {
        let answer = host.answer(&sealed(auth, 0, opening)).expect("round 2");
        assert_eq!(auth.verify(&answer), Ok(()));
        let Message { cookie, step, .. } = Message::parse(&answer).expect("an answer");
        assert!(matches!(step, Step::Proceed { .. }));
        sealed(auth, cookie, Step::Create(SAVED.as_bytes()))
    };
    for auth in [&first, &other] {
        let asked = exchange(&mut host, auth);
        assert_eq!(host.answer(&asked), None);
        let id = host.create().expect("a connection to be created").id;
        assert!(host.commands.answer_create(id, Ok(&described())));
        let fourth = host.commands.poll_transmit(host.now).expect("round 4").message;
        assert_eq!(auth.verify(&fourth), Ok(()));
        assert_eq!(host.answer(&asked), Some(fourth));
    }
    // An exchange does not change its key.
    exchange(&mut host, &first);
    host.answer(&sealed(&other, 77, Step::Create(SAVED.as_bytes())));
    assert_eq!(host.commands.refusals().count(Refusal::AuthHash), 1);

    // The key of an existing connection does not permit creates.
    assert_eq!(host.answer(&sealed(&third, 0, opening)), None);
    let (local, remote) = (address("10.0.0.2"), address("10.0.0.3"));
    let settings = ConnectionCommands { local, remote, auth: third.clone(), sources: vec![] };
    host.commands.set_connection(ConnectionId(0), settings);
    let answer = host.answer(&sealed(&third, 0, opening)).expect("a refusal");
    assert_eq!((third.verify(&answer), answer[1], answer[40]), (Ok(()), Code::UNKNOWN.0, 2));
    host.now += Duration::from_secs(10);
    let asked = exchange(&mut host, &other);
    let answer = host.answer(&asked).expect("round 4");
    assert_eq!((other.verify(&answer), answer[1], answer[40]), (Ok(()), Code::EXISTS.0, 4));
    assert_eq!(host.create(), None);
}

#[test]
fn a_description_is_hashed_only_if_round_1_announced_it() {
    let mut host = Host::new(true);
    let count = |host: &Host, refusal| host.commands.refusals().count(refusal);
    assert_eq!(host.answer(&forged(&create(0, SAVED))), None);
    assert_eq!((count(&host, Refusal::Order), count(&host, Refusal::AuthHash)), (1, 0));
    let cookie = host.open(SAVED);
    assert_eq!(host.answer(&forged(&create(cookie + 1, SAVED))), None);
    assert_eq!((count(&host, Refusal::Cookie), count(&host, Refusal::AuthHash)), (1, 0));
    assert_eq!(host.answer(&forged(&create(cookie, &SAVED[1..]))), None);
    assert_eq!((count(&host, Refusal::Size), count(&host, Refusal::AuthHash)), (1, 0));
    assert_eq!(host.answer(&forged(&create(cookie, SAVED))), None);
    assert_eq!(count(&host, Refusal::AuthHash), 1);
}

#[test]
fn failed_authentication_has_a_rate_limit_of_its_own() {
    for after in [1, 3] {
        let mut host = Host::new(true);
        let message = if after == 1 { open(SAVED) } else { create(host.open(SAVED), SAVED) };
        let guesses = 1000;
        (0..guesses).for_each(|_| assert_eq!(host.answer(&forged(&message)), None));
        let hashed = host.commands.refusals().count(Refusal::AuthHash);
        assert!(hashed <= 128, "{hashed} messages were hashed");
        assert_eq!(host.commands.refusals().count(Refusal::Rate), guesses - hashed);
        // 15.625 ms later one more may come.
        host.now += Duration::from_millis(16);
        host.answer(&message);
        assert_eq!(host.commands.refusals().count(Refusal::Rate), guesses - hashed);
        let answers = (0..100).filter(|_| host.answer(&open(SAVED)).is_some()).count();
        assert!(answers >= 22, "{answers}");
    }
}
