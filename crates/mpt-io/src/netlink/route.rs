//! Routes of the main table.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};

use super::{Error, Netlink, family};

impl Netlink {
    /// Sends packets for `destination` through the interface `index`: straight, or to the router
    /// `via` there. `destination` is a network, given as an address and the number of its bits that
    /// count; the rest is cleared.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if such a route exists.
    pub fn add_route(
        &mut self,
        destination: (IpAddr, u8),
        index: u32,
        via: Option<IpAddr>,
    ) -> Result<(), Error> {
        let message = unicast(destination, index, via);
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let action = action("add", destination, index, via);
        self.request(RouteNetlinkMessage::NewRoute(message), flags, &action).map(drop)
    }

    /// As [`add_route`](Self::add_route), in the place of a route to the same destination if there is
    /// one; TCP connections that begin from here on and use the route send with a congestion control of
    /// their own (`congctl` of `ip-route(8)`) unless their socket names another. Accepted connections
    /// are meant, too: what counts is the route back to the client.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Refused`] if the kernel does not have that congestion control.
    pub fn replace_route(
        &mut self,
        destination: (IpAddr, u8),
        index: u32,
        via: Option<IpAddr>,
        congestion_control: &str,
    ) -> Result<(), Error> {
        let mut message = unicast(destination, index, via);
        let metrics = vec![RouteMetric::CcAlgo(congestion_control.to_owned())];
        message.attributes.push(RouteAttribute::Metrics(metrics));
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        let action = action("replace", destination, index, via);
        let action = format!("{action} by one with congestion control '{congestion_control}'");
        self.request(RouteNetlinkMessage::NewRoute(message), flags, &action).map(drop)
    }

    /// Removes a route that [`add_route`](Self::add_route) made.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if there is none.
    pub fn remove_route(
        &mut self,
        destination: (IpAddr, u8),
        index: u32,
        via: Option<IpAddr>,
    ) -> Result<(), Error> {
        let mut message = message(destination, index, via);
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::NoWhere; // any
        let action = action("remove", destination, index, via);
        self.request(RouteNetlinkMessage::DelRoute(message), 0, &action).map(drop)
    }

    /// Where packets for `address` leave this host: through which interface, and to which router there;
    /// `None` if it is an address of this host.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Refused`] with the kernel's reason if no route leads there.
    pub fn way_to(&mut self, address: IpAddr) -> Result<Option<Way>, Error> {
        let action = format!("look up the route to {address}");
        let route = self.route_to(address, &action)?;
        if route.header.kind == RouteType::Local {
            return Ok(None);
        }
        let mut index = None;
        let mut via = None;
        for attribute in &route.attributes {
            if let RouteAttribute::Oif(value) = attribute {
                index = Some(*value);
            } else if let RouteAttribute::Gateway(gateway) = attribute {
                via = ip(gateway);
            }
        }
        let index = index.ok_or_else(|| Error::unreadable(&action, &"it has no interface"))?;
        Ok(Some(Way { index, via }))
    }

    /// The route that a packet for `address` takes.
    pub(super) fn route_to(
        &mut self,
        address: IpAddr,
        action: &str,
    ) -> Result<RouteMessage, Error> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let answers = self.request(RouteNetlinkMessage::GetRoute(message), 0, action)?;
        let route = answers.into_iter().find_map(|answer| {
            let RouteNetlinkMessage::NewRoute(route) = answer else { return None };
            Some(route)
        });
        route.ok_or_else(|| Error::unreadable(action, &"the answer has no route"))
    }
}

/// Where packets leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the interface.
    pub index: u32,
    /// The router on its network, if it does not lead straight to the destination.
    pub via: Option<IpAddr>,
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    if let RouteAddress::Inet(address) = address {
        Some(IpAddr::V4(*address))
    } else if let RouteAddress::Inet6(address) = address {
        Some(IpAddr::V6(*address))
    } else {
        None
    }
}

fn unicast(destination: (IpAddr, u8), index: u32, via: Option<IpAddr>) -> RouteMessage {
    let mut message = message(destination, index, via);
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    message.header.scope = match via {
        None if destination.0.is_ipv4() => RouteScope::Link,
        _ => RouteScope::Universe,
    };
    message
}

fn message((network, prefix): (IpAddr, u8), index: u32, via: Option<IpAddr>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(network);
    message.header.destination_prefix_length = prefix;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    if prefix > 0 {
        let network = RouteAddress::from(masked(network, prefix));
        message.attributes.push(RouteAttribute::Destination(network));
    }
    message.attributes.push(RouteAttribute::Oif(index));
    if let Some(via) = via {
        message.attributes.push(RouteAttribute::Gateway(via.into()));
    }
    message
}

fn action(verb: &str, (network, prefix): (IpAddr, u8), index: u32, via: Option<IpAddr>) -> String {
    let via = via.map(|via| format!(" via {via}")).unwrap_or_default();
    format!("{verb} the route to {network}/{prefix}{via} through interface {index}")
}

/// `address` with all but its first `prefix` bits cleared, as the kernel wants networks.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_lose_their_host_bits() {
        for (address, prefix, network) in [
            ("10.9.8.7", 24, "10.9.8.0"),
            ("10.9.8.7", 32, "10.9.8.7"),
            ("10.9.8.7", 0, "0.0.0.0"),
            ("10.9.8.7", 9, "10.0.0.0"),
            ("fd00:9::7", 64, "fd00:9::"),
            ("fd00:9::7", 128, "fd00:9::7"),
            ("fd00:9::7", 0, "::"),
        ] {
            let (address, network): (IpAddr, IpAddr) =
                (address.parse().unwrap(), network.parse().unwrap());
            assert_eq!(masked(address, prefix), network, "{address}/{prefix}");
        }
    }
}
