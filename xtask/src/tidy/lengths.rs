//! Files stay short enough to be read in one sitting.

use super::Violation;
use super::files::Files;

/// Longer files are mentioned: the next change to them might split them.
const LONG: usize = 600;
/// Longer files are refused.
const TOO_LONG: usize = 900;
/// Longer files of the core are refused: one can be held in mind.
const TOO_LONG_IN_CORE: usize = 400;
/// The core's sources.
const CORE: &str = "crates/mpt-proto/src";

/// Files that are long, but not too long.
pub(super) fn notes(files: &Files) -> Vec<String> {
    lengths(files)
        .filter(|&(_, lines)| lines > LONG && lines <= TOO_LONG)
        .map(|(path, lines)| format!("{path}: {lines} lines; above {LONG}, consider a split"))
        .collect()
}

/// Files that are too long.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    lengths(files)
        .filter_map(|(path, lines)| {
            let most = if path.starts_with(CORE) { TOO_LONG_IN_CORE } else { TOO_LONG };
            (lines > most).then(|| {
                Violation::new(
                    path,
                    format!("{lines} lines"),
                    format!("split it by noun into files of at most {most} lines"),
                )
            })
        })
        .collect()
}

fn lengths(files: &Files) -> impl Iterator<Item = (String, usize)> {
    files
        .with_extension("rs")
        .map(|(path, text)| (path.display().to_string(), text.lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_mentioned_and_too_long_ones_refused() {
        let text = |lines| "//\n".repeat(lines);
        let files = Files::from([
            ("a.rs", &*text(600)),
            ("b.rs", &*text(601)),
            ("c.rs", &*text(900)),
            ("d.rs", &*text(901)),
            ("e.md", &*text(5000)),
        ]);
        let notes = notes(&files);
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("b.rs: 601 lines"));
        assert!(notes[1].starts_with("c.rs: 900 lines"));
        let violations = check(&files);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].place, "d.rs");
    }

    #[test]
    fn files_of_the_core_are_shorter() {
        let text = |lines| "//\n".repeat(lines);
        let files = Files::from([
            ("crates/mpt-proto/src/a.rs", &*text(400)),
            ("crates/mpt-proto/src/b/c.rs", &*text(401)),
            ("crates/mpt-proto/tests/d.rs", &*text(401)),
        ]);
        let violations = check(&files);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].place, "crates/mpt-proto/src/b/c.rs");
    }
}
