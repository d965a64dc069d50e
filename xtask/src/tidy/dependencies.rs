//! Which crate may depend on which.
//!
//! `mpt-proto` and `mpt-io` are independent of each other and of all other crates here; only `mpt`
//! joins them. `mpt-original` takes number types and time from `mpt-proto`, which does not know it.
//! The lab runs the daemon as a process and never links it, so that it measures what ships. And
//! nothing below `mpt-proto` and `mpt-original`, however far down, does input or output.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use cargo_metadata::{DependencyKind, Metadata, PackageId};

use super::Violation;

/// What each crate may depend on in the workspace. Development dependencies are free, save those
/// in [`NEVER`].
const ALLOWED: [(&str, &[&str]); 9] = [
    ("mpt", &["mpt-control", "mpt-io", "mpt-original", "mpt-proto"]),
    ("mpt-control", &[]),
    ("mpt-fuzz", &["mpt", "mpt-control", "mpt-io", "mpt-original", "mpt-proto"]),
    ("mpt-io", &[]),
    ("mpt-lab", &["mpt-control", "mpt-io", "mpt-proto", "mpt-sim"]),
    ("mpt-original", &["mpt-proto"]),
    ("mpt-proto", &[]),
    ("mpt-sim", &["mpt-proto"]),
    ("xtask", &[]),
];

/// Dependencies that not even tests may have.
const NEVER: [(&str, &str); 1] = [("mpt-lab", "mpt")];

/// The crates that must not do input or output.
const PURE: [&str; 2] = ["mpt-original", "mpt-proto"];

/// Crates that do.
const OUTSIDE: [&str; 9] =
    ["async-io", "libc", "linux-raw-sys", "mio", "nix", "polling", "rustix", "socket2", "tokio"];

/// Crates of which a pure crate uses nothing that does input or output: ring seals datagrams, and is never asked for a random
/// number (`mpt-proto/clippy.toml`).
const PURELY_USED: [&str; 1] = ["ring"];

/// Every dependency that the rules do not permit.
pub(super) fn check(metadata: &Metadata) -> anyhow::Result<Vec<Violation>> {
    let graph = Graph::read(metadata)?;
    Ok([graph.between_crates(), graph.to_the_outside()].concat())
}

