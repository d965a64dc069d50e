//! The few fields of an inner packet that decide where it goes and whether it is whole.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::wire::gre::Protocol;

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;

/// The parsed fields of an inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inner {
    /// Its IP version, as the protocol type that carries it.
    pub protocol: Protocol,
    /// Its source address.
    pub source: IpAddr,
    /// Its destination address.
    pub destination: IpAddr,
    /// Its type of service or traffic class: DSCP and ECN.
    pub tos: u8,
    /// Its length in bytes by its own header; what follows is padding.
    pub len: usize,
}

/// Reads the IP header at the start of `packet`; `None` if it is not a whole IPv4 (RFC 791) or IPv6
/// (RFC 8200) packet. Jumbograms (RFC 2675) do not fit a UDP datagram and count as malformed.
#[inline(always)]
pub fn parse(packet: &[u8]) -> Option<Inner> {
    match packet.first()? >> 4 {
        4 => parse_ipv4(packet),
        6 => parse_ipv6(packet),
        _ => None,
    }
}

#[inline(always)]
fn parse_ipv4(packet: &[u8]) -> Option<Inner> {
    let header: &[u8; IPV4_HEADER_LEN] = packet.first_chunk()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_len < IPV4_HEADER_LEN || len < header_len || len > packet.len() {
        return None;
    }
    let address = |at: usize| {
        let octets = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        IpAddr::V4(Ipv4Addr::from(octets))
    };
    Some(Inner {
        protocol: Protocol::Ipv4,
        source: address(12),
        destination: address(16),
        tos: header[1],
        len,
    })
}

#[inline(always)]
fn parse_ipv6(packet: &[u8]) -> Option<Inner> {
    let header: &[u8; IPV6_HEADER_LEN] = packet.first_chunk()?;
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let len = IPV6_HEADER_LEN + payload_len;
    if len > packet.len() {
        return None;
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Some(Inner {
        protocol: Protocol::Ipv6,
        source: address(8),
        destination: address(24),
        tos: header[0] << 4 | header[1] >> 4,
        len,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    #[test]
    fn agrees_with_an_independent_encoder() {
        let mut ipv4 = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(1, 2)
            .write(&mut ipv4, &[0; 33])
            .unwrap();
        let inner = parse(&ipv4).unwrap();
        assert_eq!(inner.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(inner.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!((inner.protocol, inner.len), (Protocol::Ipv4, ipv4.len()));

        let mut ipv6 = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2).write(&mut ipv6, &[0; 33]).unwrap();
        let inner = parse(&ipv6).unwrap();
        assert_eq!(inner.source, IpAddr::from([1; 16]));
        assert_eq!(inner.destination, IpAddr::from([2; 16]));
        assert_eq!((inner.protocol, inner.len), (Protocol::Ipv6, ipv6.len()));

        for packet in [ipv4, ipv6] {
            for end in 0..packet.len() {
                assert_eq!(parse(&packet[..end]), None, "cut at {end}");
            }
            let padded = [&packet[..], &[0; 9]].concat();
            assert_eq!(parse(&padded).unwrap().len, packet.len());
        }
    }

    #[test]
    fn lying_lengths_and_foreign_versions_are_malformed() {
        let mut ipv4 = [0; 40];
        ipv4[0] = 0x45;
        ipv4[3] = 40;
        assert!(parse(&ipv4).is_some());
        ipv4[0] = 0x44;
        assert_eq!(parse(&ipv4), None, "a header shorter than the least");
        ipv4[0] = 0x4b;
        assert_eq!(parse(&ipv4), None, "a header longer than the packet");
        ipv4[0] = 0x75;
        assert_eq!(parse(&ipv4), None, "version 7");
    }
}
