//! A manual page as text for troff (man(7)).

use clap_mangen::roff::{Inline, Roff, bold, roman};

/// The manual that the pages belong to, in their heads.
pub(super) const MANUAL: &str = "Multipath tunnel";

/// What the pages are about, in their feet.
pub(super) const SOURCE: &str = "MPT";

/// Which version that is. It stands in the place of a date, because a version always has the same pages.
pub(super) const VERSION: &str = concat!("mpt ", env!("CARGO_PKG_VERSION"));

/// A heading.
pub(super) fn section(page: &mut Roff, title: &str) {
    page.control("SH", [title]);
}

/// Lines that stay as they are, such as commands.
pub(super) fn verbatim<'l>(page: &mut Roff, lines: impl IntoIterator<Item = &'l str>) {
    page.control("nf", []);
    for line in lines {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

/// Text with words of code or weight in the marks of Markdown.
pub(super) fn marked(text: &str) -> Vec<Inline> {
    let text = without_links(text).replace("**", "`");
    let parts = text.split('`').enumerate();
    let inline = |(place, part): (usize, &str)| match place % 2 {
        0 => roman(part),
        _ => bold(part),
    };
    parts.filter(|(_, part)| !part.is_empty()).map(inline).collect()
}

/// `[text](target)` is only its text.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let target = link.split_once("](").and_then(|(words, more)| {
            let (_, after) = more.split_once(')')?;
            (!words.contains(']')).then_some((words, after))
        });
        match target {
            Some((words, after)) => {
                plain.push_str(words);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_their_text_and_other_brackets_stay() {
        assert_eq!(without_links("see [the lab](lab.md), then [x]"), "see the lab, then [x]");
        assert_eq!(without_links("`[]` or [a] and [b](c)"), "`[]` or [a] and b");
    }

    #[test]
    fn marks_become_weight() {
        let words = [roman("set "), bold("mtu"), roman(" now")];
        assert_eq!(marked("set `mtu` now"), words);
        assert_eq!(marked("**path** `name`"), [bold("path"), roman(" "), bold("name")]);
    }
}
