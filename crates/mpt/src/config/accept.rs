//! Reading a `[[tunnel.accept]]`: a template by which connections are made when a peer asks to connect.

use std::net::IpAddr;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::distinct::{Distinct, Socket, Template};
use super::policies::{self, Policies};
use super::report::{Problem, Problems};
use super::table::Table;
use super::timers::{self, MAX_SILENCE};
use super::value::{Value, number, some};
use super::{Connection, PeerKind, Prefix, address, path, value};

/// A template. What it does not say is as in a [`Connection`] and its paths by default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accept {
    /// Its name, distinct among templates and connections of the whole file. A connection made by
    /// it is called after it and the peer's tunnel address, with a hyphen between them.
    pub(crate) name: String,
    /// The tunnel addresses of peers that may connect, at least one prefix.
    pub(crate) peers: Vec<Prefix>,
    /// Where they may connect request from: outer prefixes; empty = from anywhere.
    pub(crate) sources: Vec<Prefix>,
    /// The network interface that the socket is bound to, if any.
    pub(crate) interface: Option<String>,
    /// The local address; `None` = all of them, by one socket for IPv4 and one for IPv6.
    pub(crate) local: Option<IpAddr>,
    /// The local UDP port, not 0. The peer's is the one it asks to connect from.
    pub(crate) local_port: u16,
    /// Most connections at a time, 1 to [`Accept::MAX_CONNECTIONS`].
    pub(crate) max_connections: u16,
    /// Most further connections and paths per second, [`Accept::MIN_RATE`] to
    /// [`Accept::MAX_RATE`].
    pub(crate) max_rate: f64,
    /// Most paths of one connection at a time, 1 to [`Connection::MAX_PATHS`].
    pub(crate) max_paths: u8,
    /// Silence after which a path is removed, and a connection that has none is. Longer than
    /// `dead_time`.
    pub(crate) forget: Duration,
    /// How the connections treat their packets.
    pub(crate) policies: Policies,
    /// As in [`Path`](super::Path), for every path; `None` = the weight that the peer announces for
    /// each, 1 as long as it announces none.
    pub(crate) weight: Option<u16>,
    /// As in [`Path`](super::Path).
    pub(crate) priority: u8,
    /// As in [`Path`](super::Path).
    pub(crate) keepalive: Duration,
    /// As in [`Path`](super::Path).
    pub(crate) dead_time: Duration,
}

impl Accept {
    /// Longest name in bytes: what is left of 64, the longest name of a connection, after a hyphen
    /// and 39 bytes, the longest IPv6 address.
    pub(crate) const MAX_NAME: usize = 24;

    /// Most connections by one template.
    pub(crate) const MAX_CONNECTIONS: u16 = 4096;

    /// Connections at a time unless configured.
    pub(crate) const DEFAULT_CONNECTIONS: u16 = 64;

    /// Slowest rate: one in ten seconds.
    pub(crate) const MIN_RATE: f64 = 0.1;

    /// Fastest rate per second.
    pub(crate) const MAX_RATE: f64 = 1000.0;

    /// Further connections and paths per second unless configured.
    pub(crate) const DEFAULT_RATE: f64 = 5.0;

    /// Paths of one connection unless configured.
    pub(crate) const DEFAULT_PATHS: u8 = 8;

    /// Shortest time after which anything is forgotten.
    pub(crate) const MIN_FORGET: Duration = Duration::from_secs(1);

    /// Silence after which a path is removed unless configured.
    pub(crate) const DEFAULT_FORGET: Duration = Duration::from_secs(300);
}

