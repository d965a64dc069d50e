//! The tunnel's local addresses: those of the tunnel, and `ip_local` of its connections.
//!
//! The original replaces an IPv4 `ip_local` by the tunnel's address. For IPv6 it means to and does not: there
//! `ip_local` is the address by which the peer knows this host.

use std::net::IpAddr;

use mpt_proto::Prefix;

use super::connection::Connection;
use super::ledger::{Findings, Given};

/// The addresses of the tunnel with those of its connections, each with a comment.
///
/// Those of enabled connections come first, because a peer sees the first that is in its subnet.
pub(super) fn complete(
    of_tunnel: Vec<Given<Prefix>>,
    connections: &mut [Connection],
    findings: &mut Findings,
) -> Vec<Given<Prefix>> {
    let of_version = |ipv6: bool| {
        let mut own = of_tunnel.iter().filter(move |own| own.value.address().is_ipv6() == ipv6);
        own.next()
    };
    let kept = |disabled: bool| {
        let connections = connections.iter().filter(move |one| one.is_disabled() == disabled);
        let locals = connections.filter_map(|connection| connection.local.as_ref());
        let ipv6 = locals.filter(|local| local.value.is_ipv6());
        ipv6.map(|local| match of_version(true) {
            Some(tunnel) if tunnel.value.address() == local.value => tunnel.clone(),
            tunnel => Given::written(own(local.value, tunnel), local.note.clone()),
        })
    };
    let tunnel = of_tunnel.iter().cloned();
    let (ipv4, ipv6): (Vec<_>, Vec<_>) = tunnel.partition(|own| own.value.address().is_ipv4());
    let mut addresses = ipv4;
    for given in kept(false).chain(ipv6).chain(kept(true)) {
        if addresses.iter().all(|known| known.value.address() != given.value.address()) {
            addresses.push(given);
        }
    }
    for connection in connections {
        let Some(local) = connection.local.take() else { continue };
        let tunnel = of_version(local.value.is_ipv6()).map(|own| own.value.address());
        let (what, tell) = match tunnel {
            Some(tunnel) if tunnel == local.value => ("the tunnel's address".to_owned(), false),
            _ if local.value.is_ipv6() => (
                "one of the tunnel's `addresses`, because the original keeps it for IPv6"
                    .to_owned(),
                true,
            ),
            Some(tunnel) => {
                (format!("the tunnel's address, {tunnel}, is used, as in the original"), true)
            }
            None => {
                ("not used: the tunnel has no IPv4 address, as in the original".to_owned(), true)
            }
        };
        let line = format!("{}: {what}", local.note);
        if tell {
            findings.warnings.push(line.clone());
        }
        connection.aside(line);
        let shown = shown(&addresses, connection).filter(|shown| *shown != local.value);
        if let (true, Some(shown)) = (local.value.is_ipv6(), shown) {
            let line = format!("{}: keepalives and commands contain {shown} instead", local.note);
            findings.warnings.push(line.clone());
            connection.aside(line);
        }
    }
    addresses
}

/// The address that the peer sees: the first in whose subnet it is, or else the first.
fn shown(addresses: &[Given<Prefix>], connection: &Connection) -> Option<IpAddr> {
    let peer = connection.remote.as_ref().filter(|_| !connection.is_disabled())?.value;
    let own = || addresses.iter().map(|own| own.value);
    let mut near = own().filter(|own| own.contains(peer));
    let mut same = own().filter(|own| own.address().is_ipv6() == peer.is_ipv6());
    near.next().or_else(|| same.next()).map(|own| own.address())
}

/// An address without a length: it takes that of the tunnel's address if it is in that subnet.
fn own(addr: IpAddr, tunnel: Option<&Given<Prefix>>) -> Prefix {
    let tunnel = tunnel.filter(|tunnel| tunnel.value.contains(addr));
    let prefix = tunnel.and_then(|tunnel| Prefix::new(addr, tunnel.value.bits()));
    prefix.unwrap_or(Prefix::host(addr))
}
