//! The header of every datagram of extended framing.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-----------+-------+-------------------------------+
//! |0|0|1|S|0 0| reserved  |  Ver  |            0x88b5             |
//! |  key: connection index of the receiver                        |
//! |  sequence number: global sequence (data only)                 |
//! | type  | flags |    path id    |         flow distance         |
//! |  path sequence                                                |
//! |  send timestamp, in microseconds                              |
//! +---------------------------------------------------------------+
//! ```
//!
//! The first three words are those of GRE (RFC 2784, RFC 2890). A checksum is never present, the key always,
//! and the sequence number in data alone. So there are two lengths, and the first word has two values.

use std::ops::BitOr;

use crate::sequence::Seq;
use crate::stats::Drop;

/// The protocol type: Local Experimental Ethertype 1 of IEEE Std 802.
pub const ETHER_TYPE: u16 = 0x88b5;

/// The bytes of the header of data.
pub const DATA_LEN: usize = 24;

/// The bytes of the header of a control message.
pub const CONTROL_LEN: usize = 20;

/// The path id of a datagram that belongs to no path.
pub const NO_PATH: u8 = 255;

/// The first word of control: K alone.
const CONTROL_WORD: u32 = 0x2000_0000 | ETHER_TYPE as u32;
/// The first word of data: K and S.
const DATA_WORD: u32 = 0x3000_0000 | ETHER_TYPE as u32;
/// Bits 6 to 12, which a receiver ignores (RFC 2784 section 2.3).
const IGNORED: u32 = 0x03f8_0000;
const VERSION: u32 = 0x0007_0000;

/// What a datagram carries: the high four bits of the first byte after the GRE header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An inner packet.
    Data,
    /// A request to begin a session.
    Hello,
    /// The answer to a hello.
    HelloAnswer,
    /// The first message of a handshake of sealed framing.
    HandshakeInitiation,
    /// The second message of a handshake of sealed framing.
    HandshakeResponse,
    /// A question whether an origin receives what is sent to it.
    PathChallenge,
    /// The answer to a path challenge.
    PathAnswer,
    /// What has arrived on the paths of the receiver of this message.
    Feedback,
    /// What was sent last on a path.
    Beacon,
    /// The keepalive of extended framing.
    PathStatus,
    /// The end of a session, or that there is none.
    Close,
    /// The answer to a hello answer, which begins the session.
    HelloConfirm,
    /// What brings packets of a group back that are lost.
    Parity,
    /// What a responder of sealed framing asks for under load.
    CookieReply,
    /// A type without a meaning, 15; and 14, which is data with [`Flags::COVERED`], where data cannot be.
    Unassigned(u8),
}

impl Kind {
    /// The number of the type, 0 to 15.
    #[inline(always)]
    pub const fn number(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Hello => 1,
            Self::HelloAnswer => 2,
            Self::HandshakeInitiation => 3,
            Self::HandshakeResponse => 4,
            Self::PathChallenge => 5,
            Self::PathAnswer => 6,
            Self::Feedback => 7,
            Self::Beacon => 8,
            Self::PathStatus => 9,
            Self::Close => 10,
            Self::HelloConfirm => 11,
            Self::Parity => 12,
            Self::CookieReply => 13,
            Self::Unassigned(number) => number & 0x0f,
        }
    }

    /// The type with this number; only the low four bits count.
    pub const fn from_number(number: u8) -> Self {
        match number & 0x0f {
            0 => Self::Data,
            1 => Self::Hello,
            2 => Self::HelloAnswer,
            3 => Self::HandshakeInitiation,
            4 => Self::HandshakeResponse,
            5 => Self::PathChallenge,
            6 => Self::PathAnswer,
            7 => Self::Feedback,
            8 => Self::Beacon,
            9 => Self::PathStatus,
            10 => Self::Close,
            11 => Self::HelloConfirm,
            12 => Self::Parity,
            13 => Self::CookieReply,
            number => Self::Unassigned(number),
        }
    }
}

/// The flags of data; the low four bits of the first byte after the GRE header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// P: the checksum field of the inner packet's TCP or UDP header holds only the sum of the pseudo-header.
    pub const PARTIAL: Self = Self(0x08);
    /// Y: sent out of turn, before packets with lower global sequences that wait for the same path, or not for the
    /// first time.
    pub const OUT_OF_TURN: Self = Self(0x04);
    /// T: no further packet waits at the sender.
    pub const TAIL: Self = Self(0x02);
    /// E: the packet may be held until the delay that path status names has passed.
    pub const EQUALISE: Self = Self(0x01);
    /// The packet is one of a group of which parity is sent. This is no flag of its own: such data has the type
    /// [14](Self::COVERED_TYPE) in place of 0.
    pub const COVERED: Self = Self(Self::COVERED_TYPE << 4);
    /// The type of data that parity covers.
    pub const COVERED_TYPE: u8 = 14;

    /// Whether all of `flags` are set.
    #[inline(always)]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// All but `flags`.
    #[inline(always)]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// The flags as they stand on the wire, 0 to 15.
    pub const fn value(self) -> u8 {
        self.0 & 0x0f
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The index under which the receiver knows the connection; 0 if it knows none yet.
    pub key: u32,
    /// The place of an inner packet in the order of all paths. Data has one, and nothing else has.
    pub sequence: Option<Seq>,
    /// What follows the header.
    pub kind: Kind,
    /// How data is to be treated; [`Flags::NONE`] in control.
    pub flags: Flags,
    /// The sender's number for the path, 0 to 254; [`NO_PATH`] if the datagram belongs to none.
    pub path: u8,
    /// How many global sequence numbers ago the previous packet of the same flow bucket was sent. 0: there is
    /// none in this session; 65535: at least as many. 0 in control.
    pub distance: u16,
    /// The number of the datagram among all of its path; 0 in messages that are not counted.
    pub path_sequence: u32,
    /// When it was sent, in microseconds of the sender's monotonic clock, modulo 2^32.
    pub sent: u32,
}

