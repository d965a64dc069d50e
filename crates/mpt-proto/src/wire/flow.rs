//! What identifies the flow of an inner packet: addresses, protocol, and ports where there are any.
//!
//! TCP, UDP, UDP-Lite, SCTP and DCCP begin with a source and a destination port; of a packet of any
//! other protocol only protocol and addresses count. The same applies to every fragment, including
//! the first: only the first has the ports, and all should take one path.

use std::net::IpAddr;

use crate::hash::mix;
use crate::wire::gre::Protocol;
use crate::wire::inner::Inner;

/// Protocol numbers (IANA).
const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DCCP: u8 = 33;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// How many IPv6 extension headers are walked. RFC 8200, section 4.1, has no use for more than four
/// of those walked here; a packet with more than this counts as one without ports.
const MAX_EXTENSIONS: usize = 8;

/// The flow of an inner packet, in the direction in which that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The inner source address.
    pub source: IpAddr,
    /// The inner destination address.
    pub destination: IpAddr,
    /// The protocol above IP by its IANA number. Behind an IPv6 fragment header it is what that
    /// header names, behind too many or truncated extension headers the last type that was read.
    pub protocol: u8,
    /// The ports, if the protocol has any and the packet is whole.
    pub ports: Option<Ports>,
}

/// The two ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

impl Flow {
    /// The number of TCP (RFC 9293).
    pub const TCP: u8 = TCP;

    /// The number of UDP (RFC 768).
    pub const UDP: u8 = UDP;

    /// Reads the flow of a packet of which [`inner::parse`](crate::wire::inner::parse) made
    /// `inner`. Unreadable parts count as absent.
    #[inline]
    pub fn parse(packet: &[u8], inner: &Inner) -> Self {
        let packet = packet.get(..inner.len).unwrap_or(packet);
        let (protocol, above) = match inner.protocol {
            Protocol::Ipv4 => above_ipv4(packet),
            Protocol::Ipv6 => above_ipv6(packet),
        };
        let ports = above.filter(|_| has_ports(protocol)).and_then(ports);
        Self { source: inner.source, destination: inner.destination, protocol, ports }
    }

    /// A number that is the same for all packets of the flow and evenly spread over flows. It is the
    /// same on every host and in every run, and another for the flow in the other direction.
    #[inline]
    pub fn hash(&self) -> u64 {
        let ports = self
            .ports
            .map_or(0, |ports| u64::from(ports.source) << 16 | u64::from(ports.destination));
        let hash = mix(ports << 8 | u64::from(self.protocol));
        let hash = absorb(hash, self.source);
        absorb(hash, self.destination)
    }
}

fn absorb(hash: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => mix(hash ^ u64::from(address.to_bits())),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mix(mix(hash ^ (bits >> 64) as u64) ^ bits as u64)
        }
    }
}

const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

fn ports(above: &[u8]) -> Option<Ports> {
    let &[a, b, c, d] = above.first_chunk()?;
    Some(Ports { source: u16::from_be_bytes([a, b]), destination: u16::from_be_bytes([c, d]) })
}

/// The protocol above IPv4 (RFC 791), and what stands there unless the packet is a piece.
fn above_ipv4(packet: &[u8]) -> (u8, Option<&[u8]>) {
    let Some(header) = packet.first_chunk::<20>() else { return (NO_NEXT_HEADER, None) };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    // More fragments, or an offset.
    let piece = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    (header[9], packet.get(header_len..).filter(|_| !piece))
}

/// The same above IPv6 (RFC 8200) and the extension headers that any packet may have.
fn above_ipv6(packet: &[u8]) -> (u8, Option<&[u8]>) {
    let Some((header, mut above)) = packet.split_first_chunk::<40>() else {
        return (NO_NEXT_HEADER, None);
    };
    let mut protocol = header[6];
    for _ in 0..=MAX_EXTENSIONS {
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                let behind = |[_, len]: [u8; 2]| above.get(8 + usize::from(len) * 8..);
                let first = above.first_chunk().copied();
                let Some((following, behind)) =
                    first.and_then(|first| Some((first[0], behind(first)?)))
                else {
                    return (protocol, None);
                };
                (protocol, above) = (following, behind);
            }
            FRAGMENT => return (above.first().copied().unwrap_or(FRAGMENT), None),
            _ => return (protocol, Some(above)),
        }
    }
    (protocol, None)
}

#[cfg(test)]
mod tests;
