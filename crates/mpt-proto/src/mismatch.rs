//! What arrives and shows how both ends disagree: a wrong key, a foreign address, another framing.
//!
//! Each such datagram is dropped and counted, as before. Beside that its owner is told what it was, so that an
//! operator can be told what to change ([`ReceiveSide::poll_mismatch`](crate::ReceiveSide::poll_mismatch)). Anybody
//! can send such datagrams, so what is kept and told is bounded in number and in rate, and a single one should
//! not be believed.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::id::{AcceptId, ConnectionId, PathId, SocketId};
use crate::stats::Drop;
use crate::time::Instant;
use crate::token_bucket::TokenBucket;

/// A datagram that does not fit what this host is configured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The socket at which it arrived.
    pub socket: SocketId,
    /// Where it came from.
    pub remote: SocketAddr,
    /// The connection that it is most likely meant for; `None` if there is none.
    pub connection: Option<ConnectionId>,
    /// The path that leads to where it came from; `None` if none does.
    pub path: Option<PathId>,
    /// What does not fit.
    pub kind: MismatchKind,
}

/// What does not fit in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// It has another GRE key than the connection; `None`: no key.
    Key {
        /// The key in it.
        found: Option<u32>,
    },
    /// The tunnel addresses in it are not those of the connection.
    Addresses {
        /// The tunnel address of its sender, as the sender says.
        sender: IpAddr,
        /// The tunnel address of this host, as the sender says.
        receiver: IpAddr,
    },
    /// It is of a framing that the connection does not use.
    Framing {
        /// That framing.
        found: FramingFound,
    },
    /// A handshake of sealed framing is refused for this reason: [`Drop::HandshakeMac`] and
    /// [`Drop::HandshakeUnknown`] are about public keys, [`Drop::HandshakeForged`] about the preshared one,
    /// [`Drop::HandshakeReplay`] about clocks, [`Drop::HandshakeInvitation`] about invitations,
    /// [`Drop::HandshakeRefused`] about what both have to agree on.
    Handshake(Drop),
    /// It begins a session of a version that is not known here.
    Version {
        /// The version.
        found: u8,
    },
    /// It is a keepalive, and the connection is one with any endpoint of RFC 8086, which sends none.
    PeerKind,
    /// It is of no framing that is known here.
    Foreign(Drop),
    /// It is from an address that no path leads to.
    Source,
    /// The peer asks for a session and does not hear that it is answered.
    Unconfirmed,
    /// It asks to connect and fits no template.
    Template {
        /// The template that is the nearest.
        accept: AcceptId,
        /// What of the template it does not fit.
        why: Misfit,
    },
}

/// What a datagram looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramingFound {
    /// GRE.
    Plain,
    /// Extended framing without keys.
    Extended,
    /// The beginning of a session that is sealed.
    Sealed,
}

/// Why somebody who asks to connect does not fit a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It has another GRE key than the template; `None`: no key.
    Key(Option<u32>),
    /// The tunnel address of its sender is not among the template's peers, or cannot be a peer's.
    Peer(IpAddr),
    /// It takes another tunnel address for this host's.
    Own(IpAddr),
    /// The template does not accept its source address.
    Source,
    /// The template does not use its framing.
    Framing,
    /// Its tunnel address belongs to another connection.
    Taken(IpAddr),
}

/// The most that wait to be read, and that are remembered so as not to be told again at once.
const CAPACITY: usize = 64;

/// How soon the same may be told again.
const AGAIN: Duration = Duration::from_millis(250);

/// What was noticed, until it is read.
#[derive(Debug)]
pub(crate) struct Mismatches {
    waiting: VecDeque<Mismatch>,
    lately: VecDeque<(Instant, Mismatch)>,
    /// From where paths lead to, and from anywhere else: strangers cannot hide what a peer sends.
    known: TokenBucket,
    strangers: TokenBucket,
}

impl Default for Mismatches {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            lately: VecDeque::new(),
            known: TokenBucket::new(64, Duration::from_millis(20)),
            strangers: TokenBucket::new(16, Duration::from_millis(100)),
        }
    }
}

impl Mismatches {
    /// Whether a stranger may be looked at: it costs a search through the connections.
    pub(crate) fn admits_stranger(&mut self, now: Instant) -> bool {
        self.strangers.take(now)
    }

    /// Notes one from where a path leads to, or a stranger that was admitted.
    pub(crate) fn note(&mut self, now: Instant, mismatch: Mismatch) {
        self.lately.retain(|(at, _)| now < *at + AGAIN);
        if self.lately.iter().any(|(_, other)| *other == mismatch)
            || self.waiting.len() >= CAPACITY
            || self.lately.len() >= CAPACITY
            || mismatch.path.is_some() && !self.known.take(now)
        {
            return;
        }
        self.lately.push_back((now, mismatch));
        self.waiting.push_back(mismatch);
    }

    pub(crate) fn poll(&mut self) -> Option<Mismatch> {
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mismatch(number: u32) -> Mismatch {
        Mismatch {
            socket: SocketId(0),
            remote: ([192, 0, 2, 1], 4754).into(),
            connection: Some(ConnectionId(0)),
            path: Some(PathId(0)),
            kind: MismatchKind::Key { found: Some(number) },
        }
    }

    #[test]
    fn the_same_is_told_again_only_after_a_while_and_floods_are_bounded() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut mismatches = Mismatches::default();
        for millis in [0, 100, 249, 250] {
            mismatches.note(at(millis), mismatch(8));
        }
        assert_eq!(std::iter::from_fn(|| mismatches.poll()).count(), 2);
        for number in 0..1000 {
            mismatches.note(at(300), mismatch(number));
        }
        let told = std::iter::from_fn(|| mismatches.poll()).count();
        assert!((32..=CAPACITY).contains(&told), "{told}");
    }

    #[test]
    fn strangers_do_not_use_up_what_is_kept_for_peers() {
        let mut mismatches = Mismatches::default();
        let admitted = (0..1000).filter(|_| mismatches.admits_stranger(Instant::ZERO)).count();
        assert_eq!(admitted, 16);
        mismatches.note(Instant::ZERO, mismatch(8));
        assert_eq!(mismatches.poll(), Some(mismatch(8)));
    }
}
