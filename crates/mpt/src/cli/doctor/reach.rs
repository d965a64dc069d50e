//! Whether a peer answers through the tunnel, to small packets and to packets as large as the tunnel takes.
//!
//! A datagram goes to a port on which nobody listens: that the peer's kernel says so is an answer, and needs neither a
//! privilege here nor a program there. Kernels limit such answers (Linux to six at once and one a second for each
//! destination), so a missing one counts only after several tries.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// A port on which nobody listens: discard (RFC 863).
pub(super) const DISCARD: u16 = 9;

/// How long an answer is waited for before the next try.
const LOOK: Duration = Duration::from_millis(300);

/// How long an answer is waited for altogether.
const ANSWER: Duration = Duration::from_millis(2500);

/// A packet that fits everywhere.
const SMALL: usize = 64;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// The peer, to packets of both sizes.
    Yes,
    /// The peer, to small packets.
    SmallOnly,
    /// Nobody.
    No,
}

/// Asks a peer for answers to small packets and to packets of `mtu` bytes, IP header included.
///
/// # Errors
///
/// This host cannot send there.
pub(super) fn reach(peer: IpAddr, mtu: usize) -> io::Result<Reached> {
    if !answers(peer, SMALL)? {
        return Ok(Reached::No);
    }
    let large = answers(peer, mtu);
    Ok(if large.is_ok_and(|answers| answers) { Reached::Yes } else { Reached::SmallOnly })
}

/// The most that the payload of a UDP datagram to a peer may have if its packet has `len` bytes.
pub(super) const fn payload(peer: IpAddr, len: usize) -> usize {
    let headers = match peer {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    };
    len.saturating_sub(headers)
}

/// A socket that sends to the peer's discard port.
pub(super) fn socket(peer: IpAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => [0, 0, 0, 0].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect((peer, DISCARD))?;
    Ok(socket)
}

/// The address from which this host sends to the peer.
pub(super) fn own(peer: IpAddr) -> Option<IpAddr> {
    Some(socket(peer).ok()?.local_addr().ok()?.ip())
}

/// Whether a host answers to packets of that size: with anything, or that nobody listens there.
fn answers(peer: IpAddr, len: usize) -> io::Result<bool> {
    let socket = socket(peer)?;
    socket.set_read_timeout(Some(LOOK))?;
    let message = vec![0; payload(peer, len)];
    let end = Instant::now() + ANSWER;
    while Instant::now() < end {
        let sent = socket.send(&message).map(drop);
        let Err(error) = sent.and_then(|()| socket.recv(&mut [0; 64])) else { return Ok(true) };
        let kind = error.kind();
        if kind == ErrorKind::ConnectionRefused {
            return Ok(true);
        }
        let may_come = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::HostUnreachable]
            .contains(&kind);
        if !may_come {
            return Err(error);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_listener_answers_to_both_sizes() {
        let here: IpAddr = [127, 0, 0, 1].into();
        if UdpSocket::bind((here, 0)).is_ok() {
            assert_eq!(reach(here, 1448).unwrap(), Reached::Yes);
        }
    }

    #[test]
    fn packets_have_the_size_that_is_asked_for() {
        assert_eq!(payload([10, 9, 0, 2].into(), 1448), 1420);
        assert_eq!(payload([0; 16].into(), 1280), 1232);
    }
}
