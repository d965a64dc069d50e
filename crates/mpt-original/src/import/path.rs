//! `[path_N]`: the paths of a connection.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use super::document::{Document, Form, Shown};
use super::ledger::{Findings, Given, Ledger};
use super::name::{printable, unique};
use super::pins::Pinned;
use super::table::Table;
use super::target::Target;

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) table: Table,
    /// The ports that it claims. A later path takes precedence.
    pub(super) pinned: Vec<Pinned>,
}

/// Makes all paths of a connection. Those beyond `count` become comments.
pub(super) fn read_all(
    document: &mut Document,
    count: &Given<i64>,
    target: &Target,
    findings: &mut Findings,
) -> Vec<Path> {
    let mut names = HashSet::new();
    let mut paths = Vec::new();
    for number in 0..count.value {
        let name = format!("path_{number}");
        let Some(section) = document.take(&name) else {
            findings.missing_section(document, &name, &count.note);
            continue;
        };
        let ledger = Ledger::open(&document.label, section);
        paths.push(read(ledger, document.form, target, &mut names, findings));
    }
    let mut beyond = Vec::new();
    for number in document.numbers("path_") {
        if let Some(section) = document.take(&format!("path_{number}")) {
            let mut ledger = Ledger::open(&document.label, section);
            ledger.set_all_aside(&format!("a path beyond `path_count`: {}", count.note));
            beyond.append(&mut ledger.close(findings));
        }
    }
    if let Some(last) = paths.last_mut() {
        last.table.asides.append(&mut beyond);
    }
    paths
}

/// Gives each port to the last path that names it. Returns whether there are any.
pub(super) fn share_out_ports(paths: &mut [Path]) -> bool {
    let mut claimed = HashSet::new();
    let mut any = false;
    for Path { table, pinned } in paths.iter_mut().rev() {
        for Pinned { key, mut ports } in pinned.drain(..) {
            let before = ports.value.clone();
            ports.value.retain(|&port| claimed.insert((key, port)));
            let lost: Vec<String> = before
                .iter()
                .filter(|port| !ports.value.contains(port))
                .map(u16::to_string)
                .collect();
            if !lost.is_empty() {
                ports.note += &format!(" (a later path has {})", lost.join(", "));
            }
            if ports.value.is_empty() {
                table.asides.push(format!("{}: no valid port is left", ports.note));
            } else {
                any = true;
                table.set(key, &ports);
            }
        }
    }
    any
}

fn read(
    mut ledger: Ledger,
    form: Form,
    target: &Target,
    names: &mut HashSet<String>,
    findings: &mut Findings,
) -> Path {
    let mut table = Table::new("[[tunnel.connection.path]]");
    let wanted = ledger.value("interface_name").map(str::to_owned);
    let interface = interface(&mut ledger, target);
    let wanted = wanted.map(|name| printable(&name));
    let wanted = wanted.filter(|name| !name.is_empty()).unwrap_or(ledger.name().to_owned());
    let name = unique(&wanted, names);
    let note = format!("{} of the original", ledger.name());
    table.set("name", &Given::written(name, note));
    if let Some(interface) = &interface {
        table.set("interface", interface);
    }
    addresses(&mut table, &mut ledger, form, interface.as_ref());
    weights(&mut table, &mut ledger);
    let timers = timers(&mut table, &mut ledger);
    status(&mut table, &mut ledger, timers);
    let pinned = Pinned::read(&mut ledger);
    ledger.aside("cmd_default", "commands use any path that is up");
    ledger.aside("window_size", "the original reads it and does not use it");
    table.asides = ledger.close(findings);
    Path { table, pinned }
}

fn interface(ledger: &mut Ledger, target: &Target) -> Option<Given<String>> {
    let mut given = ledger.text("interface_name")?;
    let why = if given.value.is_empty() {
        "names none".to_owned()
    } else if given.value == NO_INTERFACE {
        "is the original's placeholder for none".to_owned()
    } else {
        // An alias is a second address of an interface by an old name, and no interface of its own.
        let alias = given.value.split_once(':').map(|(interface, _)| interface.to_owned());
        if let Some(interface) = alias.filter(|interface| !interface.is_empty()) {
            let what = format!("bound to {}, of which this is an alias", Shown(&interface));
            ledger.change(&mut given, interface, &what);
        }
        match (target.interface_fault)(&given.value) {
            None => return Some(given),
            Some(fault) => format!("is not a valid interface name: {fault}"),
        }
    };
    ledger.refuse(&given.note, &format!("{why}; so the host's routes determine the interface"));
    None
}

/// The original's default name of an interface.
const NO_INTERFACE: &str = "unnamed_path";

fn addresses(
    table: &mut Table,
    ledger: &mut Ledger,
    form: Form,
    interface: Option<&Given<String>>,
) {
    let private = ledger.address("private_ipaddr");
    let public = public(ledger);
    let remote = ledger.required_address("remote_ipaddr", "a path without the peer's address");
    let mut local = private;
    if form == Form::Positional {
        local = local.or_else(|| public.clone());
    }
    if let Some(local) = &local {
        table.set("local", local);
    }
    if let Some(public) = &public {
        let same = local.as_ref().is_some_and(|local| local.value == public.value);
        if !same {
            ledger.comment(format!(
                "{}: the peer's `remote_ipaddr` of this path, which only the peer needs; commands \
                 about the path name the local address, so such a peer may detect changes by \
                 keepalives only",
                public.note
            ));
        } else if form == Form::Ini {
            ledger.comment(format!("{}: the same as `local`", public.note));
        }
    }
    if let Some(remote) = &remote {
        table.set("remote", remote);
    }
    gateway(ledger, [&local, &public], remote.as_ref(), interface);
    version(ledger, remote.as_ref());
}

