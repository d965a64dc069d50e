//! `connections/*.conf`: a connection with its paths and networks.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use mpt_proto::Prefix;

use super::auth::auth;
use super::document::Document;
use super::general::{DEFAULT_COMMAND_PORT, General};
use super::ledger::{Findings, Given, Ledger, empty_section};
use super::name::{printable, unique};
use super::network;
use super::path;
use super::table::Table;
use super::target::{Peer, Target};
use super::value::Value as _;

/// The original's limit of paths and of networks.
const MAX_COUNT: i64 = 20;

/// The original's default of `remote_port`.
const DEFAULT_REMOTE_PORT: i64 = 65000;

/// A connection, which other connections may still change.
#[derive(Debug)]
pub(super) struct Connection {
    /// Its name here.
    pub(super) name: String,
    /// The peer's tunnel address, unless it is missing.
    pub(super) remote: Option<Given<IpAddr>>,
    /// The local tunnel address in its file.
    pub(super) local: Option<Given<IpAddr>>,
    /// The networks behind the peer.
    pub(super) networks: Given<Vec<Prefix>>,
    table: Table,
    /// The place of the networks among the settings.
    place: usize,
    paths: Vec<Table>,
}

impl Connection {
    /// Whether it carries IPv6.
    pub(super) fn is_ipv6(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.value.is_ipv6())
            || self.networks.value.iter().any(|network| network.address().is_ipv6())
    }

    /// Adds a comment.
    pub(super) fn aside(&mut self, aside: String) {
        self.table.asides.push(aside);
    }

    /// Whether it is written as a comment.
    pub(super) fn is_disabled(&self) -> bool {
        self.table.disabled
    }

    /// Writes it as a comment.
    pub(super) fn disable(&mut self) {
        self.table.disabled = true;
        self.paths.iter_mut().for_each(|path| path.disabled = true);
    }

    /// Its own table, and those of its paths.
    pub(super) fn into_tables(mut self) -> impl Iterator<Item = Table> {
        if !self.networks.value.is_empty() {
            self.table.set_at(self.place, "networks", &self.networks);
        }
        std::iter::once(self.table).chain(self.paths)
    }
}

/// Makes the connection of a file.
pub(super) fn read(
    document: &mut Document,
    general: &General,
    target: &Target,
    names: &mut HashSet<String>,
    findings: &mut Findings,
) -> Connection {
    let section =
        document.take("connection").unwrap_or_else(|| empty_section("connection", document));
    let mut ledger = Ledger::open(&document.label, section);
    let too_many = "the original has room for 20";
    let path_count = ledger.number("path_count", 0, 0..=MAX_COUNT, too_many);
    let network_count = ledger.number("network_count", 0, 0..=MAX_COUNT, too_many);
    let mut paths = path::read_all(document, &path_count, target, findings);
    if path_count.value == 0 && ledger.is_sound() {
        ledger.problem(
            "a connection without paths",
            "`path_count` is missing or 0",
            "write `path_count` in `[connection]`, and for each path a section, `[path_0]`, `[path_1]` and so on",
        );
    }
    let pinned = path::share_out_ports(&mut paths);

    let mut table = Table::new("[[tunnel.connection]]");
    let name = name(&mut ledger, names);
    table.set("name", &name);
    let remote =
        ledger.required_address("ip_remote", "a connection without its peer's tunnel address");
    peer_of(&mut table, &mut ledger, target.peer, remote.as_ref());
    let version = remote.as_ref().map(|remote| network::of(remote.value));
    let version = version.filter(|_| target.peer == Peer::Original);
    let mut networks = network::read_all(document, &network_count, version, findings);
    let place = table.len();
    let local = local(&mut ledger, remote.as_ref());
    ports(&mut table, &mut ledger);
    if target.peer == Peer::Original {
        commands(&mut table, &mut ledger, general);
    } else {
        let why = "both ends are to run `mpt`, which has no such protocol";
        for key in ["remote_cmd_port", "auth_type", "auth_key"] {
            ledger.aside(key, why);
        }
    }
    ordering(&mut table, &mut ledger, target, pinned);
    without_counterpart(&mut ledger);
    for (what, count) in [("path", path_count), ("network", network_count)] {
        if !count.missing {
            ledger
                .comment(format!("{}: the number of {what}s is derived from the file", count.note));
        }
    }
    table.asides = ledger.close(findings);
    table.asides.append(&mut networks.asides);
    let paths = paths.into_iter().map(|path| path.table).collect();
    let networks = networks.destinations;
    Connection { name: name.value, remote, local, networks, table, place, paths }
}

/// The name of the connection, made unique.
fn name(ledger: &mut Ledger, names: &mut HashSet<String>) -> Given<String> {
    let mut given =
        ledger.text("name").unwrap_or_else(|| Given::missing("name", "connection".to_owned()));
    let name = printable(&given.value);
    if name.is_empty() {
        ledger.change(&mut given, "connection".to_owned(), "a connection needs a name");
    } else if name != given.value {
        ledger.change(&mut given, name, "shortened to 56 bytes of printable text");
    }
    let unique = unique(&given.value, names);
    if unique != given.value {
        let what = format!("renamed to {unique}, because another connection has this name");
        ledger.change(&mut given, unique, &what);
    }
    given
}

