//! Reading a `[[tunnel.accept]]`: a template by which connections are made when a peer asks to connect.

use std::net::IpAddr;

use mpt_proto::PeerKind;
use toml::Spanned;

use super::distinct::{Distinct, Socket, Template};
use super::report::{Problem, Problems};
use super::table::Table;
use super::{Accept, Prefix, address, classes, policies, sealing, timers, value};

/// The template in `table`, or `None` with what is wrong noted. `addresses` are the tunnel's own, if
/// they are sound.
pub(super) fn read(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Accept> {
    let mut read = Accept::read(table, (), problems);
    if let Some(name) = &read.name {
        distinct.template_name(name, table.span_of("name"), problems);
    }
    let has_folder = table.is_text("peers");
    read.folder = if has_folder {
        table.optional("peers", None, problems, value::some(value::file))
    } else {
        Some(None)
    };
    let peers = if has_folder {
        Some(Vec::new())
    } else {
        let example = "[\"10.9.0.0/24\"]";
        let peers = table.required("peers", example, "", problems, value::list(address::network));
        let peers = peers.map(|peers| table.with_places("peers", &peers));
        peers.and_then(|peers| check_peers(peers, table, addresses, problems))
    };
    read.peers = peers.as_ref().map(|peers| peers.iter().map(|peer| *peer.get_ref()).collect());
    if let Some(Some(name)) = &read.interface {
        distinct.interface(name, table.span_of("interface"));
    }
    if let (Some(sources), Some(local)) = (&read.sources, read.local) {
        check_sources(&table.with_places("sources", sources), local, table, problems);
    }
    let mut policies = policies::read(table, PeerKind::Mpt, problems);
    sealing::template(table, has_folder, &mut policies, problems);
    read.policies = policies.whole();
    read.classes = classes::read(table, true, problems);
    timers::check(PeerKind::Mpt, read.keepalive, read.dead_time, table, problems);
    table.finish(problems);

    let (accept, peers) = (read.whole()?, peers?);
    timers::check_forget(Some(accept.forget), accept.dead_time, table, problems);
    if let Some(local) = accept.local.filter(|_| accept.interface.is_none()) {
        distinct.outer(local, table.span_of("local"), "`local` of this template");
    }
    for socket in sockets(&accept) {
        let template = Template { socket, key: accept.policies.key, peers: &peers };
        if !distinct.template(template, table.span(), problems) {
            break;
        }
    }
    Some(accept)
}

/// The sockets that a template needs.
fn sockets(accept: &Accept) -> impl Iterator<Item = Socket> {
    let versions = [true, false].into_iter();
    let versions =
        versions.filter(|&ipv4| accept.local.is_none_or(|local| local.is_ipv4() == ipv4));
    versions.map(|ipv4| Socket {
        local: accept.local,
        ipv4,
        local_port: accept.local_port,
        device: accept.interface.clone().into(),
    })
}

fn check_peers(
    peers: Vec<Spanned<Prefix>>,
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    problems: &mut Problems,
) -> Option<Vec<Spanned<Prefix>>> {
    let example = "[\"10.9.0.0/24\"]";
    if peers.is_empty() {
        problems.push(
            Problem::new("a template that accepts no peers", table.span_of("peers"))
                .label("empty")
                .help(format!("name the tunnel addresses that may connect: `peers = {example}`")),
        );
        return None;
    }
    for (place, peer) in peers.iter().enumerate() {
        let (prefix, span) = (*peer.get_ref(), peer.span());
        let again = |other: &&Spanned<Prefix>| other.get_ref().overlaps(prefix);
        if let Some(other) = peers[..place].iter().find(again) {
            problems.push(
                Problem::new("tunnel addresses are listed twice", span)
                    .label("overlaps")
                    .other(other.span(), "listed first here")
                    .help("list each address once, by itself or within a prefix"),
            );
            continue;
        }
        let Some(addresses) = addresses else { continue };
        let own = |own: &&Prefix| own.addr == prefix.addr && prefix.is_host();
        if !addresses.iter().any(|own| own.addr.is_ipv4() == prefix.addr.is_ipv4()) {
            problems.push(
                Problem::new("peers and tunnel have no IP version in common", span)
                    .label("the tunnel has no address of this version")
                    .help("give the tunnel an address of the same IP version in `addresses`"),
            );
        } else if addresses.iter().any(|address| own(&address)) {
            problems.push(
                Problem::new("a template that accepts this host itself", span)
                    .label("an own address of the tunnel")
                    .help(format!("name the tunnel addresses of the peers: `peers = {example}`")),
            );
        }
    }
    Some(peers)
}

fn check_sources(
    sources: &[Spanned<Prefix>],
    local: Option<IpAddr>,
    table: &Table<'_>,
    problems: &mut Problems,
) {
    for (place, source) in sources.iter().enumerate() {
        let prefix = *source.get_ref();
        let again = |other: &&Spanned<Prefix>| other.get_ref().overlaps(prefix);
        if let Some(other) = sources[..place].iter().find(again) {
            problems.push(
                Problem::new("sources are listed twice", source.span())
                    .label("overlaps")
                    .other(other.span(), "listed first here")
                    .help("list each address once, by itself or within a prefix"),
            );
        } else if let Some(local) = local
            && local.is_ipv4() != prefix.addr.is_ipv4()
        {
            problems.push(
                Problem::new("a source of another IP version than `local`", source.span())
                    .label("nothing can come from here")
                    .other(table.span_of("local"), "to this address")
                    .help("remove it, or remove `local`: then both IP versions are accepted"),
            );
        }
    }
}
