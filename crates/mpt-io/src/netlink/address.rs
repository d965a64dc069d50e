//! Addresses of interfaces.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::route::RouteType;

use super::{Error, Netlink, family};
use crate::poll::{Events, Interest, Poll};

impl Netlink {
    /// Gives the interface `index` an address whose first `prefix` bits name its network; the kernel
    /// adds the route to that network.
    ///
    /// Duplicate address detection is skipped for IPv6: nobody else can have the address on the far
    /// side of a tunnel, and it would take a second. Sockets can be bound to the address at once, but
    /// the kernel delivers to an IPv6 address only a moment later, when the interface is up and
    /// [`wait_for_address`](Self::wait_for_address) says so.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if the interface has that address already.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let message = message(index, address, prefix);
        let action = format!("add address {address}/{prefix} to interface {index}");
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewAddress(message), flags, &action).map(drop)
    }

    /// Takes an address away from the interface `index`.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if the interface does not have it.
    pub fn remove_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let message = message(index, address, prefix);
        let action = format!("remove address {address}/{prefix} from interface {index}");
        self.request(RouteNetlinkMessage::DelAddress(message), 0, &action).map(drop)
    }

    /// Waits until the kernel takes packets for `address` as its own, at most as long as `patience`,
    /// and says whether it does. An IPv4 address of an interface that is up is ready at once, an
    /// IPv6 one when the kernel has found time to add its route.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn wait_for_address(&mut self, address: IpAddr, patience: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + patience;
        let action = format!("wait for address {address}");
        let wrap = |source| Error::new(&action, source, None);
        let (poll, mut events) = (Poll::new().map_err(wrap)?, Events::with_capacity(1));
        poll.add(&self.conversation.socket, 0, Interest::READABLE).map_err(wrap)?;
        // Subscribed before the first look, so that no change falls between look and wait.
        self.conversation.socket.add_membership(libc::RTNLGRP_IPV6_ROUTE).map_err(wrap)?;
        let result = loop {
            let notifications = self.conversation.notifications;
            if self.is_local(address) {
                break Ok(true);
            }
            if self.conversation.notifications > notifications {
                continue; // one came with the answer, perhaps after the look
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            match poll.wait(&mut events, Some(rest)) {
                Ok(0) if rest.is_zero() => break Ok(false),
                Ok(_) => self.conversation.discard_unread(),
                Err(error) => break Err(wrap(error)),
            }
        };
        self.conversation.socket.drop_membership(libc::RTNLGRP_IPV6_ROUTE).map_err(wrap)?;
        self.conversation.discard_unread();
        result
    }

    /// Whether the route to `address` ends in this host.
    fn is_local(&mut self, address: IpAddr) -> bool {
        // No route at all is an error to the kernel, and the same as a foreign one here.
        self.route_to(address, "look up a route")
            .is_ok_and(|route| route.header.kind == RouteType::Local)
    }
}

fn message(index: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.index = index;
    if address.is_ipv6() {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    // IPv4 tells the interface's own address from a peer's; the same in both means "no peer".
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message
}
