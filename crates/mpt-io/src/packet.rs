//! Packet sockets: capture of the packets at an interface (`packet(7)`).
//!
//! The kernel hands such a socket a copy of each packet that comes in or goes out, from its network
//! header on, together with the direction and, if asked, the time. Super-packets are not cut up and
//! checksums that an interface would complete are not complete yet.

use std::io;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::sockopt;

/// A packet socket on one interface of the calling thread's network namespace. It does not block
/// and sees what passes from now on.
///
/// # Errors
///
/// The kernel's error: `EPERM` without `CAP_NET_RAW`, `ENODEV` if there is no such interface.
pub fn open(index: u32) -> io::Result<Socket> {
    // Without a protocol the socket sees nothing until it is bound, so that nothing of other
    // interfaces gets in.
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
    socket.set_nonblocking(true)?;
    socket.bind(&address(index)?)?;
    Ok(socket)
}

/// Packets that the kernel dropped for want of room in the socket since this was asked last.
///
/// # Errors
///
/// The kernel's error: `ENOPROTOOPT` if it is no packet socket.
pub fn dropped(socket: &Socket) -> io::Result<u32> {
    // struct tpacket_stats: packets that came, and how many of them were dropped.
    let mut counts = [0; 8];
    sockopt::read(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)?;
    let [_, _, _, _, dropped @ ..] = counts;
    Ok(u32::from_ne_bytes(dropped))
}

/// The address of an interface: packets of all protocols that pass there.
fn address(index: u32) -> io::Result<SockAddr> {
    let index = i32::try_from(index).map_err(io::Error::other)?;
    let fill = |storage: *mut socket2::SockAddrStorage, len: *mut libc::socklen_t| {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::sa_family_t,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: `storage` is large enough and aligned for every kind of address, and both
        // pointers are valid for writing while this runs.
        unsafe {
            storage.cast::<libc::sockaddr_ll>().write(address);
            len.write(size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        }
        Ok(())
    };
    // SAFETY: `fill` has written an address of the length that it returned.
    unsafe { SockAddr::try_init(fill) }.map(|((), address)| address)
}
