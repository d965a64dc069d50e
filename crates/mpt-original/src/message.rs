//! One command on the wire, in any of its four rounds.
//!
//! ```text
//! offset  0         1               2      3         4..4+s  s+4     s+5      s+6..8   s+8..24     s+24..40    s+40..
//!       | command | status or code | kind | s = len | block | round | 4 or 6 | ignored | initiator | responder | data |
//! ```
//!
//! `s` is the length of the authentication block: 0, 4 or 36 bytes. Both addresses are tunnel addresses,
//! in the same place in all rounds; IPv4 ones are in their IPv4-mapped form. The data is:
//!
//! | round | path status change (0xA2) | connection create (0xA3) |
//! |---|---|---|
//! | 1, 2 | the length of the data of round 3: 4 bytes, the lowest first | the same |
//! | 3 | the path's two addresses, first the initiator's | a description of its connection |
//! | 4 | none | a description of the responder's |

use std::net::{IpAddr, Ipv6Addr};

use crate::auth::{Auth, AuthKind, BLOCK};
use crate::refusal::Refusal;
use crate::step::{Code, Command, PATH_LEN, PathReport, Round, SIZE_LEN, Step};

#[cfg(test)]
mod tests;

/// The longest description of a connection, in bytes. One with twenty paths and twenty networks, the most
/// that the original has room for, is not half as long.
pub const MAX_DESCRIPTION: usize = 16 * 1024;

/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = HEADER + AuthKind::Sha256.block_len() + MAX_DESCRIPTION;

/// The length of a message without authentication block and data.
const HEADER: usize = 40;

/// The bit of the second byte of a path status change that says that the path is down. The other bits are
/// sent as zero and ignored on receipt: the original has the cause in them.
const DOWN: u8 = 0x80;

/// One round of a command. [`Auth::verify`] says whether it is authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The kind of authentication that it claims.
    pub auth: AuthKind,
    /// The cookie of the exchange, which proves to the responder that the initiator has read its answer;
    /// 0 in round 1, and where there is none.
    pub cookie: u32,
    /// The tunnel address of the host that began the exchange.
    pub initiator: IpAddr,
    /// The tunnel address of the other host, of the same IP version.
    pub responder: IpAddr,
    /// The content of the round.
    pub step: Step<'a>,
}

impl<'a> Message<'a> {
    /// Reads a message. It ignores the bits of a path status other than the highest, in rounds 1 and 3,
    /// the two reserved bytes, and the data of a refusal.
    ///
    /// # Errors
    ///
    /// The first fault.
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

    /// Writes the message, authenticated by `auth`; the message's own `auth` is ignored. Reserved bytes are
    /// zero.
    pub fn emit(&self, auth: &Auth) -> Vec<u8> {
        let mut message = self.emit_unsealed(auth.kind());
        auth.seal(&mut message);
        message
    }

    /// Writes the message with zeroes in place of the hash.
    pub(crate) fn emit_unsealed(&self, kind: AuthKind) -> Vec<u8> {
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

/// Whether the second byte of rounds 1 and 3 has a path down.
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

/// The address in 16 bytes, an IPv4-mapped one as IPv4.
fn address(octets: &[u8]) -> IpAddr {
    let mut place = [0; 16];
    place.copy_from_slice(octets);
    Ipv6Addr::from(place).to_canonical()
}

/// The 16-byte form of an address, IPv4 ones mapped (RFC 4291 section 2.5.5.2).
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
