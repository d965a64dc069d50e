//! One command on the wire, in any of its four rounds.
//!
//! ```text
//! offset  0         1               2      3         4..4+s  s+4     s+5      s+6..8   s+8..24     s+24..40    s+40..
//!       | command | status or code | kind | s = len | block | round | 4 or 6 | ignored | initiator | responder | data |
//! ```
//!
//! `s` is the length of the authentication block: 0, 4 or 36 bytes. Both addresses are tunnel addresses,
//! and stay where they are in all rounds; IPv4 ones stand in their IPv4-mapped form. The data is:
//!
//! | round | path status change (0xA2) | connection create (0xA3) |
//! |---|---|---|
//! | 1, 2 | the length of the data of round 3: 4 bytes, the lowest first | the same |
//! | 3 | the path's two addresses, first the initiator's | a description of its connection |
//! | 4 | none | a description of the responder's |

use std::net::{IpAddr, Ipv6Addr};

use super::auth::{Auth, AuthKind, BLOCK};
use super::refusal::Refusal;
use crate::wire::keepalive::mapped;

/// The longest description of a connection, in bytes. One with twenty paths and twenty networks, which
/// is the most that the original can have, is not half as long.
pub const MAX_DESCRIPTION: usize = 16 * 1024;

/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = HEADER + AuthKind::Sha256.block_len() + MAX_DESCRIPTION;

/// The length of a message without authentication block and data.
const HEADER: usize = 40;

/// The length of the data of rounds 1 and 2.
const SIZE_LEN: usize = 4;

/// The length of the data of a path status change.
const PATH_LEN: usize = 32;

/// What a message with a path status has in its second byte if the path is down. The other bits of that
/// byte are sent as zero, and ignored when received: the original keeps in them why it is down.
const DOWN: u8 = 0x80;

/// What is commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Command {
    /// A path is up or down.
    PathStatus = 0xa2,
    /// A connection is to be made.
    Create = 0xa3,
}

/// One of the four messages of an exchange; odd ones go to the responder, even ones to the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Round {
    /// The initiator has something to say.
    One = 1,
    /// The responder listens.
    Two = 2,
    /// The initiator says it.
    Three = 3,
    /// The responder has done it, or not.
    Four = 4,
}

impl Round {
    /// Whether it goes to the responder.
    pub const fn is_request(self) -> bool {
        matches!(self, Self::One | Self::Three)
    }
}

/// What a responder says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

impl Code {
    /// All is well.
    pub const OK: Self = Self(0);
    /// There is no such connection, or its description cannot be understood, or it is not to be
    /// created by the peer.
    pub const UNKNOWN: Self = Self(4);
    /// There is such a connection already.
    pub const EXISTS: Self = Self(5);
}

/// What the initiator says of a path.
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

/// What is said in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Round 1: something is to be said.
    Open {
        /// What it will be.
        command: Command,
        /// Whether it is that a path is down.
        down: bool,
        /// The length of the data of round 3, in bytes.
        size: u32,
    },
    /// Round 2: go on.
    Proceed {
        /// What was asked.
        command: Command,
        /// The length that was announced.
        size: u32,
    },
    /// Round 3 of a path status change.
    Path(PathReport),
    /// Round 3 of a connection create: the initiator's connection, as [`Description`](super::Description)
    /// reads it.
    Create(&'a [u8]),
    /// Round 4: it is done.
    Done {
        /// What was done.
        command: Command,
        /// The connection that was made; nothing for other commands.
        description: &'a [u8],
    },
    /// Round 2 or 4: it is not done.
    Refused {
        /// What was asked.
        command: Command,
        /// In which round.
        round: Round,
        /// Why; not [`Code::OK`].
        code: Code,
    },
}

impl Step<'_> {
    /// The command that it belongs to.
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

/// One command in one round. It is as authentic as [`Auth::verify`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// How it is authenticated, as it says itself.
    pub auth: AuthKind,
    /// The cookie of the exchange, by which the responder knows that the initiator has read its answer;
    /// 0 in round 1, and where there is none.
    pub cookie: u32,
    /// The tunnel address of who began the exchange.
    pub initiator: IpAddr,
    /// The tunnel address of the other; of the same IP version.
    pub responder: IpAddr,
    /// What is said.
    pub step: Step<'a>,
}

