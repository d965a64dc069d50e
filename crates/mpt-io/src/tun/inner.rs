//! Inner packets: the positions of their headers, as far as needed for checksums and segments.

use super::checksum::Sum;

/// Longest inner packet, in bytes: the length fields of IP have 16 bits.
pub const MAX_PACKET: usize = 65_535;
/// Bytes of an IPv4 header without options.
pub(super) const IPV4_LEN: usize = 20;
/// Bytes of an IPv6 header without extensions.
pub(super) const IPV6_LEN: usize = 40;
/// Bytes of a UDP header.
pub(super) const UDP_LEN: usize = 8;
/// Bytes of a TCP header without options.
pub(super) const TCP_MIN_LEN: usize = 20;

/// FIN in the flags of a TCP header.
pub(super) const FIN: u8 = 0x01;
/// PSH in the flags of a TCP header.
pub(super) const PSH: u8 = 0x08;
/// ACK in the flags of a TCP header.
pub(super) const ACK: u8 = 0x10;
/// ECE in the flags of a TCP header (RFC 3168).
pub(super) const ECE: u8 = 0x40;
/// CWR in the flags of a TCP header (RFC 3168).
pub(super) const CWR: u8 = 0x80;

/// More fragments, or any place but the first: the packet is a part of another.
pub(super) const FRAGMENT: u16 = 0x3fff;
/// Don't fragment.
pub(super) const DF: u16 = 0x4000;

/// Version of IP, from the first byte of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// A transport whose packets can be segmented and merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// Where the transport header of an inner packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transport {
    pub(super) version: Version,
    pub(super) protocol: Protocol,
    /// Where it starts, in bytes from the start of the packet.
    pub(super) start: usize,
}

/// A checksum field and the part of a packet, from `start` to its end, that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) start: usize,
    pub(super) at: usize,
}

impl Version {
    /// The version of `packet`, if that is one.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Some(Self::V4),
            6 => Some(Self::V6),
            _ => None,
        }
    }

    /// Bytes of the whole packet, as its header claims.
    pub(super) fn claimed_len(self, packet: &[u8]) -> Option<usize> {
        match self {
            Self::V4 => be16(packet, 2).map(usize::from),
            Self::V6 => be16(packet, 4).map(|len| IPV6_LEN + usize::from(len)),
        }
    }
}

impl Protocol {
    /// Its number in an IP header.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// Where the checksum is in its header.
    pub(super) fn checksum_offset(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => UDP_CHECKSUM,
        }
    }

    /// The protocol of a number in an IP header.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

impl Transport {
    /// Finds TCP or UDP in `packet`: behind IPv4 options and the IPv6 extension headers that routers
    /// or the destination look at on the way (RFC 8200, section 4), but not in fragments, where the
    /// transport header may be elsewhere, and not behind what encrypts or authenticates.
    pub(super) fn find(packet: &[u8]) -> Option<Self> {
        let version = Version::of(packet)?;
        let start = ip_header_len(packet)?;
        let (number, start) = match version {
            Version::V4 if be16(packet, 6)? & FRAGMENT != 0 => return None,
            Version::V4 => (packet[9], start),
            Version::V6 => skip_extensions(packet)?,
        };
        Some(Self { version, protocol: Protocol::from_number(number)?, start })
    }

    /// The field of its checksum.
    pub(super) fn field(self) -> Field {
        Field { start: self.start, at: self.start + self.protocol.checksum_offset() }
    }

    /// Bytes of all headers of `packet`, the transport's included, if it is long enough for them.
    pub(super) fn headers_len(self, packet: &[u8]) -> Option<usize> {
        let len = match self.protocol {
            Protocol::Tcp => usize::from(packet.get(self.start + 12)? >> 4) * 4,
            Protocol::Udp => UDP_LEN,
        };
        let least = if self.protocol == Protocol::Tcp { TCP_MIN_LEN } else { UDP_LEN };
        (len >= least && self.start + len <= packet.len()).then_some(self.start + len)
    }

