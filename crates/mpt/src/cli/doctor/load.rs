//! Loads for a few seconds, as large as the tunnel takes.
//!
//! To a peer go datagrams for a port on which nobody listens. From a peer comes what its kernel answers: echo replies (RFC 792,
//! RFC 4443), as many and as large as the requests that arrive there.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::reach::{self, DISCARD};

/// How many flows. One flow could not use more than one path where flows stay on their path.
const FLOWS: usize = 16;

/// Echo requests: type and the length of the IP header.
const ECHO: [(u8, usize); 2] = [(8, 20), (128, 40)];

/// Between as many packets as there are flows: a host that sends all the time has no processor left for the tunnel. Some
/// 1 Gbit/s leave.
const PAUSE: Duration = Duration::from_micros(50);

/// How long a full device is waited for.
const WAIT: Duration = Duration::from_millis(100);

/// Sends packets of `mtu` bytes, IP header included, to the discard port of a peer, for this time.
pub(super) fn there(peer: IpAddr, mtu: usize, span: Duration) {
    let sockets: Vec<_> = (0..FLOWS).filter_map(|_| reach::socket(peer).ok()).collect();
    let usable = sockets.iter().filter(|socket| socket.set_write_timeout(Some(WAIT)).is_ok());
    let usable: Vec<_> = usable.collect();
    let message = vec![0; reach::payload(peer, mtu)];
    let end = Instant::now() + span;
    while Instant::now() < end && !usable.is_empty() {
        for socket in &usable {
            // That nobody listens there is told by the next call; what does not fit now is sent by the next one.
            let _ = socket.send(&message);
        }
        thread::sleep(PAUSE);
    }
}

/// A socket for echo requests to a peer. Replies are counted by the daemon, not read.
///
/// # Errors
///
/// This user may open none: that takes root or CAP_NET_RAW, or `net.ipv4.ping_group_range`.
pub(super) fn echo_socket(peer: IpAddr) -> io::Result<Socket> {
    let (domain, protocol) = match peer {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let open = |kind| Socket::new(domain, kind, Some(protocol));
    let socket = open(Type::DGRAM).or_else(|_| open(Type::RAW))?;
    socket.connect(&SocketAddr::new(peer, DISCARD).into())?;
    socket.set_write_timeout(Some(WAIT))?;
    Ok(socket)
}

/// Sends echo requests of `mtu` bytes, IP header included, for this time.
pub(super) fn and_back(socket: &Socket, peer: IpAddr, mtu: usize, span: Duration) {
    let end = Instant::now() + span;
    let mut number = 0_u16;
    while Instant::now() < end {
        // What does not fit now is sent by the next call.
        for _ in 0..FLOWS {
            let _ = socket.send(&request(peer, mtu, number));
            number = number.wrapping_add(1);
        }
        thread::sleep(PAUSE);
    }
}

/// An echo request of this number. Over IPv6 the kernel writes the checksum, and for sockets that are not raw the
/// identifier too.
fn request(peer: IpAddr, mtu: usize, number: u16) -> Vec<u8> {
    let (kind, header) = ECHO[usize::from(peer.is_ipv6())];
    let mut message = vec![0; mtu.saturating_sub(header).max(8)];
    message[0] = kind;
    message[6..8].copy_from_slice(&number.to_be_bytes());
    // All else is zero: the checksum (RFC 1071) is that of these two words.
    let sum = u32::from(kind) * 256 + u32::from(number);
    let folded = (sum & 0xffff) + (sum >> 16);
    message[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_their_size_and_a_checksum_that_fits() {
        for number in [0, 1, 0xf800, u16::MAX] {
            let message = request([10, 9, 0, 2].into(), 1448, number);
            assert_eq!(message.len(), 1428);
            let words = message.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
            let sum: u32 = words.sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{number}");
        }
        assert_eq!(request([0; 16].into(), 1280, 1).len(), 1240);
    }
}
