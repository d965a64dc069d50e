//! What the keys do.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};

use super::super::ui::KEYS;
use crate::output::wrap;

/// What the titles of the columns mean.
const COLUMNS: &str = "pri: priority, the lowest number carries packets  share: of the connection's \
    sending rate  \
                       jit: one-way jitter  loss: share lost towards this host  \
                       drop/s: datagrams dropped here per second";

/// Fills `area`.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let mut text = Text::default();
    text.push_line(Line::raw(""));
    for (keys, meaning) in KEYS {
        let lines = wrap(&format!("  {keys:<12} {meaning}"), width, "    ");
        text.extend(lines.into_iter().map(Line::raw));
    }
    text.push_line(Line::raw(""));
    for part in COLUMNS.split("  ") {
        text.extend(wrap(&format!("  {part}"), width, "  ").into_iter().map(Line::raw));
    }
    frame.render_widget(text, area);
}
