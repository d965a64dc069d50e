//! Interfaces, addresses and routes of the paths.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mpt_io::netlink::{Address, IpVersion};

use super::sysctl::set_sysctl;
use crate::config::Settings;
use crate::preflight::facts::{Facts, of_interface};
use crate::preflight::finding::Finding;
use crate::preflight::needs::{self, Names, User};

pub(super) fn judge(settings: &Settings, facts: &Facts, findings: &mut Vec<Finding>) {
    let users = needs::users(settings);
    let by_interface = grouped(&users, |user| user.interface);
    findings.extend(
        by_interface.iter().filter_map(|(name, users)| interface(name, &Names(users), facts)),
    );
    findings
        .extend(by_interface.iter().filter_map(|(name, users)| ipv6_disabled(name, users, facts)));
    let by_address = grouped(&users, |user| user.local);
    findings.extend(
        by_address.iter().filter_map(|(local, users)| address(*local, &Names(users), facts)),
    );
    let by_place = grouped(&users, |user| elsewhere(user, facts));
    findings.extend(by_place.into_iter().map(|((name, local, other), users)| {
        Finding::warning(
            format!("interface {name} does not have the address {local}, and {other} has it"),
            format!("{} cannot be used", Names(&users)),
            format!("ip address show dev {name}  (correct `local`, or leave it out)"),
        )
    }));
    let by_leg = grouped(&users, |user| route(user, facts));
    findings.extend(by_leg.into_iter().map(|((what, fix), users)| {
        Finding::warning(what, format!("{} cannot be used until one does", Names(&users)), fix)
    }));
    let by_filter = grouped(&users, |user| reverse_path(user, settings, facts));
    findings.extend(by_filter.into_iter().map(|((interface, reason), users)| {
        let name = of_interface(IpVersion::V4, &interface, "rp_filter");
        Finding::warning(
            format!("reverse path filtering is strict on {interface}"),
            format!("the kernel drops datagrams for {}, because {reason}", Names(&users)),
            set_sysctl(&name, 2),
        )
    }));
}

/// The users by what they have in common, each group in the order of the file.
fn grouped<'u, 's, K: Ord>(
    users: &'u [User<'s>],
    key: impl Fn(&'u User<'s>) -> Option<K>,
) -> BTreeMap<K, Vec<&'u User<'s>>> {
    let mut groups: BTreeMap<K, Vec<&User<'_>>> = BTreeMap::new();
    for user in users {
        if let Some(key) = key(user) {
            groups.entry(key).or_default().push(user);
        }
    }
    groups
}

fn interface(name: &str, users: &Names<'_, '_>, facts: &Facts) -> Option<Finding> {
    let links = facts.links.as_ref()?;
    let why = format!("{users} cannot be used until it is up");
    match links.iter().find(|link| link.name == name) {
        None => Some(Finding::warning(
            format!("interface {name} does not exist"),
            why,
            "ip -brief link  (correct `interface` if none of them is it)",
        )),
        Some(link) if !link.up => Some(Finding::warning(
            format!("interface {name} is switched off"),
            why,
            format!("ip link set {name} up"),
        )),
        Some(_) => None,
    }
}

fn ipv6_disabled(name: &str, users: &[&User<'_>], facts: &Facts) -> Option<Finding> {
    let only_ipv6 = |user: &&&User<'_>| user.versions == [IpVersion::V6];
    let users: Vec<&User<'_>> = users.iter().filter(only_ipv6).copied().collect();
    let setting = of_interface(IpVersion::V6, name, "disable_ipv6");
    let disabled = facts.sysctl(&setting)? != 0 && !users.is_empty();
    disabled.then(|| {
        Finding::warning(
            format!("IPv6 is disabled on interface {name}"),
            format!("{} cannot be used", Names(&users)),
            set_sysctl(&setting, 0),
        )
    })
}

fn address(local: IpAddr, users: &Names<'_, '_>, facts: &Facts) -> Option<Finding> {
    facts.addresses.as_ref()?;
    match facts.address(local) {
        None => Some(Finding::warning(
            format!("no interface has the address {local}"),
            format!("{users} cannot be used until one has"),
            format!("ip address add {local}/PREFIX dev INTERFACE"),
        )),
        Some(address) if !address.usable => Some(Finding::warning(
            format!("the address {local} is not usable"),
            format!("another host has it or may have it, and {users} cannot be used"),
            format!("ip address show to {local}"),
        )),
        Some(_) => None,
    }
}

/// The interface of a user, its address, and the interface that has that in its place.
fn elsewhere<'f>(user: &User<'f>, facts: &'f Facts) -> Option<(&'f str, IpAddr, &'f str)> {
    let (name, local) = user.interface.zip(user.local)?;
    let has = |address: &&Address| address.address == local;
    let mut others = facts.addresses.iter().flatten().filter(has);
    let index = facts.link(name)?.index;
    let other = facts.name(others.clone().next()?.index)?;
    others.all(|address| address.index != index).then_some((name, local, other))
}

/// That no route leads to the peer, and the command that makes one. What lacks its interface or its
/// address has no route for that reason alone.
fn route(user: &User<'_>, facts: &Facts) -> Option<(String, String)> {
    let leg = user.leg()?;
    let ready = user.interface.is_none_or(|name| facts.link(name).is_some_and(|link| link.up))
        && user.local.is_none_or(|local| facts.address(local).is_some_and(|found| found.usable));
    if !ready || !facts.unreachable.contains(&leg) {
        return None;
    }
    let remote = leg.remote.ip();
    let (through, device) = match &leg.interface {
        Some(name) => (format!(" through {name}"), format!(" dev {name}")),
        None => (String::new(), String::new()),
    };
    Some((
        format!("no route leads to {remote}{through}"),
        format!("ip route add {remote} via ROUTER{device}"),
    ))
}

/// The interface whose strict filter drops what arrives for `user`, and why: strict means that the
/// route back to the sender must lead through the interface of arrival (RFC 3704 section 2.2). Only
/// IPv4 has such a filter outside the firewall.
fn reverse_path(user: &User<'_>, settings: &Settings, facts: &Facts) -> Option<(String, String)> {
    const STRICT: i64 = 1;
    let remote = user.remote?.ip();
    let way = facts.name(*facts.ways.get(&remote).filter(|_| remote.is_ipv4())?)?;
    let interface = facts.interface_of(user).unwrap_or(way);
    let filter = |name| facts.sysctl(&of_interface(IpVersion::V4, name, "rp_filter"));
    // The larger of both is in force; 2 is loose (ip-sysctl, rp_filter).
    if filter("all").max(filter(interface))? != STRICT {
        return None;
    }
    if way != interface {
        let reason = format!("the route to {remote} leads through {way}");
        return Some((interface.to_owned(), reason));
    }
    let default = needs::networks(settings, IpVersion::V4).any(|network| network.len == 0);
    let reason = || {
        format!(
            "the default route leads through the tunnel, unless {remote} has a route of its own"
        )
    };
    default.then(|| (interface.to_owned(), reason()))
}
