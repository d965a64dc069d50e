//! Routes, of the main table and of others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};

use super::{Error, Netlink, family};

/// A route to a network through an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network, given as an address and the number of its bits that count; the rest is cleared.
    pub destination: (IpAddr, u8),
    /// Number of the interface.
    pub index: u32,
    /// The router there; `None` if it leads straight to the destination.
    pub via: Option<IpAddr>,
    /// The table that it stands in, not 0. Which table a packet is looked up in, and in which order,
    /// is said by [`Rule`](super::Rule)s.
    pub table: u32,
    /// Of several routes to the same network in a table the one with the least metric is taken.
    /// `None` leaves it to the kernel: 0 for IPv4, 1024 for IPv6.
    pub metric: Option<u32>,
}

impl Route {
    /// The main table, used for all lookups unless a rule selects another.
    pub const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

    /// A route of the main table, with the kernel's metric.
    pub fn new(destination: (IpAddr, u8), index: u32, via: Option<IpAddr>) -> Self {
        Self { destination, index, via, table: Self::MAIN, metric: None }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (network, prefix) = self.destination;
        write!(f, "{network}/{prefix}")?;
        if let Some(via) = self.via {
            write!(f, " via {via}")?;
        }
        write!(f, " through interface {}", self.index)?;
        if self.table != Self::MAIN {
            write!(f, " in table {}", self.table)?;
        }
        match self.metric {
            Some(metric) => write!(f, " with metric {metric}"),
            None => Ok(()),
        }
    }
}

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
        self.add_route_in(&Route::new(destination, index, via))
    }

    /// Adds a route to its table.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Exists`] if the table has a route to the same network with the same
    /// metric, wherever it leads.
    pub fn add_route_in(&mut self, route: &Route) -> Result<(), Error> {
        let message = RouteNetlinkMessage::NewRoute(unicast(route));
        let action = format!("add the route to {route}");
        self.request(message, NLM_F_CREATE | NLM_F_EXCL, &action).map(drop)
    }

    /// As [`add_route`](Self::add_route), replacing a route to the same destination if there is
    /// one; later TCP connections over the route use the given congestion control (`congctl` of
    /// `ip-route(8)`) unless their socket sets another. This includes accepted connections: the
    /// route to the client applies.
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
        let route = Route::new(destination, index, via);
        let mut message = unicast(&route);
        let metrics = vec![RouteMetric::CcAlgo(congestion_control.to_owned())];
        message.attributes.push(RouteAttribute::Metrics(metrics));
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        let action = format!(
            "replace the route to {route} by one with congestion control '{congestion_control}'"
        );
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
        self.remove_route_in(&Route::new(destination, index, via))
    }

    /// Removes a route that [`add_route_in`](Self::add_route_in) made. Routes also go with their
    /// interface.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::NotFound`] if there is none.
    pub fn remove_route_in(&mut self, route: &Route) -> Result<(), Error> {
        let mut message = message(route);
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::NoWhere; // any
        let action = format!("remove the route to {route}");
        self.request(RouteNetlinkMessage::DelRoute(message), 0, &action).map(drop)
    }

    /// The destinations of all routes in all tables, of both IP versions: each a network as an address and the
    /// number of its bits that count. Default routes have no bits.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn networks(&mut self) -> Result<Vec<(IpAddr, u8)>, Error> {
        let mut networks = Vec::new();
        for any in [IpAddr::from([0; 4]), IpAddr::from([0; 16])] {
            let mut message = RouteMessage::default();
            message.header.address_family = family(any);
            let all = self.list(&RouteNetlinkMessage::GetRoute(message), "list the routes")?;
            networks.extend(all.into_iter().filter_map(|answer| {
                let RouteNetlinkMessage::NewRoute(route) = answer else { return None };
                let counts = matches!(route.header.kind, RouteType::Unicast | RouteType::Local);
                let destination = route.attributes.iter().find_map(|attribute| {
                    let RouteAttribute::Destination(address) = attribute else { return None };
                    ip(address)
                });
                let len = route.header.destination_prefix_length;
                counts.then(|| (destination.unwrap_or(any), len))
            }));
        }
        Ok(networks)
    }

    /// Where packets for `address` leave this host: through which interface, and to which router there;
    /// `None` if it is an address of this host.
    ///
    /// # Errors
    ///
    /// See [`Error`]; [`Error::Refused`] with the kernel's reason if no route leads there.
    pub fn way_to(&mut self, address: IpAddr) -> Result<Option<Way>, Error> {
        self.way_of(address, Leaving::default())
    }

    /// As [`way_to`](Self::way_to), for packets of a socket that carries `mark` (`SO_MARK`).
    ///
    /// # Errors
    ///
    /// As those of [`way_to`](Self::way_to).
    pub fn marked_way_to(&mut self, address: IpAddr, mark: u32) -> Result<Option<Way>, Error> {
        self.way_of(address, Leaving { mark: Some(mark), ..Leaving::default() })
    }

    /// As [`way_to`](Self::way_to), for packets of which that much is settled. An IPv4 packet of a socket
    /// that is bound to an interface leaves there even if no route does; then it has no router.
    ///
    /// # Errors
    ///
    /// As those of [`way_to`](Self::way_to), and if this host does not have the source address.
    pub fn way_of(&mut self, address: IpAddr, leaving: Leaving) -> Result<Option<Way>, Error> {
        let action = format!("look up the route to {address}");
        let route = self.route_to(address, leaving, &action)?;
        if route.header.kind == RouteType::Local {
            return Ok(None);
        }
        let mut index = None;
        let mut via = None;
        let mut source = leaving.source;
        for attribute in &route.attributes {
            if let RouteAttribute::Oif(value) = attribute {
                index = Some(*value);
            } else if let RouteAttribute::Gateway(gateway) = attribute {
                via = ip(gateway);
            } else if let RouteAttribute::PrefSource(address) = attribute {
                source = ip(address);
            }
        }
        let index = index.ok_or_else(|| Error::unreadable(&action, &"it has no interface"))?;
        Ok(Some(Way { index, via, source }))
    }

    /// Whether a route in this host's tables leads packets of which that much is settled to `address`, on
    /// another host. Unlike [`way_of`](Self::way_of) this does not count what the kernel does without a route:
    /// to take any address for one on the network of the interface that a socket is bound to.
    pub fn has_route(&mut self, address: IpAddr, leaving: Leaving) -> bool {
        let action = format!("look up the route to {address}");
        let stored = self.look_up(address, leaving, RouteFlags::FibMatch, &action);
        stored.is_ok_and(|route| route.header.kind == RouteType::Unicast)
    }

    /// Where the main table leads to exactly this network, if a route of the kernel's metric that [`add_route`]
    /// would add is refused for that. `None` if there is no such route.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    ///
    /// [`add_route`]: Self::add_route
    pub fn conflict_of(&mut self, destination: (IpAddr, u8)) -> Result<Option<Way>, Error> {
        let (network, len) = destination;
        let action = format!("look up the route to {network}/{len}");
        let all: u8 = if network.is_ipv4() { 32 } else { 128 };
        // Of the first addresses of a network one may be this host's own, the very first and the last mean all its
        // hosts, and to some a longer route may lead: so several are asked about, at its beginning, middle and end.
        let size = 1_u128.checked_shl(u32::from(all.saturating_sub(len))).unwrap_or(0);
        let middle = size / 2;
        let numbers = match size {
            1 | 2 => vec![0],
            _ => vec![1, 2, 3, middle, middle + 1, middle + 2, size.wrapping_sub(2)],
        };
        for number in numbers {
            let address = match network {
                IpAddr::V4(address) => {
                    Ipv4Addr::from(u32::from(address).wrapping_add(number as u32)).into()
                }
                IpAddr::V6(address) => {
                    Ipv6Addr::from(u128::from(address).wrapping_add(number)).into()
                }
            };
            // That no route leads there is an error to the kernel.
            let found = self.look_up(address, Leaving::default(), RouteFlags::FibMatch, &action);
            let Ok(route) = found else { continue };
            let mut way = Way { index: 0, via: None, source: None };
            let (mut metric, mut table) = (0, u32::from(route.header.table));
            for attribute in &route.attributes {
                if let RouteAttribute::Oif(index) = attribute {
                    way.index = *index;
                } else if let RouteAttribute::Gateway(gateway) = attribute {
                    way.via = ip(gateway);
                } else if let RouteAttribute::Priority(priority) = attribute {
                    metric = *priority;
                } else if let RouteAttribute::Table(number) = attribute {
                    table = *number;
                }
            }
            let own = if network.is_ipv4() { 0 } else { 1024 };
            if route.header.destination_prefix_length == len
                && table == Route::MAIN
                && metric == own
            {
                return Ok(Some(way));
            }
        }
        Ok(None)
    }

    /// How long a packet for `address` may be: by the interface and the route, which the operator set, and
    /// by what ICMP messages told the kernel of the path (RFC 1191, RFC 8201), which may be forged.
    ///
    /// # Errors
    ///
    /// As those of [`way_of`](Self::way_of).
    pub fn mtu_of(&mut self, address: IpAddr, leaving: Leaving) -> Result<RouteMtu, Error> {
        let action = format!("look up the MTU of the route to {address}");
        let route = self.route_to(address, leaving, &action)?;
        let index = route.attributes.iter().find_map(|attribute| {
            let RouteAttribute::Oif(index) = attribute else { return None };
            Some(*index)
        });
        let index = index.ok_or_else(|| Error::unreadable(&action, &"it has no interface"))?;
        let Some(mtu) = mtu_metric(&route) else {
            return Ok(RouteMtu { index, route: None, learned: None });
        };
        // What an ICMP message told stands in a copy of the route, which expires.
        let expires = route.attributes.iter().any(
            |attribute| matches!(attribute, RouteAttribute::CacheInfo(info) if info.expires != 0),
        );
        if !expires {
            return Ok(RouteMtu { index, route: Some(mtu), learned: None });
        }
        // A route that no table has, such as that of a socket bound to an interface, has no MTU there.
        let stored = self.look_up(address, leaving, RouteFlags::FibMatch, &action);
        let stored = stored.ok().as_ref().and_then(mtu_metric);
        Ok(RouteMtu { index, route: stored, learned: Some(mtu) })
    }

    /// The route that a packet for `address` takes.
    pub(super) fn route_to(
        &mut self,
        address: IpAddr,
        leaving: Leaving,
        action: &str,
    ) -> Result<RouteMessage, Error> {
        self.look_up(address, leaving, RouteFlags::empty(), action)
    }

    fn look_up(
        &mut self,
        address: IpAddr,
        leaving: Leaving,
        flags: RouteFlags,
        action: &str,
    ) -> Result<RouteMessage, Error> {
        let mut message = RouteMessage::default();
        message.header.flags = flags;
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let Leaving { mark, index, source } = leaving;
        message.attributes.extend(mark.map(RouteAttribute::Mark));
        message.attributes.extend(index.map(RouteAttribute::Oif));
        if let Some(source) = source {
            message.header.source_prefix_length = message.header.destination_prefix_length;
            message.attributes.push(RouteAttribute::Source(source.into()));
        }
        let answers = self.request(RouteNetlinkMessage::GetRoute(message), 0, action)?;
        let route = answers.into_iter().find_map(|answer| {
            let RouteNetlinkMessage::NewRoute(route) = answer else { return None };
            Some(route)
        });
        route.ok_or_else(|| Error::unreadable(action, &"the answer has no route"))
    }
}

