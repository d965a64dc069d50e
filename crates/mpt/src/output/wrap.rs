//! Lines that fit.

/// `text` broken at blanks into lines of at most `width` columns. The later ones stand behind the
/// blanks of the first and `indent`. A word that is longer keeps a line of its own; what is short
/// enough stays as it is, and so do line breaks.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(line, width, indent)).collect()
}

fn wrap_line(text: &str, width: usize, indent: &str) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let lead: String = text.chars().take_while(|letter| *letter == ' ').collect();
    let mut lines = Vec::new();
    let mut line = lead.clone();
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, format!("{lead}{indent}")));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks() {
        let lines = wrap("  one two three", 9, "  ");
        assert_eq!(lines, ["  one two", "    three"]);
        assert_eq!(wrap("a  b\n  c", 80, ""), ["a  b", "  c"]);
        assert_eq!(wrap("unbreakable a", 4, ""), ["unbreakable", "a"]);
    }
}
