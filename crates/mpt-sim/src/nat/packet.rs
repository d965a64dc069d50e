//! Translation of whole IP packets, in place.
//!
//! Ports and addresses are rewritten and the checksums updated by the difference (RFC 1624), so a
//! corrupt packet stays corrupt. IPv4 with options is supported; fragments and IPv6 extension
//! headers are not, because a tunnel's datagrams have neither.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mpt_proto::Instant;

use super::{Nat, NatDrop, Protocol};

impl Nat {
    /// Rewrites the source of a packet that goes out.
    ///
    /// # Errors
    ///
    /// [`NatDrop::Untranslatable`] and those of [`Nat::outbound`]; the packet is then unchanged.
    pub fn outbound_packet(&mut self, now: Instant, packet: &mut [u8]) -> Result<(), NatDrop> {
        let layout = Layout::of(packet).ok_or(NatDrop::Untranslatable)?;
        let (source, destination) = layout.addresses(packet);
        let outside = self.outbound(now, layout.protocol, source, destination)?;
        layout.replace(packet, End::Source, source, outside);
        Ok(())
    }

    /// Rewrites the destination of a packet that comes in.
    ///
    /// # Errors
    ///
    /// [`NatDrop::Untranslatable`] and those of [`Nat::inbound`]; the packet is then unchanged.
    pub fn inbound_packet(&mut self, now: Instant, packet: &mut [u8]) -> Result<(), NatDrop> {
        let layout = Layout::of(packet).ok_or(NatDrop::Untranslatable)?;
        let (source, destination) = layout.addresses(packet);
        let inside = self.inbound(now, layout.protocol, destination, source)?;
        layout.replace(packet, End::Destination, destination, inside);
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Source,
    Destination,
}

/// Where things are in a packet that can be translated.
struct Layout {
    protocol: Protocol,
    is_ipv4: bool,
    /// The start of the UDP or TCP header.
    transport: usize,
}

impl Layout {
    fn of(packet: &[u8]) -> Option<Self> {
        let version = packet.first()? >> 4;
        let (is_ipv4, transport, number) = match version {
            4 if packet.len() >= 20 => {
                let offset_and_more = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff;
                if offset_and_more != 0 {
                    return None;
                }
                (true, usize::from(packet[0] & 0x0f) * 4, packet[9])
            }
            6 if packet.len() >= 40 => (false, 40, packet[6]),
            _ => return None,
        };
        let (protocol, header) = match number {
            6 => (Protocol::Tcp, 20),
            17 => (Protocol::Udp, 8),
            _ => return None,
        };
        let fits = transport >= 20 && packet.len() >= transport + header;
        fits.then_some(Self { protocol, is_ipv4, transport })
    }

