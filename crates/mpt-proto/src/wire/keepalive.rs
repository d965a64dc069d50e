//! The keepalive of plain framing: the frame of the original MPT, with seven of its unused bytes
//! used to report this side's view of the path, and a trailer for measurements.
//!
//! ```text
//! offset  0    1        2..4      4       5        6      7      8..24             24..40
//!       | A1 | status | longest | count | weight | path | lost | sender's address | receiver's address |
//!         40..44   44..48   48..52   52..56
//!       | sent   | time   | echo   | held   |
//! ```
//!
//! Offsets count from the end of the GRE header. Addresses are tunnel addresses; IPv4 ones stand in
//! their IPv4-mapped form. The original neither sets nor reads status, length, count, path and
//! lost, so it always reports and reads "no problem". In place of the weight it has 4 or 6, the IP
//! version of the addresses, and so has a keepalive that announces no weight. It does not read or
//! send the trailer either.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;

use super::weight;
use crate::id::MAX_PATHS;
use crate::stats::Drop;

/// Payloads whose first byte is at least this are control messages, smaller ones are IP packets.
pub const FIRST_CONTROL: u8 = 0xa0;

/// The length of the message without the GRE header, as it is sent; with the original's four it makes 60
/// bytes.
pub const LEN: usize = BARE_LEN + TRAILER_LEN;

/// The length of the original's message, which has no trailer; with the GRE header it makes 44 bytes.
pub const BARE_LEN: usize = 40;

const TRAILER_LEN: usize = 16;

/// Whether a control message is a probe: a keepalive without a trailer behind which padding makes it longer
/// than one with a trailer. It says no more than that it arrived. Receivers that know no probes drop it,
/// and count its length among what arrived all the same.
pub(crate) fn is_probe(message: &[u8]) -> bool {
    message.len() > LEN && message[0] == COMMAND
}

const COMMAND: u8 = 0xa1;
const DEAF: u8 = 0x01;
const OFF: u8 = 0x02;
const STANDBY: u8 = 0x04;
const CALLS_SHIFT: u32 = 3;

/// How the sender of a keepalive sees the path that it came over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The sender does not hear its peer on this path.
    pub deaf: bool,
    /// The path is administratively off at the sender.
    pub off: bool,
}

impl Report {
    /// The sender stops: a path that is merely off is not said to be deaf.
    pub const fn stops(self) -> bool {
        self.deaf && self.off
    }
}

/// What the sender of a keepalive sends its inner packets on.
///
/// A receiver that puts packets in order waits for no standby path. So before a path that stood by
/// carries its first packet, that must be known to whom the next ones reach by a faster path: every
/// path then brings a keepalive with another number of calls, which makes what was said before of
/// standing by a thing of the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// Nothing is sent on the path that it came over, because paths of a better priority carry.
    pub standby: bool,
    /// How often any path of the connection has been called up, from standing by to carrying; below
    /// [`Self::CALLS`], and then from 0 again.
    pub calls: u8,
}

impl Activation {
    /// How many numbers of calls there are.
    pub const CALLS: u8 = 32;

    /// The number of calls after one more.
    pub(crate) const fn next(calls: u8) -> u8 {
        (calls + 1) % Self::CALLS
    }

    /// Whether so many calls are more than `known`: up to half of what can be told apart.
    pub(crate) const fn is_after(calls: u8, known: u8) -> bool {
        let ahead = calls.wrapping_sub(known) % Self::CALLS;
        ahead != 0 && ahead <= Self::CALLS / 2
    }
}

/// What has reached the sender of a keepalive on the path that it came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The length of the longest datagram that arrived lately, in bytes of UDP payload.
    pub longest: NonZeroU16,
    /// How many keepalives were accepted since the sender started, modulo 256.
    pub keepalives: u8,
}

/// What the peer measures the path by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// How many datagrams with inner packets the sender has sent on the path, modulo 2^32.
    pub sent: u32,
    /// When the keepalive was sent, in microseconds of the sender's own clock, modulo 2^32.
    pub time: u32,
    /// The last such time of the peer that reached the sender; `None` if none has.
    pub echo: Option<Echo>,
}

/// A sending time on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The time, of the clock of whom it goes back to.
    pub time: u32,
    /// How many microseconds passed between its arrival and its return; less than [`Self::NONE`].
    pub held: u32,
}

