//! The maximum segment size that TCP announces, lowered to what fits the tunnel.
//!
//! A host announces in its SYN how large the segments may be that it is sent (RFC 9293 section 3.7.1),
//! reckoned from the MTU of its own link. Behind a tunnel that is too much, and path MTU discovery has
//! to find that out; where somebody on the way swallows its ICMP messages, connections hang (RFC 2923
//! section 2.1). A router that forwards the SYN can lower the announcement, in both directions, since either
//! host announces for the other.
//!
//! It modifies forwarded packets, so it is done only if configured, and only the option's value and
//! the checksum are changed.

use crate::wire::checksum;
use crate::wire::gre::Protocol;
use crate::wire::inner::{self, Inner};
use crate::wire::upper::{self, TCP};

const TCP_HEADER_LEN: usize = 20;

/// What the TCP checksum field of a packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum of the segment.
    Complete,
    /// Partial: only the sum of the pseudo header. The option is not part of that sum.
    Missing,
    /// Either, and the packet shows which: the field of a packet that lacks its checksum holds what the
    /// sum of its pseudo header is.
    Shown,
}

/// Lowers the maximum segment size that the TCP SYN in `packet` announces, so that segments of this
/// size fit into packets of `mtu` bytes. Returns whether there was anything to lower.
///
/// What is announced counts neither IP nor TCP options (RFC 6691 section 2): it becomes `mtu` less 40
/// bytes over IPv4 and 60 bytes over IPv6. It is never raised, and never lowered beyond what a host that
/// announces nothing is taken to accept: 536 and 1220 (RFC 9293 section 3.7.1).
///
/// Everything else is left as it is: packets that are not whole, not TCP, no SYN, or a fragment other
/// than the first; SYNs without the option; and segments behind an authentication header, which a
/// change would break. A checksum that was wrong stays wrong.
pub fn clamp(packet: &mut [u8], mtu: u32, checksum: Checksum) -> bool {
    let Some(syn) = Syn::find(packet) else { return false };
    let limit = limit(mtu, syn.inner.protocol);
    let missing = match checksum {
        Checksum::Complete => false,
        Checksum::Missing => true,
        Checksum::Shown => syn.shows_missing_checksum(packet),
    };
    let mut lowered = false;
    let mut at = syn.at + TCP_HEADER_LEN;
    while let Some(value_at) = next_announcement(&packet[..syn.options_end], &mut at) {
        let announced = be16(packet, value_at);
        if announced <= limit {
            continue;
        }
        packet[value_at..value_at + 2].copy_from_slice(&limit.to_be_bytes());
        if !missing {
            syn.mend_checksum(packet, value_at, announced, limit);
        }
        lowered = true;
    }
    lowered
}

/// Whether `packet` holds what [`clamp`] could lower: a TCP SYN, whatever that announces. For those
/// who would have to copy the packet first.
#[inline]
pub fn is_syn(packet: &[u8]) -> bool {
    Syn::find(packet).is_some()
}

/// What may be announced for packets of `mtu` bytes.
fn limit(mtu: u32, protocol: Protocol) -> u16 {
    let (headers, least) = match protocol {
        Protocol::Ipv4 => (20 + TCP_HEADER_LEN as u32, 536),
        Protocol::Ipv6 => (40 + TCP_HEADER_LEN as u32, 1220),
    };
    u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX).max(least)
}

/// Where a SYN is in its packet.
struct Syn {
    inner: Inner,
    /// Where the TCP header begins.
    at: usize,
    /// Where it ends, options included; within the packet.
    options_end: usize,
}

impl Syn {
    fn find(packet: &[u8]) -> Option<Self> {
        const FLAG: u8 = 0x02;
        let inner = inner::parse(packet)?;
        let upper = upper::find(packet, &inner)?;
        if upper.protocol != TCP || upper.later_fragment || upper.authenticated {
            return None;
        }
        let header: &[u8; TCP_HEADER_LEN] = packet[..inner.len].get(upper.at..)?.first_chunk()?;
        let header_len = usize::from(header[12] >> 4) * 4;
        let options_end = upper.at + header_len;
        let whole = header_len >= TCP_HEADER_LEN && options_end <= inner.len;
        (whole && header[13] & FLAG != 0).then_some(Self { inner, at: upper.at, options_end })
    }

    fn checksum_at(&self) -> usize {
        self.at + 16
    }

    /// Whether the checksum field holds the sum of the pseudo header (RFC 9293 section 3.1, RFC 8200
    /// section 8.1), which consists of the two addresses, the segment's length and its protocol.
    fn shows_missing_checksum(&self, packet: &[u8]) -> bool {
        let addresses = match self.inner.protocol {
            Protocol::Ipv4 => &packet[12..20],
            Protocol::Ipv6 => &packet[8..40],
        };
        let mut pseudo_header = [0; 36];
        pseudo_header[..addresses.len()].copy_from_slice(addresses);
        let segment_len = (self.inner.len - self.at) as u16;
        pseudo_header[32..34].copy_from_slice(&segment_len.to_be_bytes());
        pseudo_header[35] = TCP;
        be16(packet, self.checksum_at()) == !checksum::internet(&pseudo_header)
    }

    /// Takes a 16-bit value out of the checksum and another one in (RFC 1624 section 3, equation 3).
    fn mend_checksum(&self, packet: &mut [u8], value_at: usize, old: u16, new: u16) {
        // A value at an odd place is in the sum as the end of one word and the beginning of the next.
        let in_sum = |value: u16| match (value_at - self.at) % 2 {
            0 => value,
            _ => value.swap_bytes(),
        };
        let at = self.checksum_at();
        let sum = u32::from(!be16(packet, at)) + u32::from(!in_sum(old)) + u32::from(in_sum(new));
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        packet[at..at + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }
}

/// Where the value of the next maximum segment size option is, searched from `at` on, which is moved
/// behind that option. Ends at the first option that is malformed, as receivers do.
fn next_announcement(header: &[u8], at: &mut usize) -> Option<usize> {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const MAXIMUM_SEGMENT_SIZE: [u8; 2] = [2, 4];
    loop {
        let option = header.get(*at..)?;
        let kind = *option.first()?;
        if kind == END {
            return None;
        }
        if kind == NOTHING {
            *at += 1;
            continue;
        }
        let len = *option.get(1)?;
        if len < 2 || usize::from(len) > option.len() {
            return None;
        }
        let value_at = *at + 2;
        *at += usize::from(len);
        if [kind, len] == MAXIMUM_SEGMENT_SIZE {
            return Some(value_at);
        }
    }
}

fn be16(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

#[cfg(test)]
mod tests;
