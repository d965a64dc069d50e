//! Path status changes and connection creates, begun by either end.

use mpt_control::{CommandStatus, PathStatus};
use mpt_lab::topology::Side;

use super::commands::{self, Said};
use super::frames::{self, Auth, Message};
use super::machine;
use super::meeting::{COMMAND_PORTS, Meeting, TERMS, Terms};
use crate::site::{PATIENCE, eventually, inner};

/// When our operator switches a path off and on, the original is notified in four rounds.
pub(super) fn ours() {
    for ((auth, path), inner) in Auth::ALL.into_iter().zip([0, 1, 0]).zip([4, 6, 4]) {
        let meeting = Meeting::start(Terms { auth, inner, outer: inner, dead: 0, ..TERMS });
        for (command, status) in
            [(PathStatus::Off, machine::DOWN), (PathStatus::Available, machine::OK)]
        {
            set_ours(&meeting, ["one", "two"][path], command);
            meeting.await_status(path, status);
            meeting.await_rounds(&[1, 2, 3, 4]);
            assert_told(&meeting, path, status);
            if status == machine::DOWN {
                let keepalives = meeting.await_keepalives(1 - path);
                assert_eq!(keepalives, 0, "none over a path that is switched off");
                assert_eq!(meeting.ping(Side::Right, 10), 0);
                assert_eq!(meeting.status(path), machine::DOWN, "so it stays down");
            }
        }
        meeting.await_all_up();
        assert_eq!(refused(&meeting), []);
    }
}

/// Asserts that what was said is what the document says, byte for byte.
fn assert_told(meeting: &Meeting, path: usize, status: u8) {
    let Terms { auth, inner: version, .. } = meeting.terms();
    let tunnel = [Side::Left, Side::Right].map(|side| inner(side, version));
    let said = meeting.take_said();
    let cookie = Message::read(&said[1].bytes).expect("an answer").cookie;
    assert_eq!(cookie != 0, auth != Auth::None, "the answer has a cookie, if there is one");
    let plain = Message::opening(frames::PATH_STATUS, auth, tunnel, 32);
    let first = Message { status, leftover: [0, 0], ..plain };
    let ends = [Side::Left, Side::Right].map(|side| meeting.site.lab.host(side).address(path));
    let data = ends.map(frames::wide).concat();
    let third = Message { round: 3, cookie, data, ..first.clone() };
    for (said, message) in [(&said[0], first), (&said[2], third)] {
        assert_eq!(said.bytes, message.write(auth), "{message:02x?}");
        let from = said.from.expect("it came from somewhere");
        assert_eq!(from.port(), COMMAND_PORTS[0]);
        if status == machine::DOWN {
            let other = meeting.site.lab.left().address(1 - path);
            assert_eq!(from.ip().to_canonical(), other, "not by the path that goes");
        }
    }
}

/// When the original's operator switches a path off and on, we are notified.
pub(super) fn theirs() {
    for ((auth, path), inner) in Auth::ALL.into_iter().zip([1, 0, 1]).zip([4, 4, 6]) {
        let meeting = Meeting::start(Terms { auth, inner, outer: inner, dead: 0, ..TERMS });
        meeting.switch(path, false);
        assert_eq!(meeting.status(path), machine::SWITCHED_OFF);
        assert_answered(&meeting, auth);
        meeting.await_ours(path, "down");
        // On a busy machine it may have been silent for its dead time before.
        let cause = || meeting.site.path(Side::Left, path).cause;
        let by_the_peer = || cause().as_deref() == Some("the peer says that it is down");
        eventually("the peer took it down", by_the_peer);
        let carried = meeting.carried(path);
        meeting.assert_flawless(Side::Left);
        assert_eq!(meeting.carried(path), carried, "it is left");
        let keepalives = meeting.keepalives(path);
        let further = || meeting.keepalives(path) > keepalives + 2;
        eventually("we go on to say that we are there", further);

        meeting.switch(path, true);
        meeting.await_all_up();
        assert_answered(&meeting, auth);
        assert_eq!(meeting.peer().machine().commands.codes, [commands::DONE; 2]);
        assert_eq!(refused(&meeting), []);
    }
}

