//! The dependencies contained in the program, with their licences.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Context;
use cargo_metadata::{DependencyKind, Metadata, PackageId};

/// One line for each crate that is compiled into `mpt`: name, version, licence.
pub(super) fn list(metadata: &Metadata) -> anyhow::Result<String> {
    let nodes = &metadata.resolve.as_ref().context("cargo has not resolved dependencies")?.nodes;
    let own = metadata.workspace_packages();
    let mpt = own.iter().find(|package| package.name == "mpt").context("there is no crate mpt")?;
    let mut open: Vec<&PackageId> = vec![&mpt.id];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let needs = nodes.iter().find(|node| node.id == *id).map_or(&[][..], |node| &node.deps);
        let built_in = needs
            .iter()
            .filter(|to| to.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        open.extend(built_in.map(|to| &to.pkg));
    }
    let mut text = String::from("Crates that mpt is made of, with their licences:\n\n");
    let others = seen.into_iter().filter(|id| !metadata.workspace_members.contains(id));
    for package in others.map(|id| &metadata[id]) {
        let licence = package.license.as_deref().unwrap_or("see its sources");
        writeln!(text, "{} {}: {licence}", package.name, package.version)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use cargo_metadata::MetadataCommand;

    use super::*;

    #[test]
    fn what_is_built_in_is_listed_and_tests_and_tools_are_not() {
        let list = list(&MetadataCommand::new().exec().unwrap()).unwrap();
        assert!(list.contains("\nclap 4.") && list.contains("MIT OR Apache-2.0"), "{list}");
        for other in ["proptest", "tar ", "mpt-lab", "mpt-io"] {
            assert!(!list.contains(&format!("\n{other}")), "{other}");
        }
    }
}
