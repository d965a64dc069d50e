//! Which module of a crate defines what a path names.

use super::module::{Module, Named};

/// Re-exports of re-exports that are followed. More is a re-export of itself.
const MAX_STEPS: usize = 16;

/// One module uses what another defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    /// Numbers of modules.
    pub(super) from: usize,
    pub(super) to: usize,
    /// What is used.
    pub(super) item: String,
    /// Where it is used first.
    pub(super) line: usize,
}

/// What a path leads to.
#[derive(Clone, Debug)]
enum Target {
    Module(usize),
    /// An item, and the module that defines it.
    Item(usize, String),
}

/// Every use of what another module of the same crate defines, each item of each once.
pub(super) fn uses(modules: &[Module]) -> Vec<Use> {
    let mut uses = Vec::new();
    for (from, module) in modules.iter().enumerate() {
        let imported = module.imports.iter().filter(|import| !import.exported);
        for Named { path, line } in imported.map(|import| &import.named).chain(&module.paths) {
            if let Some(Target::Item(to, item)) = resolve(modules, from, path, MAX_STEPS)
                && to != from
            {
                uses.push(Use { from, to, item, line: *line });
            }
        }
    }
    uses.sort();
    uses.dedup_by(|next, first| {
        (next.from, next.to, &next.item) == (first.from, first.to, &first.item)
    });
    uses
}

/// What `path` means in the module `from`; `None` if it leads out of the crate or names what is local to a function.
fn resolve(modules: &[Module], from: usize, path: &[String], steps: usize) -> Option<Target> {
    let steps = steps.checked_sub(1)?;
    let (first, mut rest) = path.split_first()?;
    let mut target = match first.as_str() {
        "crate" => Target::Module(0),
        "self" => Target::Module(from),
        "super" => Target::Module(modules[from].parent?),
        name => lookup(modules, from, name, !rest.is_empty(), steps)?,
    };
    while let (Target::Module(module), Some((name, after))) = (&target, rest.split_first()) {
        target = if name == "super" {
            Target::Module(modules[*module].parent?)
        } else {
            // What is not seen to be defined there comes from a macro that is called there.
            lookup(modules, *module, name, !after.is_empty(), steps)
                .unwrap_or_else(|| Target::Item(*module, name.clone()))
        };
        rest = after;
    }
    Some(target)
}

/// What `name` means in `module`, which may have got it from elsewhere. A module may have the name of a function: `qualifies` says that more follows, so that it is the module.
fn lookup(
    modules: &[Module],
    module: usize,
    name: &str,
    qualifies: bool,
    steps: usize,
) -> Option<Target> {
    let here = &modules[module];
    let child = here.children.get(name).map(|&child| Target::Module(child));
    let item = here.items.contains(name).then(|| Target::Item(module, name.to_owned()));
    let own = if qualifies { child.or(item) } else { item.or(child) };
    own.or_else(|| {
        let named = here.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        named.filter_map(|import| resolve(modules, module, &import.named.path, steps)).next()
    })
    .or_else(|| {
        let all = here.imports.iter().filter(|import| import.name.is_none());
        all.filter_map(|import| match resolve(modules, module, &import.named.path, steps)? {
            Target::Module(from) => lookup(modules, from, name, qualifies, steps.checked_sub(1)?),
            Target::Item(..) => None,
        })
        .next()
    })
}