impl<'a> Message<'a> {
    /// Reads a message. Ignored are the bits of a path status other than the highest, in rounds 1 and 3,
    /// the two bytes without a meaning, and what stands behind a refusal.
    ///
    /// # Errors
    ///
    /// The first reason for which it is none.
    pub fn parse(message: &'a [u8]) -> Result<Self, Refusal> {
        if message.len() < HEADER {
            return Err(Refusal::Short);
        }
        let (&[command, status, kind, len], rest) =
            message.split_first_chunk::<BLOCK>().ok_or(Refusal::Short)?;
        let command = match command {
            0xa2 => Command::PathStatus,
            0xa3 => Command::Create,
            _ => return Err(Refusal::Unknown),
        };
        let auth = AuthKind::new(kind).ok_or(Refusal::AuthKind)?;
        if usize::from(len) != auth.block_len()
            || (command == Command::Create && auth != AuthKind::Sha256)
        {
            return Err(Refusal::AuthLength);
        }
        let (block, rest) = rest.split_at_checked(auth.block_len()).ok_or(Refusal::Length)?;
        let cookie = block.first_chunk().map_or(0, |cookie| u32::from_be_bytes(*cookie));
        let (fields, data) =
            rest.split_first_chunk::<{ HEADER - BLOCK }>().ok_or(Refusal::Length)?;
        let address = |at: usize| address(&fields[at..at + 16]);
        let (initiator, responder) = (address(4), address(20));
        let step = match fields[0] {
            1 => open(command, status, data)?,
            3 => data_of(command, status, data)?,
            2 | 4 if status != Code::OK.0 => refused(command, fields[0], status, data)?,
            2 => Step::Proceed { command, size: size(command, data)? },
            4 => done(command, data)?,
            _ => return Err(Refusal::Round),
        };
        let is_of = |version: u8| match version {
            4 => initiator.is_ipv4() && responder.is_ipv4(),
            6 => initiator.is_ipv6() && responder.is_ipv6(),
            _ => false,
        };
        if !is_of(fields[1]) {
            return Err(Refusal::Version);
        }
        Ok(Self { auth, cookie, initiator, responder, step })
    }

    /// Writes the message, authenticated as `auth` has it; its own `auth` does not matter. Every byte
    /// without a meaning is zero.
    pub fn emit(&self, auth: &Auth) -> Vec<u8> {
        let mut message = self.emit_unsealed(auth.kind());
        auth.seal(&mut message);
        message
    }

    /// The same, with zeroes where a hash would be.
    pub(super) fn emit_unsealed(&self, kind: AuthKind) -> Vec<u8> {
        let Self { cookie, initiator, responder, step, .. } = *self;
        let status = match step {
            Step::Open { down: true, .. } | Step::Path(PathReport { down: true, .. }) => DOWN,
            Step::Refused { code, .. } => code.0,
            Step::Open { .. }
            | Step::Proceed { .. }
            | Step::Path(_)
            | Step::Create(_)
            | Step::Done { .. } => 0,
        };
        let block = kind.block_len();
        let mut message = Vec::with_capacity(HEADER + block + step.data_len());
        message.extend([step.command() as u8, status, kind as u8, block as u8]);
        message.resize(BLOCK + block, 0);
        if let Some(place) = message[BLOCK..].first_chunk_mut() {
            *place = cookie.to_be_bytes();
        }
        message.extend([step.round() as u8, if initiator.is_ipv4() { 4 } else { 6 }, 0, 0]);
        message.extend(mapped(initiator).octets());
        message.extend(mapped(responder).octets());
        match step {
            Step::Open { size, .. } | Step::Proceed { size, .. } => {
                message.extend(size.to_le_bytes());
            }
            Step::Path(PathReport { initiator, responder, .. }) => {
                message.extend(mapped(initiator).octets());
                message.extend(mapped(responder).octets());
            }
            Step::Create(text) | Step::Done { description: text, .. } => message.extend(text),
            Step::Refused { .. } => message.resize(HEADER + block + step.data_len(), 0),
        }
        message
    }
}

impl Step<'_> {
    /// The length of the data.
    pub(super) fn data_len(&self) -> usize {
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

fn open(command: Command, status: u8, data: &[u8]) -> Result<Step<'_>, Refusal> {
    let down = is_down(command, status)?;
    Ok(Step::Open { command, down, size: size(command, data)? })
}

fn data_of(command: Command, status: u8, data: &[u8]) -> Result<Step<'_>, Refusal> {
    let down = is_down(command, status)?;
    if command == Command::Create {
        let fits = (1..=MAX_DESCRIPTION).contains(&data.len());
        return if fits { Ok(Step::Create(data)) } else { Err(Refusal::Length) };
    }
    if data.len() != PATH_LEN {
        return Err(Refusal::Length);
    }
    let (initiator, responder) = (address(&data[..16]), address(&data[16..]));
    if initiator.is_ipv4() != responder.is_ipv4() {
        return Err(Refusal::PathAddress);
    }
    Ok(Step::Path(PathReport { initiator, responder, down }))
}

fn refused(command: Command, round: u8, code: u8, data: &[u8]) -> Result<Step<'_>, Refusal> {
    if data.len() > SIZE_LEN {
        return Err(Refusal::Length);
    }
    let round = if round == 2 { Round::Two } else { Round::Four };
    Ok(Step::Refused { command, round, code: Code(code) })
}

