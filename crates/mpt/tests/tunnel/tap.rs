//! What passes a host's interfaces, as a packet socket sees it.

use std::io::Read as _;

use mpt_lab::lab::Host;
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use socket2::{Domain, Protocol, Socket, Type};

use crate::site::PATIENCE;

/// Room for what passes before it is looked at, in bytes.
const BUFFER: usize = 8 << 20;

/// Sees every packet that comes to a host or leaves it, from its IP header on.
pub(crate) struct Tap {
    socket: Socket,
    packet: Vec<u8>,
}

impl Tap {
    pub(crate) fn open(host: &Host) -> Self {
        /// From `linux/if_ether.h`.
        const ETH_P_ALL: u16 = 0x0003;
        let protocol = Protocol::from(i32::from(ETH_P_ALL.to_be()));
        let socket = host.run(|| Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol)));
        let socket = socket.expect("a packet socket");
        // Beyond the system's limit, which only an administrator may do.
        if setsockopt(&socket, RcvBufForce, &BUFFER).is_err() {
            socket.set_recv_buffer_size(BUFFER).expect("a larger buffer");
        }
        socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        Self { socket, packet: vec![0; 1 << 16] }
    }

    /// The next packet, or what the host takes for one until it cuts it to size.
    pub(crate) fn next(&mut self) -> &[u8] {
        let len = self.socket.read(&mut self.packet).expect("a packet");
        &self.packet[..len]
    }
}