impl Echo {
    /// What stands in the place of `held` where nothing is echoed.
    pub const NONE: u32 = u32::MAX;
}

/// One keepalive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How its sender sees the path.
    pub report: Report,
    /// What its sender uses.
    pub activation: Activation,
    /// What has reached its sender; `None` if it does not tell.
    pub arrivals: Option<Arrivals>,
    /// The weight that its sender wants the path to have for what it receives, 1 to
    /// [`MAX_WEIGHT`](crate::MAX_WEIGHT); rounded to five significant bits on its way. `None` if it
    /// announces none.
    pub weight: Option<NonZeroU16>,
    /// The number that its sender has for the path that it comes over, below 64; `None` if it does not
    /// tell.
    pub path: Option<u8>,
    /// The number that its sender has for another path, which it has lost: nothing is received there.
    pub lost: Option<u8>,
    /// The tunnel address of its sender.
    pub sender: IpAddr,
    /// The tunnel address it is meant for; of the same IP version.
    pub receiver: IpAddr,
    /// What its receiver measures the path by; the original sends none.
    pub trailer: Option<Trailer>,
}

impl Keepalive {
    /// One that says only that its sender is there, as the original's do: [`BARE_LEN`] bytes.
    pub const fn bare(sender: IpAddr, receiver: IpAddr) -> Self {
        Self {
            report: Report { deaf: false, off: false },
            activation: Activation { standby: false, calls: 0 },
            arrivals: None,
            weight: None,
            path: None,
            lost: None,
            sender,
            receiver,
            trailer: None,
        }
    }

    /// Writes the message and returns its bytes, [`LEN`] or without a trailer [`BARE_LEN`]. Every byte
    /// without a meaning is zero.
    pub fn emit<'m>(&self, message: &'m mut [u8; LEN]) -> &'m [u8] {
        *message = [0; LEN];
        message[0] = COMMAND;
        message[1] = status_byte(self.report, self.activation);
        if let Some(Arrivals { longest, keepalives }) = self.arrivals {
            message[2..4].copy_from_slice(&longest.get().to_be_bytes());
            message[4] = keepalives;
        }
        let version = if self.sender.is_ipv4() { 4 } else { 6 };
        message[5] = self.weight.map_or(version, weight::announcement);
        message[6] = self.path.map_or(0, |path| path + 1);
        message[7] = self.lost.map_or(0, |path| path + 1);
        message[8..24].copy_from_slice(&mapped(self.sender).octets());
        message[24..40].copy_from_slice(&mapped(self.receiver).octets());
        let Some(Trailer { sent, time, echo }) = self.trailer else {
            return &message[..BARE_LEN];
        };
        let Echo { time: echo, held } = echo.unwrap_or(Echo { time: 0, held: Echo::NONE });
        for (place, word) in message[BARE_LEN..].chunks_exact_mut(4).zip([sent, time, echo, held]) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        message
    }

    /// Reads a control message.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlUnknown`] if it is none that plain framing knows, [`Drop::ControlLength`] if
    /// it is neither [`LEN`] nor [`BARE_LEN`] bytes long.
    pub fn parse(message: &[u8]) -> Result<Self, Drop> {
        if message.first() != Some(&COMMAND) {
            return Err(Drop::ControlUnknown);
        }
        let (message, trailer) =
            message.split_first_chunk::<BARE_LEN>().ok_or(Drop::ControlLength)?;
        let trailer = match <&[u8; TRAILER_LEN]>::try_from(trailer) {
            Ok(trailer) => Some(Trailer::parse(trailer)),
            Err(_) if trailer.is_empty() => None,
            Err(_) => return Err(Drop::ControlLength),
        };
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&message[at..at + 16]);
            address(octets)
        };
        let (report, activation) = status_of(message[1]);
        let longest = NonZeroU16::new(u16::from_be_bytes([message[2], message[3]]));
        let arrivals = longest.map(|longest| Arrivals { longest, keepalives: message[4] });
        let path = |at: usize| message[at].checked_sub(1).filter(|&path| path < MAX_PATHS as u8);
        Ok(Self {
            report,
            activation,
            arrivals,
            weight: weight::announced(message[5]),
            path: path(6),
            lost: path(7),
            sender: address(8),
            receiver: address(24),
            trailer,
        })
    }
}

