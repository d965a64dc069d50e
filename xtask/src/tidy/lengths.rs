//! Files stay short enough to be read in one sitting.

use super::Violation;
use super::files::Files;

/// Longer files are mentioned: the next change to them might split them.
const LONG: usize = 600;
/// Longer files are refused.
const TOO_LONG: usize = 900;

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
        .filter(|&(_, lines)| lines > TOO_LONG)
        .map(|(path, lines)| {
            Violation::new(
                path,
                format!("{lines} lines"),
                format!("split it by noun into files of at most {TOO_LONG} lines"),
            )
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
}
