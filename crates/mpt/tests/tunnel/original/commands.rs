//! The original's end of the command protocol: path status changes and connection creates.
//!
//! One thread does all of it, from one socket. While it has an exchange of its own going on it takes
//! whatever comes for an answer, so two hosts that begin together both fail; and it has no dead timer
//! then. An answer is waited for half a second, and each round is sent six times at the most.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::frames::{self, Auth, Message};

/// How long an answer is waited for.
pub(super) const WAIT: Duration = Duration::from_millis(500);

/// How often a round is sent.
const SENDS: u32 = 6;

/// Return codes: how an own exchange ended.
pub(super) const DONE: u8 = 0;
pub(super) const UNANSWERED: u8 = 1;
pub(super) const NOT_AUTHENTIC: u8 = 3;
pub(super) const NO_SUCH_CONNECTION: u8 = 4;
pub(super) const WRONG_ROUND: u8 = 9;

#[derive(Debug)]
pub(super) struct Commands {
    socket: UdpSocket,
    auth: Auth,
    /// Own tunnel address and the peer's.
    tunnel: [IpAddr; 2],
    /// The round of the last answer. Nothing resets it.
    answered: u8,
    /// What the answer of round 2 had in it.
    cookie: u32,
    exchange: Option<Exchange>,
    /// What was said, in order.
    pub(super) said: Vec<Said>,
    /// Which of the next messages arrive; all others do.
    pub(super) arrive: VecDeque<bool>,
    /// Which of the next answers arrive; all others do.
    pub(super) answers_arrive: VecDeque<bool>,
    /// How long an answer is waited for, [`WAIT`] if nothing else is said.
    pub(super) wait: Duration,
    /// Codes of own exchanges that are over.
    pub(super) codes: Vec<u8>,
}

/// A message that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) by_us: bool,
    pub(super) from: Option<SocketAddr>,
    pub(super) bytes: Vec<u8>,
}

/// What an end of an exchange has for the rest of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathUpdates {
    /// The peer says this of the path between these two, ours last.
    Told { status: u8, remote: [u8; 16], local: [u8; 16] },
    /// An own exchange is over, whatever came of it.
    Over { then: Then },
}

/// What is done when an exchange is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    SetStatus { path: usize, status: u8 },
}

/// An exchange begun here.
#[derive(Debug)]
struct Exchange {
    message: Message,
    auth: Auth,
    /// That of round 3, until then.
    data: Vec<u8>,
    /// Nowhere, where no path is left: the original takes an unused one then, which leads to itself.
    to: Option<SocketAddr>,
    sends: u32,
    due: Instant,
    then: Then,
}

impl Commands {
    /// In the network namespace of the calling thread.
    pub(super) fn open(port: u16, auth: Auth, tunnel: [IpAddr; 2]) -> Self {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).expect("the command port");
        socket.set_nonblocking(true).expect("a socket");
        Self {
            socket,
            auth,
            tunnel,
            answered: 0,
            cookie: 0,
            exchange: None,
            said: Vec::new(),
            arrive: VecDeque::new(),
            answers_arrive: VecDeque::new(),
            wait: WAIT,
            codes: Vec::new(),
        }
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Whether the thread is busy with an exchange.
    pub(super) fn is_busy(&self) -> bool {
        self.exchange.is_some()
    }

