//! Tunnels among the host's own networks: what is routed elsewhere already, addresses that are in two places, names
//! that nobody knows, and packets that no path carries.

use std::net::IpAddr;

use crate::config::{Connection, Mtu, Prefix, Settings, Tunnel};
use crate::preflight::facts::{Facts, Taken};
use crate::preflight::finding::Finding;

pub(super) fn judge(settings: &Settings, facts: &Facts, findings: &mut Vec<Finding>) {
    findings.extend(facts.taken.iter().map(|(network, taken)| routed(*network, taken)));
    for tunnel in &settings.tunnels {
        findings.extend(hidden(tunnel, facts));
        findings.extend(uplink(tunnel, facts));
        findings.extend(too_large(tunnel, facts));
        for connection in &tunnel.connections {
            let paths =
                connection.paths.iter().map(|path| (format!("path {}", path.name), &path.remote));
            let own = connection.remote.iter().map(|remote| ("paths".to_owned(), remote));
            for (user, remote) in paths.chain(own) {
                let of = &connection.name;
                if let Some(address) = remote.address() {
                    findings.extend(wrong_remote(
                        &format!("{user} of {of}"),
                        address,
                        connection,
                        tunnel,
                        facts,
                    ));
                }
                if let Some(reason) = remote.name().and_then(|name| facts.unresolved.get(name)) {
                    let name = remote.name().unwrap_or_default();
                    findings.push(Finding::warning(
                        format!("the name {name} has no address: {reason}"),
                        format!("{user} of {of} cannot be used until it has one"),
                        format!("getent ahosts {name}  (correct `remote`, or /etc/resolv.conf)"),
                    ));
                }
            }
        }
    }
}

/// A `remote` by which no peer is reached: one within the tunnel, or of this host.
fn wrong_remote(
    user: &str,
    address: IpAddr,
    connection: &Connection,
    tunnel: &Tunnel,
    facts: &Facts,
) -> Option<Finding> {
    const WITHIN: &str =
        "that address is reached through the tunnel, and a path cannot lead through itself";
    const FIX: &str = "set `remote` to an address of the peer that is reached without the tunnel";
    let host = Prefix { addr: address, len: Prefix::max_len(address) };
    let what = if connection.peer.contains(&address) {
        format!("{user}: `remote` is the peer's tunnel address {address}")
    } else if tunnel.addresses.iter().any(|own| own.overlaps(host)) {
        format!("{user}: `remote` is {address}, in the subnet of tunnel {}", tunnel.name)
    } else {
        let name = facts.name(facts.address(address)?.index)?;
        return Some(Finding::warning(
            format!("{user}: `remote` is {address}, an address of {name} on this host"),
            "`remote` is an address of the peer, and `local` one of this host",
            "set `remote` to an address of the peer",
        ));
    };
    Some(Finding::warning(what, WITHIN, FIX))
}

/// A network that this host routes elsewhere. `mpt run` does not take it away from there.
fn routed(network: Prefix, taken: &Taken) -> Finding {
    let Taken { interface, via } = taken;
    let why = "`mpt run` does not start, because it takes no route of others away";
    match via {
        // The network of an interface itself, which leads to its neighbours: without its route the host is cut off.
        None => Finding::error(
            format!("{network} is the network of {interface} on this host"),
            why,
            format!(
                "take {network} out of `networks`, or name the parts of it that are behind the peer"
            ),
        ),
        Some(via) => Finding::error(
            format!("{network} is routed to {via} on {interface} already"),
            why,
            format!(
                "ip route del {network} via {via} dev {interface}  (or take it out of `networks`)"
            ),
        ),
    }
}

/// A network of another interface whose route has a larger metric than that of a tunnel, as network managers give them:
/// the tunnel gets what is for the neighbours there.
fn hidden(tunnel: &Tunnel, facts: &Facts) -> Vec<Finding> {
    let networks = crate::tunnel::routed_networks(tunnel);
    let refused = |network: &Prefix| facts.taken.iter().any(|(taken, _)| taken == network);
    let mut findings = Vec::new();
    for (interface, prefix) in others(tunnel, facts) {
        let network = prefix.network();
        if networks.contains(&network) && !refused(&network) {
            findings.push(Finding::warning(
                format!("{network} in `networks` is the network of {interface} on this host, too"),
                format!("packets for its hosts at {interface} would go into tunnel {}", tunnel.name),
                format!(
                    "take {network} out of `networks`, or name the parts of it that are behind the peer"
                ),
            ));
        }
    }
    findings
}

/// The other interfaces of the host with their addresses.
fn others<'f>(tunnel: &'f Tunnel, facts: &'f Facts) -> impl Iterator<Item = (&'f str, Prefix)> {
    facts.addresses.iter().flatten().filter_map(|other| {
        let interface = facts.name(other.index)?;
        let prefix = Prefix { addr: other.address, len: other.prefix };
        let is_other = interface != tunnel.name && interface != "lo" && !prefix.is_host();
        is_other.then_some((interface, prefix))
    })
}

/// An address of a tunnel in the network of another interface: one of both is not reached.
fn uplink(tunnel: &Tunnel, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for address in &tunnel.addresses {
        let others = others(tunnel, facts).filter(|(_, prefix)| prefix.overlaps(*address));
        findings.extend(others.map(|(interface, prefix)| {
            Finding::warning(
                format!(
                    "{address} of tunnel {} is in the network {prefix} of {interface}",
                    tunnel.name
                ),
                "the host reaches that network by one of both interfaces only",
                "choose `addresses` from a network that is used nowhere else, such as 10.9.0.0/24",
            )
        }));
    }
    findings
}

/// A fixed MTU that is larger than what a path carries.
fn too_large(tunnel: &Tunnel, facts: &Facts) -> Vec<Finding> {
    let Mtu::Fixed(mtu) = tunnel.mtu else { return Vec::new() };
    let mut findings = Vec::new();
    for connection in &tunnel.connections {
        for path in &connection.paths {
            let at = (connection.name.clone(), path.name.clone());
            if let Some(carries) = facts.carries.get(&at).filter(|it| **it < u32::from(mtu)) {
                findings.push(Finding::warning(
                    format!(
                        "`mtu` of tunnel {} is {mtu}, and path {} of {} carries {carries}",
                        tunnel.name, path.name, connection.name
                    ),
                    "larger packets are dropped there, and answered by ICMP",
                    "remove `mtu`: it follows from the paths then",
                ));
            }
        }
    }
    findings
}
