//! Reading a `[[tunnel.connection.path]]`.

use std::net::IpAddr;
use std::time::Duration;

use mpt_control::PathStatus;

use super::distinct::{Distinct, Names, Reception, Socket, claim_name};
use super::report::{Problem, Problems};
use super::table::Table;
use super::value::Value;
use super::{Path, address, value};

/// Shortest time between keepalives. More than a hundred per second and path are load, not a
/// question whether somebody is there.
const MIN_KEEPALIVE: Duration = Duration::from_millis(10);

/// Longest keepalive and dead time. What may be silent for a day is not watched at all.
const MAX_SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// What the paths of a connection have from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// The local UDP port.
    pub(super) local_port: u16,
    /// The peer's UDP port.
    pub(super) remote_port: u16,
    /// The GRE key.
    pub(super) key: Option<u32>,
}

/// The path in `table`, or `None` with what is wrong noted. `ends` are missing if they are faulty.
pub(super) fn read(
    table: &Table<'_>,
    ends: Option<Ends>,
    names: &mut Names,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Path> {
    let name = table.required("name", "\"fibre\"", problems, value::name);
    if let Some(name) = &name {
        claim_name(names, "path", "a connection", name, table.span_of("name"), problems);
    }
    let interface = table.optional("interface", None, problems, some(value::interface));
    if let Some(Some(name)) = &interface {
        distinct.interface(name, table.span_of("interface"));
    }
    let local = table.optional("local", None, problems, some(local));
    let remote = remote(table, problems);
    let weight = table.optional("weight", 1, problems, value::integer(1..=Path::MAX_WEIGHT));
    let keepalive = table.optional(
        "keepalive",
        Path::DEFAULT_KEEPALIVE,
        problems,
        value::seconds(MIN_KEEPALIVE..=MAX_SILENCE, Some("none are sent")),
    );
    let dead_time = table.optional(
        "dead_time",
        keepalive.map_or(Duration::ZERO, Path::default_dead_time),
        problems,
        value::seconds(MIN_KEEPALIVE..=MAX_SILENCE, Some("never")),
    );
    let status = table.optional(
        "status",
        PathStatus::Available,
        problems,
        value::one_of(&[("available", PathStatus::Available), ("off", PathStatus::Off)]),
    );
    table.finish(problems);

    let path = Path {
        name: name?,
        interface: interface?,
        local: local?,
        remote: remote?,
        weight: weight?,
        keepalive: keepalive?,
        dead_time: dead_time?,
        status: status?,
    };
    check_times(&path, table, problems);
    check_addresses(&path, table, problems);
    if let Some(ends) = ends {
        distinct.reception(reception(&path, ends), table.span(), problems);
    }
    Some(path)
}

/// A reader of a value that may be left out.
fn some<'t, T>(
    read: impl FnOnce(&Value<'t>, &mut Problems) -> Option<T>,
) -> impl FnOnce(&Value<'t>, &mut Problems) -> Option<Option<T>> {
    move |value, problems| read(value, problems).map(Some)
}

fn local(value: &Value<'_>, problems: &mut Problems) -> Option<IpAddr> {
    if let Some(Ok(address)) = value.get().as_str().map(str::parse::<IpAddr>)
        && address.is_unspecified()
    {
        problems.push(
            value
                .impossible("stands for no address")
                .help("remove `local`: then the kernel chooses the address"),
        );
        return None;
    }
    address::address(value, problems)
}

fn remote(table: &Table<'_>, problems: &mut Problems) -> Option<IpAddr> {
    if !table.has("remote") {
        problems.push(
            Problem::new("a path without `remote`", table.span())
                .label("has no `remote`")
                .help("add the peer's address on this path, such as `remote = \"203.0.113.5\"`; learning it needs the extended framing, which does not exist yet"),
        );
        return None;
    }
    table.required("remote", "\"203.0.113.5\"", problems, address::address)
}

fn check_times(path: &Path, table: &Table<'_>, problems: &mut Problems) {
    let (keepalive, dead_time) = (path.keepalive, path.dead_time);
    if keepalive.is_zero() || dead_time.is_zero() || dead_time > keepalive {
        return;
    }
    // The default is long enough, so it was written.
    problems.push(
        Problem::new("`dead_time` is not longer than `keepalive`", table.span_of("dead_time"))
            .label(format!(
                "keepalive is {} s, dead_time {} s",
                keepalive.as_secs_f64(),
                dead_time.as_secs_f64()
            ))
            .help("a path would be down between two keepalives: let dead_time be at least twice keepalive, or set one of them to 0"),
    );
}

fn check_addresses(path: &Path, table: &Table<'_>, problems: &mut Problems) {
    if let Some(local) = path.local
        && local.is_ipv4() != path.remote.is_ipv4()
    {
        problems.push(
            Problem::new(
                "local and remote address of different IP versions",
                table.span_of("local"),
            )
            .label(version(local))
            .other(table.span_of("remote"), version(path.remote))
            .help("a path runs over one IP version: change one, or remove `local`"),
        );
    }
    if let IpAddr::V6(remote) = path.remote
        && remote.is_unicast_link_local()
        && path.interface.is_none()
    {
        problems.push(
            Problem::new("a link-local `remote` without `interface`", table.span_of("remote"))
                .label("means something on one interface only")
                .help("add `interface = \"...\"`"),
        );
    }
}

fn version(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn reception(path: &Path, ends: Ends) -> Reception {
    Reception {
        socket: Socket {
            local: path.local,
            ipv4: path.remote.is_ipv4(),
            local_port: ends.local_port,
            interface: path.interface.clone(),
        },
        remote: path.remote,
        remote_port: ends.remote_port,
        key: ends.key,
    }
}
