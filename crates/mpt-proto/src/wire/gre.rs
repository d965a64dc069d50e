//! The GRE header, version 0 (RFC 2784), with key and sequence number (RFC 2890), as the payload of
//! UDP (RFC 8086).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-------------+-------+-------------------------------+
//! |C|0|K|S| 0 | reserved  |  Ver  |         protocol type         |
//! +-+-+-+-+---+-----------+-------+-------------------------------+
//! |  checksum (if C)              |  reserved (if C)              |
//! |  key (if K)                                                   |
//! |  sequence number (if S)                                       |
//! +---------------------------------------------------------------+
//! ```

use crate::sequence::Seq;
use crate::stats::Drop;
use crate::wire::checksum;

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Bits 1, 4 and 5. RFC 2784 section 2.3 has a receiver discard a packet with any of bits 1 to 5
/// set; RFC 2890 gave two of them back a meaning. Bits 6 to 12 are ignored on reception.
const MUST_BE_ZERO: u16 = 0x4c00;
const VERSION: u16 = 0x0007;

/// The longest header that [`Header::emit`] writes: four fields of four bytes.
pub const MAX_LEN: usize = 16;

/// What a datagram carries, by its protocol type (an EtherType).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// 0x0800.
    Ipv4,
    /// 0x86DD.
    Ipv6,
}

impl Protocol {
    /// The EtherType.
    pub const fn ether_type(self) -> u16 {
        match self {
            Self::Ipv4 => 0x0800,
            Self::Ipv6 => 0x86dd,
        }
    }
}

/// A GRE header to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The protocol of the payload.
    pub protocol: Protocol,
    /// Whether the checksum field is present (C).
    pub checksum: bool,
    /// The key (K), if present.
    pub key: Option<u32>,
    /// The sequence number (S), if present.
    pub sequence: Option<Seq>,
}

impl Header {
    /// The bytes this header takes: 4 to [`MAX_LEN`].
    pub const fn size(&self) -> usize {
        options_len(self.checksum, self.key.is_some(), self.sequence.is_some())
    }

