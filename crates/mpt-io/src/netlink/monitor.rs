//! What changes in a network namespace without our doing.
//!
//! A [`Monitor`] subscribes to the kernel's notifications (the multicast groups of `rtnetlink(7)`):
//! interfaces that appear, disappear, or lose their carrier, addresses, routes and routing rules.
//! Notifications are queued in a receive buffer of limited size. When it is full the kernel drops
//! further ones and reports this once. Then previous notifications are no longer reliable, and
//! [`Change::Overrun`] requires that everything is read again, with
//! [`Netlink::links`](super::Netlink::links) and [`Netlink::addresses`](super::Netlink::addresses).
//!
//! To start, open the monitor, list everything, then read changes. A change between the first two
//! steps is reported twice, which is harmless, but never lost.
//!
//! The kernel announces a lost carrier at once where the interface stands on another (both ends of
//! a veth, VLANs), and within a second elsewhere, because it gathers such events
//! (`net/core/link_watch.c`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::conversation::{ANSWER, Conversation};
use super::{Address, Error, Link};
use crate::sockopt;

/// What is listened to.
const GROUPS: [u32; 7] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_RULE,
];

/// Wanted for the receive buffer, in bytes. An announced route costs it about 1 KiB, so a routing
/// daemon may replace a thousand routes while the reader is busy. Without privilege the kernel
/// grants no more than `net.core.rmem_max`.
const BUFFER: i32 = 1 << 20;

/// Announcements that are read in one call, so that no storm of them holds up its reader.
const BURST: usize = 64;

const LISTEN: &str = "listen to changes of interfaces, addresses and routes";

/// One change, after it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface appeared or changed: this is what it is like now.
    Link(Link),
    /// An interface was removed, or moved to another namespace. Its addresses and routes are
    /// reported separately.
    LinkGone {
        /// The number that it had.
        index: u32,
        /// The name that it had.
        name: String,
    },
    /// An address appeared or changed, for example became usable.
    Address(Address),
    /// An address is gone.
    AddressGone(Address),
    /// Routes or routing rules changed, reported once for all changes read together: routes have to
    /// be looked up again. The removal of IPv4 routes with their interface or address is not
    /// notified.
    Route,
    /// Announcements were lost or could not be understood: everything has to be looked at afresh.
    Overrun,
}

/// A subscription to the changes of one network namespace.
///
/// Its descriptor is readable when there are changes. It never blocks.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
    announcement: Box<[u8]>,
}

