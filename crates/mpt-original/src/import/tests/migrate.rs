//! `docs/migrate.md` against the import: it has every key, and names existing settings only.

use super::super::keys;

const DOCUMENT: &str = include_str!("../../../../../docs/migrate.md");

/// All settings that there are.
const EXAMPLE: &str = include_str!("../../../../../docs/mpt.toml");

#[test]
fn every_key_of_the_original_has_its_row() {
    for (heading, wanted) in [
        ("`interface.conf`", [&keys::GENERAL[..], &keys::TUNNEL].concat()),
        ("`[connection]`", keys::CONNECTION.to_vec()),
        ("`[path_N]`", keys::PATH.to_vec()),
        ("`[net_N]`", keys::NETWORK.to_vec()),
    ] {
        let rows = rows(heading);
        let mut found: Vec<&str> = rows.iter().map(|[key, _]| *key).collect();
        let mut wanted = wanted;
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "below {heading}");
        for [key, here] in rows {
            let setting = here.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            match setting {
                Some(setting) => assert!(is_setting(setting), "{setting}, made of {key}"),
                None => assert_eq!(here, "comment", "{key}"),
            }
        }
    }
    for (alias, _) in keys::ALIASES {
        assert!(DOCUMENT.contains(&format!("`{alias}`")), "{alias}");
    }
}

/// Whether the example has such a setting, even as a comment.
fn is_setting(key: &str) -> bool {
    let lines = EXAMPLE.lines().map(|line| line.trim_start_matches("# "));
    lines.filter_map(|line| line.split_once(" = ")).any(|(found, _)| found == key)
}

/// The first two columns of the table below a heading.
fn rows(heading: &str) -> Vec<[&'static str; 2]> {
    let (_, rest) = DOCUMENT.split_once(&format!("\n### {heading}\n")).expect("a heading");
    let section = rest.split("\n#").next().unwrap_or_default();
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        Some([cells.next()?.trim_end_matches('`'), cells.next()?])
    };
    section.lines().filter_map(row).collect()
}
