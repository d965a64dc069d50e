//! The host as it is at this moment: its interfaces and addresses, where its routes lead, and what
//! names stand for.
//!
//! The kernel tells of every change ([`Monitor`]), so nothing is asked again and again. A caller that
//! needs a path's [`Way`] asks here; what stands in the way is told in words, for the operator.

mod carrier;
mod lookup;
mod resolve;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use anyhow::Context as _;
use mpt_io::netlink::{self, Address, Change, Leaving, Link, Monitor, Netlink};
use mpt_io::poll::Waker;

use carrier::Carriers;
pub(crate) use resolve::{Names, Resolved};

use crate::config;
use crate::mark::MARK;

/// Changes read in one go. The kernel keeps the others, and the poll reports them.
const READS: usize = 16;

/// What the host has.
pub(crate) struct NetMonitor {
    monitor: Monitor,
    /// Where the kernel is asked for routes.
    netlink: Netlink,
    links: BTreeMap<u32, Link>,
    addresses: Vec<Address>,
    /// Those through which paths leave.
    carriers: Carriers,
    /// What names stand for.
    pub(crate) names: Names,
}

/// What has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Interfaces, addresses or routes: paths may have come or gone, and their MTU may be another.
    pub(crate) ways: bool,
    /// What names stand for.
    pub(crate) names: bool,
}

/// How a path leaves this host. If that is another one than before, the peer should hear of it at once:
/// datagrams may have another source address from now on, and may pass where nothing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The interface that it is bound to, by number, if it is bound.
    pub(crate) bound: Option<u32>,
    /// The interface, router and source address that the host's routes choose; `None` if the peer is
    /// this host.
    route: Option<netlink::Way>,
}

impl Way {
    /// The source address that the host's routes choose, if they do.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        self.route.and_then(|route| route.source)
    }
}

