//! Routes of the main table.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
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
        let mut message = message(destination, index, via);
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.scope = match via {
            None if destination.0.is_ipv4() => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let action = action("add", destination, index, via);
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
