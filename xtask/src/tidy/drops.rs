//! The drops that the protocol document names are the drops that the code counts.

use std::collections::BTreeMap;

use super::Violation;
use super::files::Files;
use super::markdown;

/// Where the protocol is described.
const DOCUMENT: &str = "docs/protocol.md";
/// Where `enum Drop` gives its names.
const CODE: &str = "crates/mpt-proto/src/stats.rs";
/// The titles of the table columns in which the document names drops.
const TITLES: [&str; 2] = ["drop", "name of the drop"];

/// Names that only one of the two has.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    let unreadable = |file: &str, what: &str| {
        vec![Violation::new(file, what, "correct it, or the paths in xtask/src/tidy/drops.rs")]
    };
    let documented = match files.text(DOCUMENT).map(documented_names) {
        Some(names) if !names.is_empty() => names,
        _ => return unreadable(DOCUMENT, "no table that names drops"),
    };
    let counted = match files.text(CODE).map(counted_names) {
        Some(names) if !names.is_empty() => names,
        _ => return unreadable(CODE, "no `impl Drop` that gives names"),
    };
    let missing_in_code = documented.iter().filter(|(name, _)| !counted.contains_key(*name));
    let missing_in_document = counted.iter().filter(|(name, _)| !documented.contains_key(*name));
    missing_in_code
        .map(|(name, line)| {
            let what = format!("the drop `{name}` is not counted in {CODE}");
            Violation::new(format!("{DOCUMENT}:{line}"), what, "implement it or take it out")
        })
        .chain(missing_in_document.map(|(name, line)| {
            let what = format!("the drop `{name}` is not named in {DOCUMENT}");
            Violation::new(format!("{CODE}:{line}"), what, "describe it there")
        }))
        .collect()
}

/// Names and the lines where the document has them first.
fn documented_names(document: &str) -> BTreeMap<&str, usize> {
    let mut names = BTreeMap::new();
    for (line, cell) in markdown::column_cells(document, &TITLES) {
        for name in markdown::code_spans(cell) {
            names.entry(name).or_insert(line);
        }
    }
    names
}

/// The string literals in `impl Drop { .. }` and their lines.
fn counted_names(code: &str) -> BTreeMap<&str, usize> {
    code.lines()
        .enumerate()
        .skip_while(|(_, line)| *line != "impl Drop {")
        .take_while(|(_, line)| *line != "}")
        .filter_map(|(index, line)| {
            let (_, name) = line.split_once("=> \"")?;
            Some((name.split_once('"')?.0, index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "# P\n\n| check | name of the drop |\n|---|---|\n| c | `one`, `two` |\n\n\
                          | drop | meaning |\n|---|---|\n| `one` | x |\n| `two` | `not_a_drop` |\n";
    const ENUM: &str = "impl Other {\n    A => \"zero\",\n}\nimpl Drop {\n    fn name() {\n        \
                        Self::One => \"one\",\n        Self::Two => \"two\",\n    }\n}\n\
                        fn f() { X => \"three\" }\n";

    #[test]
    fn the_same_names_on_both_sides_are_kept() {
        assert_eq!(check(&Files::from([(DOCUMENT, TABLES), (CODE, ENUM)])), []);
    }

    #[test]
    fn a_name_on_one_side_only_is_reported_where_it_stands() {
        let document = TABLES.replace("`two`", "`too`");
        let violations = check(&Files::from([(DOCUMENT, &*document), (CODE, ENUM)]));
        let places: Vec<_> = violations.iter().map(|found| found.place.as_str()).collect();
        assert_eq!(places, ["docs/protocol.md:5", "crates/mpt-proto/src/stats.rs:7"]);
        assert!(violations[0].what.contains("`too`"));
        assert!(violations[1].what.contains("`two`"));
    }

    #[test]
    fn a_side_that_cannot_be_read_is_reported_rather_than_taken_for_empty() {
        assert_eq!(check(&Files::from([(DOCUMENT, TABLES)])).len(), 1);
        assert_eq!(check(&Files::from([(DOCUMENT, "# P"), (CODE, ENUM)])).len(), 1);
    }
}