/// The template in `table`, or `None` with what is wrong noted. `addresses` are the tunnel's own, if
/// they are sound.
pub(super) fn read(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    distinct: &mut Distinct,
    problems: &mut Problems,
) -> Option<Accept> {
    let name = table.required("name", "\"vehicle\"", problems, name);
    if let Some(name) = &name {
        distinct.template_name(name, table.span_of("name"), problems);
    }
    let peers = peers(table, addresses, problems);
    let sources = table.optional("sources", Vec::new(), problems, value::list(address::network));
    let interface = table.optional("interface", None, problems, some(value::interface));
    if let Some(Some(name)) = &interface {
        distinct.interface(name, table.span_of("interface"));
    }
    let local = table.optional("local", None, problems, some(path::local));
    let port = value::integer(1..=u16::MAX);
    let local_port = table.optional("local_port", Connection::DEFAULT_PORT, problems, port);
    let max_connections = table.optional(
        "max_connections",
        Accept::DEFAULT_CONNECTIONS,
        problems,
        value::integer(1..=Accept::MAX_CONNECTIONS),
    );
    let max_rate = table.optional("max_rate", Accept::DEFAULT_RATE, problems, rate);
    let max_paths = table.optional(
        "max_paths",
        Accept::DEFAULT_PATHS,
        problems,
        value::integer(1..=Connection::MAX_PATHS as u8),
    );
    let forget = table.optional(
        "forget",
        Accept::DEFAULT_FORGET,
        problems,
        value::seconds(Accept::MIN_FORGET..=MAX_SILENCE, None),
    );
    let policies = policies::read(table, PeerKind::Mpt, problems).whole();
    let weight = table.optional("weight", None, problems, some(path::weight()));
    let priority = table.optional("priority", 0, problems, value::integer(0..=u8::MAX));
    let timers = timers::read(table, PeerKind::Mpt, problems);
    table.finish(problems);

    let (peers, sources, local, policies, timers) = (peers?, sources?, local?, policies?, timers?);
    check_sources(&sources, local, table, problems);
    let accept = Accept {
        name: name?,
        peers: peers.iter().map(|peers| *peers.get_ref()).collect(),
        sources: sources.into_iter().map(Spanned::into_inner).collect(),
        interface: interface?,
        local,
        local_port: local_port?,
        max_connections: max_connections?,
        max_rate: max_rate?,
        max_paths: max_paths?,
        forget: forget?,
        policies,
        weight: weight?,
        priority: priority?,
        keepalive: timers.keepalive,
        dead_time: timers.dead_time,
    };
    check_forget(&accept, table, problems);
    if let Some(local) = local.filter(|_| accept.interface.is_none()) {
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
        interface: accept.interface.clone(),
    })
}

fn name(value: &Value<'_>, problems: &mut Problems) -> Option<String> {
    let name = value::name(value, problems)?;
    if name.len() > Accept::MAX_NAME {
        let help =
            format!("use 1 to {} bytes: the peer's tunnel address is appended", Accept::MAX_NAME);
        problems.push(value.impossible(format!("{} bytes long", name.len())).help(help));
        return None;
    }
    Some(name)
}

fn peers(
    table: &Table<'_>,
    addresses: Option<&[Prefix]>,
    problems: &mut Problems,
) -> Option<Vec<Spanned<Prefix>>> {
    let example = "[\"10.9.0.0/24\"]";
    let peers = table.required("peers", example, problems, value::list(address::network))?;
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

/// A rate per second, whole or fractional.
fn rate(value: &Value<'_>, problems: &mut Problems) -> Option<f64> {
    let (min, max) = (Accept::MIN_RATE, Accept::MAX_RATE);
    let help = format!("allowed: {min} to {max} per second");
    let rate = if let DeValue::Float(float) = value.get() {
        float.as_str().parse().ok()
    } else if let DeValue::Integer(integer) = value.get() {
        number(integer).map(|rate| rate as f64)
    } else {
        problems.push(value.wrong_type("a number per second").help(help));
        return None;
    };
    let rate = rate.filter(|rate| (min..=max).contains(rate));
    if rate.is_none() {
        problems.push(value.impossible("out of range").help(help));
    }
    rate
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

fn check_forget(accept: &Accept, table: &Table<'_>, problems: &mut Problems) {
    if accept.forget > accept.dead_time {
        return;
    }
    let at = if table.has("forget") { "forget" } else { "dead_time" };
    problems.push(
        Problem::new("a path is forgotten before it is down", table.span_of(at))
            .label(format!(
                "forget is {} s, dead_time {} s",
                accept.forget.as_secs_f64(),
                accept.dead_time.as_secs_f64()
            ))
            .help(
                "set `forget` longer than `dead_time`, so that a path can recover before it is removed",
            ),
    );
}