/// What is settled about packets before their route is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// The mark of their socket (`SO_MARK`), not 0.
    pub mark: Option<u32>,
    /// Index of the interface that their socket is bound to.
    pub index: Option<u32>,
    /// Their source address, which this host has.
    pub source: Option<IpAddr>,
}

/// Where packets leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the interface.
    pub index: u32,
    /// The router on its network, if it does not lead straight to the destination.
    pub via: Option<IpAddr>,
    /// The source address that they get there.
    pub source: Option<IpAddr>,
}

/// How long packets on a route may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteMtu {
    /// Index of the interface that they leave through, which has an MTU of its own.
    pub index: u32,
    /// The MTU that the route was given, in bytes; `None` if it was given none.
    pub route: Option<u32>,
    /// The path MTU that ICMP messages told the kernel, in bytes; `None` if none did lately.
    pub learned: Option<u32>,
}

/// The MTU in a route's metrics.
fn mtu_metric(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| {
        let RouteAttribute::Metrics(metrics) = attribute else { return None };
        metrics.iter().find_map(|metric| {
            let RouteMetric::Mtu(mtu) = metric else { return None };
            Some(*mtu).filter(|&mtu| mtu > 0)
        })
    })
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

fn unicast(route: &Route) -> RouteMessage {
    let mut message = message(route);
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    message.header.scope = match route.via {
        None if route.destination.0.is_ipv4() => RouteScope::Link,
        _ => RouteScope::Universe,
    };
    message
}

