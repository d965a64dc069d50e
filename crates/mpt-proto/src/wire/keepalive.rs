//! The keepalive of plain framing: the frame of the original MPT, of which four unused bytes tell the
//! peer how this side sees the path.
//!
//! ```text
//! offset  0    1        2..4      4       5        6..8   8..24             24..40
//!       | A1 | status | longest | count | 4 or 6 | zero | sender's address | receiver's address |
//! ```
//!
//! Offsets count from the end of the GRE header. Addresses are tunnel addresses; IPv4 ones stand in
//! their IPv4-mapped form. The original neither sets nor reads status, length and count, so to it
//! "all is well" is the only thing anybody ever said.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;

use crate::stats::Drop;

/// Payloads whose first byte is at least this are control messages, smaller ones are IP packets.
pub const FIRST_CONTROL: u8 = 0xa0;

/// The length of the message without the GRE header; with the original's four it makes 44 bytes.
pub const LEN: usize = 40;

const COMMAND: u8 = 0xa1;
const DEAF: u8 = 0x01;
const OFF: u8 = 0x02;

/// How the sender of a keepalive sees the path that it came over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The sender does not hear its peer on this path.
    pub deaf: bool,
    /// The path is administratively off at the sender.
    pub off: bool,
}

/// What has reached the sender of a keepalive on the path that it came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The length of the longest datagram that arrived lately, in bytes of UDP payload.
    pub longest: NonZeroU16,
    /// How many keepalives were accepted since the sender started, modulo 256.
    pub keepalives: u8,
}

/// One keepalive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How its sender sees the path.
    pub report: Report,
    /// What has reached its sender; `None` if it does not tell.
    pub arrivals: Option<Arrivals>,
    /// The tunnel address of its sender.
    pub sender: IpAddr,
    /// The tunnel address it is meant for; of the same IP version.
    pub receiver: IpAddr,
}

impl Keepalive {
    /// The message as bytes. Every byte without a meaning is zero.
    pub fn emit(&self) -> [u8; LEN] {
        let mut message = [0; LEN];
        message[0] = COMMAND;
        message[1] =
            if self.report.deaf { DEAF } else { 0 } | if self.report.off { OFF } else { 0 };
        if let Some(Arrivals { longest, keepalives }) = self.arrivals {
            message[2..4].copy_from_slice(&longest.get().to_be_bytes());
            message[4] = keepalives;
        }
        message[5] = if self.sender.is_ipv4() { 4 } else { 6 };
        message[8..24].copy_from_slice(&mapped(self.sender).octets());
        message[24..40].copy_from_slice(&mapped(self.receiver).octets());
        message
    }

    /// Reads a control message.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlUnknown`] if it is none that plain framing knows, [`Drop::ControlLength`] if
    /// it is not [`LEN`] bytes long.
    pub fn parse(message: &[u8]) -> Result<Self, Drop> {
        if message.first() != Some(&COMMAND) {
            return Err(Drop::ControlUnknown);
        }
        let message: &[u8; LEN] = message.try_into().map_err(|_| Drop::ControlLength)?;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&message[at..at + 16]);
            Ipv6Addr::from(octets).to_canonical()
        };
        let report = Report { deaf: message[1] & DEAF != 0, off: message[1] & OFF != 0 };
        let longest = NonZeroU16::new(u16::from_be_bytes([message[2], message[3]]));
        let arrivals = longest.map(|longest| Arrivals { longest, keepalives: message[4] });
        Ok(Self { report, arrivals, sender: address(8), receiver: address(24) })
    }
}

/// The 16-byte form of an address, IPv4 ones mapped (RFC 4291 section 2.5.5.2).
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keepalive captured from the original MPT, without its GRE header.
    const CAPTURED: &str = "a10000000004000000000000000000000000ffff0a000003\
                            00000000000000000000ffff0a000002";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn reads_and_writes_the_original_frame_on_any_byte_order() {
        let keepalive = Keepalive {
            report: Report::default(),
            arrivals: None,
            sender: IpAddr::from([10, 0, 0, 3]),
            receiver: IpAddr::from([10, 0, 0, 2]),
        };
        assert_eq!(keepalive.emit().to_vec(), bytes(CAPTURED));
        assert_eq!(Keepalive::parse(&bytes(CAPTURED)), Ok(keepalive));
    }

    #[test]
    fn reports_and_ipv6_addresses_survive_the_round_trip() {
        for (deaf, off, longest) in
            [(false, false, 0), (true, false, 44), (false, true, 1472), (true, true, u16::MAX)]
        {
            let keepalive = Keepalive {
                report: Report { deaf, off },
                arrivals: NonZeroU16::new(longest)
                    .map(|longest| Arrivals { longest, keepalives: 200 }),
                sender: "fd00::1".parse().unwrap(),
                receiver: "fd00::2".parse().unwrap(),
            };
            assert_eq!(Keepalive::parse(&keepalive.emit()), Ok(keepalive));
        }
    }

    #[test]
    fn other_commands_and_lengths_are_named() {
        let message = bytes(CAPTURED);
        for end in 1..LEN {
            assert_eq!(Keepalive::parse(&message[..end]), Err(Drop::ControlLength));
        }
        assert_eq!(Keepalive::parse(&[&message[..], &[0]].concat()), Err(Drop::ControlLength));
        assert_eq!(Keepalive::parse(&[]), Err(Drop::ControlUnknown));
        for command in [0xa0, 0xa2, 0xa3, 0xff] {
            let mut other = message.clone();
            other[0] = command;
            assert_eq!(Keepalive::parse(&other), Err(Drop::ControlUnknown));
        }
    }
}
