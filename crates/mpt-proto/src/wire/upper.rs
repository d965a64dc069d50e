//! Where the upper-layer header of an inner packet is, behind IPv4 options or IPv6 extension headers.
//!
//! Used only by code that parses TCP or ICMP. All loops are bounded: by the packet's length, and by
//! a limit of extension headers.

use crate::wire::gre::Protocol;
use crate::wire::inner::Inner;

/// ICMP for IPv4 (RFC 792).
pub(crate) const ICMP: u8 = 1;
/// TCP (RFC 9293).
pub(crate) const TCP: u8 = 6;
/// UDP (RFC 768).
pub(crate) const UDP: u8 = 17;
/// ICMP for IPv6 (RFC 4443).
pub(crate) const ICMPV6: u8 = 58;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

/// The most headers that are walked. Each kind appears once and destination options twice (RFC 8200
/// section 4.1), which makes nine of those that are known here.
const MAX_EXTENSIONS: usize = 9;

/// The upper-layer header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upper {
    /// Its protocol number. In a [later fragment](Self::later_fragment) of IPv6 it may be that of an
    /// extension header that begins what was fragmented.
    pub(crate) protocol: u8,
    /// Where it begins, in bytes from the packet's start; not beyond the packet's end.
    pub(crate) at: usize,
    /// The packet is a fragment other than the first: no header is there, only data.
    pub(crate) later_fragment: bool,
    /// An authentication header (RFC 4302) stands before it: a change of the packet breaks it.
    pub(crate) authenticated: bool,
}

/// Finds it in `packet`, of which `inner` was read; `None` if the chain of headers leads out of the
/// packet or does not end.
pub(crate) fn find(packet: &[u8], inner: &Inner) -> Option<Upper> {
    let packet = packet.get(..inner.len)?;
    match inner.protocol {
        Protocol::Ipv4 => {
            let fragment_offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff;
            let upper = Upper {
                protocol: packet[9],
                at: usize::from(packet[0] & 0x0f) * 4,
                later_fragment: fragment_offset != 0,
                authenticated: false,
            };
            let beyond_one = |upper: Upper| match upper.protocol {
                AUTHENTICATION => behind_extension(packet, upper),
                _ => Some(upper),
            };
            if upper.later_fragment { Some(upper) } else { beyond_one(upper) }
        }
        Protocol::Ipv6 => {
            let first =
                Upper { protocol: packet[6], at: 40, later_fragment: false, authenticated: false };
            walk(packet, first)
        }
    }
}

fn walk(packet: &[u8], mut upper: Upper) -> Option<Upper> {
    for _ in 0..=MAX_EXTENSIONS {
        if upper.later_fragment || !is_extension(upper.protocol) {
            return Some(upper);
        }
        upper = behind_extension(packet, upper)?;
    }
    None
}

/// Whether a header of this kind begins with the number of the next and says how long it is.
fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION
            | MOBILITY
            | HOST_IDENTITY
            | SHIM6
    )
}

