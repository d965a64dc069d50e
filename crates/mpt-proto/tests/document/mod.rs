//! The test vectors of `docs/protocol.md`, read from the document itself.

use std::ops::RangeInclusive;

/// Section 14 of the document.
fn section() -> &'static str {
    let document = include_str!("../../../../docs/protocol.md");
    let begin = document.find("\n## 14. Test vectors").expect("the section");
    let end = document.find("\n## 15.").expect("the section behind it");
    &document[begin..end]
}

/// The text of vector `number`, from behind its number to the next one's.
pub(crate) fn text(number: u8) -> &'static str {
    let mark = |number| format!("**14.{number}** ");
    let from = section().find(&mark(number)).expect("a vector") + mark(number).len();
    let to = section().find(&mark(number + 1)).unwrap_or(section().len());
    &section()[from..to]
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    assert_eq!(digits.len() % 2, 0, "{hex}");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The datagram in the block of vector `number`, whose title states its length.
pub(crate) fn datagram(number: u8) -> Vec<u8> {
    let mut parts = text(number).split("```");
    let title = parts.next().expect("a title");
    let datagram = bytes(parts.next().expect("a block"));
    assert!(title.contains(&format!("({} bytes)", datagram.len())), "14.{number}: {title}");
    datagram
}

/// How many vectors there are.
pub(crate) fn count() -> usize {
    section().matches("\n**14.").count()
}

/// How many datagrams these vectors print.
pub(crate) fn blocks(numbers: RangeInclusive<u8>) -> usize {
    numbers.map(|number| text(number).matches("```").count() / 2).sum()
}

/// The rows of the table of vector `number`: what its first cell says, and what its second.
pub(crate) fn rows(number: u8) -> Vec<(&'static str, &'static str)> {
    let rows = text(number).lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        (cells.next().expect("a cell"), cells.next().expect("another cell"))
    })
    .collect()
}