impl NetMonitor {
    /// Looks at everything and listens from then on. `main` is woken when names are resolved.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(crate) fn open(main: Waker) -> anyhow::Result<Self> {
        // In this order: changes in between are notified.
        let monitor = Monitor::open().context("cannot subscribe to kernel notifications")?;
        let netlink = Netlink::open()?;
        let (links, addresses) = (BTreeMap::new(), Vec::new());
        let (carriers, names) = (Carriers::default(), Names::new(main));
        let mut netmon = Self { monitor, netlink, links, addresses, carriers, names };
        netmon.look()?;
        Ok(netmon)
    }

    /// The descriptor that becomes readable when something changes.
    pub(crate) fn readable(&self) -> impl AsFd {
        &self.monitor
    }

    /// Takes in what has changed.
    pub(crate) fn read(&mut self) -> Changed {
        let (mut changed, mut afresh) = (Changed::default(), false);
        for _ in 0..READS {
            let Self { monitor, links, addresses, carriers, .. } = self;
            let read = monitor.read(|change| {
                changed.ways = true;
                match change {
                    Change::Link(link) => {
                        links.insert(link.index, link);
                    }
                    Change::LinkGone { index, .. } => {
                        links.remove(&index);
                        carriers.forget(index);
                        addresses.retain(|address| address.index != index);
                    }
                    Change::Address(address) => {
                        addresses.retain(|other| !is_same(other, &address));
                        addresses.push(address);
                    }
                    Change::AddressGone(address) => {
                        addresses.retain(|other| !is_same(other, &address));
                    }
                    Change::Route => {}
                    Change::Overrun => afresh = true,
                }
            });
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(
                        "kernel notifications were lost: {error}; all interfaces are read again"
                    );
                    afresh = true;
                    break;
                }
            }
        }
        if afresh && let Err(error) = self.look() {
            tracing::warn!(
                "cannot read the interfaces: {error:#}; the paths keep their states until the next change"
            );
        }
        changed
    }

    /// Looks at carriers, if it is time to. Returns whether one has come or gone.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        let changed = self.carriers.look(now, &mut self.netlink, &self.links);
        let any = !changed.is_empty();
        self.links.extend(changed.into_iter().map(|link| (link.index, link)));
        any
    }

    /// When to call [`NetMonitor::on_timeout`] next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.carriers.deadline()
    }

    /// Until when interfaces are known not to have been lost unnoticed, if they were ever looked at.
    pub(crate) fn last_well(&self) -> Option<Instant> {
        self.carriers.last_well()
    }

    /// Looks at everything.
    fn look(&mut self) -> anyhow::Result<()> {
        let links = self.netlink.links()?;
        self.links = links.into_iter().map(|link| (link.index, link)).collect();
        self.addresses = self.netlink.addresses()?;
        Ok(())
    }

    /// The interfaces from which a route leads to `remote`, by name: those with a default route of its IP
    /// version, and those with another route there. They are switched on and have an address that can reach
    /// `remote`.
    pub(crate) fn uplinks(&mut self, remote: IpAddr) -> Vec<String> {
        let Self { links, addresses, netlink, .. } = self;
        let reaches = |index: u32| {
            addresses.iter().any(|address| {
                address.index == index && address.usable && can_reach(address.address, remote)
            })
        };
        let candidates = links.values().filter(|link| link.up && reaches(link.index));
        let uplinks = candidates.filter(|link| {
            let leaving = Leaving { mark: Some(MARK), index: Some(link.index), source: None };
            netlink.has_route(remote, leaving)
        });
        uplinks.map(|link| link.name.clone()).collect()
    }

    /// How a path can leave for `remote`.
    ///
    /// # Errors
    ///
    /// What is missing, in words.
    pub(crate) fn way(&mut self, path: &config::Path, remote: IpAddr) -> Result<Way, String> {
        let way = self.way_from(path.interface.as_deref(), path.local, remote)?;
        // The kernel also sends where no route leads, which nobody asked for if nobody named the interface.
        let leaving = Leaving { mark: Some(MARK), index: way.bound, source: path.local };
        if path.found.is_some() && !self.netlink.has_route(remote, leaving) {
            return Err(no_route(path.interface.as_deref(), path.local, remote));
        }
        Ok(way)
    }

    /// The same for what is not a path yet.
    pub(crate) fn way_from(
        &mut self,
        interface: Option<&str>,
        local: Option<IpAddr>,
        remote: IpAddr,
    ) -> Result<Way, String> {
        let bound = match interface {
            Some(name) => Some(self.usable(name)?),
            None => None,
        };
        if let Some(local) = local {
            let has = |address: &&Address| {
                address.address == local
                    && address.usable
                    && bound.is_none_or(|index| address.index == index)
            };
            let Some(address) = self.addresses.iter().find(has) else {
                let place =
                    interface.map_or("this host".into(), |name| format!("interface {name}"));
                return Err(format!("{place} does not have the address {local}"));
            };
            self.running(address.index)?;
        } else if let (Some(index), Some(name)) = (bound, interface) {
            let has = |address: &Address| {
                address.index == index && address.usable && can_reach(address.address, remote)
            };
            if !self.addresses.iter().any(has) {
                let version = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
                return Err(format!("interface {name} has no {version} address"));
            }
        }
        // Remotes with any address, such as the peers of a template, have no single route.
        let route = match remote.is_unspecified() {
            true => None,
            false => self.route(interface, bound, local, remote)?,
        };
        Ok(Way { bound, route })
    }

    /// Where the host's routes lead.
    fn route(
        &mut self,
        interface: Option<&str>,
        index: Option<u32>,
        source: Option<IpAddr>,
        remote: IpAddr,
    ) -> Result<Option<netlink::Way>, String> {
        let leaving = Leaving { mark: Some(MARK), index, source };
        let Ok(route) = self.netlink.way_of(remote, leaving) else {
            return Err(no_route(interface, source, remote));
        };
        match route {
            Some(way) => {
                self.running(way.index)?;
                self.carriers.watch(way.index);
                Ok(route)
            }
            None => Ok(None),
        }
    }

    /// The number of an interface through which packets pass.
    fn usable(&self, name: &str) -> Result<u32, String> {
        match self.links.values().find(|link| link.name == name) {
            Some(link) => self.running(link.index).map(|()| link.index),
            None => Err(format!("there is no interface {name}")),
        }
    }

    /// Whether an interface of this host is switched on.
    pub(crate) fn is_up(&self, index: u32) -> bool {
        self.links.get(&index).is_some_and(|link| link.up)
    }

    fn running(&self, index: u32) -> Result<(), String> {
        match self.links.get(&index) {
            Some(Link { name, up: false, .. }) => Err(format!("interface {name} is switched off")),
            Some(Link { name, carrier: false, .. }) => {
                Err(format!("interface {name} has no carrier"))
            }
            // It has a carrier and waits, for its network or for the kernel: what is sent is lost.
            Some(Link { name, running: false, .. }) => {
                Err(format!("interface {name} is not ready"))
            }
            // An interface without a notification yet is not reported as wrong.
            Some(_) | None => Ok(()),
        }
    }
}

fn no_route(interface: Option<&str>, source: Option<IpAddr>, remote: IpAddr) -> String {
    let through = interface.map(|name| format!(" through interface {name}"));
    let from = source.map(|source| format!(" from {source}"));
    let [through, from] = [through, from].map(Option::unwrap_or_default);
    format!("no route leads to {remote}{through}{from}")
}

/// Whether packets from one address may go to the other: those of an IPv6 link stay there.
fn can_reach(from: IpAddr, to: IpAddr) -> bool {
    match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            !from.is_unicast_link_local() || to.is_unicast_link_local()
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

fn is_same(one: &Address, other: &Address) -> bool {
    (one.index, one.address) == (other.index, other.address)
}
