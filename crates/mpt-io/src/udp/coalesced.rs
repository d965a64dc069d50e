//! Received bytes: one datagram, or several of one sender that the kernel put together.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Datagrams of one sender that were received in one piece, in the order of their arrival. Often just
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalesced<'b> {
    /// What the peer sent, one datagram behind the other.
    pub payload: &'b [u8],
    /// Length of each datagram but the last, which may be shorter, in bytes; at least 1.
    pub stride: usize,
    /// Where they came from.
    pub remote: SocketAddr,
    /// The local address that they were sent to, which is the one to answer from.
    pub local: Option<IpAddr>,
    /// DSCP (upper six bits) and ECN (lower two) as they arrived. The kernel puts only datagrams
    /// together that agree in them.
    pub tos: u8,
    /// How long the first one had waited at this host when it was read; zero if that is not known.
    pub waited: Duration,
}

/// One received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'b> {
    /// What the peer sent.
    pub payload: &'b [u8],
    /// Where it came from.
    pub remote: SocketAddr,
    /// The local address that it was sent to, which is the one to answer from.
    pub local: Option<IpAddr>,
    /// DSCP (upper six bits) and ECN (lower two) as they arrived.
    pub tos: u8,
}

impl<'b> Coalesced<'b> {
    /// The payload of each datagram. There is always one at least, if only an empty one.
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = &'b [u8]> + use<'b> {
        let (payload, stride) = (self.payload, self.stride.max(1));
        (0..payload.len().div_ceil(stride).max(1)).map(move |index| {
            let start = index * stride;
            &payload[start..payload.len().min(start + stride)]
        })
    }

    /// The datagrams one by one.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = Datagram<'b>> + use<'b> {
        let Self { remote, local, tos, .. } = *self;
        self.payloads().map(move |payload| Datagram { payload, remote, local, tos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(len: usize, stride: usize) -> Vec<usize> {
        let payload: Vec<_> = (0..len).map(|i| i as u8).collect();
        let remote = "192.0.2.1:4754".parse().unwrap();
        let waited = Duration::ZERO;
        let coalesced =
            Coalesced { payload: &payload, stride, remote, local: None, tos: 2, waited };
        assert_eq!(coalesced.payloads().collect::<Vec<_>>().concat(), payload);
        assert_eq!(coalesced.payloads().len(), coalesced.payloads().count());
        assert!(
            coalesced.datagrams().all(|datagram| (datagram.remote, datagram.tos) == (remote, 2))
        );
        coalesced.datagrams().map(|datagram| datagram.payload.len()).collect()
    }

    #[test]
    fn the_stride_cuts_and_the_last_may_be_shorter() {
        assert_eq!(lengths(30, 10), [10, 10, 10]);
        assert_eq!(lengths(31, 10), [10, 10, 10, 1]);
        assert_eq!(lengths(29, 10), [10, 10, 9]);
        assert_eq!(lengths(9, 10), [9]);
        assert_eq!(lengths(10, usize::MAX), [10]);
    }

    #[test]
    fn an_empty_datagram_is_one_too() {
        assert_eq!(lengths(0, 1), [0]);
        assert_eq!(lengths(0, 0), [0]);
    }
}
