//! Columns of text under each other.

/// Rows of cells; each column is as wide as its widest cell.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
}

/// The content of a cell and how it is shown.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    text: String,
    right: bool,
    /// The SGR parameters of ECMA-48 it is shown with, if any.
    colour: Option<&'static str>,
}

impl Cell {
    /// Text, flush left.
    pub(super) fn left(text: impl Into<String>) -> Self {
        Self { text: text.into(), right: false, colour: None }
    }

    /// A number, flush right.
    pub(super) fn right(text: impl Into<String>) -> Self {
        Self { text: text.into(), right: true, colour: None }
    }

    /// In that colour, where there is one.
    pub(super) fn coloured(mut self, colour: Option<&'static str>) -> Self {
        self.colour = colour;
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl Table {
    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, each behind `indent`, without white space at their ends.
    pub(super) fn render(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (cell, &width) in row.iter().zip(&widths) {
                let padding = " ".repeat(width - cell.width());
                let text = match cell.colour {
                    Some(colour) => format!("\x1b[{colour}m{}\x1b[0m", cell.text),
                    None => cell.text.clone(),
                };
                let (before, after) =
                    if cell.right { (padding.as_str(), "") } else { ("", padding.as_str()) };
                line.push_str(&format!("{before}{text}{after}  "));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_whatever_the_colour() {
        let mut table = Table::default();
        table.row([Cell::left("path"), Cell::left("state"), Cell::right("weight")]);
        table.row([Cell::left("fibre"), Cell::left("up"), Cell::right("40")]);
        table.row([Cell::left("é"), Cell::left("probing"), Cell::right("10000")]);
        assert_eq!(
            table.render("  "),
            "  path   state    weight\n  fibre  up           40\n  é      probing   10000\n"
        );
        let mut table = Table::default();
        table.row([Cell::left("a").coloured(Some("31")), Cell::left("b")]);
        table.row([Cell::left("ccc"), Cell::left("d")]);
        assert_eq!(table.render(""), "\x1b[31ma\x1b[0m    b\nccc  d\n");
    }
}
