//! Unsafe code has one home.
//!
//! The workspace's lints forbid it to the compiler already. This rule sees what a lint that a crate
//! switches off for itself no longer sees, and code that this platform does not compile.

use super::Violation;
use super::files::Files;
use super::source::code_only;

/// The only place where the keyword may stand.
const HOME: &str = "crates/mpt-io";

/// Every `unsafe` outside its home.
pub(super) fn check(files: &Files) -> Vec<Violation> {
    files
        .with_extension("rs")
        .filter(|(path, _)| !path.starts_with(HOME))
        .flat_map(|(path, text)| {
            lines_with_unsafe(text).into_iter().map(move |line| {
                Violation::new(
                    format!("{}:{line}", path.display()),
                    "unsafe code",
                    format!("move it behind a safe function of {HOME}"),
                )
            })
        })
        .collect()
}

/// The numbers, from 1, of the lines where `unsafe` is a keyword rather than a word in a comment or
/// a literal.
fn lines_with_unsafe(source: &str) -> Vec<usize> {
    code_only(source)
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
        })
        .map(|(index, _)| index + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_is_found_wherever_it_is_code() {
        let source = "fn a() {\n    unsafe { b() }\n}\nunsafe fn c() {}\n#[unsafe(no_mangle)]\n";
        assert_eq!(lines_with_unsafe(source), [2, 4, 5]);
    }

    #[test]
    fn words_in_comments_literals_and_longer_names_are_not_code() {
        for source in [
            "// unsafe { }",
            "/* unsafe /* unsafe */ unsafe */",
            "#![forbid(unsafe_code)]",
            r#"let s = "unsafe \" unsafe";"#,
            r##"let s = r#"unsafe " unsafe"#;"##,
            r#"let s = b"unsafe"; let c = '"'; let d = "unsafe";"#,
            r#"let c = '\''; let d = "unsafe";"#,
            "let s = \"first\n unsafe\";",
        ] {
            assert!(lines_with_unsafe(source).is_empty(), "{source}");
        }
    }

    #[test]
    fn what_follows_comments_literals_and_lifetimes_is_seen_on_its_line() {
        for source in [
            "/* a\n b */ unsafe {}",
            "let s = \"a\nb\"; unsafe {}",
            "fn f<'a>(x: &'a str) {}\nunsafe {}",
            "let (c, d) = ('\\\\', '\"');\nunsafe {}",
            "let bar = 1; // \"\nunsafe {}",
            "let s = r\"\\\";\nunsafe {}",
        ] {
            assert_eq!(lines_with_unsafe(source), [2], "{source}");
        }
    }

    #[test]
    fn only_its_home_may_have_it() {
        let files = Files::from([
            ("crates/mpt-io/src/udp.rs", "unsafe {}"),
            ("crates/mpt/src/main.rs", "fn main() {}\nunsafe {}"),
        ]);
        let violations = check(&files);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].place, "crates/mpt/src/main.rs:2");
    }
}
