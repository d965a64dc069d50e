//! The answer to an inner packet that is too big for the tunnel.
//!
//! The host does not send these messages for us: it checks a packet against the interface's MTU
//! before passing it to us. A packet that was queued while the MTU decreased, or one that is too
//! big for the only path left, must be answered here: by "fragmentation needed" of ICMP (RFC 792,
//! type 3 code 4, with the MTU of RFC 1191) or "packet too big" of ICMPv6 (RFC 4443 section 3.2).
//!
//! The answer goes to the packet's source address, which may be spoofed, so some packets get none.
//! RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7 and RFC 4443 section 2.4 (e) specify these. The
//! caller must apply the rate limit that they require: see [`TokenBucket`](crate::TokenBucket).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::wire::checksum;
use crate::wire::inner;
use crate::wire::upper::{self, ICMP, ICMPV6};

/// The longest message: as much of an IPv6 packet as fits into what every IPv6 link carries (RFC 4443
/// section 2.4 (c)).
pub const MAX_LEN: usize = 1280;

/// The longest message over IPv4 (RFC 1812 section 4.3.2.3).
const MAX_LEN_IPV4: usize = 576;

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
/// Type, code, checksum and the four bytes whose meaning depends on the type.
const ICMP_HEADER_LEN: usize = 8;

/// The minimum MTU of every link, below which no message may go (RFC 791 section 3.2, RFC 8200
/// section 5).
const MIN_MTU_IPV4: u32 = 68;
const MIN_MTU_IPV6: u32 = 1280;

/// "Internetwork control", the precedence of ICMP errors (RFC 1812 section 4.3.2.5), as a DSCP: CS6.
const TYPE_OF_SERVICE: u8 = 0xc0;
const TIME_TO_LIVE: u8 = 64;

/// Writes, at the start of `place`, the ICMP message to the sender of `packet` with the MTU `mtu`,
/// and returns its length.
///
/// `source` is the address that the answer claims to come from, of the packet's IP version. It
/// quotes as much of the packet as an answer may hold.
///
/// `None` means that no message is needed or permitted:
///
/// - the packet is not bigger than `mtu`, or than what its IP version guarantees;
/// - it is malformed, or its header checksum is wrong;
/// - it is IPv4 and may be fragmented, or is a fragment other than the first;
/// - it is an ICMP error itself, or could be one as far as can be seen; a redirect counts as one;
/// - its source is not one host: unspecified, loopback, multicast, broadcast, class E;
/// - its destination is unspecified or broadcast, or multicast and IPv4. To IPv6 multicast an answer is
///   due, so that path MTU discovery works for it too (RFC 4443 section 2.4 (e.3)). Broadcasts of a
///   subnet cannot be recognised from here;
/// - `source` is of the other IP version.
pub fn too_big(
    packet: &[u8],
    mtu: u32,
    source: IpAddr,
    place: &mut [u8; MAX_LEN],
) -> Option<usize> {
    let inner = inner::parse(packet)?;
    let packet = &packet[..inner.len];
    match (source, inner.source, inner.destination) {
        (IpAddr::V4(source), IpAddr::V4(sender), IpAddr::V4(target)) => {
            // An IPv4 packet is never longer than 65535 bytes, so neither is what it exceeds.
            let mtu = mtu.max(MIN_MTU_IPV4);
            if packet.len() <= mtu as usize || !is_answered_v4(packet, sender, target) {
                return None;
            }
            if is_icmp_error(packet, &inner) != Some(false) {
                return None;
            }
            Some(write_v4(packet, (FRAGMENTATION_NEEDED, mtu as u16), source, sender, place))
        }
        (IpAddr::V6(source), IpAddr::V6(sender), IpAddr::V6(target)) => {
            let mtu = mtu.max(MIN_MTU_IPV6);
            if packet.len() <= mtu as usize || !is_answered_v6(sender, target) {
                return None;
            }
            if is_icmp_error(packet, &inner) != Some(false) {
                return None;
            }
            Some(write_v6(packet, (PACKET_TOO_BIG, 0), mtu, source, sender, place))
        }
        _ => None,
    }
}

