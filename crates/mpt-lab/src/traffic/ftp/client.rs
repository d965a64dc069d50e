//! The client, logged in: both of its sockets are made inside the namespace of its host.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use suppaftp::types::FileType;
use suppaftp::{FtpError, FtpStream, Mode};

use super::Server;
use crate::lab::mptcp::Mptcp;

/// How long the server may take for each step of a login. Three losses of a SYN cost 7 s (RFC 6298).
const LOGIN: Duration = Duration::from_secs(10);

/// Why a client is not logged in.
#[derive(Debug, thiserror::Error)]
#[error("no FTP session with {server}: {source}")]
pub struct ConnectError {
    server: SocketAddr,
    source: FtpError,
}

/// A client that is logged in and has asked for nothing.
pub struct Client {
    pub(super) session: FtpStream,
    pub(super) sockets: Sockets,
    /// Bytes of the server's file.
    pub(super) bytes: u64,
}

/// A client's sockets, with which to wake a thread that is blocked in them.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) control: TcpStream,
    /// Not connected before the server has named a port.
    pub(super) data: Socket,
}

impl Client {
    /// Logs in to a server from the namespace of the calling thread; over one network device only, if
    /// one is named. The data connection will be Multipath TCP if the server's are. The session is TCP in
    /// any case, as vsftpd asks for what Multipath TCP does not have, urgent data (SO_OOBINLINE); a
    /// server with Multipath TCP serves both.
    ///
    /// # Errors
    ///
    /// The server cannot be reached or does not let anonymous users in.
    pub fn connect(server: &Server, device: Option<&str>) -> Result<Self, ConnectError> {
        let address = server.address();
        let connect = || -> Result<Self, FtpError> {
            let make = || -> io::Result<_> {
                let control = begin(socket(server, None, device)?, address)?;
                let data = socket(server, server.mptcp(), device)?;
                let sockets = Sockets { control: control.try_clone()?, data };
                Ok((control, sockets))
            };
            let (control, sockets) = make().map_err(FtpError::ConnectionError)?;
            let mut session = FtpStream::connect_with_stream(control)?;
            session.login("anonymous", "mpt-lab@")?;
            session.transfer_type(FileType::Binary)?;
            session.set_mode(Mode::ExtendedPassive);
            Ok(Self { session, sockets, bytes: server.bytes() })
        };
        connect().map_err(|source| ConnectError { server: address, source })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session: _, sockets, bytes } = self;
        let mut client = f.debug_struct("Client");
        client.field("sockets", sockets).field("bytes", bytes).finish_non_exhaustive()
    }
}

impl Sockets {
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { control: self.control.try_clone()?, data: self.data.try_clone()? })
    }

    /// Wakes the thread that waits for the server, permanently.
    pub(super) fn shut_down(&self) {
        // If it is not connected, or no longer, no thread waits.
        let _ = self.control.shutdown(Shutdown::Both);
        let _ = self.data.shutdown(Shutdown::Both);
    }
}

fn socket(server: &Server, mptcp: Option<&Mptcp>, device: Option<&str>) -> io::Result<Socket> {
    let socket = match mptcp {
        Some(mptcp) => mptcp.socket()?,
        None => {
            let domain = Domain::for_address(server.address());
            Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?
        }
    };
    socket.bind_device(device.map(str::as_bytes))?;
    Ok(socket)
}

fn begin(control: Socket, server: SocketAddr) -> io::Result<TcpStream> {
    control.connect_timeout(&SockAddr::from(server), LOGIN)?;
    let control = TcpStream::from(control);
    control.set_read_timeout(Some(LOGIN))?;
    // Closing resets: nothing lingers in a namespace that is about to disappear.
    SockRef::from(&control).set_linger(Some(Duration::ZERO))?;
    Ok(control)
}
