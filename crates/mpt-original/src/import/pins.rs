//! The ports of the branch with flow mapping: `tcp_dst = 80, 443` in `[path_N]`.
//!
//! The original has a table for each of the four keys, in which a later path replaces an earlier one.

use super::integer;
use super::ledger::{Given, Ledger};

/// The keys, which are the same on both sides.
const KEYS: [&str; 4] = ["tcp_dst", "tcp_src", "udp_dst", "udp_src"];

/// What separates ports.
const SEPARATORS: [char; 5] = [' ', '\t', ',', ':', ';'];

/// The ports of one key that a path claims.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) key: &'static str,
    pub(super) ports: Given<Vec<u16>>,
}

impl Pinned {
    /// Reads all lists of a path.
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
                    let what = format!("`{}` is not a port, and left out", word.escape_debug());
                    ledger.change(&mut ports, value, &what);
                }
            }
        }
        Some(Self { key, ports })
    }
}
