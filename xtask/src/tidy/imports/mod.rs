//! Modules import one another without a cycle.
//!
//! What stands in a cycle can only be read, tested and moved together. So at each level of a crate
//! the modules that have the same parent, and the parent's own text, must form an order. Whatever is
//! used counts for the modules that contain user and used, at the level where these part: if
//! `tunnel::open` uses `config::path::Path`, then `tunnel` uses `config`.
//!
//! A use counts for the module that *defines* what is used, not for one that passes it on. Hence
//! `mod child;` and `pub use child::Item;` in a parent are no use of the child, as long as the
//! parent's own code does not name the item; and a child may `use super::Item` if its parent names
//! nothing of that child. Both at once are a cycle: put what both need into a module of its own.
//!
//! Methods and fields are not seen, only names: to call a method, one needs a value of a type that
//! somebody named. A file may thus hold some methods of a type that another file defines. Tests are
//! not looked at.

mod cycle;
mod module;
mod resolve;
#[cfg(test)]
mod tests;

use std::path::Path;

use cycle::{Edge, Graph};
use module::Module;
use resolve::Use;

use super::Violation;
use super::files::Files;

/// The crates that are looked at, and how deep.
const CRATES: [(&str, Depth); 6] = [
    ("crates/mpt-io", Depth::All),
    ("crates/mpt-control", Depth::All),
    ("crates/mpt-original", Depth::All),
    ("crates/mpt-proto", Depth::All),
    ("crates/mpt-sim", Depth::All),
    ("crates/mpt-lab", Depth::Folders),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// Modules at every level.
    All,
    /// Only those directly below the root of the crate.
    Folders,
}

/// Every edge that must be cut.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    CRATES
        .iter()
        .flat_map(|(folder, depth)| check_crate(files, Path::new(folder), *depth))
        .collect()
}

fn check_crate(files: &Files, folder: &Path, depth: Depth) -> Vec<Violation> {
    let modules = match module::read(files, folder) {
        Ok(modules) => modules,
        Err(violation) => return vec![violation],
    };
    let uses = resolve::uses(&modules);
    (0..modules.len())
        .filter(|&level| level == 0 || depth == Depth::All)
        .flat_map(|level| {
            let mut graph = graph(&modules, &uses, level);
            std::iter::from_fn(move || graph.cut_one())
        })
        .map(|cycle| report(folder, &modules, &cycle))
        .collect()
}

/// Who uses whom of the module `level` and its children.
fn graph<'u>(modules: &[Module], uses: &'u [Use], level: usize) -> Graph<'u> {
    let mut graph = Graph::default();
    for used in uses {
        let ends = (member(modules, level, used.from), member(modules, level, used.to));
        if let (Some(from), Some(to)) = ends
            && from != to
        {
            graph.add(from, to, used);
        }
    }
    graph
}

/// The child of `level` that contains `module`, or `level` itself; `None` if it is elsewhere.
fn member(modules: &[Module], level: usize, mut module: usize) -> Option<usize> {
    if module == level {
        return Some(level);
    }
    loop {
        match modules[module].parent {
            Some(parent) if parent == level => return Some(module),
            Some(parent) => module = parent,
            None => return None,
        }
    }
}

/// Shows a cycle, of which the first edge is the one to cut.
fn report(folder: &Path, modules: &[Module], cycle: &[Edge<'_>]) -> Violation {
    let name = |module: usize| match modules[module].name.as_str() {
        "" => "lib.rs",
        name => name,
    };
    let place = |used: &Use| format!("{}:{}", modules[used.from].file.display(), used.line);
    let steps: Vec<_> = cycle
        .iter()
        .map(|edge| format!("{} uses {} ({})", name(edge.from), name(edge.to), place(edge.uses[0])))
        .collect();
    let cut = &cycle[0];
    let items: Vec<_> =
        cut.uses.iter().map(|used| format!("`{}` ({})", used.item, place(used))).collect();
    Violation::new(
        folder.display().to_string(),
        format!("import cycle: {}", steps.join(", ")),
        format!(
            "cheapest to cut is {} -> {}, which is {}",
            name(cut.from),
            name(cut.to),
            items.join(", ")
        ),
    )
}