impl Header {
    /// The bytes that the header takes: [`DATA_LEN`] or [`CONTROL_LEN`].
    #[inline(always)]
    pub const fn size(&self) -> usize {
        if self.sequence.is_some() { DATA_LEN } else { CONTROL_LEN }
    }

    /// Writes the header at the start of `datagram`. In control, flags and distance are written as zero.
    ///
    /// # Panics
    ///
    /// If `datagram` is shorter than [`Header::size`].
    #[inline(always)]
    pub fn emit(&self, datagram: &mut [u8]) {
        debug_assert_eq!(self.kind == Kind::Data, self.sequence.is_some());
        let path = u32::from(self.path) << 16;
        if let Some(sequence) = self.sequence {
            let flags = u32::from(self.flags.0) << 24;
            let word = flags | path | u32::from(self.distance);
            let words =
                [DATA_WORD, self.key, sequence.value(), word, self.path_sequence, self.sent];
            put(words, &mut datagram[..DATA_LEN]);
        } else {
            let word = u32::from(self.kind.number()) << 28 | path;
            let words = [CONTROL_WORD, self.key, word, self.path_sequence, self.sent];
            put(words, &mut datagram[..CONTROL_LEN]);
        }
    }

    /// Reads the header of a datagram for which [`is_extended`] holds. What it carries begins at its
    /// [`size`](Self::size).
    ///
    /// # Errors
    ///
    /// [`Drop::GreVersion`]; [`Drop::GreFlags`] if a bit that must be zero is set, the checksum bit is set, the
    /// key is missing, or the sequence number is missing in data or present in control;
    /// [`Drop::GreTruncated`], [`Drop::ExtendedTruncated`]. For a datagram of another protocol type
    /// [`Drop::GreProtocol`].
    #[inline(always)]
    pub fn parse(datagram: &[u8]) -> Result<Self, Drop> {
        match Self::parse_data(datagram) {
            Some(header) => Ok(header),
            None => parse_any(datagram),
        }
    }

    /// Reads the header of data in which no ignored bit is set, as nearly every datagram is; `None` stands for
    /// all others. A caller that handles data apart from the rest takes this first: the fields stay in registers,
    /// which after [`parse`](Self::parse) they do not.
    #[inline(always)]
    pub fn parse_data(datagram: &[u8]) -> Option<Self> {
        let header = datagram.first_chunk::<DATA_LEN>()?;
        let word = |number: usize| word(header, number);
        if word(0) != DATA_WORD || word(3) >> 28 != 0 {
            return None;
        }
        Some(Self {
            key: word(1),
            sequence: Some(Seq::new(word(2))),
            kind: Kind::Data,
            flags: Flags((word(3) >> 24) as u8),
            path: (word(3) >> 16) as u8,
            distance: word(3) as u16,
            path_sequence: word(4),
            sent: word(5),
        })
    }
}

/// Whether a datagram has the protocol type of extended framing. Whether the rest of its header is right is
/// for [`Header::parse`] to say.
#[inline(always)]
pub fn is_extended(datagram: &[u8]) -> bool {
    datagram.first_chunk::<4>().is_some_and(|word| [word[2], word[3]] == ETHER_TYPE.to_be_bytes())
}

/// [`Header::parse`] for every datagram.
#[inline(never)]
fn parse_any(datagram: &[u8]) -> Result<Header, Drop> {
    let words = datagram.as_chunks::<4>().0;
    let word = |number: usize| words.get(number).map(|bytes| u32::from_be_bytes(*bytes));
    let first = word(0).ok_or(Drop::GreTruncated)?;
    let sequenced = match first & !IGNORED {
        CONTROL_WORD => false,
        DATA_WORD => true,
        _ if first & VERSION != 0 => return Err(Drop::GreVersion),
        _ if is_extended(datagram) => return Err(Drop::GreFlags),
        _ => return Err(Drop::GreProtocol),
    };
    let key = word(1).ok_or(Drop::GreTruncated)?;
    let sequence = if sequenced { Some(word(2).ok_or(Drop::GreTruncated)?) } else { None };
    let at = if sequenced { 3 } else { 2 };
    let (Some(third), Some(path_sequence), Some(sent)) = (word(at), word(at + 1), word(at + 2))
    else {
        return Err(Drop::ExtendedTruncated);
    };
    let (number, covered) = ((third >> 28) as u8, Flags::COVERED_TYPE);
    let is_covered = number == covered && sequenced;
    let kind = if is_covered { Kind::Data } else { Kind::from_number(number) };
    if (kind == Kind::Data) != sequenced {
        return Err(Drop::GreFlags);
    }
    // Of no meaning in control, so nobody shall find any.
    let (flags, distance) =
        if sequenced { (Flags((third >> 24) as u8), third as u16) } else { (Flags::NONE, 0) };
    let sequence = sequence.map(Seq::new);
    let path = (third >> 16) as u8;
    Ok(Header { key, sequence, kind, flags, path, distance, path_sequence, sent })
}

#[inline(always)]
fn word(header: &[u8; DATA_LEN], number: usize) -> u32 {
    let at = 4 * number;
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

#[inline(always)]
fn put<const N: usize>(words: [u32; N], place: &mut [u8]) {
    for (place, word) in place.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
