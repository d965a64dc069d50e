//! Reading a `[[tunnel.connection]]`.

use std::net::IpAddr;

use toml::Spanned;

use super::distinct::Distinct;
use super::path::{self, Claimed, Ends};
use super::report::{Problem, Problems};
use super::table::Table;
use super::{Connection, Match, Path, Prefix, Scheduler, address, keys, policies, selector, value};

/// The connection in `table`, or `None` with what is wrong noted. `addresses` are the tunnel's own,
/// if they are sound.
pub(super) fn read(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Connection> {
    distinct.next_connection();
    let name = table.required("name", "\"server\"", problems, value::name);
    if let Some(name) = &name {
        distinct.connection(name, table.span_of("name"), problems);
    }
    let selector = selector::read(table, problems);
    let peer = peer(table, addresses, &selector, distinct, problems);
    let networks = networks(table, distinct, problems);
    let port = || value::integer(1..=u16::MAX);
    let local_port = table.optional("local_port", Connection::DEFAULT_PORT, problems, port());
    let remote_port = table.optional("remote_port", Connection::DEFAULT_PORT, problems, port());
    let policies = policies::read(table, problems);
    let ends = match (local_port, remote_port, policies.key) {
        (Some(local_port), Some(remote_port), Some(key)) => {
            Some(Ends { local_port, remote_port, key })
        }
        _ => None,
    };
    let paths = paths(table, ends, policies.scheduler, distinct, problems);
    table.finish(problems);
    let policies = policies.whole()?;
    Some(Connection {
        name: name?,
        peer: peer?,
        networks: networks?,
        selector: selector?,
        local_port: local_port?,
        remote_port: remote_port?,
        profile: policies.profile,
        scheduler: policies.scheduler,
        key: policies.key,
        checksum: policies.checksum,
        sequence: policies.sequence,
        reorder: policies.reorder,
        paths: paths?,
    })
}

fn peer(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    selector: &Option<Option<Match>>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<IpAddr>> {
    let example = "[\"10.9.0.2\"]";
    let peer = table.required("peer", example, problems, value::list(address::address))?;
    if peer.is_empty() {
        problems.push(
            Problem::new("the peer has no tunnel address", table.span_of("peer"))
                .label("empty")
                .help(format!("name at least one: `peer = {example}`")),
        );
        return None;
    }
    for (place, address) in peer.iter().enumerate() {
        let addr = *address.get_ref();
        let same = |other: &&Spanned<IpAddr>| {
            other.get_ref().is_ipv4() == addr.is_ipv4() && *other.get_ref() != addr
        };
        if let Some(other) = peer[..place].iter().find(same) {
            problems.push(
                Problem::new("two peer addresses of one IP version", address.span())
                    .label("one too many")
                    .other(other.span(), "the first one")
                    .help("a peer has at most one IPv4 and one IPv6 tunnel address; list what is behind it in `networks`"),
            );
        }
    }
    distinct.peer(&peer, selector, table.span_of("match"), problems);
    let peer: Vec<IpAddr> = peer.into_iter().map(Spanned::into_inner).collect();
    if let Some(addresses) = addresses {
        let meets = |own: &Prefix| peer.iter().any(|peer| peer.is_ipv4() == own.addr.is_ipv4());
        if !addresses.iter().any(meets) {
            problems.push(
                Problem::new("peer and tunnel have no IP version in common", table.span_of("peer"))
                    .label("none of these is of the version of the tunnel's `addresses`")
                    .help("give both a tunnel address of the same IP version"),
            );
        }
    }
    Some(peer)
}

fn networks(
    table: &Table<'_>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Prefix>> {
    let networks =
        table.optional("networks", Vec::new(), problems, value::list(address::network))?;
    for network in &networks {
        distinct.network(*network.get_ref(), network.span(), problems);
    }
    Some(networks.into_iter().map(Spanned::into_inner).collect())
}

fn paths(
    table: &Table<'_>,
    ends: Option<Ends>,
    scheduler: Option<Scheduler>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Path>> {
    let tables = table.tables("path", &keys::PATH, problems)?;
    if tables.is_empty() {
        problems.push(
            Problem::new("a connection without paths", table.span())
                .label("has no path")
                .help("add a `[[tunnel.connection.path]]` with `name` and `remote`"),
        );
        return None;
    }
    if let Some(table) = tables.get(Connection::MAX_PATHS) {
        let max = Connection::MAX_PATHS;
        problems.push(
            Problem::new(format!("a connection of {} paths", tables.len()), table.span())
                .label(format!("path number {}", max + 1))
                .help(format!("allowed: 1 to {max} paths; spread them over several connections")),
        );
    }
    let mut claimed = Claimed::default();
    let paths: Vec<Option<Path>> = tables
        .iter()
        .map(|table| path::read(table, ends, scheduler, &mut claimed, distinct, problems))
        .collect();
    paths.into_iter().collect()
}
