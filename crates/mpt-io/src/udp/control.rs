//! Control messages: what travels beside a datagram.
//!
//! Out go the source address and the type-of-service byte, in comes what the peer used. The layout
//! is the kernel's `struct cmsghdr`: length in a machine word, level and type in a C `int` each, data,
//! and padding to a machine word. Lengths that do not add up end the reading; they are never followed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 2 * size_of::<libc::c_int>();

/// Room for the control messages of one message, aligned as the kernel wants it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control<const N: usize>([u8; N]);

/// Control messages of what is sent: packet information (40 bytes for IPv6), traffic class (24) and
/// a segment size (24).
pub(super) type SendControl = Control<96>;

/// Control messages of a received datagram. Packet information, traffic class, a receive stamp and a
/// segment size take 120 bytes; a buffer of less than 128 has cost others the traffic class, because
/// the kernel drops what does not fit.
pub(super) type ReceiveControl = Control<256>;

/// What the control messages of a received datagram said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// The local address to answer from.
    pub(super) local: Option<IpAddr>,
    /// DSCP and ECN, as in the IP header.
    pub(super) tos: u8,
    /// The length of each datagram but the last, if these are several that were coalesced.
    pub(super) segment: Option<usize>,
    /// When the kernel took it from the interface, since the Unix epoch.
    pub(super) stamp: Option<Duration>,
}

impl<const N: usize> Control<N> {
    pub(super) const EMPTY: Self = Self([0; N]);
    pub(super) const CAPACITY: usize = N;

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    /// The first `len` bytes, as far as there are so many.
    pub(super) fn filled(&self, len: usize) -> &[u8] {
        &self.0[..len.min(N)]
    }

    /// Reads the first `len` bytes, as far as the kernel filled them in.
    pub(super) fn parse(&self, len: usize) -> Received {
        let mut received = Received::default();
        let mut rest = self.filled(len);
        while let Some((level, kind, data)) = next(&mut rest) {
            match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    // struct in_pktinfo: index, ipi_spec_dst, ipi_addr. The middle one is the
                    // address to answer from, also when the datagram went to a broadcast address.
                    received.local = array(data, 4).map(|octets| Ipv4Addr::from(octets).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    // struct in6_pktinfo: address, index.
                    received.local = array(data, 0).map(|octets| Ipv6Addr::from(octets).into());
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => {
                    received.tos = data.first().copied().unwrap_or(0);
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    received.tos = array(data, 0).map_or(0, i32::from_ne_bytes) as u8;
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => received.stamp = stamp(data),
                // A C int here, but an u16 when sending.
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let segment = array(data, 0).map_or(0, i32::from_ne_bytes);
                    received.segment = usize::try_from(segment).ok().filter(|len| *len > 0);
                }
                _ => {}
            }
        }
        received
    }
}

