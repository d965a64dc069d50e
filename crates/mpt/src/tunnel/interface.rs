//! The tunnel's interface as the host sees it: addresses, routes, and the rules of a default route.
//!
//! Addresses and routes are removed with the interface, and the interface with its descriptor.
//! Rules are not: they are removed at the end, and those left by a killed daemon at the start.
//! Parts that another program removes are restored ([`super::upkeep`]).
//!
//! A default route must not route the tunnel's own datagrams into the tunnel. So it is in a
//! separate table, which is used for all packets without [`MARK`], and only after the more specific
//! routes of the main table. The host's own default route stays unchanged: the datagrams of all
//! paths use it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use mpt_io::netlink::{Error, IpVersion, Netlink, Route, Rule};

use super::upkeep::{Part, TRUCE, Upkeep};
use crate::config::{self, Prefix};
use crate::mark::MARK;

/// The place of the rules among all rules: before the main table's 32766.
const PRIORITY: u32 = 4754;

/// Tables of default routes have this number and that of their interface.
const TABLES: u32 = 0x4754_0000;

/// How long the kernel may take until an address of ours is deliverable. It takes a millisecond.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// What the tunnel has put into the host's tables.
#[derive(Debug)]
pub(super) struct Interface {
    index: u32,
    addresses: Vec<Prefix>,
    routes: BTreeSet<Prefix>,
    rules: BTreeSet<IpVersion>,
    /// When to look whether all that is still there.
    pub(super) upkeep: Upkeep,
}

impl Interface {
    /// An interface that is down and has nothing yet.
    pub(super) fn new(index: u32) -> Self {
        let (routes, rules) = (BTreeSet::new(), BTreeSet::new());
        Self { index, addresses: Vec::new(), routes, rules, upkeep: Upkeep::default() }
    }

