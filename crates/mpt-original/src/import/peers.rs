//! Several connections to one peer, of which one can be enabled here.
//!
//! The original takes the first connection that matches a packet by the peer's address or by its networks. So
//! of several to one peer the first carries the packets to the peer itself, and each those to its networks. Here
//! the first gets the networks of the others.

use std::collections::HashMap;
use std::net::IpAddr;

use mpt_proto::Prefix;

use super::connection::Connection;
use super::document::Shown;
use super::ledger::{Findings, Given};

/// Disables all but the first connection to each peer.
pub(super) fn merge(connections: &mut [Connection], findings: &mut Findings) {
    let mut firsts: HashMap<IpAddr, usize> = HashMap::new();
    for later in 0..connections.len() {
        let Some(remote) = connections[later].remote.clone() else { continue };
        let first = *firsts.entry(remote.value).or_insert(later);
        if first == later {
            continue;
        }
        let (before, rest) = connections.split_at_mut(later);
        let moved = uncovered(&rest[0].networks.value, before);
        let why = why(&before[first], &rest[0], &moved);
        findings.warnings.push(format!("{}: {why}", remote.note));
        rest[0].aside(format!("{}: {why}", remote.note));
        rest[0].disable();
        extend(&mut before[first].networks, moved, &rest[0].name);
    }
}

/// The networks that no earlier connection covers. Those go over the earlier one in the original too.
fn uncovered(networks: &[Prefix], before: &[Connection]) -> Vec<Prefix> {
    let earlier = || before.iter().flat_map(|connection| &connection.networks.value);
    let covered = |network: &Prefix| {
        earlier().any(|other| other.bits() <= network.bits() && other.contains(network.address()))
    };
    networks.iter().copied().filter(|network| !covered(network)).collect()
}

fn extend(networks: &mut Given<Vec<Prefix>>, moved: Vec<Prefix>, later: &str) {
    if moved.is_empty() {
        return;
    }
    let separator = if networks.note.is_empty() { "" } else { "; " };
    networks.note +=
        &format!("{separator}{} from `{}`, which has the same peer", list(&moved), Shown(later));
    networks.value.extend(moved);
}

/// The comment on a later connection: which packets go over the first one, and which are lost.
fn why(first: &Connection, later: &Connection, moved: &[Prefix]) -> String {
    let name = Shown(&first.name);
    let mut changed = Vec::new();
    if !moved.is_empty() {
        changed.push(format!("what goes to {}", list(moved)));
    }
    // The original looks at the source too: for IPv4 that is its own address or one of the networks'.
    if first.networks.value.is_empty() && !later.networks.value.is_empty() {
        changed.push("packets of other hosts to the peer".to_owned());
    }
    // And for IPv6 this.
    if let (Some(own), Some(other)) = (&later.local, &first.local)
        && own.value.is_ipv6()
        && own.value != other.value
    {
        changed.push(format!("what {} sends to the peer", own.value));
    }
    let change = if changed.is_empty() {
        ", as in the original; this one is not in force".to_owned()
    } else {
        let changed = changed.join(", and ");
        format!(
            ". This one is not in force. In the original it carried {changed}; here `{name}` carries it"
        )
    };
    format!(
        "`{name}` has the same peer, and carries all packets for it{change}. Packets of the peer \
         over this one are not received. With a `match` it would be in force: see docs/guide.md"
    )
}

fn list(networks: &[Prefix]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
