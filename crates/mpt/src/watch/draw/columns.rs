//! The columns of a path beside its name, as many as fit into the terminal.

use mpt_control::PathState;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::list::word;
use super::super::model::PathRates;
use super::text::{Shades, fit};
use crate::output::{duration, percent, short, three_digits};

/// A column. In the order in which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    State,
    Priority,
    Sent,
    Received,
    Share,
    Rtt,
    Jitter,
    Loss,
    Drops,
    Weight,
    Reordered,
    Heard,
    Mtu,
    Interface,
    Remote,
}

const IN_PLACE: [Column; 15] = [
    Column::State,
    Column::Priority,
    Column::Sent,
    Column::Received,
    Column::Share,
    Column::Rtt,
    Column::Jitter,
    Column::Loss,
    Column::Drops,
    Column::Weight,
    Column::Reordered,
    Column::Heard,
    Column::Mtu,
    Column::Interface,
    Column::Remote,
];

/// The columns that 80 columns of text have room for, the indispensable ones first.
const BY_WORTH: [Column; 9] = [
    Column::State,
    Column::Sent,
    Column::Received,
    Column::Rtt,
    Column::Loss,
    Column::Share,
    Column::Priority,
    Column::Drops,
    Column::Jitter,
];

/// What more there is room for on wider ones, weights first.
const BEYOND: [Column; 6] = [
    Column::Weight,
    Column::Reordered,
    Column::Heard,
    Column::Remote,
    Column::Interface,
    Column::Mtu,
];

/// In front of a name: the mark of what is selected, and the step that paths stand in.
const MARGIN: usize = 2;

/// Width of the names where room is short, and at most.
const NAME: usize = 11;
const NAME_MAX: usize = 24;

/// The columns that fit.
#[derive(Debug)]
pub(super) struct Columns {
    name: usize,
    shown: Vec<Column>,
}

impl Columns {
    /// Those that `width` has room for, where names have up to `longest` letters. `weighted`: weights mean something.
    pub(super) fn new(width: usize, longest: usize, weighted: bool) -> Self {
        let mut left = width.saturating_sub(MARGIN + NAME);
        let mut shown = Vec::new();
        let mut take = |columns: &[Column], left: &mut usize| {
            for column in columns {
                let needed = column.width() + 1;
                if needed <= *left {
                    *left -= needed;
                    shown.push(*column);
                }
            }
        };
        take(&BY_WORTH, &mut left);
        let name = longest.clamp(NAME, NAME_MAX).min(NAME + left);
        left -= name - NAME;
        take(if weighted { &BEYOND } else { &BEYOND[1..] }, &mut left);
        shown.sort_by_key(|column| IN_PLACE.iter().position(|other| other == column));
        Self { name: name.min(width.saturating_sub(MARGIN)), shown }
    }

    /// The line above them.
    pub(super) fn titles(&self, shades: Shades) -> Line<'static> {
        let mut text = format!("  {}", fit("path", self.name, false));
        for column in &self.shown {
            text.push(' ');
            text += &fit(column.title(), column.width(), column.is_number());
        }
        Line::styled(text, shades.title())
    }

    /// The line of a path, the mark in front.
    pub(super) fn path(
        &self,
        mark: char,
        path: &PathState,
        rates: &PathRates,
        shades: Shades,
    ) -> Line<'static> {
        let mut spans = vec![Span::raw(format!("{mark} {}", fit(&path.name, self.name, false)))];
        for column in &self.shown {
            let cell = column.cell(path, rates);
            let style = if *column == Column::State {
                shades.state(&cell)
            } else if *column == Column::Drops && cell != "0" && cell != "-" {
                shades.trouble()
            } else {
                Style::new()
            };
            spans.push(Span::raw(" "));
            spans.push(Span::styled(fit(&cell, column.width(), column.is_number()), style));
        }
        Line::from(spans)
    }
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Priority => "pri",
            Self::Sent => "out bit/s",
            Self::Received => "in bit/s",
            Self::Share => "share",
            Self::Rtt => "rtt ms",
            Self::Jitter => "jit ms",
            Self::Loss => "loss %",
            Self::Drops => "drop/s",
            Self::Weight => "weight",
            Self::Reordered => "reord %",
            Self::Heard => "heard",
            Self::Mtu => "mtu",
            Self::Interface => "interface",
            Self::Remote => "remote",
        }
    }

    fn width(self) -> usize {
        match self {
            Self::State => 8,
            Self::Priority => 3,
            Self::Sent | Self::Received => 9,
            Self::Share | Self::Mtu => 5,
            Self::Rtt | Self::Jitter | Self::Loss | Self::Drops | Self::Weight => 6,
            Self::Reordered => 7,
            Self::Heard => 11,
            // The longest name of an interface: IFNAMSIZ of netdevice(7) less the zero at its end.
            Self::Interface => 15,
            // Any IPv4 address and port.
            Self::Remote => 21,
        }
    }

    fn is_number(self) -> bool {
        !matches!(self, Self::State | Self::Interface | Self::Remote)
    }

    fn cell(self, path: &PathState, rates: &PathRates) -> String {
        let number = |value: Option<f64>, text: fn(f64) -> String| {
            value.map_or_else(|| "-".to_owned(), text)
        };
        let flow = rates.flow;
        match self {
            Self::State => word(path).to_owned(),
            Self::Priority => path.priority.to_string(),
            Self::Sent => number(flow.map(|flow| flow.sent), short),
            Self::Received => number(flow.map(|flow| flow.received), short),
            Self::Share => number(rates.share, |share| format!("{:.0} %", share * 100.0)),
            Self::Rtt => number(path.rtt_ms, three_digits),
            Self::Jitter => number(path.jitter_ms, three_digits),
            Self::Loss => number(path.loss, percent),
            Self::Drops => number(flow.map(|flow| flow.drops), short),
            Self::Weight => path.weight.to_string(),
            Self::Reordered => {
                let order = &path.reordering;
                number((order.packets > 0).then_some(order.ratio), percent)
            }
            Self::Heard => path.last_heard_seconds.map_or_else(|| "never".to_owned(), duration),
            Self::Mtu => path.mtu.to_string(),
            Self::Interface => path.interface.as_deref().unwrap_or("-").to_owned(),
            Self::Remote => path.remote.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_columns_have_room_for_what_matters_and_more_for_more() {
        let width = |columns: &Columns| {
            let shown: usize = columns.shown.iter().map(|column| column.width() + 1).sum();
            MARGIN + columns.name + shown
        };
        for (total, count) in [(2, 0), (13, 0), (24, 1), (40, 3), (60, 6), (80, 9), (140, 14)] {
            let columns = Columns::new(total, 12, true);
            assert_eq!(columns.shown.len(), count, "{total}: {columns:?}");
            assert!(width(&columns) <= total, "{total}: {columns:?}");
        }
        let columns = Columns::new(80, 40, true);
        assert!(BY_WORTH.iter().all(|column| columns.shown.contains(column)), "{columns:?}");
        assert_eq!(Columns::new(400, 40, true).shown, IN_PLACE);
        let columns = Columns::new(400, 40, false);
        assert_eq!(columns.shown.len(), IN_PLACE.len() - 1);
        assert!(!columns.shown.contains(&Column::Weight), "{columns:?}");
    }
}
