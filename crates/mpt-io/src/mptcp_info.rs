//! The kernel's information about a Multipath TCP connection (`MPTCP_INFO`).

use std::io;
use std::os::fd::AsFd;

use crate::sockopt;

/// Options of this level and their numbers, from `linux/socket.h` and `linux/mptcp.h`.
const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;

/// The flag of a connection that fell back to plain TCP.
const FALLBACK: u32 = 1;

/// One Multipath TCP connection (RFC 8684). Fields that an older kernel does not provide are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MptcpInfo {
    /// Subflows that exist, the first one included as long as it does.
    pub subflows: u32,
    /// Addresses that the peer announced and that were accepted.
    pub accepted_addresses: u32,
    /// Bytes of the stream that were sent again over another subflow.
    pub bytes_retransmitted: u64,
    /// Bytes of the stream that were received in order.
    pub bytes_received: u64,
    /// Bytes of the stream that the peer acknowledged.
    pub bytes_acked: u64,
}

/// Asks the kernel about the MPTCP socket `fd`. `None` says that the connection is plain TCP: the
/// peer does not support MPTCP, a middlebox removed the option, or the socket is not an MPTCP
/// socket.
///
/// # Errors
///
/// The kernel's error, for example when this is no stream socket.
pub fn mptcp_info(fd: impl AsFd) -> io::Result<Option<MptcpInfo>> {
    // Longer than any version of the structure so far; a kernel fills in the fields that it
    // supports.
    let mut raw = [0; 256];
    match sockopt::read(fd, SOL_MPTCP, MPTCP_INFO, &mut raw) {
        Ok(len) => Ok(parse(&raw[..len])),
        // After a fallback the option is passed to TCP, which does not support it.
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT))
}

/// Reads `struct mptcp_info` of `linux/mptcp.h`, which only ever grows at the end.
fn parse(raw: &[u8]) -> Option<MptcpInfo> {
    let byte = |at: usize| raw.get(at).map_or(0, |&byte| u32::from(byte));
    let long = |at: usize| {
        let bytes = raw.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    let flags =
        raw.get(8..12).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes);
    if flags & FALLBACK != 0 {
        return None;
    }
    // Kernels before 6.5 count only those beyond the first.
    let subflows = if raw.len() > 80 { byte(80) } else { byte(0) + 1 };
    Some(MptcpInfo {
        subflows,
        accepted_addresses: byte(2),
        bytes_retransmitted: long(48),
        bytes_received: long(64),
        bytes_acked: long(72),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;

    fn listener(protocol: Protocol) -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.listen(1)?;
        Ok(socket.into())
    }

    fn client(remote: SocketAddr) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap();
        socket.connect(&remote.into()).unwrap();
        socket.into()
    }

    #[test]
    fn a_connection_has_one_subflow_and_shows_its_bytes() {
        // A kernel without MPTCP has nothing to ask.
        let Ok(listener) = listener(Protocol::MPTCP) else { return };
        let mut client = client(listener.local_addr().unwrap());
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let info = mptcp_info(&server).unwrap().unwrap();
        assert_eq!((info.subflows, info.bytes_received), (1, 1000), "{info:?}");
    }

    #[test]
    fn a_peer_without_mptcp_leaves_plain_tcp() {
        if listener(Protocol::MPTCP).is_err() {
            return;
        }
        let listener = listener(Protocol::TCP).unwrap();
        let mut client = client(listener.local_addr().unwrap());
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 10]).unwrap();
        server.read_exact(&mut [0; 10]).unwrap();
        assert_eq!(mptcp_info(&client).unwrap(), None);
        assert_eq!(mptcp_info(&server).unwrap(), None);
    }

    #[test]
    fn an_older_kernels_shorter_answer_counts_the_first_subflow() {
        let mut raw = [0; 43];
        raw[0] = 3;
        raw[2] = 2;
        let expected = MptcpInfo { subflows: 4, accepted_addresses: 2, ..MptcpInfo::default() };
        assert_eq!(parse(&raw), Some(expected));
        raw[8..12].copy_from_slice(&3_u32.to_ne_bytes());
        assert_eq!(parse(&raw), None, "it fell back");
    }

    #[test]
    fn a_udp_socket_is_none() {
        assert!(!matches!(mptcp_info(UdpSocket::bind("127.0.0.1:0").unwrap()), Ok(Some(_))));
    }
}
