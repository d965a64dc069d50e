//! UDP datagrams as whole IP packets: what really goes over a wire.
//!
//! Headers and checksums are real, so that rates count outer bytes, a translator can rewrite
//! them, and one inverted bit is noticed by the receiver as a kernel would notice it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of the UDP header.
pub const HEADER_LEN: usize = 8;

const PROTOCOL: u8 = 17;
const TTL: u8 = 64;

/// Bytes of the IP header before a datagram from or to `address`: there are no options.
pub const fn ip_header_len(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    }
}

/// A packet that carries `payload`, or `None` if the addresses are of different IP versions or the
/// packet would exceed 65 535 bytes.
///
/// Without `checksum` the UDP checksum is zero, meaning absent; RFC 6935 lets a tunnel do so on
/// IPv6, too.
pub fn emit(
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
    checksum: bool,
) -> Option<Vec<u8>> {
    let header_len = ip_header_len(source.ip());
    let len = u16::try_from(header_len + HEADER_LEN + payload.len()).ok()?;
    let udp_len = len - header_len as u16;
    let mut bytes = vec![0; usize::from(len)];
    let (ip, udp) = bytes.split_at_mut(header_len);
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            emit_ipv4(ip, PROTOCOL, source, destination, len);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            emit_ipv6(ip, PROTOCOL, source, destination, udp_len);
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    }
    udp[0..2].copy_from_slice(&source.port().to_be_bytes());
    udp[2..4].copy_from_slice(&destination.port().to_be_bytes());
    udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
    udp[HEADER_LEN..].copy_from_slice(payload);
    if checksum {
        // A sum of zero is sent as all ones, because zero means none (RFC 768).
        let sum = match !upper_sum(PROTOCOL, source.ip(), destination.ip(), udp) {
            0 => 0xffff,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
    }
    Some(bytes)
}

/// Source, destination and payload of a packet; `None` unless it is one whole UDP datagram whose
/// checksums are right.
pub fn parse(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let (source, destination, udp) = match bytes.first()? >> 4 {
        4 => parse_ipv4(bytes)?,
        6 => parse_ipv6(bytes)?,
        _ => return None,
    };
    let word = |at: usize| Some(u16::from_be_bytes(*udp.get(at..)?.first_chunk()?));
    if usize::from(word(4)?) != udp.len() {
        return None;
    }
    if word(6)? != 0 && upper_sum(PROTOCOL, source, destination, udp) != 0xffff {
        return None;
    }
    let ends = (SocketAddr::new(source, word(0)?), SocketAddr::new(destination, word(2)?));
    Some((ends.0, ends.1, udp.get(HEADER_LEN..)?))
}

/// Writes the header of RFC 791.
pub(crate) fn emit_ipv4(
    ip: &mut [u8],
    protocol: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    len: u16,
) {
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&len.to_be_bytes());
    ip[8] = TTL;
    ip[9] = protocol;
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&destination.octets());
    let checksum = !sum(0, ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the header of RFC 8200.
pub(crate) fn emit_ipv6(
    ip: &mut [u8],
    protocol: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    payload_len: u16,
) {
    ip[0] = 0x60;
    ip[4..6].copy_from_slice(&payload_len.to_be_bytes());
    ip[6] = protocol;
    ip[7] = TTL;
    ip[8..24].copy_from_slice(&source.octets());
    ip[24..40].copy_from_slice(&destination.octets());
}

fn parse_ipv4(bytes: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let ip = bytes.first_chunk::<20>()?;
    let len = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let plain = ip[0] == 0x45 && ip[9] == PROTOCOL && len == bytes.len() && sum(0, ip) == 0xffff;
    let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(*ip[at..].first_chunk::<4>()?)));
    if plain { Some((address(12)?, address(16)?, &bytes[20..])) } else { None }
}

fn parse_ipv6(bytes: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let ip = bytes.first_chunk::<40>()?;
    let len = 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let plain = ip[6] == PROTOCOL && len == bytes.len();
    let address = |at: usize| Some(IpAddr::V6(Ipv6Addr::from(*ip[at..].first_chunk::<16>()?)));
    if plain { Some((address(8)?, address(24)?, &bytes[40..])) } else { None }
}

