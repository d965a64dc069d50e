//! `[net_N]`: the networks behind the peer.

use std::net::IpAddr;

use mpt_proto::Prefix;

use super::document::Document;
use super::ledger::{Findings, Given, Ledger, Zero};

/// An IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// The networks of a connection, and the comments on them.
#[derive(Debug)]
pub(super) struct Networks {
    pub(super) destinations: Given<Vec<Prefix>>,
    pub(super) asides: Vec<String>,
}

/// Reads all networks of a connection, of one IP version if it is given. Those beyond `count` become
/// comments.
pub(super) fn read_all(
    document: &mut Document,
    count: &Given<i64>,
    version: Option<Version>,
    findings: &mut Findings,
) -> Networks {
    let mut networks: Vec<Prefix> = Vec::new();
    let (mut notes, mut asides) = (Vec::new(), Vec::new());
    for number in 0..count.value {
        let name = format!("net_{number}");
        let Some(section) = document.take(&name) else {
            findings.missing_section(document, &name, &count.note);
            continue;
        };
        let mut ledger = Ledger::open(&document.label, section);
        match destination(&mut ledger) {
            Some(given) if networks.contains(&given.value) => {
                ledger.comment(format!("{}: the same network again", given.note));
            }
            Some(given) if version.is_some_and(|version| version != of(given.value.address())) => {
                let why = "the connection carries the other IP version, in the original too";
                ledger.refuse(&given.note, why);
            }
            Some(given) => {
                networks.push(given.value);
                notes.push(given.note);
            }
            None => {}
        }
        source(&mut ledger);
        ledger.aside("ip_ver", "derived from the addresses");
        asides.append(&mut ledger.close(findings));
    }
    for number in document.numbers("net_") {
        if let Some(section) = document.take(&format!("net_{number}")) {
            let mut ledger = Ledger::open(&document.label, section);
            ledger.set_all_aside(&format!("a network beyond `network_count`: {}", count.note));
            asides.append(&mut ledger.close(findings));
        }
    }
    Networks { destinations: Given::written(networks, notes.join("; ")), asides }
}

/// The IP version of an address.
pub(super) fn of(address: IpAddr) -> Version {
    if address.is_ipv4() { Version::V4 } else { Version::V6 }
}

fn destination(ledger: &mut Ledger) -> Option<Given<Prefix>> {
    if !ledger.has("dst_addr") {
        ledger.problem(
            "a network without `dst_addr`",
            "which network is behind the peer?",
            "write `dst_addr` with an address and a length, such as 192.168.0.0/24",
        );
    }
    let mut given = ledger.prefix("dst_addr", Zero::Everything)?;
    let network = given.value.masked();
    if network != given.value {
        let what = format!("taken as {network}: the address has bits beyond its length");
        ledger.change(&mut given, network, &what);
    }
    Some(given)
}

fn source(ledger: &mut Ledger) {
    let Some(given) = ledger.prefix("src_addr", Zero::Everything) else { return };
    if given.value.bits() == 0 {
        ledger.comment(format!("{}: any source, as here", given.note));
    } else {
        let why =
            "packets are routed by destination only; to restrict local sources use the firewall";
        ledger.refuse(&given.note, why);
    }
}
