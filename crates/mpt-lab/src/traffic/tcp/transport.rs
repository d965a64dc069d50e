//! Which protocol carries the bytes of a stream: TCP over one path, or over several.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use socket2::{Domain, Protocol, Socket, Type};

/// The transport protocol of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Multipath TCP, RFC 8684. Which subflows there are beside the first is up to the path manager
    /// of the namespaces (see [`Mptcp`](crate::lab::mptcp::Mptcp)).
    Mptcp,
    /// TCP, RFC 9293.
    #[default]
    Tcp,
}

impl Transport {
    /// A stream socket in the namespace of the calling thread, of the IP version of `address`.
    ///
    /// # Errors
    ///
    /// The kernel's: it was built without this protocol (`EPROTONOSUPPORT`), or the protocol is
    /// switched off in this namespace (`ENOPROTOOPT`).
    pub fn socket(self, address: IpAddr) -> io::Result<Socket> {
        let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let protocol = match self {
            Self::Mptcp => Protocol::MPTCP,
            Self::Tcp => Protocol::TCP,
        };
        Socket::new(domain, Type::STREAM, Some(protocol))
    }

    /// Where a listener has to be bound to be found at `address`.
    ///
    /// Further subflows of Multipath TCP come to the same port of other addresses than the first did, so
    /// it listens on all of the IP version.
    pub fn bound(self, address: IpAddr) -> IpAddr {
        match (self, address) {
            (Self::Mptcp, IpAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
            (Self::Mptcp, IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
            (Self::Tcp, address) => address,
        }
    }
}
