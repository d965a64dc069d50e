//! The kernel's information about a TCP connection (`TCP_INFO`).

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::sockopt;

/// Measurements of one TCP connection. Fields that an older kernel does not provide are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again, ever.
    pub retransmits_total: u32,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Smallest round-trip time measured recently.
    pub min_rtt: Duration,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments.
    pub ssthresh: u32,
    /// Segment size for sending, in bytes.
    pub mss: u32,
    /// Reordering that this connection tolerates, in segments.
    pub reordering: u32,
    /// Segments that were found to have been sent again needlessly.
    pub duplicates_reported: u32,
    /// Bytes that the peer acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes sent again.
    pub bytes_retransmitted: u64,
    /// Delivery rate lately, in bytes per second.
    pub delivery_rate: u64,
}

/// Asks the kernel about the TCP socket `fd`.
///
/// # Errors
///
/// The kernel's error, for example when this is no TCP socket.
pub fn tcp_info(fd: impl AsFd) -> io::Result<TcpInfo> {
    // Longer than any version of the structure so far; a kernel fills in the fields that it
    // supports.
    let mut raw = [0; 512];
    let len = sockopt::read(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
    Ok(parse(&raw[..len]))
}

/// Reads `struct tcp_info` of `linux/tcp.h`, which only ever grows at the end.
fn parse(raw: &[u8]) -> TcpInfo {
    let word = |at: usize| raw.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes(word4(b)));
    let long = |at: usize| raw.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes(word8(b)));
    let micros = |at| Duration::from_micros(u64::from(word(at)));
    TcpInfo {
        mss: word(16),
        rtt: micros(68),
        rtt_variation: micros(72),
        ssthresh: word(76),
        cwnd: word(80),
        reordering: word(88),
        retransmits_total: word(100),
        bytes_acked: long(120),
        bytes_received: long(128),
        // The kernel says u32::MAX as long as it has no sample.
        min_rtt: if word(148) == u32::MAX { Duration::ZERO } else { micros(148) },
        delivery_rate: long(160),
        bytes_retransmitted: long(208),
        duplicates_reported: word(216),
    }
}

fn word4(bytes: &[u8]) -> [u8; 4] {
    std::array::from_fn(|i| bytes[i])
}

fn word8(bytes: &[u8]) -> [u8; 8] {
    std::array::from_fn(|i| bytes[i])
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn a_connection_that_carried_bytes_shows_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        server.write_all(&[1; 10]).unwrap();
        client.read_exact(&mut [0; 10]).unwrap();

        let info = tcp_info(&client).unwrap();
        assert_eq!((info.bytes_acked, info.bytes_received), (1001, 10), "the SYN counts as one");
        assert!(info.cwnd > 0 && info.mss >= 536 && info.reordering > 0, "{info:?}");
        assert!(!info.rtt.is_zero() && !info.min_rtt.is_zero(), "{info:?}");
        assert!(info.min_rtt <= info.rtt * 2 && info.rtt < Duration::from_secs(1), "{info:?}");
        assert_eq!(tcp_info(&server).unwrap().bytes_received, 1000);
    }

    #[test]
    fn an_older_kernels_shorter_answer_leaves_zeroes() {
        let mut raw = [0; 104];
        raw[100..].copy_from_slice(&7_u32.to_ne_bytes());
        let expected = TcpInfo { retransmits_total: 7, ..TcpInfo::default() };
        assert_eq!(parse(&raw), expected);
        assert_eq!(parse(&[]), TcpInfo::default());
    }

    #[test]
    fn a_udp_socket_has_none() {
        assert!(tcp_info(UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }
}
