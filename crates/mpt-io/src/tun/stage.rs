//! One super-packet while it grows.

use super::VnetHeader;
use super::checksum::Sum;
use super::expected::{self, Check, Expected, Next};
use super::inner::{
    Field, IPV4_LEN, IPV6_LEN, MAX_PACKET, PSH, Protocol, Transport, UDP_LEN, Version, put16,
};
use super::merge::{Candidate, Identification, Run};

/// Memory in which packets are put together: the headers of the first, the payloads of all.
///
/// Packets are lent only while they are pushed, so they are copied, which takes 30 ns for 1448 bytes
/// and 40 ns with the checksum verified on the way. To gather them from where they are, with one
/// vector for each payload, would cost the kernel 20 ns more and the checksum alone 30 ns: nothing
/// would be gained, and every packet would have to stay in its place until the burst ends.
#[derive(Debug)]
pub(super) struct Stage {
    memory: Box<[u8]>,
    len: usize,
    open: Option<Open>,
    /// What comes next, once there are two packets, so that one that stays alone costs nothing.
    expected: Option<Expected>,
}

/// What came of a packet that might be the [next](Stage::extend).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    /// It was added.
    Added,
    /// It was added and none can follow: it is shorter than the others, or pushed.
    Last,
    /// It would be the next, but a checksum in it is wrong.
    Corrupt,
    /// It is not of the simple forms handled here; nothing was done.
    Unforeseen,
}

/// The super-packet that is put together.
#[derive(Clone, Copy, Debug)]
struct Open {
    transport: Transport,
    headers_len: usize,
    run: Run,
    /// The only packet lacks its transport checksum; more than one lack it anyhow.
    partial: bool,
    /// Bytes of the packets that went in, all headers included.
    bytes: u64,
}

/// What a finished super-packet consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) protocol: Protocol,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self { memory: vec![0; MAX_PACKET].into_boxed_slice(), len: 0, open: None, expected: None }
    }

    /// Adds `packet` if it is the next of the super-packet that is here, as
    /// [`is_continued_by`](Self::is_continued_by), [`Candidate::is_intact`] and [`add`](Self::add)
    /// would, in a single pass over it.
    #[inline]
    pub(super) fn extend(&mut self, packet: &[u8], field: expected::Field) -> Extension {
        if self.expected.is_none() {
            return Extension::Unforeseen;
        }
        self.extend_as_expected(packet, field)
    }

    fn extend_as_expected(&mut self, packet: &[u8], field: expected::Field) -> Extension {
        let (Some(open), Some(expected)) = (&mut self.open, &self.expected) else {
            return Extension::Unforeseen;
        };
        let Some(Next { payload, pushed, check }) = expected.next(packet, &open.run, field) else {
            return Extension::Unforeseen;
        };
        // Behind what is here, where it may lie as long as the length does not say that it is there.
        let Some(place) = self.memory[self.len..].get_mut(..payload.len()) else {
            return Extension::Unforeseen;
        };
        match check {
            Check::Right => place.copy_from_slice(payload),
            Check::With(headers) if headers.and(Sum::of_copied(payload, place)).is_valid() => {}
            Check::With(_) | Check::Wrong => return Extension::Corrupt,
        }
        let last = open.grow(payload.len(), pushed);
        self.len += payload.len();
        if pushed {
            self.memory[open.transport.start + 13] |= PSH;
        }
        if last { Extension::Last } else { Extension::Added }
    }

    /// Whether `candidate` can be [added](Self::add) to what is here.
    #[inline]
    pub(super) fn is_continued_by(
        &self,
        candidate: &Candidate<'_>,
        identification: Identification,
    ) -> bool {
        self.open.is_some_and(|open| {
            let first = &self.memory[..open.headers_len];
            self.len + candidate.payload().len() <= self.memory.len()
                && candidate.continues(&open.run, first, open.transport, identification)
        })
    }

    /// Begins with a packet that is not pushed; nothing may be here. `false` if it is too long.
    pub(super) fn begin(&mut self, candidate: &Candidate<'_>, partial: bool) -> bool {
        debug_assert!(self.open.is_none(), "a super-packet is taken before the next begins");
        let Candidate { packet, transport, headers_len } = *candidate;
        let Some(memory) = self.memory.get_mut(..packet.len()) else { return false };
        memory.copy_from_slice(packet);
        self.len = packet.len();
        let size = packet.len() - headers_len;
        let run = Run {
            packets: 1,
            size,
            next_sequence: candidate.sequence().wrapping_add(size as u32),
            same_identification: false,
        };
        let bytes = packet.len() as u64;
        self.open = Some(Open { transport, headers_len, run, partial, bytes });
        true
    }

    /// Adds a packet that [continues](Self::is_continued_by) what is here. `true` if none can
    /// follow: it is shorter than the others, or pushed.
    pub(super) fn add(&mut self, candidate: &Candidate<'_>) -> bool {
        let Some(open) = &mut self.open else { return true };
        let payload = candidate.payload();
        self.memory[self.len..self.len + payload.len()].copy_from_slice(payload);
        self.len += payload.len();
        open.run.same_identification =
            open.transport.version == Version::V4 && candidate.packet[4..6] == self.memory[4..6];
        let last = open.grow(payload.len(), candidate.is_pushed());
        if candidate.is_pushed() {
            self.memory[open.transport.start + 13] |= PSH;
        }
        if self.expected.is_none() {
            self.expected = Expected::after(&self.memory[..open.headers_len], open.transport);
        }
        last
    }

    /// Finishes what is here, if anything is: a lone packet as it came, several as a super-packet.
    pub(super) fn take(&mut self) -> Option<(VnetHeader, &mut [u8], Content)> {
        let open = self.open.take()?;
        self.expected = None;
        let content = Content {
            protocol: open.transport.protocol,
            packets: open.run.packets as u64,
            bytes: open.bytes,
        };
        let packet = &mut self.memory[..self.len];
        let header = match (open.run.packets, open.partial) {
            (1, false) => VnetHeader::NONE,
            (1, true) => partial_header(open.transport.field()),
            _ => open.finish(packet),
        };
        Some((header, packet, content))
    }

    /// Memory for one packet, while no super-packet is here.
    pub(super) fn scratch(&mut self, packet: &[u8]) -> Option<&mut [u8]> {
        debug_assert!(self.open.is_none(), "a super-packet is taken before its memory is used");
        let memory = self.memory.get_mut(..packet.len())?;
        memory.copy_from_slice(packet);
        Some(memory)
    }
}

