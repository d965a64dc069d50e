//! What a host has beside its processes: interfaces, addresses, routes and rules. Systems that are measured one
//! after the other in the same lab must leave it as it was.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the attributes of the kernel are many, and grow"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::{Context as _, Result};
use mpt_io::netlink::Netlink;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType,
};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Host, Lab};

/// What both hosts have, each thing in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory(BTreeSet<String>);

impl Inventory {
    /// Looks at both hosts.
    ///
    /// # Errors
    ///
    /// What the kernel refuses.
    pub fn of(lab: &Lab) -> Result<Self> {
        let mut all = BTreeSet::new();
        for (name, host) in [("left", lab.left()), ("right", lab.right())] {
            let things =
                of_host(host).with_context(|| format!("cannot look at the {name} host"))?;
            all.extend(things.into_iter().map(|thing| format!("{name}: {thing}")));
        }
        Ok(Self(all))
    }

    /// What is there that was not there before, and what is gone, in words; none if nothing has changed.
    pub fn since(&self, before: &Self) -> Option<String> {
        let come = self.0.difference(&before.0).map(|thing| format!("{thing} is new"));
        let gone = before.0.difference(&self.0).map(|thing| format!("{thing} is gone"));
        let changes: Vec<String> = come.chain(gone).collect();
        (!changes.is_empty()).then(|| changes.join("; "))
    }
}

fn of_host(host: &Host) -> Result<Vec<String>> {
    host.run(|| {
        let mut netlink = Netlink::open()?;
        let links = netlink.links()?;
        let names: BTreeMap<u32, &str> =
            links.iter().map(|link| (link.index, link.name.as_str())).collect();
        let name = |index: u32| names.get(&index).copied().unwrap_or("?");
        let mut things: Vec<String> =
            links.iter().map(|link| format!("interface {}", link.name)).collect();
        let addresses = netlink.addresses()?;
        // Link-local ones come by themselves, and later.
        let own = addresses.iter().filter(|it| !is_link_local(it.address));
        things.extend(
            own.map(|it| format!("address {}/{} on {}", it.address, it.prefix, name(it.index))),
        );
        let everything = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        for answer in netlink.request(everything, NLM_F_DUMP, "list the routes")? {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                things.extend(self::route(&route, name));
            }
        }
        let everything = RouteNetlinkMessage::GetRule(RuleMessage::default());
        for answer in netlink.request(everything, NLM_F_DUMP, "list the rules")? {
            if let RouteNetlinkMessage::NewRule(rule) = answer {
                things.push(self::rule(&rule));
            }
        }
        Ok(things)
    })
}

/// A route, unless it follows from addresses.
fn route<'n>(route: &RouteMessage, name: impl Fn(u32) -> &'n str) -> Option<String> {
    if matches!(
        route.header.kind,
        RouteType::Local | RouteType::Broadcast | RouteType::Multicast | RouteType::Anycast
    ) {
        return None;
    }
    let mut words = vec!["default".to_owned()];
    let mut table = u32::from(route.header.table);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(to) => {
                let to = address(to)?;
                if is_link_local(to) || to.is_multicast() {
                    return None;
                }
                words[0] = format!("{to}/{}", route.header.destination_prefix_length);
            }
            RouteAttribute::Gateway(via) => words.push(format!("via {}", address(via)?)),
            RouteAttribute::Oif(index) => words.push(format!("by {}", name(*index))),
            RouteAttribute::Priority(metric) => words.push(format!("metric {metric}")),
            RouteAttribute::Table(number) => table = *number,
            _ => {}
        }
    }
    if table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        words.push(format!("in table {table}"));
    }
    Some(format!("{} route {}", version(route.header.address_family), words.join(" ")))
}

fn rule(rule: &RuleMessage) -> String {
    let attribute = |attribute: &RuleAttribute| match attribute {
        RuleAttribute::Source(from) => format!("from {from}/{}", rule.header.src_len),
        RuleAttribute::Destination(to) => format!("to {to}/{}", rule.header.dst_len),
        other => format!("{other:?}"),
    };
    let mut words: Vec<String> = rule.attributes.iter().map(attribute).collect();
    words.sort();
    format!("{} rule {}", version(rule.header.family), words.join(" "))
}

/// The IP version of a route or rule.
fn version(family: AddressFamily) -> String {
    match family {
        AddressFamily::Inet => "IPv4".into(),
        AddressFamily::Inet6 => "IPv6".into(),
        other => format!("{other:?}"),
    }
}

fn address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}
