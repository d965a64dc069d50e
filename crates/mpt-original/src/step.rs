//! The content of each of the four rounds of a command.

use std::net::IpAddr;

/// The length of the data of rounds 1 and 2.
pub(crate) const SIZE_LEN: usize = 4;

/// The length of the data of a path status change.
pub(crate) const PATH_LEN: usize = 32;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Command {
    /// A path is up or down.
    PathStatus = 0xa2,
    /// A connection is to be created.
    Create = 0xa3,
}

/// One of the four messages of an exchange; odd ones go to the responder, even ones to the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Round {
    /// The initiator announces a command.
    One = 1,
    /// The responder agrees.
    Two = 2,
    /// The initiator sends the command.
    Three = 3,
    /// The responder has executed it, or not.
    Four = 4,
}

impl Round {
    /// Whether it goes to the responder.
    pub const fn is_request(self) -> bool {
        matches!(self, Self::One | Self::Three)
    }
}

/// The result of a command, from the responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

impl Code {
    /// Success.
    pub const OK: Self = Self(0);
    /// There is no such connection, or its description cannot be read, or the peer may not create it.
    pub const UNKNOWN: Self = Self(4);
    /// There is such a connection already.
    pub const EXISTS: Self = Self(5);
}

/// The state of a path, from the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathReport {
    /// The address of the initiator, as the responder sees it: the responder's remote one.
    pub initiator: IpAddr,
    /// The address of the responder, as the initiator sees it: the responder's local one. Of the same
    /// IP version.
    pub responder: IpAddr,
    /// Whether the path is down, rather than up.
    pub down: bool,
}

/// The content of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Round 1: a command is announced.
    Open {
        /// The command.
        command: Command,
        /// Whether it is a path status change of a path that is down.
        down: bool,
        /// The length of the data of round 3, in bytes.
        size: u32,
    },
    /// Round 2: the initiator may proceed.
    Proceed {
        /// The command.
        command: Command,
        /// The announced length, in bytes.
        size: u32,
    },
    /// Round 3 of a path status change.
    Path(PathReport),
    /// Round 3 of a connection create: the initiator's connection, as text of a
    /// [`Description`](crate::Description).
    Create(&'a [u8]),
    /// Round 4: the command was executed.
    Done {
        /// The command.
        command: Command,
        /// The connection that was created; empty for other commands.
        description: &'a [u8],
    },
    /// Round 2 or 4: the command was refused.
    Refused {
        /// The command.
        command: Command,
        /// The round.
        round: Round,
        /// Why; not [`Code::OK`].
        code: Code,
    },
}

impl Step<'_> {
    /// Its command.
    pub const fn command(&self) -> Command {
        match *self {
            Self::Open { command, .. }
            | Self::Proceed { command, .. }
            | Self::Done { command, .. }
            | Self::Refused { command, .. } => command,
            Self::Path(_) => Command::PathStatus,
            Self::Create(_) => Command::Create,
        }
    }

    /// Its round.
    pub const fn round(&self) -> Round {
        match *self {
            Self::Open { .. } => Round::One,
            Self::Proceed { .. } => Round::Two,
            Self::Path(_) | Self::Create(_) => Round::Three,
            Self::Done { .. } => Round::Four,
            Self::Refused { round, .. } => round,
        }
    }
}

impl Step<'_> {
    /// The length of the data, in bytes.
    pub(crate) fn data_len(&self) -> usize {
        match self {
            Self::Open { .. } | Self::Proceed { .. } => SIZE_LEN,
            Self::Path(_) => PATH_LEN,
            Self::Create(text) | Self::Done { description: text, .. } => text.len(),
            // The original leaves the announced size where it was, and one byte of its answer.
            Self::Refused { round: Round::Two, .. } => SIZE_LEN,
            Self::Refused { .. } => 1,
        }
    }
}
