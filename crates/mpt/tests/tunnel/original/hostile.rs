//! Commands that are invalid, unauthenticated, or unexpected: counted by name, without any other
//! effect.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use mpt_lab::topology::Side;

use super::exchanges::refused;
use super::frames::{self, Auth, Message};
use super::machine;
use super::meeting::{COMMAND_PORTS, Meeting, PORTS, TERMS, Terms};
use crate::site::{PATIENCE, change_interface, eventually, inner};

/// An attacker at the host of the original, with its own socket.
struct Forger<'m> {
    meeting: &'m Meeting,
    auth: Auth,
    socket: UdpSocket,
    /// What should have been refused so far.
    expected: BTreeMap<String, u64>,
}

impl<'m> Forger<'m> {
    fn new(meeting: &'m Meeting, auth: Auth) -> Self {
        let host = meeting.site.lab.right();
        Self::at(meeting, auth, host.address(0))
    }

    fn at(meeting: &'m Meeting, auth: Auth, address: IpAddr) -> Self {
        let bind = || UdpSocket::bind((address, 0)).expect("a socket");
        let socket = meeting.site.lab.right().run(bind);
        socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        Self { meeting, auth, socket, expected: BTreeMap::new() }
    }

    fn send(&self, bytes: &[u8]) {
        let to = (self.meeting.site.lab.left().address(0), COMMAND_PORTS[0]);
        self.socket.send_to(bytes, to).expect("room in the socket");
    }

    /// Sends something and waits until it is refused under that name.
    fn refused(&mut self, bytes: &[u8], name: &str) {
        self.send(bytes);
        *self.expected.entry(name.to_owned()).or_default() += 1;
        let expected: Vec<_> = self.expected.clone().into_iter().collect();
        eventually(name, || refused(self.meeting) == expected);
    }

    /// Sends something and returns the answer.
    fn answered(&self, bytes: &[u8]) -> Message {
        self.send(bytes);
        let mut buffer = [0; frames::LONGEST];
        let length = self.socket.recv(&mut buffer).expect("an answer");
        Message::read(&buffer[..length]).expect("a message")
    }

    /// Round 1 of a message that path 1 is down. The original would keep this byte, and the path would not
    /// come back by itself.
    fn first(&self) -> Message {
        let tunnel = [Side::Right, Side::Left].map(|side| inner(side, 4));
        let plain = Message::opening(frames::PATH_STATUS, self.auth, tunnel, 32);
        Message { status: machine::SWITCHED_OFF, ..plain }
    }

    /// Round 3 of it.
    fn third(&self, cookie: u32) -> Message {
        let lab = &self.meeting.site.lab;
        let data = [lab.right(), lab.left()].map(|host| frames::wide(host.address(1))).concat();
        Message { round: 3, cookie, data, ..self.first() }
    }

    /// Asserts that there is no answer, and no effect.
    fn assert_harmless(&self) {
        self.socket.set_nonblocking(true).expect("a socket");
        assert!(self.socket.recv(&mut [0; 1]).is_err(), "nobody has answered");
        for path in 0..2 {
            assert_eq!(self.meeting.site.path(Side::Left, path).state, "up");
        }
        let events = self.meeting.site.status(Side::Left).tunnels.remove(0).events;
        assert!(!events.iter().any(|event| event.text.contains("down")), "{events:?}");
        self.meeting.assert_flawless(Side::Left);
    }
}

/// A sender without the key, or one that uses no authentication.
pub(super) fn unauthentic() {
    let auth = Auth::ALL[2];
    let meeting = Meeting::start(Terms { auth, ..TERMS });
    let mut forger = Forger::new(&meeting, auth);
    let first = forger.first();
    for at in [1, 4, 8, 39, 42] {
        let mut bytes = first.write(auth);
        bytes[at] ^= 1;
        forger.refused(&bytes, "command_auth_hash");
    }
    let other = Auth::Sha256("0123456789abcdef0123456789ABCDEG");
    forger.refused(&first.write(other), "command_auth_hash");
    for (kind, name) in [(0, "command_auth_mismatch"), (1, "command_auth_mismatch")] {
        forger.refused(&Message { auth: kind, ..first.clone() }.write(auth), name);
    }
    forger.refused(&Message { auth: 3, ..first.clone() }.write(auth), "command_auth_kind");
    forger.assert_harmless();
}