impl Open {
    /// Counts a packet with so much payload. `true` if none can follow: it is shorter than the others,
    /// or pushed.
    #[inline]
    fn grow(&mut self, payload: usize, pushed: bool) -> bool {
        self.run.packets += 1;
        self.run.next_sequence = self.run.next_sequence.wrapping_add(payload as u32);
        self.bytes += (self.headers_len + payload) as u64;
        pushed || payload < self.run.size
    }

    /// Makes the headers of the first packet those of all together.
    fn finish(&self, packet: &mut [u8]) -> VnetHeader {
        let Field { start, at } = self.transport.field();
        let len = packet.len();
        match self.transport.version {
            Version::V4 => {
                put16(packet, 2, len as u16);
                put16(packet, 10, 0);
                let checksum = Sum::of(&packet[..IPV4_LEN]).checksum();
                put16(packet, 10, checksum);
            }
            Version::V6 => put16(packet, 4, (len - IPV6_LEN) as u16),
        }
        if self.transport.protocol == Protocol::Udp {
            debug_assert_eq!(self.headers_len, start + UDP_LEN);
            put16(packet, start + 4, (len - start) as u16);
        }
        let pseudo_header = self.transport.pseudo_header(packet, len - start);
        put16(packet, at, pseudo_header.partial());
        VnetHeader {
            gso_type: match (self.transport.protocol, self.transport.version) {
                (Protocol::Tcp, Version::V4) => VnetHeader::GSO_TCPV4,
                (Protocol::Tcp, Version::V6) => VnetHeader::GSO_TCPV6,
                (Protocol::Udp, _) => VnetHeader::GSO_UDP_L4,
            },
            hdr_len: self.headers_len as u16,
            gso_size: self.run.size as u16,
            ..partial_header(self.transport.field())
        }
    }
}

/// The header of a packet with a partial checksum in `field`.
pub(super) fn partial_header(field: Field) -> VnetHeader {
    VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        csum_start: field.start as u16,
        csum_offset: (field.at - field.start) as u16,
        ..VnetHeader::NONE
    }
}
