//! `interface.conf`: the tunnel.

use mpt_proto::Prefix;

use super::connection::Connection;
use super::document::{Document, Section};
use super::general::General;
use super::ledger::{Findings, Given, Ledger, Zero, empty_section};
use super::own;
use super::table::Table;
use super::target::{Peer, Target};

/// The largest inner packet that the original receives whole: its buffer has room for 1600 bytes, of
/// which the GRE header takes 8.
const ORIGINAL_MAX_MTU: u16 = 1592;

/// The default name of the original's tunnel.
const NAME: &str = "tun0";

/// Makes the table of the tunnel, with the local addresses of its connections.
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
        let what =
            format!("renamed to {NAME}, because this is not a valid interface name: {fault}");
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

/// The MTU, unless it is to be discovered.
fn mtu(ledger: &mut Ledger, target: &Target, ipv6: bool) -> Option<Given<u16>> {
    let (least, most) = target.mtu.clone().into_inner();
    let least = if ipv6 { target.min_mtu_ipv6 } else { least };
    let (most, why) = match target.peer {
        Peer::Original => (
            ORIGINAL_MAX_MTU,
            format!(
                "{least} to {ORIGINAL_MAX_MTU} is the range that the original does not truncate"
            ),
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
