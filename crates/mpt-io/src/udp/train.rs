//! A train: datagrams of one path, staged one behind the other.

use std::net::{IpAddr, SocketAddr};

use super::MAX_BATCH;

/// Longest UDP payload over IPv4, in bytes: 65535 less an IP and a UDP header. Over IPv6 it is 20
/// bytes more, which nobody needs.
pub const MAX_DATAGRAM: usize = 65_535 - 20 - 8;

/// Staged bytes from which a train counts as full: what one `UDP_SEGMENT` send can carry.
const FULL: usize = MAX_DATAGRAM;

/// Datagrams on their way to one remote address, in the order in which they will leave.
///
/// [`reserve`](Self::reserve) gives the place for the next datagram, [`commit`](Self::commit) makes
/// it part of the train, [`Socket::send`](super::Socket::send) sends and empties the train. Send
/// when the train [is full](Self::is_full) and at the end of every burst.
///
/// The memory is allocated once and touched only as far as datagrams reach.
#[derive(Debug)]
pub struct Train {
    remote: SocketAddr,
    source: Option<IpAddr>,
    tos: u8,
    staging: Box<[u8]>,
    /// Where each datagram ends and which type of service it has.
    datagrams: Vec<Staged>,
    /// Bytes reserved behind the last datagram.
    reserved: usize,
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

impl Train {
    /// An empty train to `remote`, from the local address `source` or, if that is `None`, from the
    /// socket's own or the one that the kernel's routes choose.
    pub fn new(remote: SocketAddr, source: Option<IpAddr>) -> Self {
        Self {
            remote,
            source,
            tos: 0,
            staging: vec![0; FULL + MAX_DATAGRAM].into_boxed_slice(),
            datagrams: Vec::with_capacity(MAX_BATCH),
            reserved: 0,
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
    /// committed from here on. Those already in the train keep theirs, so it may change at any time.
    pub fn set_tos(&mut self, tos: u8) {
        self.tos = tos;
    }

    /// The place for a datagram of `len` bytes, at least one, with arbitrary content.
    ///
    /// A place that was reserved but not committed is given up. `None` if the train is full or `len`
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

    /// Number of datagrams in the train.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether there is no datagram in the train.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Whether it must be sent before another datagram fits: 64 datagrams, or as many bytes as one
    /// send can carry.
    pub fn is_full(&self) -> bool {
        self.datagrams.len() == MAX_BATCH || self.bytes() >= FULL
    }

    /// Sum of the lengths of the datagrams in the train, in bytes.
    pub fn bytes(&self) -> usize {
        self.datagrams.last().map_or(0, |last| last.end as usize)
    }

    /// Takes all datagrams out unsent.
    pub fn clear(&mut self) {
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

    fn train() -> Train {
        Train::new("192.0.2.1:4754".parse().unwrap(), None)
    }

    fn push(train: &mut Train, payload: &[u8]) {
        train.reserve(payload.len()).unwrap().copy_from_slice(payload);
        train.commit();
    }

    #[test]
    fn datagrams_lie_one_behind_the_other() {
        let mut train = train();
        push(&mut train, b"one");
        train.set_tos(0xb8);
        push(&mut train, b"three");
        assert_eq!(&train.staging()[..train.bytes()], b"onethree");
        let staged: Vec<_> = train.staged().iter().map(|s| (s.start, s.end, s.tos)).collect();
        assert_eq!(staged, [(0, 3, 0), (3, 8, 0xb8)]);
    }

    #[test]
    fn a_place_counts_only_once_committed_and_once() {
        let mut train = train();
        train.reserve(100).unwrap();
        assert!(train.is_empty());
        push(&mut train, b"x");
        train.commit();
        assert_eq!((train.len(), train.bytes()), (1, 1));
    }

    #[test]
    fn it_is_full_by_number_or_by_bytes() {
        let mut train = train();
        for _ in 0..MAX_BATCH {
            assert!(!train.is_full());
            push(&mut train, &[0; 100]);
        }
        assert!(train.is_full() && train.reserve(1).is_none());
        train.clear();
        push(&mut train, &[0; FULL - 1]);
        assert!(!train.is_full());
        push(&mut train, &[0; MAX_DATAGRAM]);
        assert!(train.is_full() && train.reserve(1).is_none());
    }

    #[test]
    fn what_no_datagram_can_carry_is_refused() {
        let mut train = train();
        assert!(train.reserve(MAX_DATAGRAM + 1).is_none());
        train.commit();
        assert!(train.is_empty());
    }
}
