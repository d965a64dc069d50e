//! Unsafe code has one home.
//!
//! The workspace's lints forbid it to the compiler already. This rule sees what a lint that a crate
//! switches off for itself no longer sees, and code that this platform does not compile.

use super::Violation;
use super::files::Files;

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

/// `source` with comments and the contents of literals left out; the line breaks stay.
fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| literal(rest));
        // A raw prefix belongs to a literal only at the start of a word: `bar"` is no `r"`.
        let in_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let len = match skipped {
            Some(len) if !(in_word && first.is_alphabetic()) => {
                code.push(' ');
                code.extend(rest[..len].chars().filter(|&c| c == '\n'));
                len
            }
            _ => {
                code.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    code
}

/// The length of the comment at the start of `text`, if one is there.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(text.len())
}

/// The length of the string or character literal at the start of `text`, if one is there.
fn literal(text: &str) -> Option<usize> {
    let bare = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let prefix = text.len() - bare.len();
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let len = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix + 1 + hashes + 1 + len);
    }
    if let Some(body) = bare.strip_prefix('"') {
        return Some(prefix + 1 + end_of_quoted(body, '"'));
    }
    let body = bare.strip_prefix('\'')?;
    // A quote that does not close after one character begins a lifetime.
    let mut characters = body.chars();
    let one = characters.next()?;
    (one == '\\' || characters.next() == Some('\'')).then(|| prefix + 1 + end_of_quoted(body, '\''))
}

/// The length of `body` up to and with the first `quote` that no backslash escapes.
fn end_of_quoted(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in body.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    body.len()
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
