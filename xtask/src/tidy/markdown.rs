//! Just enough Markdown: lines outside code blocks, headings, links, table columns.

/// The lines of `text` that are not part of a fenced code block, numbered from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!fence && !in_code).then_some((index + 1, line))
    })
}

/// The targets of the inline links in a line.
pub(super) fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, opening)| {
        let target = &line[at + opening.len()..];
        target.find(')').map(|end| &target[..end])
    })
}

/// The anchors that a reader's browser gets for the headings of `text`, by the rule that GitHub
/// and GitLab use.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|&c| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_')
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let repeated = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if repeated == 0 { anchor } else { format!("{anchor}-{repeated}") });
    }
    anchors
}

/// The cells below each header cell that is one of `titles`, with their line numbers.
pub(super) fn column_cells<'t>(text: &'t str, titles: &[&str]) -> Vec<(usize, &'t str)> {
    let mut found = Vec::new();
    let mut column = None;
    let mut in_table = false;
    for (number, line) in prose(text) {
        let Some(row) = line.trim().strip_prefix('|') else {
            in_table = false;
            column = None;
            continue;
        };
        let cells = || row.split('|').map(str::trim);
        if !in_table {
            in_table = true;
            column = cells().position(|cell| titles.contains(&cell));
        } else if let Some(cell) = column.and_then(|column| cells().nth(column)) {
            found.push((number, cell));
        }
    }
    found
}

/// The words of a line that stand `like this`.
pub(super) fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_are_not_prose() {
        let text = "a\n```text\n# b\n```\nc";
        assert_eq!(prose(text).collect::<Vec<_>>(), [(1, "a"), (5, "c")]);
    }

    #[test]
    fn all_links_of_a_line_are_found() {
        let line = "see [a](b.md#c) and [d](https://e), not (f) or [g]";
        assert_eq!(links(line).collect::<Vec<_>>(), ["b.md#c", "https://e"]);
    }

    #[test]
    fn anchors_are_those_of_the_forges() {
        let text = "# The MPT protocol\n## 7. Size, DSCP and ECN\n### `a_b`\n# Same\n# Same\n#no";
        let expected = ["the-mpt-protocol", "7-size-dscp-and-ecn", "a_b", "same", "same-1"];
        assert_eq!(anchors(text), expected);
    }

    #[test]
    fn columns_are_found_by_their_titles() {
        let text =
            "| drop | where |\n|---|---|\n| `x` | y |\n\n| where | drop |\n|--|--|\n| p | q |\n";
        let cells = column_cells(text, &["drop"]);
        assert_eq!(cells, [(2, "---"), (3, "`x`"), (6, "--"), (7, "q")]);
        assert_eq!(column_cells(text, &["absent"]), []);
    }

    #[test]
    fn code_spans_are_the_parts_between_backticks() {
        assert_eq!(code_spans("`a`: b `c`, d").collect::<Vec<_>>(), ["a", "c"]);
    }
}
