//! Extended framing, sending: the sequences of a session, and the header of each datagram.

use std::ops::Range;

use crate::framing::datagram::Item;
use crate::sequence::Seq;
use crate::time::Instant;
use crate::wire::extended::sealed::TAG_LEN;
use crate::wire::extended::{Flags, Header, Kind, NO_PATH};
use crate::wire::flow::Flow;
use crate::wire::gre::Protocol;
use crate::wire::segment::Segment;
use crate::wire::short::Short;

/// Flows are hashed to so many buckets (section 8.1 of `docs/protocol.md`).
const BUCKETS: usize = 1024;

/// A number further behind the next one than this is not sent again: see the same constant of plain framing.
const REACH: u32 = 12_288;

/// What the headers of one session are made of.
#[derive(Debug)]
pub(crate) struct Tx {
    /// The index that the peer has chosen.
    index: u32,
    /// [`Flags::PARTIAL`] if the peer accepts packets with a partial checksum.
    flags: Flags,
    /// Whether datagrams are sealed.
    is_sealed: bool,
    /// The number of the next message that counts by no path, where they are sealed.
    next_control: u32,
    next: Seq,
    /// By bucket, the number after that of the last packet; 0 if there was none. Allocated with the first
    /// packet, because most connections of a server are idle.
    buckets: Option<Box<[u32; BUCKETS]>>,
    flow: LastFlow,
}

/// A path, as the peer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WirePath {
    /// Its path id, below [`NO_PATH`].
    pub(crate) id: u8,
    /// The path sequence of the next datagram.
    pub(crate) next: u32,
}

/// The header of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    header: Header,
    is_sealed: bool,
}

/// The flow of the last packet, so that a row of packets of one flow is hashed once.
#[derive(Debug, Default)]
struct LastFlow {
    /// Addresses, then ports and protocol; what is not read is 0.
    key: [u64; 5],
    bucket: u16,
}

/// Whether a packet is an acknowledgement of TCP and nothing else. A later one says all that it says, so none waits for
/// another: where delays vary that would make each take as long as the slowest of them.
#[inline(always)]
fn is_bare_ack(item: &Item<'_>) -> bool {
    matches!(item.short(), Short::Segment(Segment::Ack(_) | Segment::Report | Segment::Marked))
}

impl WirePath {
    /// Takes the next path sequence.
    #[inline(always)]
    fn take(&mut self) -> u32 {
        let sequence = self.next;
        self.next = sequence.wrapping_add(1);
        sequence
    }
}

impl Tx {
    /// `partial`: the peer accepts packets with a partial checksum.
    pub(crate) fn new(index: u32, partial: bool, is_sealed: bool) -> Self {
        let flags = if partial { Flags::PARTIAL } else { Flags::NONE };
        let (next, buckets, flow) = (Seq::FIRST, None, LastFlow::default());
        Self { index, flags, is_sealed, next_control: 0, next, buckets, flow }
    }

    /// The peer receives under another index from now on.
    pub(crate) fn set_index(&mut self, index: u32) {
        self.index = index;
    }

    /// The index under which the peer receives.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The number before the next one.
    pub(crate) fn last(&self) -> Seq {
        self.next.minus(1)
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.buckets.as_ref().map_or(0, |_| BUCKETS * size_of::<u32>())
    }

    /// Gives back memory. What was sent before has arrived or is lost, so that no packet waits for it.
    pub(crate) fn rest(&mut self) {
        self.buckets = None;
    }

    #[inline(always)]
    pub(crate) fn stamp(&mut self, now: Instant, item: &Item<'_>, path: &mut WirePath) -> Stamp {
        self.number(item).leaving(now, path)
    }

    /// The stamp of a packet whose place in the order is known, but not yet when and on which path it leaves.
    #[inline(always)]
    pub(crate) fn number(&mut self, item: &Item<'_>) -> Stamp {
        let sequence = self.next;
        self.next = sequence.next();
        let distance = if is_bare_ack(item) { 0 } else { self.distance(item) };
        let header = Header {
            key: self.index,
            sequence: Some(sequence),
            kind: Kind::Data,
            flags: self.flags,
            path: NO_PATH,
            distance,
            path_sequence: 0,
            sent: 0,
        };
        Stamp { header, is_sealed: self.is_sealed }
    }