/// Asserts that we have answered an exchange as the document says, byte for byte.
fn assert_answered(meeting: &Meeting, auth: Auth) {
    let said = meeting.take_said();
    let messages: Vec<Message> =
        said.iter().map(|said| Message::read(&said.bytes).expect("a message")).collect();
    let [first, second, third, fourth] = &messages[..] else { panic!("{messages:02x?}") };
    assert_eq!(second.cookie != 0, auth != Auth::None);
    for (request, reply, said) in [(first, second, &said[1]), (third, fourth, &said[3])] {
        assert!(!said.by_us);
        let data = if reply.round == 2 { request.data.clone() } else { Vec::new() };
        let expected = Message {
            status: 0,
            round: request.round + 1,
            cookie: second.cookie,
            leftover: reply.leftover,
            data,
            ..request.clone()
        };
        assert_eq!(*reply, expected);
        assert_eq!(said.bytes, expected.write(auth));
    }
}

/// The original does not use a path whose interface was down until its operator enables it.
pub(super) fn interface() {
    let meeting = Meeting::start(TERMS);
    let link = meeting.site.lab.link(1);
    link.set_carrier_of(Side::Right, false);
    eventually("a packet finds that out", || {
        meeting.ping(Side::Right, 2);
        meeting.status(1) == machine::INTERFACE_DOWN
    });
    meeting.await_idle();
    eventually("we are told, which counts for more than that it is silent", || {
        let cause = meeting.site.path(Side::Left, 1).cause;
        cause.as_deref() == Some("the peer says that it is down")
    });
    let told = Message::read(&meeting.take_said()[0].bytes).expect("a message");
    assert_eq!((told.command, told.status), (frames::PATH_STATUS, machine::DOWN));
    link.set_carrier_of(Side::Right, true);
    meeting.assert_flawless(Side::Left);
    meeting.assert_flawless(Side::Right);
    assert_eq!(meeting.status(1), machine::INTERFACE_DOWN, "our keepalives change nothing");
    assert_eq!(meeting.site.path(Side::Left, 1).state, "down");
    meeting.switch(1, true);
    meeting.await_all_up();
}

/// Both begin at once. The original gives up then; we answer it, and are heard the next time.
pub(super) fn collision() {
    let meeting = Meeting::start(Terms { dead: 0, ..TERMS });
    let machine = || meeting.peer().machine();
    // Our first message is lost, so that we wait for an answer; then ours, so that the original does.
    machine().commands.arrive = [false; 2].into();
    machine().commands.wait = PATIENCE;
    set_ours(&meeting, "two", PathStatus::Off);
    eventually("we have begun", || machine().commands.arrive.len() == 1);
    machine().switch(0, false);
    eventually("we have answered", || machine().commands.arrive.is_empty());
    meeting.await_idle();
    assert_eq!(machine().commands.codes, [commands::WRONG_ROUND]);
    assert_eq!(meeting.status(0), machine::SWITCHED_OFF, "it has told nobody, but does it");
    meeting.await_status(1, machine::DOWN);
    assert_eq!(refused(&meeting), [], "nothing went wrong at our end");
}

/// Messages are lost on their way in either direction, in every round: they are sent again.
pub(super) fn losses() {
    let meeting = Meeting::start(Terms { auth: Auth::ALL[2], dead: 0, ..TERMS });
    let machine = || meeting.peer().machine();
    machine().commands.arrive = [false].into();
    machine().commands.answers_arrive = [false, true, false].into();
    set_ours(&meeting, "two", PathStatus::Off);
    // What is sent in vain is seen only where it arrives.
    meeting.await_rounds(&[1, 1, 2, 3, 3, 4]);
    meeting.await_status(1, machine::DOWN);
    set_ours(&meeting, "two", PathStatus::Available);
    meeting.await_all_up();
    meeting.await_rounds(&[1, 1, 2, 3, 3, 4, 1, 2, 3, 4]);

    meeting.take_said();
    machine().commands.arrive = [false, true, false].into();
    machine().commands.wait /= 5;
    meeting.switch(1, false);
    assert_eq!(meeting.rounds(), [1, 1, 2, 3, 3, 4]);
    assert_eq!(machine().commands.codes, [commands::DONE]);
    meeting.await_ours(1, "down");
    assert_eq!(refused(&meeting), []);
}