/// Writes, at the start of `place`, the ICMP message to the sender of `packet` that its destination cannot be reached,
/// and returns its length: "host unreachable" of ICMP (RFC 792, type 3 code 1), or "address unreachable" of ICMPv6
/// (RFC 4443 section 3.1). `None` as for [`too_big`], whatever the length of the packet.
pub fn unreachable(packet: &[u8], source: IpAddr, place: &mut [u8; MAX_LEN]) -> Option<usize> {
    const HOST_UNREACHABLE: u8 = 1;
    const ADDRESS_UNREACHABLE: u8 = 3;
    const UNREACHABLE_V6: u8 = 1;
    let inner = inner::parse(packet)?;
    let packet = &packet[..inner.len];
    let answered = match (inner.source, inner.destination) {
        (IpAddr::V4(sender), IpAddr::V4(target)) => answers_v4(packet, sender, target),
        (IpAddr::V6(sender), IpAddr::V6(target)) => {
            is_answered_v6(sender, target) && !target.is_multicast()
        }
        _ => false,
    };
    if !answered || is_icmp_error(packet, &inner) != Some(false) {
        return None;
    }
    match (source, inner.source) {
        (IpAddr::V4(source), IpAddr::V4(sender)) => {
            Some(write_v4(packet, (HOST_UNREACHABLE, 0), source, sender, place))
        }
        (IpAddr::V6(source), IpAddr::V6(sender)) => {
            let kind = (UNREACHABLE_V6, ADDRESS_UNREACHABLE);
            Some(write_v6(packet, kind, 0, source, sender, place))
        }
        _ => None,
    }
}

fn is_answered_v4(packet: &[u8], sender: Ipv4Addr, target: Ipv4Addr) -> bool {
    const DONT_FRAGMENT: u16 = 0x4000;
    u16::from_be_bytes([packet[6], packet[7]]) & DONT_FRAGMENT != 0
        && answers_v4(packet, sender, target)
}

/// Whether an error about the packet may be sent at all.
fn answers_v4(packet: &[u8], sender: Ipv4Addr, target: Ipv4Addr) -> bool {
    const FRAGMENT_OFFSET: u16 = 0x1fff;
    let flags = u16::from_be_bytes([packet[6], packet[7]]);
    let header_len = usize::from(packet[0] & 0x0f) * 4;
    let class_e = |address: Ipv4Addr| address.octets()[0] >= 240;
    let no_network = |address: Ipv4Addr| address.octets()[0] == 0;
    flags & FRAGMENT_OFFSET == 0
        && checksum::internet(&packet[..header_len]) == 0
        && !(no_network(sender) || sender.is_loopback() || sender.is_multicast() || class_e(sender))
        && !(target.is_unspecified() || target.is_multicast() || target.is_broadcast())
}

fn is_answered_v6(sender: Ipv6Addr, target: Ipv6Addr) -> bool {
    let one_host = !(sender.is_unspecified() || sender.is_loopback() || sender.is_multicast());
    one_host && !target.is_unspecified()
}

/// Whether the packet is an ICMP error; `None` if that cannot be seen.
fn is_icmp_error(packet: &[u8], inner: &inner::Inner) -> Option<bool> {
    const REDIRECT_V6: u8 = 137;
    let upper = upper::find(packet, inner)?;
    if upper.protocol != ICMP && upper.protocol != ICMPV6 {
        return Some(false);
    }
    if upper.later_fragment {
        return None;
    }
    let kind = *packet.get(upper.at)?;
    Some(match upper.protocol {
        ICMPV6 => kind < 128 || kind == REDIRECT_V6,
        _ => !is_icmp_query(kind),
    })
}

