//! Reading a `[[tunnel.connection]]`.

use super::distinct::{Device, Distinct, Origin, Reception, Socket};
use super::path::{self, Claimed, Ends, Shared};
use super::report::{Problem, Problems};
use super::schema::Tabled as _;
use super::table::Table;
use super::{
    Connection, Framing, Path, Prefix, Remote, classes, commands, peer, policies, sealing,
    selector, timers, uplinks,
};

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
    let mut policies = policies::read(table, peer_kind, problems);
    sealing::read(table, peer_kind, &read, &mut policies, problems);
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
    let plain = policies.framing == Some(Framing::Plain);
    read.policies = policies.whole();
    read.classes = classes::read(table, false, problems);
    let configured = table.has("path");
    uplinks::check(
        table,
        peer_kind,
        read.remote.as_ref().and_then(Option::as_ref),
        configured,
        problems,
    );
    read.uplinks = uplinks::read(table, problems);
    let [keepalive, dead_time] = [read.keepalive, read.dead_time].map(Option::flatten);
    let keepalive = keepalive.unwrap_or(Path::default_keepalive(peer_kind));
    let dead_time = dead_time.unwrap_or(Path::default_dead_time(keepalive));
    if !configured {
        timers::check(peer_kind, Some(keepalive), Some(dead_time), table, problems);
    }
    read.paths = match (configured, table.has("remote")) {
        (false, true) => Some(Vec::new()),
        (false, false) if !plain => {
            timers::check_forget(read.forget, dead_time, table, problems);
            Some(Vec::new())
        }
        (true, _) | (false, false) => paths(table, shared, distinct, problems),
    };
    table.finish(problems);
    let connection = read.whole()?;
    claim_unlisted(&connection, ends, table, distinct, problems);
    connection.check_paths_of_classes(table, problems);
    Some(connection)
}

/// Claims the sockets of paths that are found or learned, and what assigns datagrams to them.
fn claim_unlisted(
    connection: &Connection,
    ends: Option<Ends>,
    table: &Table<'_>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) {
    let Some(Ends { local_port, remote_port, key, .. }) =
        ends.filter(|_| connection.paths.is_empty())
    else {
        return;
    };
    for name in connection.interfaces.named() {
        distinct.interface(name, table.span_of("interfaces"));
    }
    let (device, remote, remote_port) = match &connection.remote {
        Some(remote) => (Device::Uplinks, Origin::from(remote.clone()), remote_port),
        // Peers that are nowhere in particular are known by what their hellos say.
        None => (Device::Any, Origin::Peer(connection.peer.clone()), 0),
    };
    let known = connection.remote.as_ref().and_then(Remote::address);
    for ipv4 in [true, false] {
        if known.is_some_and(|address| address.is_ipv4() != ipv4) {
            continue;
        }
        let socket = Socket { local: None, ipv4, local_port, device: device.clone() };
        let reception = Reception { socket, remote: remote.clone(), remote_port, key };
        if !distinct.reception(reception, table.span(), problems) {
            break;
        }
    }
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
                .help("add `remote`, the peer's host name or address, to the connection; or a `[[tunnel.connection.path]]` with `name` and `remote`. Without plain framing paths can also be learned from the peer"),
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
