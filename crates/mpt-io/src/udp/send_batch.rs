//! A send batch: datagrams of one path, staged one behind the other.

use std::net::{IpAddr, SocketAddr};

use super::MAX_SEND_BATCH;

/// Longest UDP payload over IPv4, in bytes: 65535 less an IP and a UDP header. Over IPv6 it is 20
/// bytes more, which are not used.
pub const MAX_DATAGRAM: usize = 65_535 - 20 - 8;

/// Most bytes of payload that leave as one super-datagram.
///
/// The kernel takes up to [`MAX_DATAGRAM`], but a frame of 64 KiB (`gso_max_size`, an interface's default)
/// or more it segments itself, before the interface could. So this leaves room for an IPv6 and a UDP
/// header, an Ethernet header and two VLAN tags.
pub const MAX_SUPER: usize = 65_535 - 40 - 8 - 14 - 2 * 4;

/// Staged bytes from which a send batch counts as full: four super-datagrams of the largest size. Reading
/// more than about that much from a TUN device before sending gains nothing, and it still fits the
/// second-level cache of a processor core.
const FULL: usize = 4 * MAX_SUPER;

/// Memory becomes real by as many bytes at a time; more on some machines, less on none.
const PAGE: usize = 4096;

/// Datagrams on their way to one remote address, in the order in which they will leave.
///
/// [`reserve`](Self::reserve) gives the place for the next datagram, [`commit`](Self::commit) makes
/// it part of the send batch, [`Socket::send`](super::Socket::send) sends and empties the send batch. Send
/// when the send batch [is full](Self::is_full) and at the end of every burst.
///
/// The memory is allocated once and touched only as far as datagrams reach.
#[derive(Debug)]
pub struct SendBatch {
    remote: SocketAddr,
    source: Option<IpAddr>,
    tos: u8,
    staging: Box<[u8]>,
    /// Where each datagram ends and which type of service it has.
    datagrams: Vec<Staged>,
    /// The most bytes that were staged at once.
    most: usize,
    /// Bytes reserved behind the last datagram.
    reserved: usize,
    /// Most bytes of one super-datagram.
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) tos: u8,
}

impl Staged {
    pub(super) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

impl SendBatch {
    /// An empty send batch to `remote`, from the local address `source` or, if that is `None`, from the
    /// socket's own or the one that the kernel's routes choose.
    pub fn new(remote: SocketAddr, source: Option<IpAddr>) -> Self {
        Self {
            remote,
            source,
            tos: 0,
            staging: vec![0; FULL + MAX_DATAGRAM].into_boxed_slice(),
            datagrams: Vec::new(),
            most: 0,
            reserved: 0,
            limit: MAX_SUPER,
        }
    }

    /// Where the datagrams go.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The local address they leave from, if one was chosen.
    pub fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// The type of service of datagrams committed from here on.
    pub fn tos(&self) -> u8 {
        self.tos
    }

    /// Sets the type of service (DSCP in the upper six bits, ECN in the lower two) of datagrams
    /// committed from here on. Those already in the send batch keep theirs, so it may change at any time.
    pub fn set_tos(&mut self, tos: u8) {
        self.tos = tos;
    }

    /// Most bytes of payload that leave as one super-datagram; [`MAX_SUPER`] unless set.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the most bytes of payload that leave as one super-datagram, from 1 to [`MAX_SUPER`];
    /// numbers beyond are brought into range. A datagram that is longer leaves alone.
    ///
    /// A super-datagram arrives at a slow link as one lump: it delays what comes behind it, and a
    /// shaper whose bucket is smaller has to cut it. What the path carries in about 1 ms is a good
    /// measure, as TCP sizes its own (`tcp_tso_autosize` in the kernel's `net/ipv4/tcp_output.c`).
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes.clamp(1, MAX_SUPER);
    }

    /// The place for a datagram of `len` bytes, at least one, with arbitrary content.
    ///
    /// A place that was reserved but not committed is given up. `None` if the send batch is full or `len`
    /// is more than [`MAX_DATAGRAM`]; as long as it is not full, every possible datagram fits.
    pub fn reserve(&mut self, len: usize) -> Option<&mut [u8]> {
        self.reserved = 0;
        if self.is_full() || len > MAX_DATAGRAM {
            return None;
        }
        self.reserved = len;
        let start = self.bytes();
        Some(&mut self.staging[start..start + len])
    }

