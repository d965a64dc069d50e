//! Names of connections and paths.

use std::collections::HashSet;

/// Longest name in bytes that `mpt` accepts, less a suffix that makes it unique.
const MAX_NAME: usize = 56;

/// The text without characters that a name cannot have, cut to length.
pub(super) fn printable(text: &str) -> String {
    let mut name: String = text.chars().filter(|c| !c.is_control()).collect();
    while name.len() > MAX_NAME {
        name.pop();
    }
    name
}

/// The name, with a number if it is taken.
pub(super) fn unique(name: &str, names: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    let free = candidates.find(|candidate| !names.contains(candidate));
    let free = free.unwrap_or_default();
    names.insert(free.clone());
    free
}