    /// The transport of a packet that lacks its checksum and shows it: where the checksum belongs
    /// there is the sum of the pseudo header.
    pub(super) fn of_partial(packet: &[u8]) -> Option<Self> {
        let found = Self::find(packet)?;
        found.headers_len(packet)?;
        found.is_partial(packet).then_some(found)
    }

    /// Whether the checksum field of `packet`, which has room for it, holds the sum of the pseudo
    /// header. Behind a routing header it never does: the sum is about another address.
    pub(super) fn is_partial(self, packet: &[u8]) -> bool {
        let pseudo_header = self.pseudo_header(packet, packet.len() - self.start);
        be16(packet, self.field().at) == Some(pseudo_header.partial())
    }

    /// Sum of the pseudo header for `len` bytes of transport (RFC 9293, section 3.1; RFC 8200,
    /// section 8.1), with the addresses that stand in the IP header of `packet`.
    pub(super) fn pseudo_header(self, packet: &[u8], len: usize) -> Sum {
        let addresses = match self.version {
            Version::V4 => &packet[12..IPV4_LEN],
            Version::V6 => &packet[8..IPV6_LEN],
        };
        Sum::of(addresses).word(u16::from(self.protocol.number())).long(len as u32)
    }
}

impl Field {
    /// Where the field ends.
    pub(super) fn end(self) -> usize {
        self.at + 2
    }

    /// Completes the checksum of `packet`, whose field holds the sum of the pseudo header.
    pub(super) fn complete(self, packet: &mut [u8]) {
        let sum = Sum::of(&packet[self.start..]);
        self.write(packet, sum);
    }

    /// Copies `packet` to `place` and completes the checksum there, in one pass.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub(super) fn complete_copy(self, packet: &[u8], place: &mut [u8]) {
        let (before, covered) = packet.split_at(self.start);
        let (before_place, covered_place) = place.split_at_mut(self.start);
        before_place.copy_from_slice(before);
        let sum = Sum::of_copied(covered, covered_place);
        self.write(place, sum);
    }

    /// Writes the checksum of a packet in which all that it covers has this `sum`.
    fn write(self, packet: &mut [u8], sum: Sum) {
        let checksum = sum.checksum();
        // In UDP a checksum of zero means that there is none (RFC 768).
        let is_udp = self.at - self.start == UDP_CHECKSUM;
        put16(packet, self.at, if is_udp && checksum == 0 { 0xffff } else { checksum });
    }
}

/// Where the checksum is in a UDP header.
const UDP_CHECKSUM: usize = 6;

/// Bytes of the IP header of `packet`, without IPv6 extensions, if it is complete.
pub(super) fn ip_header_len(packet: &[u8]) -> Option<usize> {
    let len = match Version::of(packet)? {
        Version::V4 => usize::from(packet[0] & 0xf) * 4,
        Version::V6 => IPV6_LEN,
    };
    (IPV4_LEN..=packet.len()).contains(&len).then_some(len)
}

