//! The picture: a function of the model and of what is chosen.
//!
//! From top to bottom: a line about the daemon, the titles of the columns, the list or the one
//! connection in focus, the latest events, a line of help. Words carry the meaning; colour, where it
//! is welcome, only repeats it.

mod columns;
mod events;
mod focus;
mod frame;
mod help;
mod overview;
mod text;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use super::model::Model;
use super::ui::{Mode, Ui};

/// Least height of a terminal that has room for events.
const EVENTS_FROM: u16 = 12;

/// Draws the view selected by `ui` of `model`, and reports its scroll range.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, ui: &mut Ui) {
    let [head, body, events, foot] = parts(frame.area());
    frame.render_widget(frame::head(model, ui, head.width), head);
    frame.render_widget(frame::foot(ui, foot.width), foot);
    match ui.mode().clone() {
        Mode::Focus { tunnel, connection, .. } => {
            focus::draw(frame, body, model, ui, (&tunnel, &connection));
            frame
                .render_widget(events::events(model, Some(&connection), ui.colour, events), events);
        }
        Mode::Help { .. } => help::draw(frame, body.union(events)),
        Mode::List | Mode::Filter { .. } => {
            overview::draw(frame, body, model, ui);
            frame.render_widget(events::events(model, None, ui.colour, events), events);
        }
    }
}

fn parts(area: Rect) -> [Rect; 4] {
    let events = match area.height {
        ..EVENTS_FROM => 0,
        EVENTS_FROM..20 => 3,
        20..36 => 5,
        _ => 9,
    };
    Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(events),
        Constraint::Length(1),
    ])
    .areas(area)
}
