//! Names, each of which may stand once.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use crate::config::report::{Problem, Problems};

/// Values that may occur once, and where they did.
#[derive(Debug)]
pub(in crate::config) struct Claims<K>(HashMap<K, Range<usize>>);

impl<K> Default for Claims<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Claims<K> {
    /// Where `key` was claimed before, if it was; if not, claims it.
    pub(super) fn claim(&mut self, key: K, span: &Range<usize>) -> Option<Range<usize>> {
        use std::collections::hash_map::Entry;
        match self.0.entry(key) {
            Entry::Occupied(entry) => Some(entry.get().clone()),
            Entry::Vacant(entry) => {
                entry.insert(span.clone());
                None
            }
        }
    }
}

/// The names of the tunnels, of the connections, or of the paths of one connection.
pub(in crate::config) type Names = Claims<String>;

impl Names {
    /// Where the name was claimed, if it was.
    pub(super) fn place(&self, name: &str) -> Option<&Range<usize>> {
        self.0.get(name)
    }

    /// All names with their places, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Range<usize>)> {
        self.0.iter().map(|(name, span)| (name.as_str(), span))
    }
}

/// Claims the name of a `what`, such as "path", of which there is one within an `owner`.
pub(in crate::config) fn claim_name(
    names: &mut Names,
    what: &str,
    owner: &str,
    name: &str,
    span: Range<usize>,
    problems: &mut Problems,
) {
    if let Some(first) = names.claim(name.to_owned(), &span) {
        problems.push(
            Problem::new(format!("duplicate {what} name `{name}`"), span)
                .label("used again here")
                .other(first, "used first here")
                .help(format!("give each {what} of {owner} a unique name")),
        );
    }
}
