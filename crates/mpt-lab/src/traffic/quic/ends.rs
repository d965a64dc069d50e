//! The two sockets of a QUIC flow, made inside the namespaces of their hosts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::SockRef;

use super::Congestion;
use crate::traffic::udp;

/// Why a flow could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A socket of either end could not be made.
    #[error("cannot make the UDP socket of a QUIC end for {address}: {source}")]
    Socket {
        /// The receiving end's address.
        address: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The secrets of the connection could not be made.
    #[error("cannot set up the encryption of QUIC: {0}")]
    Secrets(String),
    /// The ends did not find each other, or not in time.
    #[error("no QUIC connection to {remote}: {why}")]
    Handshake {
        /// Where the sink listened.
        remote: SocketAddr,
        /// In the library's words.
        why: String,
    },
    /// The kernel gave no thread, or nothing to wait with.
    #[error("cannot start a thread: {0}")]
    Runtime(#[source] io::Error),
}

/// The receiving end.
#[derive(Debug)]
pub struct Sink {
    pub(super) socket: UdpSocket,
    address: SocketAddr,
}

impl Sink {
    /// Binds a free port of `address`, in the namespace of the calling thread; on one network device
    /// only, if one is named.
    ///
    /// # Errors
    ///
    /// [`SetupError::Socket`].
    pub fn listen(address: IpAddr, device: Option<&str>) -> Result<Self, SetupError> {
        let listen = || -> io::Result<Self> {
            let socket = socket(address, device)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        listen().map_err(|source| SetupError::Socket { address, source })
    }

    /// Where the source has to send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The sending end.
#[derive(Debug)]
pub struct Source {
    pub(super) socket: UdpSocket,
    pub(super) remote: SocketAddr,
    congestion: Congestion,
}

impl Source {
    /// Makes the socket of the end that will connect to a sink, in the namespace of the calling
    /// thread; over one network device only, if one is named. No packet is sent before
    /// [`Flow::start`](super::Flow::start).
    ///
    /// The connection has the library's defaults, except that its windows hold twice what 400
    /// Mbit/s and a round trip of 400 ms have in flight, and that silence does not end it.
    ///
    /// # Errors
    ///
    /// [`SetupError::Socket`].
    pub fn connect(
        remote: SocketAddr,
        device: Option<&str>,
        congestion: Congestion,
    ) -> Result<Self, SetupError> {
        let any = match remote {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let refused = |source| SetupError::Socket { address: remote.ip(), source };
        let socket = socket(any, device).map_err(refused)?;
        Ok(Self { socket, remote, congestion })
    }

    /// What this end controls its congestion window with.
    pub fn congestion(&self) -> Congestion {
        self.congestion
    }
}

fn socket(address: IpAddr, device: Option<&str>) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    SockRef::from(&socket).bind_device(device.map(str::as_bytes))?;
    udp::widen(&socket)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_address_and_an_unknown_device_are_errors() {
        let foreign = IpAddr::from([192, 0, 2, 1]);
        let error = Sink::listen(foreign, None).unwrap_err();
        assert!(matches!(error, SetupError::Socket { address, .. } if address == foreign));
        let error = Sink::listen(Ipv4Addr::LOCALHOST.into(), Some("nowhere")).unwrap_err();
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
}