    /// Its number.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Gives it its addresses and brings it up.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(super) fn bring_up(&mut self, addresses: &[Prefix]) -> Result<(), Error> {
        let mut netlink = Netlink::open()?;
        remove_leftovers(&mut netlink)?;
        netlink.disable_address_generation(self.index)?;
        for prefix in addresses {
            netlink.add_address(self.index, prefix.addr, prefix.len)?;
        }
        netlink.set_up(self.index, true)?;
        for prefix in addresses {
            // The kernel makes an IPv6 address deliverable a moment later; until then the first
            // packets to it would be lost.
            netlink.wait_for_address(prefix.addr, ADDRESS_PATIENCE)?;
        }
        self.addresses = addresses.to_vec();
        Ok(())
    }

    /// Restores parts that another program has removed from this tunnel, if a check is due.
    pub(super) fn maintain(&mut self, tunnel: &str, is_up: bool, now: Instant) {
        // An interface that is switched off can have no routes. It gets them when it is switched on,
        // because that is a change.
        if !self.upkeep.is_due(now) || !is_up {
            return;
        }
        let mut netlink = match Netlink::open() {
            Ok(netlink) => netlink,
            Err(error) => {
                tracing::warn!(tunnel, "cannot monitor addresses and routes: {error}");
                return;
            }
        };
        // With the last address the kernel removes all routes, so addresses come first.
        let addresses = self.addresses.iter().copied().map(Part::Address);
        let routes = self.routes.iter().copied().map(Part::Route);
        let rules = self.rules.iter().copied().map(Part::Rules);
        for part in addresses.chain(routes).chain(rules).collect::<Vec<_>>() {
            if self.upkeep.is_left(part) {
                continue;
            }
            match self.put_back(&mut netlink, part) {
                Ok(false) => {}
                Ok(true) if self.upkeep.on_put_back(part, now) => tracing::warn!(
                    tunnel,
                    "{part} is restored for the last time, because it is removed repeatedly; MPT \
                     monitors it again in {} s, or after `mpt reload`",
                    TRUCE.as_secs()
                ),
                Ok(true) => {
                    tracing::warn!(tunnel, "{part} was removed, but not by MPT: it is restored");
                }
                Err(error) => {
                    self.upkeep.leave(part, now);
                    tracing::warn!(
                        tunnel,
                        "{part} was removed and cannot be restored: {error}; retrying in {} s, \
                         or by `mpt reload`",
                        TRUCE.as_secs()
                    );
                }
            }
        }
    }

    /// Returns whether it was missing. To add it is the shortest way to find out: that changes nothing
    /// if it is there, and costs the same in a host with a million routes.
    fn put_back(&self, netlink: &mut Netlink, part: Part) -> Result<bool, Error> {
        let was_missing = |added| match added {
            Ok(()) => Ok(true),
            Err(Error::Exists { .. }) => Ok(false),
            Err(error) => Err(error),
        };
        match part {
            Part::Address(Prefix { addr, len }) => {
                was_missing(netlink.add_address(self.index, addr, len))
            }
            Part::Route(prefix) => was_missing(netlink.add_route_in(&self.route(prefix))),
            Part::Rules(version) => {
                let [common, own] =
                    self.rules(version).map(|rule| was_missing(netlink.add_rule(&rule)));
                Ok(common? | own?)
            }
        }
    }

    /// Has exactly these prefixes led into the tunnel. All that can be done is done also after an
    /// error.
    ///
    /// # Errors
    ///
    /// The first refusal, such as a route of another program, with the remedy.
    pub(super) fn set_routes(&mut self, wanted: &BTreeSet<Prefix>) -> anyhow::Result<()> {
        if *wanted == self.routes {
            return Ok(());
        }
        let mut netlink = Netlink::open()?;
        let mut outcome = Ok(());
        let gone: Vec<Prefix> = self.routes.difference(wanted).copied().collect();
        for prefix in gone {
            self.routes.remove(&prefix);
            // A route that is gone already has been removed by the kernel or by the operator.
            let _ = netlink.remove_route_in(&self.route(prefix));
            if prefix.len == 0 {
                self.remove_rules(&mut netlink, prefix.addr.into());
            }
        }
        for prefix in wanted.difference(&self.routes.clone()) {
            let added = netlink.add_route_in(&self.route(*prefix)).and_then(|()| {
                if prefix.len == 0 {
                    self.add_rules(&mut netlink, prefix.addr.into())
                } else {
                    Ok(())
                }
            });
            match added {
                Ok(()) => {
                    self.routes.insert(*prefix);
                }
                Err(error) => {
                    if prefix.len == 0 {
                        // Without its rules it is of no use, and in the way of the next attempt.
                        let _ = netlink.remove_route_in(&self.route(*prefix));
                    }
                    outcome = outcome.and(Err(refused(&mut netlink, *prefix, error)));
                }
            }
        }
        outcome
    }

    fn route(&self, prefix: Prefix) -> Route {
        let route = Route::new((prefix.addr, prefix.len), self.index, None);
        if prefix.len == 0 { Route { table: table(self.index), ..route } } else { route }
    }

    fn rules(&self, version: IpVersion) -> [Rule; 2] {
        Rule::default_route(version, PRIORITY, MARK, table(self.index))
    }

    fn add_rules(&mut self, netlink: &mut Netlink, version: IpVersion) -> Result<(), Error> {
        self.rules.insert(version);
        for rule in self.rules(version) {
            match netlink.add_rule(&rule) {
                Ok(()) | Err(Error::Exists { .. }) => {}
                Err(error) => {
                    self.remove_rules(netlink, version);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn remove_rules(&mut self, netlink: &mut Netlink, version: IpVersion) {
        if self.rules.remove(&version) {
            let [common, own] = self.rules(version);
            // Another tunnel with a default route may need the first.
            let needed = netlink.rules().is_ok_and(|rules| {
                rules.iter().any(|rule| {
                    rule.version == version && rule.table != own.table && tunnel_of(rule).is_some()
                })
            });
            for rule in [own].into_iter().chain((!needed).then_some(common)) {
                match netlink.remove_rule(&rule) {
                    Ok(()) | Err(Error::NotFound { .. }) => {}
                    Err(error) => {
                        tracing::warn!("cannot remove the {rule}, which has no effect: {error}")
                    }
                }
            }
        }
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        let versions: Vec<IpVersion> = self.rules.iter().copied().collect();
        if versions.is_empty() {
            return;
        }
        match Netlink::open() {
            Ok(mut netlink) => {
                versions.into_iter().for_each(|version| self.remove_rules(&mut netlink, version));
            }
            Err(error) => {
                tracing::warn!(
                    "cannot remove the rules of the default route, which have no effect: \
                    {error}"
                )
            }
        }
    }
}

/// What leads into a tunnel with these connections: the networks behind the peers, and peers that
/// are not in the tunnel's own networks.
pub(super) fn routes<'c>(
    addresses: &[Prefix],
    connections: impl Iterator<Item = &'c config::Connection>,
) -> BTreeSet<Prefix> {
    let mut routes = BTreeSet::new();
    for connection in connections {
        let peers = connection.peer.iter();
        let hosts = peers.map(|&addr| Prefix { addr, len: Prefix::max_len(addr) });
        routes.extend(hosts.filter(|host| !addresses.iter().any(|own| own.overlaps(*host))));
        // The kernel has routed the tunnel's own subnets into it with its addresses.
        let networks = connection.networks.iter();
        let is_own = |network: &&Prefix| addresses.iter().any(|own| own.network() == **network);
        routes.extend(networks.filter(|network| !is_own(network)).copied());
    }
    routes
}

/// A refusal, and what to do about it: what [`preflight`](crate::preflight) says of such a network.
fn refused(netlink: &mut Netlink, prefix: Prefix, error: Error) -> anyhow::Error {
    let network = format!("the network {prefix} cannot be routed into the tunnel");
    if let Error::Exists { .. } = error {
        // The host's own network: to remove its route would cut off the host.
        let is_own = match netlink.conflict_of((prefix.addr, prefix.len)) {
            Ok(Some(way)) => way.via.is_none(),
            Ok(None) | Err(_) => true,
        };
        let removal = match is_own {
            true => String::new(),
            false => format!("remove that with `ip route del {prefix}`, or "),
        };
        anyhow!(
            "{network}: this host has a route to it already; {removal}take the network out of `networks`, or \
             name the parts of it that are behind the peer"
        )
    } else {
        anyhow::Error::from(error).context(network)
    }
}

/// Removes the routing rules that killed daemons have left.
///
/// # Errors
///
/// The kernel's refusal.
pub(crate) fn remove_left_rules() -> Result<(), Error> {
    remove_leftovers(&mut Netlink::open()?)
}

/// Removes the rules of tunnels that are no more.
fn remove_leftovers(netlink: &mut Netlink) -> Result<(), Error> {
    let links: Vec<u32> = netlink.links()?.iter().map(|link| link.index & 0xffff).collect();
    let rules = netlink.rules()?;
    let is_alive = |rule: &&Rule| tunnel_of(rule).is_some_and(|index| links.contains(&index));
    let alive: Vec<IpVersion> = rules.iter().filter(is_alive).map(|rule| rule.version).collect();
    for rule in &rules {
        let common = rule.priority == PRIORITY && rule.table == Route::MAIN;
        let over = match tunnel_of(rule) {
            Some(index) => !links.contains(&index),
            None => common && !alive.contains(&rule.version),
        };
        if over {
            netlink.remove_rule(rule)?;
        }
    }
    Ok(())
}

/// The tunnel's interface to whose table a rule leads, in as many bits as the table's number has of it.
fn tunnel_of(rule: &Rule) -> Option<u32> {
    Some(rule.table ^ TABLES).filter(|index| *index <= 0xffff)
}

fn table(index: u32) -> u32 {
    TABLES | (index & 0xffff)
}
