//! From super-packets to packets: the first step behind the TUN device.

use super::inner::{Field, IPV6_LEN, MAX_PACKET, Protocol, Transport, Version, ip_header_len};
use super::read_counters::{Lie, ReadCounters};
use super::segment::Segments;
use super::{Offloads, VnetHeader, vnet};

/// The headers of a packet are in so many bytes, as a rule.
const HEADERS: usize = 64;

/// Memory for one super-packet, allocated once and used for every read, and the count of all reads.
#[derive(Debug)]
pub struct Burst {
    memory: Box<[u8]>,
    counters: ReadCounters,
}

/// What one read returned: one or more inner packets in the memory of a [`Burst`].
#[derive(Debug)]
pub struct SuperPacket<'b> {
    /// Mutable, because a segment's headers are written in front of its payload.
    memory: &'b mut [u8],
    rest: Rest,
}

/// An inner packet that may lack its transport checksum.
///
/// Two things can be done with it. The checksum is filled in: where the packet lies
/// ([`finish`](Self::finish)), or on the way to where it is sent from ([`emit`](Self::emit)), which
/// looks at every byte only once. Or it is left out ([`leave`](Self::leave),
/// [`emit_partial`](Self::emit_partial)), for tunnels whose ends agreed to it because something stronger
/// protects the packet in between: the field then holds the sum of the pseudo header, and the far end
/// hands the packet to [`Coalescer::push_either`](super::Coalescer::push_either). Where the packet
/// goes is known only after a look at it, which is why the choice is made packet by packet.
#[derive(Debug)]
pub struct Unfinished<'p> {
    bytes: &'p mut [u8],
    missing: Option<Missing>,
}

/// A partial checksum, to be completed.
#[derive(Clone, Copy, Debug)]
struct Missing {
    field: Field,
    /// The packet is known to [show](Transport::of_partial) that it lacks this one. If not, it may
    /// show it all the same.
    shown: bool,
}

/// What is not handed out yet.
#[derive(Debug)]
enum Rest {
    Nothing,
    One(Option<Field>),
    Segments(Segments),
}

impl Burst {
    /// Room for the largest super-packet; pages are touched only as far as packets reach.
    pub fn new() -> Self {
        // The length field of IPv6 does not cover its header.
        let memory = vec![0; vnet::LEN + IPV6_LEN + MAX_PACKET].into_boxed_slice();
        Self { memory, counters: ReadCounters::default() }
    }

    /// What was read into this memory so far.
    pub fn counters(&self) -> ReadCounters {
        self.counters
    }

    pub(super) fn parts(&mut self) -> (&mut [u8], &mut ReadCounters) {
        (&mut self.memory, &mut self.counters)
    }
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}

impl<'b> SuperPacket<'b> {
    /// Parses what a device with these `offloads` returned: a packet, preceded by a [`VnetHeader`]
    /// if `offloads` include it.
    ///
    /// If it is invalid, the super-packet is empty and a counter shows the reason.
    pub fn new(memory: &'b mut [u8], offloads: Offloads, counters: &mut ReadCounters) -> Self {
        if !offloads.vnet_header {
            counters.packets += 1;
            return Self { memory, rest: Rest::One(None) };
        }
        let Some((header, packet)) = memory.split_first_chunk_mut().filter(|(_, p)| !p.is_empty())
        else {
            counters.truncated += 1;
            return Self { memory: &mut [], rest: Rest::Nothing };
        };
        Self::with_header(&VnetHeader::from_bytes(*header), packet, offloads, counters)
    }

    /// As [`new`](Self::new), with the header elsewhere.
    pub(super) fn with_header(
        header: &VnetHeader,
        memory: &'b mut [u8],
        offloads: Offloads,
        counters: &mut ReadCounters,
    ) -> Self {
        let rest = match check(header, memory, offloads) {
            Ok(rest) => rest,
            Err(counter) => {
                *counter(counters) += 1;
                Rest::Nothing
            }
        };
        let packets = match &rest {
            Rest::Nothing => 0,
            Rest::One(_) => 1,
            Rest::Segments(segments) => segments.count() as u64,
        };
        counters.packets += packets;
        counters.super_packets += u64::from(packets > 1);
        Self { memory, rest }
    }

    /// The next inner packet, finished: complete headers, checksums filled in.
    ///
    /// It is valid until the next call. This is not an [`Iterator`] because packets of one
    /// super-packet share memory: the headers of each are written over the end of the one before.
    pub fn next_packet(&mut self) -> Option<&[u8]> {
        self.next_unfinished().map(Unfinished::finish)
    }

