//! Segmentation: one super-packet of TCP or UDP becomes packets of the size that the path takes.
//!
//! A super-packet is one set of headers and much payload, to be cut every `gso_size` bytes. Nothing
//! is moved but headers: those of segment *i* are written right in front of its payload, over the
//! end of the payload of segment *i - 1*, which has been handed out by then.
//!
//! ```text
//!   super-packet  | headers | payload 0 | payload 1 | payload 2 |
//!   segment 0     [ headers | payload 0 ]
//!   segment 1           [ headers | payload 1 ]
//!   segment 2                       [ headers | payload 2 ]
//! ```
//!
//! The headers differ as the kernel's own segmentation (`tcp_gso_segment`, `inet_gso_segment`) makes
//! them differ: lengths; IPv4 identification, one more each; TCP sequence number; PSH and FIN on the
//! last alone; CWR on the first alone (RFC 3168, section 6.1.2).

use std::ops::Range;

use super::VnetHeader;
use super::checksum::Sum;
use super::inner::{CWR, FIN, Field, IPV6_LEN, PSH, Protocol, Transport, Version};
use super::inner::{be16, be32, ip_header_len, put16, put32};
use super::read_counters::Lie;

/// How far a super-packet is cut.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    transport: Transport,
    headers_len: usize,
    /// Bytes of payload in every segment but the last.
    size: usize,
    /// Bytes of the super-packet.
    len: usize,
    /// Segments cut so far.
    cut: usize,
    /// Every segment [shows](Transport::of_partial) that it lacks its checksum.
    shows_field: bool,
    /// The sum of the pseudo header without its length field.
    pseudo_header: Sum,
    /// The sum of the IPv4 header without length, identification and checksum.
    ip_header: Sum,
    /// Identification of the first segment, in IPv4.
    identification: u16,
    /// Sequence number of the first segment, in TCP.
    sequence: u32,
    /// Flags of the super-packet, in TCP.
    flags: u8,
}

impl Segments {
    /// Checks that `header` and `packet` describe a super-packet of `protocol`, if in that `version`.
    ///
    /// # Errors
    ///
    /// Which claim does not hold.
    pub(super) fn new(
        header: &VnetHeader,
        packet: &[u8],
        protocol: Protocol,
        version: Option<Version>,
    ) -> Result<Self, Lie> {
        if header.gso_size == 0 {
            return Err(|counters| &mut counters.no_size);
        }
        let found = Transport::find(packet).filter(|found| {
            found.protocol == protocol
                && version.is_none_or(|version| version == found.version)
                && found.version.claimed_len(packet) == Some(packet.len())
        });
        let headers_len = found.and_then(|found| found.headers_len(packet));
        let (Some(transport), Some(headers_len)) = (found, headers_len) else {
            return Err(|counters| &mut counters.contradicted);
        };
        if headers_len == packet.len() {
            return Err(|counters| &mut counters.contradicted);
        }
        let Field { start, at } = transport.field();
        let asked = [header.csum_start, header.csum_offset].map(usize::from);
        if !header.needs_checksum() || asked != [start, at - start] {
            return Err(|counters| &mut counters.misplaced_checksum);
        }
        let field = |at| be16(packet, at).unwrap_or_default();
        let (ip_header, identification) = match transport.version {
            Version::V4 => {
                let len = ip_header_len(packet).unwrap_or_default();
                let sum = Sum::of(&packet[..len]);
                (sum.without(field(2)).without(field(4)).without(field(10)), field(4))
            }
            Version::V6 => (Sum::default(), 0),
        };
        Ok(Self {
            transport,
            headers_len,
            size: usize::from(header.gso_size),
            len: packet.len(),
            cut: 0,
            shows_field: transport.is_partial(packet),
            // Taken from the field and not from the addresses: with a routing header the address
            // that counts is not the one in the IP header.
            pseudo_header: Sum::default().word(field(at)).without((packet.len() - start) as u16),
            ip_header,
            identification,
            sequence: be32(packet, start + 4).unwrap_or_default(),
            flags: packet.get(start + 13).copied().unwrap_or_default(),
        })
    }

    /// How many segments there are in all.
    pub(super) fn count(&self) -> usize {
        (self.len - self.headers_len).div_ceil(self.size)
    }

    /// The checksum field that is completed in every segment.
    pub(super) fn field(&self) -> Field {
        self.transport.field()
    }

    /// Whether every segment [shows](Transport::of_partial) that it lacks its checksum. All do if the
    /// super-packet does.
    pub(super) fn shows_field(&self) -> bool {
        self.shows_field
    }

    /// Writes the headers of the next segment and says where it is in the memory of the
    /// super-packet. Its checksum field holds the sum of the pseudo header.
    pub(super) fn next(&mut self, memory: &mut [u8]) -> Option<Range<usize>> {
        let start = self.cut * self.size;
        let payload = start + self.headers_len;
        if payload >= self.len {
            return None;
        }
        if self.cut > 0 {
            // Those of the first segment are best: they were written long ago, which makes them
            // faster to read. They last if the second segment does not begin in them.
            let whole = self.size >= self.headers_len;
            let written = if whole { 0 } else { start - self.size };
            memory.copy_within(written..written + self.headers_len, start);
        }
        let end = self.len.min(payload + self.size);
        self.write_ip(&mut memory[start..end]);
        self.write_transport(&mut memory[start..end], end == self.len);
        self.cut += 1;
        Some(start..end)
    }

    fn write_ip(&self, packet: &mut [u8]) {
        match self.transport.version {
            Version::V4 => {
                let len = packet.len() as u16;
                let identification = self.identification.wrapping_add(self.cut as u16);
                put16(packet, 2, len);
                put16(packet, 4, identification);
                let checksum = self.ip_header.word(len).word(identification).checksum();
                put16(packet, 10, checksum);
            }
            Version::V6 => put16(packet, 4, (packet.len() - IPV6_LEN) as u16),
        }
    }

    fn write_transport(&self, packet: &mut [u8], last: bool) {
        let Field { start, at } = self.field();
        let len = (packet.len() - start) as u16;
        match self.transport.protocol {
            Protocol::Tcp => {
                let payload_before = (self.cut * self.size) as u32;
                put32(packet, start + 4, self.sequence.wrapping_add(payload_before));
                let not_last = if last { 0 } else { FIN | PSH };
                let not_first = if self.cut == 0 { 0 } else { CWR };
                packet[start + 13] = self.flags & !(not_last | not_first);
            }
            Protocol::Udp => put16(packet, start + 4, len),
        }
        put16(packet, at, self.pseudo_header.word(len).partial());
    }
}
