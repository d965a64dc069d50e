//! Reading a `[[tunnel]]`.

use super::distinct::Distinct;
use super::report::{Problem, Problems};
use super::schema::Tabled as _;
use super::table::Table;
use super::{Accept, Connection, Mtu, Prefix, Tunnel, accept, connection, offloads, sealing};

/// The tunnel in `table`, or `None` with what is wrong noted.
pub(super) fn read(
    table: &Table<'_>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Tunnel> {
    distinct.next_tunnel();
    let mut read = Tunnel::read(table, (), problems);
    if let Some(name) = &read.name {
        distinct.tunnel(name, table.span_of("name"), problems);
    }
    read.addresses =
        read.addresses.take().and_then(|own| check_addresses(own, table, distinct, problems));
    let addresses = read.addresses.as_deref();
    read.offloads = offloads::read(table, problems);
    read.connections = connections(table, addresses, distinct, problems);
    read.accepts = accepts(table, addresses, distinct, problems);
    let keys = |connections: &Vec<Connection>| connections.iter().map(|it| it.public_key).collect();
    let keys: Vec<_> = read.connections.as_ref().map(keys).unwrap_or_default();
    let mut accepts = read.accepts.iter().flatten();
    let has_folder = accepts.any(|accept| accept.folder.is_some());
    sealing::check(
        table,
        &keys,
        has_folder,
        read.private_key_file.as_ref().is_some_and(Option::is_some),
        problems,
    );
    if let (Some(mtu), Some(addresses), Some(connections)) =
        (read.mtu, addresses, &read.connections)
    {
        check_mtu(mtu, addresses, connections, table, problems);
    }
    table.finish(problems);
    read.whole()
}

fn check_addresses(
    addresses: Vec<Prefix>,
    table: &Table<'_>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Prefix>> {
    let example = "[\"10.9.0.1/24\"]";
    if addresses.is_empty() {
        problems.push(
            Problem::new("the tunnel has no address", table.span_of("addresses"))
                .label("empty")
                .help(format!("name at least one: `addresses = {example}`")),
        );
        return None;
    }
    for address in table.with_places("addresses", &addresses) {
        distinct.own(address.get_ref().addr, address.span(), problems);
    }
    Some(addresses)
}

fn connections(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Connection>> {
    let tables = table.tables("connection", &Connection::KEYS, problems)?;
    if tables.is_empty() && !table.has("accept") {
        problems.push(
            Problem::new("a tunnel without connections", table.span())
                .label("has no connection")
                .help("add a `[[tunnel.connection]]` with `name`, `peer` and at least one `[[tunnel.connection.path]]`, or a `[[tunnel.accept]]` with `name` and `peers`"),
        );
        return None;
    }
    let connections: Vec<Option<Connection>> =
        tables.iter().map(|table| connection::read(table, addresses, distinct, problems)).collect();
    connections.into_iter().collect()
}

fn accepts(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Vec<Accept>> {
    let tables = table.tables("accept", &Accept::KEYS, problems)?;
    let accepts: Vec<Option<Accept>> =
        tables.iter().map(|table| accept::read(table, addresses, distinct, problems)).collect();
    accepts.into_iter().collect()
}

/// IPv6 needs more than IPv4 (RFC 8200 section 5).
fn check_mtu(
    mtu: Mtu,
    addresses: &[Prefix],
    connections: &[Connection],
    table: &Table<'_>,
    problems: &mut Problems,
) {
    let ipv6 = addresses.iter().any(|address| address.addr.is_ipv6())
        || connections.iter().any(|connection| {
            connection.peer.iter().any(|peer| peer.is_ipv6())
                || connection.networks.iter().any(|network| network.addr.is_ipv6())
        });
    if let Mtu::Fixed(bytes) = mtu
        && ipv6
        && bytes < Mtu::MIN_IPV6
    {
        let help = format!(
            "allowed: \"auto\", or a number from {} to {}; without IPv6 from {}",
            Mtu::MIN_IPV6,
            Mtu::MAX,
            Mtu::MIN
        );
        problems.push(
            Problem::new("invalid value for `mtu`", table.span_of("mtu"))
                .label("too small for the tunnel's IPv6 addresses")
                .help(help),
        );
    }
}
