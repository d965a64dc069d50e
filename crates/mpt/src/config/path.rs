//! Reading a `[[tunnel.connection.path]]`.

use std::net::IpAddr;

use mpt_proto::PeerKind;

use super::distinct::{Distinct, Names, Reception, Socket, claim_name};
use super::pins::{self, Pinned};
use super::quota;
use super::report::{Problem, Problems};
use super::table::Table;
use super::timers;
use super::{Path, Scheduler};

/// What the paths of a connection have from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    pub(super) peer_kind: PeerKind,
    /// Missing if anything of it is faulty.
    pub(super) ends: Option<Ends>,
    /// Missing if it is faulty.
    pub(super) scheduler: Option<Scheduler>,
}

/// By what the datagrams of a connection's paths are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// The local UDP port.
    pub(super) local_port: u16,
    /// The peer's UDP port.
    pub(super) remote_port: u16,
    /// The GRE key.
    pub(super) key: Option<u32>,
    /// The local UDP port for commands.
    pub(super) command_port: Option<u16>,
}

/// What the paths of one connection have claimed so far.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    names: Names,
    pinned: Pinned,
}

/// The path in `table`, or `None` with what is wrong noted.
pub(super) fn read(
    table: &Table<'_>,
    Shared { peer_kind, ends, scheduler }: Shared,
    claimed: &mut Claimed,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Path> {
    let mut read = Path::read(table, peer_kind, problems);
    if let Some(name) = &read.name {
        let names = &mut claimed.names;
        claim_name(names, "path", "a connection", name, table.span_of("name"), problems);
    }
    if let Some(Some(name)) = &read.interface {
        distinct.interface(name, table.span_of("interface"));
    }
    quota::check(table, problems);
    timers::check(peer_kind, read.keepalive, read.dead_time, table, problems);
    read.pins = pins::read(table, scheduler, read.priority, &mut claimed.pinned, problems);
    table.finish(problems);

    let path = read.whole()?;
    check_addresses(&path, table, problems);
    if path.interface.is_none() {
        if let Some(remote) = path.remote.address() {
            distinct.outer(remote, table.span_of("remote"), "`remote` of this path");
        }
        if let Some(local) = path.local {
            distinct.outer(local, table.span_of("local"), "`local` of this path");
        }
    }
    if let Some(ends) = ends {
        for reception in receptions(&path, ends) {
            let socket = reception.socket.clone();
            if !distinct.reception(reception, table.span(), problems) {
                break;
            }
            if let Some(local_port) = ends.command_port
                && !distinct.commands(&Socket { local_port, ..socket }, table.span(), problems)
            {
                break;
            }
        }
    }
    Some(path)
}

fn check_addresses(path: &Path, table: &Table<'_>, problems: &mut Problems) {
    let Some(remote) = path.remote.address() else { return };
    if let Some(local) = path.local
        && local.is_ipv4() != remote.is_ipv4()
    {
        problems.push(
            Problem::new(
                "local and remote address of different IP versions",
                table.span_of("local"),
            )
            .label(version(local))
            .other(table.span_of("remote"), version(remote))
            .help("a path runs over one IP version: change one, or remove `local`"),
        );
    }
    if let IpAddr::V6(remote) = remote
        && remote.is_unicast_link_local()
        && path.interface.is_none()
    {
        problems.push(
            Problem::new("a link-local `remote` without `interface`", table.span_of("remote"))
                .label("is valid on one interface only")
                .help("add `interface = \"...\"`"),
        );
    }
}

fn version(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// How the path may be recognised: of one IP version, or of either where only the resolver knows.
fn receptions(path: &Path, ends: Ends) -> impl Iterator<Item = Reception> {
    let known = path.local.or(path.remote.address()).map(|address| address.is_ipv4());
    let versions = [true, false].into_iter();
    let versions = versions.filter(move |&ipv4| known.is_none_or(|known| known == ipv4));
    versions.map(move |ipv4| Reception {
        socket: Socket {
            local: path.local,
            ipv4,
            local_port: ends.local_port,
            device: path.interface.clone().into(),
        },
        remote: path.remote.clone().into(),
        remote_port: ends.remote_port,
        key: ends.key,
    })
}
