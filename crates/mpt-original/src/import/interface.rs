//! `interface.conf`: the commands and the tunnel.

use mpt_proto::Prefix;

use super::connection::{Connection, DEFAULT_COMMAND_PORT};
use super::document::{Document, Section};
use super::ledger::{Findings, Given, Ledger, Zero, empty_section};
use super::own;
use super::table::Table;
use super::target::{Peer, Target};

/// What `[general]` says of the connections.
#[derive(Debug)]
pub(super) struct General {
    /// The UDP port of the command protocol.
    pub(super) command_port: Given<i64>,
    /// Whether the peer may create connections.
    pub(super) accept_remote: Given<i64>,
    tunnel_count: Given<i64>,
    asides: Vec<String>,
}

/// The largest inner packet that the original receives whole: its buffer has room for 1600 bytes, of
/// which the GRE header takes 8.
const ORIGINAL_MAX_MTU: u16 = 1592;

/// What the original calls its tunnel where it is told nothing.
const NAME: &str = "tun0";

/// Reads `[general]`.
pub(super) fn general(document: &mut Document, peer: Peer, findings: &mut Findings) -> General {
    let section = document.take("general").unwrap_or_else(|| empty_section("general", document));
    let mut ledger = Ledger::open(&document.label, section);
    let tunnels = "the original has one tunnel at least";
    let tunnel_count = ledger.number("tunnel_num", 1, 1..=i64::from(u32::MAX), tunnels);
    if peer == Peer::Mpt {
        ledger.aside("cmdport_local", "both ends are to run `mpt`, which has no such protocol");
    }
    let accept_remote = ledger.number("accept_remote", 0, 0..=1, "the original knows 0 and 1");
    let peers_create = accept_remote.value == 1;
    let why = "no peer can create connections here";
    match peer {
        Peer::Original if peers_create => {
            let why = format!(
                "{why}: what it asks for by `mpt create` is declined, logged and counted; write the connections into this file"
            );
            ledger.warn(&accept_remote.note, &why);
        }
        Peer::Mpt if peers_create => {
            let why = format!("{why}: those that run `mpt` are let in by a [[tunnel.accept]]");
            ledger.refuse(&accept_remote.note, &why);
        }
        Peer::Mpt if !accept_remote.missing => {
            ledger.comment(format!("{}: {why}", accept_remote.note));
        }
        Peer::Original | Peer::Mpt => {}
    }
    let command_port = ledger.port("cmdport_local", DEFAULT_COMMAND_PORT);
    ledger.aside("cmd_timeout", "commands reach the daemon over a socket of its own, not by UDP");
    ledger.aside("interface_num", "the original only looks whether it is negative");
    General { command_port, accept_remote, tunnel_count, asides: ledger.close(findings) }
}

/// Makes the tunnel, with the own addresses that its connections have.
pub(super) fn tunnel(
    document: &mut Document,
    general: General,
    target: &Target,
    connections: &mut [Connection],
    findings: &mut Findings,
) -> Table {
    let numbers = document.numbers("tun_");
    let mut in_force =
        numbers.iter().filter(|&&number| i64::from(number) < general.tunnel_count.value);
    let in_force = in_force.next_back().or(numbers.last());
    let section = in_force.and_then(|number| document.take(&format!("tun_{number}")));
    let section = section.unwrap_or_else(|| empty_section("tun_0", document));

    let mut table = Table::new("[[tunnel]]");
    let mut ledger = Ledger::open(&document.label, section);
    let mut name = ledger.text("name").unwrap_or_else(|| Given::missing("name", NAME.to_owned()));
    if let Some(fault) = (target.interface_fault)(&name.value) {
        let what = format!("called {NAME}, because this can be no interface: {fault}");
        ledger.change(&mut name, NAME.to_owned(), &what);
    }
    table.set("name", &name);
    let addresses = addresses(&mut ledger, connections, findings);
    let ipv6 = connections.iter().any(Connection::is_ipv6);
    let ipv6 = ipv6 || addresses.value.iter().any(|address| address.address().is_ipv6());
    table.set("addresses", &addresses);
    if let Some(mtu) = mtu(&mut ledger, target, ipv6) {
        table.set("mtu", &mtu);
    }
    if !general.tunnel_count.missing {
        ledger.comment(format!("{}: there is one, as in the original", general.tunnel_count.note));
    }
    table.asides = general.asides;
    table.asides.append(&mut ledger.close(findings));
    for section in others(document) {
        table.asides.append(&mut not_in_force(&document.label, section, findings));
    }
    table
}

fn addresses(
    ledger: &mut Ledger,
    connections: &mut [Connection],
    findings: &mut Findings,
) -> Given<Vec<Prefix>> {
    let given = ["ipv4_addr", "ipv6_addr"].into_iter();
    let given = given.filter_map(|key| ledger.prefix(key, Zero::Nothing)).collect();
    let given = own::complete(given, connections, findings);
    if given.is_empty() && ledger.is_sound() {
        ledger.problem(
            "the tunnel has no address",
            "has none",
            "write `ipv4_addr` or `ipv6_addr` in the section of the tunnel, with the length of the network, such as 10.0.0.1/24",
        );
    }
    let notes: Vec<_> = given.iter().map(|given| given.note.clone()).collect();
    Given::written(given.into_iter().map(|given| given.value).collect(), notes.join("; "))
}

/// The MTU, unless it is better found out.
fn mtu(ledger: &mut Ledger, target: &Target, ipv6: bool) -> Option<Given<u16>> {
    let (least, most) = target.mtu.clone().into_inner();
    let least = if ipv6 { target.min_mtu_ipv6 } else { least };
    let (most, why) = match target.peer {
        Peer::Original => (
            ORIGINAL_MAX_MTU,
            format!("{least} to {ORIGINAL_MAX_MTU} is what the original takes whole"),
        ),
        Peer::Mpt => (most, format!("{least} to {most} is possible")),
    };
    if target.peer == Peer::Mpt && !ledger.has("mtu") {
        return None;
    }
    let number = ledger.number("mtu", 1440, i64::from(least)..=i64::from(most), &why);
    let bytes = u16::try_from(number.value).unwrap_or(most);
    Some(Given { value: bytes, note: number.note, missing: number.missing })
}

/// The sections of tunnels that are left.
fn others(document: &mut Document) -> Vec<Section> {
    let numbers = document.numbers("tun_");
    numbers.iter().filter_map(|number| document.take(&format!("tun_{number}"))).collect()
}

fn not_in_force(file: &str, section: Section, findings: &mut Findings) -> Vec<String> {
    let mut ledger = Ledger::open(file, section);
    let why =
        format!("`[{}]` is not in force: the original has one tunnel, the last", ledger.name());
    ledger.set_all_aside(&why);
    ledger.close(findings)
}
