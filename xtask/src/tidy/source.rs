//! Just enough Rust: code without comments, literals and tests.

/// `source` with comments and the contents of literals left out; the line breaks stay.
pub(super) fn code_only(source: &str) -> String {
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

/// `code`, as [`code_only`] leaves it, without its inline test modules; the line breaks stay.
pub(super) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        let item = &rest[at + MARK.len()..];
        let module = item.trim_start().starts_with("mod ").then(|| item.find(['{', ';'])).flatten();
        let len = match module {
            Some(body) if item[body..].starts_with('{') => body + end_of_block(&item[body..]),
            _ => 0,
        };
        kept.push_str(&rest[..at]);
        kept.extend(item[..len].chars().filter(|&c| c == '\n'));
        rest = &item[len..];
    }
    kept + rest
}

/// The length of the block in braces at the start of `code`.
fn end_of_block(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
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
    fn comments_and_literals_are_left_out_and_lines_stay() {
        assert_eq!(code_only("a // b\n\"c\nd\" e"), "a  \n \n e");
    }

    #[test]
    fn only_inline_test_modules_are_left_out() {
        let code = "a\n#[cfg(test)]\nmod tests {\n  fn b() { {} }\n}\nc";
        assert_eq!(without_tests(code), "a\n\n\n\n\nc");
        for code in ["#[cfg(test)]\nmod tests;\nfn a() {}", "#[cfg(test)]\nuse b;\nmod c { d }"] {
            let kept = code.replace("#[cfg(test)]", "");
            assert_eq!(without_tests(code), kept);
        }
    }
}
