//! Opening a UDP socket: the options, the order in which they are set, and what can go wrong.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, SockAddr, Type};

use super::icmp::ask_for_errors;
use super::offload::Offloads;
use super::socket::{Buffers, Socket};
use crate::interface::{self, NameError};
use crate::sockopt;

/// How to open a [`Socket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Local address and port. The unspecified address takes datagrams for all local addresses of
    /// its family; port 0 lets the kernel choose.
    pub local: SocketAddr,
    /// Interface through which alone datagrams come and go (`SO_BINDTODEVICE`), whatever the routes
    /// say.
    pub device: Option<String>,
    /// Mark on everything sent (`SO_MARK`), for policy routing.
    pub mark: Option<u32>,
    /// The only remote address to exchange datagrams with; `None` leaves the socket open to all.
    pub connect: Option<SocketAddr>,
    /// Wanted size of each of the two buffers, in bytes; 0 leaves the system's default. What was
    /// granted is in [`Socket::buffers`].
    pub buffer_bytes: usize,
    /// Whether to send super-datagrams, where the kernel can. Whether it does is in
    /// [`Socket::offloads`].
    pub segmentation: bool,
    /// Whether to receive datagrams coalesced, where the kernel can. The batch must have room for
    /// that: see [`ReceiveOptions::coalescing`](super::ReceiveOptions::coalescing).
    pub coalescing: bool,
    /// Whether the kernel keeps ICMP messages about what was sent, to be taken with [`Socket::take_icmp`]. They have
    /// to be, because the socket reports an error as long as there are any.
    pub icmp: bool,
}

impl Options {
    /// An unconnected socket at `local` with the system's default buffers and all offloads.
    pub fn new(local: SocketAddr) -> Self {
        Self {
            local,
            device: None,
            mark: None,
            connect: None,
            buffer_bytes: 0,
            segmentation: true,
            coalescing: true,
            icmp: false,
        }
    }
}

/// Why a [`Socket`] could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device's name cannot be an interface's.
    #[error(transparent)]
    Name(#[from] NameError),
    /// One address is IPv4 and the other IPv6.
    #[error("cannot connect {local} to {remote}: one is IPv4 and the other IPv6; use one version")]
    MixedFamilies {
        /// The local address.
        local: SocketAddr,
        /// The remote address.
        remote: SocketAddr,
    },
    /// Another socket has this address and port.
    #[error(
        "cannot use {local}: the port is in use by another program; \
         choose another port, or see who has it with 'ss -lunp'"
    )]
    AddressInUse {
        /// The local address.
        local: SocketAddr,
    },
    /// No interface of this host has the address, or its interface is not ready.
    #[error(
        "cannot use {local}: no interface of this host has that address; \
         see 'ip address', or leave the local address out"
    )]
    AddressNotHere {
        /// The local address.
        local: SocketAddr,
    },
    /// There is no such interface.
    #[error("cannot use interface '{device}': there is none of that name; see 'ip link'")]
    NoSuchDevice {
        /// The interface.
        device: String,
    },
    /// The process lacks a capability.
    #[error("cannot {step} of {local}: not permitted; {remedy}")]
    Permission {
        /// The local address.
        local: SocketAddr,
        /// What was tried.
        step: &'static str,
        /// What would permit it.
        remedy: &'static str,
    },
    /// No route leads to the remote address.
    #[error("cannot reach {remote} from {local}: no route leads there; see 'ip route get {}'", remote.ip())]
    Unreachable {
        /// The local address.
        local: SocketAddr,
        /// The remote address.
        remote: SocketAddr,
    },
    /// Anything else.
    #[error("cannot {step} of {local}: {source}")]
    Other {
        /// The local address.
        local: SocketAddr,
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The size of the largest IP packet to `remote` that the kernel believes will pass, in bytes: the
/// route's MTU, or a smaller path MTU learned from ICMP. The route is that of a socket with this local
/// address, device and mark (`SO_MARK`).
///
/// # Errors
///
/// The kernel's error, for example `ENETUNREACH` without a route, `ENODEV` without the device, and `EPERM`
/// if a mark is wanted without `CAP_NET_ADMIN`.
pub fn route_mtu(
    local: Option<IpAddr>,
    device: Option<&str>,
    mark: Option<u32>,
    remote: SocketAddr,
) -> io::Result<u32> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = socket2::Socket::new(Domain::for_address(remote), Type::DGRAM, None)?;
    if let Some(device) = device {
        interface::check_name(device).map_err(io::Error::other)?;
        socket.bind_device(Some(device.as_bytes()))?;
    }
    if let Some(mark) = mark {
        socket.set_mark(mark)?;
    }
    socket.bind(&SockAddr::from(SocketAddr::new(local.unwrap_or(any), 0)))?;
    socket.connect(&SockAddr::from(remote))?;
    let mtu = match remote {
        SocketAddr::V4(_) => sockopt::get(&socket, libc::IPPROTO_IP, libc::IP_MTU)?,
        SocketAddr::V6(_) => sockopt::get(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU)?,
    };
    u32::try_from(mtu).map_err(io::Error::other)
}