/// Cookies are good for one thing, and for nothing before they are given.
pub(super) fn cookies() {
    for auth in [Auth::ALL[1], Auth::ALL[2]] {
        let meeting = Meeting::start(Terms { auth, ..TERMS });
        let mut forger = Forger::new(&meeting, auth);
        forger.refused(&forger.third(0).write(auth), "command_order");
        let given = forger.answered(&forger.first().write(auth));
        assert_eq!((given.round, given.status), (2, 0));
        let third = forger.third(given.cookie);
        let wrong = Message { cookie: given.cookie ^ 1, ..third.clone() };
        forger.refused(&wrong.write(auth), "command_cookie");
        assert_eq!(meeting.site.path(Side::Left, 1).state, "up", "{auth:?}");

        let downs = || {
            let events = meeting.site.status(Side::Left).tunnels.remove(0).events;
            events.iter().filter(|event| event.text.contains("the peer says")).count()
        };
        let done = forger.answered(&third.write(auth));
        assert_eq!((done.round, done.status), (4, 0));
        eventually("it is followed", || downs() == 1);
        // The keepalives of the original take it back.
        meeting.await_ours(1, "up");
        let again = forger.answered(&third.write(auth));
        assert_eq!((again.round, again.status), (4, 0), "a repetition is answered");
        let other = Message { status: 0, ..third };
        forger.refused(&other.write(auth), "command_cookie");
        assert_eq!(downs(), 1, "and not done again");
    }
}

/// Truncated, too long, of other rounds, commands and connections, and from elsewhere.
pub(super) fn malformed() {
    let auth = Auth::None;
    let meeting = Meeting::start(Terms { auth, ..TERMS });
    let mut forger = Forger::new(&meeting, auth);
    let first = forger.first();
    let bytes = first.write(auth);
    for length in 1..40 {
        forger.send(&bytes[..length]);
    }
    forger.expected.insert("command_short".to_owned(), 39);
    forger.refused(&[], "command_short");
    for length in 40..44 {
        forger.refused(&bytes[..length], "command_length");
    }
    forger.refused(&[&bytes[..], &[0]].concat(), "command_length");
    for command in [frames::CREATE + 1, frames::CREATE + 2, 0xff, 0x45] {
        forger.refused(&Message { command, ..first.clone() }.write(auth), "command_unknown");
    }
    for round in [0, 5, 255] {
        forger.refused(&Message { round, ..first.clone() }.write(auth), "command_round");
    }
    for round in [2, 4] {
        let data = if round == 2 { first.data.clone() } else { Vec::new() };
        let reply = Message { round, data, status: 0, ..first.clone() };
        // Of an exchange of ours that does not exist.
        let (initiator, responder) = (reply.responder, reply.initiator);
        let reply = Message { initiator, responder, ..reply };
        forger.refused(&reply.write(auth), "command_order");
    }
    forger.refused(&Message { version: 6, ..first.clone() }.write(auth), "command_version");
    let stranger = frames::wide([10, 9, 0, 3].into());
    let other = Message { initiator: stranger, ..first.clone() };
    forger.refused(&other.write(auth), "command_connection");
    let size = Message { data: vec![33, 0, 0, 0], ..first.clone() };
    forger.refused(&size.write(auth), "command_size");

    let address = IpAddr::from([198, 18, 1, 99]);
    change_interface(meeting.site.lab.right(), "one", |netlink, index| {
        netlink.add_address(index, address, 24)
    });
    let mut elsewhere = Forger::at(&meeting, auth, address);
    elsewhere.expected.clone_from(&forger.expected);
    elsewhere.refused(&bytes, "command_source");
    elsewhere.assert_harmless();
    forger.assert_harmless();
}

/// Commands are nothing for the data port, however they begin.
pub(super) fn on_the_data_port() {
    let meeting = Meeting::start(TERMS);
    let forger = Forger::new(&meeting, Auth::None);
    let to = SocketAddr::from((meeting.site.lab.left().address(0), PORTS[0]));
    let send = |datagram: &[u8]| {
        forger.socket.send_to(datagram, to).expect("room in the socket");
    };
    let header = frames::header(4, None);
    let command = forger.first().write(Auth::None);
    for code in [0xa0, 0xa2, 0xa3, 0xa4, 0xa5, 0xff] {
        send(&[&header[..], &[code], &command[1..]].concat());
    }
    let keepalive = frames::keepalive(inner(Side::Right, 4), inner(Side::Left, 4));
    for length in 5..44 {
        send(&keepalive[..length]);
    }
    let others = frames::keepalive([10, 9, 0, 3].into(), inner(Side::Left, 4));
    send(&others);
    for (name, count) in [("control_unknown", 6), ("control_length", 39), ("control_address", 1)] {
        eventually(name, || {
            meeting.site.connection(Side::Left).drops.get(name).copied() == Some(count)
        });
    }
    assert_eq!(refused(&meeting), []);
    forger.assert_harmless();
    let said = meeting.peer().machine().commands.said.len();
    assert_eq!(said, 0, "the original has heard nothing of it");
}