    /// How far back the packet before of its flow was, whose number is the last that was given.
    #[inline(always)]
    fn distance(&mut self, item: &Item<'_>) -> u16 {
        let bucket = self.flow.bucket(item);
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        match std::mem::replace(&mut buckets[bucket], self.next.value()) {
            0 => 0,
            after => self.next.value().wrapping_sub(after).min(u32::from(u16::MAX)) as u16,
        }
    }

    /// Whether the peer accepts packets with a partial checksum.
    pub(crate) fn is_partial(&self) -> bool {
        self.flags.contains(Flags::PARTIAL)
    }

    /// The stamp of a copy that does not leave yet. `is_index` says whether an index was another one of this session.
    pub(crate) fn again(&self, stamp: Stamp, is_index: impl FnOnce(u32) -> bool) -> Option<Stamp> {
        let Header { key, sequence, flags, .. } = stamp.header;
        let behind = self.next.value().wrapping_sub(sequence?.value());
        if key != self.index && !is_index(key) || behind > REACH {
            return None;
        }
        let flags = flags.without(Flags::COVERED) | Flags::OUT_OF_TURN;
        let header = Header { key: self.index, flags, ..stamp.header };
        Some(Stamp { header, is_sealed: self.is_sealed })
    }

    /// The stamp of a message whose path sequence counts.
    pub(crate) fn stamp_control(&self, now: Instant, kind: Kind, path: &mut WirePath) -> Stamp {
        let Stamp { header, .. } = Stamp::uncounted(now, kind, self.index, path.id);
        let header = Header { path_sequence: path.take(), ..header };
        Stamp { header, is_sealed: self.is_sealed }
    }

    /// The stamp of a parity, which does not leave yet.
    pub(crate) fn parity(&self) -> Stamp {
        let stamp = Stamp::uncounted(Instant::ZERO, Kind::Parity, self.index, NO_PATH);
        Stamp { is_sealed: self.is_sealed, ..stamp }
    }

    /// The stamp of a message of the session that counts by no path. Where datagrams are sealed it has a number all the same.
    pub(crate) fn stamp_uncounted(&mut self, now: Instant, kind: Kind, path: u8) -> Stamp {
        let stamp = Stamp::uncounted(now, kind, self.index, path);
        if !self.is_sealed {
            return stamp;
        }
        let header = Header { path_sequence: self.next_control, ..stamp.header };
        self.next_control = self.next_control.wrapping_add(1);
        Stamp { header, is_sealed: true }
    }
}

impl Stamp {
    /// The same with one of [`Flags::OUT_OF_TURN`] and [`Flags::EQUALISE`].
    pub(crate) fn with(self, flag: Flags) -> Self {
        let header = Header { flags: self.header.flags | flag, ..self.header };
        Self { header, ..self }
    }

    /// The stamp of a message that begins a session or asks an origin for an answer.
    pub(crate) fn uncounted(now: Instant, kind: Kind, key: u32, path: u8) -> Self {
        let (sequence, flags, sent) = (None, Flags::NONE, now.micros());
        let (distance, path_sequence) = (0, 0);
        let header = Header { key, sequence, kind, flags, path, distance, path_sequence, sent };
        Self { header, is_sealed: false }
    }

    /// The packet leaves now on this path.
    #[inline(always)]
    pub(crate) fn leaving(self, now: Instant, path: &mut WirePath) -> Self {
        let (path_sequence, sent) = (path.take(), now.micros());
        let header = Header { path: path.id, path_sequence, sent, ..self.header };
        Self { header, ..self }
    }

    /// The path sequence that it has taken.
    pub(crate) const fn path_sequence(&self) -> u32 {
        self.header.path_sequence
    }

    /// Its number, by which it has its place in the order of the connection.
    pub(crate) const fn sequence(&self) -> Option<Seq> {
        self.header.sequence
    }

