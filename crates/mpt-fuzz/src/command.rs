//! The command protocol of the original MPT: parsing of messages and descriptions, and two hosts
//! that use it while an attacker interferes.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_original::{
    Auth, AuthKind, Code, Commands, ConnectionCommands, CreateCommands, Description, Event, Key,
    MAX_MESSAGE, Message, PathReport, Round,
};
use mpt_proto::{ConnectionId, Instant};

use crate::input::Input;

/// A message, or the text of a description. What is read from it is written again as the same.
pub fn command(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        let written = message.emit(&auth(message.auth));
        assert_eq!(Message::parse(&written), Ok(message));
        assert_eq!(auth(message.auth).verify(&written), Ok(()));
        assert!(written.len() <= MAX_MESSAGE);
        for kind in [AuthKind::None, AuthKind::Random, AuthKind::Sha256] {
            assert!(kind == message.auth || auth(kind).verify(&written).is_err());
        }
    }
    if let Ok(description) = Description::parse(bytes) {
        let text = description.to_text();
        assert_eq!(Description::parse(text.as_bytes()).as_ref(), Ok(&description));
    }
}

/// Two hosts, and a sequence of operations: commands to send, the fate of messages, messages of an
/// attacker. The first byte selects the authentication.
pub fn command_port(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = AuthKind::new(input.byte() % 3).unwrap_or(AuthKind::None);
    let mut talk = Talk::new(kind);
    while !input.is_empty() {
        talk.step(&mut input);
    }
    talk.finish();
}

fn auth(kind: AuthKind) -> Auth {
    match kind {
        AuthKind::None => Auth::None,
        AuthKind::Random => Auth::Random,
        AuthKind::Sha256 => Auth::Sha256(key()),
    }
}

fn key() -> Key {
    Key::new("0123456789abcdef0123456789ABCDEF").expect("a key")
}

const CONNECTION: ConnectionId = ConnectionId(0);

/// The addresses of the hosts, in the tunnel and outside.
const HOSTS: [([u8; 4], [u8; 4]); 2] =
    [([10, 9, 0, 1], [192, 0, 2, 1]), ([10, 9, 0, 2], [192, 0, 2, 2])];

struct Talk {
    hosts: [Commands; 2],
    now: Instant,
    chance: u32,
    /// Messages on their way, and to which host.
    wire: Vec<(usize, Vec<u8>)>,
    /// What became of what a host had to say: how often it had something, and how often it heard the end of it.
    told: [(usize, usize); 2],
    /// Answers of round 2 to path status changes: each permits one to be done.
    opened: [usize; 2],
    /// Path status changes that were done.
    done: [usize; 2],
}

impl Talk {
    fn new(kind: AuthKind) -> Self {
        let hosts = [0, 1].map(|host| {
            let mut commands = Commands::default();
            commands.set_connection(CONNECTION, settings(host, kind));
            commands.set_create(Some(CreateCommands { keys: vec![key()], zero_cookie: host == 0 }));
            commands
        });
        let (now, told) = (Instant::ZERO, [(0, 0); 2]);
        Self { hosts, now, chance: 0, wire: Vec::new(), told, opened: [0; 2], done: [0; 2] }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let decision = input.byte();
        let host = usize::from(decision & 1);
        match decision >> 1 & 7 {
            0 => {
                let number = input.byte();
                let end = |host: usize| IpAddr::from(HOSTS[host].1);
                let (initiator, responder) = ([203, 0, 113, number >> 1].into(), end(1 - host));
                let down = number & 1 != 0;
                let report = PathReport { initiator, responder, down };
                self.hosts[host].tell(self.now, CONNECTION, report);
                self.told[host].0 += 1;
            }
            1 => {
                self.now += Duration::from_millis(input.byte().into()) * 20;
                self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
            }
            // Lost.
            2 => drop(self.take(input)),
            // Twice.
            3 => {
                if let Some((to, message)) = self.take(input) {
                    self.wire.push((to, message.clone()));
                    self.deliver(to, &message);
                }
            }
            // Damaged, or made use of.
            4 => {
                if let Some((to, mut message)) = self.take(input) {
                    let at = usize::from(input.word()) % message.len();
                    message[at] ^= input.byte();
                    if let (Ok(read), true) = (Message::parse(&message), decision & 0x80 != 0) {
                        message = read.emit(&auth(read.auth));
                    }
                    self.deliver(to, &message);
                }
            }
            // From another sender.
            5 => self.deliver(host, input.bytes()),
            // From a sender that has the key.
            6 => {
                if let Ok(message) = Message::parse(input.bytes()) {
                    self.deliver(host, &message.emit(&auth(message.auth)));
                }
            }
            _ => {
                if let Some((to, message)) = self.take(input) {
                    self.deliver(to, &message);
                }
            }
        }
        self.drain();
    }

