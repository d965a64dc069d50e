//! The core knows nothing of the original's command protocol, which is a crate of its own.

use super::Violation;
use super::files::Files;
use super::source::code_only;

/// The core's sources.
const CORE: &str = "crates/mpt-proto/src";
/// The module that it is not to have.
const MODULE: &str = "original";

/// Every place where the core declares that module, and every file that would be of it.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    let core = files.with_extension("rs").filter(|(path, _)| path.starts_with(CORE));
    core.flat_map(|(path, text)| {
        let is_of_it = path.with_extension("").iter().any(|part| part == MODULE);
        let code = code_only(text);
        let declared = (1..).zip(code.lines()).filter(|(_, line)| declares(line)).map(|(n, _)| n);
        let lines = is_of_it.then_some(1).into_iter().chain(declared).collect::<Vec<_>>();
        lines.into_iter().map(|line| {
            Violation::new(
                format!("{}:{line}", path.display()),
                format!("a module `{MODULE}` in the core"),
                "what the original says beside the tunnel belongs to crates/mpt-original",
            )
        })
    })
    .collect()
}

/// Whether a line declares the module.
fn declares(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == "mod") && words.find(|word| !word.is_empty()) == Some(MODULE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        check(&Files::from([(path, text)])).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn the_module_is_found_by_its_file_and_by_its_declaration() {
        let of = |file: &str| format!("{CORE}/{file}");
        for file in ["original.rs", "original/mod.rs", "a/original/b.rs"] {
            assert_eq!(places(&of(file), ""), [of(file) + ":1"]);
        }
        for text in ["mod original;", "pub(crate) mod original {", "pub mod  original;"] {
            assert_eq!(places(&of("lib.rs"), &format!("\n{text}")), [of("lib.rs:2")], "{text}");
        }
    }

    #[test]
    fn other_modules_other_crates_and_words_are_no_such_module() {
        for text in
            ["mod originality;", "// mod original;", "let original = 1;", "mod a; use original;"]
        {
            assert_eq!(places(&format!("{CORE}/lib.rs"), text), [""; 0], "{text}");
        }
        assert_eq!(places("crates/mpt-original/src/lib.rs", "mod original;"), [""; 0]);
        assert_eq!(places("crates/mpt-proto/tests/original.rs", ""), [""; 0]);
    }
}