/// Who depends on whom, by name.
#[derive(Default)]
struct Graph {
    /// The crates of the workspace with their direct dependencies.
    members: BTreeMap<String, Vec<(String, DependencyKind)>>,
    /// All crates with what they need when they run: a compiler that a build script starts is no part of them.
    needs: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn read(metadata: &Metadata) -> anyhow::Result<Self> {
        let mut graph = Self::default();
        for package in metadata.workspace_packages() {
            let direct = package.dependencies.iter().map(|to| (to.name.clone(), to.kind));
            graph.members.insert(package.name.to_string(), direct.collect());
        }
        let name = |id: &PackageId| metadata[id].name.to_string();
        let resolve = metadata.resolve.as_ref().context("cargo has not resolved dependencies")?;
        for node in &resolve.nodes {
            let needed = node.deps.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
            });
            let needs = needed.map(|dependency| name(&dependency.pkg));
            graph.needs.entry(name(&node.id)).or_default().extend(needs);
        }
        Ok(graph)
    }

    fn between_crates(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (member, direct) in &self.members {
            let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == member) else {
                violations.push(Violation::new(
                    member,
                    "a crate without a place in the dependency rule",
                    "add it to ALLOWED in xtask/src/tidy/dependencies.rs and to ARCHITECTURE.md",
                ));
                continue;
            };
            for (to, kind) in direct {
                let needed =
                    *kind != DependencyKind::Development && !allowed.contains(&to.as_str());
                let never = NEVER.contains(&(member, to));
                if self.members.contains_key(to) && (needed || never) {
                    violations.push(Violation::new(
                        format!("{member}/Cargo.toml"),
                        format!("{member} must not depend on {to}"),
                        "move what both need to the crate that may be depended on",
                    ));
                }
            }
        }
        violations
    }

    fn to_the_outside(&self) -> Vec<Violation> {
        PURE.into_iter().flat_map(|pure| self.below(pure)).collect()
    }

    /// The dependencies of a pure crate that do input or output.
    fn below(&self, pure: &str) -> Vec<Violation> {
        let mut seen = BTreeSet::new();
        let mut open = vec![pure];
        let mut violations = Vec::new();
        while let Some(name) = open.pop() {
            if PURELY_USED.contains(&name) {
                continue;
            }
            for to in self.needs.get(name).into_iter().flatten() {
                if OUTSIDE.contains(&to.as_str()) {
                    violations.push(Violation::new(
                        pure,
                        format!("reaches {to} through {name}"),
                        "this crate does no input or output: do it in mpt-io or mpt",
                    ));
                }
                if seen.insert(to) {
                    open.push(to);
                }
            }
        }
        violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(members: &[(&str, &[(&str, DependencyKind)])], needs: &[(&str, &[&str])]) -> Graph {
        let owned = |(to, kind): &(&str, DependencyKind)| (String::from(*to), *kind);
        Graph {
            members: members
                .iter()
                .map(|(name, direct)| (String::from(*name), direct.iter().map(owned).collect()))
                .collect(),
            needs: needs
                .iter()
                .map(|(name, to)| {
                    (String::from(*name), to.iter().copied().map(String::from).collect())
                })
                .collect(),
        }
    }

    #[test]
    fn what_the_rule_permits_is_kept() {
        use DependencyKind::{Development, Normal};
        let graph = graph(
            &[
                ("mpt", &[("mpt-io", Normal), ("mpt-lab", Development), ("clap", Normal)]),
                ("mpt-io", &[("libc", Normal)]),
                ("mpt-lab", &[("mpt-sim", Normal)]),
                ("mpt-proto", &[("mpt-sim", Development)]),
                ("mpt-sim", &[("mpt-proto", Normal)]),
            ],
            &[("mpt-proto", &["thiserror"]), ("mpt-io", &["libc"])],
        );
        assert_eq!(graph.between_crates(), []);
        assert_eq!(graph.to_the_outside(), []);
    }

    #[test]
    fn each_forbidden_dependency_is_reported() {
        use DependencyKind::{Build, Development, Normal};
        for (from, to, kind) in [
            ("mpt-proto", "mpt-io", Normal),
            ("mpt-proto", "mpt-sim", Build),
            ("mpt-io", "mpt-proto", Normal),
            ("mpt-proto", "mpt-original", Normal),
            ("mpt-original", "mpt-io", Normal),
            ("mpt-sim", "mpt-io", Normal),
            ("mpt-lab", "mpt", Normal),
            ("mpt-lab", "mpt", Development),
        ] {
            let found = graph(&[(from, &[(to, kind)]), (to, &[])], &[]).between_crates();
            assert_eq!(found.len(), 1, "{from} -> {to} as {kind:?}");
            assert_eq!(found[0].what, format!("{from} must not depend on {to}"));
        }
    }

    #[test]
    fn a_crate_that_the_rule_does_not_know_is_reported() {
        assert_eq!(graph(&[("mpt-extra", &[])], &[]).between_crates()[0].place, "mpt-extra");
    }

    #[test]
    fn io_below_a_pure_crate_is_reported_however_far_down() {
        for pure in PURE {
            let graph = graph(&[], &[(pure, &["a"]), ("a", &["b", "a"]), ("b", &["libc"])]);
            let found = graph.to_the_outside();
            assert_eq!(found.len(), 1, "{pure}");
            assert_eq!((&*found[0].place, &*found[0].what), (pure, "reaches libc through b"));
        }
    }

    #[test]
    fn what_is_purely_used_may_be_able_to_do_io() {
        for used in PURELY_USED {
            let needs = [("mpt-proto", &[used] as &[_]), (used, &["libc"])];
            assert_eq!(graph(&[], &needs).to_the_outside(), []);
        }
    }
}
