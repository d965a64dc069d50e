//! What is worth telling: one enum for log, status, lab and tests.

use std::collections::VecDeque;

use crate::id::ConnectionId;
use crate::id::PathId;
use crate::path::PathState;
use crate::sequence::Seq;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A path silently drops all longer datagrams: an MTU black hole. The caller decides how to
    /// react: a smaller MTU, or [`Change::SetFits`](crate::Change::SetFits).
    Narrow {
        /// The connection the path belongs to.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// The length of the longest datagram that it carries, GRE header included. If there is room in
        /// it for an inner packet of 1280 bytes, then this is all that is claimed; if there is less,
        /// such packets are lost too.
        carries: usize,
    },
    /// What a path carries was found out by probes, in a session; see
    /// [`TransmitHalf::proven_len`](crate::TransmitHalf::proven_len).
    Proven {
        /// The connection the path belongs to.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// The length of the longest datagram that arrives, GRE header included.
        carries: usize,
        /// Whether longer ones arrived before.
        narrower: bool,
    },
    /// A session of extended framing began.
    Session {
        /// The connection.
        connection: ConnectionId,
        /// Whether it replaces another one: the peer has restarted, or somebody has taken its place.
        replaces: bool,
    },
    /// The peer was asked for a session and has not answered: plain framing is used.
    NoSession {
        /// The connection.
        connection: ConnectionId,
    },
    /// A session ended, because the peer said so or all paths were down for long.
    SessionEnd {
        /// The connection.
        connection: ConnectionId,
    },
    /// A path changed its state.
    Path {
        /// The connection the path belongs to.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// What it was.
        from: PathState,
        /// What it is.
        to: PathState,
    },
    /// A path is stopped, because it went on to lose too much although next to nothing was sent on it. It stays up, and is
    /// probed.
    Stopped {
        /// The connection the path belongs to.
        connection: ConnectionId,
        /// The path.
        path: PathId,
        /// How many of a hundred datagrams were lost.
        lost_percent: u8,
    },
    /// A path that was stopped is used again, because what it is probed with arrives.
    Resumed {
        /// The connection the path belongs to.
        connection: ConnectionId,
        /// The path.
        path: PathId,
    },
    /// The peer's sequence numbers restarted, most likely because the peer did.
    Restart {
        /// The connection.
        connection: ConnectionId,
        /// The number that had been expected.
        expected: Seq,
        /// The number that is believed instead.
        found: Seq,
    },
}

/// The most events kept for a reader that does not come; then the oldest goes.
const CAPACITY: usize = 256;

/// Events that wait to be read.
#[derive(Debug, Default)]
pub(crate) struct Events(VecDeque<Event>);

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        if self.0.len() == CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}
