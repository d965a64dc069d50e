//! Reading a `[[tunnel.connection]]`.

use super::distinct::Distinct;
use super::path::{self, Claimed, Ends, Shared};
use super::report::{Problem, Problems};
use super::schema::Tabled as _;
use super::table::Table;
use super::{Connection, Path, Prefix, commands, peer, policies, selector};

/// The connection in `table`, or `None` with what is wrong noted. `addresses` are the tunnel's own,
/// if they are sound.
pub(super) fn read(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Connection> {
    distinct.next_connection();
    let mut read = Connection::read(table, (), problems);
    if let Some(name) = &read.name {
        distinct.connection(name, table.span_of("name"), problems);
    }
    read.selector = selector::read(table, problems);
    let peer = peer::read(table, problems);
    read.peer_kind = peer.map(|peer| peer.kind);
    let peer_kind = read.peer_kind.unwrap_or_default();
    let networks = read.networks.as_ref().map(|networks| table.with_places("networks", networks));
    if let Some(peer) = peer {
        peer.check_match(table, problems);
        read.peer = peer.addresses(table, addresses, &read.selector, distinct, problems);
    }
    for network in networks.iter().flatten() {
        distinct.network(*network.get_ref(), network.span(), problems);
    }
    if let (Some(peer), Some(addresses), Some(networks)) = (peer, &read.peer, &networks) {
        peer.check_networks(networks, addresses, table, problems);
    }
    let ports = [read.local_port, read.remote_port];
    read.commands = commands::read(table, read.peer_kind, ports, problems);
    let policies = policies::read(table, peer_kind, problems);
    let ends = match (ports, policies.key, &read.commands) {
        ([Some(local_port), Some(remote_port)], Some(key), Some(commands)) => Some(Ends {
            local_port,
            remote_port,
            key,
            command_port: commands.as_ref().map(|commands| commands.port),
        }),
        _ => None,
    };
    let shared = Shared { peer_kind, ends, scheduler: policies.scheduler };
    read.policies = policies.whole();
    read.paths = paths(table, shared, distinct, problems);
    table.finish(problems);
    read.whole()
}

fn paths(
    table: &Table<'_>,
    shared: Shared,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Path>> {
    let tables = table.tables("path", &Path::KEYS, problems)?;
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
        .map(|table| path::read(table, shared, &mut claimed, distinct, problems))
        .collect();
    paths.into_iter().collect()
}