    /// Whether the datagram is sealed after it was written.
    #[inline(always)]
    pub(crate) const fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes behind the payload.
    #[inline(always)]
    pub(crate) const fn trailer(&self) -> usize {
        if self.is_sealed { TAG_LEN } else { 0 }
    }

    #[inline(always)]
    pub(crate) const fn overhead(&self) -> usize {
        self.header.size() + self.trailer()
    }

    /// The place of the payload.
    #[inline(always)]
    pub(crate) fn payload(&self, len: usize) -> Range<usize> {
        self.header.size()..len - self.trailer()
    }

    #[inline(always)]
    pub(crate) fn emit(&self, datagram: &mut [u8], fill: impl FnOnce(&mut [u8])) {
        let place = self.payload(datagram.len());
        fill(&mut datagram[place]);
        self.header.emit(datagram);
    }

    /// The same for an inner packet, where `fill` says whether its checksum is partial; that is returned, too.
    #[inline(always)]
    pub(crate) fn emit_either(
        &self,
        datagram: &mut [u8],
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        let place = self.payload(datagram.len());
        let partial = fill(&mut datagram[place]);
        let Header { flags, .. } = self.header;
        let flags = if partial { flags } else { flags.without(Flags::PARTIAL) };
        Header { flags, ..self.header }.emit(datagram);
        partial
    }

    /// The checksum of the packet is complete.
    #[inline]
    pub(crate) fn complete(&mut self) {
        self.header.flags = self.header.flags.without(Flags::PARTIAL);
    }

    /// Whether the packet may have a partial checksum.
    #[inline(always)]
    pub(crate) const fn may_be_partial(&self) -> bool {
        self.header.flags.contains(Flags::PARTIAL)
    }
}

impl LastFlow {
    /// The bucket of a packet. Fragments may get another one than the rest of their flow, and a packet that
    /// resembles the one before by chance the same: the receiver relies on no more than that equal buckets
    /// are in order.
    #[inline(always)]
    fn bucket(&mut self, item: &Item<'_>) -> usize {
        let same = match key_v4(item) {
            Some([addresses, rest]) => self.key[0] == addresses && self.key[4] == rest,
            None => key(item) == Some(self.key),
        };
        if !same {
            self.begin(item);
        }
        usize::from(self.bucket)
    }

    /// A packet of another flow came.
    fn begin(&mut self, item: &Item<'_>) {
        let hash = Flow::parse(item.packet, item.inner).hash();
        self.key = key(item).unwrap_or_default();
        self.bucket = (hash % BUCKETS as u64) as u16;
    }
}

/// Set in the last word of a key of IPv4.
const IS_V4: u64 = 1 << 63;

/// The first and the last word of the [key] of an IPv4 packet; the others are 0.
#[inline(always)]
fn key_v4(item: &Item<'_>) -> Option<[u64; 2]> {
    let header: &[u8; 24] = item.packet.first_chunk()?;
    if header[0] != 0x45 {
        return None;
    }
    let addresses = u64::from_ne_bytes(header[12..20].try_into().ok()?);
    let ports = u32::from_ne_bytes(header[20..24].try_into().ok()?);
    Some([addresses, IS_V4 | u64::from(ports) << 8 | u64::from(header[9])])
}

/// What distinguishes the packets of most flows: addresses, the first four bytes above IP, and the protocol. `None` if the
/// packet is too short or has options.
fn key(item: &Item<'_>) -> Option<[u64; 5]> {
    match item.inner.protocol {
        Protocol::Ipv4 => key_v4(item).map(|[addresses, rest]| [addresses, 0, 0, 0, rest]),
        Protocol::Ipv6 => {
            let header: &[u8; 44] = item.packet.first_chunk()?;
            let mut key = [0; 5];
            for (word, bytes) in key.iter_mut().zip(header[8..40].chunks_exact(8)) {
                *word = u64::from_ne_bytes(bytes.try_into().ok()?);
            }
            let ports = u32::from_ne_bytes(header[40..44].try_into().ok()?);
            key[4] = u64::from(ports) << 8 | u64::from(header[6]);
            Some(key)
        }
    }
}

#[cfg(test)]
mod tests;
