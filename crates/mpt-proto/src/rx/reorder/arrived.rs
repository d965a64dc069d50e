//! What the reorder buffer is told of a packet, and what it says of it.

use crate::id::PathId;
use crate::sequence::Seq;

/// A packet with a number, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) path: PathId,
    pub(crate) seq: Seq,
    /// Its predecessor in its flow.
    pub(crate) after: After,
    /// Whether it left after all lower numbers that its path carries.
    pub(crate) in_turn: bool,
}

/// The packet that precedes one in its flow, as far as the sender has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing is known of flows: plain framing.
    Unknown,
    /// None: it is the first of its flow in this session.
    First,
    /// One that is too far away to be named.
    Far,
    /// The packet with this number, which is behind the packet's own.
    Seq(Seq),
}

/// What an accepted packet led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It was delivered or is held.
    Fits,
    /// It was delivered as the beginning of a new count; `expected` had been the next number.
    Restart { expected: Seq },
    /// It was delivered or is held, and continues an order that had been left.
    Return,
}