    /// Source and destination.
    fn addresses(&self, packet: &[u8]) -> (SocketAddr, SocketAddr) {
        let end = |end| {
            let (address, port) = self.places(end);
            let ip = if self.is_ipv4 {
                let mut octets = [0; 4];
                octets.copy_from_slice(&packet[address..address + 4]);
                IpAddr::V4(Ipv4Addr::from(octets))
            } else {
                let mut octets = [0; 16];
                octets.copy_from_slice(&packet[address..address + 16]);
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            SocketAddr::new(ip, u16::from_be_bytes([packet[port], packet[port + 1]]))
        };
        (end(End::Source), end(End::Destination))
    }

    /// The offsets of an end's address and port.
    fn places(&self, end: End) -> (usize, usize) {
        let (first, len) = if self.is_ipv4 { (12, 4) } else { (8, 16) };
        match end {
            End::Source => (first, self.transport),
            End::Destination => (first + len, self.transport + 2),
        }
    }

    /// Replaces `from` by `to`, and updates the checksums.
    fn replace(&self, packet: &mut [u8], end: End, from: SocketAddr, to: SocketAddr) {
        let (address, port) = self.places(end);
        let (old_ip, new_ip) = (octets(from.ip()), octets(to.ip()));
        packet[address..address + new_ip.len()].copy_from_slice(&new_ip);
        packet[port..port + 2].copy_from_slice(&to.port().to_be_bytes());

        if self.is_ipv4 {
            adjust(packet, 10, &old_ip, &new_ip);
        }
        let checksum = match self.protocol {
            Protocol::Tcp => self.transport + 16,
            Protocol::Udp => self.transport + 6,
        };
        // A UDP checksum of zero means that there is none, and must stay zero; a computed one that
        // is zero is sent as all ones (RFC 768).
        let is_udp = self.protocol == Protocol::Udp;
        if is_udp && packet[checksum..checksum + 2] == [0, 0] {
            return;
        }
        adjust(packet, checksum, &old_ip, &new_ip);
        adjust(packet, checksum, &from.port().to_be_bytes(), &to.port().to_be_bytes());
        if is_udp && packet[checksum..checksum + 2] == [0, 0] {
            packet[checksum..checksum + 2].copy_from_slice(&[0xff, 0xff]);
        }
    }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Changes the Internet checksum at `place` for bytes that went from `old` to `new`: equation 3 of
/// RFC 1624, HC' = ~(~HC + ~m + m'), over all 16-bit words.
fn adjust(packet: &mut [u8], place: usize, old: &[u8], new: &[u8]) {
    let mut sum = u32::from(!u16::from_be_bytes([packet[place], packet[place + 1]]));
    for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
        sum += u32::from(!u16::from_be_bytes([old[0], old[1]]));
        sum += u32::from(u16::from_be_bytes([new[0], new[1]]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !(sum as u16);
    packet[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use etherparse::{NetHeaders, PacketBuilder, PacketHeaders};

    use super::*;

    const NOW: Instant = Instant::ZERO;

    /// A packet with right checksums, built and judged by a foreign implementation.
    fn built(ipv4: bool, tcp: bool, payload: &[u8]) -> Vec<u8> {
        let builder = if ipv4 {
            PacketBuilder::ipv4([10, 0, 0, 2], [203, 0, 113, 5], 64)
        } else {
            let (mut source, mut destination) = ([0; 16], [0; 16]);
            (source[0], source[15]) = (0xfd, 2);
            (destination[0], destination[15]) = (0x20, 5);
            PacketBuilder::ipv6(source, destination, 64)
        };
        let mut packet = Vec::new();
        if tcp {
            builder.tcp(4754, 80, 1, 1000).write(&mut packet, payload).unwrap();
        } else {
            builder.udp(4754, 80).write(&mut packet, payload).unwrap();
        }
        packet
    }

    fn assert_checksums(packet: &[u8]) {
        let headers = PacketHeaders::from_ip_slice(packet).unwrap();
        let found = headers.transport.unwrap();
        let mut expected = found.clone();
        match headers.net.unwrap() {
            NetHeaders::Ipv4(ip, _) => {
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                expected.update_checksum_ipv4(&ip, headers.payload.slice()).unwrap();
            }
            NetHeaders::Ipv6(ip, _) => {
                expected.update_checksum_ipv6(&ip, headers.payload.slice()).unwrap();
            }
            NetHeaders::Arp(_) => panic!("not an IP packet"),
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn packets_of_all_kinds_go_out_and_their_answers_come_back_with_right_checksums() {
        for (ipv4, tcp) in [(true, false), (true, true), (false, false), (false, true)] {
            let outside = if ipv4 { "198.51.100.1" } else { "2001:db8::1" };
            let mut nat = Nat::new(outside.parse().unwrap());
            let original = built(ipv4, tcp, b"payload");
            assert_checksums(&original);
            let mut packet = original.clone();
            nat.outbound_packet(NOW, &mut packet).unwrap();
            assert_checksums(&packet);
            let layout = Layout::of(&packet).unwrap();
            let (source, destination) = layout.addresses(&packet);
            assert_eq!(source.ip(), nat.outside());
            assert_ne!(source.port(), 4754);

            // The answer: ends exchanged, which leaves the checksums right.
            layout.replace(&mut packet, End::Source, source, destination);
            layout.replace(&mut packet, End::Destination, destination, source);
            nat.inbound_packet(NOW, &mut packet).unwrap();
            assert_checksums(&packet);
            let (_, back) = Layout::of(&packet).unwrap().addresses(&packet);
            let (inside, _) = Layout::of(&original).unwrap().addresses(&original);
            assert_eq!(back, inside);
        }
    }

    #[test]
    fn an_absent_udp_checksum_stays_absent() {
        let mut nat = Nat::new("198.51.100.1".parse().unwrap());
        let mut packet = built(true, false, b"payload");
        packet[26..28].fill(0);
        nat.outbound_packet(NOW, &mut packet).unwrap();
        assert_eq!(packet[26..28], [0, 0]);
    }

    #[test]
    fn untranslatable_packets_are_not_changed() {
        let mut nat = Nat::new("198.51.100.1".parse().unwrap());
        let whole = built(true, false, b"payload");
        let mut fragment = whole.clone();
        fragment[6] |= 0x20;
        let mut icmp = whole.clone();
        icmp[9] = 1;
        let mut absurd_header = whole.clone();
        absurd_header[0] = 0x42;
        let mut cases = vec![fragment, icmp, absurd_header, Vec::new(), vec![0; 60]];
        cases.extend((1..28).map(|len| whole[..len].to_vec()));
        for mut packet in cases {
            let before = packet.clone();
            let result = nat.outbound_packet(NOW, &mut packet);
            assert_eq!(result, Err(NatDrop::Untranslatable), "{before:?}");
            assert_eq!(packet, before);
        }
        let mut stranger = whole.clone();
        assert_eq!(nat.inbound_packet(NOW, &mut stranger), Err(NatDrop::Unmapped));
        assert_eq!(stranger, whole);
    }
}
