//! How many clients there are, for how long, and who makes room. Time is an argument, so no test waits.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mpt_control::{ControlStatus, ErrorKind, Reply};
use mpt_io::poll::{Events, Poll};

use super::super::server::MAX_CLIENTS;
use super::super::{Listener, Server};
use super::served::RawClient;

const VERSION: &[u8] = b"{\"request\":\"version\"}\n";

#[test]
fn a_client_that_exceeds_a_time_limit_is_disconnected() {
    let mut served = Stepped::new();
    let mut idle = served.connect();
    let mut slow = served.connect();
    slow.send(b"{");
    assert_eq!(served.turn(0).clients, 2);
    // More of the same line buys no time.
    slow.send(b"\"");
    assert_eq!(served.turn(9).clients, 2);
    let status = served.turn(11);
    assert_eq!((status.clients, status.refused["timeout"]), (1, 1));
    assert!(slow.is_over());
    let status = served.turn(61);
    assert_eq!((status.clients, status.refused["timeout"]), (0, 2));
    assert!(idle.is_over());
}

#[test]
fn a_client_beyond_the_limit_gets_an_error_until_a_place_is_free() {
    let mut served = Stepped::new();
    let mut clients = served.connect_all();
    let mut extra = served.connect();
    // A request that is not read must not make the end of the connection an error.
    extra.send(VERSION);
    let status = served.turn(0);
    assert_eq!((status.clients, status.refused["busy"]), (MAX_CLIENTS as u64, 1));
    let Reply::Error { kind, message, .. } = extra.reply() else { panic!("it is served") };
    assert_eq!(kind, ErrorKind::Busy);
    assert_eq!(message, format!("too many control clients ({MAX_CLIENTS}): try again later"));
    assert_eq!(extra.stream.read(&mut [0]).unwrap(), 0);

    drop(clients.pop());
    served.turn(0);
    let mut next = served.connect();
    next.send(VERSION);
    served.turn(0);
    assert_eq!(next.reply(), Reply::Done);
}

#[test]
fn the_client_idle_longest_makes_room() {
    let mut served = Stepped::new();
    let mut clients = served.connect_all();
    // The first has asked since, so the second is idle longest.
    clients[0].send(VERSION);
    served.turn(1);
    assert_eq!(clients[0].reply(), Reply::Done);
    let mut extra = served.connect();
    extra.send(VERSION);
    let status = served.turn(2);
    assert_eq!(extra.reply(), Reply::Done);
    assert_eq!((status.clients, status.refused["idle"]), (MAX_CLIENTS as u64, 1));
    assert!(!status.refused.contains_key("busy"), "{status:?}");
    assert!(clients.remove(1).is_over());
    for client in &mut clients {
        client.send(VERSION);
    }
    served.turn(2);
    for client in &mut clients {
        assert_eq!(client.reply(), Reply::Done);
    }
}

#[test]
fn a_client_whose_reply_is_being_sent_does_not_make_room() {
    let mut served = Stepped::new();
    let mut busy = served.connect();
    // More than the kernel keeps for a client that does not read.
    served.reply = Reply::error(ErrorKind::Unavailable, "x".repeat(1 << 20));
    busy.send(VERSION);
    served.turn(0);
    let mut idle: Vec<_> = (1..MAX_CLIENTS).map(|_| served.connect()).collect();
    served.turn(0);
    let mut extra = Vec::new();
    for _ in 0..3 {
        extra.push(served.connect());
        served.turn(2);
    }
    assert_eq!(served.turn(2).refused["idle"], 3);
    for client in &mut idle[..3] {
        assert!(client.is_over());
    }
    let reader = std::thread::spawn(move || busy.reply());
    while !reader.is_finished() {
        served.turn(2);
    }
    assert_eq!(reader.join().unwrap(), served.reply);
}

#[test]
fn a_client_whose_request_has_just_arrived_does_not_make_room() {
    let mut served = Stepped::new();
    let mut clients = served.connect_all();
    // The connection is the earlier event, so the request has not been read when room is made.
    let _extra = served.connect();
    clients[0].send(VERSION);
    let status = served.turn(2);
    assert_eq!(status.refused["idle"], 1);
    assert_eq!(clients[0].reply(), Reply::Done);
    assert!(clients[1].is_over());
}

/// A control socket whose clock and events the test moves on. It answers every request alike.
struct Stepped {
    poll: Poll,
    events: Events,
    server: Server,
    path: PathBuf,
    begin: Instant,
    reply: Reply,
    _dir: tempfile::TempDir,
}

impl Stepped {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let poll = Poll::new().unwrap();
        let server = Server::new(Listener::bind(&path).unwrap(), &poll).unwrap();
        let (events, begin) = (Events::with_capacity(64), Instant::now());
        Self { poll, events, server, path, begin, reply: Reply::Done, _dir: dir }
    }

    fn connect(&self) -> RawClient {
        RawClient::new(&self.path)
    }

    /// As many clients as are served, accepted at the beginning in this order.
    fn connect_all(&mut self) -> Vec<RawClient> {
        let connect = |_| {
            let client = self.connect();
            self.turn(0);
            client
        };
        (0..MAX_CLIENTS).map(connect).collect()
    }

    /// Handles all events as if they came so many seconds after the beginning.
    fn turn(&mut self, seconds: u64) -> ControlStatus {
        let now = self.begin + Duration::from_secs(seconds);
        while self.poll.wait(&mut self.events, Some(Duration::ZERO)).unwrap() > 0 {
            for event in self.events.iter() {
                self.server.handle(event, &self.poll, now, &mut |_, _| self.reply.clone());
            }
        }
        self.server.handle_timeout(&self.poll, now);
        self.server.status()
    }
}
