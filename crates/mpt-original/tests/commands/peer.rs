//! A peer written from what is known of the original, byte by byte, and the host that it talks to.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_original::{
    Auth, Commands, ConnectionCommands, Destination, Event, Key, Outcome, PathReport, Refusal,
};
use mpt_proto::{ConnectionId, Instant};

pub(crate) const CONNECTION: ConnectionId = ConnectionId(3);
pub(crate) const KEY: &str = "0123456789abcdef0123456789ABCDEF";

/// Own tunnel address and the peer's, as bytes of their mapped form.
pub(crate) const OWN: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2];
pub(crate) const PEER: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 3];

/// A path: the peer's end and the own one.
pub(crate) const PEER_END: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
pub(crate) const OWN_END: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 1];

pub(crate) const DOWN: u8 = 0x80;

/// A message as the original writes it. Bytes that it leaves uninitialised are 0xee.
pub(crate) struct Frame {
    pub(crate) status: u8,
    pub(crate) kind: u8,
    pub(crate) cookie: [u8; 4],
    pub(crate) round: u8,
    pub(crate) initiator: [u8; 16],
    pub(crate) responder: [u8; 16],
    pub(crate) data: Vec<u8>,
}

impl Frame {
    /// From the peer as initiator.
    pub(crate) fn request(kind: u8, cookie: [u8; 4], round: u8, status: u8) -> Self {
        let data = if round == 1 { vec![32, 0, 0, 0] } else { [PEER_END, OWN_END].concat() };
        Self { status, kind, cookie, round, initiator: PEER, responder: OWN, data }
    }

    /// From the peer as responder.
    pub(crate) fn reply(kind: u8, cookie: [u8; 4], round: u8, code: u8) -> Self {
        let data = if round == 2 { vec![32, 0, 0, 0] } else { vec![] };
        Self { status: code, kind, cookie, round, initiator: OWN, responder: PEER, data }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
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

pub(crate) fn auth(kind: u8) -> Auth {
    match kind {
        0 => Auth::None,
        1 => Auth::Random,
        _ => Auth::Sha256(Key::new(KEY).expect("a key")),
    }
}

pub(crate) fn settings(kind: u8) -> ConnectionCommands {
    let (local, remote) = (IpAddr::from([10, 0, 0, 2]), IpAddr::from([10, 0, 0, 3]));
    ConnectionCommands { local, remote, auth: auth(kind), sources: vec![] }
}

pub(crate) fn source() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 65050))
}

pub(crate) fn report(down: bool) -> PathReport {
    let (initiator, responder) = ([198, 51, 100, 1].into(), [192, 0, 2, 1].into());
    PathReport { initiator, responder, down }
}

/// This host. The tests are its peer.
pub(crate) struct Host {
    pub(crate) commands: Commands,
    pub(crate) now: Instant,
    pub(crate) chance: u32,
}

impl Host {
    pub(crate) fn new(kind: u8) -> Self {
        let mut commands = Commands::default();
        commands.set_connection(CONNECTION, settings(kind));
        // Nothing depends on the origin of time.
        Self { commands, now: Instant::from_nanos(1_000_000_000), chance: 0x0a0b_0c00 }
    }

    /// The answer to a message.
    pub(crate) fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
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

    /// Begins an exchange, and returns its cookie.
    pub(crate) fn open(&mut self, kind: u8, status: u8) -> [u8; 4] {
        let answer = self.answer(&Frame::request(kind, [0; 4], 1, status).bytes());
        cookie(&answer.expect("round 2"))
    }

    /// Checks that a message is refused for this reason and not answered.
    pub(crate) fn refuses(&mut self, message: &[u8], refusal: Refusal) {
        let before = *self.commands.refusals();
        assert_eq!(self.answer(message), None, "{}", refusal.name());
        let after = self.commands.refusals();
        assert_eq!(after.count(refusal), before.count(refusal) + 1, "{}", refusal.name());
        assert_eq!(after.total(), before.total() + 1);
        assert_eq!(self.commands.poll_event(), None);
    }

    /// The next message to the peer.
    pub(crate) fn sent(&mut self) -> Option<Vec<u8>> {
        let transmit = self.commands.poll_transmit(self.now)?;
        assert!(matches!(transmit.to, Destination::Peer { connection: CONNECTION, .. }));
        Some(transmit.message)
    }

    /// Receives an answer of the peer.
    pub(crate) fn hears(&mut self, frame: &Frame) {
        self.commands.handle_datagram(self.now, source(), &frame.bytes(), || unreachable!());
    }

    /// The report that ended, and how.
    pub(crate) fn told(&mut self) -> Option<(PathReport, Outcome)> {
        match self.commands.poll_event()? {
            Event::Told { connection: CONNECTION, report, outcome } => Some((report, outcome)),
            event @ (Event::Path { .. } | Event::Create(_) | Event::Told { .. }) => {
                panic!("{event:?}")
            }
        }
    }

    /// Advances the time to the next timeout.
    pub(crate) fn wait(&mut self) -> Duration {
        let due = self.commands.poll_timeout().expect("something is due");
        let waited = due.since(self.now);
        self.now = due;
        self.commands.handle_timeout(self.now);
        waited
    }
}

pub(crate) fn cookie(message: &[u8]) -> [u8; 4] {
    if message[2] == 0 { [0; 4] } else { message[4..8].try_into().expect("four bytes") }
}

/// The event of a report by the peer.
pub(crate) fn heard(down: bool) -> Option<Event> {
    let (local, remote) = ([198, 51, 100, 1].into(), [192, 0, 2, 1].into());
    Some(Event::Path { connection: CONNECTION, local, remote, down })
}

/// The message as this host writes it: with zeroes in reserved bytes.
pub(crate) fn clean(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.bytes();
    if frame.kind == 2 {
        bytes[42..44].fill(0);
        bytes[8..40].fill(0);
        let hash = hmac_sha256::Hash::hash(&[&bytes[..], KEY.as_bytes()].concat());
        bytes[8..40].copy_from_slice(&hash);
    }
    bytes
}
