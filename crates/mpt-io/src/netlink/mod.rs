//! Interfaces, addresses and routes, by the kernel's route netlink (`rtnetlink(7)`).
//!
//! One request, one answer, in the calling thread: configuration is rare and short, and the kernel
//! answers within the system call. A [`Netlink`] belongs to the network namespace in which it was
//! opened, wherever its thread goes afterwards.

mod address;
mod error;
mod link;
mod route;

pub use error::Error;
pub use link::Link;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Longest answer, in bytes. An interface with all its statistics takes about 2 KiB.
const ANSWER: usize = 64 * 1024;

/// A conversation with the kernel about one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    answer: Vec<u8>,
    /// Messages read so far that answer no request.
    notifications: u64,
}

impl Netlink {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what the kernel said.
    pub fn open() -> Result<Self, Error> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // Errors carry a sentence of explanation instead of a copy of the request. Kernels
            // before 4.12 have neither; then the number must do.
            let _ = socket.set_ext_ack(true).and_then(|()| socket.set_cap_ack(true));
            Ok(socket)
        };
        match open() {
            Ok(socket) => {
                Ok(Self { socket, sequence: 0, answer: vec![0; ANSWER], notifications: 0 })
            }
            Err(source) => Err(Error::new("open a netlink socket", source, None)),
        }
    }

    /// Makes one request and returns the messages that answer it, before its acknowledgement.
    ///
    /// `action` completes the sentence "cannot ...".
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        action: &str,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|source| Error::new(action, source, None))?;

        let mut answers = Vec::new();
        loop {
            let len = self
                .socket
                .recv(&mut &mut self.answer[..], 0)
                .map_err(|source| Error::new(action, source, None))?;
            let mut rest = &self.answer[..len];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| Error::unreadable(action, &error))?;
                let (header, payload) = message.into_parts();
                let len = (header.length as usize).next_multiple_of(4).max(1);
                rest = rest.get(len..).unwrap_or_default();
                if header.sequence_number != self.sequence {
                    self.notifications += 1;
                    continue;
                }
                if let NetlinkPayload::InnerMessage(answer) = payload {
                    answers.push(answer);
                } else if let NetlinkPayload::Error(verdict) = payload {
                    if verdict.code.is_none() {
                        return Ok(answers);
                    }
                    let explanation = error::explanation(&verdict.header);
                    return Err(Error::new(action, verdict.to_io(), explanation));
                }
            }
        }
    }
}

fn family(ip: std::net::IpAddr) -> AddressFamily {
    match ip {
        std::net::IpAddr::V4(_) => AddressFamily::Inet,
        std::net::IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
