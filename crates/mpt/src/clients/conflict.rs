//! Clients that contradict each other: with the same key, the same invitation, or inner addresses of another one.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;

use crate::config::{Client, Prefix};

/// What one file says.
pub(super) struct Claim<'c> {
    pub(super) name: &'c str,
    pub(super) client: &'c Client,
    /// Of two that contradict each other one that has been there already stays.
    pub(super) is_new: bool,
}

/// Whose an inner address is.
#[derive(Clone, Copy)]
enum Owner<'c> {
    Client(usize),
    Other(&'c str),
}

/// Who cannot be a client, by name, and why. `others` are inner addresses that no client may have, and whose they are.
pub(super) fn find(
    mut claims: Vec<Claim<'_>>,
    others: &[(Prefix, String)],
    folder: &Path,
) -> Vec<(Box<str>, String)> {
    // The later one in this order is at fault.
    claims.sort_by_key(|claim| (claim.is_new, claim.name));
    let mut faults: BTreeMap<usize, String> = BTreeMap::new();
    let fault = |at: usize, value: &str, owner: &str| {
        let file = folder.join(format!("{}.toml", claims[at].name));
        let line = std::fs::read_to_string(&file).ok();
        let line = line.and_then(|text| text.lines().position(|line| has_value(line, value)));
        let place = line.map(|line| format!(":{}", line + 1)).unwrap_or_default();
        format!("{}{place}: {value} belongs to {owner}: give each client its own", file.display())
    };
    let mut keys: HashMap<String, usize> = HashMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let key = claim.client.public_key.map(|key| key.to_string());
        let invitation = claim.client.invitation.map(|hash| hash.to_string());
        for value in key.into_iter().chain(invitation) {
            if let Some(first) = keys.get(&value) {
                let owner = format!("client {}", claims[*first].name);
                faults.insert(at, fault(at, &value, &owner));
            } else {
                keys.insert(value, at);
            }
        }
    }
    let of_clients = claims.iter().enumerate().flat_map(|(at, claim)| {
        claim.client.claims().map(move |prefix| (prefix, Owner::Client(at)))
    });
    let of_others = others.iter().map(|(prefix, owner)| (*prefix, Owner::Other(owner)));
    let mut all: Vec<(Prefix, Owner<'_>)> = of_others.chain(of_clients).collect();
    // Prefixes lie within each other or apart, so those around one come before it, the nearest one last.
    let first = |prefix: Prefix| -> IpAddr { prefix.network().addr };
    all.sort_by_key(|(prefix, owner)| {
        let rank = if let Owner::Client(at) = owner { at + 1 } else { 0 };
        (first(*prefix), prefix.len, rank)
    });
    let mut around: Vec<(Prefix, Owner<'_>)> = Vec::new();
    for (prefix, owner) in all {
        if matches!(owner, Owner::Client(at) if faults.contains_key(&at)) {
            continue;
        }
        while let Some(&(outer, outer_owner)) = around.last() {
            let is_gone = matches!(outer_owner, Owner::Client(at) if faults.contains_key(&at));
            if outer.overlaps(prefix) && !is_gone {
                match (owner, outer_owner) {
                    (Owner::Client(one), Owner::Client(other)) if one != other => {
                        let (at, by, value) =
                            if one > other { (one, other, prefix) } else { (other, one, outer) };
                        let owner = format!("client {}", claims[by].name);
                        faults.insert(at, fault(at, &shown(value), &owner));
                    }
                    (Owner::Client(at), Owner::Other(other)) => {
                        faults.insert(at, fault(at, &shown(prefix), other));
                    }
                    (Owner::Other(other), Owner::Client(at)) => {
                        faults.insert(at, fault(at, &shown(outer), other));
                    }
                    _ => break,
                }
                if matches!(outer_owner, Owner::Client(at) if faults.contains_key(&at)) {
                    continue;
                }
                break;
            }
            around.pop();
        }
        if !matches!(owner, Owner::Client(at) if faults.contains_key(&at)) {
            around.push((prefix, owner));
        }
    }
    faults.into_iter().map(|(at, fault)| (claims[at].name.into(), fault)).collect()
}

/// A prefix as files have it: an address without its length.
fn shown(prefix: Prefix) -> String {
    if prefix.is_host() { prefix.addr.to_string() } else { prefix.to_string() }
}

/// Whether a line of a file has this value in quotes, of an address also with its length.
fn has_value(line: &str, value: &str) -> bool {
    let mut parts = line.split(['"', '\'']);
    parts.any(|part| part == value || part.split_once('/').is_some_and(|(it, _)| it == value))
}