    /// Writes the header at the start of `datagram`, whose payload is already in place behind it:
    /// the checksum covers both.
    ///
    /// # Panics
    ///
    /// If `datagram` is shorter than [`Header::size`].
    pub fn emit(&self, datagram: &mut [u8]) {
        let mut flags = 0;
        let mut at = 4;
        if self.checksum {
            flags |= CHECKSUM;
            datagram[at..at + 4].fill(0);
            at += 4;
        }
        if let Some(key) = self.key {
            flags |= KEY;
            datagram[at..at + 4].copy_from_slice(&key.to_be_bytes());
            at += 4;
        }
        if let Some(sequence) = self.sequence {
            flags |= SEQUENCE;
            datagram[at..at + 4].copy_from_slice(&sequence.value().to_be_bytes());
        }
        datagram[0..2].copy_from_slice(&flags.to_be_bytes());
        datagram[2..4].copy_from_slice(&self.protocol.ether_type().to_be_bytes());
        if self.checksum {
            let sum = checksum::internet(datagram);
            datagram[4..6].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// A received datagram, checked and taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its header; a checksum that was present was right.
    pub header: Header,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// Parses a datagram, or returns the reason to drop it.
///
/// # Errors
///
/// One of the drops whose names begin with `gre_`, except [`Drop::GreKey`], which needs the
/// connection.
#[inline(always)]
pub fn parse(datagram: &[u8]) -> Result<Datagram<'_>, Drop> {
    let word = |at: usize| -> Result<[u8; 4], Drop> {
        let bytes = datagram.get(at..at + 4).ok_or(Drop::GreTruncated)?;
        Ok([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let [first, second, type_high, type_low] = word(0)?;
    let flags = u16::from_be_bytes([first, second]);
    if flags & VERSION != 0 {
        return Err(Drop::GreVersion);
    }
    if flags & MUST_BE_ZERO != 0 {
        return Err(Drop::GreFlags);
    }
    let protocol = match u16::from_be_bytes([type_high, type_low]) {
        0x0800 => Protocol::Ipv4,
        0x86dd => Protocol::Ipv6,
        _ => return Err(Drop::GreProtocol),
    };
    let mut at = 4;
    let checksum = flags & CHECKSUM != 0;
    if checksum {
        word(at)?;
        at += 4;
    }
    let mut key = None;
    if flags & KEY != 0 {
        key = Some(u32::from_be_bytes(word(at)?));
        at += 4;
    }
    let mut sequence = None;
    if flags & SEQUENCE != 0 {
        sequence = Some(Seq::new(u32::from_be_bytes(word(at)?)));
        at += 4;
    }
    if checksum && checksum::internet(datagram) != 0 {
        return Err(Drop::GreChecksum);
    }
    let header = Header { protocol, checksum, key, sequence };
    Ok(Datagram { header, payload: &datagram[at..] })
}

/// The length of a header with these optional fields.
pub const fn options_len(checksum: bool, key: bool, sequence: bool) -> usize {
    4 + 4 * (checksum as usize + key as usize + sequence as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ICMP echo that was captured from the original MPT, sequence 4.
    const CAPTURED: [u8; 12] =
        [0x10, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x04, 0x45, 0x00, 0x00, 0x30];

    fn emitted(header: &Header, payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0xee; header.size()];
        datagram.extend_from_slice(payload);
        header.emit(&mut datagram);
        datagram
    }

    #[test]
    fn reads_and_writes_the_original_frames() {
        let parsed = parse(&CAPTURED).unwrap();
        assert_eq!(parsed.header.sequence, Some(Seq::new(4)));
        assert_eq!(parsed.header.protocol, Protocol::Ipv4);
        assert_eq!(parsed.payload, &CAPTURED[8..]);
        assert_eq!(emitted(&parsed.header, parsed.payload), CAPTURED);
    }

    #[test]
    fn every_combination_of_fields_survives_the_round_trip() {
        for bits in 0..8 {
            let header = Header {
                protocol: Protocol::Ipv6,
                checksum: bits & 1 != 0,
                key: (bits & 2 != 0).then_some(0xdead_beef),
                sequence: (bits & 4 != 0).then_some(Seq::new(u32::MAX)),
            };
            let datagram = emitted(&header, b"odd");
            let parsed = parse(&datagram).unwrap();
            assert_eq!(parsed, Datagram { header, payload: b"odd" });
            for end in 0..header.size() {
                assert_eq!(parse(&datagram[..end]), Err(Drop::GreTruncated), "cut at {end}");
            }
        }
    }

    #[test]
    fn a_wrong_checksum_is_a_drop_wherever_the_bit_flipped() {
        let header =
            Header { protocol: Protocol::Ipv4, checksum: true, key: Some(7), sequence: None };
        let datagram = emitted(&header, &[0x45; 21]);
        for byte in 4..datagram.len() {
            let mut broken = datagram.clone();
            broken[byte] ^= 0x10;
            assert_eq!(parse(&broken), Err(Drop::GreChecksum), "byte {byte}");
        }
    }

    #[test]
    fn reserved1_is_sent_as_zero_and_ignored() {
        let header = Header { protocol: Protocol::Ipv4, checksum: true, key: None, sequence: None };
        let mut datagram = emitted(&header, b"odd");
        assert_eq!(datagram[6..8], [0, 0]);
        datagram[4..8].copy_from_slice(&[0, 0, 0xab, 0xcd]);
        assert_eq!(parse(&datagram), Err(Drop::GreChecksum), "the sum covers it");
        let sum = checksum::internet(&datagram);
        datagram[4..6].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(parse(&datagram), Ok(Datagram { header, payload: b"odd" }));
    }

    #[test]
    fn foreign_headers_are_named() {
        let with = |flags: [u8; 2], ether_type: [u8; 2]| {
            let mut datagram = CAPTURED;
            datagram[0..2].copy_from_slice(&flags);
            datagram[2..4].copy_from_slice(&ether_type);
            parse(&datagram).map(|_| ())
        };
        assert_eq!(with([0x10, 0x01], [0x08, 0x00]), Err(Drop::GreVersion));
        for reserved in [0x40, 0x08, 0x04] {
            assert_eq!(with([reserved, 0x00], [0x08, 0x00]), Err(Drop::GreFlags));
        }
        assert_eq!(with([0x13, 0xf8], [0x08, 0x00]), Ok(()), "bits 6 to 12 are ignored");
        assert_eq!(with([0x10, 0x00], [0x65, 0x58]), Err(Drop::GreProtocol));
    }
}
