//! The guide's reference of settings.

use std::collections::BTreeSet;

use crate::config::keys;

const GUIDE: &str = include_str!("../../../../../docs/guide.md");

/// Every table has its heading, and below it a row for each of its keys, in the order of the
/// documentation. Tables inside it have headings of their own.
#[test]
fn the_guide_has_every_key_in_its_table() {
    let headed = |table: &str| GUIDE.contains(&format!("\n### `{table}`\n"));
    for keys in keys::ALL.iter().filter(|keys| keys.table != keys::ROOT.table) {
        assert!(headed(keys.table), "no heading for {}", keys.table);
        let nested = |key: &str| headed(&format!("{}.{key}]]", keys.table.trim_end_matches(']')));
        let wanted: Vec<_> = keys.keys.iter().filter(|key| !nested(key)).copied().collect();
        assert_eq!(rows(keys.table), wanted, "rows below {}", keys.table);
    }
}

#[test]
fn the_guide_describes_nothing_twice() {
    let headings: Vec<_> = GUIDE.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(headings.iter().collect::<BTreeSet<_>>().len(), headings.len());
}

/// What stands in the first column of the table below a heading.
fn rows(table: &str) -> Vec<&'static str> {
    let (_, rest) = GUIDE.split_once(&format!("\n### `{table}`\n")).expect("a heading");
    let section = rest.split("\n#").next().unwrap_or_default();
    let key = |line: &'static str| line.strip_prefix("| `")?.split('`').next();
    section.lines().filter_map(key).collect()
}