    /// Makes the reserved bytes the next datagram; does nothing if none are reserved.
    pub fn commit(&mut self) {
        if self.reserved == 0 {
            return;
        }
        let start = self.bytes();
        let end = start + self.reserved;
        self.datagrams.push(Staged { start: start as u32, end: end as u32, tos: self.tos });
        self.reserved = 0;
    }

    /// Bytes of memory that it really takes, its own size left out: the pages that were touched, as
    /// nothing else is, and what is noted of the datagrams.
    pub fn memory(&self) -> usize {
        self.most.next_multiple_of(PAGE) + self.datagrams.capacity() * size_of::<Staged>()
    }

    /// Number of datagrams in the send batch.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether there is no datagram in the send batch.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Whether it must be sent before another datagram fits: [`MAX_SEND_BATCH`] datagrams, or four times
    /// [`MAX_SUPER`] bytes.
    pub fn is_full(&self) -> bool {
        self.datagrams.len() == MAX_SEND_BATCH || self.bytes() >= FULL
    }

    /// Sum of the lengths of the datagrams in the send batch, in bytes.
    pub fn bytes(&self) -> usize {
        self.datagrams.last().map_or(0, |last| last.end as usize)
    }

    /// Takes all datagrams out unsent.
    pub fn clear(&mut self) {
        self.most = self.most.max(self.bytes());
        self.datagrams.clear();
        self.reserved = 0;
    }

    pub(super) fn staging(&self) -> &[u8] {
        &self.staging
    }

    pub(super) fn staged(&self) -> &[Staged] {
        &self.datagrams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send_batch() -> SendBatch {
        SendBatch::new("192.0.2.1:4754".parse().unwrap(), None)
    }

    fn push(send_batch: &mut SendBatch, payload: &[u8]) {
        send_batch.reserve(payload.len()).unwrap().copy_from_slice(payload);
        send_batch.commit();
    }

    #[test]
    fn datagrams_are_stored_consecutively() {
        let mut send_batch = send_batch();
        push(&mut send_batch, b"one");
        send_batch.set_tos(0xb8);
        push(&mut send_batch, b"three");
        assert_eq!(&send_batch.staging()[..send_batch.bytes()], b"onethree");
        let staged: Vec<_> = send_batch.staged().iter().map(|s| (s.start, s.end, s.tos)).collect();
        assert_eq!(staged, [(0, 3, 0), (3, 8, 0xb8)]);
    }

    #[test]
    fn a_place_counts_only_once_committed_and_once() {
        let mut send_batch = send_batch();
        send_batch.reserve(100).unwrap();
        assert!(send_batch.is_empty());
        push(&mut send_batch, b"x");
        send_batch.commit();
        assert_eq!((send_batch.len(), send_batch.bytes()), (1, 1));
    }

    #[test]
    fn it_is_full_by_number_or_by_bytes() {
        let mut send_batch = send_batch();
        for _ in 0..MAX_SEND_BATCH {
            assert!(!send_batch.is_full());
            push(&mut send_batch, &[0; 100]);
        }
        assert!(send_batch.is_full() && send_batch.reserve(1).is_none());
        send_batch.clear();
        for _ in 0..3 {
            push(&mut send_batch, &[0; MAX_SUPER]);
        }
        push(&mut send_batch, &[0; MAX_SUPER - 1]);
        assert!(!send_batch.is_full());
        push(&mut send_batch, &[0; MAX_DATAGRAM]);
        assert!(send_batch.is_full() && send_batch.reserve(1).is_none());
    }

    #[test]
    fn a_limit_is_brought_into_range() {
        let mut send_batch = send_batch();
        assert_eq!(send_batch.limit(), MAX_SUPER);
        for (wanted, limit) in [(0, 1), (1400, 1400), (usize::MAX, MAX_SUPER)] {
            send_batch.set_limit(wanted);
            assert_eq!(send_batch.limit(), limit);
        }
    }

    #[test]
    fn a_datagram_that_is_too_long_is_refused() {
        let mut send_batch = send_batch();
        assert!(send_batch.reserve(MAX_DATAGRAM + 1).is_none());
        send_batch.commit();
        assert!(send_batch.is_empty());
    }
}
