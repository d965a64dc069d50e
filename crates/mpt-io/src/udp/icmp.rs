//! ICMP messages about datagrams that a socket sent, from its error queue (`IP_RECVERR` in `ip(7)`).
//!
//! Anybody on the way can send such messages, so they say why something may not work, and never that it does not.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use super::Socket;
use super::address::{RawAddress, specified};
use super::control::{ReceiveControl, next};
use crate::sockopt;

/// Bytes of the kernel's `struct sock_extended_err`, behind which the address of the message's sender lies.
const EXTENDED_ERROR: usize = 16;

/// An ICMP message about a datagram that was sent earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Where the datagram was sent to.
    pub remote: SocketAddr,
    /// Who sent the message, if that is known. This host itself does where nobody answers for a neighbour's address.
    pub reporter: Option<IpAddr>,
    /// What it says.
    pub kind: Unreachable,
}

/// Why a datagram did not reach its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unreachable {
    /// The host is there, and nothing listens on the port.
    Port,
    /// A filter forbids it.
    Prohibited,
    /// No way leads to the host, or it does not answer.
    Host,
}

impl Unreachable {
    /// What an ICMP message of this type and code says; `None` for everything that is not about reachability, such as
    /// a path MTU.
    fn new(ipv6: bool, kind: u8, code: u8) -> Option<Self> {
        match (ipv6, kind, code) {
            // RFC 792 and RFC 1122 section 3.2.2.1; RFC 4443 section 3.1.
            (false, 3, 3) | (true, 1, 4) => Some(Self::Port),
            (false, 3, 9 | 10 | 13) | (true, 1, 1 | 5 | 6) => Some(Self::Prohibited),
            (false, 3, 0 | 1 | 5..=8 | 11 | 12) | (true, 1, 0 | 2 | 3) => Some(Self::Host),
            _ => None,
        }
    }
}

/// Has the kernel keep ICMP messages for the socket.
pub(super) fn ask_for_errors(socket: &socket2::Socket, ipv6: bool) -> io::Result<()> {
    match ipv6 {
        false => sockopt::set(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
        true => sockopt::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
    }
}

impl Socket {
    /// Takes the next ICMP message about unreachability that the kernel keeps for the socket, if it was opened to get
    /// them ([`Options::icmp`](super::Options::icmp)). Others are thrown away. While any are kept, the socket reports
    /// an error to who waits for it.
    pub fn take_icmp(&self) -> Option<IcmpError> {
        // What the queue holds is bounded by the receive buffer; what is left is taken next time.
        for _ in 0..super::MAX_BATCH {
            if let Some(error) = self.take_error().ok()? {
                return Some(error);
            }
        }
        None
    }

    fn take_error(&self) -> io::Result<Option<IcmpError>> {
        let (mut address, mut control) = (RawAddress::EMPTY, ReceiveControl::EMPTY);
        // SAFETY: msghdr is plain data for which all zeroes is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = address.as_mut_ptr();
        header.msg_namelen = RawAddress::CAPACITY;
        header.msg_control = control.as_mut_ptr();
        header.msg_controllen = ReceiveControl::CAPACITY as _;
        // SAFETY: the header points to an address and a control buffer on this stack, with their true lengths, and to
        // no vector; the kernel writes to nothing else.
        let result = unsafe {
            libc::recvmsg(
                self.as_fd().as_raw_fd(),
                &raw mut header,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let Some(remote) = address.get(header.msg_namelen) else { return Ok(None) };
        let mut rest = control.filled(header.msg_controllen as _);
        while let Some((level, kind, data)) = next(&mut rest) {
            let of_errors = matches!(
                (level, kind),
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            );
            if of_errors {
                return Ok(parse(data).map(|(kind, reporter)| IcmpError {
                    remote,
                    reporter,
                    kind,
                }));
            }
        }
        Ok(None)
    }
}

/// Reads a `struct sock_extended_err` and the address behind it. `None` if it is no ICMP message about reachability.
fn parse(data: &[u8]) -> Option<(Unreachable, Option<IpAddr>)> {
    // ee_errno (4 bytes), ee_origin, ee_type, ee_code.
    let &[_, _, _, _, origin, kind, code, ..] = data else { return None };
    let ipv6 = match origin {
        libc::SO_EE_ORIGIN_ICMP => false,
        libc::SO_EE_ORIGIN_ICMP6 => true,
        _ => return None,
    };
    let kind = Unreachable::new(ipv6, kind, code)?;
    let reporter = data.get(EXTENDED_ERROR..).and_then(RawAddress::read);
    Some((kind, reporter.and_then(|reporter| specified(reporter.ip()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_reachability_is_known_and_nothing_else() {
        let v4 = |code| Unreachable::new(false, 3, code);
        assert_eq!((v4(3), v4(13), v4(1)), {
            use Unreachable::{Host, Port, Prohibited};
            (Some(Port), Some(Prohibited), Some(Host))
        });
        assert_eq!(v4(4), None, "a path MTU");
        assert_eq!(Unreachable::new(true, 1, 4), Some(Unreachable::Port));
        assert_eq!(Unreachable::new(true, 2, 0), None, "packet too big");
        assert_eq!(Unreachable::new(false, 11, 0), None, "time exceeded");
    }

    #[test]
    fn short_reports_are_no_reports() {
        let mut report = [0; EXTENDED_ERROR + 16];
        report[4..7].copy_from_slice(&[libc::SO_EE_ORIGIN_ICMP, 3, 3]);
        report[16..18].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        report[20..24].copy_from_slice(&[192, 0, 2, 9]);
        let reporter = Some(IpAddr::from([192, 0, 2, 9]));
        assert_eq!(parse(&report), Some((Unreachable::Port, reporter)));
        assert_eq!(parse(&report[..16]), Some((Unreachable::Port, None)));
        for len in 0..7 {
            assert_eq!(parse(&report[..len]), None);
        }
    }
}