/// The 16-bit field at `at`, if it lies within `packet`.
pub(super) fn be16(packet: &[u8], at: usize) -> Option<u16> {
    packet.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// The 32-bit field at `at`, if it lies within `packet`.
pub(super) fn be32(packet: &[u8], at: usize) -> Option<u32> {
    packet.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Writes the 16-bit field at `at`.
pub(super) fn put16(packet: &mut [u8], at: usize, value: u16) {
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes the 32-bit field at `at`.
pub(super) fn put32(packet: &mut [u8], at: usize, value: u32) {
    packet[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// The first header that is no hop-by-hop, routing or destination options header, and its place.
fn skip_extensions(packet: &[u8]) -> Option<(u8, usize)> {
    let (mut number, mut at) = (packet[6], IPV6_LEN);
    while matches!(number, 0 | 43 | 60) {
        let &[next, len] = packet.get(at..)?.first_chunk()?;
        number = next;
        at += 8 + usize::from(len) * 8;
    }
    Some((number, at))
}

#[cfg(test)]
mod tests {
    use etherparse::{IpNumber, Ipv6ExtensionsSlice, PacketBuilder};

    use super::*;

    fn ipv4(payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(7, 9);
        builder.write(&mut packet, payload).unwrap();
        packet
    }

    fn ipv6(payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(7, 9, 1, 100).ack(5);
        builder.write(&mut packet, payload).unwrap();
        packet
    }

    /// `packet` with extension headers of these numbers and lengths (in units of 8 bytes beyond the
    /// first) put in.
    fn extended(packet: &[u8], extensions: &[(u8, u8)]) -> Vec<u8> {
        let mut next = packet[6];
        let mut chain = Vec::new();
        for &(number, len) in extensions.iter().rev() {
            let mut header = vec![0; 8 + usize::from(len) * 8];
            (header[0], header[1]) = (next, len);
            chain.splice(..0, header);
            next = number;
        }
        let mut packet = [&packet[..IPV6_LEN], &chain, &packet[IPV6_LEN..]].concat();
        packet[6] = next;
        packet
    }

    #[test]
    fn transport_is_found_where_another_parser_finds_it() {
        let plain = ipv6(b"x");
        for extensions in [&[][..], &[(0, 0)], &[(60, 2)], &[(0, 1), (60, 0), (43, 2), (60, 0)]] {
            let packet = extended(&plain, extensions);
            let (_, number, rest) =
                Ipv6ExtensionsSlice::from_slice(IpNumber(packet[6]), &packet[IPV6_LEN..]).unwrap();
            let found = Transport::find(&packet).unwrap();
            assert_eq!(found.protocol.number(), number.0);
            assert_eq!(found.start, packet.len() - rest.len());
            assert_eq!(found.headers_len(&packet), Some(packet.len() - 1));
        }
    }

    #[test]
    fn fragments_and_other_protocols_have_no_transport() {
        let mut packet = ipv4(b"x");
        let found = Transport::find(&packet).unwrap();
        assert_eq!((found.start, found.field().at), (20, 26));
        for fragment in [0x2000_u16, 1, 0x3fff] {
            put16(&mut packet, 6, fragment);
            assert_eq!(Transport::find(&packet), None);
        }
        put16(&mut packet, 6, DF);
        assert!(Transport::find(&packet).is_some());
        packet[9] = 1;
        assert_eq!(Transport::find(&packet), None);
        assert_eq!(Transport::find(&extended(&ipv6(b"x"), &[(0, 0), (44, 0)])), None);
    }

    #[test]
    fn a_cut_packet_has_no_transport_or_no_room_for_it() {
        let whole = extended(&ipv6(b""), &[(0, 1), (60, 3)]);
        for len in 0..whole.len() {
            let cut = &whole[..len];
            let headers = Transport::find(cut).and_then(|found| found.headers_len(cut));
            assert_eq!(headers, None, "{len}");
        }
        assert!(Transport::find(&whole).unwrap().headers_len(&whole).is_some());
    }

    #[test]
    fn a_completed_checksum_is_the_one_that_another_library_computes() {
        for payload in [&b""[..], b"o", b"even", b"an odd one"] {
            for expected in [ipv4(payload), ipv6(payload)] {
                let found = Transport::find(&expected).unwrap();
                let mut packet = expected.clone();
                let len = packet.len() - found.start;
                let pseudo = found.pseudo_header(&packet, len).partial();
                put16(&mut packet, found.field().at, pseudo);
                found.field().complete(&mut packet);
                assert_eq!(packet, expected);
            }
        }
    }

    #[test]
    fn a_udp_checksum_of_zero_is_sent_as_ones() {
        // The payload is chosen so that the sum comes to all ones.
        let mut packet = ipv4(&[0, 0]);
        let found = Transport::find(&packet).unwrap();
        let checksum = be16(&packet, found.field().at).unwrap();
        put16(&mut packet, 28, checksum);
        let pseudo = found.pseudo_header(&packet, 10).partial();
        put16(&mut packet, 26, pseudo);
        found.field().complete(&mut packet);
        assert_eq!(be16(&packet, 26), Some(0xffff));
    }
}
