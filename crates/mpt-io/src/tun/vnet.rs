//! The header in front of packets: what one side of a TUN device left for the other to do.
//!
//! ```text
//!  0       1          2         4          6            8             10
//!  +-------+----------+---------+----------+------------+-------------+
//!  | flags | gso_type | hdr_len | gso_size | csum_start | csum_offset |
//!  +-------+----------+---------+----------+------------+-------------+
//! ```
//!
//! This is `struct virtio_net_hdr` of the virtio specification (1.2, section 5.1.6), here in the
//! byte order of the machine. A packet that needs nothing has a header of zeroes.

/// Bytes of the header, as set with `TUNSETVNETHDRSZ`.
pub(super) const LEN: usize = 10;

/// What is left to do with the packet behind this header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`NEEDS_CSUM`](Self::NEEDS_CSUM) and bits that mean nothing here.
    pub flags: u8,
    /// The segmentation type: one of the `GSO_` constants, perhaps with [`GSO_ECN`](Self::GSO_ECN).
    pub gso_type: u8,
    /// Bytes of all headers together; a hint, never to be trusted.
    pub hdr_len: u16,
    /// Bytes of payload in every segment but the last.
    pub gso_size: u16,
    /// Where the checksummed part starts; it reaches to the end of the packet.
    pub csum_start: u16,
    /// Where in that part the checksum stands. The field holds the sum of the pseudo header.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Nothing is left to do.
    pub const NONE: Self = Self {
        flags: 0,
        gso_type: Self::GSO_NONE,
        hdr_len: 0,
        gso_size: 0,
        csum_start: 0,
        csum_offset: 0,
    };

    /// In `flags`: the checksum is partial and must be completed, with or without segmentation.
    pub const NEEDS_CSUM: u8 = 1;

    /// The packet is not to be segmented.
    pub const GSO_NONE: u8 = 0;
    /// TCP in IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// One UDP datagram to be cut into IP fragments; obsolete.
    pub const GSO_UDP: u8 = 3;
    /// TCP in IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// UDP datagrams, in either version of IP.
    pub const GSO_UDP_L4: u8 = 5;
    /// Beside a TCP type: the first segment alone carries CWR (RFC 3168).
    pub const GSO_ECN: u8 = 0x80;

    /// Whether the checksum must be completed.
    pub fn needs_checksum(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }

    /// Takes the header apart.
    pub fn from_bytes(bytes: [u8; LEN]) -> Self {
        let [flags, gso_type, a, b, c, d, e, f, g, h] = bytes;
        Self {
            flags,
            gso_type,
            hdr_len: u16::from_ne_bytes([a, b]),
            gso_size: u16::from_ne_bytes([c, d]),
            csum_start: u16::from_ne_bytes([e, f]),
            csum_offset: u16::from_ne_bytes([g, h]),
        }
    }

    /// The header as the kernel reads and writes it.
    pub fn to_bytes(self) -> [u8; LEN] {
        let [a, b] = self.hdr_len.to_ne_bytes();
        let [c, d] = self.gso_size.to_ne_bytes();
        let [e, f] = self.csum_start.to_ne_bytes();
        let [g, h] = self.csum_offset.to_ne_bytes();
        [self.flags, self.gso_type, a, b, c, d, e, f, g, h]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_fields_agree() {
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: VnetHeader::GSO_TCPV6,
            hdr_len: 0x0102,
            gso_size: 0x0304,
            csum_start: 0x0506,
            csum_offset: 0x0708,
        };
        let mut expected = vec![1, 4];
        for field in [0x0102_u16, 0x0304, 0x0506, 0x0708] {
            expected.extend(field.to_ne_bytes());
        }
        assert_eq!(header.to_bytes()[..], expected);
        assert_eq!(VnetHeader::from_bytes(header.to_bytes()), header);
        assert!(header.needs_checksum() && !VnetHeader::NONE.needs_checksum());
    }
}