/// The ones' complement sum of what is above IP and its pseudo-header (RFC 768, RFC 9293, RFC 8200 section 8.1).
pub(crate) fn upper_sum(protocol: u8, source: IpAddr, destination: IpAddr, upper: &[u8]) -> u16 {
    let add = |start, address| match address {
        IpAddr::V4(address) => sum(start, &address.octets()),
        IpAddr::V6(address) => sum(start, &address.octets()),
    };
    let pseudo = add(add(0, source), destination);
    let pseudo = sum(pseudo, &[0, protocol]);
    sum(sum(pseudo, &(upper.len() as u16).to_be_bytes()), upper)
}

/// Continues a ones' complement sum (RFC 1071) over `bytes`, an odd last one padded with zero.
///
/// It adds words of 32 bits, which section 2 of the RFC allows, and folds at the end.
fn sum(start: u16, bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from(u32::from_be_bytes(*word)));
    let mut sum = u64::from(start) + words.sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use etherparse::{NetHeaders, PacketHeaders};
    use proptest::prelude::*;

    use super::*;

    fn ends(ipv4: bool) -> (SocketAddr, SocketAddr) {
        let (source, destination) =
            if ipv4 { ("192.0.2.1:1", "203.0.113.5:2") } else { ("[fd00::1]:1", "[fd00::2]:2") };
        (source.parse().unwrap(), destination.parse().unwrap())
    }

    #[test]
    fn a_foreign_parser_finds_the_packet_right() {
        for (ipv4, len) in [(true, 0), (true, 1400), (true, 999), (false, 1), (false, 1400)] {
            let (source, destination) = ends(ipv4);
            let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let bytes = emit(source, destination, &payload, true).unwrap();
            let headers = PacketHeaders::from_ip_slice(&bytes).unwrap();
            assert_eq!(headers.payload.slice(), payload);
            let found = headers.transport.unwrap();
            let mut expected = found.clone();
            match headers.net.unwrap() {
                NetHeaders::Ipv4(ip, _) => {
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    expected.update_checksum_ipv4(&ip, &payload).unwrap();
                }
                NetHeaders::Ipv6(ip, _) => expected.update_checksum_ipv6(&ip, &payload).unwrap(),
                NetHeaders::Arp(_) => panic!("not an IP packet"),
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_buffer_that_is_not_one_packet_is_refused() {
        let ((ipv4, _), (ipv6, _)) = (ends(true), ends(false));
        assert_eq!(emit(ipv4, ipv6, b"", true), None);
        assert_eq!(emit(ipv4, ipv4, &[0; 65_508], true), None);
        assert!(emit(ipv4, ipv4, &[0; 65_507], true).is_some());
    }

    proptest! {
        #[test]
        fn one_inverted_bit_is_noticed_where_a_checksum_covers_it(
            ipv4: bool,
            payload in prop::collection::vec(any::<u8>(), 0..100),
            bit: prop::sample::Index,
        ) {
            let (source, destination) = ends(ipv4);
            let mut bytes = emit(source, destination, &payload, true).unwrap();
            prop_assert_eq!(parse(&bytes), Some((source, destination, &payload[..])));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            // IPv6 protects neither its first word nor its hop limit.
            let unprotected = !ipv4 && (bit < 32 || bit / 8 == 7);
            if !unprotected {
                prop_assert_eq!(parse(&bytes), None);
            }
        }

        #[test]
        fn without_a_checksum_the_payload_is_accepted(
            ipv4: bool,
            payload in prop::collection::vec(any::<u8>(), 1..100),
        ) {
            let (source, destination) = ends(ipv4);
            let mut bytes = emit(source, destination, &payload, false).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            prop_assert!(parse(&bytes).is_some_and(|(.., found)| found != &payload[..]));
        }

        #[test]
        fn garbage_is_refused_or_read_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let _ = parse(&bytes);
        }
    }
}
