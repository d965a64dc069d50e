//! What the host has for the paths that are found by themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use super::Reconciler;
use super::connection::Path;
use super::uplinks::{Key, Uplinks};
use crate::config::{self, Found, Remote};
use crate::netmon::{NetMonitor, Resolved};

/// Where the peer is taken to be as long as its name is not resolved: somewhere on the Internet (the root name
/// server a.root-servers.net). Nothing is sent there.
const ANYWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)),
];

impl Reconciler {
    /// The settings with the paths that are found by themselves.
    pub(super) fn with_found_paths(
        &mut self,
        settings: &config::Tunnel,
        netmon: &mut NetMonitor,
        now: Instant,
    ) -> config::Tunnel {
        let Self { uplinks, connections, .. } = self;
        let running = |name: &str| {
            let running = connections.get(name).map(|running| running.paths.values());
            running.into_iter().flatten()
        };
        found(settings, uplinks, running, netmon, now)
    }
}

/// The settings with the paths that are found by themselves, of which `running` are those that a connection has.
pub(super) fn found<'p, P: Iterator<Item = &'p Path>>(
    settings: &config::Tunnel,
    uplinks: &mut Uplinks,
    running: impl Fn(&str) -> P,
    netmon: &mut NetMonitor,
    now: Instant,
) -> config::Tunnel {
    let mut settings = settings.clone();
    uplinks.begin(&settings.connections);
    for connection in &mut settings.connections {
        let Some(remote) = &connection.remote else { continue };
        let heard = || running(&connection.name).filter(|path| !path.silent);
        let mut routes = Vec::new();
        // What is heard by an address is not given up because the name does not stand for it any more.
        let known: Vec<IpAddr> = heard().filter_map(|path| path.remote).collect();
        let resolved = resolved(remote, netmon, now);
        let addresses: Vec<IpAddr> = resolved.iter().flatten().chain(&known).copied().collect();
        for remote in &addresses {
            add_routes(&mut routes, *remote, &settings.name, netmon);
        }
        if resolved.is_none() {
            // One path by each interface shows the operator why there is nothing.
            let mut likely = Vec::new();
            for remote in ANYWHERE {
                add_routes(&mut likely, remote, &settings.name, netmon);
            }
            let new = |(interface, _): &Key| routes.iter().all(|(other, _)| other != interface);
            likely.retain(new);
            likely.sort();
            likely.dedup_by(|one, other| one.0 == other.0);
            routes.extend(likely);
        }
        let up = |name: &str| heard().any(|path| path.settings.name == name);
        connection.paths = uplinks.paths(connection, &routes, up, now);
    }
    settings
}

/// The addresses of the peer; `None` if they are unknown.
fn resolved(remote: &Remote, netmon: &mut NetMonitor, now: Instant) -> Option<Vec<IpAddr>> {
    match remote {
        Remote::Address(address) => Some(vec![*address]),
        Remote::Name(name) => match netmon.names.resolve(name, now) {
            Resolved::Addresses(addresses) => Some(addresses),
            Resolved::Failed(_) | Resolved::Asking => None,
        },
    }
}

/// Adds the interfaces from which a route leads there, but for the tunnel's own.
fn add_routes(routes: &mut Vec<Key>, remote: IpAddr, own: &str, netmon: &mut NetMonitor) {
    let found = if remote.is_ipv4() { Found::V4 } else { Found::V6 };
    for interface in netmon.uplinks(remote) {
        let key = (interface, found);
        if key.0 != own && !routes.contains(&key) {
            routes.push(key);
        }
    }
}