    /// Begins to notify the peer of the state of a path.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        to: Option<SocketAddr>,
        status: u8,
        [local, remote]: [IpAddr; 2],
        then: Then,
    ) {
        let mut message = Message::opening(frames::PATH_STATUS, self.auth, self.tunnel, 32);
        message.status = status;
        let data = [frames::wide(local), frames::wide(remote)].concat();
        self.begin(now, to, self.auth, message, data, then);
    }

    /// Begins to have the peer create a connection.
    pub(super) fn create(&mut self, now: Instant, to: SocketAddr, auth: Auth, text: &str) {
        let size = text.len() as u32;
        let message = Message::opening(frames::CREATE, auth, self.tunnel, size);
        self.begin(now, Some(to), auth, message, text.into(), Then::Nothing);
    }

    fn begin(
        &mut self,
        now: Instant,
        to: Option<SocketAddr>,
        auth: Auth,
        message: Message,
        data: Vec<u8>,
        then: Then,
    ) {
        assert!(self.exchange.is_none(), "the thread is busy");
        self.exchange = Some(Exchange { message, auth, data, to, sends: 0, due: now, then });
    }

    /// Sends what is due, or gives up.
    pub(super) fn tick(&mut self, now: Instant) -> Option<PathUpdates> {
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.due <= now)?;
        if exchange.sends == SENDS {
            return Some(self.end(UNANSWERED));
        }
        exchange.sends += 1;
        exchange.due = now + self.wait;
        if let Some(to) = exchange.to {
            let bytes = exchange.message.write(exchange.auth);
            say(&self.socket, &mut self.said, to, bytes);
        }
        None
    }

    /// Takes in the next message, if there is one.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Option<PathUpdates>> {
        let mut buffer = [0; frames::LONGEST];
        let (length, from) = self.socket.recv_from(&mut buffer).ok()?;
        let bytes = &buffer[..length];
        if self.arrive.pop_front() == Some(false) {
            return Some(None);
        }
        self.said.push(Said { by_us: false, from: Some(from), bytes: bytes.to_vec() });
        let message = Message::read(bytes).filter(|message| message.command >= frames::CONTROL);
        Some(match (message, self.is_busy()) {
            (None, _) => None,
            (Some(message), true) => self.on_reply(now, bytes, message),
            (Some(message), false) => self.on_request(from, bytes, message),
        })
    }

    fn on_reply(&mut self, now: Instant, bytes: &[u8], reply: Message) -> Option<PathUpdates> {
        let exchange = self.exchange.as_mut()?;
        let awaited = exchange.message.round + 1;
        if reply.round != awaited {
            return Some(self.end(WRONG_ROUND));
        }
        if !frames::is_authentic(bytes, self.auth) {
            return Some(self.end(NOT_AUTHENTIC));
        }
        if reply.status != DONE || awaited == 4 {
            return Some(self.end(reply.status));
        }
        exchange.message.round = 3;
        exchange.message.cookie = reply.cookie;
        exchange.message.data = std::mem::take(&mut exchange.data);
        (exchange.sends, exchange.due) = (0, now);
        None
    }

    /// Answers a request of the connection's peer; only a known connection's are.
    fn on_request(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        request: Message,
    ) -> Option<PathUpdates> {
        let [own, peer] = self.tunnel.map(frames::wide);
        let is_ours = request.responder == own && request.initiator == peer;
        let in_order = request.round < 4 && request.round <= self.answered + 1;
        if request.command != frames::PATH_STATUS || !is_ours || !in_order {
            return None;
        }
        if !frames::is_authentic(bytes, self.auth) {
            return None;
        }
        let is_last = request.round == 3;
        if is_last && self.auth != Auth::None && request.cookie != self.cookie {
            return None;
        }
        if request.round == 1 {
            // The original's is the time in seconds.
            self.cookie = self.cookie.wrapping_add(0x0102_0304);
        }
        let data = if is_last { Vec::new() } else { request.data.clone() };
        let round = request.round + 1;
        let leftover = if self.auth.kind() == 2 { [0xbe, 0xef] } else { [0, 0] };
        let cookie = self.cookie;
        let reply = Message { status: DONE, cookie, round, leftover, data, ..request.clone() };
        self.answered = round;
        if self.answers_arrive.pop_front() != Some(false) {
            say(&self.socket, &mut self.said, from, reply.write(self.auth));
        }
        let address = |at| request.data.get(at..at + 16)?.try_into().ok();
        let [remote, local] = [address(0)?, address(16)?];
        is_last.then_some(PathUpdates::Told { status: request.status, remote, local })
    }

    fn end(&mut self, code: u8) -> PathUpdates {
        let then = self.exchange.take().map_or(Then::Nothing, |exchange| exchange.then);
        self.codes.push(code);
        PathUpdates::Over { then }
    }
}

/// Sends a message from a socket of both IP versions.
fn say(socket: &UdpSocket, said: &mut Vec<Said>, to: SocketAddr, bytes: Vec<u8>) {
    let to = SocketAddr::from((frames::wide(to.ip()), to.port()));
    // One that the kernel refuses is lost, as others are.
    let _ = socket.send_to(&bytes, to);
    said.push(Said { by_us: true, from: None, bytes });
}
