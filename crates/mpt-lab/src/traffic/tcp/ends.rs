//! The two sockets of a TCP flow, made inside the namespaces of their hosts.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use mpt_io::poll::{Events, Interest, Poll};
use socket2::{SockAddr, Socket};

use super::Transport;
use crate::traffic::PATIENCE;

/// How long the two ends may take to find each other. Three losses of a SYN cost 7 s (RFC 6298).
const CONNECT: Duration = Duration::from_secs(10);

/// Why a flow could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The kernel does not have this congestion control, or does not let this user choose it.
    #[error(
        "the kernel refuses TCP congestion control '{name}': {source} (offered: {offered}; \
         `modprobe tcp_{name}` may add it)"
    )]
    Congestion {
        /// What was asked for.
        name: String,
        /// What the kernel offers, as it spells it.
        offered: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The receiving side could not listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where it should have listened.
        address: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The sending side found no listener.
    #[error("no TCP connection to {remote}: {source}")]
    Connect {
        /// Whom it sought.
        remote: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The receiving side saw no connection.
    #[error("the TCP connection to {address} was never accepted: {source}")]
    Accept {
        /// Where it listened.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel gave no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// The receiving end, listening.
#[derive(Debug)]
pub struct Sink {
    listener: Socket,
    address: SocketAddr,
}

impl Sink {
    /// Listens on a free port of `address`, in the namespace of the calling thread; on one network
    /// device only, if one is named.
    ///
    /// # Errors
    ///
    /// [`SetupError::Listen`], also where the kernel does not have the transport.
    pub fn listen(
        transport: Transport,
        address: IpAddr,
        device: Option<&str>,
    ) -> Result<Self, SetupError> {
        let listen = || -> io::Result<Self> {
            let listener = stream_socket(transport, address, device)?;
            listener.bind(&SocketAddr::new(transport.bound(address), 0).into())?;
            listener.listen(1)?;
            let bound = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
            Ok(Self { listener, address: SocketAddr::new(address, bound.port()) })
        };
        listen().map_err(|source| SetupError::Listen { address, source })
    }

    /// Where the source has to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn accept(&self) -> Result<TcpStream, SetupError> {
        let accept = || -> io::Result<TcpStream> {
            // A listener of Multipath TCP keeps to no receive timeout, so readiness is awaited first.
            let poll = Poll::new()?;
            poll.add(&self.listener, 0, Interest::READABLE)?;
            if poll.wait(&mut Events::with_capacity(1), Some(CONNECT))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.listener.set_nonblocking(true)?;
            let (socket, _) = self.listener.accept()?;
            socket.set_nonblocking(false)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket.into())
        };
        accept().map_err(|source| SetupError::Accept { address: self.address, source })
    }
}

/// The sending end, connected.
#[derive(Debug)]
pub struct Source {
    pub(super) stream: TcpStream,
    pub(super) transport: Transport,
}

impl Source {
    /// Connects to a sink from the namespace of the calling thread, with the congestion control named;
    /// over one network device only, if one is named.
    ///
    /// # Errors
    ///
    /// [`SetupError::Congestion`] or [`SetupError::Connect`].
    pub fn connect(
        transport: Transport,
        remote: SocketAddr,
        device: Option<&str>,
        congestion: &str,
    ) -> Result<Self, SetupError> {
        let refused = |source| SetupError::Connect { remote, source };
        let socket = stream_socket(transport, remote.ip(), device).map_err(refused)?;
        socket.set_tcp_congestion(congestion.as_bytes()).map_err(|source| {
            SetupError::Congestion { name: congestion.into(), offered: offered(), source }
        })?;
        let connect = || -> io::Result<TcpStream> {
            socket.connect_timeout(&SockAddr::from(remote), CONNECT)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            // Closing resets: what is still queued when the run is over has no use.
            socket.set_linger(Some(Duration::ZERO))?;
            Ok(socket.into())
        };
        Ok(Self { stream: connect().map_err(refused)?, transport })
    }
}

fn stream_socket(
    transport: Transport,
    address: IpAddr,
    device: Option<&str>,
) -> io::Result<Socket> {
    let socket = transport.socket(address)?;
    socket.bind_device(device.map(str::as_bytes))?;
    Ok(socket)
}

/// The congestion controls of this kernel, for a person to read.
fn offered() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_or_else(|_| "unknown".into(), |names| names.trim().replace(' ', ", "))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn an_unknown_congestion_control_is_refused_with_the_ones_offered() {
        let sink = Sink::listen(Transport::Tcp, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let error =
            Source::connect(Transport::Tcp, sink.address(), None, "no-such-thing").unwrap_err();
        assert!(matches!(error, SetupError::Congestion { .. }));
        assert!(error.to_string().contains("reno"), "{error}");
    }

    #[test]
    fn a_connection_without_listener_names_its_target() {
        let sink = Sink::listen(Transport::Tcp, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let gone = sink.address();
        drop(sink);
        let error = Source::connect(Transport::Tcp, gone, None, "reno").unwrap_err();
        assert!(matches!(error, SetupError::Connect { remote, .. } if remote == gone), "{error}");
    }
}