impl Monitor {
    /// Begins to listen to the changes of the calling thread's network namespace. That needs no
    /// privilege.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what the kernel said.
    pub fn open() -> Result<Self, Error> {
        let socket = Conversation::open(NETLINK_ROUTE)?.socket;
        // Any granted size is sufficient, because an overflow is reported as an overrun.
        let _ = sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER)
            .or_else(|_| sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER));
        socket.set_non_blocking(true).map_err(wrapped)?;
        for group in GROUPS {
            socket.add_membership(group).map_err(wrapped)?;
        }
        Ok(Self { socket, announcement: vec![0; ANSWER].into() })
    }

    /// Reports the pending changes, in the order in which they happened, and returns their number.
    /// Many pending changes need several calls; the descriptor stays readable until the last.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with what the kernel said, which is nothing that goes away by itself.
    pub fn read(&mut self, mut tell: impl FnMut(Change)) -> Result<usize, Error> {
        let mut told = 0;
        let mut routes = false;
        let mut tell = |change| {
            told += 1;
            tell(change);
        };
        for _ in 0..BURST {
            match self.receive() {
                Ok(Some(len)) => {
                    for change in changes(&self.announcement[..len]) {
                        if change == Change::Route {
                            routes = true;
                        } else {
                            tell(change);
                        }
                    }
                }
                Ok(None) => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    // Until the buffer is empty the kernel continues to drop without reporting it
                    // again. Nothing is added in the meantime, so this loop ends.
                    while self.receive().map_err(wrapped)?.is_some() {}
                    tell(Change::Overrun);
                    return Ok(told);
                }
                Err(error) => return Err(wrapped(error)),
            }
        }
        if routes {
            tell(Change::Route);
        }
        Ok(told)
    }

    /// Takes in one announcement and says how long it is.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        loop {
            match self.socket.recv(&mut &mut self.announcement[..], 0) {
                Ok(len) => return Ok(Some(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn wrapped(source: io::Error) -> Error {
    Error::new(LISTEN, source, None)
}

/// The changes in one notification.
fn changes(mut rest: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    while !rest.is_empty() {
        let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) else {
            // Something changed, and a look at everything will show what.
            changes.push(Change::Overrun);
            return changes;
        };
        let (header, payload) = message.into_parts();
        let len = (header.length as usize).next_multiple_of(4).max(1);
        rest = rest.get(len..).unwrap_or_default();
        if let NetlinkPayload::InnerMessage(message) = payload {
            changes.extend(change(message));
        }
    }
    changes
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the kernel announces much else")]
fn change(message: RouteNetlinkMessage) -> Option<Change> {
    match message {
        RouteNetlinkMessage::NewLink(message) if is_whole(&message) => {
            Some(Change::Link(message.into()))
        }
        RouteNetlinkMessage::DelLink(message) if is_of_interface(&message) => {
            let Link { index, name, .. } = message.into();
            Some(Change::LinkGone { index, name })
        }
        RouteNetlinkMessage::NewAddress(message) => {
            Address::from_message(&message).map(Change::Address)
        }
        RouteNetlinkMessage::DelAddress(message) => {
            Address::from_message(&message).map(Change::AddressGone)
        }
        RouteNetlinkMessage::NewRoute(_)
        | RouteNetlinkMessage::DelRoute(_)
        | RouteNetlinkMessage::NewRule(_)
        | RouteNetlinkMessage::DelRule(_) => Some(Change::Route),
        _ => None,
    }
}

/// Whether the message is about the interface itself. An interface that joins or leaves a bridge is
/// announced with the bridge's family, and is not gone for that.
fn is_of_interface(message: &LinkMessage) -> bool {
    message.header.interface_family == AddressFamily::Unspec
}

/// Whether the message is complete. Wireless drivers also send notifications with only their own
/// attributes.
fn is_whole(message: &LinkMessage) -> bool {
    let has_mtu = |attribute| matches!(attribute, &LinkAttribute::Mtu(_));
    is_of_interface(message) && message.attributes.iter().any(has_mtu)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::NetlinkHeader;
    use netlink_packet_route::link::LinkFlags;
    use netlink_packet_route::route::RouteMessage;

    use super::*;

    fn bytes(message: RouteNetlinkMessage) -> Vec<u8> {
        let payload = NetlinkPayload::InnerMessage(message);
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    fn link() -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.header.flags = LinkFlags::Up | LinkFlags::LowerUp;
        message.attributes = vec![LinkAttribute::IfName("near".into()), LinkAttribute::Mtu(1400)];
        message
    }

    #[test]
    fn an_announcement_may_hold_several_messages() {
        let gone = Change::LinkGone { index: 7, name: "near".into() };
        let there = Change::Link(link().into());
        let mut announcement = bytes(RouteNetlinkMessage::NewLink(link()));
        announcement.extend(bytes(RouteNetlinkMessage::NewRoute(RouteMessage::default())));
        announcement.extend(bytes(RouteNetlinkMessage::DelLink(link())));
        assert_eq!(changes(&announcement), [there.clone(), Change::Route, gone]);

        announcement.truncate(announcement.len() - 1);
        assert_eq!(changes(&announcement), [there, Change::Route, Change::Overrun]);
    }

    #[test]
    fn a_bridge_that_is_left_and_a_wireless_event_are_no_change_of_the_interface() {
        let mut bridge = link();
        bridge.header.interface_family = AddressFamily::Bridge;
        assert_eq!(changes(&bytes(RouteNetlinkMessage::DelLink(bridge.clone()))), []);
        assert_eq!(changes(&bytes(RouteNetlinkMessage::NewLink(bridge))), []);
        let mut wireless = link();
        wireless.attributes.pop();
        assert_eq!(changes(&bytes(RouteNetlinkMessage::NewLink(wireless))), []);
    }
}