/// What stands behind the extension header at `upper`.
fn behind_extension(packet: &[u8], upper: Upper) -> Option<Upper> {
    let header: &[u8; 4] = packet.get(upper.at..)?.first_chunk()?;
    let (len, later_fragment) = match upper.protocol {
        FRAGMENT => (8, u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0),
        AUTHENTICATION => ((usize::from(header[1]) + 2) * 4, false),
        _ => ((usize::from(header[1]) + 1) * 8, false),
    };
    let at = upper.at + len;
    let authenticated = upper.authenticated || upper.protocol == AUTHENTICATION;
    (at <= packet.len()).then_some(Upper { protocol: header[0], at, later_fragment, authenticated })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use etherparse::{IpFragOffset, Ipv4Header, Ipv6FragmentHeader, Ipv6RawExtHeader};
    use proptest::prelude::*;

    use super::*;
    use crate::wire::inner;

    fn found(packet: &[u8]) -> Option<Upper> {
        find(packet, &inner::parse(packet).expect("a whole packet"))
    }

    /// An IPv6 packet with these extension headers, each as kind and bytes behind the first.
    fn ipv6(chain: &[(u8, &[u8])], last: u8, payload: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for (place, (_, rest)) in chain.iter().enumerate() {
            body.push(chain.get(place + 1).map_or(last, |(kind, _)| *kind));
            body.extend_from_slice(rest);
        }
        body.extend_from_slice(payload);
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        packet[6] = chain.first().map_or(last, |(kind, _)| *kind);
        packet.extend(body);
        packet
    }

    #[test]
    fn ipv4_options_are_skipped_and_later_fragments_detected() {
        let mut header = Ipv4Header::new(20, 64, TCP.into(), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.options = (&[1_u8; 8][..]).try_into().unwrap();
        header.set_payload_len(20).unwrap();
        let mut packet = [header.to_bytes().to_vec(), vec![0; 20]].concat();
        let upper = found(&packet).unwrap();
        assert_eq!((upper.protocol, upper.at, upper.later_fragment), (TCP, 28, false));
        packet[6] = 0x20;
        assert!(!found(&packet).unwrap().later_fragment, "more fragments, offset 0: the first");
        packet[7] = 1;
        assert!(found(&packet).unwrap().later_fragment);
    }

    #[test]
    fn extension_headers_are_walked_as_another_library_walks_them() {
        let raw = |next: u8, len: usize| {
            Ipv6RawExtHeader::new_raw(next.into(), &vec![0; len][..]).unwrap().to_bytes()
        };
        let fragment = |next: u8, offset: u16| {
            let offset = IpFragOffset::try_new(offset).unwrap();
            Ipv6FragmentHeader::new(next.into(), offset, true, 7).to_bytes()
        };
        for offset in [0, 100] {
            let body = [
                raw(DESTINATION, 14).to_vec(),
                raw(FRAGMENT, 6).to_vec(),
                fragment(TCP, offset).to_vec(),
                vec![0; 20],
            ]
            .concat();
            let mut packet = vec![0; 40];
            packet[0] = 0x60;
            packet[5] = body.len() as u8;
            packet[6] = HOP_BY_HOP;
            packet.extend(body);
            let upper = found(&packet).unwrap();
            assert_eq!((upper.protocol, upper.at), (TCP, 40 + 16 + 8 + 8));
            assert_eq!(upper.later_fragment, offset != 0);
            let sliced = etherparse::SlicedPacket::from_ip(&packet).unwrap();
            let etherparse::NetSlice::Ipv6(theirs) = sliced.net.unwrap() else { panic!() };
            assert_eq!(theirs.payload().payload, &packet[upper.at..]);
            assert_eq!(u8::from(theirs.payload().ip_number), upper.protocol);
        }
    }

    #[test]
    fn authentication_is_noticed_in_either_version() {
        let header = [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let packet = ipv6(&[(AUTHENTICATION, &header)], TCP, &[0; 20]);
        let upper = found(&packet).unwrap();
        assert_eq!((upper.protocol, upper.at, upper.authenticated), (TCP, 64, true));

        let mut packet = vec![0; 64];
        packet[0] = 0x45;
        packet[3] = 64;
        packet[9] = AUTHENTICATION;
        packet[20..22].copy_from_slice(&[TCP, 4]);
        let upper = found(&packet).unwrap();
        assert_eq!((upper.protocol, upper.at, upper.authenticated), (TCP, 44, true));
    }

    #[test]
    fn chains_that_lead_out_or_do_not_end_are_refused() {
        let options: &[u8] = &[0; 7];
        for (count, expected) in [(9, true), (10, false), (100, false)] {
            let chain = vec![(DESTINATION, options); count];
            assert_eq!(found(&ipv6(&chain, TCP, &[0; 20])).is_some(), expected, "{count}");
        }
        let lying: &[u8] = &[3, 0, 0, 0, 0, 0, 0];
        assert_eq!(found(&ipv6(&[(ROUTING, lying)], TCP, &[0; 20])), None);
        assert_eq!(found(&ipv6(&[], FRAGMENT, &[TCP, 0, 0])), None, "cut off");
        let nothing = found(&ipv6(&[], TCP, &[])).unwrap();
        assert_eq!(nothing.at, 40, "the end of the packet is still in it");
    }

    proptest! {
        #[test]
        fn never_points_beyond_the_packet(
            mut packet in prop::collection::vec(any::<u8>(), 40..200),
            kinds in prop::collection::vec(prop::sample::select(
                vec![HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION, TCP]), 8),
            version in prop::sample::select(vec![0x45_u8, 0x4f, 0x60]),
            step in any::<NonZeroU8>(),
        ) {
            packet[0] = version;
            let len = packet.len() as u16;
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            if version == 0x60 {
                packet[4..6].copy_from_slice(&(len - 40).to_be_bytes());
                packet[6] = kinds[0];
            } else {
                packet[9] = kinds[0];
            }
            // Next-header fields where short headers have them.
            for (place, byte) in packet[40..].iter_mut().enumerate() {
                match place % 8 {
                    0 => *byte = kinds[(place / 8) % kinds.len()],
                    1 => *byte %= step.get() % 3 + 1,
                    _ => {}
                }
            }
            if let Some(inner) = inner::parse(&packet)
                && let Some(upper) = find(&packet, &inner)
            {
                prop_assert!(upper.at <= packet.len());
            }
        }
    }
}