impl Trailer {
    fn parse(trailer: &[u8; TRAILER_LEN]) -> Self {
        let word = |at: usize| {
            u32::from_be_bytes([trailer[at], trailer[at + 1], trailer[at + 2], trailer[at + 3]])
        };
        let (time, held) = (word(8), word(12));
        let echo = (held != Echo::NONE).then_some(Echo { time, held });
        Self { sent: word(0), time: word(4), echo }
    }
}

/// The status byte that says this; a path status has the same.
pub(super) fn status_byte(report: Report, activation: Activation) -> u8 {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let standby = bit(activation.standby, STANDBY);
    bit(report.deaf, DEAF) | bit(report.off, OFF) | standby | activation.calls << CALLS_SHIFT
}

/// What a status byte says.
pub(super) fn status_of(byte: u8) -> (Report, Activation) {
    let report = Report { deaf: byte & DEAF != 0, off: byte & OFF != 0 };
    (report, Activation { standby: byte & STANDBY != 0, calls: byte >> CALLS_SHIFT })
}

/// The 16-byte form of an address, IPv4 ones mapped (RFC 4291 section 2.5.5.2).
pub(super) fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The address that has this 16-byte form.
pub(super) fn address(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).to_canonical()
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
        let keepalive = Keepalive::bare([10, 0, 0, 3].into(), [10, 0, 0, 2].into());
        assert_eq!(keepalive.emit(&mut [0xee; LEN]), bytes(CAPTURED));
        assert_eq!(Keepalive::parse(&bytes(CAPTURED)), Ok(keepalive));
    }

    #[test]
    fn reports_and_ipv6_addresses_survive_the_round_trip() {
        for (deaf, off, longest) in
            [(false, false, 0), (true, false, 44), (false, true, 1472), (true, true, u16::MAX)]
        {
            let keepalive = Keepalive {
                report: Report { deaf, off },
                activation: Activation { standby: off == deaf, calls: if deaf { 31 } else { 0 } },
                arrivals: NonZeroU16::new(longest)
                    .map(|longest| Arrivals { longest, keepalives: 200 }),
                weight: NonZeroU16::new(longest.min(31)),
                path: Some(63),
                lost: off.then_some(0),
                sender: "fd00::1".parse().unwrap(),
                receiver: "fd00::2".parse().unwrap(),
                trailer: None,
            };
            assert_eq!(Keepalive::parse(keepalive.emit(&mut [0xee; LEN])), Ok(keepalive));
        }
    }

    #[test]
    fn activation_epochs_wrap() {
        assert_eq!((Activation::next(0), Activation::next(31)), (1, 0));
        for (calls, known, after) in [
            (1, 0, true),
            (0, 31, true),
            (0, 0, false),
            (31, 0, false),
            (16, 0, true),
            (17, 0, false),
        ] {
            assert_eq!(Activation::is_after(calls, known), after, "{calls} after {known}");
        }
    }

    #[test]
    fn trailers_survive_the_round_trip_with_and_without_an_echo() {
        for echo in
            [None, Some(Echo { time: 7, held: 0 }), Some(Echo { time: 0, held: u32::MAX - 1 })]
        {
            let mut keepalive = Keepalive::parse(&bytes(CAPTURED)).unwrap();
            keepalive.trailer = Some(Trailer { sent: 0x0102_0304, time: u32::MAX, echo });
            let mut message = [0xee; LEN];
            let written = keepalive.emit(&mut message);
            assert_eq!(written[..BARE_LEN], bytes(CAPTURED), "the original's frame comes first");
            assert_eq!(written[BARE_LEN..48], [1, 2, 3, 4, 255, 255, 255, 255]);
            assert_eq!(Keepalive::parse(written), Ok(keepalive));
        }
    }

    #[test]
    fn other_commands_and_lengths_are_named() {
        let message = bytes(CAPTURED);
        let longer = [&message[..], &[0; TRAILER_LEN + 1]].concat();
        for end in (1..=longer.len()).filter(|len| ![BARE_LEN, LEN].contains(len)) {
            assert_eq!(Keepalive::parse(&longer[..end]), Err(Drop::ControlLength), "{end}");
        }
        assert_eq!(Keepalive::parse(&[]), Err(Drop::ControlUnknown));
        for command in [0xa0, 0xa2, 0xa3, 0xff] {
            let mut other = message.clone();
            other[0] = command;
            assert_eq!(Keepalive::parse(&other), Err(Drop::ControlUnknown));
        }
    }
}