/// The address by which the peer knows the path, if it differs from `private_ipaddr`.
fn public(ledger: &mut Ledger) -> Option<Given<IpAddr>> {
    const SAME: &str = "private_ipaddr";
    if ledger.value("public_ipaddr").is_some_and(|value| value.eq_ignore_ascii_case(SAME)) {
        ledger.aside("public_ipaddr", "the same as `private_ipaddr`");
        return None;
    }
    ledger.address("public_ipaddr")
}

fn gateway(
    ledger: &mut Ledger,
    own: [&Option<Given<IpAddr>>; 2],
    remote: Option<&Given<IpAddr>>,
    interface: Option<&Given<String>>,
) {
    let Some(gateway) = ledger.address("gw_ipaddr") else { return };
    if own.into_iter().flatten().chain(remote).any(|end| end.value == gateway.value) {
        ledger.comment(format!("{}: the peer is on the link itself", gateway.note));
        return;
    }
    let remote = remote.map_or("REMOTE".to_owned(), |remote| remote.value.to_string());
    let device = interface.map_or(String::new(), |interface| {
        let name = interface.value.escape_debug();
        format!(" dev {name}")
    });
    ledger.comment(format!(
        "{}: MPT installs no routes outside the tunnel. If the host has none: ip route add {remote} \
         via {}{device}",
        gateway.note, gateway.value
    ));
}

fn version(ledger: &mut Ledger, remote: Option<&Given<IpAddr>>) {
    if !ledger.has("ip_ver") {
        return;
    }
    let version = ledger.number("ip_ver", 4, i64::MIN..=i64::MAX, "");
    let ipv6 = version.value == 6;
    if remote.is_some_and(|remote| remote.value.is_ipv6() != ipv6) {
        ledger.refuse(&version.note, "`remote_ipaddr` is of the other version, and is used");
    } else {
        ledger.comment(format!("{}: derived from `remote_ipaddr`", version.note));
    }
}

fn weights(table: &mut Table, ledger: &mut Ledger) {
    let weight = ledger.number("weight_out", 1, 1..=10_000, "weights are 1 to 10000");
    table.set_as("weight", &weight.value.to_string(), &weight.note);
    ledger.aside("weight_in", "the peer's `weight_out` determines what is received");
}

/// The timers of a path, in seconds.
#[derive(Clone, Copy, Debug)]
struct Timers {
    keepalive: i64,
    dead_time: i64,
}

fn timers(table: &mut Table, ledger: &mut Ledger) -> Timers {
    let why = "the original has one byte for it";
    let keepalive = ledger.number("keepalive_time", 0, 0..=255, why);
    table.set_as("keepalive", &keepalive.value.to_string(), &keepalive.note);
    let default = 3 * keepalive.value;
    let why = "the original has two bytes for it";
    let mut dead_time = ledger.number("dead_time", default, 0..=MAX_DEAD_TIME, why);
    if dead_time.missing {
        dead_time.note = "no dead_time, which is 3 times keepalive_time in the original".to_owned();
    }
    if dead_time.value != 0 && dead_time.value <= keepalive.value {
        let what = format!("raised to {default}: the path would be down between two keepalives");
        ledger.change(&mut dead_time, default, &what);
    }
    if dead_time.value == 0 && keepalive.value > 0 && ledger.says("status", DOWN) {
        let what = "taken as 65535, because with 0 the path would be up before the peer is heard";
        ledger.change(&mut dead_time, MAX_DEAD_TIME, what);
    }
    table.set_as("dead_time", &dead_time.value.to_string(), &dead_time.note);
    Timers { keepalive: keepalive.value, dead_time: dead_time.value }
}

/// The longest dead time of the original.
const MAX_DEAD_TIME: i64 = 65535;

/// The original's status of a path that is down until something is received.
const DOWN: i64 = 128;

/// The setting of a path that may send.
const AVAILABLE: &str = "available";

/// The setting of a path that is switched off.
const OFF: &str = "off";

/// Sets the status. The original has several that send nothing.
fn status(table: &mut Table, ledger: &mut Ledger, Timers { keepalive, dead_time }: Timers) {
    let mut given = ledger.number("status", 0, 0..=255, "it is one byte");
    if given.value == DOWN && keepalive == 0 && dead_time == 0 {
        let what = "taken as off, because without keepalives and dead time the path would be up before \
                    the peer is heard: run `mpt path up` when the peer is running";
        ledger.change(&mut given, DOWN, what);
        table.set("status", &Given::written(OFF, given.note));
        return;
    }
    let (status, what) = match given.value {
        0 => (AVAILABLE, ""),
        DOWN => (AVAILABLE, " (down until the peer is heard, as any path is here)"),
        131 => (OFF, ""),
        129 => (OFF, " (interface down; in the original it comes up by command only)"),
        130 => (OFF, " (address down; in the original it comes up by command only)"),
        255 => (OFF, " (disabled)"),
        _ => (OFF, " (not a status of the original, which sends nothing then)"),
    };
    let note = format!("{}{what}", given.note);
    table.set("status", &Given::written(status, note));
}

/// The longest time here is below the limit of a dead time.
const _: () = assert!(Duration::from_secs(MAX_DEAD_TIME.unsigned_abs()).as_secs() < 24 * 60 * 60);