/// A peer's request to create a connection is refused, and the original gets the refusal.
pub(super) fn create() {
    const TEXT: &str = ";;;;;;;###\n[connection]\nname = another\nip_ver = 4\npath_count = 0\n";
    let key = Auth::ALL[2];
    for auth in [key, Auth::None] {
        let meeting = Meeting::start(Terms { auth, dead: 0, ..TERMS });
        meeting.peer().machine().create(key, TEXT);
        meeting.await_idle();
        assert_eq!(meeting.peer().machine().commands.codes, [commands::NO_SUCH_CONNECTION]);
        assert_eq!(meeting.rounds(), [1, 2]);
        assert_eq!(refused(&meeting), [("command_create_off".to_owned(), 1)]);
        let problems = meeting.site.status(Side::Left).tunnels.remove(0).problems;
        let codes: Vec<_> = problems.iter().map(|problem| problem.code.as_str()).collect();
        assert_eq!(codes, ["command_create"]);
        let log = meeting.site.daemon(Side::Left).log();
        assert_eq!(log.matches("asks for a connection, and is refused").count(), 1, "{log}");
        assert_eq!(meeting.site.status(Side::Left).tunnels[0].connections.len(), 1);
    }
}

/// The original's commands have another key, or another authentication type, than ours: status and log say so.
pub(super) fn disagreeing() {
    let other = Auth::Sha256("another key that is as long as keys must be at least");
    for (theirs, words) in
        [(other, "have another key"), (Auth::None, "have another authentication type")]
    {
        let mut meeting = Meeting::without_ours(Terms { auth: Auth::ALL[2], dead: 0, ..TERMS });
        meeting.end_peer();
        meeting.start_peer_with(|settings| settings.auth = theirs);
        meeting.start_ours();
        meeting.await_all_up();
        meeting.peer().machine().commands.wait /= 5;
        meeting.peer().machine().switch(1, false);
        let problem = || meeting.site.status(Side::Left).tunnels.remove(0).problems.pop();
        let named = || problem().is_some_and(|it| it.code == "command_auth");
        eventually("the cause is named", named);
        let problem = problem().expect("it was there");
        assert!(problem.text.contains(words), "{problem:?}");
        assert_eq!(problem.connection.as_deref(), Some("peer"));
        let log = meeting.site.daemon(Side::Left).log();
        assert_eq!(log.matches(words).count(), 1, "once: {log}");
        meeting.await_idle();
    }
}

fn set_ours(meeting: &Meeting, path: &str, status: PathStatus) {
    meeting.site.daemon(Side::Left).set_path(path, status).expect("a path");
}

/// What we have refused, by name.
pub(super) fn refused(meeting: &Meeting) -> Vec<(String, u64)> {
    let CommandStatus { refused, .. } =
        meeting.site.status(Side::Left).tunnels.remove(0).commands.expect("commands");
    refused.into_iter().collect()
}

impl Meeting {
    /// What was said since the last time.
    fn take_said(&self) -> Vec<Said> {
        std::mem::take(&mut self.peer().machine().commands.said)
    }

    /// The rounds of what was said.
    fn rounds(&self) -> Vec<u8> {
        let machine = self.peer().machine();
        let round = |said: &Said| Message::read(&said.bytes).expect("a message").round;
        machine.commands.said.iter().map(round).collect()
    }

    /// Waits until these rounds were said, and none besides.
    fn await_rounds(&self, rounds: &[u8]) {
        eventually(&format!("the rounds {rounds:?}"), || self.rounds().len() >= rounds.len());
        assert_eq!(self.rounds()[..rounds.len()], *rounds);
    }

    /// Waits for some keepalives over a path, and says how many came over the other one meanwhile. What
    /// was on its way before does not count.
    fn await_keepalives(&self, path: usize) -> usize {
        let other = || self.keepalives(1 - path);
        let some = || {
            let before = self.keepalives(path);
            eventually("keepalives", || self.keepalives(path) > before + 2);
        };
        some();
        let before = other();
        some();
        other() - before
    }
}