    /// The next inner packet, its transport checksum perhaps missing.
    ///
    /// In other respects like [`next_packet`](Self::next_packet). A checksum is left partial only
    /// if the far end can recognize this from the packet.
    // Returned through memory, what is written in pieces there would be read as a whole at once, which stalls.
    #[inline(always)]
    pub fn next_unfinished(&mut self) -> Option<Unfinished<'_>> {
        let (bytes, missing) = match &mut self.rest {
            Rest::Nothing => return None,
            Rest::One(field) => {
                let missing = field.map(|field| Missing { field, shown: false });
                self.rest = Rest::Nothing;
                (&mut *self.memory, missing)
            }
            Rest::Segments(segments) => {
                let range = segments.next(self.memory)?;
                let missing = Missing { field: segments.field(), shown: segments.shows_field() };
                (&mut self.memory[range], Some(missing))
            }
        };
        Some(Unfinished { bytes, missing })
    }
}

impl<'p> Unfinished<'p> {
    /// The packet as it is.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The same, to be changed on the way.
    ///
    /// What is changed in the headers of a packet out of a super-packet may show in those that follow,
    /// which take theirs from it; none but TCP options may be changed in those.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Whether the transport checksum is partial, so that a change of the bytes that it covers
    /// needs no update of the field. If not, the field contains the checksum, which must be updated
    /// with every change of the packet.
    #[inline]
    pub fn lacks_checksum(&self) -> bool {
        self.missing.is_some()
    }

    /// The packet with its transport checksum.
    #[inline]
    pub fn finish(self) -> &'p [u8] {
        if let Some(missing) = self.missing {
            missing.field.complete(self.bytes);
        }
        self.bytes
    }

    /// Copies the packet with its transport checksum to `place`. If that is shorter, the packet ends
    /// there, as one does whose IP header claims less than was read.
    ///
    /// # Panics
    ///
    /// If `place` is longer than the packet.
    #[inline]
    pub fn emit(&self, place: &mut [u8]) {
        let bytes = &self.bytes[..place.len()];
        match self.missing {
            Some(Missing { field, .. }) if field.end() <= bytes.len() => {
                field.complete_copy(bytes, place);
            }
            _ => place.copy_from_slice(bytes),
        }
    }

    /// The packet as it is, without its transport checksum if that was missing, and whether it was.
    ///
    /// A checksum whose absence the far end would not see is filled in and does not count as
    /// missing: where the packet has no such field, and behind a routing header, which makes the
    /// pseudo header of the packet another than the one that the sum is of.
    #[inline]
    pub fn leave(self) -> (&'p [u8], bool) {
        if self.may_be_left() { (self.bytes, true) } else { (self.finish(), false) }
    }

    /// Copies the packet to `place`, without its transport checksum where [`leave`](Self::leave) would
    /// leave it out, and says whether that is so.
    ///
    /// # Panics
    ///
    /// If `place` is longer than the packet.
    #[inline]
    pub fn emit_partial(&self, place: &mut [u8]) -> bool {
        let left = self.may_be_left() && place.len() == self.bytes.len();
        if !left {
            self.emit(place);
            return false;
        }
        let parts = (self.bytes.split_first_chunk::<HEADERS>(), place.split_first_chunk_mut());
        match parts {
            (Some((headers, payload)), Some((headers_place, payload_place))) => {
                // The headers were written in pieces a moment ago, and reading them as a whole has to wait for that.
                payload_place.copy_from_slice(payload);
                *headers_place = *headers;
            }
            _ => place.copy_from_slice(self.bytes),
        }
        true
    }

    #[inline]
    fn may_be_left(&self) -> bool {
        self.missing.is_some_and(|Missing { field, shown }| {
            let shows = || Transport::of_partial(self.bytes).is_some_and(|t| t.field() == field);
            shown || shows()
        })
    }
}

/// Compares what the header says with what was asked for and with the packet.
fn check(header: &VnetHeader, packet: &[u8], offloads: Offloads) -> Result<Rest, Lie> {
    let (granted, protocol, version) = match header.gso_type & !VnetHeader::GSO_ECN {
        VnetHeader::GSO_NONE => return check_field(header, packet).map(Rest::One),
        VnetHeader::GSO_TCPV4 => (offloads.tso, Protocol::Tcp, Some(Version::V4)),
        VnetHeader::GSO_TCPV6 => (offloads.tso, Protocol::Tcp, Some(Version::V6)),
        VnetHeader::GSO_UDP_L4 => (offloads.uso, Protocol::Udp, None),
        VnetHeader::GSO_UDP => (false, Protocol::Udp, None),
        _ => return Err(|counters| &mut counters.unknown_type),
    };
    if !granted {
        return Err(|counters| &mut counters.unasked_type);
    }
    Segments::new(header, packet, protocol, version).map(Rest::Segments)
}

/// The field to be completed in a packet that needs no segmentation: any behind the IP header.
fn check_field(header: &VnetHeader, packet: &[u8]) -> Result<Option<Field>, Lie> {
    if !header.needs_checksum() {
        return Ok(None);
    }
    let start = usize::from(header.csum_start);
    let at = start + usize::from(header.csum_offset);
    match ip_header_len(packet) {
        Some(least) if start >= least && at + 2 <= packet.len() => Ok(Some(Field { start, at })),
        _ => Err(|counters| &mut counters.misplaced_checksum),
    }
}
