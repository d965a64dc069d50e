//! Reading a `[[tunnel.connection]]`.

use toml::Spanned;

use super::distinct::Distinct;
use super::path::{self, Claimed, Ends, Shared};
use super::report::{Problem, Problems};
use super::table::Table;
use super::{Connection, Path, Prefix, address, commands, keys, peer, policies, selector, value};

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
    let peer = peer::read(table, problems);
    let peer_kind = peer.map(|peer| peer.kind);
    if let Some(peer) = peer {
        peer.check_match(table, problems);
    }
    let peer_addresses =
        peer.and_then(|peer| peer.addresses(table, addresses, &selector, distinct, problems));
    let networks = networks(table, distinct, problems);
    if let (Some(peer), Some(addresses), Some(networks)) = (peer, &peer_addresses, &networks) {
        peer.check_networks(networks, addresses, table, problems);
    }
    let port = || value::integer(1..=u16::MAX);
    let local_port = table.optional("local_port", Connection::DEFAULT_PORT, problems, port());
    let remote_port = table.optional("remote_port", Connection::DEFAULT_PORT, problems, port());
    let commands = commands::read(table, peer_kind, [local_port, remote_port], problems);
    let policies = policies::read(table, peer_kind.unwrap_or_default(), problems);
    let ends = match (local_port, remote_port, policies.key, &commands) {
        (Some(local_port), Some(remote_port), Some(key), Some(commands)) => Some(Ends {
            local_port,
            remote_port,
            key,
            command_port: commands.as_ref().map(|commands| commands.port),
        }),
        _ => None,
    };
    let shared =
        Shared { peer_kind: peer_kind.unwrap_or_default(), ends, scheduler: policies.scheduler };
    let paths = paths(table, shared, distinct, problems);
    table.finish(problems);
    Some(Connection {
        name: name?,
        peer_kind: peer_kind?,
        commands: commands?,
        peer: peer_addresses?,
        networks: networks?.into_iter().map(Spanned::into_inner).collect(),
        selector: selector?,
        local_port: local_port?,
        remote_port: remote_port?,
        policies: policies.whole()?,
        paths: paths?,
    })
}

fn networks(
    table: &Table<'_>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Spanned<Prefix>>> {
    let networks =
        table.optional("networks", Vec::new(), problems, value::list(address::network))?;
    for network in &networks {
        distinct.network(*network.get_ref(), network.span(), problems);
    }
    Some(networks)
}

fn paths(
    table: &Table<'_>,
    shared: Shared,
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
        .map(|table| path::read(table, shared, &mut claimed, distinct, problems))
        .collect();
    paths.into_iter().collect()
}
