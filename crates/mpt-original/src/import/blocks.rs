//! The values of the form without names, in the blocks between lines that begin with `;`.

use std::ops::Range;

/// The values between two separators.
pub(super) type Block = Vec<Value>;

/// A line that has a value.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) line: usize,
    pub(super) span: Range<usize>,
}

/// Whether a text has this form: no sections, but separators, and values that are no settings.
pub(super) fn is_positional(text: &str) -> bool {
    let blocks = blocks(text);
    let mut values = blocks.iter().flatten().peekable();
    values.peek().is_some()
        && values.all(|value| !value.text.contains('=') && !value.text.starts_with('['))
        && text.lines().any(|line| line.trim_start().starts_with(';'))
}

/// The blocks that have values.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut block = Block::new();
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let begin = start;
        start += line.len();
        if line.trim_start_matches('\u{feff}').trim_start().starts_with(';') {
            blocks.push(std::mem::take(&mut block));
            continue;
        }
        let value = line.split('#').next().unwrap_or_default();
        let text = value.trim_start_matches('\u{feff}').trim();
        if let (false, Some(from)) = (text.is_empty(), value.find(text)) {
            let span = begin + from..begin + from + text.len();
            block.push(Value { text: text.to_owned(), line: number, span });
        }
    }
    blocks.push(block);
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Where a block is, without the comments around it.
pub(super) fn span(block: &Block) -> Range<usize> {
    match &block[..] {
        [first, .., last] => first.span.start..last.span.end,
        [only] => only.span.clone(),
        [] => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_are_not_positional() {
        for text in ["", "; a comment\n", "[general]\n;\n1\n", ";\na = b\n", "1\n"] {
            assert!(!is_positional(text), "{text}");
        }
    }
}