impl Socket {
    /// Opens a socket that never blocks, never fragments, and reports the local address and the
    /// type of service of received datagrams. Only the interface's MTU limits what it sends, not a path MTU
    /// that ICMP messages reported (`IP_PMTUDISC_PROBE` in `ip(7)`).
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; each names the address or the interface and what would help.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let Options { local, device, mark, connect, buffer_bytes, segmentation, coalescing, icmp } =
            options;
        let local = *local;
        let wanted = Offloads { segmentation: *segmentation, coalescing: *coalescing };
        let fail = |step| move |source| OpenError::new(local, step, source);
        if let Some(remote) = *connect
            && remote.is_ipv6() != local.is_ipv6()
        {
            return Err(OpenError::MixedFamilies { local, remote });
        }

        let socket =
            socket2::Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))
                .map_err(fail("make a socket"))?;
        socket.set_nonblocking(true).map_err(fail("make a non-blocking socket"))?;
        if local.is_ipv6() {
            socket.set_only_v6(true).map_err(fail("set IPV6_V6ONLY on the socket"))?;
        }
        if let Some(device) = device {
            interface::check_name(device)?;
            socket.bind_device(Some(device.as_bytes())).map_err(|source| {
                match source.raw_os_error() {
                    Some(libc::ENODEV) => OpenError::NoSuchDevice { device: device.clone() },
                    _ => OpenError::new(local, "bind the socket to the interface", source),
                }
            })?;
        }
        if let Some(mark) = mark {
            socket.set_mark(*mark).map_err(fail("set the mark on the socket"))?;
        }
        never_fragment(&socket, local).map_err(fail("forbid fragmentation on the socket"))?;
        ask_for_control(&socket, local).map_err(fail("ask for control messages on the socket"))?;
        if *icmp {
            ask_for_errors(&socket, local.is_ipv6())
                .map_err(fail("ask for ICMP messages on the socket"))?;
        }
        let buffers = Buffers::grant(&socket, *buffer_bytes)
            .map_err(fail("read the buffer sizes of the socket"))?;
        let offloads = Offloads::grant(&socket, wanted);

        socket.bind(&SockAddr::from(local)).map_err(fail(BIND))?;
        if let Some(remote) = *connect {
            socket.connect(&SockAddr::from(remote)).map_err(|source| {
                match source.raw_os_error() {
                    Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
                        OpenError::Unreachable { local, remote }
                    }
                    _ => OpenError::new(local, "connect the socket", source),
                }
            })?;
        }
        Self::new(socket, *connect, *icmp, buffers, offloads)
            .map_err(fail("read the address of the socket"))
    }
}

const BIND: &str = "take the address";

impl OpenError {
    fn new(local: SocketAddr, step: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EADDRINUSE) => Self::AddressInUse { local },
            Some(libc::EADDRNOTAVAIL) => Self::AddressNotHere { local },
            Some(libc::EACCES | libc::EPERM) => {
                let remedy = match step {
                    BIND => "ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one",
                    _ => "run with CAP_NET_ADMIN or as root",
                };
                Self::Permission { local, step, remedy }
            }
            _ => Self::Other { local, step, source },
        }
    }
}

/// Sets "don't fragment" and makes the kernel refuse only datagrams longer than the interface's MTU. Its cached path
/// MTU does not limit what is sent, because ICMP messages can be forged.
fn never_fragment(socket: &socket2::Socket, local: SocketAddr) -> io::Result<()> {
    match local {
        SocketAddr::V4(_) => {
            sockopt::set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
        }
        SocketAddr::V6(_) => sockopt::set(
            socket,
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        ),
    }
}

/// Asks for the local address, the type of service and the time of arrival of every datagram received.
fn ask_for_control(socket: &socket2::Socket, local: SocketAddr) -> io::Result<()> {
    let (level, options) = match local {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, [libc::IP_PKTINFO, libc::IP_RECVTOS]),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, [libc::IPV6_RECVPKTINFO, libc::IPV6_RECVTCLASS]),
    };
    options.into_iter().try_for_each(|option| sockopt::set(socket, level, option, 1))?;
    // Without it datagrams have arrived when they are read: delays are known less well, and nothing else.
    let _ = sockopt::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    Ok(())
}
