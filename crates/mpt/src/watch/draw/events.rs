//! The latest events, the very latest on top.

use mpt_control::Event;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};

use super::super::model::Model;
use super::text::{Shades, fit, shorten};
use crate::output::{duration, event};

/// Those of all tunnels, or only those of a connection, as many as `area` has room for under their
/// title.
pub(super) fn events<'m>(
    model: &'m Model,
    connection: Option<&str>,
    colour: bool,
    area: Rect,
) -> Text<'m> {
    let width = usize::from(area.width);
    let all = model.status.tunnels.iter().flat_map(|tunnel| &tunnel.events);
    let mut latest: Vec<&Event> = all
        .filter(|event| connection.is_none() || event.connection.as_deref() == connection)
        .collect();
    // The order of what happened at one time stays that of the daemon, turned round.
    latest.reverse();
    latest.sort_by(|a, b| b.at_seconds.total_cmp(&a.at_seconds));

    let mut text = Text::from(Line::styled("events", Shades::new(colour).title()));
    let room = usize::from(area.height).saturating_sub(1);
    for event_ in latest.iter().take(room) {
        let ago = duration(model.status.uptime_seconds - event_.at_seconds);
        let line = format!("  {} ago  {}", fit(&ago, 11, true), event(event_));
        text.push_line(Line::raw(shorten(&line, width)));
    }
    if latest.is_empty() {
        text.push_line(Line::raw("  none"));
    }
    text
}