/// Whether an ICMP message of IPv4 is known not to be an error: echo, router discovery (RFC 1256),
/// timestamp, information and mask (RFC 792, RFC 950), extended echo (RFC 8335). Unassigned types
/// may become errors.
fn is_icmp_query(kind: u8) -> bool {
    matches!(kind, 0 | 8..=10 | 13..=18 | 42..=43)
}

/// The codes and types of what is too big.
const FRAGMENTATION_NEEDED: u8 = 4;
const PACKET_TOO_BIG: u8 = 2;

/// Writes "destination unreachable" with this code, and what stands in its last two bytes.
fn write_v4(
    packet: &[u8],
    (code, rest): (u8, u16),
    source: Ipv4Addr,
    sender: Ipv4Addr,
    place: &mut [u8; MAX_LEN],
) -> usize {
    const UNREACHABLE: u8 = 3;
    let room = MAX_LEN_IPV4 - IPV4_HEADER_LEN - ICMP_HEADER_LEN;
    let quoted = &packet[..packet.len().min(room)];
    let len = IPV4_HEADER_LEN + ICMP_HEADER_LEN + quoted.len();
    let (header, message) = place[..len].split_at_mut(IPV4_HEADER_LEN);

    header.copy_from_slice(&[0; IPV4_HEADER_LEN]);
    header[0] = 0x45;
    header[1] = TYPE_OF_SERVICE;
    header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    // Never fragmented, so that its identification may be anything (RFC 6864 section 4.1).
    header[6] = 0x40;
    header[8] = TIME_TO_LIVE;
    header[9] = ICMP;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&sender.octets());
    let sum = checksum::internet(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());

    message[..ICMP_HEADER_LEN].copy_from_slice(&[0; ICMP_HEADER_LEN]);
    message[0] = UNREACHABLE;
    message[1] = code;
    message[6..8].copy_from_slice(&rest.to_be_bytes());
    message[ICMP_HEADER_LEN..].copy_from_slice(quoted);
    let sum = checksum::internet(message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    len
}

/// Writes a message of this type and code, and what stands in its last four bytes.
fn write_v6(
    packet: &[u8],
    (kind, code): (u8, u8),
    rest: u32,
    source: Ipv6Addr,
    sender: Ipv6Addr,
    place: &mut [u8; MAX_LEN],
) -> usize {
    let room = MAX_LEN - IPV6_HEADER_LEN - ICMP_HEADER_LEN;
    let quoted = &packet[..packet.len().min(room)];
    let message_len = ICMP_HEADER_LEN + quoted.len();
    let len = IPV6_HEADER_LEN + message_len;
    let (header, message) = place[..len].split_at_mut(IPV6_HEADER_LEN);

    // First as the pseudo header that the checksum covers (RFC 8200 section 8.1), which has length and
    // protocol where the IP header has its first eight bytes. The order of words makes no difference.
    header[0..4].copy_from_slice(&(message_len as u32).to_be_bytes());
    header[4..8].copy_from_slice(&u32::from(ICMPV6).to_be_bytes());
    header[8..24].copy_from_slice(&source.octets());
    header[24..40].copy_from_slice(&sender.octets());
    message[..4].copy_from_slice(&[kind, code, 0, 0]);
    message[4..8].copy_from_slice(&rest.to_be_bytes());
    message[ICMP_HEADER_LEN..].copy_from_slice(quoted);
    let sum = checksum::internet(&place[..len]);
    place[IPV6_HEADER_LEN + 2..][..2].copy_from_slice(&sum.to_be_bytes());

    place[0] = 0x60 | TYPE_OF_SERVICE >> 4;
    place[1] = TYPE_OF_SERVICE << 4;
    place[2..4].copy_from_slice(&[0; 2]);
    place[4..6].copy_from_slice(&(message_len as u16).to_be_bytes());
    place[6] = ICMPV6;
    place[7] = TIME_TO_LIVE;
    len
}

#[cfg(test)]
mod tests;