fn message(route: &Route) -> RouteMessage {
    let (network, prefix) = route.destination;
    let mut message = RouteMessage::default();
    message.header.address_family = family(network);
    message.header.destination_prefix_length = prefix;
    // The header has room for a small number only; the attribute says it in any case.
    message.header.table = u8::try_from(route.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    message.attributes.push(RouteAttribute::Table(route.table));
    if prefix > 0 {
        let network = RouteAddress::from(masked(network, prefix));
        message.attributes.push(RouteAttribute::Destination(network));
    }
    message.attributes.push(RouteAttribute::Oif(route.index));
    if let Some(via) = route.via {
        message.attributes.push(RouteAttribute::Gateway(via.into()));
    }
    message.attributes.extend(route.metric.map(RouteAttribute::Priority));
    message
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

    #[test]
    fn a_route_is_printed_with_its_unusual_attributes() {
        let (network, router) = (("10.9.0.0".parse().unwrap(), 16), "10.9.0.1".parse().unwrap());
        let plain = Route::new(network, 7, None);
        assert_eq!(plain.to_string(), "10.9.0.0/16 through interface 7");
        let odd = Route { via: Some(router), table: 4754, metric: Some(50), ..plain };
        let text = "10.9.0.0/16 via 10.9.0.1 through interface 7 in table 4754 with metric 50";
        assert_eq!(odd.to_string(), text);
    }
}
