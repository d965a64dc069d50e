//! The next packet of a run, as far as the run foretells it.
//!
//! In a run most of a header repeats itself: [`Candidate::continues`](super::merge::Candidate::continues)
//! and [`Candidate::is_intact`](super::merge::Candidate::is_intact) say which part may differ, and
//! how. Here the same is asked the other way round: the headers that must come are known before the
//! packet, and so are their sums, which leaves one comparison and the payload. What this says of a
//! packet is what those say; of a packet that it does not foresee, it says nothing.

use super::checksum::Sum;
use super::inner::{IPV4_LEN, PSH, Protocol, Transport, Version, be16, be32};
use super::merge::{MAX_DATAGRAMS, Run};

#[cfg(test)]
mod agreement;

/// Bytes that are compared at once. TCP in IPv6 with the options that Linux sends has headers of 72.
pub(super) const SPAN: usize = 80;

/// What the checksum field of a packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The checksum.
    Complete,
    /// The sum of the pseudo header.
    Partial,
    /// The sum of the pseudo header for a partial checksum, the checksum for a complete one.
    Either,
}

/// Headers of the packets that continue a run.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    transport: Transport,
    headers_len: usize,
    headers: [u8; SPAN],
    /// The bits in `headers` that do not change.
    fixed: [u8; SPAN],
    /// The sum of the IPv4 header without length, identification and checksum.
    ip_header: Sum,
    /// The sum of the pseudo header without length.
    pseudo_header: Sum,
    /// The sum of pseudo header and transport header without lengths, sequence number, PSH and checksum.
    transport_header: Sum,
}

/// A packet with expected headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next<'p> {
    pub(super) payload: &'p [u8],
    /// Whether the sender asked for delivery without waiting for more.
    pub(super) pushed: bool,
    /// How the checksum can be right.
    pub(super) check: Check,
}

/// What is known of the checksums of a packet before its payload was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Check {
    /// They are right, as far as there are any.
    Right,
    /// One is wrong, or not in the form that segmentation writes.
    Wrong,
    /// They are right if the payload adds up with this.
    With(Sum),
}

impl Expected {
    /// What follows packets that begin with these `headers`, if those are not too long.
    pub(super) fn after(headers: &[u8], transport: Transport) -> Option<Self> {
        let mut expected = Self {
            transport,
            headers_len: headers.len(),
            headers: [0; SPAN],
            fixed: [0; SPAN],
            ip_header: Sum::default(),
            pseudo_header: transport.pseudo_header(headers, 0),
            transport_header: Sum::default(),
        };
        expected.headers.get_mut(..headers.len())?.copy_from_slice(headers);
        expected.fixed[..headers.len()].fill(0xff);
        let start = transport.start;
        match transport.version {
            Version::V4 => {
                // Length and identification; checksum.
                expected.fixed[2..6].fill(0);
                expected.fixed[10..12].fill(0);
            }
            // Length.
            Version::V6 => expected.fixed[4..6].fill(0),
        }
        match transport.protocol {
            Protocol::Tcp => {
                // Sequence number; flag; checksum.
                expected.fixed[start + 4..start + 8].fill(0);
                expected.fixed[start + 13] = !PSH;
                expected.fixed[start + 16..start + 18].fill(0);
            }
            // Length and checksum.
            Protocol::Udp => expected.fixed[start + 4..start + 8].fill(0),
        }
        let mut fixed = expected.headers;
        fixed.iter_mut().zip(expected.fixed).for_each(|(byte, bits)| *byte &= bits);
        if transport.version == Version::V4 {
            expected.ip_header = Sum::of(&fixed[..IPV4_LEN]);
        }
        expected.transport_header = expected.pseudo_header.and(Sum::of(&fixed[start..]));
        Some(expected)
    }

    /// Takes `packet` for the next of `run`, which consists of at least two.
    ///
    /// Whether there is room for it is the caller's to watch.
    #[inline]
    pub(super) fn next<'p>(&self, packet: &'p [u8], run: &Run, field: Field) -> Option<Next<'p>> {
        let head = packet.first_chunk::<SPAN>()?;
        let payload = packet.get(self.headers_len..)?;
        let Transport { version, protocol, start } = self.transport;
        let transport_header = head.get(start..)?.first_chunk::<20>()?;
        if !self.is_like(head)
            || payload.is_empty()
            || payload.len() > run.size
            || version.claimed_len(head) != Some(packet.len())
        {
            return None;
        }
        let intact = match version {
            Version::V4 => {
                let [length, identification, checksum] = [2, 4, 10].map(|at| be16(head, at));
                let ahead = identification?.wrapping_sub(be16(&self.headers, 4)?);
                let foreseen = if run.same_identification { 0 } else { run.packets };
                if usize::from(ahead) != foreseen {
                    return None;
                }
                let sum = self.ip_header.word(length?).word(identification?);
                checksum? == sum.checksum()
            }
            Version::V6 => true,
        };
        let len = (packet.len() - start) as u16;
        let (at, other_form, varying, pushed) = match protocol {
            Protocol::Tcp => {
                let sequence = be32(transport_header, 4)?;
                if sequence != run.next_sequence {
                    return None;
                }
                let flag = transport_header[13] & PSH;
                (16, 0xffff, Sum::default().long(sequence).word(u16::from(flag)), flag != 0)
            }
            Protocol::Udp => {
                if be16(transport_header, 4)? != len || run.packets >= MAX_DATAGRAMS {
                    return None;
                }
                (6, 0, Sum::default().word(len), false)
            }
        };
        let checksum = be16(transport_header, at)?;
        let is_partial = || checksum == self.pseudo_header.word(len).partial();
        let check = if !intact {
            Check::Wrong
        } else if field != Field::Complete && is_partial() {
            Check::Right
        } else if field == Field::Partial || checksum == other_form {
            Check::Wrong
        } else {
            let rest = Sum::default().word(len).word(checksum);
            Check::With(self.transport_header.and(varying).and(rest))
        };
        Some(Next { payload, pushed, check })
    }

    #[inline]
    fn is_like(&self, head: &[u8; SPAN]) -> bool {
        let both = head.iter().zip(&self.headers);
        both.zip(&self.fixed).fold(0, |all, ((a, b), fixed)| all | (a ^ b) & fixed) == 0
    }
}
