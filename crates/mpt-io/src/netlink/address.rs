//! Addresses of interfaces.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};
use netlink_packet_route::route::RouteType;

use super::{Error, Leaving, Netlink, family};
use crate::poll::{Events, Interest, Poll};

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of the interface that has it.
    pub index: u32,
    /// The address itself.
    pub address: IpAddr,
    /// How many of its leading bits name its network.
    pub prefix: u8,
    /// Whether sockets can be bound to it and packets leave with it. An IPv6 address is not usable
    /// during duplicate address detection (RFC 4862 section 5.4), nor if that found a duplicate.
    pub usable: bool,
    /// Whether its preferred lifetime has expired: existing connections may continue to use it, but
    /// new ones should not (RFC 4862 section 5.5.4).
    pub deprecated: bool,
}

impl Netlink {
    /// All addresses of all interfaces, of both IP versions, in no particular order.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn addresses(&mut self) -> Result<Vec<Address>, Error> {
        let everything = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self.list(&everything, "list the addresses")?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| {
                let RouteNetlinkMessage::NewAddress(message) = answer else { return None };
                Address::from_message(&message)
            })
            .collect())
    }

    /// Gives the interface `index` an address whose first `prefix` bits name its network; the kernel
    /// adds the route to that network.
    ///
    /// Duplicate address detection is skipped for IPv6: no other host can have the address on the
    /// far side of a tunnel, and it would take a second. Sockets can be bound to the address at
    /// once, but the kernel delivers to an IPv6 address only a moment later, when the interface is
    /// up: see [`wait_for_address`](Self::wait_for_address).
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
        self.route_to(address, Leaving::default(), "look up a route")
            .is_ok_and(|route| route.header.kind == RouteType::Local)
    }
}

impl Address {
    /// The address that a message describes; `None` if it is of no IP version.
    pub(super) fn from_message(message: &AddressMessage) -> Option<Self> {
        let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        let (mut local, mut peer) = (None, None);
        for attribute in &message.attributes {
            if let AddressAttribute::Local(address) = attribute {
                local = Some(*address);
            } else if let AddressAttribute::Address(address) = attribute {
                peer = Some(*address);
            } else if let AddressAttribute::Flags(all) = attribute {
                flags = *all; // the header has room for the first eight only
            }
        }
        // An optimistic address is used while it is still asked about (RFC 4429).
        let asked_about =
            flags.contains(AddressFlags::Tentative) && !flags.contains(AddressFlags::Optimistic);
        Some(Self {
            index: message.header.index,
            // IPv6 has a separate local address only if there is a peer address.
            address: local.or(peer)?,
            prefix: message.header.prefix_len,
            usable: !asked_about && !flags.contains(AddressFlags::Dadfailed),
            deprecated: flags.contains(AddressFlags::Deprecated),
        })
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
    // IPv4 has separate attributes for the interface's own address and the peer's; the same in both
    // means "no peer".
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_usable_unless_another_host_has_it_or_might() {
        for (flags, usable, deprecated) in [
            (AddressFlags::Permanent, true, false),
            (AddressFlags::Tentative, false, false),
            (AddressFlags::Tentative | AddressFlags::Optimistic, true, false),
            (AddressFlags::Dadfailed | AddressFlags::Tentative, false, false),
            (AddressFlags::Dadfailed | AddressFlags::Permanent, false, false),
            (AddressFlags::Deprecated | AddressFlags::StablePrivacy, true, true),
        ] {
            let mut message = message(7, IpAddr::V6(1.into()), 64);
            message.header.flags = AddressHeaderFlags::empty();
            message.attributes.push(AddressAttribute::Flags(flags));
            let address = Address::from_message(&message).unwrap();
            assert_eq!((address.usable, address.deprecated), (usable, deprecated), "{flags:?}");
            assert_eq!((address.index, address.prefix), (7, 64));
        }
    }

    #[test]
    fn the_local_address_is_ours_and_the_other_a_peers() {
        let (ours, peers) = (IpAddr::V4(1.into()), IpAddr::V4(2.into()));
        let mut message = AddressMessage::default();
        assert_eq!(Address::from_message(&message), None);
        message.attributes.push(AddressAttribute::Address(peers));
        assert_eq!(Address::from_message(&message).unwrap().address, peers);
        message.attributes.push(AddressAttribute::Local(ours));
        assert_eq!(Address::from_message(&message).unwrap().address, ours);
    }
}
