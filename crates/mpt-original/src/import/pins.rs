//! The ports of the branch with flow mapping: `tcp_dst = 80, 443` in `[path_N]`.
//!
//! The original has one table for each of the four keys, in which the last path to name a port stands.

use std::collections::HashSet;

use super::integer;
use super::ledger::{Given, Ledger};
use super::path::Path;

/// The keys, which are the same on both sides.
const KEYS: [&str; 4] = ["tcp_dst", "tcp_src", "udp_dst", "udp_src"];

/// What separates ports.
const SEPARATORS: [char; 5] = [' ', '\t', ',', ':', ';'];

/// The ports of one key that a path claims.
#[derive(Debug)]
pub(super) struct Pinned {
    key: &'static str,
    ports: Given<Vec<u16>>,
}

impl Pinned {
    /// Takes all lists of a path.
    pub(super) fn read(ledger: &mut Ledger) -> Vec<Self> {
        KEYS.into_iter().filter_map(|key| Self::list(key, ledger)).collect()
    }

    fn list(key: &'static str, ledger: &mut Ledger) -> Option<Self> {
        let text = ledger.text(key)?;
        let mut ports = Given::written(Vec::new(), text.note);
        for word in text.value.split(SEPARATORS).filter(|word| !word.is_empty()) {
            match integer::read(word).and_then(|(number, _)| u16::try_from(number).ok()) {
                Some(port) if port > 0 => {
                    if !ports.value.contains(&port) {
                        ports.value.push(port);
                    }
                }
                Some(_) | None => {
                    let value = ports.value.clone();
                    let what = format!("`{}` is no port, and left out", word.escape_debug());
                    ledger.change(&mut ports, value, &what);
                }
            }
        }
        Some(Self { key, ports })
    }
}

/// Gives each port to the last path that names it, and says whether there are any.
pub(super) fn share_out(paths: &mut [Path]) -> bool {
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
                table.asides.push(format!("{}: no port is left", ports.note));
            } else {
                any = true;
                table.set(key, &ports);
            }
        }
    }
    any
}
