//! Which packets may become one: the rules.
//!
//! They are those of the kernel's own generic receive offload (`inet_gro_receive`,
//! `ipv6_gro_receive`, `tcp_gro_receive`, `udp_gro_receive_segment`): packets are merged only if
//! segmenting the result gives back the very same packets. A few rules are stricter than the kernel's
//! where its own segmentation would not give back every bit, or where a TUN device cannot say what
//! the kernel says internally:
//!
//! - A checksum that is right but not in the form that segmentation writes (`0xffff` for `0x0000`
//!   in TCP and IPv4) is left alone.
//! - TCP packets must agree on the urgent pointer although it means nothing without URG.
//! - IPv4 packets that all carry the same identification, which the kernel merges if they may not
//!   be fragmented, are merged only on demand ([`Identification::Renumber`]): a device gives them
//!   consecutive ones.
//!
//! The checksums of merged packets are discarded, so they are verified first.

use super::checksum::Sum;
use super::inner::{ACK, DF, ECE, IPV4_LEN, IPV6_LEN, PSH};
use super::inner::{Protocol, Transport, Version, be16, be32};

/// The most datagrams in one super-packet of UDP (`UDP_MAX_SEGMENTS` of older kernels).
pub(super) const MAX_DATAGRAMS: usize = 64;

/// What to do with IPv4 packets in a row that carry the same identification and may not be
/// fragmented, such as those of a UDP socket that is not connected.
///
/// The identification of such packets means nothing (RFC 6864, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identification {
    /// Leave them alone: every packet arrives with the bits that it was sent with.
    #[default]
    Keep,
    /// Merge them: they are delivered faster, and if the kernel forwards them and has to segment them
    /// again, it numbers them one by one.
    Renumber,
}

/// A packet of a kind that can be merged: TCP with payload and nothing but ACK, PSH and ECE set, or
/// UDP with payload and checksum, in IP without options, extensions or fragmentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'p> {
    pub(super) packet: &'p [u8],
    pub(super) transport: Transport,
    /// Bytes of all headers.
    pub(super) headers_len: usize,
}

/// How a [`Candidate`] extends what is already merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Packets so far.
    pub(super) packets: usize,
    /// Bytes of payload in each but the last.
    pub(super) size: usize,
    /// TCP sequence number that continues the run.
    pub(super) next_sequence: u32,
    /// Whether all packets so far, if more than one, carry the same identification.
    pub(super) same_identification: bool,
}

impl<'p> Candidate<'p> {
    /// Looks at the headers of `packet`, not at its checksums.
    #[inline]
    pub(super) fn new(packet: &'p [u8]) -> Option<Self> {
        let version = Version::of(packet)?;
        let (protocol, start) = match (version, *packet.first()?) {
            (Version::V4, 0x45) => (*packet.get(9)?, IPV4_LEN),
            (Version::V4, _) => return None,
            (Version::V6, _) => (*packet.get(6)?, IPV6_LEN),
        };
        let protocol = Protocol::from_number(protocol)?;
        if version.claimed_len(packet) != Some(packet.len()) {
            return None;
        }
        // No fragment, and not the reserved bit either.
        if version == Version::V4 && be16(packet, 6)? & !DF != 0 {
            return None;
        }
        let transport = Transport { version, protocol, start };
        let headers_len = transport.headers_len(packet)?;
        let fits = match protocol {
            Protocol::Tcp => packet[start + 13] & !(PSH | ECE) == ACK,
            Protocol::Udp => usize::from(be16(packet, start + 4)?) == packet.len() - start,
        };
        (fits && headers_len < packet.len()).then_some(Self { packet, transport, headers_len })
    }

    pub(super) fn payload(&self) -> &'p [u8] {
        &self.packet[self.headers_len..]
    }

    pub(super) fn sequence(&self) -> u32 {
        be32(self.packet, self.transport.start + 4).unwrap_or_default()
    }

    /// Whether the sender asked for delivery without waiting for more.
    pub(super) fn is_pushed(&self) -> bool {
        self.transport.protocol == Protocol::Tcp
            && self.packet[self.transport.start + 13] & PSH != 0
    }

    /// Whether all checksums are right and as segmentation would write them. Of a `partial` packet
    /// the field must hold the sum of the pseudo header.
    #[inline]
    pub(super) fn is_intact(&self, partial: bool) -> bool {
        let Transport { version, protocol, start } = self.transport;
        if version == Version::V4 {
            let header = &self.packet[..IPV4_LEN];
            if !Sum::of(header).is_valid() || be16(header, 10) == Some(0xffff) {
                return false;
            }
        }
        let pseudo_header = self.transport.pseudo_header(self.packet, self.packet.len() - start);
        let field = be16(self.packet, self.transport.field().at).unwrap_or_default();
        if partial {
            return field == pseudo_header.partial();
        }
        let other_form = match protocol {
            Protocol::Tcp => 0xffff,
            Protocol::Udp => 0,
        };
        field != other_form && pseudo_header.and(Sum::of(&self.packet[start..])).is_valid()
    }

    /// Whether this is the next packet of a `run` that began with the headers of `first`.
    ///
    /// Room and order are the caller's to watch; what is compared here is the packet.
    #[inline]
    pub(super) fn continues(
        &self,
        run: &Run,
        first: &[u8],
        transport: Transport,
        identification: Identification,
    ) -> bool {
        let one = self.packet;
        self.transport == transport
            && self.payload().len() <= run.size
            && one[transport.start..][..4] == first[transport.start..][..4]
            && match transport.version {
                Version::V4 => self.continues_ipv4(run, first, identification),
                // All but the length.
                Version::V6 => one[..4] == first[..4] && one[6..IPV6_LEN] == first[6..IPV6_LEN],
            }
            && match transport.protocol {
                Protocol::Tcp => self.continues_tcp(run, first),
                Protocol::Udp => run.packets < MAX_DATAGRAMS,
            }
    }

    /// All but length, identification and checksum are equal; the identifications count up.
    fn continues_ipv4(&self, run: &Run, first: &[u8], identification: Identification) -> bool {
        let (one, id) = (self.packet, |packet| be16(packet, 4).unwrap_or_default());
        one[..2] == first[..2]
            && one[6..10] == first[6..10]
            && one[12..IPV4_LEN] == first[12..IPV4_LEN]
            && match id(one).wrapping_sub(id(first)) {
                0 => {
                    let unbroken = run.packets == 1 || run.same_identification;
                    let df = be16(one, 6) == Some(DF);
                    identification == Identification::Renumber && df && unbroken
                }
                ahead => usize::from(ahead) == run.packets && !run.same_identification,
            }
    }

    /// All but sequence number, PSH and checksum are equal; the sequence numbers meet.
    fn continues_tcp(&self, run: &Run, first: &[u8]) -> bool {
        let start = self.transport.start;
        let (one, first) = (&self.packet[start..self.headers_len], &first[start..]);
        self.sequence() == run.next_sequence
            && one[8..13] == first[8..13]
            && (one[13] ^ first[13]) & !PSH == 0
            && one[14..16] == first[14..16]
            && one[18..] == first[18..]
    }
}