    /// One of the messages on their way.
    fn take(&mut self, input: &mut Input<'_>) -> Option<(usize, Vec<u8>)> {
        let place = input.index(self.wire.len());
        (place < self.wire.len()).then(|| self.wire.remove(place))
    }

    /// A message arrives: it is refused, or answered once at the most, and not with more than it has, save
    /// where a connection is described.
    fn deliver(&mut self, host: usize, message: &[u8]) {
        let chance = &mut self.chance;
        let before = self.hosts[host].refusals().total();
        let from = SocketAddr::from((HOSTS[1 - host].1, 65050));
        self.hosts[host].handle_datagram(self.now, from, message, || {
            *chance = chance.wrapping_add(0x4000_0001);
            *chance
        });
        let refused = self.hosts[host].refusals().total() - before;
        assert!(refused <= 1, "one reason");
        while let Some(event) = self.hosts[host].poll_event() {
            self.on_event(host, event);
        }
        if let Ok(read) = Message::parse(message)
            && read.step.round().is_request()
            && let Some(answer) = self.hosts[host].poll_transmit(self.now)
        {
            let read = Message::parse(&answer.message).expect("what is sent can be read");
            let describes = read.step.round() == Round::Four && answer.message[0] == 0xa3;
            assert!(describes || answer.message.len() <= message.len());
            self.send(host, answer.message);
        }
    }

    fn on_event(&mut self, host: usize, event: Event) {
        match event {
            Event::Path { connection, .. } => {
                assert_eq!(connection, CONNECTION);
                self.done[host] += 1;
            }
            Event::Told { connection, .. } => {
                assert_eq!(connection, CONNECTION);
                self.told[host].1 += 1;
            }
            Event::Create(create) => {
                let made = if create.description.paths.len() == 1 {
                    Err(Code::UNKNOWN)
                } else {
                    Ok(&create.description)
                };
                assert!(self.hosts[host].answer_create(create.id, made), "it waits");
                assert!(!self.hosts[host].answer_create(create.id, made), "for one answer");
            }
        }
    }

    /// The hosts send all that is due; then they have nothing to do at this time.
    fn drain(&mut self) {
        for host in 0..2 {
            while let Some(transmit) = self.hosts[host].poll_transmit(self.now) {
                self.send(host, transmit.message);
            }
            self.hosts[host].handle_timeout(self.now);
            while let Some(event) = self.hosts[host].poll_event() {
                self.on_event(host, event);
            }
            while let Some(transmit) = self.hosts[host].poll_transmit(self.now) {
                self.send(host, transmit.message);
            }
            assert!(self.hosts[host].poll_timeout().is_none_or(|at| at > self.now));
            let (told, ended) = self.told[host];
            assert!(ended <= told, "what was told ends once");
            assert!(self.done[host] <= self.opened[host], "what was let begin is done once");
        }
    }

    fn send(&mut self, host: usize, message: Vec<u8>) {
        let read = Message::parse(&message).expect("what is sent can be read");
        if read.step.round() == Round::Two && message[0] == 0xa2 {
            self.opened[host] += 1;
        }
        // The oldest is no longer expected.
        if self.wire.len() == 32 {
            self.wire.remove(0);
        }
        self.wire.push((1 - host, message));
    }

    /// All queued commands end, even without answers.
    fn finish(mut self) {
        for _ in 0..10_000 {
            let Some(at) = self.hosts.iter().filter_map(Commands::poll_timeout).min() else {
                break;
            };
            self.now = at;
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(at));
            self.drain();
        }
        for (told, ended) in self.told {
            assert_eq!(told, ended, "how everything ended was told");
        }
    }
}

fn settings(host: usize, kind: AuthKind) -> ConnectionCommands {
    let tunnel = |host: usize| IpAddr::from(HOSTS[host].0);
    let sources = vec![HOSTS[1 - host].1.into()];
    ConnectionCommands { local: tunnel(host), remote: tunnel(1 - host), auth: auth(kind), sources }
}
