//! What a short packet is, as far as it matters to those who send it on. It is found out once.

use crate::wire::inner::Inner;
use crate::wire::segment::{self, Segment};
use crate::wire::upper::{self, TCP, UDP};

/// An IPv6 and a TCP header at their longest: no SYN and no acknowledgement is longer.
const LONGEST_SEGMENT: usize = 120;

/// Longer answers to questions for a name are rare: 512 bytes are allowed without an extension (RFC 1035 section 2.3.4).
const LONGEST_NAME: usize = 600;

/// The port of those who know names (RFC 1035 section 4.2).
const DNS: [u8; 2] = 53_u16.to_be_bytes();

/// What a short packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// A segment of TCP that has little or no data.
    Segment(Segment),
    /// A question for a name, or the answer.
    Name,
    /// Anything else.
    Other,
}

impl Short {
    /// What the packet is of which `inner` was read.
    #[inline(always)]
    pub(crate) fn of(packet: &[u8], inner: &Inner) -> Self {
        if packet.len() > LONGEST_NAME { Self::Other } else { Self::parse(packet, inner) }
    }

    fn parse(packet: &[u8], inner: &Inner) -> Self {
        let Some(upper) = upper::find(packet, inner).filter(|upper| !upper.later_fragment) else {
            return Self::Other;
        };
        match upper.protocol {
            TCP if packet.len() <= LONGEST_SEGMENT => {
                segment::read(packet, inner, upper).map_or(Self::Other, Self::Segment)
            }
            UDP => match packet.get(upper.at..upper.at + 8) {
                Some(header) if header[..2] == DNS || header[2..4] == DNS => Self::Name,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::inner;

    /// A packet of IPv4 or IPv6 with a header of this protocol, ports, and so many bytes.
    fn packet(version: u8, protocol: u8, ports: [u16; 2], len: usize) -> Vec<u8> {
        let mut packet = vec![0; len];
        packet[0] = version << 4 | 5;
        let at = if version == 4 { 20 } else { 40 };
        if version == 4 {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            packet[9] = protocol;
        } else {
            packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            packet[6] = protocol;
        }
        packet[at..at + 2].copy_from_slice(&ports[0].to_be_bytes());
        packet[at + 2..at + 4].copy_from_slice(&ports[1].to_be_bytes());
        if protocol == TCP {
            (packet[at + 12], packet[at + 13]) = (5 << 4, 2);
        }
        packet
    }

    fn short(packet: &[u8]) -> Short {
        Short::of(packet, &inner::parse(packet).unwrap())
    }

    #[test]
    fn names_and_segments_are_found_in_either_version() {
        for version in [4, 6] {
            let shorts = [
                packet(version, UDP, [40_000, 53], 90),
                packet(version, UDP, [53, 40_000], 500),
                packet(version, TCP, [40_000, 443], 60),
                packet(version, TCP, [40_000, 443], 121),
                packet(version, UDP, [53, 40_000], 601),
                packet(version, UDP, [40_000, 443], 90),
            ]
            .map(|packet| short(&packet));
            let syn = Short::Segment(Segment::Syn);
            use Short::{Name, Other};
            assert_eq!(shorts, [Name, Name, syn, Other, Other, Other], "{version}");
        }
    }

    #[test]
    fn what_is_no_header_is_not_read() {
        let mut later = packet(4, UDP, [53, 53], 90);
        later[7] = 1;
        assert_eq!(short(&later), Short::Other);
        assert_eq!(short(&packet(4, UDP, [53, 53], 27)), Short::Other);
    }
}