fn done(command: Command, data: &[u8]) -> Result<Step<'_>, Refusal> {
    let longest = if command == Command::Create { MAX_DESCRIPTION } else { 0 };
    if data.len() > longest {
        return Err(Refusal::Length);
    }
    Ok(Step::Done { command, description: data })
}

/// Whether the second byte of rounds 1 and 3 says that a path is down.
fn is_down(command: Command, status: u8) -> Result<bool, Refusal> {
    match command {
        Command::PathStatus => Ok(status & DOWN != 0),
        Command::Create if status == 0 => Ok(false),
        Command::Create => Err(Refusal::Status),
    }
}

/// The announced length of the data, in the byte order of the hosts that the original runs on.
fn size(command: Command, data: &[u8]) -> Result<u32, Refusal> {
    let size = <[u8; SIZE_LEN]>::try_from(data).map_err(|_| Refusal::Length)?;
    let size = u32::from_le_bytes(size);
    let possible = match command {
        Command::PathStatus => PATH_LEN..=PATH_LEN,
        Command::Create => 1..=MAX_DESCRIPTION,
    };
    if usize::try_from(size).is_ok_and(|size| possible.contains(&size)) {
        Ok(size)
    } else {
        Err(Refusal::Size)
    }
}

/// The address that 16 bytes mean.
fn address(octets: &[u8]) -> IpAddr {
    let mut place = [0; 16];
    place.copy_from_slice(octets);
    Ipv6Addr::from(place).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::original::auth::Key;

    /// Round 1 of a connection create as it was captured from the original, with the key that is built
    /// into it.
    const CAPTURED: &str = "a300022400000000193d90a0536de866e77647f40d26e1afeb1886c726eb3d59fb05fecf6c95c2a6\
                            0104000000000000000000000000ffff0a00000200000000000000000000ffff0a00000367040000";

    fn captured() -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&CAPTURED[at..at + 2], 16).unwrap();
        (0..CAPTURED.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn the_hash_is_the_one_of_the_original() {
        let (captured, auth) = (captured(), Auth::Sha256(Key::public()));
        assert_eq!(auth.verify(&captured), Ok(()));
        let message = Message::parse(&captured).unwrap();
        let expected = Message {
            auth: AuthKind::Sha256,
            cookie: 0,
            initiator: IpAddr::from([10, 0, 0, 2]),
            responder: IpAddr::from([10, 0, 0, 3]),
            step: Step::Open { command: Command::Create, down: false, size: 0x467 },
        };
        assert_eq!(message, expected);
        assert_eq!(message.emit(&auth), captured);
    }

    #[test]
    fn no_bit_of_a_hashed_message_can_be_changed() {
        let auth = Auth::Sha256(Key::public());
        for bit in 0..captured().len() * 8 {
            let mut changed = captured();
            changed[bit / 8] ^= 1 << (bit % 8);
            let refused = Message::parse(&changed).err().or(auth.verify(&changed).err());
            assert!(refused.is_some(), "bit {bit}");
        }
        for end in 0..captured().len() {
            let cut = &captured()[..end];
            assert!(Message::parse(cut).is_err() && auth.verify(cut).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn every_message_survives_the_round_trip() {
        let report = PathReport {
            initiator: "2001:db8::1".parse().unwrap(),
            responder: "2001:db8::2".parse().unwrap(),
            down: false,
        };
        let key = Key::new("0123456789abcdef0123456789ABCDEF").unwrap();
        let steps = |command, size| {
            [
                Step::Open { command, down: command == Command::PathStatus, size },
                Step::Proceed { command, size },
                Step::Done { command, description: &[] },
                Step::Refused { command, round: Round::Two, code: Code::UNKNOWN },
                Step::Refused { command, round: Round::Four, code: Code(255) },
            ]
        };
        let created = Step::Done { command: Command::Create, description: b";;;;;" };
        let both = [steps(Command::PathStatus, 32), steps(Command::Create, 5)];
        let data = [Step::Path(report), Step::Create(b";;;;;"), created];
        for step in both.concat().into_iter().chain(data) {
            for auth in [Auth::None, Auth::Random, Auth::Sha256(key.clone())] {
                if step.command() == Command::Create && auth.kind() != AuthKind::Sha256 {
                    continue;
                }
                let cookie = if auth == Auth::None { 0 } else { 0x0102_0304 };
                let (initiator, responder) =
                    ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
                let message = Message { auth: auth.kind(), cookie, initiator, responder, step };
                let bytes = message.emit(&auth);
                assert_eq!(Message::parse(&bytes), Ok(message));
                assert_eq!(auth.verify(&bytes), Ok(()));
                assert!(bytes.len() <= MAX_MESSAGE);
            }
        }
    }
}
