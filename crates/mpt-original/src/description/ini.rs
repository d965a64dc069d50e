//! Sections of keys and values, as the original's parser reads them, but strict.
//!
//! ```text
//! ; a comment, or one with #
//! [section]
//! key = value        ; another
//! other = "value"
//! ```

use super::DescriptionError;

/// The longest line that the original reads.
const MAX_LINE: usize = 1023;

/// A section. Names are compared without case.
#[derive(Debug)]
pub(super) struct Section<'t> {
    pub(super) name: &'t str,
    entries: Vec<(&'t str, &'t str)>,
}

impl<'t> Section<'t> {
    /// The value of a key, if it is there.
    pub(super) fn value(&self, key: &str) -> Option<&'t str> {
        let is_it = |entry: &&(&str, &str)| entry.0.eq_ignore_ascii_case(key);
        self.entries.iter().find(is_it).map(|(_, value)| *value)
    }
}

/// The sections of a text, none of them and no key of one twice.
///
/// # Errors
///
/// The first line that is wrong.
pub(super) fn sections(text: &str) -> Result<Vec<Section<'_>>, DescriptionError> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = Err(DescriptionError::Line(number));
        // A last character that would have the line go on is refused with the other control characters.
        if line.len() > MAX_LINE || !line.bytes().all(is_plain) || line.contains('\\') {
            return wrong;
        }
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let Some((name, "")) = name.split_once(']').map(|(name, rest)| (name, content(rest)))
            else {
                return wrong;
            };
            let name = name.trim_ascii();
            if sections.iter().any(|section| section.name.eq_ignore_ascii_case(name)) {
                return wrong;
            }
            sections.push(Section { name, entries: Vec::new() });
            continue;
        }
        let entry = line
            .split_once('=')
            .and_then(|(key, value)| Some((key.trim_ascii_end(), self::value(value)?)));
        let (Some((key, value)), Some(section)) = (entry, sections.last_mut()) else {
            return wrong;
        };
        if key.is_empty() || section.value(key).is_some() {
            return wrong;
        }
        section.entries.push((key, value));
    }
    Ok(sections)
}

/// The text before a comment.
fn content(text: &str) -> &str {
    let end = text.find([';', '#']).unwrap_or(text.len());
    text[..end].trim_ascii()
}

/// A value without quotes and comment.
fn value(text: &str) -> Option<&str> {
    match text.trim_ascii_start().strip_prefix('"') {
        Some(quoted) => {
            let (value, rest) = quoted.split_once('"')?;
            content(rest).is_empty().then_some(value)
        }
        None => Some(content(text)).filter(|value| !value.contains('"')),
    }
}

fn is_plain(byte: u8) -> bool {
    byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_values_are_read_with_comments_and_quotes() {
        let text = "\n;c\n#c\n [ One ] # c\na=1\n  B\t=  two words ; c\nc = \"; quoted #\" ;c\nd =\n[two]\n";
        let sections = sections(text).unwrap();
        let names: Vec<_> = sections.iter().map(|section| section.name).collect();
        assert_eq!(names, ["One", "two"]);
        let one = |key| sections[0].value(key);
        assert_eq!(
            [one("A"), one("b"), one("c")],
            [Some("1"), Some("two words"), Some("; quoted #")]
        );
        assert_eq!((one("d"), one("e"), sections[1].value("a")), (Some(""), None, None));
    }

    #[test]
    fn other_lines_are_refused_with_their_number() {
        let long = format!("[s]\nk = {}", "v".repeat(MAX_LINE));
        for (text, line) in [
            ("k = v", 1),
            ("[s", 1),
            ("[s] x", 1),
            ("[s]\n[S]", 2),
            ("[s]\nk = v\nK = w", 3),
            ("[s]\nk", 2),
            ("[s]\n= v", 2),
            ("[s]\nk = \"v", 2),
            ("[s]\nk = \"v\" w", 2),
            ("[s]\nk = v\"", 2),
            ("[s]\nk = v\\\nw", 2),
            ("[s]\nk = \u{7}", 2),
            ("[s]\nk = é", 2),
            (&long, 2),
        ] {
            assert_eq!(sections(text).err(), Some(DescriptionError::Line(line)), "{text}");
        }
        assert!(sections(&long[..long.len() - 4]).is_ok());
    }
}