impl SendControl {
    /// Writes what is to differ from the socket's defaults and says how many bytes that took.
    ///
    /// `ipv6` is the socket's family; a `source` of the other family is left out, and the kernel
    /// chooses. `segment` is where the kernel is to cut, in bytes.
    pub(super) fn write(
        &mut self,
        ipv6: bool,
        source: Option<IpAddr>,
        tos: u8,
        segment: Option<u16>,
    ) -> usize {
        let mut at = 0;
        match (ipv6, source) {
            (false, Some(IpAddr::V4(source))) => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&source.octets());
                self.append(&mut at, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            (true, Some(IpAddr::V6(source))) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&source.octets());
                self.append(&mut at, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            (false, Some(IpAddr::V6(_)) | None) | (true, Some(IpAddr::V4(_)) | None) => {}
        }
        if tos != 0 {
            let (level, kind) = match ipv6 {
                false => (libc::IPPROTO_IP, libc::IP_TOS),
                true => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            self.append(&mut at, level, kind, &libc::c_int::from(tos).to_ne_bytes());
        }
        if let Some(segment) = segment {
            self.append(&mut at, libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        at
    }

    fn append(&mut self, at: &mut usize, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let len = HEADER + data.len();
        let message = &mut self.0[*at..*at + len.next_multiple_of(WORD)];
        message.fill(0);
        message[..WORD].copy_from_slice(&len.to_ne_bytes());
        message[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        message[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER..len].copy_from_slice(data);
        *at += message.len();
    }
}

/// Takes the next message off the front of `rest`: level, type and data.
pub(super) fn next<'a>(rest: &mut &'a [u8]) -> Option<(libc::c_int, libc::c_int, &'a [u8])> {
    let len = usize::from_ne_bytes(array(rest, 0)?);
    let level = libc::c_int::from_ne_bytes(array(rest, WORD)?);
    let kind = libc::c_int::from_ne_bytes(array(rest, WORD + 4)?);
    let data = rest.get(HEADER..len)?;
    *rest = rest.get(len.checked_next_multiple_of(WORD)?..).unwrap_or_default();
    Some((level, kind, data))
}

/// Reads a `struct timespec`: seconds and nanoseconds in 64 bits each, or in 32 where the C library still has that.
fn stamp(data: &[u8]) -> Option<Duration> {
    if data.len() >= 16 {
        let seconds = i64::from_ne_bytes(array(data, 0)?);
        let nanos = i64::from_ne_bytes(array(data, 8)?);
        return Some(Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?));
    }
    let seconds = i32::from_ne_bytes(array(data, 0)?);
    let nanos = i32::from_ne_bytes(array(data, 4)?);
    Some(Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Received control messages that hold exactly `bytes`.
    fn received(bytes: &[u8]) -> Received {
        let mut control = ReceiveControl::EMPTY;
        control.0[..bytes.len()].copy_from_slice(bytes);
        control.parse(bytes.len())
    }

    #[test]
    fn what_is_sent_reads_back() {
        for (source, ipv6) in [("192.0.2.9", false), ("2001:db8::9", true)] {
            let source: IpAddr = source.parse().unwrap();
            let mut control = SendControl::EMPTY;
            let len = control.write(ipv6, Some(source), 0xb9, None);
            assert_eq!(len % WORD, 0);
            let expected = Received { local: Some(source), tos: 0xb9, ..Received::default() };
            assert_eq!(received(&control.0[..len]), expected);
        }
    }

    #[test]
    fn default_values_are_not_sent() {
        let mut control = SendControl::EMPTY;
        assert_eq!(control.write(false, None, 0, None), 0);
        assert_eq!(control.write(true, None, 0, None), 0);
        assert_eq!(control.write(true, Some(Ipv4Addr::LOCALHOST.into()), 0, None), 0);
    }

    #[test]
    fn everything_fits_at_once() {
        let mut control = SendControl::EMPTY;
        let len = control.write(true, Some(Ipv6Addr::LOCALHOST.into()), 255, Some(1400));
        assert!(len <= SendControl::CAPACITY);
        let last = &control.0[len - (HEADER + 2).next_multiple_of(WORD)..len];
        assert_eq!(last[..WORD], (HEADER + 2).to_ne_bytes(), "the kernel insists on two bytes");
        assert_eq!(last[HEADER..HEADER + 2], 1400_u16.to_ne_bytes());
    }

    #[test]
    fn a_segment_size_is_an_int_and_positive() {
        let segment = |value: i32| {
            let mut control = SendControl::EMPTY;
            let mut len = 0;
            control.append(&mut len, libc::SOL_UDP, libc::UDP_GRO, &value.to_ne_bytes());
            received(&control.0[..len]).segment
        };
        assert_eq!(segment(70_000), Some(70_000));
        assert_eq!((segment(0), segment(-1)), (None, None));
    }

    #[test]
    fn a_stamp_is_a_time_since_the_epoch() {
        let stamp = |seconds: isize, nanos: isize| {
            let mut control = SendControl::EMPTY;
            let mut len = 0;
            let data = [seconds.to_ne_bytes(), nanos.to_ne_bytes()].concat();
            control.append(&mut len, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &data);
            received(&control.0[..len]).stamp
        };
        assert_eq!(stamp(1_700_000_000, 7), Some(Duration::new(1_700_000_000, 7)));
        assert_eq!((stamp(-1, 0), stamp(0, -1)), (None, None));
    }

    #[test]
    fn wrong_lengths_are_not_trusted() {
        let mut control = SendControl::EMPTY;
        let len = control.write(false, Some(Ipv4Addr::LOCALHOST.into()), 4, None);
        for lie in [0, 1, HEADER - 1, len + 1, 4096, usize::MAX] {
            let mut bytes = control.0;
            bytes[..WORD].copy_from_slice(&lie.to_ne_bytes());
            assert_eq!(received(&bytes[..len]).local, None, "{lie}");
        }
        for cut in 0..len {
            received(&control.0[..cut]);
        }
        assert_eq!(ReceiveControl::EMPTY.parse(usize::MAX), Received::default());
    }
}