fn peer_of(table: &mut Table, ledger: &mut Ledger, peer: Peer, remote: Option<&Given<IpAddr>>) {
    let Some(remote) = remote else { return };
    match peer {
        Peer::Original => {
            table.set_as("peer", "\"mpt-original\"", "the other end runs the original");
            table.set_as("peer_addresses", &vec![remote.value].toml(), &remote.note);
        }
        Peer::Mpt => table.set_as("peer", &vec![remote.value].toml(), &remote.note),
    }
    if !ledger.has("ip_ver") {
        return;
    }
    let version = ledger.number("ip_ver", 6, i64::MIN..=i64::MAX, "");
    if (version.value == 6) == remote.value.is_ipv6() {
        ledger.comment(format!("{}: derived from `ip_remote`", version.note));
    } else {
        ledger.refuse(&version.note, "`ip_remote` is of the other version, and is used");
    }
}

/// The local tunnel address, if there is a valid one.
fn local(ledger: &mut Ledger, remote: Option<&Given<IpAddr>>) -> Option<Given<IpAddr>> {
    let Given { value, note, .. } = ledger.text("ip_local")?;
    let address = value.split('/').next().unwrap_or_default().trim().parse::<IpAddr>();
    match address {
        Ok(address) if address.is_unspecified() => {
            ledger.comment(format!("{note}: no address"));
        }
        Ok(address) if remote.is_none_or(|remote| remote.value.is_ipv6() == address.is_ipv6()) => {
            return Some(Given::written(address, note));
        }
        Ok(_) => ledger.refuse(&note, "`ip_remote` is of the other version, and is used"),
        Err(_) => ledger.refuse(&note, "no address, for the original neither"),
    }
    None
}

fn ports(table: &mut Table, ledger: &mut Ledger) {
    let mut local = ledger.number("local_port", 0, 0..=65535, "a port is 1 to 65535");
    if local.value == 0 {
        let what = "there is no counterpart of any port; 65000 is the default destination port of an original";
        ledger.change(&mut local, DEFAULT_REMOTE_PORT, what);
    }
    table.set_as("local_port", &local.value.to_string(), &local.note);
    let remote = ledger.port("remote_port", DEFAULT_REMOTE_PORT);
    table.set_as("remote_port", &remote.value.to_string(), &remote.note);
}

fn commands(table: &mut Table, ledger: &mut Ledger, general: &General) {
    let port = &general.command_port;
    table.set_as("command_port", &port.value.to_string(), &port.note);
    let port = ledger.port("remote_cmd_port", DEFAULT_COMMAND_PORT);
    table.set_as("remote_command_port", &port.value.to_string(), &port.note);
    let authenticated = auth(table, ledger);
    let accept = &general.accept_remote;
    if accept.value == 1 && authenticated {
        table.set_as("accept_create", "true", &accept.note);
    } else if accept.value == 1 {
        ledger.comment(format!(
            "{}: not imported: without its own key, any host could fill the log",
            accept.note
        ));
    } else if !accept.missing {
        ledger.comment(format!("{}: the default here, unless `accept_create` is set", accept.note));
    }
}

/// The original's default of `max_buffdelay_msec`.
const DEFAULT_DELAY: i64 = 100;

fn ordering(table: &mut Table, ledger: &mut Ledger, target: &Target, pinned: bool) {
    if pinned {
        let note =
            "a path has pinned ports; unlike in the original, other flows stay on one path too";
        table.set("scheduler", &Given::written("flow", note.to_owned()));
    } else if target.peer == Peer::Mpt {
        let note = "the weights count; without this line the rates of the paths are measured";
        table.set_as("profile", "\"classic\"", note);
    }
    let most = i64::from(target.max_window);
    let window = ledger.number("reorder_window", 0, 0..=most, "no window is larger");
    let most = i64::try_from(target.max_delay.as_millis()).unwrap_or(i64::MAX);
    let mut delay = ledger.number("max_buffdelay_msec", 0, 0..=most, "no packet waits longer");
    if delay.value == 0 {
        delay.value = DEFAULT_DELAY;
        delay.note += ", which means 100";
    }
    let seconds = Duration::from_millis(u64::try_from(delay.value).unwrap_or_default());
    let seconds = seconds.as_secs_f64();
    let value = format!("{{ window = {}, max_delay = {seconds} }}", window.value);
    let early = if window.value > 0 {
        "; proven losses are given up earlier, unless early_release = false"
    } else {
        ""
    };
    table.set_as("reorder", &value, &format!("{}; {}{early}", window.note, delay.note));
}

fn without_counterpart(ledger: &mut Ledger) {
    for (key, why) in [
        ("connection_count", "the number of connections is derived from the file"),
        ("permission", "the original reads it and enforces nothing"),
        ("ip_ver", "derived from `ip_remote`"),
        ("local_cmd_port", "the original uses `cmdport_local` instead"),
        ("status", "it has no effect in the original"),
        ("keepalive_time", "each path has its own"),
        ("dead_time", "each path has its own"),
    ] {
        ledger.aside(key, why);
    }
}
